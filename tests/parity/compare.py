#!/usr/bin/env python3
"""Compares two recordings made by run.py: OpenCode's (GOLD) and ours.

Five figures per scenario, each 0 to 100 %:
  hooks   order of the hook calls (the title request, which runs beside the turn, is set apart)
  shapes  keys of the inputs and outputs that the hooks were handed
  model   what the model was sent: roles, tools, parameters, headers, texts that hooks put in
  events  order of the kinds of bus events
  result  files, exit code, last line printed

What may differ, and why, says the file of --gates (gates.py): any other difference fails, and so does an exception that nothing needs.

Exit code 0: every scenario passes its gate; 1: one does not; 2: wrong use.
"""
import argparse
import json
import os
import sys
from difflib import SequenceMatcher
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import gates  # noqa: E402
import side  # noqa: E402
from recording import FOREIGN, key, lanes, lines, load, model_view, paths, same_field  # noqa: E402

FIGURES = ("hooks", "shapes", "model", "events", "result")
EVENTS = {
    "session.created", "session.updated", "message.updated", "message.part.updated", "session.status", "session.idle",
    "session.error", "session.diff", "permission.asked", "permission.replied", "todo.updated", "command.executed",
    "session.compacted", "file.edited", "message.removed", "message.part.removed",
}


# --- hooks -----------------------------------------------------------------------------------------------------------

def alignment(ours, theirs):
    """2M / (a + b), where M is the number of calls that stand in the same order in both sequences."""
    if not ours and not theirs:
        return 1.0
    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    return 2 * sum(block.size for block in blocks) / (len(ours) + len(theirs))


def differences(what, gold, ours):
    steps = SequenceMatcher(None, gold, ours, autojunk=False).get_opcodes()
    return [f"{what} {kind} {gold[a:b]} -> {ours[c:d]}" for kind, a, b, c, d in steps if kind != "equal"]


# --- shapes ----------------------------------------------------------------------------------------------------------

def shapes(gold, ours):
    """(share of OpenCode's keys that ours has, missing keys by hook); the n-th call of a hook is held against ours."""
    wanted = had = 0
    missing, seen, by_hook = {}, {}, {}
    for row in ours:
        by_hook.setdefault(row["hook"], []).append(row)
    for row in gold:
        hook = row["hook"]
        index = seen.get(hook, 0)
        seen[hook] = index + 1
        calls = by_hook.get(hook, [])
        mate = calls[min(index, len(calls) - 1)] if calls else {}
        for side in ("input", "output"):
            want = {path for path in paths(row.get(side)) if not FOREIGN.search(path)}
            have = paths(mate.get(side))
            wanted += len(want)
            had += len(want & have)
            for path in want - have:
                missing.setdefault(hook, set()).add(f"{side}.{path}")
    return (had / wanted if wanted else 1.0), missing


# --- model -----------------------------------------------------------------------------------------------------------

def model_rate(gold, ours, gold_project, our_project):
    wants, haves = model_view(gold), model_view(ours)
    notes = [] if len(wants) == len(haves) else [f"requests {len(wants)} vs {len(haves)}"]
    good = total = 0
    for index, want in enumerate(wants):
        have = haves[index] if index < len(haves) else {}
        for name, value in want.items():
            total += 1
            if same_field(name, value, have.get(name), gold_project, our_project):
                good += 1
            else:
                notes.append(f"req{index}.{name}: want {str(value)[:120]} have {str(have.get(name))[:120]}")
    return (good / total if total else 1.0), notes


# --- events and result -----------------------------------------------------------------------------------------------

def event_kinds(recording):
    """Kinds of events as plugin A got them; the same kind several times in a row (streamed deltas) counts once."""
    kinds = []
    for row in recording:
        if row["p"] != "A" or row["hook"] != "event" or row["type"] not in EVENTS:
            continue
        kind = (row["type"], row.get("part"), row.get("status"), row.get("role"))
        if not kinds or kinds[-1] != kind:
            kinds.append(kind)
    return kinds


def result_rate(gold, ours):
    good, notes = [gold["files"] == ours["files"]], []
    if not good[-1]:
        notes.append(f"files want {gold['files']} have {ours['files']}")
    for want, have in zip(gold["runs"], ours["runs"]):
        good.append((want["rc"] == 0) == (have["rc"] == 0))
        if not good[-1]:
            notes.append(f"rc want {want['rc']} have {have['rc']}: {have['stderr'][-200:]}")
        last = want["stdout"].strip().split("\n")[-1].strip()
        good.append(last in have["stdout"])
        if not good[-1]:
            notes.append(f"stdout wants {last[:80]!r} has {have['stdout'][-120:]!r}")
    return sum(good) / len(good), notes


# --- one scenario, all scenarios -------------------------------------------------------------------------------------

