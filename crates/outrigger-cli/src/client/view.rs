//! What `run` prints: the answer on standard output, everything else on standard error.

use std::collections::{HashMap, HashSet};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use outrigger_kernel::merge::{Conversation, Merger, merger};
use outrigger_protocol::Millis;
use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::{EventId, MessageId, PartId, SessionId};
use outrigger_protocol::merged::ConversationMessage;
use outrigger_protocol::message::{MessageInfo, Part, PartKind, ToolState};
use outrigger_protocol::session::SessionStatus;
use outrigger_protocol::turn::TurnOutcome;
use serde_json::{Value, json};

use super::live_output::LiveOutput;
use crate::args::Format;
use crate::client::result::TurnResult;
use crate::terminal::transcript::{is_tool, tool_text};
use crate::terminal::{Paint, err, json_line, name, out};

/// Where a text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    Out,
    Err,
}

type Print = Box<dyn FnMut(To, &str) + Send>;

/// What is shown, and how.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Show {
    pub(crate) format: Format,
    /// What the model thinks, too.
    pub(crate) thinking: bool,
    /// Start and result of a tool apart (E5).
    pub(crate) apart: bool,
    /// Errors only.
    pub(crate) quiet: bool,
}

/// Follows the events of one session and prints them.
pub(crate) struct View {
    session: SessionId,
    show: Show,
    paint: Paint,
    begun: bool,
    conversation: Conversation,
    /// None: start and result of a tool are shown apart (E5).
    merger: Option<Merger>,
    /// An error was printed.
    pub(crate) failed: bool,
    directory: String,
    /// Stored events that were shown.
    seen: HashSet<EventId>,
    /// The last message with something in it: a text or a call.
    answer: Option<MessageId>,
    print: Print,
    /// The compaction under way was not asked for: its summary is no answer.
    own_compaction: bool,
    /// Summaries that nobody asked for. One that nothing follows is the answer after all.
    summaries: HashMap<MessageId, String>,
    /// The cursor stands after a question.
    mid_line: bool,
    /// Why a request was sent again the last time.
    retried: Option<String>,
    result: TurnResult,
    live: LiveOutput,
    /// Tools that run, the last one last.
    running: Vec<(PartId, String)>,
}

impl View {
    /// Paths in `directory` are shortened.
    pub(crate) fn new(session: SessionId, show: Show, directory: String) -> Self {
        Self {
            session,
            show,
            paint: Paint::for_stderr(),
            begun: false,
            conversation: Conversation::default(),
            merger: (!show.apart).then(merger),
            failed: false,
            directory,
            seen: HashSet::new(),
            answer: None,
            print: Box::new(|to, text| match to {
                To::Out => out(text),
                To::Err => err(text),
            }),
            own_compaction: false,
            summaries: HashMap::new(),
            mid_line: false,
            retried: None,
            result: TurnResult::default(),
            live: LiveOutput::default(),
            running: Vec::new(),
        }
    }

    fn out(&mut self, text: &str) {
        self.leave_question();
        (self.print)(To::Out, text);
    }

    fn err(&mut self, text: &str) {
        self.leave_question();
        (self.print)(To::Err, text);
    }

    fn leave_question(&mut self) {
        if std::mem::take(&mut self.mid_line) {
            (self.print)(To::Err, "\n");
        }
    }

    /// Prints what an event says, once, however often it comes.
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
            self.note_running(part);
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

    /// Like [`Self::on`], while a question is on the screen; true when it has to be shown again.
    pub(crate) fn on_beside_question(&mut self, event: &BusEvent) -> bool {
        self.mid_line = true;
        self.on(event);
        !std::mem::take(&mut self.mid_line)
    }

    /// The turn is over: what still waits is printed, and what would be a riddle is said.
    pub(crate) fn finish(&mut self, outcome: &TurnOutcome) {
        let left = self.merger.as_mut().map(Merger::finish).unwrap_or_default();
        self.say(&left);
        if let TurnOutcome::Done {
            message_id: Some(id),
        } = outcome
            && let Some(summary) = self.summaries.remove(id)
        {
            self.out(&format!("{summary}\n"));
        }
        match outcome {
            TurnOutcome::Failed { error } if !self.failed => self.error(error),
            TurnOutcome::Done { .. } if self.show.format.has_result() => {}
            TurnOutcome::Done {
                message_id: Some(id),
            } if !self.failed && self.answer.as_ref() != Some(id) => {
                let mark = self.paint.bad("!");
                self.err(&format!("{mark} the model gave no answer\n"));
            }
            _ => {}
        }
        if self.show.format.has_result() {
            let line = self.result.line(&self.session, outcome);
            self.out(&line);
        }
    }

