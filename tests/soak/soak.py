#!/usr/bin/env python3
"""Sessions by the dozen on one server, with the misbehaving plugin at random faults beside a good one (issue 4).

The server works in some folders, each with both plugins; so many sessions run turns (two tool calls each) at once, and a
session that has had its turns is followed by a new one. Where the misbehaving plugin has been put off for good, the
folder's instance is disposed of, and the next request starts it anew. One client reads all events, one reads none.

Every few seconds are taken, of the server's own process: memory (RssAnon), open descriptors, threads; and the processes
of the whole run. It has passed when

  finished   every turn that was begun ended within its limit, whatever the plugins did: with the model's last word, or aborted
               where a plugin's tool held it up for 25 s (it has ten minutes)
  memory     the median of the last quarter after the warm-up is at most 10 % and 8 MiB over that of the first quarter
  files      the same for descriptors, with 16 of them instead of 8 MiB
  threads    the same, with 8
  faults     some were done, where some were wanted: without them the rest says nothing
  orphans    no process of the run was ever alive in two looks outside the server's tree, or at all once it had ended
  store      the log of all sessions verifies afterwards

The warm-up is five minutes, a third of a shorter run: caches and the queue of the client that does not read fill up. The good plugin's part of each answer's prompt is not looked
at here; the crate's tests do that.
"""
import argparse
import json
import os
import platform
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
MISBEHAVING = REPOSITORY / "crates/outrigger-test-support/src/misbehaving.mjs"
EVERY = 5.0
TURN_LIMIT = 180.0
# A longer turn is aborted, as a user would: a hanging plugin tool has ten minutes.
ABORT_TIMEOUT = 25.0
# Faults that are expensive for the machine are rarer; the others have weight 1.
WEIGHTS = {name: 1.0 for name in """never second reject_late throw_text throw_error throw_undefined throw_cycle unhandled throw_in_timer
    exit0 exit1 kill abort exit_in_timer forks_and_exits protocol_lines answers_another answers_early answers_twice answers_again answers_for_another not_json not_utf8 too_large
    closes half_a_frame hello_again cycle bigint nan surrogate deletes types nulls input later freezes getter deep files""".split()}
WEIGHTS |= {"spin": 0.3, "spin_in_timer": 0.3, "stdout": 0.1, "stderr": 0.1, "huge": 0.1, "large": 0.1, "requests": 0.3, "allocates": 0.1, "allocates_objects": 0.1, "reads_nothing": 0.1}

PAGE = """# The soak

The last output of `cargo xtask soak`: what it does and by which rules it judges is in [tests/soak](../tests/soak/README.md).
`cargo xtask soak --write docs/soak.md` runs it again and writes this page.

```text
{}
```
"""


