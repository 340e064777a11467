#!/usr/bin/env python3
"""Drives OpenCode's terminal interface, attached to `BIN serve`, in tmux: what a person does, and what they then see.

Each step types, waits until its words are on the screen, and keeps the screen as text. The words are looked for behind
the last thing that was typed, so that an older answer does not count.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from world import PASSWORD, Model, Server, environment, make_project, remove

WIDTH, HEIGHT = 110, 44
WAIT = 45
BUSY = "esc interrupt"


class Screen:
    """A program in a tmux of its own."""

    def __init__(self, command, folder, env):
        self.socket = f"outrigger-{os.getpid()}"
        self.saved = []
        settings = [word for name, value in env.items() for word in ("-e", f"{name}={value}")]
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "s", "-x", str(WIDTH), "-y", str(HEIGHT), "-c", str(folder), *settings, *command, env=env)

    def tmux(self, *words, env=None):
        return subprocess.run(["tmux", "-L", self.socket, *words], check=True, capture_output=True, text=True, env=env).stdout

    def text(self):
        return "\n".join(line.rstrip() for line in self.tmux("capture-pane", "-p", "-t", "s").splitlines())

    def keys(self, *names):
        for name in names:
            self.tmux("send-keys", "-t", "s", name)
            time.sleep(0.4)

    def type(self, text):
        self.tmux("send-keys", "-t", "s", "-l", text)
        time.sleep(0.6)

    def wait(self, *words, since=None, gone=()):
        """Until all `words` are on the screen, behind the last `since`, and none of `gone`."""
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline:
            screen = self.text()
            part = screen[screen.rfind(since):] if since and since in screen else ("" if since else screen)
            if all(word in part for word in words) and not any(word in screen for word in gone):
                return screen
            time.sleep(0.15)
        raise Missing(f"not on the screen after {WAIT} s: {[word for word in words if word not in part]}, or still there: {[word for word in gone if word in screen]}", screen)

    def keep(self, name, text):
        self.saved.append((name, text))

    def close(self):
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], check=False, capture_output=True)


class Missing(Exception):
    """A step did not show what it should; args: what, the screen."""


def prompt(screen, text, *words):
    """Sends a prompt and waits for its answer to end."""
    screen.type(text)
    screen.keys("Enter")
    return screen.wait(*words, since=f"┃  {text}", gone=(BUSY,))


def start(s):
    s.keep("start", s.wait("Ask anything", "Build · M1 Mock", "project:master"))


def answer(s):
    s.keep("prompt-and-tool", prompt(s, "read the file", "Let me look.", "→ Read hello.txt", "The file says hi there.", "▣  Build · M1"))


def edit(s):
    s.keep("edit", prompt(s, "edit the file", "← Edit hello.txt", "1 - hi there", "1 + bye there", "All done."))


def permission(s):
    for keys, words in ((("Enter",), ("$ date", "All done.")), (("Right", "Right", "Enter"), ("$ date",))):
        s.type("ask first")
        s.keys("Enter")
        asked = s.wait("Permission required", "date +%Y", "Allow once", "Reject", since="┃  ask first")
        s.keys(*keys)
        s.wait(*words, since="┃  ask first", gone=(BUSY, "Permission required"))
    s.keep("permission", asked)


def question(s):
    s.type("ask me")
    s.keys("Enter")
    s.keep("question", s.wait("Which one?", "1. Red", "2. Blue", since="┃  ask me"))
    s.keys("Down", "Enter")
    s.keep("question-answered", s.wait("# Questions", "Blue", "All done.", since="┃  ask me", gone=(BUSY,)))


def todo(s):
    s.keep("todos", prompt(s, "plan it", "# Todos", "[•] one", "All done."))


def delegate(s):
    s.keep("subagent", prompt(s, "delegate it", "General Task", "sub job", "All done."))
    s.keys("C-x", "Down")
    s.keep("subagent-session", s.wait("SUBTASK: say done", "The sub job is done."))
    s.keys("Up")
    s.wait("delegate it", "General Task")


def sessions(s):
    s.keys("C-x", "l")
    s.keep("sessions", s.wait("Sessions", "Search", "Today", "A title"))
    s.keys("Escape")
    s.wait(gone=("Search",))


def model(s):
    s.keys("C-x", "m")
    s.keep("models", s.wait("Select model", "M1", "M2"))
    s.type("M2")
    s.keys("Enter")
    s.wait("Build · M2 Mock", gone=("Select model",))
    s.keep("model-switched", prompt(s, "think", "Answer.", "▣  Build · M2"))


def agent(s):
    s.keys("Tab")
    s.wait("Plan · M")
    s.keep("agent-switched", prompt(s, "say hi", "All done.", "▣  Plan · M"))
    s.keys("C-x", "a")
    s.keep("agents", s.wait("Select agent", "build", "plan"))
    s.type("build")
    s.keys("Enter")
    s.wait("Build · M", gone=("Select agent",))


def abort(s):
    s.type("talk slowly")
    s.keys("Enter")
    s.wait("one two", BUSY, since="┃  talk slowly")
    s.keys("Escape", "Escape")
    s.keep("abort", s.wait("interrupted", since="┃  talk slowly", gone=(BUSY,)))


def shell(s):
    s.type("!echo shell-words")
    s.keys("Enter")
    s.keep("shell", s.wait("$ echo shell-words", "┃  shell-words", gone=(BUSY,)))


def undo(s):
    prompt(s, "say more", "All done.")
    s.type("/undo")
    s.keys("Enter")
    s.keep("undo", s.wait("message reverted"))
    # The sent text is back in the field: clear it.
    s.keys("C-c")
    s.type("/redo")
    s.keys("Enter")
    s.wait("┃  say more", gone=("message reverted",))


def command(s):
    s.type("/own")
    s.keep("commands", s.wait("/own", "a command of the project"))
    s.keys("Enter")
    s.type("now")
    s.keys("Enter")
    s.wait("say hi now", "All done.", gone=(BUSY,))


def compact(s):
    s.type("/compact")
    s.keys("Enter")
    s.keep("compact", s.wait("Compaction", gone=(BUSY,)))


def second_session(s):
    s.type("/new")
    s.keys("Enter")
    s.wait("Ask anything")
    prompt(s, "read the file", "The file says")
    s.keys("C-x", "l")
    both = s.wait("Sessions", "A title")
    if both.count("A title") < 2:
        raise Missing("the list has not both sessions", both)
    s.keys("Down", "Enter")
    s.keep("other-session", s.wait("one two", "All done.", "Compaction", "A title", gone=("Sessions",)))


STEPS = [start, answer, edit, permission, question, todo, delegate, sessions, model, agent, abort, shell, undo, command, compact, second_session]


def write(folder, saved, project):
    """Screens as text; what differs from run to run is made the same, with every column where it was."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("[0-9]*.txt"):
        old.unlink()
    for number, (name, text) in enumerate(saved, 1):
        # A duration, which a dialog may cut off: as wide as it was if something follows it.
        text = re.sub(r"(· |: |↳ )\d[\d.]*m?s? *$", r"\1--s", text, flags=re.MULTILINE)
        text = re.sub(r"(· |: |↳ )(\d[\d.]*m?s? *)", lambda found: found.group(1) + "--s".ljust(len(found.group(2))), text)
        # The model's output before it was interrupted.
        text = re.sub(r"^( +one two)( \w+)+$", r"\1", text, flags=re.MULTILINE)
        text = re.sub(r"\d+:\d\d [AP]M", lambda found: "--:-- --".rjust(len(found.group())), text)
        text = re.sub(re.escape(str(project)) + r" *", lambda found: "~/project".ljust(len(found.group())), text)
        text = re.sub(r"Ask anything… \".*\"", "Ask anything…", text)
        text = "\n".join("" if "● Tip" in line else line.rstrip() for line in text.splitlines()).strip("\n")
        (folder / f"{number:02}-{name}.txt").write_text(text + "\n")


