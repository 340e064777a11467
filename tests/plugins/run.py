"""One turn with each published plugin of the second table of docs/plugins-tried.md: does it load, do the calls of the turn run, and what
is refused or left out for want of a grant. README.md says how to run it."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/plugins-tried.md"
SECTION = "## One turn beside OpenCode"
LIMIT = 300
CALLS = [("read", {"filePath": "hello.txt"}), ("bash", {"command": "echo from-the-shell", "description": "says a word"})]
RESULTS = ["hi there", "from-the-shell"]


def plugins():
    """The plugins of the table, as npm specs."""
    section = PAGE.read_text().split(SECTION)[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [f"{name}@{version}" for row in rows for name, version in re.findall(r"`([^`]+)` ([^\s,]+)", row)]


class Model:
    """Streams a turn with two tool calls, then one with a text, and keeps what it was sent."""

    def __init__(self):
        self.requests = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                model.requests.append(body)
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                for choice in model.answer(body):
                    frame = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m1", "choices": [{"index": 0, **choice}]}
                    self.wfile.write(f"data: {json.dumps(frame)}\n\n".encode())
                self.wfile.write(b"data: [DONE]\n\n")

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def answer(self, body):
        offered = {tool["function"]["name"] for tool in body.get("tools") or []}
        answered = any(message["role"] == "tool" for message in body["messages"])
        calls = [] if answered else [call for call in CALLS if call[0] in offered]
        if not calls:
            return [{"delta": {"role": "assistant", "content": "All done."}}, {"delta": {}, "finish_reason": "stop"}]
        tools = [{"index": at, "id": f"call_{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
                 for at, (name, arguments) in enumerate(calls)]
        return [{"delta": {"role": "assistant", "tool_calls": tools}}, {"delta": {}, "finish_reason": "tool_calls"}]

    def turns(self):
        """The requests that offer tools: the others ask for titles."""
        return [body for body in self.requests if body.get("tools")]


def environment(home, bun):
    kept = ROOT / ".work/plugin-cache"
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "TMPDIR": str(home.parent / "tmp"),
           "npm_config_cache": str(kept / "npm"), "BUN_INSTALL_CACHE_DIR": str(kept / "bun"), "XDG_CACHE_HOME": str(kept / "xdg"),
           "npm_config_userconfig": str(Path.home() / ".npmrc"), "OUTRIGGER_BUN": bun}
    for name, value in os.environ.items():
        if name.lower().startswith("npm_config_") or name.lower().endswith("_proxy") or name == "NODE_EXTRA_CA_CERTS":
            env.setdefault(name, value)
    return env


def grants(text):
    """The lines of grants that a text names."""
    return sorted({f"{key} = {value}" for key, value in re.findall(
        r"\b(approve|rewrite|model|prompt|unix_sockets|ports|hosts|read|write|env) = (true|\[[^\]\n]*\])", text)})


def attempt(spec, options):
    model = Model()
    with tempfile.TemporaryDirectory(prefix="outrigger-plugins-") as folder:
        root = Path(folder).resolve()
        home, project = root / "home", root / "project"
        for each in (home / ".local/share/outrigger", project, root / "tmp"):
            each.mkdir(parents=True)
        (ROOT / ".work/plugin-cache/modules").mkdir(parents=True, exist_ok=True)
        (home / ".local/share/outrigger/modules").symlink_to(ROOT / ".work/plugin-cache/modules")
        (project / "hello.txt").write_text("hi there\n")
        provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": model.url, "apiKey": "x"},
                    "models": {"m1": {"tool_call": True, "limit": {"context": 100_000, "output": 4000}}}}
        settings = {"model": "mock/m1", "small_model": "mock/m1", "provider": {"mock": provider}, "plugin": [spec], "permission": "allow"}
        (project / "opencode.json").write_text(json.dumps(settings))
        if options.grant:
            name = spec.rpartition("@")[0]
            lines = "".join(f"{grant}\n" for grant in options.grant)
            (home / ".config/outrigger").mkdir(parents=True)
            (home / ".config/outrigger/outrigger.toml").write_text(f'[plugins."{name}"]\n{lines}')
        env = environment(home, options.bun)

        def outrigger(*words):
            try:
                done = subprocess.run([options.bin, *words], cwd=project, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                                      text=True, errors="replace", timeout=LIMIT)
                return done.returncode, done.stdout, done.stderr
            except subprocess.TimeoutExpired as error:
                return None, "", f"no end within {LIMIT} s: {error.stderr or ''}"

        outrigger("trust", str(project))
        _, listed, list_errors = outrigger("plugin", "list", "--json")
        code, _, errors = outrigger("run", "do it")
        model.server.shutdown()
    try:
        plugin = json.loads(listed)[0]
    except (ValueError, IndexError):
        plugin = {"stage": "none"}
    turns = model.turns()
    results = [str(message.get("content")) for message in (turns[-1]["messages"] if turns else []) if message["role"] == "tool"]
    ran = [any(expected in result for result in results) for expected in RESULTS]
    why = plugin.get("error") or plugin.get("reason") or plugin.get("message") or ""
    return {"plugin": spec, "stage": plugin.get("stage"), "exit": code, "calls": ran, "requests": len(turns),
            "tools": sorted(tool["function"]["name"] for tool in turns[0]["tools"]) if turns else [],
            "roles": [message["role"] for message in turns[0]["messages"]] if turns else [],
            "named": grants("\n".join([listed, list_errors, errors, *results])), "why": why, "errors": errors, "list": plugin,
            "results": [] if all(ran) else results}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--bun", required=True)
    parser.add_argument("--only", action="append", help="a plugin by its name; may be given more than once")
    parser.add_argument("--grant", action="append", help="a line for every plugin, such as `prompt = true`")
    parser.add_argument("--json", help="writes all that was seen there")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    chosen = [spec for spec in plugins() if not options.only or spec.rpartition("@")[0] in options.only]
    if not chosen:
        sys.exit("plugins: none of that name is in the table")
    with ThreadPoolExecutor(options.jobs) as pool:
        seen = list(pool.map(lambda spec: attempt(spec, options), chosen))
    if options.json:
        Path(options.json).write_text(json.dumps(seen, indent=1))
    print(f"{'plugin':55} {'stage':10} read bash tools  named")
    for one in seen:
        ran = ["yes " if it else "no  " for it in one["calls"]]
        print(f"{one['plugin']:55} {one['stage'] or '':10} {' '.join(ran)} {len(one['tools']):5}  {', '.join(one['named'])}")
    failed = [one for one in seen if one["stage"] == "active" and not all(one["calls"])]
    for one in failed:
        print(f"\n{one['plugin']}: {one['results'] or one['errors'][-600:]}")


if __name__ == "__main__":
    main()
