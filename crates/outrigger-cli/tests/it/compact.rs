//! Compaction with the real program: its output, its hooks, and kills. For the rest, see `compaction.rs` of outrigger-server.

use serde_json::{Value, json};

use crate::support::*;

/// Returns a turn whose request used this many tokens.
pub(crate) fn filled(mut turn: Value, tokens: u64) -> Value {
    turn["usage"] = json!([tokens, 10]);
    turn
}

/// Returns the roles of the last session's messages, with `summary` and `compaction` for those of a compaction.
pub(crate) fn roles(world: &World) -> Vec<String> {
    let session = world.export();
    let role = |message: &Value| {
        let compaction = message["parts"][0]["type"] == "compaction";
        match &message["info"]["role"] {
            _ if compaction => "compaction".to_owned(),
            _ if message["info"]["summary"] == true => "summary".to_owned(),
            role => role.as_str().unwrap().to_owned(),
        }
    };
    let messages = session["messages"].as_array().unwrap();
    messages.iter().map(role).collect()
}

/// Returns the texts of a request after its system prompt, as `role: text`.
pub(crate) fn said(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().unwrap();
    let line = |message: &Value| {
        let text = match &message["content"] {
            Value::Array(parts) => parts
                .iter()
                .filter_map(|p| p["text"].as_str())
                .collect::<Vec<_>>()
                .join("+"),
            other => other.as_str().unwrap_or_default().to_owned(),
        };
        format!("{}: {text}", message["role"].as_str().unwrap())
    };
    let not_system = |message: &&Value| message["role"] != "system";
    messages.iter().filter(not_system).map(line).collect()
}

/// Returns what a hook wrote into a file of the project, one JSON value per line.
pub(crate) fn noted(world: &World, name: &str) -> Vec<Value> {
    let parse = |line: String| serde_json::from_str(&line).unwrap();
    world.lines(name).into_iter().map(parse).collect()
}

fn read_hello() -> Value {
    turn([call("read", json!({ "filePath": "hello.txt" }))])
}

#[test]
fn a_full_context_is_compacted_behind_the_step_and_the_turn_goes_on() {
    let world = World::new([filled(read_hello(), 97_000), done()]);
    let run = world.run(&["look"]).ok();
    assert_eq!(run.stdout, "All done.\n", "the summary is not an answer");
    assert!(run.stderr.contains("making a summary"), "{}", run.stderr);
    assert_eq!(
        roles(&world),
        [
            "user",
            "assistant",
            "compaction",
            "summary",
            "user",
            "assistant"
        ]
    );
    let part = &world.parts("compaction")[0];
    assert_eq!(
        (&part["auto"], &part["overflow"]),
        (&json!(true), &json!(false))
    );
    let requests = world.mock.requests();
    let summary = said(&requests[1].body);
    assert!(requests[1].is_summary);
    assert!(
        summary[0].contains("[Assistant tool call]: read("),
        "{summary:?}"
    );
    let last = said(&requests[2].body);
    assert_eq!(
        last[..2],
        ["user: What did we do so far?", "assistant: The summary."]
    );
    assert!(
        last.last().unwrap().starts_with("user: Go on with"),
        "{last:?}"
    );
    let texts = world.parts("text");
    let own: Vec<_> = texts.iter().filter(|p| p["synthetic"] == true).collect();
    assert_eq!(own.len(), 1, "{texts:?}");
    assert_eq!(own[0]["metadata"], json!({ "compaction_continue": true }));
    world.verify();
}

#[test]
fn a_context_that_is_full_already_is_compacted_before_the_answer() {
    let world = World::new([filled(text("one"), 97_000), text("two")]);
    world.config(json!({ "compaction": { "auto": false } }));
    world.run(&["first-question"]).ok();
    assert_eq!(roles(&world), ["user", "assistant"], "compaction is off");
    world.config(json!({ "compaction": { "auto": true } }));
    assert_eq!(world.run(&["-c", "second-question"]).ok().stdout, "two\n");
    assert_eq!(
        roles(&world),
        [
            "user",
            "assistant",
            "user",
            "compaction",
            "summary",
            "user",
            "assistant"
        ]
    );
    let last = said(&world.mock.last().body);
    assert_eq!(last[2], "user: second-question", "{last:?}");
    world.verify();
}

const HOOKS: &str = "
import fs from 'node:fs'
const note = (x) => fs.appendFileSync('noted.jsonl', JSON.stringify(x) + '\\n')
export const P = async () => ({
  'experimental.session.compacting': async (input, output) => {
    note({ hook: 'compacting', input: Object.keys(input), output })
    CHANGE
  },
  'experimental.chat.messages.transform': async (input, output) => note({ hook: 'messages', n: output.messages.length }),
  'experimental.chat.system.transform': async () => note({ hook: 'system' }),
  'chat.params': async (input) => note({ hook: 'params', agent: input.agent }),
  'chat.headers': async (input) => note({ hook: 'headers', agent: input.agent }),
  'experimental.compaction.autocontinue': async (input, output) => {
    note({ hook: 'autocontinue', input: Object.keys(input).sort(), provider: Object.keys(input.provider), agent: input.agent,
      model: input.model.id, role: input.message.role, overflow: input.overflow, output })
    output.enabled = GO_ON
  },
  event: async ({ event }) => { if (event.type === 'session.compacted') note({ hook: 'compacted' }) },
})
";

fn hooks(change: &str, go_on: bool) -> String {
    HOOKS
        .replace("CHANGE", change)
        .replace("GO_ON", &go_on.to_string())
}

