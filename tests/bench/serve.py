#!/usr/bin/env python3
"""What a running server costs: OpenCode and ours, one after the other in the same rounds.

Each round starts each program with `serve` on a free port, in a fresh project and a copy of a home in which it ran
once, and takes

ready        seconds from the start until GET /global/health answers 200
idle         memory of the process tree two seconds later
first turn   seconds of the first prompt to its answer (with one tool call), session and all that a project needs included
second turn  the same prompt again in that session
after SDK    memory of the tree after all calls of tests/clients/sdk.mjs against a fresh server (no JS plugin anywhere)

The model is the scripted one of tests/clients. A turn without the tool's result has no figures.
"""
import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
from figures import heading, row  # noqa: E402
from measure import Sampler  # noqa: E402
from world import AUTHORIZATION, Model, Server, environment, make_project  # noqa: E402

# figure: (label, unit, required factor below OpenCode)
FIGURES = {
    "ready": ("ready to serve", "seconds", 60),
    "idle": ("memory idle (RSS)", "bytes", 15),
    "first": ("first turn", "seconds", 20),
    "second": ("second turn", "seconds", 5),
    "after": ("memory after SDK test (RSS)", "bytes", 20),
}
LIMIT = 180.0
SETTLE = 2.0


def ask(url, body=None, limit=LIMIT):
    request = urllib.request.Request(url, data=None if body is None else json.dumps(body).encode(), headers={"authorization": AUTHORIZATION, "content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=limit) as answer:
        return json.load(answer)


def ready(server, started):
    """Seconds until the server is healthy."""
    last = None
    while time.monotonic() < started + LIMIT:
        try:
            # A request that arrives while OpenCode is starting may never be answered: retry soon.
            ask(f"{server.url}/global/health", limit=0.1)
            return time.monotonic() - started
        except (urllib.error.URLError, OSError) as error:
            last = error
            server.check()
            time.sleep(0.001)
    sys.exit(f"bench: {server.binary} serve was not healthy within {LIMIT:.0f} s: {last}\n{server.log.read_text(errors='replace')[-3000:]}")


def turn(url, session):
    """Seconds of one prompt with one tool call."""
    started = time.monotonic()
    session = session or ask(f"{url}/session", {})["id"]
    answer = ask(f"{url}/session/{session}/message", {"model": {"providerID": "mock", "modelID": "m1"}, "parts": [{"type": "text", "text": "read the file"}]})
    took = time.monotonic() - started
    said = "".join(part.get("text", "") for part in answer["parts"] if part["type"] == "text")
    results = json.dumps([part for message in ask(f"{url}/session/{session}/message") for part in message["parts"] if part["type"] == "tool"])
    if said != "The file says hi there." or "hi there" not in results:
        sys.exit(f"bench: the turn did not do its work: {json.dumps(answer)[:2000]}")
    return took, session


def memory(pid):
    """Resident bytes of the tree under and with `pid`."""
    sampler = Sampler()
    sampler.add(pid)
    return sampler.rss


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def world(folder, binary, prepared, work):
    """Runs `work(server, project, env, started)` on a fresh server."""
    home = folder / "home"
    if prepared:
        shutil.copytree(prepared, home, symlinks=True)
    with Model(folder) as model:
        project = make_project(folder, model.url)
        env = environment(home, project)
        started = time.monotonic()
        with Server(binary, project, env, folder / "server.log", port=free_port()) as server:
            return work(server, project, env, started)


def turns(server, _project, _env, started):
    figures = {"ready": ready(server, started)}
    time.sleep(SETTLE)
    figures["idle"] = memory(server.pid)
    figures["first"], session = turn(server.url, None)
    figures["second"], _ = turn(server.url, session)
    return figures


def calls(sdk):
    def work(server, project, env, started):
        ready(server, started)
        command = ["node", str(HERE.parent / "clients/sdk.mjs"), str(sdk), server.url, str(project), str(project.parent / "calls.json")]
        done = subprocess.run(command, env={**env, "CLIENT_AUTHORIZATION": AUTHORIZATION}, stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            sys.exit(f"bench: sdk.mjs failed\n{server.log.read_text(errors='replace')[-3000:]}")
        time.sleep(SETTLE)
        return {"after": memory(server.pid)}
    return work


def once(binary, prepared, work, keep=None):
    folder = Path(tempfile.mkdtemp(prefix="bench-")).resolve()
    try:
        figures = world(folder, binary, prepared, work)
        if keep:
            shutil.move(folder / "home", keep)
        return figures
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True, help="our binary")
    parser.add_argument("--reference", required=True, help="OpenCode binary")
    parser.add_argument("--sdk", required=True, help="folder of the package @opencode-ai/sdk")
    parser.add_argument("--runs", type=int, default=3, help="rounds (default 3)")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a required ratio is missed")
    parser.add_argument("--json", metavar="FILE", help="writes all values there")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs: at least 1")
    programs = {"reference": os.path.abspath(options.reference), "ours": os.path.abspath(options.ours)}
    table = {(name, figure): [] for name in programs for figure in FIGURES}
    with tempfile.TemporaryDirectory(prefix="bench-home-") as kept:
        homes = {name: Path(kept) / name for name in programs}
        for name, binary in programs.items():
            once(binary, None, turns, keep=homes[name])
        for number in range(options.runs):
            order = list(programs.items())
            for work in (turns, calls(Path(options.sdk).resolve())):
                for name, binary in order if number % 2 == 0 else reversed(order):
                    for figure, value in once(binary, homes[name], work).items():
                        table[(name, figure)].append(value)
            print(f"round {number + 1} of {options.runs} done", file=sys.stderr, flush=True)
    print(f"a server, fresh project, prepared home, no JS plugin, median (least-most) of {options.runs} runs")
    heading()
    missed = []
    for figure, (label, unit, least) in FIGURES.items():
        missed += row(label, unit, table[("reference", figure)], table[("ours", figure)], least)
    if options.json:
        Path(options.json).write_text(json.dumps([{"program": p, "figure": f, "values": v} for (p, f), v in table.items()], indent=1))
    for line in missed:
        print(f"bench: {line}", file=sys.stderr)
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