    fn note_running(&mut self, part: &Part) {
        let PartKind::Tool(call) = &part.kind else {
            return;
        };
        let is_known = self.running.iter().any(|(id, _)| *id == part.id);
        match call.state {
            ToolState::Running { .. } if !is_known => {
                self.running.push((part.id.clone(), call.tool.clone()));
            }
            _ if call.state.is_final() => self.running.retain(|(id, _)| *id != part.id),
            _ => {}
        }
    }

    /// When output of a command has to be printed, if nothing comes before.
    pub(crate) fn output_due(&self) -> Option<Instant> {
        self.live.due()
    }

    /// Prints output of the command that runs.
    pub(crate) fn print_output(&mut self) {
        let text = self.live.more(self.paint);
        if !text.is_empty() {
            self.err(&text);
        }
    }

    /// The last line of a command of whose output no more is printed.
    pub(crate) fn last_line(&self) -> Option<&str> {
        self.live.last_line()
    }

    /// What the turn waits for after an event, if that changed.
    pub(crate) fn waits_for<'e>(&'e self, event: &'e Event) -> Option<Option<&'e str>> {
        match event {
            Event::SessionStatus { session_id, status } if *session_id == self.session => {
                match status {
                    SessionStatus::Idle => Some(None),
                    _ => Some(Some("model")),
                }
            }
            Event::PartUpdated {
                session_id, part, ..
            } if *session_id == self.session => match &part.kind {
                PartKind::Tool(call) if !call.state.is_final() => Some(Some(&call.tool)),
                PartKind::Tool(_) => {
                    let running = self.running.last().map(|(_, tool)| tool.as_str());
                    Some(Some(running.unwrap_or("model")))
                }
                _ => None,
            },
            _ => None,
        }
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
        self.out(&line);
    }

    fn error(&mut self, error: &outrigger_protocol::message::NamedError) {
        self.failed = true;
        self.result.fail(error);
        match self.show.format {
            Format::Json | Format::Stream => self.json_line("error", json!({ "error": error })),
            Format::Default | Format::Result => {
                let mark = self.paint.bad("Error:");
                self.err(&format!("{mark} {}\n", error.message()));
            }
        }
    }

