#!/usr/bin/env python3
"""What a conversation costs those who look at it (`/outrigger/v1`):

late      a client comes to a session of many messages: the list of conversations, the newest page, the first bytes of its
          stream. Goal: within 100 ms and 1 MB
live      so many clients follow one turn that streams so many deltas a second. Each counts the pieces; none may be missed. What
          of the turn's time the model did not take is said, and the CPU of the server

`scale_model.py` is the model; the history is written through the store's own crate.
"""
import argparse
import asyncio
import json
import os
import statistics
import sys
import time

from scale_crowd import Http, percentile, timed, turn
from scale_world import Client, World, fail

# Required figures.
MAX_FIRST_SCREEN_MS, MAX_FIRST_SCREEN_BYTES = 100, 2**20


def cpu(pid):
    """Seconds of CPU of a process so far."""
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def late(world, fill, count, runs):
    session = world.run(lambda server: Client(server.url).json("POST", "/session", {"title": "long"})["id"])
    world.filled(fill, "messages", session, count)

    def work(server):
        figures = {"first screen": [], "bytes": []}
        for _ in range(runs):
            started, size = time.perf_counter(), 0
            client = Client(server.url)
            size += len(client.send("GET", "/outrigger/v1/conversation?limit=50")[1])
            text = client.send("GET", f"/outrigger/v1/conversation/{session}/message?limit=50")[1]
            page = json.loads(text)
            if len(page["entries"]) < 50:
                fail(f"a page of {len(page['entries'])} entries: {text[:500]}")
            size += len(text) + asyncio.run(first_bytes(server.url, session, page["event"]))
            figures["first screen"].append(time.perf_counter() - started)
            figures["bytes"].append(size)
        return figures

    return world.run(work)


async def first_bytes(url, session, event):
    connection = Http(url)
    await connection.head("GET", f"/outrigger/v1/conversation/{session}/stream?after={event}")
    return len(await connection.chunk())


async def follow(connection, session, got, ready):
    """Counts the pieces that come beside the entries."""
    await connection.head("GET", f"/outrigger/v1/conversation/{session}/stream")
    kept = await connection.chunk()
    ready.set()
    while True:
        *items, kept = kept.split(b"\n\n")
        for item in items:
            if b'"type":"delta"' in item:
                got["pieces"] += item.count(b"piece ")
            elif b'"type":"status"' in item and b'"idle"' in item:
                got["idle"] = time.perf_counter()
                return
        kept += await connection.chunk()


async def live(server, clients, count, rate, limit):
    connection = Http(server.url)
    session = (await connection.ask("POST", "/session", {"title": "followed"}))["id"]
    await turn(connection, session, "hello")
    got = [{"pieces": 0, "idle": None} for _ in range(clients)]
    ready = [asyncio.Event() for _ in got]
    tasks = [asyncio.create_task(follow(Http(server.url), session, of, is_ready)) for of, is_ready in zip(got, ready)]
    await asyncio.wait_for(asyncio.gather(*(event.wait() for event in ready)), limit)
    before = cpu(server.pid)
    took = await asyncio.wait_for(timed(turn(connection, session, f"flow {count} {rate}")), limit)
    ended = time.perf_counter()
    await asyncio.wait_for(asyncio.gather(*tasks), limit)
    return {
        "turn": [took], "behind": [took - count / rate], "lag": [max(0.0, max(of["idle"] for of in got) - ended)],
        "cpu": [cpu(server.pid) - before], "pieces each": [statistics.median(of["pieces"] for of in got)],
        "missed": [sum(count - of["pieces"] for of in got)],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--fill", required=True)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--json")
    parser.add_argument("--check", action="store_true", help="fail where a goal is missed")
    options = parser.parse_args()
    with World(os.path.abspath(options.ours)) as world:
        screen = late(world, os.path.abspath(options.fill), options.messages, options.runs)
        stream = world.run(lambda server: asyncio.run(live(server, options.clients, options.rate * options.seconds, options.rate, 120)))
    middle, slow = statistics.median(screen["first screen"]) * 1000, percentile(screen["first screen"], 0.95) * 1000
    size = max(screen["bytes"])
    print(f"late client of {options.messages:,} messages: first screen {middle:.1f} ms, p95 {slow:.1f} ms (goal: {MAX_FIRST_SCREEN_MS}), {size / 1000:.0f} KB (goal: {MAX_FIRST_SCREEN_BYTES / 1000:.0f})")
    of = {name: values[0] for name, values in stream.items()}
    print(f"{options.clients} clients of {options.rate:,} deltas a second, {options.seconds} s: {of['pieces each']:,.0f} pieces each, {of['missed']:,} missed (goal: 0)")
    print(f"the turn took {of['turn']:.2f} s, {of['behind']:.2f} s more than its model; the last client saw its end {of['lag'] * 1000:.0f} ms later; CPU of the server {of['cpu']:.2f} s")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"late": screen, "live": stream}, file, indent=1)
    if options.check and (slow > MAX_FIRST_SCREEN_MS or size > MAX_FIRST_SCREEN_BYTES or of["missed"]):
        sys.exit("bench messages: a goal is missed")


if __name__ == "__main__":
    main()
