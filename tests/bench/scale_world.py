"""What the parts of `scale.py` share: a project with its home and a model, servers in it, one connection."""
import http.client
import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlparse

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
from serve import free_port, memory, ready  # noqa: E402, F401
from world import AUTHORIZATION, Server, environment, make_project  # noqa: E402

MODEL = {"providerID": "mock", "modelID": "m1"}


def fail(text):
    sys.exit(f"bench: {text}")


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
            fail(f"{method} {path}: {answer.status} {text[:500]}")
        return took, text

    def json(self, method, path, body=None):
        return json.loads(self.send(method, path, body)[1])


def prompt(text, **more):
    return {"model": MODEL, "parts": [{"type": "text", "text": text}], **more}


class World:
    """A project with its home and a model, as a context manager; servers are started in it."""

    def __init__(self, binary):
        self.binary, self.started = binary, 0.0

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="bench-")).resolve()
        command = [sys.executable, str(HERE / "scale_model.py")]
        self.model = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{int(self.model.stdout.readline().split()[-1])}"
        limits = {"context": 100_000_000, "output": 4000}
        models = {"m1": {"name": "M1", "tool_call": True, "limit": limits}}
        provider = {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "Mock", "options": {"baseURL": self.url, "apiKey": "x"}, "models": models}}
        more = {"provider": provider, "lsp": False, "formatter": False, "agent": {}, "command": {}}
        self.project = make_project(self.folder, self.url, more)
        self.env = environment(self.folder / "home", self.project)
        return self

    def __exit__(self, *_):
        self.model.kill()
        self.model.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def asked(self, path):
        """What the model answers to a request of ours."""
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return answer.read()

    def run(self, work):
        """`work(server)` on a server that is ready."""
        started = time.monotonic()
        with Server(self.binary, self.project, self.env, self.folder / "server.log", port=free_port()) as server:
            self.started = ready(server, started)
            return work(server)

    def filled(self, fill, what, session, count):
        stores = list((self.folder / "home").rglob("*.db"))
        if len(stores) != 1:
            fail(f"one store was expected, not {stores}")
        subprocess.run([str(fill), str(stores[0]), what, session, str(count)], check=True)

    def command(self, *words):
        started = time.perf_counter()
        subprocess.run([self.binary, *words], cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - started
