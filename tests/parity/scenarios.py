"""The conversations that both programs run: prompt, scripted model turns, recorder modes, files, configuration.

`{PROJ}` stands for the project's folder and `{REC}` for the recorder plugin's file, wherever a string occurs.
"""

SCENARIOS = {}
DONE = {"text": "All done."}
P = "{PROJ}"


def call(tool, /, **args):
    """One tool call in a model turn."""
    return {"name": tool, "args": args}


def scenario(name, prompt, turns, *, mode="", files=None, config=None, args=None, follow=None, env=None, client=None):
    """Adds a scenario.

    mode: switches of recorder.ts, comma separated; files: written before the run (the texts "MCP" and "MCP-NOTES" mean the
    echo server of run.py); config: merged over opencode.json (`None` takes a key out, `{URL}` is the model's address); args: placed before the prompt; follow: arguments of a
    second run in the same project; env: added to the environment; client: what clients of a server do, instead of a run.
    """
    SCENARIOS[name] = {
        "prompt": prompt,
        "turns": turns,
        "mode": mode,
        "files": files or {},
        "config": config or {},
        "args": args or [],
        "follow": follow,
        "env": env or {},
        "client": client or [],
    }


def bash(command):
    return {"tools": [call("bash", command=command, description="x")]}


READ = {"tools": [call("read", filePath=P + "/hello.txt")]}

# One turn, at most one tool.
scenario("text", "say hi", [DONE])
scenario("read", "read hello.txt", [{"text": "Let me look.", **READ}, DONE])
scenario("reasoning", "think", [{"reasoning": "thinking hard", "text": "Answer."}])
scenario("write", "write it", [{"tools": [call("write", filePath=P + "/new.txt", content="fresh\n")]}, DONE])
scenario("toolerror", "read missing", [{"tools": [call("read", filePath=P + "/missing.txt")]}, DONE])

# Several tools, several steps.
scenario("edit", "edit it", [READ, {"tools": [call("edit", filePath=P + "/hello.txt", oldString="hi there", newString="bye there")]}, DONE])
scenario("parallel", "do both", [{"text": "Both.", "tools": [call("read", filePath=P + "/hello.txt"), call("glob", pattern="*.txt")]}, DONE])
scenario("loop3", "loop", [{"tools": [call("glob", pattern="*.txt")]}, {"tools": [call("grep", pattern="hi")]}, bash("ls"), DONE])

# What a plugin may change at each hook.
scenario("rewrite", "run it", [{"tools": [call("bash", command="echo original", description="prints")]}, DONE], mode="rewrite")
scenario("block", "run it", [bash("echo should-not-run > ran.txt"), DONE], mode="block")
scenario("afterappend", "run it", [bash("echo one"), DONE], mode="after-append")
scenario("msgedit", "say hi", [DONE], mode="msg-edit")
scenario("params", "say hi", [DONE], mode="params,headers")
scenario("system", "say hi", [DONE], mode="system")
scenario("transform", "say hi", [READ, DONE], mode="transform")
scenario("textcomplete", "say hi", [DONE], mode="text")
scenario("tooldef", "say hi", [DONE], mode="def")
scenario("shellenv", "run it", [bash("echo env=$RECORDER_ENV"), DONE], mode="env")

# Tools added by plugins, MCP servers and agents.
scenario("plugintool", "sum", [{"tools": [call("rec_sum", a=2, b=40)]}, DONE], mode="tool")
scenario("client", "client", [{"tools": [call("rec_client")]}, DONE], mode="tool")
scenario("task", "delegate", [{"tools": [call("task", description="sub job", prompt="SUBTASK: say sub", subagent_type="general")]}, {"text": "sub says done"}, DONE])
scenario("mcp", "call mcp", [{"tools": [call("echo_say", text="pong")]}, DONE], files={"mcp.mjs": "MCP"},
         config={"mcp": {"echo": {"type": "local", "command": ["node", P + "/mcp.mjs"], "enabled": True}}})