def drive(screen, options):
    for step in STEPS:
        if options.only and step.__name__ not in options.only.split(","):
            continue
        try:
            step(screen)
        except Missing as missing:
            print(f"{step.__name__:16} FAILED: {missing.args[0]}\n{missing.args[1]}", flush=True)
            return 1
        print(f"{step.__name__:16} ok", flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="the agent binary, called as BIN serve --port 0")
    parser.add_argument("--reference", required=True, help="OpenCode binary, called as REFERENCE attach URL")
    parser.add_argument("--bun", help="Bun for our plugin processes (OUTRIGGER_BUN)")
    parser.add_argument("--save", metavar="FOLDER", help="writes the screens there")
    parser.add_argument("--only", help="names of steps, comma separated")
    parser.add_argument("--log", metavar="FILE", help="writes what the interface asks for there (proxy.mjs)")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tui-")).resolve()
    screen = proxy = None
    try:
        with Model(folder) as model_server:
            project = make_project(folder, model_server.url)
            # The home of both is above the project, so that the screens show `~/project`.
            with Server(os.path.abspath(options.bin), project, environment(folder, project, options.bun), folder / "server.log") as server:
                url = server.url
                if options.log:
                    proxy = subprocess.Popen(["node", str(Path(__file__).parent / "proxy.mjs"), url, options.log], stdout=subprocess.PIPE, text=True)
                    url = f"http://127.0.0.1:{int(proxy.stdout.readline().split()[-1])}"
                env = {**environment(folder / "client", project), "HOME": str(folder), "TERM": "xterm-256color", "OPENCODE_SERVER_PASSWORD": PASSWORD}
                screen = Screen([os.path.abspath(options.reference), "attach", url], project, env)
                code = drive(screen, options)
                if options.save and code == 0:
                    write(Path(options.save), screen.saved, project)
        if code:
            print((folder / "server.log").read_text(errors="replace")[-3000:])
        return code
    finally:
        if screen:
            screen.close()
        if proxy:
            proxy.terminate()
        remove(folder)


if __name__ == "__main__":
    sys.exit(main())
