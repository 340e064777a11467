"""A project, a scripted model and a server in front of it, for the tests of clients."""
import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "parity"))
from run import MCP_SERVER, clean_environment, git_init, home_environment  # noqa: E402

PASSWORD = "test-password"
DOT = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def rules(project):
    """The model's answers, chosen by what the user said last."""
    def call(tool, **args):
        return {"tools": [{"name": tool, "args": args}]}

    file = str(project / "hello.txt")
    done = {"text": "All done."}
    said = {
        "say hi": [done],
        "look": [done],
        "read the file": [{"text": "Let me look.", **call("read", filePath=file)}, {"text": "The file says hi there."}],
        "fail to read": [call("read", filePath=str(project / "missing.txt")), done],
        "edit the file": [call("edit", filePath=file, oldString="hi there", newString="bye there"), done],
        "write its own": [call("write", filePath=str(project / "some.own"), content="fn main\n"), done],
        "plan it": [call("todowrite", todos=[{"content": "one", "status": "in_progress", "priority": "high"}]), done],
        "SUBTASK": [{"text": "The sub job is done."}],
        "delegate it": [call("task", description="sub job", prompt="SUBTASK: say done", subagent_type="general"), done],
        "think": [{"reasoning": "Thinking hard.", "text": "Answer."}],
        "be refused": [{"status": 400, "error": "refused"}],
        "ask first": [call("bash", command="date +%Y", description="prints the year"), done],
        "run it": [call("bash", command="echo from-bash", description="prints a word"), {"text": "It ran."}],
        "ask me": [call("question", questions=[{"question": "Which one?", "header": "Pick", "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]}]), done],
        "talk slowly": [{"text": "one two three four five six seven eight nine ten " * 5, "delay": 300}],
    }
    return {"title": {"text": "A title"}, "rules": [{"match": match, "turns": turns} for match, turns in said.items()]}


LANGUAGE_SERVER = HERE.parent.parent / "crates/outrigger-lsp/tests/it/server.py"


def configuration(url):
    """The opencode.json that both programs read."""
    # One of each kind that neither program has built in; built-in ones are listed with them, once enabled.
    server = {"command": ["python3", str(LANGUAGE_SERVER), "push", "/dev/null"], "extensions": [".own"]}
    formatter = {"command": ["true", "$FILE"], "extensions": [".own"]}
    models = {name: {"name": name.upper(), "tool_call": True, "limit": {"context": 100000, "output": 4000}} for name in ("m1", "m2")}
    return {
        "$schema": "https://opencode.ai/config.json",
        "model": "mock/m1",
        "small_model": "mock/m1",
        "autoupdate": False,
        "share": "disabled",
        "enabled_providers": ["mock"],
        "permission": {"bash": {"*": "allow", "date *": "ask"}},
        "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "Mock", "options": {"baseURL": url, "apiKey": "x"}, "models": models}},
        "agent": {"own": {"description": "an agent of the project", "mode": "subagent", "prompt": "Be brief.", "tools": {"bash": False}}},
        "lsp": {"own": server},
        "formatter": {"own": formatter},
        "command": {"own": {"description": "a command of the project", "template": "say hi $ARGUMENTS"}},
    }


class Model:
    """The scripted model (model.mjs), as a context manager: `model.url`."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        command = ["node", str(HERE / "model.mjs"), str(self.folder / "rules.json"), str(self.folder / "model.jsonl")]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("mock on "):
            raise RuntimeError(f"the mock model did not start: {line!r}")
        self.url = f"http://127.0.0.1:{int(line.split()[-1])}/v1"
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def make_project(folder, url, more=None):
    """A git project with a file that was changed since its commit."""
    project = folder / "project"
    project.mkdir()
    (folder / "rules.json").write_text(json.dumps(rules(project)))
    (folder / "outside.txt").write_text("outside\n")
    (project / "hello.txt").write_text("hi there\n")
    (project / "changed.txt").write_text("before\n")
    (project / "dot.png").write_bytes(DOT)
    (project / "mcp.mjs").write_text(MCP_SERVER)
    (project / "opencode.json").write_text(json.dumps({**configuration(url), **(more or {})}, indent=1))
    git_init(project)
    (project / "changed.txt").write_text("after\n")
    return project


def environment(home, project, bun=None):
    home.mkdir(parents=True, exist_ok=True)
    more = {"OUTRIGGER_BUN": bun} if bun else {}
    return {**clean_environment(), **home_environment(home), "PWD": str(project), "OPENCODE_SERVER_PASSWORD": PASSWORD, **more}


AUTHORIZATION = "Basic " + base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()


class Server:
    """`BIN serve`, as a context manager: `server.url`, `server.pid`. With a port of its own it is not waited for."""

    def __init__(self, binary, project, env, log, limit=60, port=0, more=()):
        self.binary, self.project, self.env, self.log, self.limit, self.port, self.more = binary, project, env, log, limit, port, more

    def __enter__(self):
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([self.binary, "serve", "--port", str(self.port), *self.more], cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        self.pid = self.process.pid
        if self.port:
            self.url = f"http://127.0.0.1:{self.port}"
            return self
        deadline = time.monotonic() + self.limit
        while time.monotonic() < deadline:
            found = re.search(r"listening on (http://\S+)", self.log.read_text(errors="replace"))
            if found:
                self.url = found.group(1)
                return self
            self.check()
            time.sleep(0.02)
        self.fail()

    def check(self):
        """Raises when the server has ended."""
        if self.process.poll() is not None:
            self.fail()

    def fail(self):
        self.__exit__()
        raise RuntimeError(f"{self.binary} serve did not start:\n{self.log.read_text(errors='replace')[-3000:]}")

    def __exit__(self, *_):
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                break
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                continue
        self.process.wait()


def remove(folder):
    shutil.rmtree(folder, ignore_errors=True)
