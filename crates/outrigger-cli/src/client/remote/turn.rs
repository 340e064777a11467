//! A turn on a server, followed to its end: what it does is shown, its questions are put, and signals reach it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::{MessageId, PermissionId, SessionId};
use outrigger_protocol::message::NamedError;
use outrigger_protocol::permission::{PermissionRequest, Reply};
use outrigger_protocol::question::QuestionRequest;
use outrigger_protocol::turn::TurnOutcome;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{Remote, Told};
use crate::client::model_question::Inquiry;
use crate::client::permission_question::{Asker, Questions};
use crate::client::view::View;
use crate::exit;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::progress::Line;

/// A turn that is only about to begin cannot be cancelled yet: it is asked again after this, ...
const AGAIN: Duration = Duration::from_millis(100);
/// ... so often.
const TRIES: u32 = 30;
/// How long the last events of a turn may take behind its answer.
const REST: Duration = Duration::from_secs(2);

/// Who answers the questions of turns that are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// The person at the terminal.
    Person,
    /// Yes to all.
    Yes,
    /// No to all: nobody is there.
    No,
}

/// Open permission questions of the sessions that are followed.
#[derive(Clone)]
struct Open {
    remote: Remote,
    list: Arc<Mutex<Vec<PermissionRequest>>>,
}

impl Open {
    fn list(&self) -> MutexGuard<'_, Vec<PermissionRequest>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asker for Open {
    fn questions(&self) -> Vec<PermissionRequest> {
        self.list().clone()
    }

    fn answer(&self, id: &PermissionId, reply: Reply) -> bool {
        self.list().retain(|request| request.id != *id);
        let (remote, path) = (self.remote.clone(), format!("/permission/{id}/reply"));
        tokio::spawn(async move {
            if let Err(failure) = remote.post(&path, json!({ "reply": reply })).await {
                tracing::warn!("[attach] an answer did not arrive: {failure:?}");
            }
        });
        true
    }
}

/// What a client hears.
#[derive(Debug)]
pub(crate) enum Heard {
    /// From the server.
    Told(Told),
    /// From the person; `None` is the end of the input.
    Typed(Option<String>),
}

/// A client of a server, with a terminal or without one.
pub(crate) struct Attached<'a> {
    pub(crate) remote: Remote,
    pub(crate) questions: Questions,
    pub(crate) inquiry: Option<Inquiry>,
    line: &'a Line,
    pub(crate) signals: &'a Signals,
    events: UnboundedReceiver<Told>,
    open: Open,
    answers: Answers,
    /// The session that is followed, and those of its subagents.
    sessions: HashSet<SessionId>,
}

impl<'a> Attached<'a> {
    pub(crate) fn new(
        remote: Remote,
        events: UnboundedReceiver<Told>,
        answers: Answers,
        line: &'a Line,
        signals: &'a Signals,
    ) -> Self {
        Self {
            open: Open {
                remote: remote.clone(),
                list: Arc::default(),
            },
            remote,
            questions: Questions::new(),
            inquiry: None,
            line,
            signals,
            events,
            answers,
            sessions: HashSet::new(),
        }
    }

    /// Follows this session from now on.
    pub(crate) fn follow_session(&mut self, id: &SessionId) {
        self.sessions = HashSet::from([id.clone()]);
        self.open.list().clear();
    }

    /// The next that the server tells or that is typed.
    pub(crate) async fn hear(&mut self) -> Heard {
        tokio::select! {
            biased;
            told = self.events.recv() => Heard::Told(told.unwrap_or(Told::Gone)),
            typed = self.questions.typed() => Heard::Typed(typed),
        }
    }

    /// Prints what happens until the answer to `request` is there, and gives the exit code.
    ///
    /// # Errors
    /// Those of the request; a server that is gone.
    pub(crate) async fn follow(
        &mut self,
        id: &SessionId,
        view: &mut View,
        request: impl Future<Output = Result<Value, Failure>>,
    ) -> Result<u8, Failure> {
        let answer = self.until_over(id, view, request).await;
        self.line.wait_for(None);
        self.line.clear();
        self.questions.clear(self.line);
        self.inquiry = None;
        let outcome = outcome(&answer?);
        view.finish(&outcome);
        Ok(match outcome {
            TurnOutcome::Cancelled => exit::CANCELLED,
            TurnOutcome::Failed { .. } => exit::FAILED,
            TurnOutcome::Done { .. } => u8::from(view.failed),
        })
    }

