#!/usr/bin/env python3
"""What growth costs: the same work with a short history and with a long one, with few sessions and with many.

For each length of the history a server is started on a store that was filled through the store's own crate (prompts and
answers of 200 bytes), and takes

first turn   a prompt to its answer right after the start: everything is read for the first time
add          a prompt with `noReply`: one message more and no request
turn         a prompt to its answer, and what of it goes to sending the request's bytes: the very body that was sent, sent
             again to the same model by a client that does nothing else
whole, page  `GET /session/ID/message`, all of it and the newest 50
show         the command `session show`

With 10,000 sessions: `GET /session`, `session list`, the start until healthy, a new session.

The model is one of this file: it reads the request and answers a word.
"""
import argparse
import http.client
import json
import os
import shutil
import socketserver
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlparse

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
from serve import free_port, memory, ready  # noqa: E402
from world import AUTHORIZATION, Server, environment, make_project  # noqa: E402

CHUNKS = [{"delta": {"role": "assistant", "content": "Done."}}, {"delta": {}, "finish_reason": "stop"}]
USAGE = {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102}
MODEL = {"providerID": "mock", "modelID": "m1"}
# An addition costs the same at every length, a turn at most twice: what `--check` holds them to, with room for noise.
MOST = {"add": 2.0, "turn": 2.0}


class Model(socketserver.ThreadingTCPServer):
    """Answers every request with a word, and keeps the last one."""
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.last = (None, b"")
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.last = (self.path, body)
        head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m1"}
        lines = [{**head, "choices": [{"index": 0, **chunk}]} for chunk in CHUNKS] + [{**head, "choices": [], "usage": USAGE}]
        text = "".join(f"data: {json.dumps(line)}\n\n" for line in lines) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


