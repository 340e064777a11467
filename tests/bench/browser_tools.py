"""The tools that are compared, each through the same door: an MCP server on its standard streams, which starts a Chromium without a window."""

import json
import re
import selectors
import subprocess
import time
from dataclasses import dataclass

import browser_page

# Timeout of a call. A tool that takes longer is broken.
DEADLINE = 60


class Broken(Exception):
    """A tool cannot do this, or is gone."""


@dataclass
class Answer:
    text: str
    is_done: bool
    shows_page: bool = False


class Mcp:
    """A client of one server."""

    def __init__(self, command, env, cwd, log):
        self.process = subprocess.Popen(command, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self.buffer, self.last = b"", 0
        self.ready = selectors.DefaultSelector()
        self.ready.register(self.process.stdout, selectors.EVENT_READ)
        client = {"name": "bench", "version": "1"}
        self.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method, params):
        self.last += 1
        self.send({"id": self.last, "method": method, "params": params})
        deadline = time.monotonic() + DEADLINE
        while True:
            message = json.loads(self._line(deadline))
            if message.get("id") == self.last and "method" not in message:
                if "error" in message:
                    raise Broken(message["error"]["message"])
                return message["result"]

    def _line(self, deadline):
        while b"\n" not in self.buffer:
            if not self.ready.select(max(0, deadline - time.monotonic())):
                raise Broken(f"no answer within {DEADLINE} s")
            read = self.process.stdout.read1(1 << 16)
            if not read:
                raise Broken("the server has ended")
            self.buffer += read
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line

    def call(self, tool, **arguments):
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        text = "\n".join(part.get("text", "") for part in result["content"])
        return text, not result.get("isError", False)

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Outrigger:
    """`outrigger mcp serve`. Its actions show what has changed and say whether they had an effect; the last one of a task expects the end."""

    name = "outrigger"

    def __init__(self, mcp):
        self.mcp, self.is_open = mcp, False

    def call(self, tool, **arguments):
        text, is_ok = self.mcp.call(tool, **arguments)
        status = re.match(r"\w+ t\d+: (\w+)", text)
        return Answer(text, is_ok and (not status or status[1] in ("done", "verified")), is_ok)

    def open(self, url):
        if self.is_open:
            return self.act("navigate", url=url)
        self.is_open = True
        return self.call("browser_open", url=url)

    def act(self, action, node=None, **more):
        if node is not None:
            more["ref"] = node.ref
        return self.call("browser_action", action=action, **more)

    def page(self, text, before):
        return browser_page.outrigger(text, before or browser_page.Page())

    def look(self):
        return self.call("browser_snapshot", full=True)

    def whole(self, node):
        return self.call("browser_snapshot", ref=node.ref) if "…" in node.value else None

    def click(self, node, expected=None):
        return self.act("click", node, **({"expect": [{"text": expected}]} if expected else {}))

    def fill(self, node, text):
        return self.act("fill", node, text=text)

    def type(self, node, text):
        return self.act("type", node, text=text)

    def select(self, node, values):
        return self.act("select", node, values=values)

    def press(self, key, node=None):
        return self.act("press", node, text=key)

    def hover(self, node):
        return self.act("hover", node)

    def drag(self, node, to):
        return self.act("drag", node, to=to.ref)

    def scroll(self, node, to):
        return self.act("scroll", node, by={"x": 0, "y": 100_000 if to == "bottom" else -100_000})


class Extension(Outrigger):
    """The same tools in the browser extension (`extension/tests/browser/serve.mjs`). Each task is a conversation of its own."""

    name = "extension"

    def open(self, url):
        if self.is_open:
            self.act("tab_close")
        self.is_open = True
        self.mcp.call("begin")
        return self.call("browser_open", url=url)


class Playwright:
    """`@playwright/mcp`. Its actions put the page into a file; here it is asked for when a rule needs it."""

    name = "playwright"

    def __init__(self, mcp):
        self.mcp = mcp

    def call(self, tool, **arguments):
        text, is_ok = self.mcp.call(tool, **arguments)
        return Answer(text, is_ok, is_ok and "```yaml" in text)

    def to(self, tool, node, **more):
        return self.call(tool, element=node.name or node.role, target=node.ref, **more)

    def open(self, url):
        return self.call("browser_navigate", url=url)

    def page(self, text, before):
        return browser_page.playwright(text, before or browser_page.Page())

    def look(self):
        return self.call("browser_snapshot")

    def whole(self, node):
        return None

    def click(self, node, expected=None):
        return self.to("browser_click", node)

    def fill(self, node, text):
        return self.to("browser_type", node, text=text)

    def type(self, node, text):
        return self.to("browser_type", node, text=text, slowly=True)

    def select(self, node, values):
        return self.to("browser_select_option", node, values=values)

    def press(self, key, node=None):
        if node is not None:
            self.click(node)
        return self.call("browser_press_key", key=key)

    def hover(self, node):
        return self.to("browser_hover", node)

    def drag(self, node, to):
        return self.call("browser_drag", startTarget=node.ref, endTarget=to.ref)

    def scroll(self, node, to):
        self.click(node)
        return self.press("Control+End" if to == "bottom" else "Control+Home")


class DevTools:
    """`chrome-devtools-mcp`. Its actions show nothing of the page unless they are asked to; here it is asked for when a rule needs it."""

    name = "devtools"

    def __init__(self, mcp):
        self.mcp = mcp

    def call(self, tool, **arguments):
        text, is_ok = self.mcp.call(tool, pageId=1, **arguments)
        return Answer(text, is_ok, is_ok and "uid=" in text)

    def open(self, url):
        return self.call("navigate_page", type="url", url=url)

    def page(self, text, before):
        return browser_page.devtools(text, before or browser_page.Page())

    def look(self):
        return self.call("take_snapshot")

    def whole(self, node):
        return None

    def click(self, node, expected=None):
        return self.call("click", uid=node.ref)

    def fill(self, node, text):
        return self.call("fill", uid=node.ref, value=text)

    def type(self, node, text):
        self.click(node)
        return self.call("type_text", text=text)

    def select(self, node, values):
        if len(values) > 1:
            raise Broken("it chooses one option")
        return self.fill(node, values[0])

    def press(self, key, node=None):
        if node is not None:
            self.click(node)
        return self.call("press_key", key=key)

    def hover(self, node):
        return self.call("hover", uid=node.ref)

    def drag(self, node, to):
        return self.call("drag", from_uid=node.ref, to_uid=to.ref)

    def scroll(self, node, to):
        self.click(node)
        return self.press("Control+End" if to == "bottom" else "Control+Home")
