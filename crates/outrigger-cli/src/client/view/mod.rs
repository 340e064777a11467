//! The output of `run`: the answer on standard output, everything else on standard error.

mod printer;
mod retries;
mod running_tools;
mod summaries;
#[cfg(test)]
mod tests;
mod tool_lines;

use std::collections::HashSet;
use std::time::Instant;

use outrigger_kernel::merge::{Conversation, Form};
use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::{EventId, MessageId, SessionId};
use outrigger_protocol::merged::ConversationMessage;
use outrigger_protocol::message::{AssistantMessage, MessageInfo, Part, PartKind, ToolState};
use outrigger_protocol::session::SessionStatus;
use outrigger_protocol::turn::TurnOutcome;
use serde_json::{Value, json};

use self::printer::Printer;
use self::retries::Retries;
use self::running_tools::RunningTools;
use self::summaries::Summaries;
use self::tool_lines::ToolLines;
use super::live_output::LiveOutput;
use crate::args::Format;
use crate::client::result::TurnResult;
use crate::terminal::transcript::{changed_by, tool_text};
use crate::terminal::{Paint, entry, json_line, name};

/// What is shown, and how.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Show {
    pub(crate) format: Format,
    /// Includes the model's reasoning.
    pub(crate) thinking: bool,
    /// Shows start and result of a tool separately (E5).
    pub(crate) apart: bool,
    /// Shows errors only.
    pub(crate) quiet: bool,
}

/// Prints the events of one session.
pub(crate) struct View {
    session: SessionId,
    show: Show,
    paint: Paint,
    begun: bool,
    conversation: Conversation,
    tools: ToolLines,
    /// An error was printed.
    pub(crate) failed: bool,
    directory: String,
    /// Stored events that were shown.
    seen: HashSet<EventId>,
    /// The last message with a text or a call.
    answer: Option<MessageId>,
    printer: Printer,
    summaries: Summaries,
    retries: Retries,
    result: TurnResult,
    live: LiveOutput,
    running: RunningTools,
}

impl View {
    /// Creates a view. Paths in `directory` are shortened.
    pub(crate) fn new(session: SessionId, show: Show, directory: String) -> Self {
        Self {
            session,
            show,
            paint: Paint::for_stderr(),
            begun: false,
            conversation: Conversation::new(if show.apart {
                Form::Apart
            } else {
                Form::Merged
            }),
            tools: ToolLines::default(),
            failed: false,
            directory,
            seen: HashSet::new(),
            answer: None,
            printer: Printer::new(),
            summaries: Summaries::default(),
            retries: Retries::default(),
            result: TurnResult::default(),
            live: LiveOutput::default(),
            running: RunningTools::default(),
        }
    }

    /// Prints an event once, even if it is repeated.
    pub(crate) fn on(&mut self, event: &BusEvent) {
        if event
            .event
            .session_id()
            .is_some_and(|id| *id != self.session)
        {
            return;
        }
        if !event.event.is_transient() && !self.seen.insert(event.id.clone()) {
            return;
        }
        if let Event::PartUpdated { part, .. } = &event.event {
            self.result.add(part);
            self.running.note(part);
            if is_answer(part) {
                self.answer = Some(part.message_id.clone());
            }
        }
        match self.show.format {
            Format::Json | Format::Stream => self.json(&event.event),
            Format::Default => self.text(&event.event),
            Format::Result => {
                if let Event::SessionError { error, .. } = &event.event {
                    self.error(error);
                }
            }
        }
    }

    /// Like [`Self::on`], while a question is on the screen; returns whether it must be shown
    /// again.
    pub(crate) fn on_beside_question(&mut self, event: &BusEvent) -> bool {
        self.printer.begin_beside_question();
        self.on(event);
        self.printer.end_beside_question()
    }

    /// Ends the turn: prints pending output, and explains what would be unclear.
    pub(crate) fn finish(&mut self, outcome: &TurnOutcome) {
        let left = self.tools.finish();
        self.say(&left);
        if let TurnOutcome::Done {
            message_id: Some(id),
        } = outcome
            && let Some(summary) = self.summaries.take(id)
        {
            self.printer.out(&format!("{summary}\n"));
        }
        match outcome {
            TurnOutcome::Failed { error } if !self.failed => self.error(error),
            TurnOutcome::Done { .. } if self.show.format.has_result() => {}
            TurnOutcome::Done {
                message_id: Some(id),
            } if !self.failed && self.answer.as_ref() != Some(id) => {
                let mark = self.paint.bad("!");
                self.printer
                    .err(&format!("{mark} the model gave no answer\n"));
            }
            _ => {}
        }
        if self.show.format.has_result() {
            let line = self.result.line(&self.session, outcome);
            self.printer.out(&line);
        }
    }

    /// Returns when output of a command must be printed, if nothing comes before.
    pub(crate) fn output_due(&self) -> Option<Instant> {
        self.live.due()
    }

    /// Prints output of the running command.
    pub(crate) fn print_output(&mut self) {
        let text = self.live.more(self.paint);
        if !text.is_empty() {
            self.printer.err(&text);
        }
    }

    /// Returns the last line of a command whose further output is not printed.
    pub(crate) fn last_line(&self) -> Option<&str> {
        self.live.last_line()
    }

