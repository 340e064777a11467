"""What is read of a recording: the hook calls of a plugin, keys of what hooks were handed, requests to the model."""
import json
import os
import re

# The part of a hook's input that contains a parsed program or a schema: its inner keys are not the host's.
FOREIGN = re.compile(r"(\.ast\b|\.parameters\.|^parameters\.|jsonSchema)")
COMPACT_MARKS = ("RECORDER-COMPACT-CONTEXT",)


def lines(path):
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file]


def load(path):
    with open(path) as file:
        return json.load(file)


def lanes(recording, plugin):
    """A plugin's hook calls, as (those of the turn, those of the title request beside it)."""
    left_out = ("event", "dispose", "tool.definition")
    rows = [r for r in recording if r["p"] == plugin and r["hook"] not in left_out and not r["hook"].startswith("<client")]
    # A system.transform does not show which request it is for: as many as there are title requests are attributed
    # to the title.
    for_title = sum(1 for r in rows if r["hook"] == "chat.params" and r.get("agent") == "title")
    turn, title = [], []
    for row in rows:
        if row.get("agent") == "title":
            title.append(row)
        elif row["hook"] == "experimental.chat.system.transform" and for_title:
            for_title -= 1
            title.append(row)
        else:
            turn.append(row)
    return turn, title


def key(row):
    return (row["hook"], row.get("tool"), row.get("role"), row.get("agent"))


def paths(value, prefix=""):
    if isinstance(value, dict):
        found = set()
        for name, inner in value.items():
            found |= {prefix + name} | paths(inner, prefix + name + ".")
        return found
    if isinstance(value, list) and value:
        return paths(value[0], prefix + "[].")
    return set()


def content_text(content):
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def neutral(text):
    """The programs' own words around a compaction count as the same; gold.py takes OpenCode's out in the same way."""
    if text.startswith("Go on with what is still to be done"):
        return "<continue>"
    if text.startswith("<conversation>"):
        return " ".join(["<compaction prompt>", *(mark for mark in COMPACT_MARKS if mark in text)])
    return text.replace("The conversation so far:", "<history>")


def model_view(requests, titles=False):
    """What is compared of each request of the turn, or of those for titles."""
    views = []
    for request in requests:
        if request["isTitle"] != titles:
            continue
        body = request["body"]
        messages, tools = body["messages"], body.get("tools", [])
        whole = json.dumps(messages)
        user = [message for message in messages if message["role"] == "user"]
        views.append({
            "roles": [message["role"] for message in messages if message["role"] != "system"],
            "tools": sorted(tool["function"]["name"] for tool in tools),
            "choice": body.get("tool_choice"),
            "temp": body.get("temperature"),
            "top_p": body.get("top_p"),
            "extra": body.get("extra_thing"),
            "hdr": request["headers"].get("x-recorder"),
            "model": body.get("model"),
            "key": request["headers"].get("authorization"),
            "sysmark": "RECORDER-SYSTEM-LINE" in json.dumps(messages[:2]),
            "rules": "PROJECT-RULE" in whole,
            "agentmark": [mark for mark in ("HELPER-AGENT", "REVIEWER-AGENT") if mark in whole],
            "lastuser": neutral(content_text(user[-1]["content"]))[-160:] if user else "",
            "readdesc": any(tool["function"].get("description") == "RECORDER-READ-DESCRIPTION" for tool in tools),
        })
    return views


def same_field(name, want, have, gold_project, our_project):
    if name == "tools":
        return set(want) <= set(have or [])
    if name == "lastuser":
        return (want or "").replace(gold_project, "P").strip() == (have or "").replace(our_project, "P").strip()
    return want == have
