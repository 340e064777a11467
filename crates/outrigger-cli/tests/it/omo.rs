//! `oh-my-opencode`, unmodified from npm (requirement B7): a test for each of its functions that the requirement names.
//!
//! The package is fetched once and kept, as in `npm.rs`. Its telemetry is switched off with its own variable, and it
//! can reach loopback only.

use std::process::Command;

use serde_json::{Value, json};

use crate::npm::{installed, is_kept, without_npm, world};
use crate::support::*;
use crate::user_grants::granting;

/// Some of its hooks change the calls of other tools.
pub(crate) const MAY_REWRITE: &str = "[plugins.oh-my-opencode]\nrewrite = true\n";
pub(crate) const OMO: &str = "oh-my-opencode@4.19.4";

/// Sets up a project with the plugin, and a model with these turns. Returns `None` if the package is not available.
pub(crate) fn omo(turns: impl IntoIterator<Item = Value>) -> Option<World> {
    let world = world(OMO, turns);
    world.config(json!({ "permission": { "*": "allow" } }));
    let (name, version) = OMO.split_once('@').unwrap();
    // Installing also starts it, which takes seconds.
    if !is_kept(name, version) {
        installed(&world, |command| {
            command.env("OMO_DISABLE_POSTHOG", "1");
        })?;
    }
    Some(world)
}

/// Returns the program with the kept plugin, without its telemetry and without a reachable registry: without the kept
/// folder each command would fetch 400 MB.
pub(crate) fn offline(world: &World, args: &[&str]) -> Command {
    let mut command = world.command(args);
    without_npm(&mut command);
    command.env("OMO_DISABLE_POSTHOG", "1");
    // No access to a network, even if there is one.
    let nobody = "http://127.0.0.1:9";
    command.env("HTTPS_PROXY", nobody).env("HTTP_PROXY", nobody);
    command.env("NO_PROXY", "127.0.0.1,localhost");
    command
}

/// Runs `outrigger run` in the same way.
#[track_caller]
pub(crate) fn run(world: &World, args: &[&str]) -> Done {
    let mut command = offline(world, &[&["run"], args].concat());
    // Some tests add their own plugin after the installation, and nobody is there to be asked.
    command.env("OUTRIGGER_TRUST_CHANGES", "allow");
    world.start(command).end()
}

/// What an API client sees while the plugin is active.
const LOOK: &str = r#"
import { writeFileSync } from "node:fs";
export const Look = async ({ client, directory }) => ({
  event: async ({ event }) => {
    if (event.type !== "session.idle") return;
    const [agents, commands, config] = await Promise.all([client.app.agents(), client.command.list(), client.config.get()]);
    writeFileSync(`${directory}/look.json`, JSON.stringify({ agents: agents.data, commands: commands.data, config: config.data }));
  },
});
"#;

fn strings(list: &Value, key: &str) -> Vec<String> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|item| item[key].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn its_config_hook_brings_agents_in_its_order_commands_servers_and_skills() {
    let Some(world) = omo([
        turn([call("skill", json!({ "name": "git-master" }))]),
        done(),
    ]) else {
        return;
    };
    world.plugin("look", LOOK);
    let run = run(&world, &["ultrawork: look around"]).ok();
    assert!(
        run.stderr.contains("> Sisyphus - ultraworker"),
        "{}",
        run.stderr
    );
    // Three of its servers are out of reach, which takes one line.
    let warnings: Vec<&str> = run
        .stderr
        .lines()
        .filter(|it| it.contains(" WARN "))
        .collect();
    let unreached = "[mcp] cannot reach 3 servers (context7 at mcp.context7.com, grep_app at mcp.grep.app, websearch at mcp.exa.ai)";
    assert!(
        matches!(warnings.as_slice(), [one] if one.contains(unreached)),
        "{warnings:#?}"
    );
    let look = world.json("look.json");
    let agents = strings(&look["agents"], "name");
    assert_eq!(
        agents[..4],
        [
            "Sisyphus - ultraworker",
            "Hephaestus - Deep Agent",
            "Prometheus - Plan Builder",
            "Atlas - Plan Executor"
        ]
    );
    for name in [
        "Metis - Plan Consultant",
        "Momus - Plan Critic",
        "Sisyphus-Junior",
        "explore",
        "librarian",
        "multimodal-looker",
        "oracle",
    ] {
        assert!(
            agents.iter().any(|agent| agent == name),
            "{name}: {agents:?}"
        );
    }
    let agent = |name: &str| {
        let all = look["agents"].as_array().unwrap();
        all.iter()
            .find(|agent| agent["name"] == name)
            .unwrap()
            .clone()
    };
    // The result of its fallback chain: only our provider has a model here.
    assert_eq!(
        agent("oracle")["model"],
        json!({ "providerID": "mock", "modelID": "m1" })
    );
    // It puts `build` behind its own agents, and restricts its subagents.
    assert_eq!(agent("build")["mode"], "subagent");
    assert!(
        agent("explore")["permission"]
            .as_array()
            .unwrap()
            .contains(&json!({ "permission": "task", "pattern": "*", "action": "deny" })),
        "{}",
        agent("explore")["permission"]
    );
    let commands = strings(&look["commands"], "name");
    for name in [
        "debugging",
        "frontend",
        "git-master",
        "goal",
        "handoff",
        "hyperplan",
        "init-deep",
        "playwright",
        "refactor",
        "remove-ai-slops",
        "review-work",
        "security-research",
        "security-review",
        "start-work",
        "stop-continuation",
        "visual-qa",
    ] {
        assert!(
            commands.iter().any(|command| command == name),
            "{name}: {commands:?}"
        );
    }
    let servers: Vec<&String> = look["config"]["mcp"].as_object().unwrap().keys().collect();
    assert_eq!(
        servers,
        ["websearch", "context7", "grep_app", "lsp", "codegraph"]
    );
    // Its local server is running, and its tools are offered next to the plugin's own 14.
    let offered = world.mock.requests()[0].tools();
    for name in [
        "lsp_status",
        "lsp_diagnostics",
        "task",
        "background_output",
        "interactive_bash",
        "look_at",
    ] {
        assert!(
            offered.iter().any(|tool| tool == name),
            "{name}: {offered:?}"
        );
    }
    // The keyword, and one of its skills.
    let asked = world.mock.requests()[0].texts("user").join("\n");
    assert!(asked.starts_with("<ultrawork-mode>"), "{asked}");
    let skill = world.mock.last().texts("tool").remove(0);
    assert!(skill.starts_with("## Skill: git-master"), "{skill}");
}

