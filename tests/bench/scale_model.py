#!/usr/bin/env python3
"""The model of `scale.py` and `messages.py` for many requests at once: a process of its own, so that what it costs is nobody's figure.

It says `model on PORT`, and answers by the last message of the user:

hold               begins its answer, and ends it when GET /release comes
stream COUNT MS    so many pieces, with a pause before each
flow COUNT RATE    so many pieces, so many a second
call NAME ARGS     a call of that tool, and a word after its result
anything else      a word

GET /waiting says how many answers are held, GET /last what was sent last.
"""
import asyncio
import json
import resource
import sys
import time

USAGE = {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102}
DONE = "Done."


class Model:
    def __init__(self):
        self.held, self.release, self.last = 0, asyncio.Event(), b""

    async def connection(self, reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *headers = head.decode("latin-1").split("\r\n")
                length = next((int(line.split(":")[1]) for line in headers if line.lower().startswith("content-length:")), 0)
                await self.answer(first.split(" ")[1], await reader.readexactly(length), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def answer(self, path, body, writer):
        if path == "/waiting":
            return self.whole(writer, str(self.held).encode())
        if path == "/release":
            self.release.set()
            self.held, self.release = 0, asyncio.Event()
            return self.whole(writer, b"ok")
        if path == "/last":
            return self.whole(writer, self.last)
        self.last = body
        # Only the end is parsed: otherwise a long history would measure this program.
        said, is_answered = last_words(body)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        word, _, rest = said.partition(" ")
        delta(writer, {"role": "assistant", "content": ""})
        if word == "call" and not is_answered:
            name, _, arguments = rest.partition(" ")
            call = {"index": 0, "id": f"call_{id(body)}", "type": "function", "function": {"name": name, "arguments": arguments.splitlines()[0]}}
            delta(writer, {"tool_calls": [call]})
            return self.end(writer, "tool_calls")
        if word == "hold":
            delta(writer, {"content": "piece "})
            await writer.drain()
            self.held += 1
            await self.release.wait()
        if word == "stream":
            count, pause = rest.split()[:2]
            for _ in range(int(count)):
                await asyncio.sleep(int(pause) / 1000)
                delta(writer, {"content": "piece "})
                await writer.drain()
        if word == "flow":
            await flow(writer, *map(int, rest.split()[:2]))
        delta(writer, {"content": DONE})
        return self.end(writer, "stop")

    def end(self, writer, reason):
        delta(writer, {}, reason)
        frame(writer, {"choices": [], "usage": USAGE})
        chunk(writer, "data: [DONE]\n\n")
        writer.write(b"0\r\n\r\n")

    def whole(self, writer, answer):
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {len(answer)}\r\n\r\n".encode() + answer)


async def flow(writer, count, rate):
    """By the clock: what is late is made up for, each piece in a chunk of its own."""
    started, sent = time.monotonic(), 0
    while sent < count:
        await asyncio.sleep(0.001)
        due = min(count, int((time.monotonic() - started) * rate))
        for _ in range(due - sent):
            delta(writer, {"content": "piece "})
        sent = due
        await writer.drain()


def last_words(body):
    """What the user said last, and whether a tool has answered since."""
    tail = body[max(body.rfind(b'{"role":"user"'), 0):].decode()
    content = json.JSONDecoder().raw_decode(tail)[0].get("content", "")
    # OpenCode adds its own texts as separate parts.
    said = content if isinstance(content, str) else next((part["text"] for part in content if "text" in part), "")
    return said, '{"role":"tool"' in tail


def chunk(writer, line):
    writer.write(f"{len(line.encode()):x}\r\n{line}\r\n".encode())


def frame(writer, more):
    chunk(writer, "data: " + json.dumps({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m1", **more}) + "\n\n")


def delta(writer, content, reason=None):
    frame(writer, {"choices": [{"index": 0, "delta": content, "finish_reason": reason}]})


async def main():
    server = await asyncio.start_server(Model().connection, "127.0.0.1", 0, limit=2**26, backlog=4096)
    print(f"model on {server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        sys.exit(0)
