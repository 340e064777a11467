#!/usr/bin/env python3
"""What growth costs: the same work with a short history and with a long one, with few sessions and with many, alone and at once.

For each length of the history a server is started on a store that was filled through the store's own crate (prompts and
answers of 200 bytes), and takes

first turn   a prompt to its answer right after the start: everything is read for the first time
add          a prompt with `noReply`: one message more and no request
turn         a prompt to its answer, and what of it goes to sending the request's bytes: the very body that was sent, sent
             again to the same model by a client that does nothing else
whole, page  `GET /session/ID/message`, all of it and the newest 50
show         the command `session show`

With 10,000 sessions: `GET /session`, the command `session list`, the start until healthy, a new session, a turn. Then 1,000 sessions with a turn each
at once (`scale_crowd.py`), 500 clients that follow turns on `/event`, and 100,000 files in the project (`scale_files.py`), beside
`rg` and `git`.

OpenCode does the same with fewer (`REFERENCE`), beside ours with as few: it is filled over its API, and what takes longer than
`PART_TIMEOUT` ends, and that is said.

The model (`scale_model.py`) answers a word, and what else the prompt says.
"""
import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

import scale_crowd
import scale_files
from scale_world import MODEL, Client, World, fail, memory, prompt  # noqa: F401

# An addition costs the same at every length, a turn at most twice: the limits of `--check`, with room for noise.
MOST = {"add": 2.0, "turn": 2.0}
# What OpenCode is measured with, so that everything takes less than five minutes (100 concurrent sessions took it three and a
# half, next to builds): messages, concurrent sessions, clients. Ours is measured with the same as well.
REFERENCE = {"messages": [10, 1000], "crowd": 25, "clients": 25}
# Timeout of a part of OpenCode in seconds.
PART_TIMEOUT = 60


def added(what, count, add):
    """How many of so many `add(number)` added within `PART_TIMEOUT`; that there are fewer is said."""
    until = time.monotonic() + PART_TIMEOUT
    for number in range(count):
        add(number)
        if time.monotonic() > until:
            print(f"OpenCode: {number + 1:,} of {count:,} {what} were added in {PART_TIMEOUT} s", file=sys.stderr)
            return number + 1
    return count


def history(world, count, runs, fill):
    """How many messages a session has, and the figures of it. Without `fill` they are sent, as many as there is time for."""
    session = world.run(lambda server: Client(server.url).json("POST", "/session", {"title": "long"})["id"])
    path = f"/session/{session}/message"
    if fill:
        world.filled(fill, "messages", session, count)
    else:
        def send(server):
            client = Client(server.url)
            return added("messages", count, lambda number: client.send("POST", path, prompt(f"{number:<200}", noReply=True)))
        count = world.run(send)

    def work(server):
        client, figures = Client(server.url), {}
        figures["first turn"] = [client.send("POST", path, prompt("first"))[0]]
        figures["turn"], figures["sent"] = [], []
        for n in range(runs):
            took, text = client.send("POST", path, prompt(f"turn {n}"))
            if b"Done." not in text:
                fail(f"no answer: {text[:1000]}")
            figures["turn"].append(took)
            body = world.asked("/last")
            if body.count(b'"role"') < count:
                fail(f"the request has {len(body)} bytes and not the whole history")
            model = Client(world.url)
            figures["sent"].append(min(model.send("POST", "/chat/completions", body)[0] for _ in range(3)))
        figures["bytes"] = [len(body)]
        figures["add"] = [client.send("POST", path, prompt(f"note {n}", noReply=True))[0] for n in range(2 * runs)]
        figures["whole"] = [client.send("GET", path)[0] for _ in range(runs)]
        figures["page"] = [client.send("GET", f"{path}?limit=50")[0] for _ in range(runs)]
        figures["memory"] = [memory(server.pid)]
        return figures

    figures = world.run(work)
    if fill:
        figures["show"] = [world.command("session", "show", session) for _ in range(3)]
    return count, figures


def sessions(world, count, runs, fill):
    """How many sessions a project has, and the figures of it. Without `fill` they are made, as many as there is time for."""
    def make(server):
        client = Client(server.url)
        return lambda number: client.json("POST", "/session", {"title": f"one of many, {number}"})["id"]

    like = world.run(lambda server: make(server)(0))
    if fill:
        world.filled(fill, "sessions", like, count)
    else:
        # One is ready.
        count = 1 + world.run(lambda server: added("sessions", count - 1, make(server)))

    def work(server):
        client = Client(server.url)
        return {
            "list": [client.send("GET", "/session?limit=100")[0] for _ in range(runs)],
            "list of a folder": [client.send("GET", f"/session?limit=100&directory={world.project}")[0] for _ in range(runs)],
            "new": [client.send("POST", "/session", {})[0] for _ in range(runs)],
            "turn": [client.send("POST", f"/session/{like}/message", prompt(f"turn {n}"))[0] for n in range(runs)],
        }

    figures = world.run(work)
    figures["ready"] = [world.started]
    figures["session list"] = [world.command("session", "list") for _ in range(3)]
    return count, figures


SIZES = ("memory", "bytes", "per session", "after", "per client")
COUNTS = ("lost", "missed", "events each")


def shown(figure, values):
    if not values:
        return "-"
    middle = statistics.median(values)
    if figure in COUNTS:
        return f"{middle:,.0f}"
    if figure in SIZES:
        return f"{middle / 2**20:.1f} MiB" if middle >= 2**20 else f"{middle / 1000:.0f} KB"
    return f"{middle * 1000:.2f}"


