//! Turns of a session: one at a time, each in a separate task, so that a turn completes even if its caller disconnects.

use std::sync::Arc;
use std::time::Duration;

use outrigger_permissions::command_sandbox;
use outrigger_protocol::id::{SessionId, TurnId};
use outrigger_protocol::session::Session;
use outrigger_protocol::turn::{Begin, Input, TurnOutcome};
use tokio::sync::{Mutex, MutexGuard, watch};

use crate::error::AgentError;
use crate::session::edit::may_send;
use crate::session::owner::{Owner, own};
use crate::state::{Agent, AgentState};
use crate::turn::drive::Driver;
use crate::turn::effects::spawn::is_raised;
use crate::turn::request::{Origin, TurnInput, TurnRequest};
use crate::turn::start::{Prompt, Start};
use outrigger_session_state::histories::Conversation;
use outrigger_session_state::prompt_queue::InQueue;

/// Time for which a plugin's prompt waits for a turn that itself waits for a plugin: it may be the very call that sent the
/// prompt, and would then wait forever. Shorter than a hook's deadline, so that the plugin gets the reason instead of being
/// killed.
const PLUGIN_PROMPT_TIMEOUT: Duration = Duration::from_secs(3);

/// Cancels a turn when its caller is dropped.
pub(crate) struct CancelOnDrop(pub(crate) Option<watch::Sender<bool>>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(cancel) = self.0.take() {
            let _ = cancel.send(true);
        }
    }
}

/// Removes a session from the list of running ones when dropped.
pub(crate) struct Registered<'a> {
    pub(crate) state: &'a AgentState,
    pub(crate) id: SessionId,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.state.sessions.turns.unregister(&self.id);
        self.state.plugins.message_changes.end(&self.id);
    }
}

/// Result of waiting for the previous turn.
enum Waited<'q> {
    /// The turn starts.
    Begins(Start, MutexGuard<'q, ()>),
    /// Another turn answered, or the prompt was cancelled.
    Over(TurnOutcome),
}

impl Agent {
    /// Carries a request out, to the end of its turn. Requests for the same session queue up after each other; a prompt that
    /// wants no reply is stored at once. If the caller goes away, the turn is cancelled and ends by itself, unless the caller is
    /// a client.
    ///
    /// # Errors
    /// Unknown session, agent, model or command, another process at work in the session ([`AgentError::Busy`]), a plugin that
    /// would wait for itself, nothing to compact, and those of the store. What goes wrong within the turn is its outcome, not an
    /// error; so is a summary that the model does not write.
    pub async fn run(&self, request: TurnRequest) -> Result<TurnOutcome, AgentError> {
        let is_detached = request.origin == Origin::Client;
        let agent = self.clone();
        // On the heap, as passed to a task; otherwise this future would contain it.
        let turn = Box::pin(async move { agent.carry_out(request).await });
        if !is_detached {
            return turn.await;
        }
        // As in OpenCode: other turns may follow.
        let ended = tokio::spawn(turn).await;
        ended.unwrap_or_else(|lost| Err(AgentError::Lost(lost.to_string())))
    }

    async fn carry_out(&self, mut request: TurnRequest) -> Result<TurnOutcome, AgentError> {
        request.check_format()?;
        command_sandbox::prepare(&self.state.config, &self.state.project.location);
        Box::pin(self.read_files(&mut request)).await;
        let TurnRequest {
            session: id,
            input,
            origin,
        } = request;
        let start = match input {
            TurnInput::Prompt(input) => Start::Prompt(Box::new(Prompt {
                input: *input,
                command: None,
            })),
            TurnInput::Command {
                name,
                arguments,
                prompt,
            } => match self.as_compaction(&name, &arguments, &prompt) {
                Some(compact) => return Box::pin(self.compact(&id, compact)).await,
                None => {
                    let prompt = self.command_prompt(&id, &name, &arguments, *prompt);
                    Start::Prompt(Box::new(Box::pin(prompt).await?))
                }
            },
            TurnInput::Compact(compact) => return Box::pin(self.compact(&id, compact)).await,
            TurnInput::Resume(turn) => Start::Resume(turn),
        };
        self.start(&id, start, origin).await
    }