    /// Returns what the turn waits for after an event, if that changed.
    pub(crate) fn waits_for<'e>(&'e self, event: &'e Event) -> Option<Option<&'e str>> {
        self.running.waits_for(&self.session, event)
    }

    fn json(&mut self, event: &Event) {
        match event {
            Event::PartUpdated { part, .. } => match kind_of(part) {
                Some(kind) if kind != "reasoning" || self.show.thinking => {
                    self.json_line(kind, json!({ "part": part }))
                }
                _ => {}
            },
            Event::SessionError { error, .. } => self.error(error),
            _ => {}
        }
    }

    fn json_line(&mut self, kind: &str, body: Value) {
        let line = json_line(kind, Some(&self.session), body);
        self.printer.out(&line);
    }

    fn error(&mut self, error: &outrigger_protocol::message::NamedError) {
        self.failed = true;
        self.result.fail(error);
        match self.show.format {
            Format::Json | Format::Stream => self.json_line("error", json!({ "error": error })),
            Format::Default | Format::Result => {
                let mark = self.paint.bad("Error:");
                self.printer
                    .err(&entry(&format!("{mark} {}", error.message())));
            }
        }
    }

    fn text(&mut self, event: &Event) {
        match event {
            Event::MessageUpdated { .. } | Event::PartUpdated { .. } if self.show.quiet => {}
            Event::MessageUpdated { info, .. } => {
                if let MessageInfo::Assistant(message) = info.as_ref() {
                    self.begin_message(message);
                }
            }
            Event::PartUpdated { part, time, .. } => {
                // What a question on the screen hides is printed after it.
                if !self.show.apart {
                    let text =
                        self.live
                            .on(part, *time, self.printer.is_beside_question(), self.paint);
                    if !text.is_empty() {
                        self.printer.err(&text);
                    }
                }
                self.part(part);
            }
            Event::SessionError { error, .. } => self.error(error),
            Event::SessionStatus {
                status:
                    SessionStatus::Retry {
                        attempt,
                        message,
                        next,
                    },
                ..
            } => {
                let line = self.retries.line(self.paint, *attempt, message, *next);
                self.printer.err(&line);
            }
            Event::PermissionAsked(request) if !crate::terminal::person_is_there() => {
                let mark = self.paint.bad("!");
                self.printer.err(&format!(
                    "{mark} permission requested: {} ({})\n",
                    name(&request.permission),
                    name(&request.patterns.join(", "))
                ));
            }
            _ => {}
        }
        self.merge(event);
    }

    /// Prints once which agent and model answer, and that an automatic summary is being written.
    fn begin_message(&mut self, message: &AssistantMessage) {
        if message.summary == Some(true) && self.summaries.are_automatic() {
            if self.summaries.is_new(&message.id) {
                let line = self
                    .paint
                    .dim("~ the conversation is long: making a summary of it\n");
                self.printer.err(&line);
            }
        } else if !std::mem::replace(&mut self.begun, true) {
            let title = self.paint.bold(&name(&format!(
                "> {} · {}",
                message.agent, message.model_id
            )));
            self.printer.err(&format!("\n{title}\n\n"));
        }
    }

    fn part(&mut self, part: &Part) {
        match &part.kind {
            PartKind::Compaction(body) => {
                self.summaries.begin(body);
            }
            PartKind::Text(text) if self.summaries.keep(&part.message_id, &text.text) => {}
            // The message that follows a compaction is not an answer either.
            PartKind::Text(text) if text.synthetic == Some(true) => {}
            PartKind::Text(text) if text.time.as_ref().is_some_and(|t| t.end.is_some()) => {
                let text = text.text.trim();
                if !text.is_empty() {
                    self.printer.out(&format!("{text}\n"));
                }
            }
            PartKind::Reasoning(thought)
                if self.show.thinking
                    && thought.time.end.is_some()
                    && !thought.text.trim().is_empty() =>
            {
                let line = self
                    .paint
                    .dim(&format!("Thinking: {}\n", thought.text.trim()));
                self.printer.err(&line);
            }
            PartKind::Tool(call) => {
                if let ToolState::Running {
                    title: Some(title), ..
                } = &call.state
                    && call.tool == "task"
                {
                    let line = self.paint.dim(&format!("• {}\n", name(title)));
                    self.printer.err(&line);
                }
            }
            _ => {}
        }
    }

    /// Prints the tools that an event completes and, if start and result are separate, those that
    /// it starts.
    fn merge(&mut self, event: &Event) {
        let changes = self.conversation.on(event);
        let ready = self.tools.on(changes, self.show.apart);
        self.say(&ready);
    }

    fn say(&mut self, messages: &[ConversationMessage]) {
        for message in messages {
            let call = message.metadata.get("tool_use_id").and_then(Value::as_str);
            let is_shown = call.is_some_and(|call| self.live.has_shown(call));
            if !self.show.quiet && !is_shown {
                let line = tool_text(message, self.paint, &self.directory);
                self.printer.err(&line);
            }
            if !self.show.quiet
                && let Some(by) = changed_by(message)
            {
                self.printer.err(&format!("{}\n", self.paint.dim(&by)));
            }
        }
    }
}

fn is_answer(part: &Part) -> bool {
    match &part.kind {
        PartKind::Text(text) => !text.text.trim().is_empty(),
        PartKind::Tool(_) => true,
        _ => false,
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
