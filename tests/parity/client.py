"""Scenarios with clients: `BIN serve`, and what HTTP clients do to it step by step.

A step is an object with one of these keys:
  say     text: a prompt of the session, which is not waited for. `reply: false` asks for no answer; `in` names the session; `with` adds to the
          request's body
  send    [method, path, body?]: a request whose answer is waited for; `save: {NAME: key}` keeps something of it
  wait    kind of event: until so many have been seen (`n`, else one); a string of `tool status` waits for a tool part
  hook    name of a hook: until the recorder was called at it
  said    until the session holds so many messages of the user
  pause   seconds, where nothing tells that both programs are past a point
  unlisted true: the conversation is not read back at the end (OpenCode fails at it where a prompt had a `format`)
  join    true: until every prompt is answered, and every session idle
`{SID}` is the first session, `{LAST}` the session's last message of the user; names that were saved are filled in too.
What a step came to is written down as a run: its code is 0 for an answer below 400, its output is a line of JSON that says
what two programs can agree on.
"""
import base64
import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

LOGIN = "opencode:parity"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Events:
    """A client's stream of events, read in a thread."""

    def __init__(self, response):
        self.response = response
        self.seen = []
        self.lock = threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            for line in self.response:
                if line.startswith(b"data: "):
                    with self.lock:
                        self.seen.append(json.loads(line[6:]))
                        self.lock.notify_all()
        except (OSError, ValueError):
            pass

    def wait(self, matches, number, limit):
        end = time.monotonic() + limit
        with self.lock:
            while True:
                found = [event for event in self.seen if matches(event)]
                if len(found) >= number:
                    return found[number - 1]
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"waited for {number}, saw {len(found)}; last {self.seen[-3:]}")
                self.lock.wait(left)


def of_tool(tool, status):
    def matches(event):
        part = event.get("properties", {}).get("part", {})
        return part.get("tool") == tool and part.get("state", {}).get("status") == status
    return matches


def summary(value):
    """What two programs agree on of an answer: no identifiers, times, prices or texts of their own."""
    if isinstance(value, list):
        if value and isinstance(value[0], dict) and "info" in value[0]:
            return conversation(value)
        return [summary(item) for item in value]
    if isinstance(value, dict) and "parts" in value and "info" in value:
        return conversation([value])[0]
    if isinstance(value, dict):
        return {"keys": sorted(value)} if "id" not in value else {"is": sorted(set(value) & {"parentID", "revert", "title"})}
    return value


def conversation(messages):
    """Roles, which message of the user each answers, kinds of parts with what was said, and errors."""
    asked = [message["info"]["id"] for message in messages if message["info"]["role"] == "user"]
    lines = []
    for message in messages:
        info, parent = message["info"], message["info"].get("parentID")
        error = (info.get("error") or {}).get("name")
        line = {"role": info["role"], "parts": [part_line(part, error) for part in message["parts"]]}
        if parent in asked:
            line["answers"] = asked.index(parent)
        if error:
            line["error"] = error
        if "structured" in info:
            line["structured"] = info["structured"]
        lines.append(line)
    return lines


def part_line(part, error):
    if part["type"] == "text":
        return part["text"][:80]
    if part["type"] == "tool" and error == "MessageAbortedError":
        # Whether the command's end was reported is a race, in OpenCode too.
        return f"{part['tool']} ended"
    if part["type"] == "tool":
        return f"{part['tool']} {part['state']['status']}"
    return part["type"]


