"""Makes a recording fit to be committed: machine paths and texts that are not ours are taken out."""
import json
import re
from pathlib import Path

# Texts that scenarios put into a system prompt: they are kept, so that compare.py still sees them.
MARKERS = ("RECORDER-SYSTEM-LINE", "PROJECT-RULE", "HELPER-AGENT", "REVIEWER-AGENT", "RECORDER-COMPACT-CONTEXT")
KEPT_DESCRIPTION = "RECORDER-READ-DESCRIPTION"
# The start of OpenCode's own texts of a compaction.
CONTINUE = "Continue if you have next steps"
PROMPT = "Here is the conversation so far:"
HISTORY = "The following is the conversation history:"
# Headers of the HTTP client: they differ from run to run and are not compared.
TRANSPORT_HEADERS = ("connection", "accept", "host", "accept-encoding", "content-length")


def redact_request(row):
    """The reference's system prompt and tool descriptions are not ours to ship."""
    row["headers"] = {name: value for name, value in row["headers"].items() if name not in TRANSPORT_HEADERS}
    for message in row["body"].get("messages", []):
        if message["role"] == "user":
            message["content"] = redact_compaction(message["content"])
        if message["role"] == "system":
            text = json.dumps(message["content"])
            message["content"] = " ".join(["<system prompt>", *(m for m in MARKERS if m in text)])
    for tool in row["body"].get("tools", []):
        function = tool["function"]
        if function.get("description") != KEPT_DESCRIPTION:
            function["description"] = "<text removed>"
        function["parameters"] = without_descriptions(function.get("parameters"))
    return row


def redact_compaction(content):
    """The reference's words around a compaction; what plugins put there stays."""
    if isinstance(content, list):
        return [{**part, "text": redact_compaction(part["text"])} if "text" in part else part for part in content]
    if content.startswith(CONTINUE):
        return "<continue>"
    if content.startswith(PROMPT):
        return " ".join(["<compaction prompt>", *(m for m in MARKERS if m in content)])
    return content.replace(HISTORY, "<history>")


def without_descriptions(schema, inside_properties=False):
    if isinstance(schema, list):
        return [without_descriptions(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: without_descriptions(value, key == "properties" and not inside_properties)
        for key, value in schema.items()
        if inside_properties or key != "description" or not isinstance(value, str)
    }


def normalise(folder: Path, project: str, home: str):
    """Rewrites the recording in `folder` in place."""
    llm = folder / "llm.jsonl"
    if llm.exists():
        rows = [redact_request(json.loads(line)) for line in llm.read_text().splitlines()]
        llm.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = folder / "result.json"
    if result.exists():
        # OpenCode prints the prompt with which it continues as if it were an answer.
        result.write_text(re.sub(re.escape(CONTINUE) + r"[^\\]*", "<continue>", result.read_text()))
    for file in folder.iterdir():
        text = file.read_text()
        for real, name in ((project, "/project"), (home, "/home/user")):
            text = text.replace(real, name)
        file.write_text(text)
