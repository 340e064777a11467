//! A plugin that answers `block {code, message, details}` (C2), through the whole program.

use serde_json::{Value, json};

use crate::support::*;

/// Returns a plugin that refuses at one point, and writes down the failing hooks it is notified of.
fn refusing(at: &str) -> String {
    format!(
        r#"
import fs from "node:fs"
class HookBlock extends Error {{
  name = "HookBlock"
  code = "acme.held"
  details = {{ rule: 7 }}
}}
export const Guard = async ({{ directory }}) => ({{
  "{at}": async () => {{ throw new HookBlock("not this one") }},
  "hook.on_error": async (input) => fs.appendFileSync(directory + "/failed.txt", input.point + " " + input.outcome + "\n"),
}})
"#
    )
}

fn session(world: &World) -> String {
    let list = world.cli(&["session", "list", "--json"]).ok();
    list.json()[0]["id"].as_str().unwrap().to_owned()
}

/// Returns decision, rule and text of the refusal from the audit and the trace.
fn written(world: &World, point: &str) -> (String, String, String) {
    let audit = world.cli(&["audit", "export", "--kind", "hook"]).ok();
    let mut records = audit.lines().into_iter();
    let record = records.find(|it| it["hookName"] == point).unwrap();
    assert_eq!(record["errored"], false, "{record}");
    let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
    let trace = world.cli(&["plugin", "trace", "--json", &session(world)]);
    let detail = text("detail");
    let quoted = json!(detail).to_string();
    assert!(trace.stdout.contains(&quoted), "{}", trace.stdout);
    (text("decision"), text("policyCheckResult"), detail)
}

const SAID: &str = r#"acme.held: not this one {"rule":7}"#;

#[test]
fn a_refused_prompt_or_request_fails_with_the_plugins_words() {
    for (hook, point) in [
        ("chat.message", "run.before_start"),
        ("llm.before_request", "llm.before_request"),
    ] {
        let world = World::new([done()]);
        world.plugin("guard", &refusing(hook));
        let run = world.run(&["--format", "json", "hi"]);
        assert_ne!(run.code, 0, "{}", run.stdout);
        assert!(world.mock.all_requests().is_empty(), "{hook}");
        let error = run
            .lines()
            .into_iter()
            .find(|it| it["type"] == "error")
            .unwrap();
        let data = json!({
            "code": "acme.held", "details": { "rule": 7 }, "message": "not this one", "plugin": "guard", "point": point
        });
        assert_eq!(
            error["error"],
            json!({"name": "HookBlockedError", "data": data})
        );
        assert_eq!(
            written(&world, point),
            ("block".into(), "passed".into(), SAID.into())
        );
        // It is an answer and no failure.
        assert!(!world.path("failed.txt").exists(), "{hook}");
        world.verify();
    }
}

/// As with a throw in OpenCode, the model reads the text and continues. Code and details are stored with
/// the call.
#[test]
fn a_refused_call_is_read_by_the_model_and_kept_with_its_code() {
    let bash = json!({ "command": "echo ran > ran.txt", "description": "x" });
    let world = World::new([turn([call("bash", bash)]), done()]);
    world.plugin("guard", &refusing("tool.execute.before"));
    world.run(&["hi"]).ok();
    assert!(!world.path("ran.txt").exists());
    assert_eq!(world.mock.last().texts("tool"), ["not this one"]);
    let state = &world.parts("tool")[0]["state"];
    assert_eq!(state["status"], "error");
    assert_eq!(
        state["metadata"]["refusal"],
        json!({"code": "acme.held", "details": {"rule": 7}, "plugin": "guard"})
    );
    assert_eq!(
        written(&world, "tool.before_call"),
        ("block".into(), "passed".into(), SAID.into())
    );
    assert!(!world.path("failed.txt").exists());
    world.verify();
}

/// A person sees who refused a call; the model reads the plugin's words alone. A tool names nobody else for its own failure.
#[test]
fn a_throw_is_shown_with_the_plugins_name() {
    let bash = json!({ "command": "echo ran", "description": "x" });
    let world = World::new([
        turn([call("bash", bash), call("blames", json!({}))]),
        done(),
    ]);
    world.plugin("strict", "export const P = async () => ({ 'tool.execute.before': async (i) => { if (i.tool === 'bash') throw Error('no shell today') } })\n");
    world.file(
        ".opencode/tool/blames.ts",
        "export default { description: 'x', args: {}, execute: async (_, context) => {
           context.metadata({ metadata: { refusal: { plugin: 'strict' } } })
           throw Error('my own fault')
         } }\n",
    );
    let run = world.run(&["hi"]).ok();
    let lines: Vec<&str> = run
        .stderr
        .lines()
        .filter(|it| it.contains('✗') || it.contains("Error:"))
        .collect();
    let lines = lines.join("\n");
    assert!(
        lines.contains("✗ bash echo ran refused by plugin strict  "),
        "{lines}"
    );
    assert!(lines.contains("Error: no shell today"), "{lines}");
    assert!(lines.contains("Error: my own fault"), "{lines}");
    assert_eq!(lines.matches("refused by").count(), 1, "{lines}");
    assert_eq!(
        world.mock.last().texts("tool"),
        ["no shell today", "my own fault"]
    );
    world.verify();
}

/// Where the table allows no refusal, it is recorded and reported as an error, and changes nothing.
#[test]
fn a_refusal_where_none_is_allowed_has_no_effect() {
    let world = World::new([done()]);
    world.plugin("guard", &refusing("chat.params"));
    world.run(&["hi"]).ok();
    let requests: Vec<Value> = world
        .mock
        .requests()
        .into_iter()
        .map(|it| it.body)
        .collect();
    assert_eq!(requests.len(), 1);
    let (decision, rule, detail) = written(&world, "llm.before_params");
    assert_eq!(
        (decision.as_str(), rule.as_str()),
        ("refused", "refused: rights")
    );
    assert_eq!(
        detail,
        format!("llm.before_params does not allow a refusal: {SAID}")
    );
    let failed = world.read("failed.txt");
    assert!(
        failed.lines().all(|it| it == "llm.before_params refused"),
        "{failed}"
    );
    world.verify();
}
