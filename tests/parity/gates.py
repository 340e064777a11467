"""The gates: what may differ in which scenario.

`found` says where two recordings of one scenario differ, as sentences that begin with a figure: hooks, title (the hooks of the title's
request, which runs beside the turn), definitions (`tool.definition`), dispose, shapes, model, events, result. differences.json lists what is different on
purpose, and why: rules of `of` (scenarios), `what` (beginnings of sentences) and `why`. A rule with `sometimes` is about what two runs of one
program differ by; every other one has to be needed. Whatever no rule covers fails.
"""
import fnmatch
import os
from collections import Counter

from recording import FOREIGN, key, lanes, lines, load, model_view, paths, same_field

# Events published concurrently with a turn (its title, a summary of the user's message): their order varies.
BESIDE = ("session.created", "session.updated", "session.diff")
MISSING = "not there"


def spell(words):
    return " ".join(str(word) for word in words if word is not None)


def ordered(want, have):
    """Sentences about two sequences: what only OpenCode has (-), what only ours has (+), what stands elsewhere (moved)."""
    gone, come = apart(want, have)
    moved = gone & come
    signs = (("-", gone - moved), ("+", come - moved), ("moved", moved))
    return [f"{sign} {spell(words)}" for sign, found in signs for words in found]


def apart(want, have):
    """What is in one of the sequences and in no longest common part of both. (difflib does not look for the longest.)"""
    best = [[0] * (len(have) + 1) for _ in range(len(want) + 1)]
    for a in reversed(range(len(want))):
        for b in reversed(range(len(have))):
            best[a][b] = best[a + 1][b + 1] + 1 if want[a] == have[b] else max(best[a + 1][b], best[a][b + 1])
    gone, come, a, b = Counter(), Counter(), 0, 0
    while a < len(want) and b < len(have):
        if want[a] == have[b]:
            a, b = a + 1, b + 1
        elif best[a + 1][b] >= best[a][b + 1]:
            gone[want[a]] += 1
            a += 1
        else:
            come[have[b]] += 1
            b += 1
    gone.update(want[a:])
    come.update(have[b:])
    return gone, come


def of(recording, plugin, hook):
    return [row for row in recording if row["p"] == plugin and row["hook"] == hook]


# --- shapes ----------------------------------------------------------------------------------------------------------

def missing_keys(gold, ours):
    """Keys that calls of a hook have in OpenCode and not in ours; the n-th call for a tool is held against ours for it."""
    mates, seen, found = {}, Counter(), set()
    for row in ours:
        mates.setdefault((row["hook"], row.get("tool")), []).append(row)
    for row in gold:
        place = (row["hook"], row.get("tool"))
        calls = mates.get(place)
        if not calls:
            # The sequence says so.
            continue
        mate = calls[min(seen[place], len(calls) - 1)]
        seen[place] += 1
        for side in ("input", "output"):
            want = {path for path in paths(row.get(side)) if not FOREIGN.search(path)}
            found |= {f"{row['hook']} {side}.{path}" for path in want - paths(mate.get(side))}
    return found


def missing_properties(gold, ours):
    """Keys that every event of a kind has in OpenCode and no event of that kind in ours."""
    def kinds(recording):
        by_kind = {}
        for row in of(recording, "A", "event"):
            by_kind.setdefault((row["type"], row.get("part"), row.get("role")), []).append(paths(row.get("props")))
        return by_kind
    have, found = kinds(ours), set()
    for kind, wanted in kinds(gold).items():
        if kind in have:
            found |= {f"event {spell(kind)} {path}" for path in set.intersection(*wanted) - set.union(*have[kind])}
    return found


# --- model, events, result -------------------------------------------------------------------------------------------

def requests(gold, ours, projects):
    for of_what, titles in (("", False), ("title ", True)):
        wants, haves = model_view(gold, titles), model_view(ours, titles)
        if len(wants) != len(haves):
            yield f"{of_what}{len(wants)} requests, ours {len(haves)}"
        for want, have in zip(wants, haves):
            # The texts around a title's request differ between the programs.
            names = ("model", "key") if titles else want
            for name in names:
                if not same_field(name, want[name], have.get(name), *projects):
                    yield f"{of_what}{name}"


