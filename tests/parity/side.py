"""Two recordings of one scenario side by side: hook calls, requests to the model, events. Used by compare.py."""
import json
from difflib import SequenceMatcher

KINDS = ("hooks", "model", "events")
# Maximum rows of one table; a failed scenario would fill the screen.
MOST_ROWS = 120
# Equal rows around a difference.
CONTEXT = 2
WIDTH = 64


def label(call):
    first, *details = call
    return " ".join([first, *(str(detail) for detail in details if detail)])


def align(want, have):
    """Rows of (mark, left, right): ' ' where both are the same, '!' where not; one side may be empty."""
    rows = []
    for kind, a, b, c, d in SequenceMatcher(None, want, have, autojunk=False).get_opcodes():
        left, right = want[a:b], have[c:d]
        for index in range(max(len(left), len(right))):
            one = left[index] if index < len(left) else ""
            other = right[index] if index < len(right) else ""
            rows.append((" " if kind == "equal" else "!", one, other))
    return rows


def folded(rows):
    """Only what differs, with a little around it; what is left out is counted."""
    near = set()
    for at, (mark, _, _) in enumerate(rows):
        if mark == "!":
            near.update(range(at - CONTEXT, at + CONTEXT + 1))
    out, hidden = [], 0
    for at, row in enumerate(rows):
        if at in near:
            if hidden:
                out.append(("", f"({hidden} the same)", None))
                hidden = 0
            out.append(row)
        else:
            hidden += 1
    if hidden:
        out.append(("", f"({hidden} the same)", None))
    return out


def cut(text):
    return text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."


def table(title, want, have, whole):
    """The lines of one table; `want` and `have` are lists of texts."""
    rows = align(want, have)
    differ = sum(1 for mark, _, _ in rows if mark == "!")
    out = [f"  {title}: {len(want)} and {len(have)}, {differ} rows differ"]
    if not whole and not differ:
        return out
    shown = rows if whole else folded(rows)
    for mark, left, right in shown[:MOST_ROWS]:
        if right is None:
            out.append(f"      {left}")
        else:
            out.append(f"    {mark} {cut(left or '-'):{WIDTH}} {cut(right or '-')}")
    if len(shown) > MOST_ROWS:
        out.append(f"      ({len(shown) - MOST_ROWS} rows more)")
    return out


def request_lines(views, project):
    """Requests to the model as texts, one for each thing that is compared."""
    out = []
    for number, view in enumerate(views):
        for name, value in view.items():
            text = value if isinstance(value, str) else json.dumps(value)
            out.append(f"{number}.{name} {' '.join(text.replace(project, 'P').split())}")
    return out


def tables(kinds, gold, ours, whole):
    """The lines for one scenario. `gold` and `ours` hold `hooks` and `beside` (calls), `model` (texts) and `events`."""
    out = []
    if "hooks" in kinds:
        out += table("hooks", list(map(label, gold["hooks"])), list(map(label, ours["hooks"])), whole)
        if gold["beside"] or ours["beside"]:
            beside = "hooks beside the turn (title request)"
            out += table(beside, list(map(label, gold["beside"])), list(map(label, ours["beside"])), whole)
    if "model" in kinds:
        out += table("model requests", gold["model"], ours["model"], whole)
    if "events" in kinds:
        out += table("events", list(map(label, gold["events"])), list(map(label, ours["events"])), whole)
    return out