    fn text(&mut self, event: &Event) {
        match event {
            Event::MessageUpdated { .. } | Event::PartUpdated { .. } if self.show.quiet => {}
            Event::MessageUpdated { info, .. } => {
                if let MessageInfo::Assistant(message) = info.as_ref()
                    && message.summary == Some(true)
                    && self.own_compaction
                {
                    if !self.summaries.contains_key(&message.id) {
                        self.summaries.insert(message.id.clone(), String::new());
                        let line = self
                            .paint
                            .dim("~ the conversation is long: making a summary of it\n");
                        self.err(&line);
                    }
                } else if let MessageInfo::Assistant(message) = info.as_ref()
                    && !std::mem::replace(&mut self.begun, true)
                {
                    let title = self.paint.bold(&name(&format!(
                        "> {} · {}",
                        message.agent, message.model_id
                    )));
                    self.err(&format!("\n{title}\n\n"));
                }
            }
            Event::PartUpdated { part, time, .. } => {
                // What a question on the screen hides is printed after it.
                if self.merger.is_some() {
                    let text = self.live.on(part, *time, self.mid_line, self.paint);
                    if !text.is_empty() {
                        self.err(&text);
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
                let line = self.retry(*attempt, message, *next);
                self.err(&line);
            }
            Event::PermissionAsked(request) if !crate::terminal::person_is_there() => {
                let mark = self.paint.bad("!");
                self.err(&format!(
                    "{mark} permission requested: {} ({})\n",
                    name(&request.permission),
                    name(&request.patterns.join(", "))
                ));
            }
            _ => {}
        }
        self.merge(event);
    }

    /// A request that is sent again: why, once, and when.
    fn retry(&mut self, attempt: u32, message: &str, next: Millis) -> String {
        let is_same = self.retried.as_deref() == Some(message);
        self.retried = Some(message.to_owned());
        let why = if is_same { "the same" } else { message };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
        let wait = match next.saturating_sub(now).div_ceil(1000) {
            0 => String::new(),
            seconds => format!("; again in {seconds} s"),
        };
        self.paint.dim(&format!("~ try {attempt}: {why}{wait}\n"))
    }

    fn part(&mut self, part: &Part) {
        match &part.kind {
            PartKind::Compaction(body) => {
                self.own_compaction = body.get("auto") == Some(&Value::Bool(true));
            }
            PartKind::Text(text) if self.summaries.contains_key(&part.message_id) => {
                self.summaries
                    .insert(part.message_id.clone(), text.text.trim().to_owned());
            }
            // The message that follows a compaction is no answer either.
            PartKind::Text(text) if text.synthetic == Some(true) => {}
            PartKind::Text(text) if text.time.as_ref().is_some_and(|t| t.end.is_some()) => {
                let text = text.text.trim();
                if !text.is_empty() {
                    self.out(&format!("{text}\n"));
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
                self.err(&line);
            }
            PartKind::Tool(call) => {
                if let ToolState::Running {
                    title: Some(title), ..
                } = &call.state
                    && call.tool == "task"
                {
                    let line = self.paint.dim(&format!("• {}\n", name(title)));
                    self.err(&line);
                }
            }
            _ => {}
        }
    }

    /// The conversation messages that an event makes ready, and those that have waited too long (E4).
    fn merge(&mut self, event: &Event) {
        let said = self.conversation.on(event);
        let ready = match &mut self.merger {
            Some(merger) => {
                let mut ready: Vec<_> = said
                    .into_iter()
                    .flat_map(|message| merger.push(message))
                    .collect();
                ready.extend(merger.expire(outrigger_agent::ids::now()));
                ready
            }
            None => said,
        };
        self.say(&ready);
    }

    fn say(&mut self, messages: &[ConversationMessage]) {
        for message in messages.iter().filter(|message| is_tool(message)) {
            let call = message.metadata.get("tool_use_id").and_then(Value::as_str);
            let is_shown = call.is_some_and(|call| self.live.has_shown(call));
            if !self.show.quiet && !is_shown {
                let line = tool_text(message, self.paint, &self.directory);
                self.err(&line);
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use outrigger_protocol::message::NamedError;

    use super::*;

    /// A view whose output can be looked at; `> ` stands before what goes to standard output.
    fn view(show: Show) -> (View, Arc<Mutex<String>>) {
        let shown = Arc::new(Mutex::new(String::new()));
        let mut view = View::new(SessionId("ses_1".into()), show, "/p".into());
        let kept = Arc::clone(&shown);
        view.paint = Paint::off();
        view.print = Box::new(move |to, text| {
            let mark = if to == To::Out { "> " } else { "" };
            kept.lock().unwrap().push_str(&format!("{mark}{text}"));
        });
        (view, shown)
    }

    fn event(id: &str, kind: &str, properties: Value) -> BusEvent {
        serde_json::from_value(json!({ "id": id, "type": kind, "properties": properties })).unwrap()
    }

    fn part(id: &str, mut part: Value) -> BusEvent {
        part["sessionID"] = json!("ses_1");
        part["messageID"] = json!("msg_1");
        event(
            id,
            "message.part.updated",
            json!({ "sessionID": "ses_1", "part": part, "time": 5 }),
        )
    }

    fn running(id: &str, began: u64) -> BusEvent {
        let state = json!({ "status": "running", "input": { "command": "ls" }, "time": { "start": began } });
        part(
            id,
            json!({ "id": "prt_1", "type": "tool", "callID": "c1", "tool": "bash", "state": state }),
        )
    }

    fn completed(id: &str, began: u64) -> BusEvent {
        let state = json!({ "status": "completed", "input": { "command": "ls" }, "output": "a\n", "title": "ls",
            "metadata": { "output": "a\n", "exit": 0 }, "time": { "start": began, "end": began + 7 } });
        part(
            id,
            json!({ "id": "prt_1", "type": "tool", "callID": "c1", "tool": "bash", "state": state }),
        )
    }

    fn said(id: &str, text: &str) -> BusEvent {
        part(
            id,
            json!({ "id": "prt_2", "type": "text", "text": text, "time": { "start": 1, "end": 2 } }),
        )
    }

    fn over(id: Option<&str>) -> TurnOutcome {
        TurnOutcome::Done {
            message_id: id.map(|id| MessageId(id.into())),
        }
    }

    fn shown(show: Show, events: &[BusEvent], outcome: &TurnOutcome) -> String {
        let (mut view, shown) = view(show);
        for event in events {
            view.on(event);
        }
        view.finish(outcome);
        std::mem::take(&mut *shown.lock().unwrap())
    }

    #[test]
    fn start_and_result_are_one_or_apart() {
        let now = outrigger_agent::ids::now();
        let events = [running("e1", now), completed("e2", now), said("e3", "done")];
        insta::assert_snapshot!(shown(Show::default(), &events, &over(Some("msg_1"))), @"
        $ ls  7 ms
        a
        > done
        ");
        let apart = Show {
            apart: true,
            ..Show::default()
        };
        insta::assert_snapshot!(shown(apart, &events, &over(Some("msg_1"))), @r#"
        ▸ bash {"command":"ls"}
        ◂ bash
        a
        > done
        "#);
    }

    /// A command that prints for a while is not silent until it ends, and nothing is printed twice.
    #[test]
    fn a_command_is_shown_while_it_prints() {
        let now = outrigger_agent::ids::now();
        let printing = |id: &str, output: &str| {
            let state = json!({ "status": "running", "input": { "command": "ls" }, "metadata": { "output": output },
                "time": { "start": 0 } });
            let mut event = part(
                id,
                json!({ "id": "prt_1", "type": "tool", "callID": "c1", "tool": "bash", "state": state }),
            );
            if let Event::PartUpdated { time, .. } = &mut event.event {
                *time = 2_000;
            }
            event
        };
        let (mut view, text) = view(Show::default());
        view.on(&running("e1", now));
        view.on(&printing("e2", "a\nb"));
        assert_eq!(*text.lock().unwrap(), "$ ls\na\n");
        // Not below a question.
        assert!(!view.on_beside_question(&printing("e3", "a\nb\n")));
        view.on(&printing("e4", "a\nb\nc\n"));
        view.on(&completed("e5", now));
        view.finish(&TurnOutcome::Cancelled);
        assert_eq!(
            *text.lock().unwrap(),
            "$ ls\na\nb\nc\n… and more lines\n  7 ms\n"
        );
    }

    #[test]
    fn nothing_stays_unseen() {
        let now = outrigger_agent::ids::now();
        // The turn ends with a call under way.
        let left = shown(
            Show::default(),
            &[running("e1", now)],
            &TurnOutcome::Cancelled,
        );
        assert_eq!(left, "▸ bash {\"command\":\"ls\"}\n");
        // A call that takes longer than starts are kept is shown with the next event, its result when it comes.
        let (mut view, text) = view(Show::default());
        view.on(&running("e1", now - 3_600_000));
        assert_eq!(*text.lock().unwrap(), "▸ bash {\"command\":\"ls\"}\n");
        view.on(&completed("e2", now - 3_600_000));
        assert_eq!(
            *text.lock().unwrap(),
            "▸ bash {\"command\":\"ls\"}\n◂ bash\na\n"
        );
    }

    #[test]
    fn a_stored_event_is_shown_once_however_often_it_comes() {
        for format in [Format::Default, Format::Json] {
            let args = Show {
                format,
                ..Show::default()
            };
            let once = [said("e1", "one"), said("e2", "two")];
            let again = [
                said("e1", "one"),
                said("e1", "one"),
                said("e2", "two"),
                said("e1", "one"),
            ];
            let text = |events: &[BusEvent]| {
                shown(args, events, &over(Some("msg_1")))
                    .matches("two")
                    .count()
            };
            assert_eq!(text(&once), 1);
            assert_eq!(
                shown(args, &again, &over(None)).lines().count(),
                2,
                "{format:?}"
            );
        }
    }

    #[test]
    fn an_empty_answer_is_no_riddle() {
        let no_answer = "! the model gave no answer\n";
        for (events, outcome, want) in [
            (vec![], over(Some("msg_1")), no_answer),
            (vec![said("e1", " \n")], over(Some("msg_1")), no_answer),
            (vec![said("e1", "yes")], over(Some("msg_1")), "> yes\n"),
            // The text belongs to an earlier step.
            (
                vec![said("e1", "yes")],
                over(Some("msg_2")),
                "> yes\n! the model gave no answer\n",
            ),
            (vec![], over(None), ""),
            (vec![], TurnOutcome::Cancelled, ""),
            (
                vec![],
                TurnOutcome::Failed {
                    error: NamedError::new("E", "it broke"),
                },
                "Error: it broke\n",
            ),
        ] {
            assert_eq!(shown(Show::default(), &events, &outcome), want);
        }
    }

    #[test]
    fn what_is_printed_beside_a_question_begins_a_new_line() {
        let (mut view, text) = view(Show::default());
        assert!(!view.on_beside_question(&part(
            "e1",
            json!({ "id": "prt_3", "type": "text", "text": "begun" })
        )));
        assert!(view.on_beside_question(&said("e2", "done")));
        assert_eq!(*text.lock().unwrap(), "\n> done\n");
    }
}
