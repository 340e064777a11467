//! A history as text, and the prompt for its summary.

use outrigger_protocol::message::{MessageInfo, MessageWithParts, Part, PartKind, ToolState};
use serde_json::Value;

use crate::history::request::CLEARED;

/// Maximum number of characters of a tool result in a summary's input (OpenCode's number).
const MAX_OUTPUT: usize = 2_000;

/// Required form of the summary.
const FORM: &str = "\
Write the summary with which the work goes on: its reader has no other record of what happened. Use these headings,
in this order, and write \"none\" under one that has nothing:

## Goal
What the user wants in the end.

## Rules
What the user asked for or forbade, what was decided and why, and facts that cost effort to find.

## Done
What is finished and was seen to work.

## Under way
What has been begun, how far it is, and what stands in its way, with the exact words of errors.

## Next
The next steps, in order.

## Files
Paths that matter, each with the reason.

Be brief: points instead of sentences, but keep names, paths, commands, addresses and error texts exactly as they are. Say
nothing about this summary, and do not answer the conversation.";

/// How to merge an earlier summary.
const MERGE: &str = "\
The conversation above goes on from an earlier summary, which follows. The new summary takes its place, so carry over
everything of it that still counts, also where the conversation does not speak of it again. Where the two differ, the
conversation is right. What was under way and is finished now belongs under what is done.";

/// Returns the messages as text, without empty ones.
#[must_use]
pub fn transcript<'a>(messages: impl IntoIterator<Item = &'a MessageWithParts>) -> String {
    let texts: Vec<String> = messages
        .into_iter()
        .map(message)
        .filter(|text| !text.is_empty())
        .collect();
    texts.join("\n\n")
}

fn message(message: &MessageWithParts) -> String {
    let mut lines = Vec::new();
    match &message.info {
        MessageInfo::User(_) => {
            let texts: Vec<&str> = message.parts.iter().filter_map(said).collect();
            if !texts.is_empty() {
                lines.push(format!("[User]: {}", texts.join("\n")));
            }
            lines.extend(message.parts.iter().filter_map(|part| match &part.kind {
                PartKind::File(file) => Some(attached(file)),
                _ => None,
            }));
        }
        MessageInfo::Assistant(_) => message
            .parts
            .iter()
            .for_each(|part| answer(part, &mut lines)),
    }
    lines.join("\n")
}

fn said(part: &Part) -> Option<&str> {
    match &part.kind {
        PartKind::Text(text) if text.ignored != Some(true) && !text.text.is_empty() => {
            Some(&text.text)
        }
        _ => None,
    }
}

fn answer(part: &Part, lines: &mut Vec<String>) {
    match &part.kind {
        PartKind::Text(text) if !text.text.is_empty() => {
            lines.push(format!("[Assistant]: {}", text.text));
        }
        PartKind::Reasoning(thought) if !thought.text.is_empty() => {
            lines.push(format!("[Assistant reasoning]: {}", thought.text));
        }
        PartKind::Tool(call) => {
            lines.push(format!(
                "[Assistant tool call]: {}({})",
                call.tool,
                call.state.input()
            ));
            match &call.state {
                ToolState::Completed { time, .. } if time.compacted.is_some() => {
                    lines.push(format!("[Tool result]: {CLEARED}"));
                }
                ToolState::Completed {
                    output,
                    attachments,
                    ..
                } => {
                    let files = attachments.iter().flatten().filter_map(Value::as_object);
                    let mut whole = vec![output.clone()];
                    whole.extend(files.map(attached));
                    lines.push(format!("[Tool result]: {}", cut(&whole.join("\n"))));
                }
                ToolState::Error { error, .. } => lines.push(format!("[Tool error]: {error}")),
                ToolState::Pending { .. } | ToolState::Running { .. } => {}
            }
        }
        _ => {}
    }
}

/// Returns a placeholder for a file, whose contents are not summarised.
#[must_use]
pub fn attached(file: &outrigger_protocol::Object) -> String {
    let text = |key: &str| file.get(key).and_then(Value::as_str);
    format!(
        "[Attached {}: {}]",
        text("mime").unwrap_or("file"),
        text("filename").unwrap_or("file")
    )
}

