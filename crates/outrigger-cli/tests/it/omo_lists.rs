//! Complete lists of what `oh-my-opencode` contributes (requirement B7), and what it no longer has.
//!
//! The lists are OpenCode 1.18.33's answers with this package, in a project like the one here with no network (`GET
//! /agent`, `/command`, `/config`, `/experimental/tool/ids`; 2026-11-22).

use std::fs;

use serde_json::{Value, json};

use crate::npm::kept;
use crate::omo::{MAY_REWRITE, OMO, offline, omo, run};
use crate::omo_server::serve;
use crate::support::*;
use crate::user_grants::granting;

/// In order, with their modes. Of the bundled agents, `explore` is replaced, and `build` and `plan` come last.
pub(crate) const AGENTS: [(&str, &str); 17] = [
    ("Sisyphus - ultraworker", "primary"),
    ("Hephaestus - Deep Agent", "primary"),
    ("Prometheus - Plan Builder", "primary"),
    ("Atlas - Plan Executor", "primary"),
    ("Metis - Plan Consultant", "subagent"),
    ("Momus - Plan Critic", "subagent"),
    ("Sisyphus-Junior", "subagent"),
    ("build", "subagent"),
    ("compaction", "primary"),
    ("explore", "subagent"),
    ("general", "subagent"),
    ("librarian", "subagent"),
    ("multimodal-looker", "subagent"),
    ("oracle", "subagent"),
    ("plan", "subagent"),
    ("summary", "primary"),
    ("title", "primary"),
];

/// In order, after the bundled `init` and `review`.
pub(crate) const COMMANDS: [&str; 16] = [
    "playwright",
    "frontend",
    "git-master",
    "review-work",
    "remove-ai-slops",
    "init-deep",
    "debugging",
    "security-research",
    "security-review",
    "visual-qa",
    "goal",
    "refactor",
    "start-work",
    "stop-continuation",
    "handoff",
    "hyperplan",
];

/// With their kinds, and the end of their address or command.
const SERVERS: [(&str, &str, &str); 5] = [
    (
        "websearch",
        "remote",
        "https://mcp.exa.ai/mcp?tools=web_search_exa",
    ),
    ("context7", "remote", "https://mcp.context7.com/mcp"),
    ("grep_app", "remote", "https://mcp.grep.app"),
    ("lsp", "local", "lsp-daemon/dist/cli.js mcp"),
    ("codegraph", "local", "codegraph serve --mcp"),
];

/// In order. `interactive_bash` exists if tmux does.
const TOOLS: [&str; 14] = [
    "grep",
    "glob",
    "session_list",
    "session_read",
    "session_search",
    "session_info",
    "background_output",
    "background_cancel",
    "call_omo_agent",
    "look_at",
    "task",
    "skill_mcp",
    "skill",
    "interactive_bash",
];

fn texts(list: &Value) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect()
}

#[test]
fn its_agents_commands_servers_and_tools_are_those_that_opencode_lists() {
    let Some(world) = omo([done()]) else { return };
    let server = serve(&world);
    let agents = server.get("/agent").json(200);
    let agents: Vec<(&str, &str)> = agents
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| {
            (
                agent["name"].as_str().unwrap(),
                agent["mode"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(agents, AGENTS);

    let commands = server.get("/command").json(200);
    let commands: Vec<&str> = commands
        .as_array()
        .unwrap()
        .iter()
        .map(|command| command["name"].as_str().unwrap())
        .collect();
    let of_plugin = commands
        .iter()
        .position(|name| *name == COMMANDS[0])
        .unwrap();
    assert_eq!(commands[..of_plugin], ["init", "review"]);
    assert_eq!(commands[of_plugin..of_plugin + COMMANDS.len()], COMMANDS);

    let config = server.get("/config").json(200);
    assert_eq!(config["default_agent"], AGENTS[0].0);
    let servers: Vec<(&str, &str, String)> = config["mcp"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, entry)| {
            let place = entry["url"]
                .as_str()
                .map(str::to_owned)
                .unwrap_or_else(|| texts(&entry["command"]).join(" "));
            (name.as_str(), entry["type"].as_str().unwrap(), place)
        })
        .collect();
    assert_eq!(servers.len(), SERVERS.len(), "{servers:?}");
    for (found, (name, kind, end)) in servers.iter().zip(SERVERS) {
        assert_eq!((found.0, found.1), (name, kind));
        assert!(found.2.ends_with(end), "{found:?}");
    }

    let listed = world.start(offline(&world, &["plugin", "list", "--json"]));
    let listed = listed.end().ok().json();
    let mut wanted = TOOLS.to_vec();
    if !has_tmux() {
        skip("there is no tmux on PATH: the list of tools is checked without interactive_bash");
        wanted.pop();
    }
    assert_eq!(texts(&listed[0]["tools"]), wanted);
    // All of them are offered; tools of the same name are replaced, not doubled.
    let ids = server.get("/experimental/tool/ids").json(200);
    let ids = texts(&ids);
    for tool in &wanted {
        assert!(ids.contains(tool), "{tool}: {ids:?}");
    }
}

/// Checks whether tmux is installed.
pub(crate) fn has_tmux() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join("tmux").is_file())
}

/// A tool with the name that its hook looks for; OpenCode's own is called `question`.
const ASKS: &str = r#"
export const Asks = async () => ({ tool: { askuserquestion: {
  description: "Asks the user",
  args: {},
  execute: async (args) => JSON.stringify(args.questions.map((question) => question.options.map((option) => option.label))),
} } })"#;

#[test]
fn long_labels_of_questions_are_cut_where_its_hook_finds_its_tool() {
    let label = "a label that is far too long for a button of a dialog";
    let args = json!({ "questions": [{ "question": "Which?", "options": [{ "label": label }, { "label": "short" }] }] });
    let Some(world) = omo([turn([call("askuserquestion", args)]), done()]) else {
        return;
    };
    world.plugin("asks", ASKS);
    granting(&world, MAY_REWRITE);
    run(&world, &["ask me"]).ok();
    let result = world.mock.last().texts("tool").remove(0);
    let labels: Value = serde_json::from_str(&result).unwrap_or_else(|_| panic!("{result}"));
    assert_eq!(labels, json!([["a label that is far too lon...", "short"]]));
}

/// Names from older descriptions are neither among its hooks nor anywhere in its code.
#[test]
fn what_it_no_longer_has_is_not_in_the_package() {
    if omo([]).is_none() {
        return;
    }
    let package = kept("xdg").join(format!(
        "outrigger/plugins/{OMO}/node_modules/oh-my-opencode"
    ));
    let code = fs::read_to_string(package.join("dist/index.js")).unwrap();
    let start = code.find("HookNameSchema = ").unwrap();
    let hooks = &code[start..start + code[start..].find("]);").unwrap()];
    // A cross-check with names that it does have, which must be found this way.
    for there in ["stop-continuation-guard", "tool-pair-validator", "\"goal\""] {
        assert!(hooks.contains(there), "{there}: {hooks}");
    }
    for gone in [
        "session-recovery",
        "thinking-block-validator",
        "ralph-loop",
        "subagent-question-blocker",
        "task-reminder",
    ] {
        assert!(!hooks.contains(gone), "{gone}: {hooks}");
    }
    for gone in [
        "createSessionRecoveryHook",
        "createSubagentQuestionBlockerHook",
        "createTaskReminderHook",
    ] {
        assert!(!code.contains(gone), "{gone}");
    }
}