scenario("mcpresource", "read the note", [
    {"tools": [call("list_mcp_resources")]}, {"tools": [call("list_mcp_resource_templates", server="notes")]},
    {"tools": [call("read_mcp_resource", server="notes", uri="note://a")]}, {"tools": [call("read_mcp_resource", server="none", uri="note://a")]}, DONE],
    files={"mcp.mjs": "MCP-NOTES"}, config={"mcp": {"notes": {"type": "local", "command": ["node", P + "/mcp.mjs"], "enabled": True}}})
scenario("mcpprompt", "world", [DONE], args=["--command", "notes:greet"],
    files={"mcp.mjs": "MCP-NOTES"}, config={"mcp": {"notes": {"type": "local", "command": ["node", P + "/mcp.mjs"], "enabled": True}}})

# Compaction: automatic at the limit, with its hooks, on demand during a turn, after a refusal.
def filled(turn):
    """A turn that fills the model's context."""
    return {**turn, "usage": [97000, 10]}


scenario("compactauto", "read hello.txt", [filled(READ), DONE])
scenario("compactcontext", "read hello.txt", [filled(READ), DONE], mode="compact")
scenario("compactprompt", "say hi", [filled({"text": "one"}), DONE], mode="compact,compact-prompt")
scenario("compactstop", "read hello.txt", [filled(READ), DONE], mode="compact-stop")
scenario("compactanswered", "say hi", [filled({"text": "one"}), DONE])
scenario("compacttwice", "read hello.txt", [filled(READ), READ, filled(READ), DONE])
scenario("compactoff", "read hello.txt", [filled(READ), DONE], config={"compaction": {"auto": False}})
scenario("compactbefore", "first", [{"text": "one"}, filled({"text": "two"}), {"text": "three"}], config={"compaction": {"tail_turns": 1}}, follow=["-c", "second"])
scenario("compacttool", "compact", [{"tools": [call("rec_compact", auto=False)]}, DONE], mode="tool,compact-tool")
scenario("compacttoolauto", "compact", [{"tools": [call("rec_compact", auto=True)]}, DONE], mode="tool,compact-tool")
scenario("compactoverflow", "first", [{"text": "one"}, {"status": 400, "error": "This model's maximum context length is 100 tokens."}, {"text": "two"}], follow=["-c", "second"])

# Logins, models and providers contributed by plugins.
MODEL = {"name": "M", "tool_call": True, "limit": {"context": 100000, "output": 4000}}
KEPT = {"OPENCODE_AUTH_CONTENT": '{"mock":{"type":"api","key":"kept-key"}}'}