def compare(gold, ours):
    """({figure: rate}, notes) of one scenario's two folders."""
    if not os.path.exists(f"{ours}/result.json"):
        return dict.fromkeys(FIGURES, 0.0), []
    gold_record, our_record = lines(f"{gold}/rec.jsonl"), lines(f"{ours}/rec.jsonl")
    gold_result, our_result = load(f"{gold}/result.json"), load(f"{ours}/result.json")
    hook_rates, shape_rates, missing, notes = [], [], {}, []
    for plugin in sorted({row["p"] for row in gold_record}):
        want, have = lanes(gold_record, plugin)[0], lanes(our_record, plugin)[0]
        want_keys, have_keys = [key(row) for row in want], [key(row) for row in have]
        hook_rates.append(alignment(want_keys, have_keys))
        notes += differences(f"hooks of {plugin}:", want_keys, have_keys)
        rate, absent = shapes(want, have)
        shape_rates.append(rate)
        for hook, names in absent.items():
            missing.setdefault(hook, set()).update(names)
    notes += [f"missing {hook} {sorted(names)[:12]}" for hook, names in missing.items()]
    model, model_notes = model_rate(lines(f"{gold}/llm.jsonl"), lines(f"{ours}/llm.jsonl"), gold_result["proj"], our_result["proj"])
    want_events, have_events = event_kinds(gold_record), event_kinds(our_record)
    notes += differences("events:", want_events, have_events)
    result, result_notes = result_rate(gold_result, our_result)
    mean = lambda rates: sum(rates) / len(rates) if rates else 1.0  # noqa: E731
    rates = (mean(hook_rates), mean(shape_rates), model, alignment(want_events, have_events), result)
    return dict(zip(FIGURES, rates)), model_notes + result_notes + notes


def shown(folder, plugin):
    """What side.py prints of one folder."""
    recording = lines(f"{folder}/rec.jsonl")
    turn, beside = lanes(recording, plugin)
    project = load(f"{folder}/result.json")["proj"] if os.path.exists(f"{folder}/result.json") else "P"
    return {
        "hooks": [key(row) for row in turn],
        "beside": [key(row) for row in beside],
        "model": side.request_lines(model_view(lines(f"{folder}/llm.jsonl")), project),
        "events": event_kinds(recording),
    }


def show(name, gold, ours, options):
    """Prints one scenario in two columns."""
    kinds = [kind for kind in side.KINDS if getattr(options, kind)] or side.KINDS
    whole = options.show is None or options.whole
    print(f"\n{name}, plugin {options.plugin}: reference on the left, ours on the right")
    print("\n".join(side.tables(kinds, shown(gold, options.plugin), shown(ours, options.plugin), whole)))


def report(rates):
    return " ".join(f"{figure} {rates[figure]:6.1%}" for figure in FIGURES)


def average(rows):
    return {figure: sum(rates[figure] for rates in rows) / len(rows) for figure in FIGURES}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gold", help="recording of OpenCode")
    parser.add_argument("ours", help="recording of ours")
    parser.add_argument("--only", help="names of scenarios, comma separated")
    parser.add_argument("-v", "--verbose", action="store_true", help="says where each scenario differs")
    parser.add_argument("--side-by-side", metavar="NAMES", help="prints hooks, model requests and events of these scenarios (or: all) in two columns")
    parser.add_argument("--show", metavar="NAMES", help="the same, but only where they differ")
    for kind in side.KINDS:
        parser.add_argument(f"--{kind}", action="store_true", help=f"--side-by-side and --show print the {kind}, and what else is named so")
    parser.add_argument("--whole", action="store_true", help="--show prints what is the same, too")
    parser.add_argument("--plugin", default="A", help="the plugin whose hooks are printed (default A)")
    parser.add_argument("--json", metavar="FILE", help="writes the figures there")
    parser.add_argument("--gates", metavar="FILE", help="what may differ (differences.json); any other difference fails")
    options = parser.parse_args()
    for folder in (options.gold, options.ours):
        if not os.path.isdir(folder):
            parser.error(f"{folder}: no such folder")
    there = sorted(os.listdir(options.gold))
    names = options.only.split(",") if options.only else there
    if unknown := [name for name in names if name not in there]:
        parser.error(f"{options.gold} has no recording of {', '.join(unknown)}")
    if not names:
        parser.error(f"{options.gold} is empty")
    wanted = options.show or options.side_by_side or ""
    printed = names if wanted == "all" else wanted.split(",")
    table = {}
    for name in names:
        gold, ours = f"{options.gold}/{name}", f"{options.ours}/{name}"
        table[name], notes = compare(gold, ours)
        print(f"{name:14} {report(table[name])}")
        if not os.path.exists(f"{ours}/result.json"):
            print(f"      {ours} does not exist")
        if options.verbose:
            print("".join(f"      {note}\n" for note in notes), end="")
        if name in printed:
            show(name, gold, ours, options)
    averages = average(list(table.values()))
    print(f"{f'ALL {len(names)}':14} {report(averages)}")
    failed = failing(options, names) if options.gates else []
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"scenarios": table, "average": averages, "failed": failed}, file, indent=1)
    return 1 if failed else 0


def failing(options, names):
    """The scenarios that do not pass their gates; what is wrong is printed."""
    differences = {name: gates.found(f"{options.gold}/{name}", f"{options.ours}/{name}") for name in names}
    rules = load(options.gates)
    wrong, stale = gates.judge(rules, differences)
    for name, line in wrong:
        print(f"parity: {name}: {line}", file=sys.stderr)
    for word, why in stale:
        print(f"parity: {options.gates}: nothing needs `{word}` any more ({why})", file=sys.stderr)
    failed = {name for name, _ in wrong}
    print(f"{len(names) - len(failed)} of {len(names)} scenarios pass their gates")
    unused = {why for _, why in stale}
    return sorted(failed | {name for name in names for rule in rules if rule["why"] in unused and gates.is_of(rule, name)})


if __name__ == "__main__":
    sys.exit(main())
