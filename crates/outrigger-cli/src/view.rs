//! What `run` prints: the answer on standard output, everything else on standard error.

use std::io::{IsTerminal as _, Write as _};

use outrigger_kernel::merge::{Conversation, Merger, details, merger};
use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::merged::{ConversationMessage, Details};
use outrigger_protocol::message::{MessageInfo, Part, PartKind, ToolState};
use outrigger_protocol::session::SessionStatus;
use serde_json::{Value, json};
use similar::TextDiff;

use crate::args::{Format, RunArgs};

/// Lines of a tool's output that are shown; the model gets more, the session keeps all.
const SHOWN_LINES: usize = 40;

/// Colors, where the terminal wants them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(bool);

impl Paint {
    /// For standard output.
    pub(crate) fn for_stdout() -> Self {
        Self(std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none())
    }
    /// Off without a terminal and under `NO_COLOR`.
    pub(crate) fn for_stderr() -> Self {
        Self(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
    }
    #[cfg(test)]
    pub(crate) fn off() -> Self {
        Self(false)
    }
    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap("90", text)
    }
    pub(crate) fn bad(self, text: &str) -> String {
        self.wrap("91", text)
    }
    pub(crate) fn good(self, text: &str) -> String {
        self.wrap("32", text)
    }
    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }
}

/// Follows the events of one session and prints them.
pub(crate) struct View {
    session: SessionId,
    format: Format,
    thinking: bool,
    quiet: bool,
    paint: Paint,
    begun: bool,
    conversation: Conversation,
    merger: Merger,
    /// An error was told.
    pub(crate) failed: bool,
    directory: String,
}

impl View {
    /// Prints as the options of `run` say. Paths in `directory` are shortened.
    pub(crate) fn new(session: SessionId, args: &RunArgs, directory: String) -> Self {
        Self {
            session,
            format: args.format,
            thinking: args.thinking,
            quiet: args.quiet,
            paint: Paint::for_stderr(),
            begun: false,
            conversation: Conversation::default(),
            merger: merger(),
            failed: false,
            directory,
        }
    }

    /// Prints what an event says; true when the session is idle.
    pub(crate) fn on(&mut self, event: &BusEvent) -> bool {
        if event.event.session_id().is_some_and(|id| *id != self.session) {
            return false;
        }
        match self.format {
            Format::Json => self.json(&event.event),
            Format::Default => self.text(&event.event),
        }
        matches!(event.event, Event::SessionIdle { .. })
    }

    /// What the turn waits for after an event, if that changed.
    pub(crate) fn waits_for<'e>(&self, event: &'e Event) -> Option<Option<&'e str>> {
        match event {
            Event::SessionStatus { session_id, status } if *session_id == self.session => match status {
                SessionStatus::Idle => Some(None),
                _ => Some(Some("model")),
            },
            Event::PartUpdated { session_id, part, .. } if *session_id == self.session => match &part.kind {
                PartKind::Tool(call) if call.state.is_final() => Some(Some("model")),
                PartKind::Tool(call) => Some(Some(&call.tool)),
                _ => None,
            },
            _ => None,
        }
    }

    fn json(&mut self, event: &Event) {
        let (kind, body) = match event {
            Event::PartUpdated { part, .. } => match kind_of(part) {
                Some(kind) if kind != "reasoning" || self.thinking => (kind, json!({ "part": part })),
                _ => return,
            },
            Event::SessionError { error, .. } => {
                self.failed = true;
                ("error", json!({ "error": error }))
            }
            _ => return,
        };
        let mut line = json!({ "type": kind, "timestamp": outrigger_agent::ids::now(), "sessionID": self.session });
        if let (Some(line), Value::Object(body)) = (line.as_object_mut(), body) {
            line.extend(body);
        }
        out(&format!("{line}\n"));
    }

    fn text(&mut self, event: &Event) {
        match event {
            Event::MessageUpdated { .. } | Event::PartUpdated { .. } if self.quiet => {}
            Event::MessageUpdated { info, .. } => {
                if let MessageInfo::Assistant(message) = info.as_ref()
                    && !std::mem::replace(&mut self.begun, true)
                {
                    let title = format!("> {} · {}", message.agent, message.model_id);
                    err(&format!("\n{}\n\n", self.paint.bold(&title)));
                }
            }
            Event::PartUpdated { part, .. } => self.part(part),
            Event::SessionError { error, .. } => {
                self.failed = true;
                err(&format!("{} {}\n", self.paint.bad("Error:"), error.message()));
            }
            Event::SessionStatus { status: SessionStatus::Retry { attempt, message, .. }, .. } => {
                err(&self.paint.dim(&format!("~ try {attempt}: {message}\n")));
            }
            Event::PermissionAsked(request) if !crate::question::person_is_there() => {
                err(&format!("{} permission requested: {} ({})\n", self.paint.bad("!"), request.permission, request.patterns.join(", ")));
            }
            _ => {}
        }
        for message in self.conversation.on(event) {
            for ready in self.merger.push(message) {
                self.say(&ready);
            }
        }
    }

    fn part(&self, part: &Part) {
        match &part.kind {
            PartKind::Text(text) if text.time.as_ref().is_some_and(|t| t.end.is_some()) => {
                let text = text.text.trim();
                if !text.is_empty() {
                    out(&format!("{text}\n"));
                }
            }
            PartKind::Reasoning(thought) if self.thinking && thought.time.end.is_some() && !thought.text.trim().is_empty() => {
                err(&self.paint.dim(&format!("Thinking: {}\n", thought.text.trim())));
            }
            PartKind::Tool(call) => {
                if let ToolState::Running { title: Some(title), .. } = &call.state
                    && call.tool == "task"
                {
                    err(&self.paint.dim(&format!("• {title}\n")));
                }
            }
            _ => {}
        }
    }

    fn say(&self, message: &ConversationMessage) {
        if !self.quiet && message.message_type == "tool_execution" {
            err(&tool_text(message, self.paint, &self.directory));
        }
    }
}

