#!/usr/bin/env python3
"""Runs the scenarios against an agent binary and records hook calls, model requests and results.

Each scenario gets a fresh git project, a scripted model (mock.mjs) and the recorder plugin (recorder.ts). The binary is
called as `BIN run [args] PROMPT` in the project's folder, or as `BIN serve` for clients (client.py). For each scenario OUT/NAME/ holds rec.jsonl (hooks and
events), llm.jsonl (requests to the model), script.json (the model's turns) and result.json (exit code, output, files).
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import client  # noqa: E402
import gold  # noqa: E402
from mock import Mock  # noqa: E402
from scenarios import SCENARIOS  # noqa: E402

DEFAULT_TOOLS = HERE.parent.parent / ".work" / "tools"
# Variables that would change the measurement: settings and keys of either program, and of the JS runtimes.
DROPPED_PREFIXES = ("OPENCODE", "OUTRIGGER", "XDG_", "BUN_", "NODE_OPTIONS", "REC_", "ANTHROPIC", "OPENAI", "OPENROUTER", "GEMINI", "GOOGLE", "AWS_", "GIT_")
DROPPED_SUFFIXES = ("_API_KEY", "_TOKEN")

MCP_SERVER = r"""
import readline from 'node:readline'
const send = (m) => process.stdout.write(JSON.stringify(m) + '\n')
readline.createInterface({ input: process.stdin }).on('line', (l) => {
  const m = JSON.parse(l)
  if (m.method === 'initialize') send({ jsonrpc: '2.0', id: m.id, result: { protocolVersion: m.params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'echo', version: '1' } } })
  else if (m.method === 'tools/list') send({ jsonrpc: '2.0', id: m.id, result: { tools: [{ name: 'say', description: 'says', inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] } }] } })
  else if (m.method === 'tools/call') send({ jsonrpc: '2.0', id: m.id, result: { content: [{ type: 'text', text: 'mcp says ' + m.params.arguments.text }] } })
  else if (m.id !== undefined) send({ jsonrpc: '2.0', id: m.id, result: {} })
})
"""

NOTES_SERVER = r"""
import readline from 'node:readline'
const send = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\n')
readline.createInterface({ input: process.stdin }).on('line', (l) => {
  const { id, method, params } = JSON.parse(l)
  if (method === 'initialize') send(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {}, resources: {}, prompts: {} }, serverInfo: { name: 'notes', version: '1' }, instructions: 'MCP-INSTRUCTIONS' })
  else if (method === 'tools/list') send(id, { tools: [] })
  else if (method === 'resources/list') send(id, { resources: [{ name: 'b', uri: 'note://b' }, { name: 'a', uri: 'note://a', mimeType: 'text/plain' }] })
  else if (method === 'resources/templates/list') send(id, { resourceTemplates: [{ name: 'any', uriTemplate: 'note://{id}' }] })
  else if (method === 'resources/read') send(id, { contents: [{ uri: params.uri, mimeType: 'text/plain', text: 'NOTE-TEXT' }] })
  else if (method === 'prompts/list') send(id, { prompts: [{ name: 'greet', description: 'greets', arguments: [{ name: 'who' }] }] })
  else if (method === 'prompts/get') send(id, { messages: [{ role: 'user', content: { type: 'text', text: 'Greet ' + params.arguments.who } }] })
  else if (id !== undefined) send(id, {})
})
"""


def fill(value, names):
    """Replaces {NAME} in every string of a JSON value."""
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace("{" + name + "}", text)
        return value
    if isinstance(value, list):
        return [fill(item, names) for item in value]
    if isinstance(value, dict):
        return {key: fill(item, names) for key, item in value.items()}
    return value


def clean_environment():
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(DROPPED_PREFIXES) and not name.endswith(DROPPED_SUFFIXES)
    }


def home_environment(home: Path):
    """HOME and XDG folders inside `home`; nothing that either program would fetch or update by itself."""
    return {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local/share"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_STATE_HOME": str(home / ".local/state"),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "NO_COLOR": "1",
        "OUTRIGGER_TRUST_PROJECT": "1",
    }


def configuration(url, plugins):
    """The opencode.json that both programs read: one scripted model, nothing that leaves the machine."""
    model = {"name": "M1", "tool_call": True, "limit": {"context": 100000, "output": 4000}}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "Mock", "options": {"baseURL": url, "apiKey": "x"}, "models": {"m1": model}}
    return {
        "model": "mock/m1",
        "small_model": "mock/m1",
        "plugin": plugins,
        "autoupdate": False,
        "share": "disabled",
        "provider": {"mock": provider},
    }


def git_init(project: Path):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-qm", "init"]):
        subprocess.run(["git", *arguments], cwd=project, check=True, stdin=subprocess.DEVNULL)


def kill_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def call(command, project, env, timeout):
    """One run of the agent; past the timeout its whole process group is killed."""
    started = time.monotonic()
    process = subprocess.Popen(command, cwd=project, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        stdout, stderr = process.communicate(timeout=timeout)
        code = process.returncode
    except subprocess.TimeoutExpired:
        kill_group(process.pid)
        stdout, stderr = process.communicate()
        code = "timeout"
    kill_group(process.pid)
    return {
        "rc": code,
        "secs": round(time.monotonic() - started, 2),
        "stdout": stdout.decode(errors="replace")[-4000:],
        "stderr": stderr.decode(errors="replace")[-9000:],
    }


def stage_recorder(tools: Path):
    """Puts the recorder beside the npm packages of `tools`, where a plugin's own node_modules would be."""
    if not (tools / "node_modules").is_dir():
        return HERE / "recorder.ts"
    staged = tools / "recorder" / "recorder.ts"
    staged.parent.mkdir(exist_ok=True)
    shutil.copyfile(HERE / "recorder.ts", staged)
    return staged


