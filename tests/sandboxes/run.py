#!/usr/bin/env python3
"""Tries the same shell commands in the sandbox of each program, as each ships, and prints a table (docs/sandboxes.md).

Every attempt has a fresh home with a project in it and is judged by its effect (attempts.py). Before anything is
compared, all attempts run without a sandbox, where each must succeed: one that cannot would count as refused.
"""
import argparse
import ctypes
import http.server
import json
import os
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from attempts import DAEMON, GROUPS, KEY, MARK

SECRETS = [
    ".ssh/id_ed25519", ".aws/credentials", ".npmrc", ".netrc", ".config/gh/hosts.yml", ".gnupg/private-keys-v1.d/a.key",
    ".mozilla/firefox/x.default/cookies.sqlite", ".bash_history", ".local/share/opencode/auth.json",
]
# What a command may create under Outrigger because it has no effect: settings created while commands run need
# approval with `outrigger config allow`. Other editors' files are unknown to us.
WAITS = {"a plugin in `.opencode/plugin`": "waits¹", "the project's `.mcp.json`": "waits¹"}
NOT_KEPT = {"`.vscode/tasks.json`"}

# As Claude Code starts it by default: the working directory and a temporary folder, which it creates, are writable;
# no host is reachable.
RUNTIME_TEMPORARY = Path("/tmp/claude")
RUNTIME_SETTINGS = {
    "network": {"allowedDomains": [], "deniedDomains": []},
    "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []},
}


KERNEL = ctypes.CDLL(None)
ADD_KEY, KEYCTL, REVOKE, USER_KEYRING = 248, 250, 3, -4  # x86_64