fn cut(text: &str) -> String {
    if text.chars().count() <= MAX_OUTPUT {
        return text.to_owned();
    }
    let kept: String = text.chars().take(MAX_OUTPUT).collect();
    format!("{kept}\n[truncated]")
}

/// Returns the prompt of the request. `context` is added by hooks, `instead` is a hook's replacement (B6).
#[must_use]
pub fn prompt(
    conversation: &str,
    previous: Option<&str>,
    context: &[String],
    instead: Option<&str>,
) -> String {
    if let Some(instead) = instead.filter(|text| !text.is_empty()) {
        return [instead, "The conversation so far:", conversation]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join("\n\n");
    }
    let mut texts = vec![format!("<conversation>\n{conversation}\n</conversation>")];
    if let Some(previous) = previous {
        texts.push(MERGE.to_owned());
        texts.push(format!("<earlier-summary>\n{previous}\n</earlier-summary>"));
    }
    texts.push(FORM.to_owned());
    texts.extend(context.iter().filter(|text| !text.is_empty()).cloned());
    texts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use serde_json::json;

    #[test]
    fn a_history_as_text() {
        let tool =
            |state: Value| json!({ "type": "tool", "callID": "c", "tool": "read", "state": state });
        let time = json!({ "start": 1, "end": 2 });
        let long = "y".repeat(2001);
        let messages = [
            user_parts(
                "u1",
                json!([
                    { "type": "text", "text": "look" },
                    { "type": "text", "text": "hidden", "ignored": true },
                    { "type": "file", "mime": "image/png", "filename": "a.png", "url": "data:image/png;base64,AAAA" },
                ]),
            ),
            answer_parts(
                "a1",
                "u1",
                json!({}),
                json!([
                    { "type": "reasoning", "text": "hm", "time": time },
                    { "type": "text", "text": "Let me." },
                    tool(json!({ "status": "completed", "input": { "a": 1 }, "output": "x", "title": "", "metadata": {}, "time": time,
                        "attachments": [{ "mime": "image/png", "url": "data:" }] })),
                    tool(json!({ "status": "completed", "input": {}, "output": "gone", "title": "", "metadata": {},
                        "time": { "start": 1, "end": 2, "compacted": 3 } })),
                    tool(json!({ "status": "completed", "input": {}, "output": long, "title": "", "metadata": {}, "time": time })),
                    tool(json!({ "status": "error", "input": {}, "error": "no", "time": time })),
                ]),
            ),
            user("u2", ""),
        ];
        let text = transcript(&messages).replace(&"y".repeat(2000), "<2000 y>");
        insta::assert_snapshot!(text, @r#"
        [User]: look
        [Attached image/png: a.png]

        [Assistant reasoning]: hm
        [Assistant]: Let me.
        [Assistant tool call]: read({"a":1})
        [Tool result]: x
        [Attached image/png: file]
        [Assistant tool call]: read({})
        [Tool result]: [Old tool result content cleared]
        [Assistant tool call]: read({})
        [Tool result]: <2000 y>
        [truncated]
        [Assistant tool call]: read({})
        [Tool error]: no
        "#);
    }

    #[test]
    fn prompts_by_table() {
        let more = [String::new(), "more".to_owned()];
        let added = prompt("talk", None, &more, None);
        assert!(
            added.starts_with("<conversation>\ntalk\n</conversation>\n\nWrite"),
            "{added}"
        );
        assert!(added.ends_with("\n\nmore"), "{added}");
        let merged = prompt("talk", Some("before"), &[], None);
        assert!(
            merged.contains("<earlier-summary>\nbefore\n</earlier-summary>"),
            "{merged}"
        );
        // As in OpenCode, a replacement of the prompt also replaces the additions.
        assert_eq!(
            prompt("talk", Some("before"), &more, Some("Do as I say.")),
            "Do as I say.\n\nThe conversation so far:\n\ntalk"
        );
    }
}
