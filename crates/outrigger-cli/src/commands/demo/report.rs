//! Output of the demo besides the conversation.

use outrigger_protocol::hook::{Decision, HookRecord};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::log::{LogRecord, ToolRecord};
use outrigger_protocol::message::PartKind;
use outrigger_store::{RecordQuery, Scope, Store};
use serde_json::Value;

use super::program::{Program, TestRun};
use super::project::Ground;
use super::quoted;
use crate::failure::Failure;
use crate::terminal::Paint;

/// Starts a section.
pub(super) fn heading(paint: Paint, text: &str) -> String {
    format!("\n{}\n", paint.bold(&format!("── {text} ──")))
}

/// Formats one run of the test, as a terminal would show it.
pub(super) fn test_run(paint: Paint, program: &Program, run: &TestRun) -> String {
    let end = if run.passed {
        paint.good("passed")
    } else {
        paint.bad(&format!("failed, {}", run.end))
    };
    let time = paint.dim(&format!("  {} ms", run.took.as_millis()));
    format!(
        "{} {} test.js  {end}{time}\n{}",
        paint.bold("$"),
        program.name(),
        run.output
    )
}

/// A handler's run, and its tool call.
struct Row {
    hook: HookRecord,
    tool: Option<String>,
    /// The changed argument, before and after.
    rewrite: Option<(Value, Value)>,
}

/// Returns the hooks of a session in log order, with their times.
pub(super) fn hooks(store: &Store, session: &SessionId, paint: Paint) -> Result<String, Failure> {
    let rows = rows(store, session)?;
    if rows.is_empty() {
        return Ok(String::new());
    }
    let mut text = format!(
        "\n{}\n",
        paint.dim(&format!(
            "{:>8}  {:<20} {:<14} {:<9} {:>8}",
            "at", "hook", "tool", "answer", "took"
        ))
    );
    let began = rows.first().map_or(0, |row| row.hook.at);
    for row in rows {
        let hook = &row.hook;
        let (at, tool) = (
            hook.at.saturating_sub(began),
            row.tool.as_deref().unwrap_or_default(),
        );
        let answer = format!("{:<9}", decision(hook.decision));
        let answer = if hook.decision == Decision::Patch {
            paint.good(&answer)
        } else {
            answer
        };
        let changed = hook.changed.join(", ");
        let line = format!(
            "{:>8}  {:<20} {tool:<14} {answer} {:>8}  {changed}",
            format!("+{at} ms"),
            hook.hook,
            format!("{:.1} ms", hook.duration_ms)
        );
        text.push_str(&format!("{}\n", line.trim_end()));
        if let Some((before, after)) = &row.rewrite {
            text.push_str(&format!(
                "{:10}{} {} {}\n",
                "",
                paint.bad(&plain(before)),
                paint.dim("->"),
                paint.good(&plain(after))
            ));
        }
    }
    Ok(text)
}

fn rows(store: &Store, session: &SessionId) -> Result<Vec<Row>, Failure> {
    let query = RecordQuery {
        scope: Some(Scope::Session(session)),
        ..RecordQuery::default()
    };
    let mut rows: Vec<Row> = Vec::new();
    let mut open = 0;
    for stored in store.records(&query)? {
        match stored.record {
            LogRecord::Hook(hook) => rows.push(Row {
                hook: *hook,
                tool: None,
                rewrite: None,
            }),
            // A call's record follows those of its hooks.
            LogRecord::Tool(tool) => {
                let ran = input_of(store, &tool)?;
                let own = rows.iter_mut().skip(open).filter(|row| {
                    row.hook.point.starts_with("tool.") || row.hook.point.starts_with("execute.")
                });
                for row in own {
                    row.tool = Some(tool.call.tool.clone());
                    row.rewrite = rewrite(&row.hook, &tool.call.input, &ran);
                }
                open = rows.len();
            }
            _ => {}
        }
    }
    Ok(rows)
}

/// Returns the final arguments of a call.
fn input_of(store: &Store, tool: &ToolRecord) -> Result<Value, Failure> {
    let message = store.message(&tool.call.session_id, &tool.call.message_id)?;
    let parts = message.map(|message| message.parts).unwrap_or_default();
    Ok(parts
        .into_iter()
        .find_map(|part| match part.kind {
            PartKind::Tool(call) if call.call_id == tool.call.call_id => {
                Some(call.state.input().clone())
            }
            _ => None,
        })
        .unwrap_or_default())
}

/// Returns the first argument that a handler changed, as the model gave it and as it ran.
fn rewrite(hook: &HookRecord, asked: &Value, ran: &Value) -> Option<(Value, Value)> {
    let pointer = hook
        .changed
        .iter()
        .find_map(|path| path.strip_prefix("/args"))?;
    Some((
        asked.pointer(pointer)?.clone(),
        ran.pointer(pointer)?.clone(),
    ))
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn decision(decision: Decision) -> &'static str {
    match decision {
        Decision::Continue => "unchanged",
        Decision::Patch => "changed",
        Decision::Block => "blocked",
        Decision::Refused => "refused",
        Decision::FailedOpen | Decision::FailedClosed => "failed",
        Decision::Skipped => "skipped",
    }
}

/// Returns the end of the output: three places to continue from.
pub(super) fn where_to_look(paint: Paint, ground: &Ground, kept: bool) -> String {
    let (prefix, dir) = if kept {
        let variable = format!("XDG_DATA_HOME={} ", quoted(&ground.folder("state/data")));
        (variable, format!(" --dir {}", quoted(&ground.project())))
    } else {
        (String::new(), String::new())
    };
    let lines = [
        (
            format!("{prefix}outrigger session show{dir}"),
            "a session, replayed from its log",
        ),
        (
            format!("{prefix}outrigger plugin list{dir}"),
            "a project's plugins, and why one does not run",
        ),
        (
            "docs/plugins.md, docs/turn.md".to_owned(),
            "how to write a plugin, how a turn works",
        ),
    ];
    let mut text = heading(paint, "Where to look next");
    for (what, why) in lines {
        let why = paint.dim(why);
        text.push_str(&if kept {
            format!("{what}\n    {why}\n")
        } else {
            format!("{what:<30} {why}\n")
        });
    }
    if !kept {
        text.push_str(&paint.dim(
            "`outrigger demo --keep PATH` leaves project and session there to be looked at.\n",
        ));
    }
    text
}