#[test]
fn its_guards_and_injectors_work_on_tool_calls() {
    let Some(world) = omo([
        turn([call("read", json!({ "filePath": "sub/a.ts" }))]),
        turn([call("task", json!({ "description": "x", "prompt": "y" }))]),
        turn([call(
            "bash",
            json!({ "command": "git status; echo prompt=$GIT_TERMINAL_PROMPT", "description": "x" }),
        )]),
        turn([call(
            "write",
            json!({ "filePath": "hello.txt", "content": "x" }),
        )]),
        turn([call(
            "grep",
            json!({ "pattern": "line", "path": ".", "output_mode": "content" }),
        )]),
        turn([call(
            "skill_mcp",
            json!({ "mcp_name": "none", "tool_name": "x" }),
        )]),
        done(),
    ]) else {
        return;
    };
    granting(&world, MAY_REWRITE);
    world.file("sub/a.ts", "export const a = 1\n");
    world.file("sub/AGENTS.md", "SUB AGENTS RULE\n");
    world.file("sub/README.md", "SUB README\n");
    world.file(
        ".claude/rules/ts.md",
        "---\nglobs: \"**/*.ts\"\n---\nTS RULE\n",
    );
    for n in 0..40 {
        let text =
            format!("a line of file {n} that is long enough to matter where output is truncated\n");
        world.file(&format!("big/{n}.txt"), &text.repeat(100));
    }
    run(&world, &["look around"]).ok();
    let result: Vec<String> = world
        .mock
        .requests()
        .iter()
        .filter_map(|request| request.texts("tool").pop())
        .collect();
    let [read, task, bash, write, grep, skill_mcp] = &result[..] else {
        panic!("{result:#?}")
    };
    // AGENTS and README of the directory, and a conditional rule, after what was read.
    for injected in [
        "[Directory Context:",
        "SUB AGENTS RULE",
        "[Project README:",
        "SUB README",
        "[Match: glob: **/*.ts]\nTS RULE",
    ] {
        assert!(read.contains(injected), "{injected}: {read}");
    }
    assert!(
        task.contains("[task CALL FAILED - IMMEDIATE RETRY REQUIRED]"),
        "{task}"
    );
    assert!(bash.contains("prompt=0"), "{bash}");
    assert_eq!(write, "File already exists. Use edit tool instead.");
    assert_eq!(world.read("hello.txt"), "hi there\n");
    assert!(grep.len() < 200_000, "{}", grep.len());
    assert!(skill_mcp.contains("none"), "{skill_mcp}");
}

#[test]
fn its_session_tools_see_our_sessions_and_look_at_asks_another_model() {
    let Some(world) = omo([
        turn([call("session_list", json!({}))]),
        turn([call("session_search", json!({ "query": "zebra" }))]),
        turn([call(
            "look_at",
            json!({ "file_path": "hello.txt", "goal": "what is it" }),
        )]),
        turn([call("interactive_bash", json!({ "tmux_command": "-V" }))]),
        turn([call("background_output", json!({ "task_id": "none" }))]),
        turn([call("background_cancel", json!({ "all": true }))]),
        done(),
    ]) else {
        return;
    };
    run(&world, &["find the zebra"]).ok();
    let result: Vec<String> = world
        .mock
        .requests()
        .iter()
        .filter_map(|request| request.texts("tool").pop())
        .collect();
    let [list, found, looked, bash, output, cancelled] = &result[..] else {
        panic!("{result:#?}")
    };
    assert!(list.contains("Sisyphus - ultraworker"), "{list}");
    assert!(
        found.contains("Found 1 matches") && found.contains("find the zebra"),
        "{found}"
    );
    // The script has no turn for the child session of `multimodal-looker`, which offers no tools, so it gets the title.
    assert_eq!(looked, "A title");
    // The question reached that model together with the file's text.
    let requests = world.mock.all_requests();
    let mut bodies = requests.iter().map(|request| request.body.to_string());
    let of_looker = bodies
        .find(|body| body.contains("what is it") && !body.contains("find the zebra"))
        .unwrap();
    assert!(of_looker.contains("hi there"), "{of_looker}");
    assert!(
        bash.starts_with("tmux ") || bash.contains("not found"),
        "{bash}"
    );
    assert_eq!(output, "Task not found: none");
    assert_eq!(
        cancelled,
        "No running or pending background tasks to cancel."
    );
}
