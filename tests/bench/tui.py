#!/usr/bin/env python3
"""What the terminal interface costs, ours and OpenCode's: in a pty of 80x24, with the streaming model of `scale.py`.

first    seconds from the start until the first frame with something to read is written
idle     CPU milliseconds of the whole process tree over ten seconds in which nothing happens, and how often its threads woke up
stream   CPU milliseconds of the tree and bytes to the terminal for 1,000 streamed words, 5 ms apart
key      only ours: milliseconds until a key is on the screen in a session of 10,000 messages, and what memory grows by while 300
         pages are scrolled back
"""
import argparse
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "parity"))
from measure import children, read  # noqa: E402
from run import clean_environment, configuration, git_init, home_environment  # noqa: E402
from scale_world import Client, World  # noqa: E402

ESCAPES = re.compile(rb"\x1b(\[[0-?]*[ -/]*[@-~]|[\]P_^][^\x07\x1b]*(\x07|\x1b\\)|.)")
WORDS, IDLE = 1000, 10.0
MESSAGES, KEYS, PAGES = 10_000, 100, 300
PAGE_UP = b"\x1b[5~"
# Required figures: seconds, milliseconds of CPU, milliseconds.
FIRST, IDLE_CPU, KEY = 0.05, 5.0, 16.0


def tree(pid):
    found, stack = [], [pid]
    while stack:
        found.append(stack.pop())
        stack += children(found[-1])
    return found


def cost(pid):
    """CPU nanoseconds and voluntary context switches of all threads of a tree, as the kernel counts them."""
    cpu = wakes = 0
    for process in tree(pid):
        for thread in os.listdir(f"/proc/{process}/task"):
            fields = read(f"/proc/{process}/task/{thread}/schedstat").split()
            cpu += int(fields[0]) if fields else 0
            text = read(f"/proc/{process}/task/{thread}/status")
            at = text.find(b"\nvoluntary_ctxt_switches:")
            wakes += int(text[at + 26:].split(None, 1)[0]) if at >= 0 else 0
    return cpu, wakes


