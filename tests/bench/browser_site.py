"""The site of `bench browser`: MiniWoB++'s pages on loopback, each with a fixed seed, and a few pages on which an action has no effect.

What an episode came to is told by its page, in a request of its own at the end: the driver never sees it.
"""

import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".png": "image/png", ".gif": "image/gif"}

# Behind MiniWoB++'s core.js. The clock of an episode is longer than its own: what is measured is whether a task is solved and what an action
# costs, not whether it is done within ten seconds beside other work. The display of rewards is hidden, as it is from MiniWoB++'s own agents.
HARNESS = """
;(() => {
  const { seed, run } = core.QueryString
  let pressed = 0
  addEventListener('pointerdown', (event) => { if (event.isTrusted) pressed++ }, true)
  const style = document.createElement('style')
  style.textContent = '#reward-display, #click-canvas { display: none !important }'
  document.head.append(style)
  console.log = () => {}
  const begin = core.startEpisodeReal, end = core.endEpisode
  const show = core.startEpisode
  core.startEpisode = () => {
    show()
    core.startEpisode = show
    core.EPISODE_MAX_TIME = 180000
    Math.seedrandom(seed)
    begin()
  }
  core.endEpisode = (reward, ...more) => {
    const isOpen = core.EP_TIMER !== null
    end(reward, ...more)
    if (isOpen) navigator.sendBeacon('/reward', JSON.stringify({ run, reward, clicks: pressed }))
  }
})()
"""

# Pages on which the named action has no effect, or another one: kind of action, target, input, page.
TRAPS = {
    "nothing listens": ("click", "button", "Pay", "", "<button>Pay</button>"),
    "covered": ("click", "button", "Pay", "", "<button onclick=\"document.title='paid'\">Pay</button><div style='position:fixed;inset:0'></div>"),
    "disabled": ("click", "button", "Pay", "", "<button disabled>Pay</button>"),
    "handler throws": ("click", "button", "Pay", "", "<button onclick=\"throw new Error('no stock')\">Pay</button>"),
    "link is held back": ("click", "link", "Next", "", "<a href='/trap/end' onclick='event.preventDefault()'>Next</a>"),
    "checkbox is held back": ("click", "checkbox", "Agree", "", "<label><input type=checkbox onclick='event.preventDefault()'>Agree</label>"),
    "field changes what is typed": ("fill", "textbox", "Code", "abc", "<input aria-label=Code oninput='this.value = this.value.toUpperCase()'>"),
    "field is too short": ("fill", "textbox", "Code", "abcdef", "<input aria-label=Code maxlength=3>"),
    "field empties itself": ("fill", "textbox", "Code", "abc", "<input aria-label=Code oninput=\"this.value = ''\">"),
    "field is read-only": ("fill", "textbox", "Code", "abc", "<input aria-label=Code readonly>"),
    "field empties itself late": ("fill", "textbox", "Code", "abc", "<input aria-label=Code oninput=\"setTimeout(() => this.value = '', 50)\">"),
    "list goes back": ("select", "combobox", "Size", "Large", "<select aria-label=Size onchange='this.selectedIndex = 0'><option>Small<option>Large</select>"),
}
# The same kinds of action on pages where they work.
HONEST = {
    "click": ("click", "button", "Pay", "", "<button onclick=\"this.textContent = 'Paid'\">Pay</button>"),
    "link": ("click", "link", "Next", "", "<a href='/trap/end'>Next</a>"),
    "checkbox": ("click", "checkbox", "Agree", "", "<label><input type=checkbox>Agree</label>"),
    "fill": ("fill", "textbox", "Code", "abc", "<input aria-label=Code>"),
    "select": ("select", "combobox", "Size", "Large", "<select aria-label=Size><option>Small<option>Large</select>"),
}


class Site:
    """Serves the tasks; `reward` waits for what a run came to."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.told = {}
        self.changed = threading.Condition()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
                self.answer(*site.page(path))

            def do_POST(self):
                said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with site.changed:
                    site.told[said["run"]] = said
                    site.changed.notify_all()
                self.answer(204, "text/plain", b"")

            def answer(self, status, kind, body):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def page(self, path):
        if path == "/favicon.ico":
            return 204, "image/png", b""
        if path.startswith("/trap/"):
            name = path.removeprefix("/trap/")
            found = TRAPS.get(name) or HONEST.get(name)
            body = found[-1] if found else "The end."
            return 200, TYPES[".html"], f"<!doctype html><title>{name}</title>{body}".encode()
        file = (self.folder / path.lstrip("/")).resolve()
        if not file.is_relative_to(self.folder.resolve()) or not file.is_file():
            return 404, "text/plain", b"there is none"
        body = file.read_bytes()
        if path.endswith("/core/core.js"):
            body += HARNESS.encode()
        return 200, TYPES.get(file.suffix, "application/octet-stream"), body

    def kinds(self):
        return {file.stem for file in (self.folder / "miniwob").glob("*.html")}

    def address(self, kind, seed, run):
        return f"{self.url}/miniwob/{kind}.html?seed={seed}&run={run}"

    def reward(self, run, wait):
        """What the page told at the end of a run; `None` where it did not end."""
        with self.changed:
            self.changed.wait_for(lambda: run in self.told, wait)
            return self.told.get(run)