class Client:
    """One connection that is kept, so that no time goes to making it."""

    def __init__(self, url):
        address = urlparse(url)
        self.connection = http.client.HTTPConnection(address.hostname, address.port, timeout=300)
        self.connection.connect()
        self.connection.sock.setsockopt(6, 1, 1)

    def send(self, method, path, body=None):
        """Seconds, and what was answered."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        started = time.perf_counter()
        self.connection.request(method, path, body, {"authorization": AUTHORIZATION, "content-type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        took = time.perf_counter() - started
        if answer.status >= 300:
            sys.exit(f"bench: {method} {path}: {answer.status} {text[:500]}")
        return took, text

    def json(self, method, path, body=None):
        return json.loads(self.send(method, path, body)[1])


def prompt(text, **more):
    return {"model": MODEL, "parts": [{"type": "text", "text": text}], **more}


class World:
    """A project with its home and a model; servers are started in it."""

    def __init__(self, binary, folder, fill):
        self.binary, self.folder, self.fill = binary, folder, fill
        self.model = Model()
        limits = {"context": 100_000_000, "output": 4000}
        models = {"m1": {"name": "M1", "tool_call": True, "limit": limits}}
        provider = {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "Mock", "options": {"baseURL": self.model.url, "apiKey": "x"}, "models": models}}
        more = {"provider": provider, "lsp": False, "formatter": False, "agent": {}, "command": {}}
        self.project = make_project(folder, self.model.url, more)
        self.env = environment(folder / "home", self.project)

    def server(self):
        started = time.monotonic()
        server = Server(self.binary, self.project, self.env, self.folder / "server.log", port=free_port())
        return server, started

    def run(self, work):
        server, started = self.server()
        with server:
            self.started = ready(server, started)
            return work(server, Client(server.url))

    def filled(self, what, session, count):
        stores = list((self.folder / "home").rglob("*.db"))
        if len(stores) != 1:
            sys.exit(f"bench: one store was expected, not {stores}")
        subprocess.run([str(self.fill), str(stores[0]), what, session, str(count)], check=True)

    def command(self, *words):
        started = time.perf_counter()
        subprocess.run([self.binary, *words], cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - started


def history(world, count, runs):
    """Figures of a session with so many messages."""
    session = world.run(lambda _server, client: client.json("POST", "/session", {"title": "long"})["id"])
    world.filled("messages", session, count)
    path = f"/session/{session}/message"

    def work(server, client):
        figures = {}
        figures["first turn"] = [client.send("POST", path, prompt("first"))[0]]
        figures["turn"], figures["sent"] = [], []
        for n in range(runs):
            took, text = client.send("POST", path, prompt(f"turn {n}"))
            if b"Done." not in text:
                sys.exit(f"bench: no answer: {text[:1000]}")
            figures["turn"].append(took)
            where, body = world.model.last
            if body.count(b'"role"') < count:
                sys.exit(f"bench: the request has {len(body)} bytes and not the whole history")
            model = Client(world.model.url)
            figures["sent"].append(min(model.send("POST", where, body)[0] for _ in range(3)))
        figures["bytes"] = [len(world.model.last[1])]
        figures["add"] = [client.send("POST", path, prompt(f"note {n}", noReply=True))[0] for n in range(2 * runs)]
        figures["whole"] = [client.send("GET", path)[0] for _ in range(runs)]
        figures["page"] = [client.send("GET", f"{path}?limit=50")[0] for _ in range(runs)]
        figures["memory"] = [memory(server.pid)]
        return figures

    figures = world.run(work)
    figures["show"] = [world.command("session", "show", session) for _ in range(3)]
    return figures


def sessions(world, count, runs):
    """Figures of a project with so many sessions."""
    like = world.run(lambda _server, client: client.json("POST", "/session", {"title": "one of many"})["id"])
    world.filled("sessions", like, count)

    def work(_server, client):
        return {
            "list": [client.send("GET", "/session?limit=100")[0] for _ in range(runs)],
            "list of a folder": [client.send("GET", f"/session?limit=100&directory={world.project}")[0] for _ in range(runs)],
            "new": [client.send("POST", "/session", {})[0] for _ in range(runs)],
            "turn": [client.send("POST", f"/session/{like}/message", prompt(f"turn {n}"))[0] for n in range(runs)],
        }

    figures = world.run(work)
    figures["ready"] = [world.started]
    figures["session list"] = [world.command("session", "list") for _ in range(3)]
    return figures


def shown(figure, values):
    middle = statistics.median(values)
    if figure in ("memory", "bytes"):
        return f"{middle / 2**20:.1f} MiB"
    return f"{middle * 1000:.2f}"


def table(title, columns, of):
    """Prints figures by column; `of` is from column to figures."""
    print(f"\n{title:24}" + "".join(f"{column:>12,}" for column in columns))
    for figure in of[columns[0]]:
        print(f"{figure:24}" + "".join(f"{shown(figure, of[column][figure]):>12}" for column in columns))


def missed(of, columns):
    """What of the long histories costs more than it may."""
    short, found = columns[0], []
    middle = {column: {name: statistics.median(values) for name, values in of[column].items()} for column in columns}
    for column in columns[1:]:
        add = middle[column]["add"] / middle[short]["add"]
        turn = (middle[column]["turn"] - middle[column]["sent"]) / (middle[short]["turn"] - middle[short]["sent"])
        for name, ratio in (("add", add), ("turn", turn)):
            if ratio > MOST[name]:
                found.append(f"{name} behind {column:,} messages costs {ratio:.1f} times as much as behind {short:,}; at most {MOST[name]}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True, help="our binary")
    parser.add_argument("--fill", required=True, help="the example `fill` of outrigger-store")
    parser.add_argument("--runs", type=int, default=10, help="turns at each length (default 10)")
    parser.add_argument("--messages", default="10,1000,3000,10000", help="lengths of the history")
    parser.add_argument("--sessions", default="10,10000", help="how many sessions")
    parser.add_argument("--check", action="store_true", help="exit code 1 when growth costs more than it may")
    parser.add_argument("--json", metavar="FILE", help="writes all values there")
    options = parser.parse_args()
    binary, fill = os.path.abspath(options.ours), os.path.abspath(options.fill)
    results = {}
    for name, counts, measure in (("messages", options.messages, history), ("sessions", options.sessions, sessions)):
        results[name] = {}
        for count in [int(count) for count in counts.split(",") if count]:
            folder = Path(tempfile.mkdtemp(prefix="bench-")).resolve()
            try:
                results[name][count] = measure(World(binary, folder, fill), count, options.runs)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    print("milliseconds, medians")
    if results["messages"]:
        table("messages in the history", list(results["messages"]), results["messages"])
    if results["sessions"]:
        table("sessions", list(results["sessions"]), results["sessions"])
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))
    found = missed(results["messages"], list(results["messages"])) if len(results["messages"]) > 1 else []
    for line in found:
        print(f"MISSED: {line}")
    return 1 if found and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