    pub(crate) async fn start(
        &self,
        id: &SessionId,
        start: Start,
        origin: Origin,
    ) -> Result<TurnOutcome, AgentError> {
        self.state.providers_ready().await;
        if self.state.sessions.turns.is_closing() {
            return Err(AgentError::Lost("the program is ending".to_owned()));
        }
        if let Start::Prompt(prompt) = &start {
            may_send(&prompt.input)?;
            self.may_replace(id, &prompt.input)?;
            if prompt.input.no_reply != Some(true) {
                self.admit_turn(id, &prompt.input.provenance)?;
            }
        }
        let (cancel, cancelled) = watch::channel(false);
        let mut guard = CancelOnDrop(Some(cancel.clone()));
        let (agent, id) = (self.clone(), id.clone());
        let task =
            tokio::spawn(async move { agent.queued(&id, start, cancel, cancelled, origin).await });
        let result = task.await;
        guard.0 = None;
        result.unwrap_or_else(|lost| Err(AgentError::Lost(lost.to_string())))
    }

    async fn queued(
        &self,
        id: &SessionId,
        start: Start,
        cancel: watch::Sender<bool>,
        cancelled: watch::Receiver<bool>,
        origin: Origin,
    ) -> Result<TurnOutcome, AgentError> {
        // A message that wants no reply need not wait for one.
        let start = match start {
            Start::Prompt(prompt)
                if prompt.input.no_reply == Some(true)
                    && self.state.sessions.turns.is_running(id) =>
            {
                return Box::pin(self.beside(id, prompt, cancelled)).await;
            }
            start => start,
        };
        let queue = self.state.sessions.locks.queue(id);
        let (start, _place) = match queue.try_lock() {
            Ok(place) => (start, place),
            Err(_) => {
                let waiting = self.state.sessions.queue.enter(id, cancel.clone());
                let waited = self.wait(&waiting, start, &queue, cancelled.clone(), origin);
                match Box::pin(waited).await? {
                    Waited::Begins(start, place) => (start, place),
                    Waited::Over(outcome) => return Ok(outcome),
                }
            }
        };
        let _owner = self.own(id)?;
        self.state.sessions.turns.register(id, cancel)?;
        let _registered = Registered {
            state: &self.state,
            id: id.clone(),
        };
        if !matches!(start, Start::Resume(_)) {
            // Close what a dead process left open and no one resumed.
            Box::pin(self.close_open(id, "another prompt replaced it")).await?;
            Box::pin(self.close_children(id)).await?;
        }
        let outcome = self.drive(id, start, cancelled).await?;
        Box::pin(self.state.prune(id)).await?;
        self.state.store.flush(true).await?;
        Ok(outcome)
    }

