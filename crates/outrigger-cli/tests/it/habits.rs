//! Options people are used to from other agents, and the commands that write `opencode.json`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::message::MessageInfo;
use outrigger_store::{SessionFilter, Store};
use serde_json::{Value, json};

use crate::support::*;

/// Returns the object at the end of the output, with the fields that are the same in each run.
fn result(stdout: &str) -> Value {
    let mut result: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert!(result["session_id"].as_str().unwrap().starts_with("ses_"));
    assert!(result["duration_ms"].is_u64());
    for field in ["session_id", "duration_ms"] {
        result.as_object_mut().unwrap().remove(field);
    }
    result
}

#[test]
fn print_exec_and_output_formats_are_known() {
    let world = World::new([
        text("one"),
        text("two"),
        turn([call("glob", json!({ "pattern": "*" }))]),
        text("three"),
        text("four"),
    ]);
    assert_eq!(world.cli(&["-p", "hi"]).ok().stdout, "one\n");
    assert_eq!(world.cli(&["exec", "hi"]).ok().stdout, "two\n");
    let done = world.cli(&["-p", "hi", "--output-format", "json"]).ok();
    assert_eq!(done.stdout.lines().count(), 1, "{}", done.stdout);
    assert_eq!(
        result(&done.stdout),
        json!({
            "type": "result", "subtype": "success", "is_error": false, "result": "three", "num_turns": 2, "total_cost_usd": 0.0,
            "usage": { "input_tokens": 200, "output_tokens": 20, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0 },
        })
    );
    let done = world
        .cli(&["-p", "hi", "--output-format", "stream-json"])
        .ok();
    let kinds: Vec<String> = done
        .stdout
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["type"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(kinds, ["step_start", "text", "step_finish", "result"]);
    // A failure has a result, too.
    let failed = world.cli(&["-p", "hi", "--output-format", "json", "-m", "no/such"]);
    let result: Value = serde_json::from_str(failed.stdout.trim()).unwrap();
    assert_eq!((failed.code, &result["is_error"]), (1, &json!(true)));
}

#[test]
fn a_session_is_named_by_the_start_of_its_id() {
    let world = World::new([text("one"), text("two"), text("three")]);
    world.run(&["first"]).ok();
    world.run(&["second"]).ok();
    let list = world.cli(&["session", "list", "--json"]).ok().json();
    let id = list[1]["id"].as_str().unwrap().to_owned();
    // Session IDs begin with their time, so those of one test differ late.
    let common = id
        .bytes()
        .zip(list[0]["id"].as_str().unwrap().bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let prefix = &id[..=common];
    let shown = world.cli(&["session", "show", prefix]).ok().stdout;
    assert!(shown.contains("first"), "{shown}");
    world
        .run(&["-s", prefix.trim_start_matches("ses_"), "third"])
        .ok();
    assert_eq!(world.mock.last().texts("user"), ["first", "third"]);
    for args in [
        &["session", "show", "ses_"][..],
        &["run", "-s", "ses_", "x"],
    ] {
        world.cli(args).exited(1);
    }
    for args in [
        &["session", "show", &id[..common]][..],
        &["run", "-s", &id[..common], "x"],
    ] {
        let done = world.cli(args).exited(2);
        assert!(
            done.stderr.contains("is the start of 2 session IDs"),
            "{}",
            done.stderr
        );
    }
}

#[test]
fn tokens_and_cost_are_summed_by_day_and_model() {
    let world = World::new([text("one"), text("two")]);
    world.run(&["first"]).ok();
    world.run(&["second"]).ok();
    let rows = world.cli(&["stats", "--json", "--here"]).ok().json();
    assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");
    assert_eq!(
        (&rows[0]["model"], &rows[0]["answers"]),
        (&json!("m1"), &json!(2))
    );
    let sent = rows[0]["input"].as_u64().unwrap();
    assert!(sent > 0, "{rows}");
    let text = world.cli(&["stats", "--days", "1"]).ok().stdout;
    let line = text
        .lines()
        .find(|line| line.starts_with("mock/m1"))
        .unwrap();
    assert!(line.contains(&sent.to_string()), "{text}");
}

#[test]
fn money_is_summed_over_days_and_models() {
    let world = World::new([text("now")]);
    world.run(&["first"]).ok();
    let (store, _) = Store::open(&world.store()).unwrap();
    let session = store.sessions(&SessionFilter::default()).unwrap().remove(0);
    let messages = store.messages(&session.id).unwrap().into_iter();
    let mut answers = messages.filter_map(|it| match it.info {
        MessageInfo::Assistant(answer) => Some(answer),
        MessageInfo::User(_) => None,
    });
    let now = answers.next().unwrap();
    // Two of a day that is over, of two models, and one more of today.
    let day = 24 * 60 * 60 * 1000;
    let records = [
        ("msg_1", 3 * day, "m1", 1.25),
        ("msg_2", 3 * day, "m2", 0.5),
        ("msg_3", 0, "m1", 0.125),
    ]
    .map(|(id, ago, model, cost)| {
        let mut answer = now.clone();
        answer.id = id.into();
        answer.time.created -= ago;
        answer.model_id = model.into();
        answer.cost = cost;
        let event = Event::MessageUpdated {
            session_id: session.id.clone(),
            info: Box::new(MessageInfo::Assistant(answer)),
        };
        LogRecord::Event(Box::new(BusEvent {
            id: id.into(),
            event,
        }))
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let at = now.time.created;
    runtime.block_on(store.append(at, records.into())).unwrap();
    drop(store);
    let shown = |args: &[&str]| {
        let text = world.cli(&[&["stats"], args].concat()).ok().stdout;
        let mut lines: Vec<String> = text
            .lines()
            .filter_map(|line| {
                let (first, cost) = (line.split_whitespace().next()?, line.rsplit_once('$')?.1);
                Some(format!("{first} {cost}"))
            })
            .collect();
        let days = lines.iter_mut().filter(|it| it.starts_with("20"));
        days.enumerate().for_each(|(n, line)| {
            *line = format!("day {n} {}", line.split_once(' ').unwrap().1);
        });
        lines
    };
    assert_eq!(
        shown(&[]),
        [
            "day 0 1.7500",
            "day 1 0.1250",
            "mock/m1 1.3750",
            "mock/m2 0.5000",
            "total 1.8750"
        ]
    );
    let today = ["day 0 0.1250", "mock/m1 0.1250", "total 0.1250"];
    assert_eq!(shown(&["--days", "1"]), today);
    let rows = world.cli(&["stats", "--json"]).ok().json();
    let costs: Vec<Value> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["cost"].clone())
        .collect();
    assert_eq!(costs, [json!(1.25), json!(0.5), json!(0.125)], "{rows}");
}

#[test]
fn servers_and_plugins_are_added_and_removed_and_comments_stay() {
    let world = World::new([]);
    world.file(
        "opencode.json",
        "{\n  // mine\n  \"model\": \"mock/m1\", // small\n  \"plugin\": [\"./a.js\"]\n}\n",
    );
    world.file("a.js", "export default async () => ({})");
    world.file(
        "b.js",
        "export default async () => ({ event: async () => {} })",
    );
    let done = world
        .cli(&[
            "mcp",
            "add",
            "far",
            "--url",
            "http://127.0.0.1:1/mcp",
            "--header",
            "Authorization=Bearer x",
        ])
        .ok();
    assert!(
        done.stderr
            .contains("Authorization is stored in a private file"),
        "{}",
        done.stderr
    );
    world.cli(&["plugin", "install", "./b.js"]).ok();
    assert!(
        world
            .cli(&["plugin", "install", "./b.js"])
            .ok()
            .stdout
            .contains("already")
    );
    // The secret is in a file that only the user can read.
    let text = world.read("opencode.json");
    let (_, secret) = text.split_once("{file:").unwrap();
    let secret = Path::new(secret.split_once('}').unwrap().0).to_owned();
    let mode = fs::metadata(&secret).unwrap().permissions().mode();
    assert_eq!(
        (fs::read_to_string(&secret).unwrap().as_str(), mode & 0o777),
        ("Bearer x", 0o600)
    );
    let folder = secret.parent().unwrap().file_name().unwrap();
    let text = text.replace(folder.to_str().unwrap(), "ID");
    insta::assert_snapshot!(world.plain(&text), @r#"
    {
      // mine
      "model": "mock/m1", // small
      "plugin": ["./a.js", "PROJECT/b.js"],
      "mcp": {
        "far": {
          "type": "remote",
          "url": "http://127.0.0.1:1/mcp",
          "headers": {
            "Authorization": "{file:HOME/.local/share/outrigger/mcp-secrets/ID/Authorization}"
          }
        }
      }
    }
    "#);
    world.cli(&["mcp", "rm", "far"]).ok();
    assert!(!secret.exists());
    world.cli(&["plugin", "remove", "./b.js"]).ok();
    insta::assert_snapshot!(world.read("opencode.json"), @r#"
    {
      // mine
      "model": "mock/m1", // small
      "plugin": ["./a.js"],
      "mcp": {}
    }
    "#);
    for (args, says) in [
        (
            &["mcp", "remove", "far"][..],
            "no opencode.json here has a server `far`",
        ),
        (
            &["plugin", "remove", "none"],
            "no opencode.json here lists a plugin `none`",
        ),
        (&["plugin", "install", "./none.js"], "does not exist"),
    ] {
        let done = world.cli(args).exited(1);
        assert!(done.stderr.contains(says), "{}", done.stderr);
    }
}

/// A plugin can have one table by its ID and one by its location; both must agree.
#[test]
fn disabled_and_enabled_again_a_plugin_runs() {
    let world = World::new([]);
    world.file(
        ".opencode/plugin/a.js",
        "export default async () => ({ event: async () => {} })",
    );
    for _ in 0..2 {
        world.cli(&["plugin", "disable", "a"]).ok();
        let off = world.cli(&["plugin", "list"]).ok().stdout;
        assert!(!off.contains("active"), "{off}");
        world.cli(&["plugin", "enable", "a"]).ok();
        let on = world.cli(&["plugin", "list"]).ok().stdout;
        assert!(on.contains("active       a"), "{on}");
    }
}