def provider(**more):
    """The scripted model as a provider with more models and other options than usual."""
    options = {"baseURL": "{URL}", "apiKey": "x"}
    return {"provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "Mock", "options": options, "models": {"m1": MODEL, "m2": MODEL}, **more}}}


scenario("auth", "say hi", [READ, DONE], mode="auth", env=KEPT)
scenario("provider", "say hi", [DONE], mode="provider", args=["--model", "deepseek/extra"],
         config={"small_model": "deepseek/extra", "provider": {"deepseek": {"options": {"baseURL": "{URL}", "apiKey": "x"}}}})
scenario("smallmodel", "say hi", [DONE], mode="small", config={"small_model": None, **provider()})
scenario("smallnone", "say hi", [DONE], config={"small_model": None, **provider()})

# Settings in the project's files.
scenario("command", "world", [DONE], mode="cfg-agent", args=["--command", "hello"])
scenario("permdeny", "run it", [bash("echo hi"), DONE], config={"permission": {"bash": "deny"}})
scenario("agentsmd", "say hi", [DONE], files={"AGENTS.md": "PROJECT-RULE: always be brief.\n"})
scenario("localplugin", "say hi", [DONE], files={
    ".opencode/plugin/local.js": "import fs from 'node:fs'\nexport const Local = async () => ({ 'chat.message': async (i, o) => fs.appendFileSync(process.env.REC_OUT, JSON.stringify({ p: 'L', hook: 'chat.message', role: o.message.role }) + '\\n') })\n"})
scenario("skill", "use skill", [{"tools": [call("skill", name="tidy")]}, DONE], files={
    ".opencode/skill/tidy/SKILL.md": "---\nname: tidy\ndescription: tidies things\n---\nTIDY-SKILL-BODY\n"})
scenario("continue", "first", [{"text": "one"}, {"text": "two"}], follow=["-c", "second"])

# Failures: a hook that throws, a question without a user, a model that refuses.
scenario("afterthrow", "run it", [bash("echo one"), DONE], mode="after-throw")
scenario("transformdrop", "say hi", [READ, DONE], mode="transform-drop")
scenario("permask", "run it", [bash("echo hi"), DONE], config={"permission": {"bash": "ask"}})
scenario("todo", "plan it", [{"tools": [call("todowrite", todos=[{"content": "one", "status": "in_progress", "priority": "high"}])]}, DONE])
scenario("invalidargs", "read it", [{"tools": [call("read")]}, DONE])
scenario("unknowntool", "use it", [{"tools": [call("nosuchtool", x=1)]}, DONE])
scenario("model401", "say hi", [{"status": 401, "error": "bad key"}])

# Work that a command passes to an agent, unanswered questions, repeated calls.
scenario("subtask", "world", [{"text": "sub says done"}, DONE], args=["--command", "look"],
         config={"command": {"look": {"template": "Look at $ARGUMENTS", "description": "looks", "agent": "general", "subtask": True}}})
scenario("question", "ask me", [{"tools": [call("question", questions=[{"question": "Which?", "header": "W", "options": [{"label": "A", "description": "a"}]}])]}, DONE])
scenario("writtenbybash", "write", [bash("echo x >> hello.txt; echo new > new.txt"), bash("ls"), DONE])

# A subagent with its own subagent, and one that may not have any.
LEAD = {"subagent_depth": 2, "agent": {"lead": {"mode": "subagent", "description": "leads", "permission": {"task": "allow"}}}}
scenario("subsubagent", "delegate", [
    {"tools": [call("task", description="outer", prompt="OUTER", subagent_type="lead")]},
    {"tools": [call("task", description="inner", prompt="INNER", subagent_type="general")]},
    {"text": "inner says done"}, {"text": "outer says done"}, DONE],
    config=LEAD)
scenario("subsubrefused", "delegate", [
    {"tools": [call("task", description="outer", prompt="OUTER", subagent_type="lead")]},
    {"tools": [call("task", description="inner", prompt="INNER", subagent_type="general")]}, {"text": "outer says done"}, DONE],
    config={"agent": LEAD["agent"]})


# What clients of a server do (client.py).
def clients(name, turns, steps, **more):
    scenario(name, "", turns, client=[*steps, {"join": True}], **more)


SLOW = bash("sleep 2; echo slept")
RUNS = {"wait": "bash running"}
SOON = {"pause": 0.5}
ASK = {"config": {"permission": {"bash": "ask"}}}
REPLY = ["POST", "/permission/{ASKED}/reply"]


def asked(number=1):
    return {"wait": "permission.asked", "n": number, "save": {"ASKED": "id"}}


clients("queued", [SLOW, {"text": "both"}], [{"say": "first"}, RUNS, SOON, {"say": "second"}])
clients("queuedatend", [{"text": "one", "delay": 2500}, {"text": "two"}], [{"say": "first"}, {"wait": "message.part.delta"}, {"say": "second"}])
clients("queuedtwo", [{"text": "one", "delay": 3000}, {"text": "two"}], [
    {"say": "first"}, {"wait": "message.part.delta"}, {"say": "second"}, {"said": 2}, {"say": "third"}])
clients("note", [SLOW, {"text": "one"}, {"text": "two"}], [{"say": "first"}, RUNS, SOON, {"say": "by the way", "reply": False}])
clients("noteatend", [{"text": "one", "delay": 2500}, {"text": "two"}], [{"say": "first"}, {"wait": "message.part.delta"}, {"say": "by the way", "reply": False}])
clients("aborttool", [bash("sleep 30"), DONE], [{"say": "first"}, RUNS, {"hook": "shell.env"}, {"send": ["POST", "/session/{SID}/abort"]}, {"join": True}, {"say": "again"}])
clients("abortqueued", [bash("sleep 30"), DONE], [
    {"say": "first"}, RUNS, SOON, {"say": "second"}, {"said": 2}, {"send": ["POST", "/session/{SID}/abort"]}, {"join": True}, {"say": "third"}])
clients("shell", [DONE], [{"send": ["POST", "/session/{SID}/shell", {"agent": "build", "command": "echo from-shell > shell.txt; echo told"}]}, {"say": "what was it"}])
WRITES = {"tools": [call("write", filePath=P + "/new.txt", content="fresh\n")]}
REVERT = {"send": ["POST", "/session/{SID}/revert", {"messageID": "{LAST}"}]}
clients("revert", [WRITES, DONE], [{"say": "write it"}, {"join": True}, REVERT])
clients("unrevert", [WRITES, DONE], [{"say": "write it"}, {"join": True}, REVERT, {"send": ["POST", "/session/{SID}/unrevert"]}])
clients("revertsay", [WRITES, DONE], [{"say": "write it"}, {"join": True}, REVERT, {"say": "go on"}])
clients("permonce", [bash("echo one"), bash("echo one"), DONE], [
    {"say": "run it"}, asked(), {"send": [*REPLY, {"reply": "once"}]}, asked(2), {"send": [*REPLY, {"reply": "once"}]}], **ASK)
clients("permalways", [bash("echo one"), bash("echo two"), DONE], [{"say": "run it"}, asked(), {"send": [*REPLY, {"reply": "always"}]}], **ASK)
clients("permreject", [bash("echo one"), DONE], [{"say": "run it"}, asked(), {"send": [*REPLY, {"reply": "reject"}]}], **ASK)
clients("permcorrect", [bash("echo one"), DONE], [{"say": "run it"}, asked(), {"send": [*REPLY, {"reply": "reject", "message": "use printf"}]}], **ASK)
QUESTION = {"tools": [call("question", questions=[{"question": "Which?", "header": "W", "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}]}])]}
POSED = {"wait": "question.asked", "save": {"POSED": "id"}}
clients("questionanswered", [QUESTION, DONE], [{"say": "ask me"}, POSED, {"send": ["POST", "/question/{POSED}/reply", {"answers": [["B"]]}]}])
clients("questionrejected", [QUESTION, DONE], [{"say": "ask me"}, POSED, {"send": ["POST", "/question/{POSED}/reject"]}])
clients("twosessions", [{"text": "one", "delay": 1500}, {"text": "one"}], [
    {"send": ["POST", "/session", {"title": "other"}], "save": {"OTHER": "id"}}, {"say": "first"}, {"wait": "message.part.delta"}, {"say": "second", "in": "{OTHER}"}])
clients("fork", [DONE], [{"say": "first"}, {"join": True}, {"send": ["POST", "/session/{SID}/fork", {}], "save": {"FORK": "id"}}, {"say": "second", "in": "{FORK}"}])
FORM = {"type": "json_schema", "schema": {"type": "object", "properties": {"answer": {"type": "number"}}, "required": ["answer"]}}
ANSWER = call("StructuredOutput", answer=4)
UNLISTED = {"unlisted": True}
FORMED = {"say": "2+2", "with": {"format": FORM}}
clients("structured", [bash("echo hi"), {"tools": [ANSWER]}, {"text": "next"}], [FORMED, {"join": True}, {"say": "and now"}, UNLISTED])
clients("structuredbeside", [{"text": "So.", "tools": [call("glob", pattern="*.txt"), ANSWER]}], [FORMED, UNLISTED])
clients("structuredmissing", [{"text": "four"}], [FORMED, UNLISTED])
NOBODY = {"model": {"providerID": "nobody", "modelID": "m"}}
clients("nomodel", [DONE], [{"say": "first", "with": NOBODY}, {"join": True}, {"say": "second", "with": {"model": {"providerID": "mock", "modelID": "m1"}}}])