class Session:
    """The server, a client that watches it, and the sessions that were made."""

    def __init__(self, binary, project, env, limit):
        self.limit = limit
        self.port = free_port()
        self.env = {**env, "OPENCODE_SERVER_PASSWORD": LOGIN.split(":")[1]}
        self.process = subprocess.Popen([binary, "serve", "--hostname", "127.0.0.1", "--port", str(self.port)], cwd=project, env=self.env,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self.names, self.runs, self.threads = {}, [], []
        self.listed = True
        self.await_listening()
        self.clients = [Events(self.open("GET", "/event")) for _ in range(2)]
        self.clients[0].wait(lambda event: event["type"] == "server.connected", 1, limit)

    def await_listening(self):
        end = time.monotonic() + self.limit
        for line in self.process.stdout:
            if b"listening on" in line:
                break
            if time.monotonic() > end:
                raise TimeoutError("the server does not listen")
        # Its remaining output must be read.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def open(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": "Basic " + base64.b64encode(LOGIN.encode()).decode(), "content-type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data, headers=headers, method=method)
        return urllib.request.urlopen(request, timeout=self.limit)

    def send(self, method, path, body=None):
        try:
            with self.open(method, path, body) as response:
                text = response.read()
                return response.status, json.loads(text) if text.strip() else None
        except urllib.error.HTTPError as error:
            error.read()
            return error.code, None

    def note(self, what, status, answer):
        line = json.dumps({what: summary(answer)})
        self.runs.append({"rc": 0 if status < 400 else status, "secs": 0, "stdout": line, "stderr": ""})

    def fill(self, value):
        if isinstance(value, str):
            if "{LAST}" in value:
                self.names["LAST"] = self.last()
            for name, text in self.names.items():
                value = value.replace("{" + name + "}", text)
            return value
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if isinstance(value, dict):
            return {key: self.fill(item) for key, item in value.items()}
        return value

    def asked(self):
        _, messages = self.send("GET", f"/session/{self.names['SID']}/message")
        return [message["info"]["id"] for message in messages if message["info"]["role"] == "user"]

    def last(self):
        return self.asked()[-1]

    def said(self, number):
        end = time.monotonic() + self.limit
        while len(self.asked()) < number:
            if time.monotonic() > end:
                raise TimeoutError(f"{number} messages of the user")
            time.sleep(0.05)

    def called(self, hook):
        end = time.monotonic() + self.limit
        while f'"hook":"{hook}"' not in Path(self.env["REC_OUT"]).read_text():
            if time.monotonic() > end:
                raise TimeoutError(f"the hook {hook}")
            time.sleep(0.05)

    def step(self, step):
        if "send" in step:
            method, path, *body = self.fill(step["send"])
            status, answer = self.send(method, path, *body)
            for name, key in step.get("save", {}).items():
                self.names[name] = answer[key]
            self.note(step.get("as", f"{method} {path.split('/')[-1].split('_')[0]}"), status, answer)
        elif "say" in step:
            self.say(step)
        elif "wait" in step:
            kind, *status = step["wait"].split(" ")
            matches = of_tool(kind, status[0]) if status else lambda event: event["type"] == kind
            event = self.clients[0].wait(matches, step.get("n", 1), self.limit)
            for name, key in step.get("save", {}).items():
                self.names[name] = event["properties"][key]
        elif "hook" in step:
            self.called(step["hook"])
        elif "said" in step:
            self.said(step["said"])
        elif "pause" in step:
            time.sleep(step["pause"])
        elif "unlisted" in step:
            self.listed = False
        elif "join" in step:
            self.join()

    def say(self, step):
        body = {"parts": [{"type": "text", "text": step["say"]}], **step.get("with", {})}
        if step.get("reply") is False:
            body["noReply"] = True
        session = self.fill(step.get("in", "{SID}"))
        # Each prompt's line is where it was sent, whenever its answer arrives.
        run = {}
        self.runs.append(run)

        def ask():
            status, answer = self.send("POST", f"/session/{session}/message", body)
            line = json.dumps({"answer": summary(answer)})
            run.update({"rc": 0 if status < 400 else status, "secs": 0, "stdout": line, "stderr": ""})
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        self.threads.append(thread)

    def join(self):
        for thread in self.threads:
            thread.join(self.limit)
        end = time.monotonic() + self.limit
        while self.send("GET", "/session/status")[1] != {} and time.monotonic() < end:
            time.sleep(0.05)

    def end(self):
        """What both clients saw of the sessions' ends, and the conversation."""
        self.join()
        time.sleep(0.3)
        for client in self.clients:
            seen = sorted(event["type"] for event in client.seen if event["type"] in ("session.idle", "session.error", "permission.asked", "question.asked"))
            self.runs.append({"rc": 0, "secs": 0, "stdout": json.dumps({"seen": seen}), "stderr": ""})
        if not self.listed:
            return
        status, messages = self.send("GET", f"/session/{self.names['SID']}/message")
        self.note("conversation", status, messages)

    def stop(self):
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(10)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def play(binary, steps, project, env, limit):
    """Runs the steps against a server of their own; the runs, as result.json has them."""
    session = Session(binary, project, env, limit)
    try:
        status, made = session.send("POST", "/session", {"title": "parity"})
        session.names["SID"] = made["id"]
        session.note("session", status, made)
        for step in steps:
            session.step(step)
        session.end()
    except (TimeoutError, OSError, KeyError, IndexError, TypeError) as error:
        session.runs.append({"rc": "stuck", "secs": 0, "stdout": "", "stderr": repr(error)})
    finally:
        session.stop()
    return [run or {"rc": "stuck", "secs": 0, "stdout": "", "stderr": "no answer"} for run in session.runs]
