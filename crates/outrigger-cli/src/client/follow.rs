//! Follows a turn until it ends: shows its output, asks its questions, and forwards signals.

use std::collections::VecDeque;
use std::time::Duration;

use outrigger_client::{
    Asker, ClientError, Connection, Events, ModelQuestion, Sessions, StreamItem,
};
use outrigger_protocol::event::{BusEvent, Event, StoredEvents};
use outrigger_protocol::id::{QuestionId, SessionId};
use outrigger_protocol::permission::{PermissionRequest, Reply};
use outrigger_protocol::question::QuestionRequest;
use outrigger_protocol::turn::{TurnBody, TurnOutcome};
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::permission_question::Questions;
use super::view::View;
use crate::exit;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::{self, err_size, progress::Line};

/// A turn that has not started yet cannot be cancelled: retry after this, ...
const CANCEL_INTERVAL: Duration = Duration::from_millis(25);
/// ... this many times.
const MAX_CANCELS: u32 = 40;

/// Who answers the questions of followed turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// The user at the terminal.
    Person,
    /// Yes to all.
    Yes,
    /// No to all: there is no user.
    No,
    /// The agent itself, which was started this way.
    Agent,
}

/// The next event for a follower.
#[derive(Debug)]
pub(crate) enum Next {
    /// From the agent.
    Agent(StreamItem),
    /// From the user; `None` is the end of the input.
    Typed(Option<String>),
}

/// The progress of a cancellation.
enum Cancel {
    Unasked,
    Asked(u32),
    Heard,
}

/// Follows the turns of an agent, with a terminal or without one.
pub(crate) struct Follower<'a> {
    pub(crate) connection: Connection,
    pub(crate) questions: Questions,
    pub(crate) line: &'a Line,
    pub(crate) signals: &'a Signals,
    /// The model's questions; the first is on the screen while no permission question is open.
    model_questions: VecDeque<ModelQuestion>,
    events: Events,
    asker: Asker,
    answers: Answers,
    /// Signals a change of the terminal's size.
    resizes: Option<Signal>,
}

/// A displayed turn.
struct Screen<'v> {
    id: SessionId,
    view: &'v mut View,
    /// The log after this number belongs to the turn.
    from: i64,
    idle: bool,
}

