//! The order of hooks and events compared with the recordings of OpenCode (`tests/parity/gold`).
//!
//! Compares the machine's events and requests, and the hooks that the tool runtime calls around a tool, in one sequence
//! with what the first plugin saw in the recording. Excluded: start and end of the program, streamed chunks, the
//! permission question (the agent's), and the title request, which runs beside the turn.

use std::path::Path;

use outrigger_kernel::turn::Effect;
use outrigger_protocol::event::Event;
use outrigger_protocol::message::{MessageInfo, PartKind};
use outrigger_protocol::tool::ToolOutcome;
use outrigger_protocol::turn::{Begin, CommandCall, Input, ModelSignal};
use serde_json::{Value, json};

use crate::drive::{Drive, begin};

// ---- the recording ----

fn recorded(scenario: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../../tests/parity/gold/{scenario}/rec.jsonl"));
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|row| row["p"] == "A");
    let (mut out, mut titles) = (Vec::<String>::new(), 0);
    let rows: Vec<Value> = rows.collect();
    let mut title_requests = rows
        .iter()
        .filter(|row| row["hook"] == "chat.params" && row["agent"] == "title")
        .count();
    for row in rows {
        let line = match row["hook"].as_str().unwrap() {
            "<init>" | "config" | "dispose" => continue,
            "event" => match recorded_event(&row) {
                Some(line) => line,
                None => continue,
            },
            // The first system prompts are those of the title requests.
            "experimental.chat.system.transform" if title_requests > 0 => {
                title_requests -= 1;
                titles += 1;
                continue;
            }
            _ if row["agent"] == "title" => continue,
            "tool.definition"
                if out
                    .last()
                    .is_some_and(|last| last == "hook tool.definition") =>
            {
                continue;
            }
            hook => format!("hook {hook}"),
        };
        out.push(line);
    }
    assert_eq!(titles, 1, "{scenario}: one title");
    out
}

fn recorded_event(row: &Value) -> Option<String> {
    let props = &row["props"];
    let kind = row["type"].as_str()?;
    Some(match kind {
        "session.updated" | "session.diff" | "session.idle" | "session.error"
        | "command.executed" => kind.to_owned(),
        "session.status" => format!("{kind} {}", row["status"].as_str()?),
        "message.updated" => message(&props["info"], props["info"].get("parentID").is_some()),
        "message.part.updated" => {
            let status = row["status"]
                .as_str()
                .or(row["part"].as_str().filter(|part| *part == "tool"));
            part(
                row["part"].as_str()?,
                status.unwrap_or_default(),
                props["part"]["time"].get("end").is_some(),
            )
        }
        _ => return None,
    })
}

fn message(info: &Value, assistant: bool) -> String {
    let marks = ["summary", "finish", "error"]
        .iter()
        .filter(|key| info.get(key).is_some())
        .map(|key| format!(" {key}"));
    let done = if info["time"].get("completed").is_some() {
        " completed"
    } else {
        ""
    };
    format!(
        "message {}{}{done}",
        if assistant { "assistant" } else { "user" },
        marks.collect::<String>()
    )
}

fn part(kind: &str, status: &str, ended: bool) -> String {
    format!(
        "part {kind}{}{status}{}",
        if status.is_empty() { "" } else { " " },
        if ended { " end" } else { "" }
    )
}

// ---- ours ----

fn ours(effect: &Effect) -> Vec<String> {
    match effect {
        Effect::PatchSession { patch } if patch.summarize => {
            vec!["session.updated".into(), "session.diff".into()]
        }
        Effect::PatchSession { .. } => vec!["session.updated".into()],
        Effect::Hooks { point: name, .. } => {
            vec![format!("hook {}", name.hook())]
        }
        Effect::PrepareTools { .. } => vec!["hook tool.definition".into()],
        Effect::Publish { event } => vec![match event {
            Event::SessionStatus { status, .. } => {
                format!("session.status {}", json!(status)["type"].as_str().unwrap())
            }
            Event::MessageUpdated { info, .. } => message(
                &json!(info),
                matches!(info.as_ref(), MessageInfo::Assistant(_)),
            ),
            Event::PartUpdated { part: body, .. } => match &body.kind {
                PartKind::Tool(call) => {
                    part("tool", json!(call.state)["status"].as_str().unwrap(), false)
                }
                kind => part(kind.name(), "", json!(body)["time"].get("end").is_some()),
            },
            other => other.kind().to_owned(),
        }],
        Effect::PrepareCompaction { .. }
        | Effect::CallModel { .. }
        | Effect::RunTool { .. }
        | Effect::TrackFiles { .. }
        | Effect::AskLoop { .. }
        | Effect::MakeTitle { .. }
        | Effect::Abort
        | Effect::Finish { .. } => vec![],
    }
}