def table(title, of):
    """Prints figures by column; `of` is from column to figures."""
    print(f"\n{title:24}" + "".join(f"{column:>14}" for column in of))
    for figure in dict.fromkeys(figure for figures in of.values() for figure in figures):
        print(f"{figure:24}" + "".join(f"{shown(figure, figures.get(figure)):>14}" for figures in of.values()), flush=True)


def missed(of):
    """What of the long histories costs more than it may."""
    columns, found = list(of), []
    middle = {column: {name: statistics.median(values) for name, values in of[column].items()} for column in columns}
    short = columns[0]
    for column in columns[1:]:
        add = middle[column]["add"] / middle[short]["add"]
        turn = (middle[column]["turn"] - middle[column]["sent"]) / (middle[short]["turn"] - middle[short]["sent"])
        for name, ratio in (("add", add), ("turn", turn)):
            if ratio > MOST[name]:
                found.append(f"{name} behind {column:,} messages costs {ratio:.1f} times as much as behind {short:,}; at most {MOST[name]}")
    return found


def in_world(binary, work):
    with World(binary) as world:
        return work(world)


class Run:
    """All parts, with what was found too dear."""

    def __init__(self, options):
        self.options, self.results, self.found = options, {}, []
        self.ours, self.fill = os.path.abspath(options.ours), os.path.abspath(options.fill)
        self.reference = options.reference and os.path.abspath(options.reference)

    def kept(self, part, of):
        self.results[part] = {str(column): figures for column, figures in of.items()}
        return of

    def messages(self):
        counts = [int(count) for count in self.options.messages.split(",") if count]
        of = dict(in_world(self.ours, lambda world, count=count: history(world, count, self.options.runs, self.fill)) for count in counts)
        if len(of) > 1:
            self.found += missed(of)
        if self.reference:
            for count in REFERENCE["messages"]:
                count, figures = in_world(self.reference, lambda world, count=count: history(world, count, 3, None))
                of[f"reference {count:,}"] = figures
        table("messages", self.kept("messages", of))

    def sessions(self):
        counts = [int(count) for count in self.options.sessions.split(",") if count]

        def ours(count):
            return in_world(self.ours, lambda world: sessions(world, count, self.options.runs, self.fill))

        of = dict(ours(count) for count in counts)
        if self.reference:
            for count in counts:
                made, figures = in_world(self.reference, lambda world, count=count: sessions(world, count, 3, None))
                if made not in of:
                    of.update([ours(made)])
                of[f"reference {made:,}"] = figures
        if of:
            table("sessions", self.kept("sessions", of))

    def crowd(self):
        at_once, following = {}, {}

        def measured(binary, name, count, clients, limit):
            turns, followed = in_world(binary, lambda world: scale_crowd.crowd(world, count, clients, limit))
            at_once[f"{name}{count:,}"], following[f"{name}{clients:,}"] = turns, followed
            return turns

        turns = measured(self.ours, "", self.options.crowd, self.options.clients, 120)
        self.found += scale_crowd.missed(turns)
        if self.reference:
            few = min(self.options.crowd, REFERENCE["crowd"]), min(self.options.clients, REFERENCE["clients"])
            measured(self.ours, "", *few, 120)
            try:
                measured(self.reference, "reference ", *few, PART_TIMEOUT)
            except (SystemExit, TimeoutError) as error:
                print(f"OpenCode: {few[0]} sessions at once, {few[1]} clients: not in {PART_TIMEOUT} s {error}", file=sys.stderr)
        table("sessions at once", self.kept("sessions at once", at_once))
        table("clients of /event", self.kept("clients of /event", following))

    def files(self):
        def work(world, runs):
            scale_files.fill(world.project, self.options.files)
            figures = scale_files.measured(world, runs, PART_TIMEOUT)
            return figures, scale_files.beside(world.project, world.folder, runs)

        ours, beside = in_world(self.ours, lambda world: work(world, 3))
        of = {"ours": ours, "rg, git": beside}
        if self.reference:
            of["reference"] = in_world(self.reference, lambda world: work(world, 2))[0]
        table(f"{self.options.files:,} files", self.kept("files", of))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True, help="our binary")
    parser.add_argument("--fill", required=True, help="the example `fill` of outrigger-store")
    parser.add_argument("--reference", help="OpenCode binary")
    parser.add_argument("--runs", type=int, default=10, help="turns at each length (default 10)")
    parser.add_argument("--messages", default="10,1000,3000,10000", help="lengths of the history")
    parser.add_argument("--sessions", default="10,10000", help="how many sessions")
    parser.add_argument("--crowd", type=int, default=1000, help="sessions with a turn each at once (default 1000)")
    parser.add_argument("--clients", type=int, default=500, help="clients of /event (default 500)")
    parser.add_argument("--files", type=int, default=100_000, help="files in the project (default 100000)")
    parser.add_argument("--only", default="messages,sessions,crowd,files", help="parts of it")
    parser.add_argument("--check", action="store_true", help="exit code 1 when growth costs more than it may")
    parser.add_argument("--json", metavar="FILE", help="writes all values there")
    options = parser.parse_args()
    run, started = Run(options), time.monotonic()
    print("milliseconds, medians")
    for part in options.only.split(","):
        getattr(run, part)()
    print(f"\nall of it in {time.monotonic() - started:.0f} s", file=sys.stderr)
    if options.json:
        Path(options.json).write_text(json.dumps(run.results, indent=1))
    for line in run.found:
        print(f"MISSED: {line}")
    return 1 if run.found and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
