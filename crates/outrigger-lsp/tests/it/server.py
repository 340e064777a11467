"""A language server for tests. What it does comes as arguments: MODE and a file for its log.

It reports a diagnostic for each line of a document that holds the word `error` (severity 1) or `warning` (2).
"""
import json
import os
import sys
import time

mode, log_path = sys.argv[1], sys.argv[2]
log = open(log_path, "a")


def note(text):
    log.write(text + "\n")
    log.flush()


def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()


def receive():
    length = 0
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit(0)
        if not line.strip():
            break
        name, _, value = line.decode().partition(":")
        if name.lower() == "content-length":
            length = int(value)
    return json.loads(sys.stdin.buffer.read(length))


def diagnostics(text):
    found = []
    for number, line in enumerate(text.split("\n")):
        for word, severity in (("error", 1), ("warning", 2)):
            at = line.find(word)
            if at >= 0:
                where = {"line": number, "character": at}
                found.append({"range": {"start": where, "end": where}, "severity": severity, "message": "found: " + line.strip()})
    return found


texts = {}


def publish(uri, version):
    if mode in ("pull", "silent", "registers"):
        return
    if mode == "late":
        time.sleep(1)
    params = {"uri": uri, "diagnostics": diagnostics(texts[uri])}
    if mode == "versions":
        params["version"] = version
    send({"method": "textDocument/publishDiagnostics", "params": params})


if mode == "exit":
    print("no licence", file=sys.stderr)
    sys.exit(3)
if mode == "mute":
    time.sleep(3600)
if mode == "garbage":
    print("hello, I am no server\n\n\n")
    print("x" * 200000)
    time.sleep(3600)
if mode == "huge":
    sys.stdout.write("Content-Length: 999999999\r\n\r\n")
    sys.stdout.flush()
    time.sleep(3600)

if mode == "links":
    os.unlink("a.txt")
    os.symlink("../outside.txt", "a.txt")

note("start")
while True:
    message = receive()
    method = message.get("method")
    if method is None:
        note("answer " + json.dumps(message.get("result")))
        continue
    note(method)
    params = message.get("params") or {}
    if method == "initialize":
        capabilities = {"textDocumentSync": {"change": 2 if mode == "ranges" else 1, "save": True}}
        if mode == "pull":
            capabilities["diagnosticProvider"] = {"interFileDependencies": False}
        note("options " + json.dumps(params["initializationOptions"], sort_keys=True))
        send({"id": message["id"], "result": {"capabilities": capabilities}})
        send({"id": "c", "method": "workspace/configuration", "params": {"items": [{"section": "a.b"}]}})
        if mode == "registers":
            registration = {"id": "d", "method": "textDocument/diagnostic", "registerOptions": {"identifier": "mine"}}
            send({"id": "r", "method": "client/registerCapability", "params": {"registrations": [registration]}})
    elif method == "textDocument/didOpen":
        document = params["textDocument"]
        note("open " + document["languageId"])
        texts[document["uri"]] = document["text"]
        publish(document["uri"], 0)
        if mode == "flood":
            while True:
                send({"method": "window/logMessage", "params": {"message": "y" * 1000}})
        if mode == "dies" or (mode == "dies-on-error" and "error" in document["text"]):
            sys.exit(7)
    elif method == "textDocument/didChange":
        change = params["contentChanges"][0]
        if mode == "ranges":
            note("range " + json.dumps(change["range"]["end"], sort_keys=True))
        uri = params["textDocument"]["uri"]
        texts[uri] = change["text"]
        publish(uri, params["textDocument"]["version"])
    elif method == "textDocument/diagnostic":
        uri = params["textDocument"]["uri"]
        note("identifier " + str(params.get("identifier")))
        send({"id": message["id"], "result": {"kind": "full", "items": diagnostics(texts[uri])}})
    elif method == "workspace/symbol":
        at = {"uri": "file:///x", "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}}
        kinds = [12, 1, 5] if params["query"] == "all" else [12] * 30
        send({"id": message["id"], "result": [{"name": "s%d" % k, "kind": k, "location": at} for k in kinds]})
    elif method in ("textDocument/definition", "textDocument/references", "textDocument/hover"):
        place = {"uri": params["textDocument"]["uri"], "position": params["position"], "context": params.get("context")}
        answers = {"definition": place, "references": [place, place], "hover": None}
        send({"id": message["id"], "result": answers[method.split("/")[1]]})
    elif method == "textDocument/documentSymbol":
        send({"id": message["id"], "result": []})
    elif method == "textDocument/prepareCallHierarchy":
        send({"id": message["id"], "result": [{"name": "main"}, {"name": "other"}]})
    elif method == "callHierarchy/incomingCalls":
        send({"id": message["id"], "result": [{"from": params["item"]}]})
    elif method == "shutdown":
        if mode == "stays":
            time.sleep(3600)
        send({"id": message["id"], "result": None})
    elif method == "exit":
        sys.exit(0)
    elif "id" in message:
        send({"id": message["id"], "error": {"code": -32601, "message": "not known"}})
