#!/usr/bin/env python3
"""What one turn with one tool call costs, cold: OpenCode and ours, one after the other in the same rounds.

Each run has a fresh project and a fresh home; the model is the scripted one of tests/parity. The home is a copy of one
in which each program ran once, not counted: OpenCode installs packages over the network on its first start, which
would be measured otherwise (--home empty measures that). Each round runs both programs, with and without a plugin, once
for wall and CPU time and once for memory, and starts with the other program than the round before. Every run is
checked: exit code, answer, tool result, mark of the plugin.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "parity"))
from figures import heading, row  # noqa: E402
from mock import Mock  # noqa: E402
from run import clean_environment, configuration, git_init, home_environment  # noqa: E402

PLUGIN = {False: "no plugin", True: "one JS plugin"}
MARK = "[bench plugin]"
# (with a plugin, figure): required factor below OpenCode.
REQUIRED = {(False, "wall"): 40, (False, "cpu"): 60, (False, "rss"): 20, (True, "wall"): 16, (True, "rss"): 5}
FIGURES = {"wall": ("wall time", "seconds"), "cpu": ("CPU time", "seconds"), "rss": ("peak memory (RSS)", "bytes"), "pss": ("peak memory (PSS)", "bytes")}


def check(folder, log, result, plugin):
    """A run that did not do its work has no figures."""
    output = (folder / "output").read_text(errors="replace")
    requests = [json.loads(line)["body"] for line in log.read_text().splitlines()] if log.exists() else []
    answers = [m["content"] for r in requests for m in r["messages"] if m["role"] == "tool"]
    text = json.dumps(answers)
    faults = []
    if result["rc"] != 0:
        faults.append(f"exit code {result['rc']}")
    if "All done." not in output:
        faults.append("the answer was not printed")
    if "hi there" not in text:
        faults.append("the tool's result did not reach the model")
    if (MARK in text) != plugin:
        faults.append("the plugin did not run" if plugin else "a plugin ran")
    if faults:
        sys.exit(f"bench: {', '.join(faults)}\n{output[-3000:]}")


def turn(binary, plugin, memory, options, prepared=None, keep=None):
    """One measured run. prepared: a home to start from; keep: a folder that is to hold the home afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="bench-")).resolve()
    try:
        project, log, script = folder / "project", folder / "llm.jsonl", folder / "script.json"
        project.mkdir()
        home = folder / "home"
        if prepared:
            shutil.copytree(prepared, home, symlinks=True)
        else:
            home.mkdir()
        (project / "hello.txt").write_text("hi there\n")
        call = {"name": "read", "args": {"filePath": str(project / "hello.txt")}}
        script.write_text(json.dumps({"turns": [{"text": "Let me look.", "tools": [call]}, {"text": "All done."}]}))
        with Mock(script, log) as mock:
            plugins = [f"file://{HERE / 'plugin.js'}"] if plugin else []
            (project / "opencode.json").write_text(json.dumps(configuration(mock.url, plugins)))
            git_init(project)
            env = {**clean_environment(), **home_environment(home), "PWD": str(project)}
            if options.bun:
                env["OUTRIGGER_BUN"] = options.bun
            flags = ["--memory"] if memory else []
            command = [sys.executable, str(HERE / "measure.py"), *flags, "--output", str(folder / "output"), "--", binary, "run", "read hello.txt"]
            done = subprocess.run(command, cwd=project, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"bench: {done.stderr}")
        result = json.loads(done.stdout)
        check(folder, log, result, plugin)
        if keep:
            shutil.move(home, keep)
        return result
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def collect(options, programs, homes):
    """{(program, with plugin, figure): [value of each round]}"""
    table = {}
    for round_number in range(options.runs):
        order = list(programs.items())
        if round_number % 2:
            order.reverse()
        for plugin in (False, True):
            for name, binary in order:
                for memory, figures in ((False, ("wall", "cpu", "left")), (True, ("rss", "pss", "processes"))):
                    result = turn(binary, plugin, memory, options, homes.get(name))
                    for figure in figures:
                        table.setdefault((name, plugin, figure), []).append(result[figure])
        print(f"round {round_number + 1} of {options.runs} done", file=sys.stderr, flush=True)
    return table


def report(options, table):
    """Prints the table; returns the requirements that were missed."""
    missed = []
    print(f"one turn with one tool call, cold start, fresh {options.home} home, median (least-most) of {options.runs} runs")
    heading()
    for plugin in (False, True):
        for figure, (label, unit) in FIGURES.items():
            theirs, ours = table[("reference", plugin, figure)], table[("ours", plugin, figure)]
            missed += row(f"{PLUGIN[plugin]}, {label}", unit, theirs, ours, REQUIRED.get((plugin, figure)))
        for figure, label in (("processes", "processes at most"), ("left", "alive after it")):
            theirs, ours = (max(table[(name, plugin, figure)]) for name in ("reference", "ours"))
            print(f"{f'{PLUGIN[plugin]}, {label}':32} {theirs:<26} {ours}")
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True, help="our binary")
    parser.add_argument("--reference", required=True, help="OpenCode binary")
    parser.add_argument("--runs", type=int, default=5, help="rounds (default 5)")
    parser.add_argument("--home", choices=("prepared", "empty"), default="prepared", help="prepared (default): a copy of a home in which the program ran once; empty: its very first start")
    parser.add_argument("--bun", help="Bun for our plugin processes (OUTRIGGER_BUN)")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a required ratio is missed")
    parser.add_argument("--json", metavar="FILE", help="writes all values there")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs: at least 1")
    programs = {"reference": os.path.abspath(options.reference), "ours": os.path.abspath(options.ours)}
    for binary in programs.values():
        if not os.access(binary, os.X_OK):
            parser.error(f"{binary}: no such program")
    homes = {}
    with tempfile.TemporaryDirectory(prefix="bench-home-") as kept:
        if options.home == "prepared":
            for name, binary in programs.items():
                homes[name] = Path(kept) / name
                turn(binary, True, False, options, keep=homes[name])
        table = collect(options, programs, homes)
    missed = report(options, table)
    if options.json:
        with open(options.json, "w") as file:
            json.dump([{"program": p, "plugin": with_plugin, "figure": f, "values": v} for (p, with_plugin, f), v in table.items()], file, indent=1)
    for line in missed:
        print(f"bench: {line}", file=sys.stderr)
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
