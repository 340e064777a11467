//! One line for each input and effect of a machine, for snapshots.

use outrigger_kernel::turn::Effect;
use outrigger_protocol::event::Event;
use outrigger_protocol::message::{MessageInfo, Part, PartKind, ToolState};
use outrigger_protocol::tool::ToolOutcome;
use outrigger_protocol::turn::{Input, TurnOutcome};

fn call_id(id: &str) -> &str {
    // Ids made by the machine are irrelevant for the test.
    if id.starts_with("call_") && id.len() > 20 {
        "(made)"
    } else {
        id
    }
}

fn part_line(part: &Part) -> String {
    let ended = |end: Option<u64>| if end.is_some() { " end" } else { "" };
    match &part.kind {
        PartKind::Text(text) => format!(
            "text {:?}{}",
            text.text,
            ended(text.time.as_ref().and_then(|t| t.end))
        ),
        PartKind::Reasoning(thought) => {
            let metadata = thought
                .metadata
                .as_ref()
                .map_or_else(String::new, |m| format!(" {m}"));
            format!(
                "reasoning {:?}{}{metadata}",
                thought.text,
                ended(thought.time.end)
            )
        }
        PartKind::StepFinish(finish) => format!("step-finish {}", finish.reason),
        PartKind::Tool(call) => {
            let state = match &call.state {
                ToolState::Pending { .. } => "pending".to_owned(),
                ToolState::Running {
                    input,
                    title,
                    metadata,
                    ..
                } => {
                    let extra =
                        |value: Option<String>| value.map_or_else(String::new, |v| format!(" {v}"));
                    let (title, metadata) = (
                        extra(title.clone()),
                        extra(metadata.as_ref().map(ToString::to_string)),
                    );
                    format!("running {input}{title}{metadata}")
                }
                ToolState::Completed { input, output, .. } => {
                    format!("completed {input} {output:?}")
                }
                ToolState::Error { input, error, .. } => format!("error {input} {error:?}"),
            };
            format!(
                "tool {} {} {state}",
                call.tool,
                call_id(call.call_id.as_str())
            )
        }
        PartKind::Compaction(body) => {
            format!("compaction {}", serde_json::to_string(body).unwrap())
        }
        other => other.name().to_owned(),
    }
}

fn message_line(info: &MessageInfo) -> String {
    match info {
        MessageInfo::User(user) => format!(
            "user{}",
            if user.summary.is_some() {
                " summary"
            } else {
                ""
            }
        ),
        MessageInfo::Assistant(message) => {
            let finish = message
                .finish
                .as_ref()
                .map_or_else(String::new, |f| format!(" finish={f}"));
            let error = message
                .error
                .as_ref()
                .map_or_else(String::new, |e| format!(" error={}", e.name));
            let done = if message.time.completed.is_some() {
                " completed"
            } else {
                ""
            };
            let kind = if message.summary == Some(true) {
                "summary"
            } else {
                "assistant"
            };
            format!("{kind}{finish}{error}{done}")
        }
    }
}

fn event_line(event: &Event) -> String {
    match event {
        Event::MessageUpdated { info, .. } => message_line(info),
        Event::PartUpdated { part, .. } => format!("part {}", part_line(part)),
        Event::SessionStatus { status, .. } => serde_json::to_value(status).unwrap()["type"]
            .as_str()
            .unwrap()
            .to_owned(),
        Event::SessionError { error, .. } => {
            format!("session.error {}: {}", error.name, error.message())
        }
        Event::CommandExecuted {
            name, arguments, ..
        } => format!("command.executed {name} {arguments}"),
        other => other.kind().to_owned(),
    }
}

pub(crate) fn line(effect: &Effect) -> String {
    match effect {
        Effect::Publish { event } => event_line(event),
        Effect::PatchSession { patch } => {
            let agent = if patch.agent.is_some() { " agent" } else { "" };
            let used = patch.usage.map_or_else(String::new, |u| {
                format!(" used={}+{} cost={}", u.input, u.output, patch.cost)
            });
            format!(
                "session{agent}{used}{}",
                if patch.summarize { " diff" } else { "" }
            )
        }
        Effect::Hooks { effect, point, .. } => format!("#{} hooks {point}", effect.0),
        Effect::PrepareTools { effect, step } => format!("#{} tools of step {step}", effect.0),
        Effect::PrepareCompaction {
            effect, overflow, ..
        } => format!(
            "#{} plan{}",
            effect.0,
            if *overflow { " overflow" } else { "" }
        ),
        Effect::CallModel { effect, step, .. } => format!("#{} model, step {step}", effect.0),
        Effect::RunTool { effect, call } => {
            format!(
                "#{} run {} {} {}",
                effect.0,
                call.tool,
                call_id(call.call_id.as_str()),
                call.input
            )
        }
        Effect::TrackFiles { effect, since, .. } => format!(
            "#{} track files{}",
            effect.0,
            since
                .as_ref()
                .map(|since| format!(" since {since}"))
                .unwrap_or_default()
        ),
        Effect::AskLoop { effect, call } => format!("#{} ask about {}", effect.0, call.tool),
        Effect::MakeTitle { .. } => "title".to_owned(),
        Effect::Abort => "abort".to_owned(),
        Effect::Finish { outcome } => match outcome {
            TurnOutcome::Done { .. } => "finish: done".to_owned(),
            TurnOutcome::Failed { error } => {
                format!("finish: failed {}: {}", error.name, error.message())
            }
            TurnOutcome::Cancelled => "finish: cancelled".to_owned(),
        },
    }
}

pub(crate) fn input_line(input: &Input) -> String {
    match input {
        Input::Begin(_) => "begin".to_owned(),
        Input::HookDone { effect, block, .. } => {
            format!(
                "#{} {}",
                effect.0,
                if block.is_some() { "blocks" } else { "done" }
            )
        }
        Input::ToolsReady { effect, .. } => format!("#{} done", effect.0),
        Input::Model { effect, signal } => {
            let signal = serde_json::to_value(signal).unwrap();
            format!("#{} {}", effect.0, signal["signal"].as_str().unwrap())
        }
        Input::ToolStarted { effect, .. } => format!("#{} started", effect.0),
        Input::ToolProgress { effect, .. } => format!("#{} progress", effect.0),
        Input::ToolDone { effect, outcome } => match outcome {
            ToolOutcome::Completed { .. } => format!("#{} completed", effect.0),
            ToolOutcome::Failed { code, .. } => format!("#{} failed {code}", effect.0),
        },
        Input::FilesTracked { effect, tree, .. } => {
            format!("#{} {}", effect.0, tree.as_deref().unwrap_or("no tree"))
        }
        Input::LoopAnswered { effect, refusal } => format!(
            "#{} {}",
            effect.0,
            if refusal.is_some() {
                "refused"
            } else {
                "allowed"
            }
        ),
        Input::Compact { auto, .. } => format!("compact auto={auto}"),
        Input::CompactionPlanned { effect, .. } => format!("#{} planned", effect.0),
        Input::CompactionRefused { effect, error } => format!("#{} {}", effect.0, error.message()),
        Input::Joined { begin } => format!("joined {}", begin.message.id),
        Input::EndAfterStep => "end after step".to_owned(),
        Input::CallsUsed { ids } => format!("used {}", ids.join(" ")),
        Input::Left { message_id } => format!("left {message_id}"),
        Input::Cancel => "cancel".to_owned(),
        Input::Resumed => "resumed".to_owned(),
    }
}