class Soak:
    def __init__(self, options):
        self.options = options
        self.root = Path(tempfile.mkdtemp(prefix="outrigger-soak-")).resolve()
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.count = Counter()
        self.slowest = 0.0
        self.failures = []
        self.samples = []
        self.orphans = {}
        self.seen_outside = set()
        self.busy = {}
        chosen = options.faults.split(",") if options.faults else WEIGHTS
        self.faults = {name: WEIGHTS[name] for name in chosen}

    def fail(self, text):
        with self.lock:
            self.failures.append(text)

    # Folders, model, server.

    def prepare(self, model):
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "Mock", "options": {"baseURL": model, "apiKey": "x"},
                    "models": {"m1": {"name": "M1", "tool_call": True, "limit": {"context": 1_000_000, "output": 4000}}}}
        plugins = self.root / "plugins"
        plugins.mkdir()
        for source in (HERE / "random.mjs", HERE / "good.mjs", MISBEHAVING):
            shutil.copy(source, plugins)
        folders = []
        for number in range(self.options.folders):
            folder = self.root / f"project{number}"
            folder.mkdir()
            (folder / "hello.txt").write_text("hi there\n")
            (folder / "opencode.json").write_text(json.dumps({
                "model": "mock/m1", "small_model": "mock/m1", "provider": {"mock": provider}, "snapshot": False,
                "plugin": [str(plugins / "good.mjs"), [str(plugins / "random.mjs"), {"chance": self.options.chance, "faults": self.faults}]],
            }))
            (folder / "outrigger.toml").write_text("[deadlines]\nnormal_ms = 1500\n[limits]\nplugin_memory_mb = 768\nplugin_processes = 32\n")
            folders.append(folder)
            self.busy[str(folder)] = 0
        return folders

    def environment(self):
        home = self.root / "home"
        (self.root / "tmp").mkdir()
        home.mkdir()
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "TMPDIR": str(self.root / "tmp"), "OUTRIGGER_JS_INSTALL": "never"}
        for name, folder in (("CONFIG", ".config"), ("DATA", ".local/share"), ("CACHE", ".cache"), ("STATE", ".local/state")):
            env[f"XDG_{name}_HOME"] = str(home / folder)
        if self.options.bun:
            env["OUTRIGGER_BUN"] = self.options.bun
        if self.options.log:
            env["OUTRIGGER_LOG"] = self.options.log
        return env

    def start(self, env):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.log = self.root / "server.log"
        for folder in sorted(self.root.glob("project*")):
            subprocess.run([self.options.ours, "trust", folder], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
        with open(self.log, "wb") as log:
            self.server = subprocess.Popen([self.options.ours, "serve", "--no-auth", "--port", str(port)], cwd=self.root / "project0", env=env,
                                           stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            try:
                return self.ask("/global/health", limit=2)
            except OSError:
                if self.server.poll() is not None:
                    break
                time.sleep(0.05)
        sys.exit(f"soak: the server did not come up\n{self.log.read_text(errors='replace')[-3000:]}")

    def ask(self, path, body=None, folder=None, limit=TURN_LIMIT):
        headers = {"content-type": "application/json"}
        if folder:
            headers["x-opencode-directory"] = folder
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data=data, headers=headers), timeout=limit) as answer:
            return json.load(answer)

    # Sessions.

    def worker(self, folder, chance):
        time.sleep(chance.random() * self.options.pace)
        while not self.stop.is_set():
            with self.lock:
                waits = self.busy[folder] < 0
                if not waits:
                    self.busy[folder] += 1
            if waits:
                # The folder's instance is being disposed of.
                time.sleep(0.2)
                continue
            try:
                self.session(folder, chance)
            finally:
                with self.lock:
                    self.busy[folder] -= 1

    def session(self, folder, chance):
        try:
            session = self.ask("/session", {}, folder)["id"]
        except (OSError, ValueError) as error:
            return self.fail(f"no session: {error}")
        with self.lock:
            self.count["sessions begun"] += 1
        for _ in range(self.options.turns):
            if self.stop.is_set():
                break
            if not self.turn(folder, session):
                return
            self.stop.wait(self.options.pace * (0.5 + chance.random()))
        with self.lock:
            self.count["sessions finished"] += 1

    def turn(self, folder, session):
        began = time.monotonic()
        with self.lock:
            self.count["turns begun"] += 1
        aborted = []
        timer = threading.Timer(ABORT_TIMEOUT, self.abort, (folder, session, aborted))
        timer.daemon = True
        timer.start()
        try:
            answer = self.ask(f"/session/{session}/message", {"parts": [{"type": "text", "text": "go"}]}, folder)
        except (OSError, ValueError) as error:
            detail = error.read()[:300] if isinstance(error, urllib.error.HTTPError) else ""
            self.fail(f"turn in {session}: {error} {detail}")
            return False
        finally:
            timer.cancel()
        took = time.monotonic() - began
        said = "".join(part.get("text", "") for part in answer["parts"] if part["type"] == "text")
        with self.lock:
            self.slowest = max(self.slowest, took)
            self.count["turns finished"] += 1
        if aborted:
            return True
        if "All done." not in said or not answer["info"]["time"].get("completed"):
            self.fail(f"turn in {session} ended otherwise: {json.dumps(answer['info'].get('error') or answer)[:400]}")
        return True

    def abort(self, folder, session, aborted):
        """What a person does when a plugin's tool hangs: it may take ten minutes."""
        aborted.append(True)
        try:
            self.ask(f"/session/{session}/abort", {}, folder)
            with self.lock:
                self.count["turns aborted"] += 1
        except (OSError, ValueError) as error:
            self.fail(f"abort of {session}: {error}")

    # Background activity.

    def renew(self, folder):
        """Starts a folder anew whose misbehaving plugin is off for good."""
        while not self.stop.wait(3):
            try:
                plugins = self.ask("/outrigger/plugin", folder=folder, limit=30)["plugins"]
            except (OSError, ValueError) as error:
                self.fail(f"no list of plugins: {error}")
                continue
            if not any(plugin["stage"] in ("off", "failed") for plugin in plugins):
                continue
            if any(plugin["id"] == "good" and plugin["stage"] in ("off", "failed") for plugin in plugins):
                with self.lock:
                    self.count["good plugin off as well"] += 1
            self.quiet(folder)
            if self.stop.is_set():
                return
            try:
                self.ask("/instance/dispose", {}, folder=folder)
                with self.lock:
                    self.count["instances started anew"] += 1
            except (OSError, ValueError) as error:
                self.fail(f"dispose: {error}")
            with self.lock:
                self.busy[folder] += 1_000_000

    def quiet(self, folder):
        """Waits until no session runs there and lets none begin."""
        with self.lock:
            self.busy[folder] -= 1_000_000
        while not self.stop.is_set():
            with self.lock:
                if self.busy[folder] == -1_000_000:
                    return
            time.sleep(0.1)

    def listen(self, reads):
        """A client of all events; one that does not read is one that every server has to bear."""
        while not self.stop.is_set():
            try:
                with socket.create_connection(("127.0.0.1", int(self.url.rsplit(":", 1)[1])), timeout=10) as client:
                    client.sendall(b"GET /global/event HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
                    client.settimeout(1)
                    while not self.stop.is_set():
                        if not reads:
                            self.stop.wait(1)
                            continue
                        try:
                            data = client.recv(1 << 16)
                        except TimeoutError:
                            continue
                        if not data:
                            break
                        with self.lock:
                            self.count["MiB of events read"] += len(data)
            except OSError:
                self.stop.wait(1)

    # Measurements.

    def processes(self):
        """Processes of this run: those with its folder in their environment or command line, with their parents."""
        mark, found = str(self.root).encode(), {}
        mine = {os.getpid(), self.model.pid}
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) in mine:
                continue
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
                with open(f"/proc/{entry}/environ", "rb") as env, open(f"/proc/{entry}/cmdline", "rb") as line:
                    command = line.read()
                    marked = mark in env.read() or mark in command
            except OSError:
                continue
            if marked and state not in (b"Z", b"X"):
                found[int(entry)] = (int(parent), command.replace(b"\0", b" ").decode(errors="replace")[:120])
        return found

    def look(self, began):
        found = self.processes()
        root = self.server.pid
        def inside(pid):
            for _ in range(64):
                if pid == root:
                    return True
                if pid not in found:
                    return False
                pid = found[pid][0]
            return False
        outside = {(pid, what) for pid, (_, what) in found.items() if not inside(pid)}
        for pid, what in outside & self.seen_outside:
            self.orphans[pid] = what
        self.seen_outside = outside
        status = Path(f"/proc/{root}/status").read_text()
        field = lambda name: int(status.split(f"{name}:")[1].split()[0])
        self.samples.append({
            "t": time.monotonic() - began, "memory": field("RssAnon") * 1024, "files": len(os.listdir(f"/proc/{root}/fd")),
            "threads": field("Threads"), "processes": len(found),
        })

    def run(self):
        self.model = subprocess.Popen(["node", str(HERE / "model.mjs")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        try:
            port = int(self.model.stdout.readline().split()[-1])
            folders = [str(folder) for folder in self.prepare(f"http://127.0.0.1:{port}/v1")]
            env = self.environment()
            self.start(env)
            self.soak(folders)
            self.end(env)
        finally:
            self.stop.set()
            self.model.send_signal(signal.SIGTERM)
            if getattr(self, "server", None) and self.server.poll() is None:
                self.server.kill()
        return self.report()

    def soak(self, folders):
        began = time.monotonic()
        threads = [threading.Thread(target=self.worker, args=(folders[n % len(folders)], random.Random(n)), daemon=True) for n in range(self.options.sessions)]
        threads += [threading.Thread(target=self.renew, args=(folder,), daemon=True) for folder in folders]
        threads += [threading.Thread(target=self.listen, args=(reads,), daemon=True) for reads in (True, False)]
        for thread in threads:
            thread.start()
        while time.monotonic() < began + self.options.minutes * 60:
            time.sleep(EVERY)
            if self.server.poll() is not None:
                self.fail(f"the server ended with {self.server.returncode}")
                break
            self.look(began)
            if len(self.samples) % 12 == 0:
                print(self.line(self.samples[-1]), file=sys.stderr, flush=True)
        self.stop.set()
        for thread in threads:
            thread.join(TURN_LIMIT)

    def end(self, env):
        self.server.send_signal(signal.SIGTERM)
        try:
            code = self.server.wait(60)
            if code not in (0, 143):
                self.fail(f"the server ended with {code}")
        except subprocess.TimeoutExpired:
            self.fail("the server did not end within 60 s of SIGTERM")
            self.server.kill()
            self.server.wait()
        limit = time.monotonic() + 10
        while (left := self.processes()) and time.monotonic() < limit:
            time.sleep(0.2)
        for pid, (_, what) in left.items():
            self.orphans[pid] = what
            os.kill(pid, signal.SIGKILL)
        done = subprocess.run([self.options.ours, "session", "verify", "--all", "--dir", str(self.root / "project0")], env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=600)
        self.verified = done.returncode == 0
        if not self.verified:
            print(done.stdout[-1500:] + done.stderr[-1500:], file=sys.stderr)

    # The verdict.

    @staticmethod
    def line(sample):
        return f"{sample['t'] / 60:6.1f} min  {sample['memory'] / 2**20:8.1f} MiB  {sample['files']:5} files  {sample['threads']:4} threads  {sample['processes']:4} processes"

    def part(self, name, begin, end):
        """The median between two parts of the time after the warm-up."""
        whole = self.options.minutes * 60
        warm = min(300, whole / 3)
        values = [sample[name] for sample in self.samples if begin <= (sample["t"] - warm) / (whole - warm) <= end]
        return statistics.median(values) if values else float("nan")

    def report(self):
        failed, said = [], []

        def say(text=""):
            said.append(text)
            print(text)

        minutes, folders = self.options.minutes, self.options.folders
        version = subprocess.run([self.options.ours, "--version"], capture_output=True, text=True, check=False).stdout.strip()
        say(f"{version}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, {time.strftime('%Y-%m-%d')}")
        say(f"soak: {minutes:g} minutes, {self.options.sessions} sessions at once in {folders} folders, a fault in {self.options.chance:.1%} of the calls\n")
        for sample in self.samples[:: max(1, len(self.samples) // 30)]:
            say(self.line(sample))
        faults = Counter()
        for log in self.root.glob("project*/faults.log"):
            faults.update(log.read_text(errors="replace").split())
        self.count["MiB of events read"] >>= 20
        say()
        for name, value in sorted(self.count.items()):
            say(f"{name:28} {value}")
        say(f"{'faults done':28} {sum(faults.values())} ({len(faults)} kinds)")
        say(f"{'slowest turn':28} {self.slowest:.1f} s\n")
        for name, unit, slack in (("memory", "MiB", 8 << 20), ("files", "", 16), ("threads", "", 8)):
            early, late = self.part(name, 0, 0.25), self.part(name, 0.75, 1.1)
            scale = 2**20 if unit else 1
            good = late <= early * 1.1 + slack
            if not good:
                failed.append(f"{name} grew")
            say(f"{'ok ' if good else 'BAD'} {name:9} first quarter {early / scale:.1f}, last quarter {late / scale:.1f} {unit}")
        complete = self.count["turns begun"] == self.count["turns finished"] > 0 and not self.failures
        for good, name, text in (
            (complete, "finished", f"{self.count['turns finished']} of {self.count['turns begun']} turns"),
            (bool(faults) or not self.options.chance, "faults", "done" if faults else "none wanted" if not self.options.chance else "none was done: do the plugins run?"),
            (not self.orphans, "orphans", "none" if not self.orphans else "; ".join(f"{pid} {what}" for pid, what in list(self.orphans.items())[:5])),
            (getattr(self, "verified", False), "store", "every session verifies" if getattr(self, "verified", False) else "does not verify"),
        ):
            if not good:
                failed.append(name)
            say(f"{'ok ' if good else 'BAD'} {name:9} {text}")
        for failure, times in Counter(self.failures).most_common(10):
            say(f"    {times} x {failure}")
        if self.options.write:
            Path(self.options.write).write_text(PAGE.format("\n".join(said)))
        if self.options.json:
            Path(self.options.json).write_text(json.dumps({"samples": self.samples, "count": self.count, "faults": faults, "failures": self.failures[:100]}, indent=1))
        if failed or self.options.keep:
            print(f"\nkept: {self.root} (server.log)", file=sys.stderr)
        else:
            shutil.rmtree(self.root, ignore_errors=True)
        return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True, help="our binary")
    parser.add_argument("--bun", help="the Bun that runs the plugins")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--sessions", type=int, default=50, help="sessions at once")
    parser.add_argument("--folders", type=int, default=5)
    parser.add_argument("--turns", type=int, default=8, help="turns of a session")
    parser.add_argument("--pace", type=float, default=10.0, help="seconds between two turns of a session, on average")
    parser.add_argument("--chance", type=float, default=0.01, help="part of the plugin's calls that do a fault")
    parser.add_argument("--faults", metavar="A,B", help="only these faults of misbehaving.mjs")
    parser.add_argument("--log", help="filter for the server's log")
    parser.add_argument("--json", metavar="FILE", help="writes all samples there")
    parser.add_argument("--write", metavar="FILE", help="writes the output there as a page")
    parser.add_argument("--keep", action="store_true", help="keeps the folder of the run")
    options = parser.parse_args()
    options.ours = os.path.abspath(options.ours)
    return Soak(options).run()


if __name__ == "__main__":
    sys.exit(main())