impl<'a> Follower<'a> {
    /// Subscribes to events.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub(crate) async fn new(
        connection: Connection,
        answers: Answers,
        line: &'a Line,
        signals: &'a Signals,
    ) -> Result<Self, Failure> {
        Ok(Self {
            events: connection.listen().await?,
            asker: Asker::new(connection.clone()),
            connection,
            questions: Questions::new(),
            model_questions: VecDeque::new(),
            line,
            signals,
            answers,
            resizes: signal(SignalKind::window_change()).ok(),
        })
    }

    /// Follows this session from now on.
    pub(crate) fn follow_session(&mut self, id: &SessionId) {
        if !self.connection.is_local() {
            self.asker.sessions = Sessions::of(id);
        }
    }

    /// Returns the next event of the agent or line of the user.
    pub(crate) async fn next(&mut self) -> Next {
        loop {
            let asks = self.asks();
            terminal::hold(asks);
            tokio::select! {
                biased;
                item = self.events.next() => return Next::Agent(item),
                typed = self.questions.typed() => return Next::Typed(typed),
                () = resized(&mut self.resizes), if asks => {
                    // The prompt on the screen has no line end.
                    self.line.say("\n");
                    self.again();
                }
            }
        }
    }

    /// Runs a turn in a session, prints its events until it ends, and returns the exit code.
    ///
    /// # Errors
    /// Those of the request, or the server is gone.
    pub(crate) async fn follow(
        &mut self,
        id: &SessionId,
        view: &mut View,
        request: &TurnBody,
    ) -> Result<u8, Failure> {
        self.events.skip_waiting();
        let stored: StoredEvents = self
            .connection
            .get(&format!("/outrigger/session/{id}/event"))
            .await?;
        let mut screen = Screen {
            id: id.clone(),
            view,
            from: stored.head,
            idle: false,
        };
        let (connection, path) = (
            self.connection.clone(),
            format!("/outrigger/session/{id}/turn"),
        );
        let turn = async move { connection.post(&path, request).await };
        let outcome = self.until_over(&mut screen, turn).await;
        self.line.wait_for(None);
        self.line.clear();
        self.questions.clear(self.line);
        self.model_questions.clear();
        self.questions.hold(false);
        terminal::hold(false);
        // A server that refuses a turn sends no events about it.
        if self.connection.is_local() || matches!(outcome, Some(Ok(_))) {
            self.last_events(&mut screen).await;
        }
        let Some(outcome) = outcome.transpose()? else {
            return Ok(exit::CANCELLED);
        };
        screen.view.finish(&outcome);
        Ok(match outcome {
            TurnOutcome::Cancelled => exit::CANCELLED,
            TurnOutcome::Failed { .. } => exit::FAILED,
            TurnOutcome::Done { .. } => u8::from(screen.view.failed),
        })
    }

    /// Shows the remaining events of a turn that has ended.
    async fn last_events(&mut self, screen: &mut Screen<'_>) {
        while let Some(item) = self.events.rest(screen.idle).await {
            match item {
                StreamItem::Event(event) => {
                    screen.idle |= is_idle(&event, &screen.id);
                    screen.view.on(&event);
                }
                StreamItem::Gap => self.catch_up(screen).await,
                StreamItem::End => break,
            }
        }
        // While the stream is disconnected, the server's store has what it would have sent.
        if !screen.idle && !self.connection.is_local() {
            self.catch_up(screen).await;
        }
    }

    /// Returns `None` if the turn was cancelled before it could start.
    async fn until_over(
        &mut self,
        screen: &mut Screen<'_>,
        turn: impl Future<Output = Result<TurnOutcome, ClientError>>,
    ) -> Option<Result<TurnOutcome, ClientError>> {
        tokio::pin!(turn);
        let signals = self.signals;
        let _turn = signals.turn();
        let mut cancel = Cancel::Unasked;
        loop {
            let due = screen.view.output_due().filter(|_| !self.asks());
            tokio::select! {
                biased;
                terminated = signals.cancelled(), if matches!(cancel, Cancel::Unasked) => {
                    let how = if terminated { "\n~ cancelling, as SIGTERM asks\n" } else { "\n~ cancelling; Ctrl-C again leaves at once\n" };
                    self.line.say(how);
                    cancel = self.cancel(&screen.id, 0).await;
                }
                () = tokio::time::sleep(CANCEL_INTERVAL), if matches!(cancel, Cancel::Asked(_)) => {
                    let Cancel::Asked(tries) = cancel else { continue };
                    // A turn of this process ends when its future is dropped; a server would start it
                    // nevertheless.
                    if tries > MAX_CANCELS && self.connection.is_local() {
                        return None;
                    }
                    cancel = self.cancel(&screen.id, tries).await;
                }
                next = self.next() => match next {
                    Next::Agent(StreamItem::Event(event)) => {
                        screen.idle |= is_idle(&event, &screen.id);
                        self.on(screen.view, &event).await;
                    }
                    Next::Agent(StreamItem::Gap) => self.catch_up(screen).await,
                    Next::Agent(StreamItem::End) => return Some(Err(ClientError::gone())),
                    Next::Typed(typed) => self.typed(typed.as_deref()).await,
                },
                outcome = &mut turn => return Some(outcome),
                () = until(due) => {
                    self.line.clear();
                    screen.view.print_output();
                    self.line.redraw();
                }
            }
        }
    }

    async fn cancel(&self, id: &SessionId, tries: u32) -> Cancel {
        let path = format!("/outrigger/session/{id}/cancel");
        match self.connection.post(&path, &json!({})).await {
            Ok(true) => Cancel::Heard,
            Ok(false) | Err(_) => Cancel::Asked(tries + 1),
        }
    }

    /// Shows an event, and asks its question if it is one.
    pub(crate) async fn on(&mut self, view: &mut View, event: &BusEvent) {
        self.show(view, event);
        match &event.event {
            Event::SessionCreated { session_id, info } => {
                self.asker
                    .sessions
                    .created(session_id, info.parent_id.as_ref());
            }
            // Questions of subagents are for this user, too.
            Event::PermissionAsked(request) if self.asker.sessions.hold(&request.session_id) => {
                self.asked(request).await;
            }
            Event::PermissionReplied { request_id, .. } if self.answers == Answers::Person => {
                self.questions
                    .gone(&self.asker, self.line, request_id)
                    .await;
            }
            Event::QuestionAsked(request) if self.asker.sessions.hold(&request.session_id) => {
                self.inquired(request).await;
            }
            Event::QuestionReplied { request_id, .. }
            | Event::QuestionRejected { request_id, .. } => {
                self.settled(request_id).await;
            }
            _ => {}
        }
    }

    fn show(&mut self, view: &mut View, event: &BusEvent) {
        self.line.clear();
        if self.asks() {
            if view.on_beside_question(event) {
                self.again();
            }
            return;
        }
        view.on(event);
        if let Some(what) = view.waits_for(&event.event) {
            self.line.wait_for(what);
        }
        self.line.detail(view.last_line());
        self.line.redraw();
    }

    /// Returns whether a question waits for a line of the user.
    pub(crate) fn asks(&self) -> bool {
        self.questions.is_shown() || !self.model_questions.is_empty()
    }

    async fn asked(&mut self, request: &PermissionRequest) {
        match self.answers {
            Answers::Person => self.questions.ask(&self.asker, self.line, request).await,
            Answers::Yes => self.asker.answer(&request.id, Reply::Once).await,
            Answers::No => self.asker.answer(&request.id, Reply::Reject).await,
            Answers::Agent => {}
        }
    }

    async fn inquired(&mut self, request: &QuestionRequest) {
        let question = ModelQuestion::new(request.clone());
        if self.answers != Answers::Person {
            return self.reply(&question.rejection(), &json!({})).await;
        }
        self.model_questions.push_back(question);
        if self.model_questions.len() == 1 {
            self.inquire();
        }
    }

    /// Asks the model's next question, unless a permission question is open. Until it is answered no permission
    /// question is shown: a line typed for one question must not answer another.
    fn inquire(&mut self) {
        let Some(question) = self.model_questions.front() else {
            return self.questions.hold(false);
        };
        if self.questions.is_shown() {
            return;
        }
        self.questions.hold(true);
        self.line.wait_for(None);
        terminal::hold(true);
        self.line.say(&question.text(err_size()));
        self.questions.want();
    }

    /// Shows the open question again, below what was printed since.
    fn again(&self) {
        match self.model_questions.front() {
            Some(question) if !self.questions.is_shown() => {
                self.line.say(&question.text(err_size()))
            }
            _ => self.questions.again(self.line),
        }
    }

    /// Handles a question of the model that was answered by any client.
    async fn settled(&mut self, id: &QuestionId) {
        let is_first = self.model_questions.front().is_some_and(|it| it.is(id));
        self.model_questions.retain(|question| !question.is(id));
        if is_first && !self.questions.is_shown() {
            self.line.say("\n~ this needs no answer any more\n");
            self.go_on().await;
        }
    }

    /// Shows what waited for the model's question: permissions first.
    async fn go_on(&mut self) {
        self.questions.hold(false);
        self.questions.catch_up(&self.asker, self.line).await;
        self.inquire();
    }

    /// Handles an answer to the displayed question.
    pub(crate) async fn typed(&mut self, typed: Option<&str>) {
        if self.questions.is_shown() || self.model_questions.is_empty() {
            self.questions.answer(&self.asker, self.line, typed).await;
            return self.inquire();
        }
        let Some(question) = self.model_questions.front_mut() else {
            return;
        };
        if let Some((path, body)) = question.take(typed) {
            self.model_questions.pop_front();
            self.reply(&path, &body).await;
            self.go_on().await;
        } else {
            self.line.say(&question.text(err_size()));
            self.questions.want();
        }
    }

    async fn reply(&self, path: &str, body: &Value) {
        let replied: Result<bool, ClientError> = self.connection.post(path, body).await;
        if let Err(failure) = replied {
            tracing::warn!("[client] an answer did not arrive: {failure:?}");
        }
    }

    /// Handles a gap: events came faster than they could be shown, and some are lost. The store has them
    /// (invariant 6).
    async fn catch_up(&mut self, screen: &mut Screen<'_>) {
        self.line.clear();
        if self.questions.is_shown() {
            self.line.say("\n");
        }
        let path = format!(
            "/outrigger/session/{}/event?after={}",
            screen.id, screen.from
        );
        match self.connection.get::<StoredEvents>(&path).await {
            Ok(stored) => {
                for event in &stored.events {
                    screen.idle |= is_idle(event, &screen.id);
                    screen.view.on(event);
                }
            }
            Err(failure) => self.line.say(&format!(
                "warning: some events are not shown: {}\n",
                failure.message()
            )),
        }
        self.again();
        if self.answers == Answers::Person {
            self.questions.catch_up(&self.asker, self.line).await;
        }
    }
}

/// Waits until then; without a time, forever.
async fn until(time: Option<std::time::Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

async fn resized(resizes: &mut Option<Signal>) {
    if let Some(resizes) = resizes
        && resizes.recv().await.is_some()
    {
        return;
    }
    std::future::pending().await
}

fn is_idle(event: &BusEvent, id: &SessionId) -> bool {
    matches!(&event.event, Event::SessionIdle { session_id } if session_id == id)
}
