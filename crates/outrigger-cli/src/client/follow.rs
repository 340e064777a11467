//! Following a turn to its end: what it does is shown, its questions are put, and signals reach it.

use std::sync::Arc;
use std::time::Duration;

use outrigger_agent::{Agent, AgentError, Answering};
use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::turn::TurnOutcome;
use outrigger_store::{RecordQuery, Scope};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::args::RunArgs;
use crate::client::permission_question::Questions;
use crate::client::view::View;
use crate::exit;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::progress::Line;

/// A turn that is only about to begin cannot be cancelled yet: it is tried again after this, …
const AGAIN: Duration = Duration::from_millis(25);
/// … so often.
const TRIES: u32 = 40;

/// What a turn is followed with.
pub(crate) struct Front<'a> {
    pub(crate) agent: &'a Agent,
    pub(crate) args: &'a RunArgs,
    pub(crate) line: &'a Line,
    pub(crate) signals: &'a Signals,
    questions: Questions,
}

/// How far a cancellation has come.
enum Cancel {
    Unasked,
    Asked(u32),
    Heard,
}

/// A session on the screen.
struct Screen {
    id: SessionId,
    view: View,
    events: Receiver<Arc<BusEvent>>,
    /// The log behind this number is the turn's.
    from: i64,
}

impl<'a> Front<'a> {
    pub(crate) fn new(
        agent: &'a Agent,
        args: &'a RunArgs,
        line: &'a Line,
        signals: &'a Signals,
    ) -> Self {
        Self {
            agent,
            args,
            line,
            signals,
            questions: Questions::new(),
        }
    }

    /// Prints what happens until the turn is over, and gives the exit code.
    ///
    /// # Errors
    /// Those of the turn that it did not begin, and of the store.
    pub(crate) async fn follow(
        &mut self,
        id: &SessionId,
        turn: impl Future<Output = Result<TurnOutcome, AgentError>>,
    ) -> Result<u8, Failure> {
        let directory = self.agent.place().directory.to_string_lossy().into_owned();
        let mut screen = Screen {
            id: id.clone(),
            from: self.agent.store().head()?.seq,
            events: self.agent.listen(),
            view: View::new(id.clone(), self.args, directory),
        };
        let outcome = self.until_over(&mut screen, turn).await;
        self.line.wait_for(None);
        self.line.clear();
        self.questions.clear(self.line);
        // Everything that was told before the end is in the channel already.
        loop {
            match screen.events.try_recv() {
                Ok(event) => screen.view.on(&event),
                Err(TryRecvError::Lagged(_)) => self.catch_up(&mut screen),
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
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

    /// None: it was cancelled before it could begin.
    async fn until_over(
        &mut self,
        screen: &mut Screen,
        turn: impl Future<Output = Result<TurnOutcome, AgentError>>,
    ) -> Option<Result<TurnOutcome, AgentError>> {
        tokio::pin!(turn);
        let signals = self.signals;
        let _turn = signals.turn();
        let mut cancel = Cancel::Unasked;
        loop {
            tokio::select! {
                biased;
                terminated = signals.cancelled(), if matches!(cancel, Cancel::Unasked) => {
                    let how = if terminated { "\n~ cancelling, as SIGTERM asks\n" } else { "\n~ cancelling; Ctrl-C again leaves at once\n" };
                    self.line.say(how);
                    cancel = self.cancel(&screen.id, 0);
                }
                () = tokio::time::sleep(AGAIN), if matches!(cancel, Cancel::Asked(_)) => {
                    let Cancel::Asked(tries) = cancel else { continue };
                    if tries > TRIES {
                        return None;
                    }
                    cancel = self.cancel(&screen.id, tries);
                }
                event = screen.events.recv() => self.show(screen, event),
                typed = self.questions.typed() => self.questions.answer(self.agent, self.line, typed.as_deref()),
                outcome = &mut turn => return Some(outcome),
            }
        }
    }

    fn cancel(&self, id: &SessionId, tries: u32) -> Cancel {
        if self.agent.cancel(id) {
            Cancel::Heard
        } else {
            Cancel::Asked(tries + 1)
        }
    }

    fn show(&mut self, screen: &mut Screen, event: Result<Arc<BusEvent>, RecvError>) {
        let event = match event {
            Ok(event) => event,
            Err(RecvError::Lagged(_)) => return self.catch_up(screen),
            Err(RecvError::Closed) => return,
        };
        self.line.clear();
        if self.questions.is_shown() {
            if screen.view.on_beside_question(&event) {
                self.questions.again(self.line);
            }
        } else {
            screen.view.on(&event);
            if let Some(what) = screen.view.waits_for(&event.event) {
                self.line.wait_for(what);
            }
        }
        // Questions of subagents are the user's too.
        match &event.event {
            _ if self.agent.answering() != Answering::Ask => {}
            Event::PermissionAsked(request) => self.questions.ask(self.agent, self.line, request),
            Event::PermissionReplied { request_id, .. } => {
                self.questions.gone(self.agent, self.line, request_id)
            }
            _ => {}
        }
    }

    /// Events came faster than they could be shown, and some are lost. The store has them (invariant 6).
    fn catch_up(&mut self, screen: &mut Screen) {
        self.line.clear();
        if self.questions.is_shown() {
            self.line.say("\n");
        }
        let query = RecordQuery {
            scope: Some(Scope::Session(&screen.id)),
            kind: Some("event"),
            after: screen.from,
            limit: None,
        };
        match self.agent.store().records(&query) {
            Ok(records) => {
                for stored in records {
                    if let LogRecord::Event(event) = stored.record {
                        screen.view.on(&event);
                    }
                }
            }
            Err(error) => self
                .line
                .say(&format!("! some of what happened is not shown: {error}\n")),
        }
        self.questions.again(self.line);
        if self.agent.answering() == Answering::Ask {
            self.questions.catch_up(self.agent, self.line);
        }
    }
}