def event_lanes(recording):
    """Kinds of events as plugin A got them, those of the turn and those beside it apart; a run of one kind counts once."""
    found = {}
    for row in of(recording, "A", "event"):
        words = (row["type"], row.get("part"), row.get("status"), row.get("role"))
        is_beside = row["type"] in BESIDE or (row["type"] == "message.updated" and row.get("role") == "user")
        kinds = found.setdefault(row["type"] if is_beside else "turn", [])
        if not kinds or kinds[-1] != words:
            kinds.append(words)
    return found


def results(gold, ours):
    if gold["files"] != ours["files"]:
        yield "files"
    for number, (want, have) in enumerate(zip(gold["runs"], ours["runs"]), 1):
        if (want["rc"] == 0) != (have["rc"] == 0):
            yield f"exit code of run {number}"
        if want["stdout"].strip().split("\n")[-1].strip() not in have["stdout"]:
            yield f"output of run {number}"


# --- one scenario, all scenarios -------------------------------------------------------------------------------------

def found(gold, ours):
    """Where two folders of one scenario differ, in sentences."""
    if not os.path.exists(f"{ours}/result.json"):
        return [MISSING]
    wants, haves = lines(f"{gold}/rec.jsonl"), lines(f"{ours}/rec.jsonl")
    want_result, have_result = load(f"{gold}/result.json"), load(f"{ours}/result.json")
    said = []
    for plugin in sorted({row["p"] for row in wants}):
        pairs = list(zip(lanes(wants, plugin), lanes(haves, plugin)))
        for figure, (want, have) in zip(("hooks", "title"), pairs):
            said += [f"{figure}: {line}" for line in ordered([key(row) for row in want], [key(row) for row in have])]
        want, have = (of(rows, plugin, "tool.definition") for rows in (wants, haves))
        said += [f"definitions: {line}" for line in ordered([(row["tool"],) for row in want], [(row["tool"],) for row in have])]
        keys = [missing_keys(*pair) for pair in [*pairs, (want, have)]]
        said += [f"shapes: {line}" for line in set().union(*keys)]
        want, have = (len(of(rows, plugin, "dispose")) for rows in (wants, haves))
        said += [f"dispose: {want} times, ours {have}"] if want != have else []
    said += [f"shapes: {line}" for line in missing_properties(wants, haves)]
    projects = (want_result["proj"], have_result["proj"])
    said += [f"model: {line}" for line in requests(lines(f"{gold}/llm.jsonl"), lines(f"{ours}/llm.jsonl"), projects)]
    want, have = event_lanes(wants), event_lanes(haves)
    for lane in sorted({*want, *have}):
        said += [f"events: {line}" for line in ordered(want.get(lane, []), have.get(lane, []))]
    said += [f"result: {line}" for line in results(want_result, have_result)]
    return sorted(set(said))


def is_of(rule, name):
    """Whether a rule is about a scenario."""
    return any(fnmatch.fnmatchcase(name, one) for one in rule["of"])


def judge(rules, differences):
    """(what no rule covers, what nothing needs) of the differences by scenario, as pairs of a name and a sentence.

    A rule is needed where each scenario that it names has one of its differences, and each of its differences occurs. That is asked
    where all of these scenarios ran.
    """
    used, wrong = set(), []
    for name, said in differences.items():
        for line in said:
            covering = [(rule, one, start) for rule in rules for one in rule["of"] for start in rule["what"] if fnmatch.fnmatchcase(name, one) and line.startswith(start)]
            if not covering:
                wrong.append((name, line))
            used |= {(id(rule), word) for rule, *words in covering for word in words}
    stale = []
    for rule in rules:
        if not rule.get("sometimes") and all(fnmatch.filter(differences, one) for one in rule["of"]):
            stale += [(word, rule["why"]) for word in [*rule["of"], *rule["what"]] if (id(rule), word) not in used]
    return wrong, stale