def tool_module(tools: Path):
    found = os.environ.get("REC_TOOL_MODULE") or str(tools / "node_modules/@opencode-ai/plugin/dist/index.js")
    return found if Path(found).exists() else ""


def make_project(scenario, names, url):
    project = Path(names["PROJ"])
    (project / "hello.txt").write_text("hi there\n")
    for name, content in scenario["files"].items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        servers = {"MCP": MCP_SERVER, "MCP-NOTES": NOTES_SERVER}
        path.write_text(servers[content] if content in servers else fill(content, names))
    config = configuration(url, ["file://" + names["REC"]])
    config.update(fill(scenario["config"], {**names, "URL": url}))
    config = {key: value for key, value in config.items() if value is not None}
    (project / "opencode.json").write_text(json.dumps(config, indent=1))
    git_init(project)


def grant(home: Path, names, url):
    """What the recorder does in the user's place is granted to it: it answers questions, changes calls, sets variables, uses
    a stored credential and sends requests to the model. The folder of the recordings is outside of the project; a plugin of
    the project writes there in one scenario."""
    settings = home / ".config/outrigger/outrigger.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    host = url.split("/")[2]
    write = f"write = [{json.dumps(names['OUT'])}]\n"
    local = str(Path(names["PROJ"]) / ".opencode/plugin/local.js")
    settings.write_text(
        f"[plugins.{json.dumps(names['REC'])}]\napprove = true\nrewrite = true\nmodel = true\nhosts = [{json.dumps(host)}]\n{write}"
        f"[plugins.{json.dumps(local)}]\n{write}"
    )


def run(name, options):
    scenario = SCENARIOS[name]
    out = Path(options.out).resolve() / name
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    tools, home = Path(options.tools).resolve(), Path(options.home).resolve()
    home.mkdir(parents=True, exist_ok=True)
    module = tool_module(tools)
    if "tool" in scenario["mode"].split(",") and not module:
        sys.exit(f"scenario {name} needs @opencode-ai/plugin: run `cargo xtask setup`, or set REC_TOOL_MODULE")
    project = Path(tempfile.mkdtemp(prefix="par-")).resolve()
    names = {"PROJ": str(project), "REC": str(Path(options.recorder or stage_recorder(tools)).resolve()), "OUT": str(out), "TOOLS": str(tools)}
    record, requests, script = out / "rec.jsonl", out / "llm.jsonl", out / "script.json"
    script.write_text(json.dumps(fill({"turns": scenario["turns"]}, names)))
    with Mock(script, requests) as mock:
        grant(home, names, mock.url)
        make_project(scenario, names, mock.url)
        env = {
            **clean_environment(), **home_environment(home), "PWD": str(project),
            "REC_OUT": str(record), "REC_MODE": scenario["mode"], "REC_TOOL_MODULE": module,
            **dict(fill(pair, names).split("=", 1) for pair in options.env), **scenario["env"],
        }
        logs = ["--print-logs"] if options.print_logs else []
        calls = [[*scenario["args"], scenario["prompt"]], *([scenario["follow"]] if scenario["follow"] else [])]
        if scenario["client"]:
            runs = client.play(options.bin, fill(scenario["client"], names), project, env, options.timeout)
        else:
            runs = [call([options.bin, "run", *logs, *arguments], project, env, options.timeout) for arguments in calls]
    files = {
        str(path.relative_to(project)): path.read_text(errors="replace")
        for path in sorted(project.rglob("*.txt"))
        if ".git/" not in str(path)
    }
    (out / "result.json").write_text(json.dumps({"runs": runs, "files": files, "proj": str(project)}, indent=1))
    shutil.rmtree(project, ignore_errors=True)
    if options.gold:
        gold.normalise(out, str(project), str(home))
    hooks, asked = (sum(1 for _ in open(file)) if file.exists() else 0 for file in (record, requests))
    print(f"{name:14} rc={[r['rc'] for r in runs]} secs={[r['secs'] for r in runs]} hooks={hooks} llm={asked}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="the agent binary, called as BIN run [args] PROMPT")
    parser.add_argument("--home", required=True, help="folder used as HOME by all runs")
    parser.add_argument("--out", required=True, help="folder for the recordings")
    parser.add_argument("--only", help="names of scenarios, comma separated")
    parser.add_argument("--timeout", type=int, default=90, help="seconds for one run of the binary (default 90)")
    parser.add_argument("--tools", default=str(DEFAULT_TOOLS), help="folder with node_modules as `cargo xtask setup` makes it")
    parser.add_argument("--recorder", help="another recorder plugin than recorder.ts")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="added to the environment; {PROJ} {REC} {OUT} {TOOLS} are filled in")
    parser.add_argument("--print-logs", action="store_true", help="passes --print-logs, so that result.json holds the log")
    parser.add_argument("--gold", action="store_true", help="takes machine paths and OpenCode's own texts out of the recordings")
    options = parser.parse_args()
    options.bin = shutil.which(options.bin) and str(Path(shutil.which(options.bin)).absolute())
    if not options.bin:
        parser.error("--bin: no such program")
    names = options.only.split(",") if options.only else list(SCENARIOS)
    if unknown := [name for name in names if name not in SCENARIOS]:
        parser.error(f"no scenario named {', '.join(unknown)}; there are: {', '.join(SCENARIOS)}")
    for name in names:
        run(name, options)


if __name__ == "__main__":
    main()
