"""Many at once: sessions with a turn each, and clients that follow all of them on `/event`."""
import asyncio
import json
import resource
import statistics
import time
from urllib.parse import urlparse

from scale_world import AUTHORIZATION, fail, memory, prompt

# Required figures: memory of a session while its turn runs, and the slowdown of the slowest percent.
MAX_BYTES, MAX_SPREAD = 150 * 1000, 5.0


class Http:
    """One connection of many. What is answered is read whole; `events` reads on."""

    def __init__(self, url):
        self.address, self.writer = urlparse(url), None

    async def open(self):
        for left in reversed(range(50)):
            try:
                self.reader, self.writer = await asyncio.open_connection(self.address.hostname, self.address.port, limit=2**24)
                return
            except OSError:
                # The queue of the listener is temporarily full.
                if not left:
                    raise
                await asyncio.sleep(0.05)

    async def head(self, method, path, body=None):
        text = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: {self.address.netloc}\r\nauthorization: {AUTHORIZATION}\r\ncontent-type: application/json\r\ncontent-length: {len(text)}\r\n\r\n"
        # Opened with its first request: the server limits the number of silent connections.
        if not self.writer:
            await self.open()
        self.writer.write(head.encode() + text)
        first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        return int(first.split()[1]), {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}

    async def chunk(self):
        size = int(await self.reader.readline() or b"0", 16)
        data = await self.reader.readexactly(size)
        await self.reader.readline()
        return data

    async def ask(self, method, path, body=None):
        status, headers = await self.head(method, path, body)
        text = b""
        if headers.get("transfer-encoding") == "chunked":
            while data := await self.chunk():
                text += data
        else:
            text = await self.reader.readexactly(int(headers.get("content-length", 0)))
        if status >= 300:
            fail(f"{method} {path}: {status} {text[:500]}")
        return json.loads(text) if text else None


async def timed(work):
    started = time.perf_counter()
    await work
    return time.perf_counter() - started


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


async def turn(connection, session, text):
    answer = await connection.ask("POST", f"/session/{session}/message", prompt(text))
    said = "".join(part.get("text", "") for part in answer["parts"])
    if not said.endswith("Done."):
        fail(f"no answer in {session}: {json.dumps(answer)[:500]}")


async def sessions(world, server, count, limit):
    """A turn in each of so many sessions: first all held while the memory is read, then all from their start to their end."""
    connections = [Http(server.url) for _ in range(count)]
    ids = []
    for number in range(count):
        ids.append((await connections[0].ask("POST", "/session", {"title": f"one of {count}"}))["id"])
    # Exclude the costs of a connection and of the very first turn.
    await turn(connections[0], ids[0], "hello")
    await asyncio.sleep(1)
    idle = memory(server.pid)
    turns = [asyncio.create_task(turn(connection, session, "hold")) for connection, session in zip(connections, ids)]
    until = time.monotonic() + limit
    while (held := int(world.asked("/waiting"))) < count:
        if time.monotonic() > until:
            fail(f"{held} of {count} turns had come to the model after {limit} s")
        if lost := [task for task in turns if task.done()]:
            await lost[0]
        await asyncio.sleep(0.05)
    running = memory(server.pid)
    world.asked("/release")
    await asyncio.wait_for(asyncio.gather(*turns), limit)
    await asyncio.sleep(1)
    after = memory(server.pid)
    started = time.perf_counter()
    took = await asyncio.wait_for(asyncio.gather(*(timed(turn(c, s, "stream 10 100")) for c, s in zip(connections, ids))), limit)
    whole = time.perf_counter() - started
    kept = 0
    for session in ids:
        messages = await connections[0].ask("GET", f"/session/{session}/message")
        answers = [m for m in messages if m["info"]["role"] == "assistant" and m["info"]["time"].get("completed")]
        kept += len(answers) >= 2 and len(messages) == 2 * len(answers)
    return {
        "per session": [(running - idle) / count], "after": [(after - idle) / count], "lost": [count - kept],
        "p50": [statistics.median(took)], "p99": [percentile(took, 0.99)], "slowest": [max(took)], "all": [whole],
    }


async def listen(connection, got, stop):
    """Counts the pieces that come, and when the last one came."""
    await connection.head("GET", "/event")
    kept = b""
    while not stop.is_set():
        kept += await connection.chunk()
        *events, kept = kept.split(b"\n\n")
        for event in events:
            if b'"message.part.delta"' in event:
                got[0] += 1
            if b'"session.idle"' in event:
                got[1] += 1
                got[2] = time.perf_counter()


async def listeners(world, server, count, turns, limit):
    """Turns that stream while so many clients follow every event."""
    connections = [Http(server.url) for _ in range(turns)]
    ids = [(await connection.ask("POST", "/session", {"title": "followed"}))["id"] for connection in connections]
    words = "stream 50 20"
    alone = await asyncio.gather(*(timed(turn(c, s, words)) for c, s in zip(connections, ids)))
    clients, stop = [Http(server.url) for _ in range(count)], asyncio.Event()
    got = [[0, 0, 0.0] for _ in clients]
    tasks = [asyncio.create_task(listen(client, of, stop)) for client, of in zip(clients, got)]
    await asyncio.sleep(1)
    idle = memory(server.pid)
    took = await asyncio.wait_for(asyncio.gather(*(timed(turn(c, s, words)) for c, s in zip(connections, ids))), limit)
    ended, until = time.perf_counter(), time.monotonic() + limit
    while any(of[1] < turns for of in got) and time.monotonic() < until:
        await asyncio.sleep(0.02)
    running = memory(server.pid)
    for task in tasks:
        task.cancel()
    most = max(of[0] for of in got)
    return {
        "turn alone": [statistics.median(alone)], "turn": [statistics.median(took)], "lag": [max(0.0, max(of[2] for of in got) - ended)],
        "events each": [most], "missed": [sum(most - of[0] + turns - of[1] for of in got)], "per client": [(running - idle) / count],
    }


def crowd(world, count, clients, limit=120):
    """Figures of so many sessions at once, and of so many clients of `/event`."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return (
        world.run(lambda server: asyncio.run(sessions(world, server, count, limit))),
        world.run(lambda server: asyncio.run(listeners(world, server, clients, 20, limit))),
    )


def missed(of):
    """What of our own figures is over the requirement."""
    found = []
    if of["per session"][0] > MAX_BYTES:
        found.append(f"a session costs {of['per session'][0] / 1000:.0f} KB while its turn runs; at most {MAX_BYTES // 1000}")
    if of["lost"][0]:
        found.append(f"{of['lost'][0]} turns were lost")
    if of["p99"][0] > MAX_SPREAD * of["p50"][0]:
        found.append(f"the slowest hundredth of the turns takes {of['p99'][0]:.1f} s, the middle {of['p50'][0]:.1f} s; at most {MAX_SPREAD} times as much")
    return found

