"""A page as a tool shows it, in one form for every tool: what the rules of `browser_tasks.py` read."""

import re
from dataclasses import dataclass, field


@dataclass
class Node:
    role: str
    name: str = ""
    ref: str = ""
    value: str = ""
    states: set = field(default_factory=set)
    depth: int = 0
    # A tool's hint for an element without a name: its appearance, or its page's name for it.
    hint: str = ""

    def says(self, name):
        return flat(self.name) == flat(name)


class Page:
    def __init__(self, nodes=()):
        self.nodes = list(nodes)

    @property
    def text(self):
        """All that is written on it, in its order."""
        return flat(" ".join(node.name for node in self.nodes if node.name))

    def all(self, *roles, name=None):
        found = [node for node in self.nodes if node.ref and (not roles or node.role in roles)]
        return [node for node in found if name is None or node.says(name)]

    def inside(self, outer):
        """What stands in an element."""
        at = next(i for i, node in enumerate(self.nodes) if node is outer)
        found = []
        for node in self.nodes[at + 1 :]:
            if node.depth <= outer.depth:
                break
            found.append(node)
        return found

    def after(self, text):
        """What comes after the first node that says something."""
        for at, node in enumerate(self.nodes):
            if text in flat(node.name):
                return self.nodes[at + 1 :]
        return []


def flat(text):
    return re.sub(r"\s+", " ", text).strip()


STATES = {"checked", "disabled", "expanded", "collapsed", "focused", "mixed", "modal", "multiline", "pressed", "readonly", "required", "selected", "busy", "invalid"}
QUOTED = r'"((?:[^"\\]|\\.)*)"'


def unquoted(text):
    return re.sub(r"\\(.)", r"\1", text)


# Ours: `  e12 button "Pay" = "value" (hint) disabled`, and text in quotes.
LINE = re.compile(rf'^( *)(?:(e\d+) )?(?:([a-z-]+)(?: {QUOTED})?|{QUOTED})(?: = {QUOTED})?(?: \((.*)\))?((?: \w+)*)$')


def outrigger_line(line):
    found = LINE.match(line)
    if not found:
        return None
    indent, ref, role, name, text, value, hint, rest = found.groups()
    if role and not ref:
        return None
    return Node(
        role or "text",
        unquoted(name or text or ""),
        ref or "",
        unquoted(value or ""),
        STATES & set(rest.split()),
        len(indent),
        hint or "",
    )


def outrigger(answer, before):
    """The page after an answer of our tools: shown whole, or changed."""
    found = re.search(r"<untrusted_page_content[^>]*>\n(.*)\n</untrusted_page_content>", answer, re.S)
    if not found:
        return before
    lines = found[1].split("\n")
    at = next((i for i, line in enumerate(lines) if line.startswith("changed")), None)
    if at is not None:
        return changed(before, lines[at + 1 :])
    return Page(filter(None, map(outrigger_line, lines)))


def changed(before, lines):
    """A page with the lines of a difference. What has come stands at the end, in its order."""
    nodes = list(before.nodes)
    for line in lines:
        node = outrigger_line(line[2:]) if line[:2] in ("+ ", "- ", "~ ") else None
        if not node:
            continue
        same = next((i for i, it in enumerate(nodes) if (it.ref == node.ref if node.ref else it.role == "text" and it.name == node.name)), None)
        if line[0] == "+":
            nodes.append(node)
        elif same is not None and line[0] == "-":
            del nodes[same]
        elif same is not None:
            nodes[same] = node
    return Page(nodes)


# Playwright's: `  - button "Pay" [disabled] [ref=e5]: text`.
PLAYWRIGHT = re.compile(rf'^([a-z]+)(?: {QUOTED})?((?: \[[^\]]*\])*)(?::(?: (.*))?)?$')


def playwright_line(line):
    bare = line.lstrip(" ")
    said = bare.removeprefix("- ")
    if said.startswith("'"):
        end = said.rindex("'")
        said = said[1:end].replace("''", "'") + said[end + 1 :]
    found = PLAYWRIGHT.match(said)
    if not found:
        return None
    role, name, marks, value = found.groups()
    marks = re.findall(r"\[([^\]]*)\]", marks or "")
    ref = next((mark[4:] for mark in marks if mark.startswith("ref=")), "")
    if value and value[0] == '"':
        value = unquoted(value[1:-1])
    node = Node(role, unquoted(name or ""), ref, depth=len(line) - len(bare), states=STATES & {"focused" if it == "active" else it for it in marks})
    if role in ("textbox", "searchbox", "spinbutton"):
        node.value = value or ""
    elif value and not node.name:
        node.name = value
    return node


def playwright(answer, before):
    """The page after an answer of Playwright's tools: it shows all of it, or nothing."""
    found = re.search(r"```yaml\n(.*?)\n?```", answer, re.S)
    return Page(filter(None, map(playwright_line, found[1].split("\n")))) if found else before


# That of chrome-devtools-mcp: `  uid=1_3 textbox "Name" value="abc" focused`, and text without a role. Quotes in it are as they are.
DEVTOOLS = re.compile(r'^( *)uid=(\S+) (?:"(.*)"|([A-Za-z]\S*)(?: "(.*?)"(?= [a-z]+(?:=|$| )|$))?(.*))$')


def devtools_line(line):
    found = DEVTOOLS.match(line)
    if not found:
        return None
    indent, ref, text, role, name, rest = found.groups()
    if text is not None:
        return Node("text", text, ref, depth=len(indent))
    value = re.search(r' value="(.*?)"', rest)
    role = "document" if role == "RootWebArea" else role.lower()
    return Node(role, name or "", ref, value[1] if value else "", STATES & set(rest.split()), len(indent))


def devtools(answer, before):
    """The page after an answer of chrome-devtools-mcp: it shows all of it, or nothing."""
    nodes = list(filter(None, map(devtools_line, answer.split("\n"))))
    return Page(nodes) if nodes else before
