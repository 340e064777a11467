#!/usr/bin/env python3
"""Runs the calls of sdk.mjs against `BIN serve` and writes what came back."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from world import AUTHORIZATION, HERE, Model, Server, environment, make_project, remove

TOOLS = HERE.parent.parent / ".work" / "tools"


def once(options, sdk, out):
    """One run against a fresh server; writes `out`."""
    folder = Path(tempfile.mkdtemp(prefix="clients-")).resolve()
    try:
        with Model(folder) as model:
            project = make_project(folder, model.url)
            env = environment(folder / "home", project, options.bun)
            with Server(os.path.abspath(options.bin), project, env, folder / "server.log") as server:
                more = {"CLIENT_AUTHORIZATION": AUTHORIZATION, **({"CLIENT_VERBOSE": "1"} if options.verbose else {})}
                done = subprocess.run(["node", str(HERE / "sdk.mjs"), str(sdk), server.url, str(project), str(out)], env={**env, **more}, stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            sys.exit(f"clients: sdk.mjs failed\n{(folder / 'server.log').read_text(errors='replace')[-3000:]}")
    finally:
        if options.keep:
            print(folder)
        else:
            remove(folder)


def common(one, other):
    """What both runs have: OpenCode does not do everything each time."""
    calls = {name: {**call, "shape": both(call["shape"], other["calls"][name]["shape"])} for name, call in one["calls"].items()}
    events = {kind: both(shape, other["events"][kind]) for kind, shape in one["events"].items() if kind in other["events"]}
    return {**one, "calls": calls, "events": events}


def both(one, other):
    return [line for line in one if line in set(other)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="the agent binary, called as BIN serve --port 0")
    parser.add_argument("--out", required=True, help="file for the result")
    parser.add_argument("--tools", default=str(TOOLS), help="folder with node_modules as `cargo xtask setup` makes it")
    parser.add_argument("--bun", help="Bun for our plugin processes (OUTRIGGER_BUN)")
    parser.add_argument("--runs", type=int, default=1, help="with several, what all of them have is kept (default 1)")
    parser.add_argument("--keep", action="store_true", help="leaves the folder with the server's log behind")
    parser.add_argument("-v", "--verbose", action="store_true", help="prints each call as it ends")
    options = parser.parse_args()
    sdk = Path(options.tools).resolve() / "node_modules/@opencode-ai/sdk"
    if not sdk.is_dir():
        parser.error(f"{sdk}: run `cargo xtask setup`")
    out = Path(options.out).resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    result = None
    for _ in range(options.runs):
        once(options, sdk, out)
        this = json.loads(out.read_text())
        result = common(result, this) if result else this
    out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
