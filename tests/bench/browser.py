#!/usr/bin/env python3
"""`cargo xtask bench browser`: MiniWoB++ through our browser tools, beside those of `@playwright/mcp` and `chrome-devtools-mcp`.

Each tool is an MCP server with a headless Chromium of its own. A driver by rules (`browser_rules.py`) does what a model would, and reads
what the tools return. The page of a task says by itself what was reached. Kinds, seeds and time are bounded by options.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "parity"))
import browser_tasks  # noqa: E402, F401
import browser_tasks_pages  # noqa: E402, F401
from browser_driver import Driver, episode  # noqa: E402
from browser_rules import RULES, Unsolved, one  # noqa: E402
from browser_site import HONEST, TRAPS, Site  # noqa: E402
from browser_tools import Broken, DevTools, Extension, Mcp, Outrigger, Playwright  # noqa: E402
from run import clean_environment, home_environment  # noqa: E402

NAMES = ["outrigger", "playwright", "devtools"]
# Ours: through the native provider, and through the extension, which has to be built (`cargo xtask extension`).
OURS = ["outrigger", "extension"]
CHROMIUM_FLAGS = ["--no-sandbox", "--disable-gpu"]


def door(name, options, site, folder):
    """Starts a tool in a folder of its own."""
    home, project = folder / "home", folder / "project"
    project.mkdir(parents=True)
    home.mkdir()
    env = {**clean_environment(), **home_environment(home), "PWD": str(project)}
    log = open(folder / "log", "w")  # noqa: SIM115 - it lives as long as the server
    if name == "outrigger":
        settings = home / ".config/outrigger/outrigger.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(f'[browser]\nenabled = true\nprogram = "{options.chromium}"\nfields = ["password"]\narguments = ["--disable-gpu"]\n')
        rules = {f"{site.url}/*": "allow"}
        (project / "opencode.json").write_text(json.dumps({"permission": {"webfetch": rules, "browser": rules}, "lsp": False, "formatter": False}))
        return Outrigger(Mcp([options.ours, "mcp", "serve"], env, project, log))
    if name == "extension":
        serve = HERE.parent.parent / "extension/tests/browser/serve.mjs"
        return Extension(Mcp(["node", str(serve), site.url], {**env, "CHROMIUM": options.chromium}, project, log))
    modules = Path(options.peers).resolve() / "node_modules"
    if name == "playwright":
        command = ["node", modules / "@playwright/mcp/cli.js", "--headless", "--isolated", "--no-sandbox", "--executable-path", options.chromium]
        return Playwright(Mcp(list(map(str, command)), env, project, log))
    command = ["node", modules / "chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js", "--headless", "--isolated", "--executablePath", options.chromium]
    return DevTools(Mcp([*map(str, command), *(f"--chromeArg={flag}" for flag in CHROMIUM_FLAGS)], env, project, log))


def traps(tool, site):
    """For each page on which an action has no effect: whether the tool says that it was done; and the reverse."""
    found = {}
    for name, (action, role, label, given, _) in {**TRAPS, **HONEST}.items():
        driver = Driver(tool, "trap")
        driver.open(f"{site.url}/trap/{name.replace(' ', '%20')}")
        with contextlib.suppress(Unsolved, Broken):
            node = one(driver.page.all(role, name=label), label)
            arguments = {"click": [], "fill": [given], "select": [[given]]}[action]
            found[name] = getattr(driver, action)(node, *arguments).is_done
    return {
        "falsely_done": sorted(name for name in TRAPS if found.get(name, False)),
        "falsely_failed": sorted(name for name in HONEST if not found.get(name, False)),
    }


def measured(name, options, site, kinds):
    """All episodes of one tool, the kinds in turn, and the traps."""
    folder = Path(tempfile.mkdtemp(prefix="bench-browser-"))
    tool, episodes, deadline = None, [], time.monotonic() + options.minutes * 60
    try:
        tool = door(name, options, site, folder)
        result = traps(tool, site)
        for kind in kinds:
            for seed in range(1, options.seeds + 1):
                if time.monotonic() > deadline:
                    print(f"{name}: time is up at {kind}, seed {seed}", file=sys.stderr)
                    return {**result, "episodes": episodes}
                try:
                    it = episode(tool, site, kind, seed)
                except (Broken, OSError) as error:
                    # The server has ended, or hangs: the next episode starts a new one.
                    tool.mcp.process.kill()
                    tool = door(name, options, site, Path(tempfile.mkdtemp(dir=folder)))
                    it = {"kind": kind, "seed": seed, "solved": False, "falsely_done": 0, "why": f"{error}", "actions": 0, "seconds": 0, "bytes": 0, "clicks": 0, "failed": []}
                episodes.append(it)
                if options.verbose and not it["solved"]:
                    print(f"{name} {kind} {seed}: {it['why']} {it['failed'][:2]}", file=sys.stderr)
                if options.first and not it["solved"]:
                    break
        return {**result, "episodes": episodes}
    finally:
        if tool:
            tool.mcp.close()
        shutil.rmtree(folder, ignore_errors=True)


def solved(episodes, seeds):
    """The kinds whose every seed was solved."""
    kinds = {}
    for it in episodes:
        kinds.setdefault(it["kind"], []).append(it["solved"])
    return {kind for kind, all_ in kinds.items() if len(all_) == seeds and all(all_)}


def figures(result, seeds, common):
    """What a tool comes to. Time and bytes are of the kinds that every tool solved, so that a tool which gives up is not the cheaper one."""
    same = [it for it in result["episodes"] if it["kind"] in common]
    actions = sum(it["actions"] for it in same) or 1
    return {
        "kinds solved": len(solved(result["episodes"], seeds)),
        "ms per action": round(1000 * sum(it["seconds"] for it in same) / actions),
        "bytes per task": round(statistics.mean(it["bytes"] for it in same)) if same else 0,
        "clicks said to be done and not seen by the page": sum(it["falsely_done"] for it in result["episodes"]),
        f"actions without effect said to be done, of {len(TRAPS)}": len(result["falsely_done"]),
        f"actions with effect said not to be done, of {len(HONEST)}": len(result["falsely_failed"]),
    }


def checked(results, table, seeds):
    """What of issue 22's goals is not met."""
    peers = [table[name] for name in table if name not in OURS]
    missed = []
    for name in filter(results.__contains__, OURS):
        ours, result = table[name], results[name]
        if len(solved(result["episodes"], seeds)) < 60:
            missed.append(f"{name}: fewer than 60 kinds are solved")
        if ours["clicks said to be done and not seen by the page"] or result["falsely_done"] or result["falsely_failed"]:
            missed.append(f"{name}: an action is said to be what it is not: {result['falsely_done']} {result['falsely_failed']}")
        for peer in peers:
            missed += [f"{name}: a peer solves more kinds"] if peer["kinds solved"] > ours["kinds solved"] else []
            missed += [f"{name}: more than half of a peer's bytes"] if 2 * ours["bytes per task"] > peer["bytes per task"] else []
            missed += [f"{name}: slower per action than a peer"] if ours["ms per action"] > peer["ms per action"] else []
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--miniwob", required=True, help="folder with the package's html")
    parser.add_argument("--ours", help="the program")
    parser.add_argument("--peers", help="folder with node_modules of the others")
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    parser.add_argument("--tools", default=",".join(NAMES))
    parser.add_argument("--kinds", help="kinds of tasks, with commas; all that there are rules for")
    parser.add_argument("--seeds", type=int, default=5, help="tasks of each kind")
    parser.add_argument("--minutes", type=float, default=30, help="how long a tool may take")
    parser.add_argument("--first", action="store_true", help="leave a kind at its first task that is not solved")
    parser.add_argument("--verbose", action="store_true", help="why a task is not solved")
    parser.add_argument("--json")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    site = Site(options.miniwob)
    kinds = options.kinds.split(",") if options.kinds else sorted(RULES)
    unknown = [kind for kind in kinds if kind not in RULES or kind not in site.kinds()]
    if unknown:
        sys.exit(f"bench: no rules, or no page, for {', '.join(unknown)}")
    results = {name: measured(name, options, site, kinds) for name in options.tools.split(",")}
    common = set.intersection(*(solved(result["episodes"], options.seeds) for result in results.values()))
    table = {name: figures(result, options.seeds, common) for name, result in results.items()}
    print(f"{len(kinds)} kinds, {options.seeds} seeds; time and bytes over the {len(common)} kinds that each tool solves")
    for row in next(iter(table.values())):
        print(f"{row:60}", *(f"{table[name][row]:>12}" for name in table))
    for name, result in results.items():
        print(f"{name} does not solve: {', '.join(kind for kind in kinds if kind not in solved(result['episodes'], options.seeds)) or '-'}")
        print(f"{name} falsely done: {result['falsely_done']}; falsely failed: {result['falsely_failed']}")
    if options.json:
        Path(options.json).write_text(json.dumps({"table": table, "results": results}, indent=1))
    missed = checked(results, table, options.seeds) if options.check else []
    for it in missed:
        print(f"missed: {it}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    os.umask(0o077)
    main()