    /// Waits for the running turn, which may take the prompt in meanwhile.
    async fn wait<'q>(
        &self,
        waiting: &InQueue<'_>,
        start: Start,
        queue: &'q Mutex<()>,
        mut cancelled: watch::Receiver<bool>,
        origin: Origin,
    ) -> Result<Waited<'q>, AgentError> {
        let id = waiting.session();
        let is_plugin = origin == Origin::Plugin;
        let start = match start {
            Start::Prompt(prompt) => {
                let ready = tokio::select! {
                    place = queue.lock() => Some(place),
                    () = self.free_of_plugins(id) => None,
                    // The prompt is stored even if no turn answers it.
                    true = is_raised(&mut cancelled) => None,
                    () = self.waits_for_plugins(id), if is_plugin => {
                        return Err(AgentError::WaitsForItself(id.to_string()));
                    }
                };
                drop(ready);
                if self.state.sessions.turns.is_running(id) {
                    let announced = self.announce(waiting, *prompt, cancelled.clone());
                    Start::Announced(Box::new(announced.await?))
                } else {
                    Start::Prompt(prompt)
                }
            }
            start => start,
        };
        let answered = self.answered_by_another(id, &start);
        let place = queue.lock();
        tokio::pin!(place);
        let place = tokio::select! {
            biased;
            Some(outcome) = answered => return Ok(Waited::Over(outcome)),
            true = is_raised(&mut cancelled) => {
                // Everything is closed when the caller is notified of the end; a prompt that is not stored yet is kept.
                let place = place.await;
                if !matches!(start, Start::Prompt(_)) {
                    return Ok(Waited::Over(TurnOutcome::Cancelled));
                }
                place
            }
            () = self.waits_behind_plugins(id, waiting), if is_plugin => {
                if let Some(message) = waiting.message() {
                    self.leave(id, &message);
                    self.retract(id, &message).await?;
                }
                return Err(AgentError::WaitsForItself(id.to_string()));
            }
            place = &mut place => place,
        };
        Ok(Waited::Begins(start, place))
    }

    /// Stores a message that wants no reply while a turn runs that may read it.
    async fn beside(
        &self,
        id: &SessionId,
        mut prompt: Box<Prompt>,
        cancelled: watch::Receiver<bool>,
    ) -> Result<TurnOutcome, AgentError> {
        let given = prompt.input.message_id.take();
        let message = given.unwrap_or_else(outrigger_session_state::ids::message);
        prompt.command = None;
        let start = Start::Beside(prompt, message.clone());
        let outcome = self.drive(id, start, cancelled).await?;
        self.join_silently(id, &message)?;
        self.state.store.flush(true).await?;
        Ok(outcome)
    }

    /// Returns the outcome of the turn that took in this prompt. `None` if there is none.
    async fn answered_by_another(&self, id: &SessionId, start: &Start) -> Option<TurnOutcome> {
        let Start::Announced(prompt) = start else {
            return None;
        };
        let joined = self.join(id, prompt).inspect_err(|error| {
            tracing::warn!("[turn] a prompt is answered after the turn that runs: {error}");
        });
        joined.ok().flatten()?.await.ok()
    }

    /// Returns a session and its conversation after closing what was left open.
    async fn settled(
        &self,
        id: &SessionId,
        start: &Start,
    ) -> Result<(Session, Conversation), AgentError> {
        let mut session = self.session(id)?;
        if let (Some(causes), true) = (start.causes(), session.revert.is_some()) {
            Box::pin(self.clean_up_revert(&session, causes)).await?;
            session = self.session(id)?;
        }
        let mut conversation = self.state.conversation(id)?;
        if !matches!(start, Start::Resume(_))
            && Box::pin(self.close_shells(id, &conversation)).await?
        {
            conversation = self.state.conversation(id)?;
        }
        Ok((session, conversation))
    }

    async fn drive(
        &self,
        id: &SessionId,
        start: Start,
        cancelled: watch::Receiver<bool>,
    ) -> Result<TurnOutcome, AgentError> {
        let (mut session, conversation) = self.settled(id, &start).await?;
        if let Start::Prompt(prompt) | Start::Announced(prompt) = &start
            && let Some(executor) = self.executor(&prompt.input)?
        {
            return Box::pin(self.external(executor, id, start, cancelled)).await;
        }
        let changes = conversation.facts.changes.changes();
        let stopped = cancelled.clone();
        let driver = |turn: &TurnId| {
            let state = Arc::clone(&self.state);
            Driver::new(state, turn.clone(), id.clone(), changes, cancelled)
        };
        if let Start::Prompt(prompt) | Start::Beside(prompt, _) | Start::Announced(prompt) = &start
        {
            let input = &prompt.input;
            let switched = self.switch_tools(&mut session, input.tools.as_ref(), &input.provenance);
            Box::pin(switched).await?;
        }
        match start {
            Start::Prompt(prompt) => {
                let begin = Box::new(self.begin(&session, &conversation, *prompt)?);
                drop((session, conversation));
                self.answered(driver(&begin.turn), begin).await
            }
            Start::Beside(prompt, message) => {
                let mut begin = self.begin(&session, &conversation, *prompt)?;
                begin.message.id = message;
                let driver = driver(&begin.turn);
                driver.run(Input::Begin(Box::new(begin))).await
            }
            Start::Announced(prompt) => {
                let begin = self.begin(&session, &conversation, *prompt)?;
                // The message was removed while it waited.
                let Some(begin) = crate::turn::queue::steering::stored(begin, &conversation) else {
                    return Ok(TurnOutcome::Cancelled);
                };
                drop((session, conversation));
                self.answered(driver(&begin.turn), Box::new(begin)).await
            }
            Start::Compact(compact) => {
                let begin = self.begin_compaction(&session, &conversation, compact)?;
                let driver = driver(&begin.turn);
                driver.run(Input::Begin(Box::new(begin))).await
            }
            Start::Resume(turn) => self.go_on(id, driver(&turn), &turn, &stopped).await,
        }
    }

    /// Resumes a turn that another process left.
    async fn go_on(
        &self,
        id: &SessionId,
        mut driver: Box<Driver>,
        turn: &TurnId,
        cancelled: &watch::Receiver<bool>,
    ) -> Result<TurnOutcome, AgentError> {
        self.close_children(id).await?;
        match driver.restore(&self.state.store.turn_steps(turn)?) {
            // Another process finished it in the meantime.
            Ok(()) if driver.is_over() => return Ok(TurnOutcome::Done { message_id: None }),
            Ok(()) => {}
            Err(error @ AgentError::Replay { .. }) => {
                tracing::warn!("[turn] {error}; the turn is closed");
                self.abandon(id, turn, &error.to_string()).await?;
                return Ok(TurnOutcome::Failed {
                    error: error.to_named(),
                });
            }
            Err(error) => return Err(error),
        }
        let (left, for_others) = match driver.turn() {
            Some(turn) => self.left_behind(id, turn)?,
            None => Default::default(),
        };
        for begin in left {
            let begin = Box::new(begin);
            driver.take(Input::Joined { begin }).await?;
        }
        // The resumed turn does not read them.
        let held = for_others.iter().map(|prompt| {
            let place = self.state.sessions.queue.enter(id, watch::channel(false).0);
            prompt.message_id.iter().for_each(|it| place.holds(it));
            place
        });
        let held: Vec<InQueue<'_>> = held.collect();
        let outcome = driver.run(Input::Resumed).await?;
        drop(held);
        self.answer_left_behind(id, for_others, cancelled).await?;
        Ok(outcome)
    }

    /// Runs a prompt's turn. An unavailable model is returned as an error as well as recorded in the turn.
    async fn answered(
        &self,
        driver: Box<Driver>,
        begin: Box<Begin>,
    ) -> Result<TurnOutcome, AgentError> {
        let (model, unaskable) = (begin.model.clone(), begin.unaskable.clone());
        let outcome = driver.run(Input::Begin(begin)).await?;
        match &outcome {
            TurnOutcome::Failed { error } if unaskable.as_ref() == Some(error) => {
                match self.state.models.resolve(&model) {
                    Err(error) => Err(AgentError::Unaskable(error)),
                    Ok(_) => Ok(outcome),
                }
            }
            _ => Ok(outcome),
        }
    }

    /// Completes when the session's turn has waited for plugins for a while without a break.
    pub(crate) async fn waits_for_plugins(&self, id: &SessionId) {
        const POLL_INTERVAL: Duration = Duration::from_millis(100);
        let mut waited = Duration::ZERO;
        while waited < PLUGIN_PROMPT_TIMEOUT {
            outrigger_sandbox::process_time::sleep(POLL_INTERVAL).await;
            waited = if self.state.sessions.turns.is_with_plugins(id) {
                waited + POLL_INTERVAL
            } else {
                Duration::ZERO
            };
        }
    }

    /// Like [`Self::waits_for_plugins`], for a queued prompt; once the turn has taken it in, it no longer waits.
    async fn waits_behind_plugins(&self, id: &SessionId, waiting: &InQueue<'_>) {
        loop {
            self.waits_for_plugins(id).await;
            if !waiting.is_taken() {
                return;
            }
        }
    }

    /// Cancels running turns and waits for them, at most `limit`; no new turn starts.
    pub(crate) async fn finish_turns(&self, limit: Duration) {
        self.state.sessions.turns.close();
        let all_over = async {
            while self.state.sessions.turns.cancel_all() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(limit, all_over).await.is_err() {
            tracing::warn!("[turn] a turn did not end in time; the next start resumes it");
        }
    }

    /// Cancels the running turn of a session, if any, and its queued prompts (as OpenCode does). The turn ends on its own and
    /// keeps its results.
    pub fn cancel(&self, id: &SessionId) -> bool {
        self.state.sessions.turns.hurry();
        // Cancel queued prompts first: they must not start when the running turn ends.
        let waited = self.state.sessions.queue.cancel(id);
        let ran = self.state.sessions.turns.cancel(id);
        waited || ran
    }

    /// The unfinished turn of a session that nobody works on, if there is one.
    ///
    /// # Errors
    /// [`AgentError::Busy`] when another process is at work on it, and those of the store.
    pub fn interrupted(&self, id: &SessionId) -> Result<Option<TurnId>, AgentError> {
        // Take the lock first: a turn that ends while the list is read is not an interrupted one.
        let _owner = self.own(id)?;
        let open = self.state.store.open_turns()?;
        Ok(open
            .into_iter()
            .find(|(_, session)| session == id)
            .map(|(turn, _)| turn))
    }

    /// Acquires a session for this process.
    pub(crate) fn own(&self, id: &SessionId) -> Result<Owner, AgentError> {
        own(&self.state.project.folders.data, id)
    }
}