class Terminal:
    """A program in a pty, and all that it wrote."""

    def __init__(self, binary, project, env, *words):
        self.written = b""
        self.started = time.monotonic()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            os.chdir(project)
            os.execve(binary, [binary, *words], env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    def reads(self, seconds):
        """Takes what comes within a time; false where nothing did."""
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return False
        try:
            piece = os.read(self.fd, 65536)
        except OSError:
            sys.exit(f"bench: the program ended\n{self.text()[-2000:]}")
        self.answers(piece)
        self.written += piece
        return True

    def answers(self, piece):
        """What a terminal answers to questions that are put to it: programs wait for that before their first frame."""
        if b"\x1b[c" in piece or b"\x1b[0c" in piece:
            os.write(self.fd, b"\x1b[?62;22c")
        if b"\x1b[6n" in piece:
            os.write(self.fd, b"\x1b[1;1R")

    def text(self):
        return ESCAPES.sub(b"", self.written).decode(errors="replace")

    def until(self, wanted, limit):
        deadline = time.monotonic() + limit
        while not wanted(self.text()):
            if time.monotonic() > deadline:
                sys.exit(f"bench: it did not come\n{self.text()[-2000:]}")
            self.reads(0.5)
        return time.monotonic()

    def settles(self, quiet, limit):
        """Waits until nothing has come for a while."""
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline and self.reads(quiet):
            pass

    def ends(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def is_frame(text):
    return len(re.findall(r"[A-Za-z]{3,}", text)) >= 3


def measured(binary, url, home):
    folder = Path(tempfile.mkdtemp(prefix="bench-")).resolve()
    project = folder / "project"
    project.mkdir()
    (project / "opencode.json").write_text(json.dumps(configuration(url, [])))
    git_init(project)
    env = {**clean_environment(), **home_environment(home), "PWD": str(project), "TERM": "xterm-256color"}
    env.pop("NO_COLOR", None)
    terminal = Terminal(binary, project, env)
    try:
        result = {"first": terminal.until(is_frame, 60) - terminal.started}
        terminal.settles(4, 60)
        before, begun = cost(terminal.pid), time.monotonic()
        while time.monotonic() - begun < IDLE:
            terminal.reads(begun + IDLE - time.monotonic())
        after = cost(terminal.pid)
        # The costs of threads that end in between are lost.
        result["idle"], result["wakes"] = max(0, after[0] - before[0]) / 1e6, max(0, after[1] - before[1])
        for byte in f"stream {WORDS} 5":
            os.write(terminal.fd, byte.encode())
            terminal.reads(0.05)
        before, length = cost(terminal.pid), len(terminal.written)
        os.write(terminal.fd, b"\r")
        terminal.reads(5)
        terminal.settles(3, 60)
        result["cpu"] = (cost(terminal.pid)[0] - before[0]) / 1e6
        result["bytes"] = len(terminal.written) - length
        return result
    finally:
        terminal.ends()
        shutil.rmtree(folder, ignore_errors=True)


def resident(pid):
    """Bytes of memory of a process."""
    return int(read(f"/proc/{pid}/statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def typed(terminal, letter):
    """Seconds until a letter is on the screen."""
    before, started = len(terminal.written), time.perf_counter()
    os.write(terminal.fd, letter)
    while letter not in ESCAPES.sub(b"", terminal.written[before:]):
        terminal.reads(5)
    return time.perf_counter() - started


def long_session(binary, fill):
    """What a key costs in a long session, and what its history takes of memory."""
    with World(binary) as world:
        session = world.run(lambda server: Client(server.url).json("POST", "/session", {"title": "long"})["id"])
        world.filled(fill, "messages", session, MESSAGES)
        env = {**world.env, "TERM": "xterm-256color"}
        env.pop("NO_COLOR", None)
        terminal = Terminal(binary, world.project, env, "-s", session)
        try:
            terminal.until(is_frame, 60)
            terminal.settles(2, 60)
            times = []
            for n in range(KEYS):
                times.append(typed(terminal, b"jqxz"[n % 4 : n % 4 + 1]) * 1000)
                terminal.settles(0.05, 1)
            before = resident(terminal.pid)
            for _ in range(PAGES):
                os.write(terminal.fd, PAGE_UP)
                terminal.settles(0.03, 2)
            grown = (resident(terminal.pid) - before) / 2**20
            times.sort()
            return {"key": times[len(times) // 2], "key95": times[int(len(times) * 0.95)], "grown": grown}
        finally:
            terminal.ends()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--reference")
    parser.add_argument("--fill", help="the program that writes long histories; without it that part is left out")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json")
    parser.add_argument("--check", action="store_true", help="fails where ours misses what is required")
    options = parser.parse_args()
    programs = {"ours": options.ours}
    if options.reference:
        programs["OpenCode"] = options.reference
    model = subprocess.Popen([sys.executable, str(HERE / "scale_model.py")], stdout=subprocess.PIPE, text=True)
    url = f"http://127.0.0.1:{model.stdout.readline().split()[-1]}/v1"
    table = {}
    try:
        for name, binary in programs.items():
            home = Path(tempfile.mkdtemp(prefix="bench-home-"))
            # The first run creates the home, and is not counted.
            runs = [measured(binary, url, home) for _ in range(options.runs + 1)][1:]
            table[name] = {key: [run[key] for run in runs] for key in runs[0]}
            shutil.rmtree(home, ignore_errors=True)
    finally:
        model.kill()
    labels = {"first": "first frame (ms)", "idle": "CPU over ten idle seconds (ms)", "wakes": "wake-ups over ten idle seconds",
              "cpu": f"CPU for {WORDS} streamed words (ms)", "bytes": "bytes to the terminal for them"}
    print(f"{'median of ' + str(options.runs) + ' runs':34}" + "".join(f"{name:>14}" for name in table))
    for key, label in labels.items():
        scale = 1000 if key == "first" else 1
        print(f"{label:34}" + "".join(f"{statistics.median(run[key]) * scale:14.1f}" for run in table.values()))
    long = long_session(options.ours, options.fill) if options.fill else {}
    if long:
        print(f"a key in {MESSAGES:,} messages: p50 {long['key']:.1f} ms, p95 {long['key95']:.1f} ms; {PAGES} pages back: {long['grown']:.1f} MiB more")
    if options.json:
        Path(options.json).write_text(json.dumps({**table, "long": long}))
    ours = {key: statistics.median(values) for key, values in table["ours"].items()}
    missed = [f"first frame: {ours['first']:.3f} s, required {FIRST}"] if ours["first"] > FIRST else []
    missed += [f"idle: {ours['idle']:.1f} ms, required {IDLE_CPU}"] if ours["idle"] > IDLE_CPU else []
    missed += [f"a key: {long['key95']:.1f} ms, required {KEY}"] if long.get("key95", 0) > KEY else []
    if options.check and missed:
        sys.exit("bench: " + "; ".join(missed))


if __name__ == "__main__":
    main()
