"""python3 -m unittest tests/parity/test_gates.py"""
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import gates  # noqa: E402


def hook(name, plugin="A", **more):
    return {"p": plugin, "hook": name, "input": {"sessionID": "string"}, "output": {}, **more}


def event(kind, **more):
    return {"p": "A", "hook": "event", "type": kind, "props": {"sessionID": "string"}, **more}


REFERENCE = [
    hook("chat.message"), hook("tool.definition", tool="read"), event("session.created"), event("session.status", status="busy"),
    hook("tool.execute.after", tool="read"), event("session.updated"), event("session.idle"), hook("dispose"),
]


class Gates(unittest.TestCase):
    def found(self, ours, **changes):
        """Differences of a recording from OpenCode's; `changes` of its result."""
        with tempfile.TemporaryDirectory() as folder:
            for name, rows in (("gold", REFERENCE), ("ours", ours)):
                place = Path(folder) / name
                place.mkdir()
                (place / "rec.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
                run = {"rc": 0, "stdout": "All done.\n"} | (changes if name == "ours" else {})
                (place / "result.json").write_text(json.dumps({"runs": [run], "files": {}, "proj": "/p"}))
            return gates.found(f"{folder}/gold", f"{folder}/ours")

    def test_the_same_differs_in_nothing(self):
        self.assertEqual(self.found(REFERENCE), [])
        # Concurrently published events have no fixed position.
        moved = [row for row in REFERENCE if row.get("type") != "session.updated"]
        self.assertEqual(self.found([*moved, event("session.updated")]), [])

    def test_each_difference_is_found_under_its_figure(self):
        ours = [dict(row) for row in REFERENCE]
        ours[0]["input"] = {}
        ours[1]["tool"] = "write"
        ours[3]["props"] = {}
        del ours[6:]
        ours.insert(2, hook("permission.ask"))
        self.assertEqual(self.found(ours, rc=1, stdout="no"), [
            "definitions: + write", "definitions: - read", "dispose: 1 times, ours 0", "events: - session.idle", "hooks: + permission.ask",
            "result: exit code of run 1", "result: output of run 1",
            "shapes: chat.message input.sessionID", "shapes: event session.status sessionID",
        ])
        self.assertEqual(gates.found("/nowhere", "/nowhere"), [gates.MISSING])

    def test_only_what_changed_its_place_is_moved(self):
        self.assertEqual(gates.ordered([("a",), ("b",), ("c",), ("d",)], [("d",), ("a",), ("b",), ("c",), ("e",)]), ["+ e", "moved d"])

    def test_a_difference_without_a_rule_and_a_rule_without_a_difference_fail(self):
        rules = [
            {"of": ["permask", "permonce"], "what": ["hooks: + permission.ask"], "why": "on purpose"},
            {"of": ["text", "read"], "what": ["events: - gone"], "why": "as well"},
            {"of": ["*"], "what": ["events: moved"], "why": "", "sometimes": True},
        ]
        asks = ["hooks: + permission.ask"]
        # One of the scenarios of the second rule did not run.
        same = {"permask": asks, "permonce": asks, "text": ["events: moved x"]}
        self.assertEqual(gates.judge(rules, same), ([], []))
        worse = {"permask": asks, "permonce": [], "text": ["events: - gone"], "read": asks}
        self.assertEqual(gates.judge(rules, worse), ([("read", asks[0])], [("permonce", "on purpose"), ("read", "as well")]))


if __name__ == "__main__":
    unittest.main()