fn kind_of(part: &Part) -> Option<&'static str> {
    Some(match &part.kind {
        PartKind::Tool(call) if call.state.is_final() => "tool_use",
        PartKind::StepStart(_) => "step_start",
        PartKind::StepFinish(_) => "step_finish",
        PartKind::Text(text) if text.time.as_ref().is_some_and(|t| t.end.is_some()) => "text",
        PartKind::Reasoning(thought) if thought.time.end.is_some() => "reasoning",
        _ => return None,
    })
}

/// A merged tool message as lines for people (E6, in a terminal). Paths in the project are shortened.
pub(crate) fn tool_text(message: &ConversationMessage, paint: Paint, directory: &str) -> String {
    let field = |key: &str| message.metadata.get(key);
    let name = field("tool_name").and_then(Value::as_str).unwrap_or("tool");
    let input = |key: &str| field("input").and_then(|i| i.get(key)).and_then(Value::as_str);
    let shorten = |text: &str| text.replace(&format!("{}/", directory.trim_end_matches('/')), "");
    let time = field("duration_ms").and_then(Value::as_u64).unwrap_or(0);
    let time = paint.dim(&format!("  {time} ms"));
    if field("is_error").and_then(Value::as_bool) == Some(true) {
        let why = field("output").and_then(Value::as_str).unwrap_or("failed");
        let what = input("command").or_else(|| input("filePath")).or_else(|| input("pattern")).unwrap_or_default();
        return format!("{} {name} {} failed{time}\n{} {}\n", paint.bad("✗"), shorten(what), paint.bad("Error:"), shorten(why));
    }
    match details(message) {
        Some(Details::CommandOutput { stdout, stderr, exit_code }) => {
            let code = match exit_code {
                Some(0) => String::new(),
                Some(code) => paint.bad(&format!("  exit {code}")),
                None => paint.bad("  killed"),
            };
            let output = clip(&format!("{stdout}{stderr}"));
            format!("{} {}{code}{time}\n{output}", paint.bold("$"), input("command").unwrap_or(name))
        }
        Some(Details::Diff { old_content, new_content, .. }) => {
            format!("{} {}{time}\n{}", paint.bold("←"), shorten(&message.content), diff(&old_content, &new_content, paint))
        }
        Some(Details::FileList { files }) => {
            let count = files.len();
            let what = input("pattern").unwrap_or_default();
            let noun = if count == 1 { "file" } else { "files" };
            format!("{} {name} \"{what}\" {}{time}\n", paint.bold("✱"), paint.dim(&format!("{count} {noun}")))
        }
        None if message.content.starts_with("Read ") => format!("{} {}{time}\n", paint.bold("→"), shorten(&message.content)),
        None => {
            let input = field("input").map(ToString::to_string).unwrap_or_default();
            let output = clip(field("output").and_then(Value::as_str).unwrap_or_default());
            format!("{} {name} {}{time}\n{}", paint.bold("⚙"), shorten(&input), shorten(&output))
        }
    }
}

fn clip(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut shown: String = lines.iter().take(SHOWN_LINES).flat_map(|line| [*line, "\n"]).collect();
    if lines.len() > SHOWN_LINES {
        shown.push_str(&format!("… {} more lines\n", lines.len() - SHOWN_LINES));
    }
    shown
}

/// The hunks of a unified diff; the file is named above them.
fn diff(old: &str, new: &str, paint: Paint) -> String {
    let text = TextDiff::from_lines(old, new).unified_diff().context_radius(3).to_string();
    clip(&text)
        .lines()
        .map(|line| match line.chars().next() {
            Some('+') => paint.good(line) + "\n",
            Some('-') => paint.bad(line) + "\n",
            _ => format!("{line}\n"),
        })
        .collect()
}

/// Writes to standard output; a reader that is gone is no error of ours.
pub(crate) fn out(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes());
    let _ = stdout.flush();
}

/// Writes to standard error.
pub(crate) fn err(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(metadata: Value, content: &str) -> ConversationMessage {
        ConversationMessage {
            id: "prt_1-merged".into(),
            role: "assistant".into(),
            message_type: "tool_execution".into(),
            content: content.into(),
            timestamp: 1,
            metadata: metadata.as_object().cloned().unwrap_or_default(),
        }
    }

    #[test]
    fn tool_messages_as_people_see_them() {
        let shell = merged(json!({"tool_name":"bash","input":{"command":"ls"},"is_error":false,"duration_ms":5,
            "details":{"type":"commandOutput","data":{"stdout":"a\nb\n","stderr":"","exitCode":2}}}), "bash completed");
        let edit = merged(json!({"tool_name":"edit","input":{"filePath":"/p/a.txt"},"is_error":false,"duration_ms":1,
            "details":{"type":"diff","data":{"oldContent":"one\ntwo\n","newContent":"one\n2\n","path":"/p/a.txt"}}}), "Updated /p/a.txt");
        let failed = merged(json!({"tool_name":"read","input":{"filePath":"/p/x"},"output":"File not found: /p/x","is_error":true,"duration_ms":0}), "x");
        let text: String = [shell, edit, failed].iter().map(|m| tool_text(m, Paint::off(), "/p")).collect();
        insta::assert_snapshot!(text, @r"
        $ ls  exit 2  5 ms
        a
        b
        ← Updated a.txt  1 ms
        @@ -1,2 +1,2 @@
         one
        -two
        +2
        ✗ read x failed  0 ms
        Error: File not found: x
        ");
    }
}
