"""What the rules of `browser_tasks.py` and `browser_tasks_pages.py` share: how they are found by the kind of a task, and what of a page they look for."""

import re

from browser_page import flat

MONTHS = "January February March April May June July August September October November December".split()
RULES = {}


class Unsolved(Exception):
    """The page does not show what a rule looks for."""


def rule(*kinds):
    def take(solve):
        RULES.update({kind: solve for kind in kinds})
        return solve

    return take


def match(pattern, text):
    found = re.search(pattern, text)
    if not found:
        raise Unsolved(f"no {pattern} in {text[:200]!r}")
    return found


def one(nodes, what=""):
    for node in nodes:
        return node
    raise Unsolved(f"there is no {what}")


def fields(page):
    return page.all("textbox", "searchbox", "combobox", "spinbutton", "date", "inputtime")


def clickable(page, text):
    """What says a text and can be named: itself, or what it stands in."""
    named = page.all(name=text)
    if named:
        return named[0]
    for at, node in enumerate(page.nodes):
        if not node.ref and node.says(text):
            for outer in reversed(page.nodes[:at]):
                if outer.depth < node.depth:
                    if outer.ref:
                        return outer
                    break
    raise Unsolved(f"nothing says {text!r}")


def is_there(page, text):
    try:
        return clickable(page, text)
    except Unsolved:
        return None


def nameless(nodes, hint=""):
    """Elements without a name, as icons are. Where a tool says what the page calls them, `hint` is a part of that."""
    found = [node for node in nodes if node.ref and node.role in ("generic", "button", "link", "img", "image") and not node.name]
    told = [node for node in found if hint in node.hint and node.hint]
    return told or [node for node in found if not node.hint]


def ordinal(text):
    return int(match(r"\d+", text)[0])


def submit(d, name="Submit"):
    d.finish(one(d.page.all("button", name=name), f"button {name}"))


def pick_date(d, month, day, year):
    """In the calendar that is open."""
    for _ in range(14):
        shown = match(rf"({'|'.join(MONTHS)})\s*(\d{{4}})", d.page.text)
        away = (int(shown[2]) - year) * 12 + MONTHS.index(shown[1]) + 1 - month
        if away == 0:
            return d.click(one(d.page.all("link", name=str(day)), f"day {day}"))
        d.click(clickable(d.page, "Prev" if away > 0 else "Next"))
    raise Unsolved("the month does not come")