#[test]
fn hooks_see_and_change_a_compaction() {
    let turns = || [filled(read_hello(), 97_000), done()];
    let added = World::new(turns());
    added.plugin("p", &hooks("output.context.push('ADDED-CONTEXT')", true));
    added.run(&["go"]).ok();
    let prompt = said(&added.mock.requests()[1].body).remove(0);
    assert!(
        prompt.contains("## Goal") && prompt.ends_with("\n\nADDED-CONTEXT"),
        "{prompt}"
    );
    let order: Vec<_> = noted(&added, "noted.jsonl")
        .iter()
        .map(|n| n["hook"].as_str().unwrap().to_owned())
        .collect();
    let from = order.iter().position(|hook| hook == "compacting").unwrap();
    assert_eq!(
        order[from..from + 6],
        [
            "compacting",
            "messages",
            "system",
            "params",
            "headers",
            "autocontinue"
        ]
    );
    let noted_there = noted(&added, "noted.jsonl");
    let find = |hook: &str| {
        noted_there
            .iter()
            .find(|n| n["hook"] == hook)
            .cloned()
            .unwrap()
    };
    assert_eq!(find("compacting")["input"], json!(["sessionID"]));
    assert_eq!(find("compacting")["output"], json!({ "context": [] }));
    let asked = find("autocontinue");
    assert_eq!(
        asked["input"],
        json!([
            "agent",
            "message",
            "model",
            "overflow",
            "provider",
            "sessionID"
        ])
    );
    assert_eq!(asked["provider"], json!(["source", "info", "options"]));
    assert_eq!(asked["output"], json!({ "enabled": true }));
    assert_eq!(
        (
            &asked["agent"],
            &asked["model"],
            &asked["role"],
            &asked["overflow"]
        ),
        (&json!("build"), &json!("m1"), &json!("user"), &json!(false))
    );
    assert!(
        noted_there
            .iter()
            .any(|n| n["hook"] == "params" && n["agent"] == "compaction")
    );

    let replaced = World::new(turns());
    replaced.plugin(
        "p",
        &hooks(
            "output.context.push('ADDED'); output.prompt = 'Only files.'",
            true,
        ),
    );
    replaced.run(&["go"]).ok();
    let prompt = said(&replaced.mock.requests()[1].body).remove(0);
    assert!(
        prompt.starts_with("user: Only files.\n\nThe conversation so far:"),
        "{prompt}"
    );
    assert!(
        !prompt.contains("## Goal") && !prompt.contains("ADDED"),
        "{prompt}"
    );

    let stopped = World::new(turns());
    stopped.plugin("p", &hooks("", false));
    stopped.run(&["go"]).ok();
    assert_eq!(
        roles(&stopped),
        ["user", "assistant", "compaction", "summary"]
    );
    assert!(
        noted(&stopped, "noted.jsonl")
            .iter()
            .any(|n| n["hook"] == "compacted")
    );
    stopped.verify();
}

#[test]
fn what_the_user_pinned_stays_word_for_word() {
    let world = World::new([text("one"), text("two")]);
    world.config(json!({ "compaction": { "tail_turns": 0 } }));
    let pin = "
export const P = async () => ({
  'chat.message': async (input, output) => {
    if (output.parts[0].text === 'never-push') output.parts[0].metadata = { pinned: true }
  },
})
";
    world.plugin("pin", pin);
    world.run(&["never-push"]).ok();
    world.run(&["-c", "--command", "compact"]).ok();
    world.run(&["-c", "second-question"]).ok();
    assert_eq!(
        said(&world.mock.last().body),
        [
            "user: What did we do so far?",
            "assistant: The summary.",
            "user: never-push",
            "user: second-question"
        ]
    );
}

/// A turn with a compaction in the middle, killed at each of these points, has the same result.
#[test]
fn killed_in_a_compaction_the_turn_goes_on() {
    let kill = |point: &str, n: usize| -> bool {
        let world = World::with(Mock::new([filled(read_hello(), 97_000), done()]).by_compaction());
        let what = format!("{point}:{n}");
        let killed = world.run_with(&[("OUTRIGGER_FAULT", &what)], &["--pure", "go"]);
        if killed.code == 0 {
            return false;
        }
        killed.exited(137);
        let resumed = world.run(&["--pure", "-c"]);
        if resumed.code == 2 {
            // Killed before anything was stored, or after the last step.
            world.verify();
            return true;
        }
        resumed.ok();
        // A step whose end was not stored counts as ended with an unknown number of tokens, and another one follows.
        let roles = roles(&world);
        let want = ["assistant", "compaction", "summary", "user", "assistant"];
        assert!(
            roles.ends_with(&want.map(str::to_owned)),
            "{what}: {roles:?}"
        );
        let texts = world.parts("text");
        let summaries = texts.iter().filter(|p| p["text"] == "The summary.").count();
        assert_eq!(summaries, 1, "{what}: {texts:?}");
        assert_eq!(texts.last().unwrap()["text"], "All done.", "{what}");
        world.verify();
        true
    };
    for (point, from, step, least) in [
        ("turn.after_step", 12, 2, 6),
        ("store.before_commit", 14, 3, 5),
        ("model.before_call", 1, 1, 3),
    ] {
        let mut kills = 0;
        while kill(point, from + kills * step) {
            kills += 1;
        }
        assert!(kills >= least, "{point} was passed {kills} times");
    }
}
