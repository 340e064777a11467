//! Pruning: removes the output of old tool calls from later requests.

use outrigger_protocol::Millis;
use outrigger_protocol::history::History;
use outrigger_protocol::message::{MessageInfo, Part, PartKind, ToolState};

use super::select::estimate;

/// Tokens of the latest tool output that are kept (OpenCode's number).
const PROTECTED: u64 = 40_000;
/// Minimum number of tokens worth a changed request, which misses the provider's cache (OpenCode's number).
const LEAST: u64 = 20_000;
/// Number of latest user messages whose answers are kept.
const TURNS: usize = 2;
/// Tools whose output is kept: a skill's text applies to the whole session.
const KEPT: [&str; 1] = ["skill"];

/// Returns the calls to prune, marked; empty if it is not worth it.
#[must_use]
pub fn old_output(history: &History, at: Millis) -> Vec<Part> {
    let (mut seen, mut users, mut gain) = (0, 0, 0);
    let mut old = Vec::new();
    'all: for message in history.iter().rev().filter_map(|m| m.stored()) {
        match &message.info {
            MessageInfo::User(_) => users += 1,
            MessageInfo::Assistant(info) if info.summary == Some(true) && users >= TURNS => break,
            MessageInfo::Assistant(_) => {}
        }
        if users < TURNS {
            continue;
        }
        for part in message.parts.iter().rev() {
            let PartKind::Tool(call) = &part.kind else {
                continue;
            };
            let ToolState::Completed { output, time, .. } = &call.state else {
                continue;
            };
            if KEPT.contains(&call.tool.as_str()) {
                continue;
            }
            // Earlier output was pruned before.
            if time.compacted.is_some() {
                break 'all;
            }
            let size = estimate(output);
            seen += size;
            if seen > PROTECTED {
                gain += size;
                old.push(compacted(part.clone(), at));
            }
        }
    }
    if gain > LEAST { old } else { Vec::new() }
}

fn compacted(mut part: Part, at: Millis) -> Part {
    if let PartKind::Tool(call) = &mut part.kind
        && let ToolState::Completed { time, .. } = &mut call.state
    {
        time.compacted = Some(at);
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use outrigger_protocol::message::MessageWithParts;
    use serde_json::{Value, json};

    /// Creates a turn with one call of that many tokens.
    fn turn(n: usize, tool: &str, tokens: usize, compacted: bool) -> Vec<MessageWithParts> {
        let (user_id, id) = (format!("u{n}"), format!("a{n}"));
        let mut time = json!({ "start": 1, "end": 2 });
        if compacted {
            time["compacted"] = json!(3);
        }
        let state: Value = json!({ "status": "completed", "input": {}, "output": "x".repeat(tokens * 4), "title": "", "metadata": {}, "time": time });
        let part = json!({ "type": "tool", "callID": "c", "tool": tool, "state": state });
        vec![
            user(&user_id, "go"),
            answer_parts(&id, &user_id, json!({ "finish": "stop" }), json!([part])),
        ]
    }

    #[test]
    fn old_output_by_table() {
        let turns = |list: &[(&str, usize, bool)]| {
            let mut all = Vec::new();
            for (n, (tool, tokens, compacted)) in list.iter().enumerate() {
                all.extend(turn(n, tool, *tokens, *compacted));
            }
            all
        };
        let r = "read";
        let table: [(&str, Vec<MessageWithParts>, &[&str]); 7] = [
            (
                "little",
                turns(&[(r, 10, false), (r, 10, false), (r, 10, false)]),
                &[],
            ),
            (
                "the last two turns are not looked at",
                turns(&[(r, 39_000, false), (r, 90_000, false), (r, 90_000, false)]),
                &[],
            ),
            (
                "old",
                turns(&[
                    (r, 25_000, false),
                    (r, 39_000, false),
                    (r, 1, false),
                    (r, 1, false),
                ]),
                &["a0"],
            ),
            (
                "not worth it",
                turns(&[
                    (r, 20_000, false),
                    (r, 40_000, false),
                    (r, 1, false),
                    (r, 1, false),
                ]),
                &[],
            ),
            (
                "skills stay",
                turns(&[
                    ("skill", 25_000, false),
                    (r, 39_000, false),
                    (r, 1, false),
                    (r, 1, false),
                ]),
                &[],
            ),
            (
                "went before",
                turns(&[
                    (r, 90_000, false),
                    (r, 10, true),
                    (r, 39_000, false),
                    (r, 1, false),
                    (r, 1, false),
                ]),
                &[],
            ),
            (
                "a summary ends it",
                [
                    turns(&[(r, 90_000, false)]),
                    vec![compaction("u7", None), summary("a7", "u7", "sum")],
                    turn(8, r, 39_000, false),
                    turn(9, r, 1, false),
                    turn(10, r, 1, false),
                ]
                .concat(),
                &[],
            ),
        ];
        for (name, history, want) in table {
            let got: Vec<String> = old_output(&history.into_iter().collect(), 9)
                .into_iter()
                .map(|part| part.message_id.0)
                .collect();
            assert_eq!(got, want, "{name}");
        }
    }
}