class Service(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """A service of the user's that answers with a secret."""
    daemon_threads = True

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # noqa: N802
            self.send_response(200)
            self.end_headers()
            self.wfile.write(MARK.encode())

        def address_string(self):
            return "-"

        def log_message(self, *_):
            pass


class UnixService(Service):
    address_family = socket.AF_UNIX

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "x", 0


class World:
    """A home with secrets and a project, a process and two services outside of the sandbox."""

    def __init__(self, base):
        self.home = Path(tempfile.mkdtemp(prefix="w-", dir=base)).resolve()
        for name in SECRETS:
            file = self.home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{MARK}\n")
        (self.home / ".bashrc").write_text("# mine\n")
        for folder in (".config/opencode", ".claude", ".codex", ".local/bin", "other", ".npm/_cacache"):
            (self.home / folder).mkdir(parents=True, exist_ok=True)
        self.project = self.home / "project"
        self.project.mkdir()
        (self.project / "tracked").write_text("x\n")
        (self.project / "opencode.json").write_text("{}\n")
        git = ["git", "-C", str(self.project), "-c", "user.name=a", "-c", "user.email=a@b"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
            subprocess.run([*git, *words], check=True, env={**os.environ, "HOME": str(self.home)})
        self.outside = subprocess.Popen(["sleep", "600"], env={"SECRET": MARK, "PATH": os.environ["PATH"]})
        self.tcp = Service(("127.0.0.1", 0), Service.Answer)
        self.unix = UnixService(str(self.home / ".service.sock"), Service.Answer)
        for server in (self.tcp, self.unix):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        self.key = KERNEL.syscall(ADD_KEY, b"user", KEY.encode(), MARK.encode(), len(MARK), USER_KEYRING)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            own = free.getsockname()[1]
        self.env = {
            "HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "SHELL": "/bin/bash", "TERM": "dumb",
            "OUTSIDE": str(self.outside.pid), "PORT": str(self.tcp.server_port), "OWN_PORT": str(own),
        }

    def close(self):
        for server in (self.tcp, self.unix):
            server.shutdown()
            server.server_close()
        KERNEL.syscall(KEYCTL, REVOKE, self.key)
        self.outside.kill()
        self.outside.wait()
        for pid in daemons():
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.home, ignore_errors=True)

    def prelude(self):
        """What the attempts are told by variables: not every sandbox passes variables of ours on."""
        return "".join(f"export {name}={self.env[name]}; " for name in ("HOME", "OUTSIDE", "PORT", "OWN_PORT"))

    def happened(self, attempt, done):
        if attempt.reads:
            return MARK in done.stdout
        if attempt.writes:
            file = self.home / attempt.writes
            return file.is_file() and MARK in file.read_text(errors="replace")
        if attempt.works:
            return done.returncode == 0
        time.sleep(0.3)
        if attempt.feels == "left":
            return bool(daemons())
        stat = Path(f"/proc/{self.outside.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        return stat in {"stopped": "T", "ended": "ZX"}[attempt.feels]


def daemons():
    """The processes that the attempt with a daemon has left."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", DAEMON.encode()]:
            found.append(int(folder.name))
    return found


def programs(options):
    """{name: (version, the command line that runs a shell command in the program's sandbox)}"""
    modules = Path(options.modules)

    def version(name):
        return json.loads((modules / name / "package.json").read_text())["version"]

    def runtime(world, command):
        settings = world.home / ".srt-settings.json"
        settings.write_text(json.dumps(RUNTIME_SETTINGS))
        RUNTIME_TEMPORARY.mkdir(exist_ok=True)
        return [str(modules / ".bin/srt"), "--settings", str(settings), "-c", command]

    def codex(_, command):
        return [str(modules / ".bin/codex"), "sandbox", "-c", 'sandbox_mode="workspace-write"', "--", "bash", "-c", command]

    return {
        "Outrigger": ("", lambda _, command: [options.bin, "sandbox", "--", "bash", "-c", command]),
        "Codex": (version("@openai/codex"), codex),
        "Claude Code's sandbox-runtime": (version("@anthropic-ai/sandbox-runtime"), runtime),
        "no sandbox (OpenCode)": ("", lambda _, command: ["bash", "-c", command]),
    }


def attempt(base, command_line, attempt_):
    world = World(base)
    try:
        words = command_line(world, world.prelude() + attempt_.command)
        try:
            done = subprocess.run(words, cwd=world.project, env=world.env, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, errors="replace", timeout=60, check=False)
        except subprocess.TimeoutExpired as late:
            done = subprocess.CompletedProcess(words, -1, (late.stdout or b"").decode(errors="replace"), "timed out")
        return world.happened(attempt_, done), done
    finally:
        world.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--modules", required=True)
    parser.add_argument("--only", help="programs, comma-separated: the first word of a name")
    parser.add_argument("-v", action="store_true", help="what each attempt printed")
    options = parser.parse_args()
    chosen = programs(options)
    if options.only:
        chosen = {name: it for name, it in chosen.items() if name.split()[0] in options.only.split(",")}
    # Codex accepts no home below the temporary folder.
    base = Path.home() / ".cache" / "outrigger-sandboxes"
    base.mkdir(parents=True, exist_ok=True)
    failed = []
    for name, (version, _) in chosen.items():
        print(f"- {name} {version}".rstrip())
    for group, attempts in GROUPS.items():
        works = group == "Ordinary work"
        print(f"\n## {group}\n\n| {'' if works else 'Attempt'} | " + " | ".join(chosen) + " |\n|---|" + "---|" * len(chosen))
        for one in attempts:
            cells = []
            for name, (_, line) in chosen.items():
                happened, done = attempt(base, line, one)
                if name == "Outrigger" and happened and one.what in WAITS:
                    cells.append(WAITS[one.what])
                    continue
                cells.append(("works" if happened else "**fails**") if works else ("**done**" if happened else "refused"))
                if options.v:
                    print(f"[{name}] {one.command}\n  rc {done.returncode} {done.stdout[-300:]!r} {done.stderr[-300:]!r}", file=sys.stderr)
                if name == "Outrigger" and happened != works and one.what not in NOT_KEPT:
                    failed.append(one.what)
                if name.startswith("no sandbox") and not happened:
                    print(f"sandboxes: `{one.what}` does nothing without a sandbox either, so that it shows nothing", file=sys.stderr)
            print(f"| {one.what} | " + " | ".join(cells) + " |", flush=True)
    if failed:
        sys.exit("sandboxes: Outrigger did not keep: " + "; ".join(failed))


if __name__ == "__main__":
    main()
