//! Converts the stored history to the messages of a request.

use outrigger_protocol::history::History;
use outrigger_protocol::message::{MessageInfo, MessageWithParts, Part, PartKind, ToolState};
use outrigger_protocol::model::{ChatMessage, Content, Messages, SharedMessage};
use serde_json::Value;

/// Replaces a pruned tool result for the model.
pub const CLEARED: &str = "[Old tool result content cleared]";

/// Returns the messages of a request, without the system's. An empty message is skipped, since providers refuse those. The
/// conversion of each message is cached with it.
#[must_use]
pub fn messages(history: &History) -> Messages {
    history.in_requests(of_message)
}

/// Converts a message.
pub(crate) fn of_message(message: &MessageWithParts) -> Vec<SharedMessage> {
    let mut out = Vec::new();
    match &message.info {
        MessageInfo::User(_) => {
            let content: Vec<Content> = message.parts.iter().filter_map(user_content).collect();
            if !content.is_empty() {
                out.push(ChatMessage::User { content });
            }
        }
        MessageInfo::Assistant(_) => assistant(&message.parts, &mut out),
    }
    out.into_iter().map(SharedMessage::from).collect()
}

fn user_content(part: &Part) -> Option<Content> {
    match &part.kind {
        PartKind::Text(text) if text.ignored != Some(true) && !text.text.is_empty() => {
            Some(Content::Text {
                text: text.text.clone(),
            })
        }
        PartKind::File(file) => {
            let text = |key: &str| file.get(key).and_then(Value::as_str).map(str::to_owned);
            let mime = text("mime")?;
            // Text files and folders were read into synthetic parts when the prompt arrived.
            if mime == "text/plain" || mime == "application/x-directory" {
                return None;
            }
            Some(Content::File {
                mime,
                url: text("url")?,
                filename: text("filename"),
            })
        }
        // The message of a command that runs as a subtask has no other content; without it a history would begin with an
        // answer.
        PartKind::Subtask(_) => Some(Content::Text {
            text: "The user had this tool called.".to_owned(),
        }),
        PartKind::Compaction(_) => Some(Content::Text {
            text: "What did we do so far?".into(),
        }),
        _ => None,
    }
}

fn assistant(parts: &[Part], out: &mut Vec<ChatMessage>) {
    let mut content = Vec::new();
    let mut answers = Vec::new();
    for part in parts {
        match &part.kind {
            PartKind::Text(text) if !text.text.is_empty() => content.push(Content::Text {
                text: text.text.clone(),
            }),
            PartKind::Reasoning(thought)
                if !thought.text.is_empty() || thought.metadata.is_some() =>
            {
                content.push(Content::Reasoning {
                    text: thought.text.clone(),
                    metadata: thought.metadata.clone(),
                });
            }
            PartKind::Tool(call) => {
                let (answer, is_error) = match &call.state {
                    ToolState::Completed { time, output, .. } => {
                        let cleared = time.compacted.is_some();
                        (
                            if cleared {
                                CLEARED.to_owned()
                            } else {
                                output.clone()
                            },
                            false,
                        )
                    }
                    ToolState::Error { error, .. } => (error.clone(), true),
                    ToolState::Pending { .. } | ToolState::Running { .. } => {
                        ("[Tool execution was interrupted]".to_owned(), true)
                    }
                };
                let call_id = call.call_id.0.clone();
                content.push(Content::ToolCall {
                    call_id: call_id.clone(),
                    tool: call.tool.clone(),
                    input: call.state.input().clone(),
                    metadata: call.metadata.clone(),
                });
                answers.push(ChatMessage::Tool {
                    call_id,
                    tool: call.tool.clone(),
                    content: answer,
                    is_error,
                });
            }
            _ => {}
        }
    }
    if content
        .iter()
        .any(|c| !matches!(c, Content::Reasoning { .. }))
    {
        out.push(ChatMessage::Assistant { content });
        out.append(&mut answers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn history(value: serde_json::Value) -> History {
        let messages: Vec<MessageWithParts> = serde_json::from_value(value).unwrap();
        messages.into_iter().collect()
    }

    fn part(kind: serde_json::Value) -> serde_json::Value {
        let mut part = json!({"id":"prt_1","sessionID":"s","messageID":"m"});
        part.as_object_mut()
            .unwrap()
            .extend(kind.as_object().unwrap().clone());
        part
    }

    #[test]
    fn a_history_becomes_a_request() {
        let user = json!({"role":"user","id":"m","sessionID":"s","time":{"created":1},"agent":"build","model":{"providerID":"p","modelID":"m"}});
        let answer = json!({"role":"assistant","id":"m","parentID":"m","sessionID":"s","mode":"build","agent":"build","path":{"cwd":"/","root":"/"},
            "cost":0.0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"modelID":"m","providerID":"p","time":{"created":1}});
        let got = messages(&history(json!([
            {"info":user,"parts":[part(json!({"type":"text","text":"look"})), part(json!({"type":"text","text":"hidden","ignored":true}))]},
            {"info":answer,"parts":[
                part(json!({"type":"step-start"})),
                part(json!({"type":"text","text":"Let me."})),
                part(json!({"type":"tool","callID":"c1","tool":"read","state":{"status":"completed","input":{"a":1},"output":"x","title":"","metadata":{},"time":{"start":1,"end":2}}})),
                part(json!({"type":"tool","callID":"c2","tool":"read","state":{"status":"running","input":{},"time":{"start":1}}})),
            ]},
            {"info":answer,"parts":[part(json!({"type":"step-start"}))]},
        ])));
        let want = json!([
            {"role":"user","content":[{"type":"text","text":"look"}]},
            {"role":"assistant","content":[{"type":"text","text":"Let me."},
                {"type":"tool_call","call_id":"c1","tool":"read","input":{"a":1}},{"type":"tool_call","call_id":"c2","tool":"read","input":{}}]},
            {"role":"tool","call_id":"c1","tool":"read","content":"x","is_error":false},
            {"role":"tool","call_id":"c2","tool":"read","content":"[Tool execution was interrupted]","is_error":true},
        ]);
        assert_eq!(serde_json::to_value(got).unwrap(), want);
    }
}