    async fn until_over(
        &mut self,
        id: &SessionId,
        view: &mut View,
        request: impl Future<Output = Result<Value, Failure>>,
    ) -> Result<Value, Failure> {
        tokio::pin!(request);
        let signals = self.signals;
        let _turn = signals.turn();
        let (mut cancelled, mut idle) = (None, false);
        let answer = loop {
            tokio::select! {
                biased;
                _ = signals.cancelled(), if cancelled.is_none() => {
                    self.line.say("\n~ cancelling; Ctrl-C again leaves at once\n");
                    self.abort(id);
                    cancelled = Some(0);
                }
                () = tokio::time::sleep(AGAIN), if cancelled.is_some_and(|tries| tries < TRIES) => {
                    self.abort(id);
                    cancelled = cancelled.map(|tries| tries + 1);
                }
                heard = self.hear() => match heard {
                    Heard::Told(Told::Gone) => return Err(gone()),
                    Heard::Told(told) => idle |= self.on(id, view, told),
                    Heard::Typed(typed) => self.typed(typed.as_deref()),
                },
                answer = &mut request => break answer?,
            }
        };
        // The last events may be on their way still.
        loop {
            let patience = if idle {
                Duration::from_millis(50)
            } else {
                REST
            };
            match tokio::time::timeout(patience, self.events.recv()).await {
                Ok(None | Some(Told::Gone)) | Err(_) => return Ok(answer),
                Ok(Some(told)) => idle |= self.on(id, view, told),
            }
        }
    }

    /// Takes an answer to the question that is shown.
    pub(crate) fn typed(&mut self, typed: Option<&str>) {
        if self.questions.is_shown() {
            self.questions.answer(&self.open, self.line, typed);
            return;
        }
        let Some(inquiry) = &mut self.inquiry else {
            return;
        };
        if let Some((path, body)) = inquiry.take(typed) {
            self.inquiry = None;
            let remote = self.remote.clone();
            tokio::spawn(async move {
                if let Err(failure) = remote.post(&path, body).await {
                    tracing::warn!("[attach] an answer did not arrive: {failure:?}");
                }
            });
        } else {
            self.line.say(&inquiry.text());
            self.questions.want();
        }
    }

    /// Something waits for a line of the person's.
    pub(crate) fn asks(&self) -> bool {
        self.questions.is_shown() || self.inquiry.is_some()
    }

    fn abort(&self, id: &SessionId) {
        let (remote, path) = (self.remote.clone(), format!("/session/{id}/abort"));
        tokio::spawn(async move { remote.post(&path, json!({})).await });
    }

    /// Shows what was told; true when the session became idle.
    pub(crate) fn on(&mut self, id: &SessionId, view: &mut View, told: Told) -> bool {
        let event = match told {
            Told::Event(event) => event,
            Told::Gap | Told::Gone => {
                self.line.say("~ some of what happened is not shown\n");
                return false;
            }
        };
        self.show(view, &event);
        match &event.event {
            Event::SessionCreated { session_id, info } => {
                let parent = info.parent_id.as_ref();
                if parent.is_some_and(|parent| self.sessions.contains(parent)) {
                    self.sessions.insert(session_id.clone());
                }
            }
            Event::PermissionAsked(request) if self.sessions.contains(&request.session_id) => {
                self.asked(request);
            }
            Event::PermissionReplied { request_id, .. } => {
                self.open.list().retain(|request| request.id != *request_id);
                self.questions.gone(&self.open, self.line, request_id);
            }
            Event::QuestionAsked(request) if self.sessions.contains(&request.session_id) => {
                self.inquired(request);
            }
            Event::QuestionReplied { request_id, .. }
            | Event::QuestionRejected { request_id, .. } => {
                self.inquiry.take_if(|inquiry| inquiry.is(request_id));
            }
            _ => {}
        }
        matches!(&event.event, Event::SessionIdle { session_id } if session_id == id)
    }

    fn show(&mut self, view: &mut View, event: &BusEvent) {
        self.line.clear();
        if self.asks() {
            if view.on_beside_question(event) {
                self.questions.again(self.line);
            }
            return;
        }
        view.on(event);
        if let Some(what) = view.waits_for(&event.event) {
            self.line.wait_for(what);
        }
    }

    fn asked(&mut self, request: &PermissionRequest) {
        self.open.list().push(request.clone());
        match self.answers {
            Answers::Person => self.questions.ask(&self.open, self.line, request),
            Answers::Yes => drop(self.open.answer(&request.id, Reply::Once)),
            Answers::No => drop(self.open.answer(&request.id, Reply::Reject)),
        }
    }

    fn inquired(&mut self, request: &QuestionRequest) {
        let inquiry = Inquiry::new(request.clone());
        if self.answers == Answers::Person {
            self.line.wait_for(None);
            self.line.say(&inquiry.text());
            self.questions.want();
            self.inquiry = Some(inquiry);
            return;
        }
        let (remote, path) = (self.remote.clone(), inquiry.rejection());
        tokio::spawn(async move { remote.post(&path, json!({})).await });
    }
}

/// The server went away in the middle.
pub(crate) fn gone() -> Failure {
    Failure::new(
        "attach.gone",
        "the server is gone",
        Some("what was said is in its store; start it again, and go on with --continue".into()),
    )
}

/// What an answer to a prompt says of its turn.
fn outcome(answer: &Value) -> TurnOutcome {
    let info = &answer["info"];
    match serde_json::from_value::<NamedError>(info["error"].clone()) {
        Ok(error) if error.name == "MessageAbortedError" => TurnOutcome::Cancelled,
        Ok(error) => TurnOutcome::Failed { error },
        Err(_) => TurnOutcome::Done {
            message_id: info["id"].as_str().map(|id| MessageId(id.to_owned())),
        },
    }
}