fn sequence(drive: &Drive) -> Vec<String> {
    let mut out = vec![];
    for (input, effects) in &drive.steps {
        match input {
            Input::ToolStarted { .. } => out.push("hook tool.execute.before".to_owned()),
            Input::ToolDone {
                outcome: ToolOutcome::Completed { .. },
                ..
            } => out.push("hook tool.execute.after".to_owned()),
            _ => {}
        }
        out.extend(effects.iter().flat_map(ours));
    }
    out
}

fn turn(command: bool) -> Drive {
    let command = command.then(|| CommandCall {
        name: "c".into(),
        arguments: String::new(),
    });
    let mut drive = Drive::new(Begin {
        wants_title: true,
        command,
        ..begin()
    });
    drive.prepare();
    drive
}

fn last_words(drive: &mut Drive) {
    drive.prepare();
    drive.started();
    drive.text(0, "Done.");
    drive.finished("stop");
    assert!(drive.is_done());
}

fn same(scenario: &str, drive: &Drive) {
    let (want, got) = (recorded(scenario), sequence(drive));
    assert_eq!(
        got.join("\n"),
        want.join("\n"),
        "{scenario}: ours on the left, the recording on the right"
    );
}

#[test]
fn text() {
    let mut drive = turn(false);
    last_words(&mut drive);
    same("text", &drive);
}

#[test]
fn read() {
    let mut drive = turn(false);
    drive.started();
    drive.model(ModelSignal::TextStart { index: 0 });
    drive.call("c1", "read", "{}");
    drive.tool_started("read");
    drive.model(ModelSignal::TextEnd {
        index: 0,
        text: "Looking.".into(),
    });
    drive.hook();
    drive.tool_completed("read", "content");
    drive.finished("tool-calls");
    last_words(&mut drive);
    same("read", &drive);
}

#[test]
fn parallel() {
    let mut drive = turn(false);
    drive.started();
    drive.model(ModelSignal::TextStart { index: 0 });
    for (id, tool) in [("c1", "read"), ("c2", "glob")] {
        drive.call(id, tool, "{}");
        drive.tool_started(tool);
    }
    drive.model(ModelSignal::TextEnd {
        index: 0,
        text: "Both.".into(),
    });
    drive.hook();
    drive.tool_completed("read", "content");
    drive.tool_completed("glob", "a\nb");
    drive.finished("tool-calls");
    last_words(&mut drive);
    same("parallel", &drive);
}

#[test]
fn reasoning() {
    let mut drive = turn(false);
    drive.started();
    drive.model(ModelSignal::ReasoningStart { index: 0 });
    drive.model(ModelSignal::ReasoningEnd {
        index: 0,
        text: "Hmm.".into(),
        metadata: None,
    });
    drive.text(1, "Yes.");
    drive.finished("stop");
    same("reasoning", &drive);
}

#[test]
fn command() {
    let mut drive = turn(true);
    last_words(&mut drive);
    same("command", &drive);
}

/// The user refuses: the turn stops after the step.
#[test]
fn permission_refused() {
    let mut drive = turn(false);
    drive.started();
    drive.call("c1", "bash", "{}");
    drive.tool_started("bash");
    drive.tool_failed("bash", "tool.rejected", "no");
    drive.finished("tool-calls");
    assert!(drive.is_done());
    same("permask", &drive);
}

/// OpenCode reports idle twice, once before the message is complete. Outrigger reports it once, when it is true: plugins
/// act on `session.idle`.
#[test]
fn the_model_refuses_the_key() {
    let mut drive = turn(false);
    drive.model_failed();
    let want = recorded("model401").join("\n");
    let idle = "session.status idle\nsession.idle\n";
    assert_eq!(sequence(&drive).join("\n"), want.replacen(idle, "", 1));
}
