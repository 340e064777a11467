#!/usr/bin/env python3
"""Holds what our server answered the client against what OpenCode answered.

Same status class for every call; every key that OpenCode's answer has, with a value of the same type, in ours too;
the same for the events. What ours has beyond that is not a fault. differences.json lists what is different on purpose.
"""
import argparse
import fnmatch
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def status_class(status):
    return status // 100 if isinstance(status, int) else status


def faults(reference, ours):
    """(name of the call or event, what is wrong) of everything that differs."""
    for method in ours["never"]:
        yield method, "never called"
    for name, theirs in reference["calls"].items():
        got = ours["calls"].get(name)
        if got is None:
            yield name, "not called"
        elif status_class(theirs["status"]) != status_class(got["status"]):
            yield name, f"status {got['status']}, reference {theirs['status']}"
        else:
            for line in missing(theirs["shape"], got["shape"]):
                yield name, line
    for kind, shape in reference["events"].items():
        if kind not in ours["events"]:
            yield f"event {kind}", "never told"
            continue
        for line in missing(shape, ours["events"][kind]):
            yield f"event {kind}", line


def missing(theirs, ours):
    """OpenCode's lines that ours has not; of what is inside a missing one, only the outermost."""
    known = set(ours)
    lines = [line for line in theirs if line not in known]
    roots = [line.rsplit(" ", 1)[0] for line in lines]
    return [line for line, own in zip(lines, roots) if not any(own != root and own.startswith((root + ".", root + "[")) for root in roots)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference", help="result of OpenCode (gold.json)")
    parser.add_argument("ours", help="result of ours")
    parser.add_argument("-v", "--verbose", action="store_true", help="prints the intended differences too")
    options = parser.parse_args()
    reference, ours = (json.loads(Path(file).read_text()) for file in (options.reference, options.ours))
    intended = json.loads((HERE / "differences.json").read_text())
    used, wrong, meant = set(), [], []
    for name, what in faults(reference, ours):
        for number, rule in enumerate(intended):
            if any(fnmatch.fnmatchcase(name, one) for one in rule["of"]) and any(what.startswith(start) for start in rule["what"]):
                used.add(number)
                meant.append((name, what, rule["why"]))
                break
        else:
            wrong.append((name, what))
    for name, what in wrong:
        print(f"{name}: {what}")
    if options.verbose:
        for name, what, why in meant:
            print(f"(on purpose) {name}: {what} -- {why}")
    stale = [rule for number, rule in enumerate(intended) if number not in used]
    for rule in stale:
        print(f"differences.json: no longer there: {', '.join(rule['of'])}: {', '.join(rule['what'])}")
    bad = {name for name, _ in wrong}
    total = len(reference["calls"]) + len(reference["events"])
    print(f"{ours['methods']} methods, {len(reference['calls'])} calls and {len(reference['events'])} kinds of events: {total - len(bad)} of {total} agree, {len({name for name, *_ in meant} - bad)} of them with a difference on purpose")
    return 1 if wrong or stale else 0


if __name__ == "__main__":
    sys.exit(main())
