//! Turns of a session: one at a time, each in a task of its own, so that a turn comes to its end whoever waits for it.

use std::sync::Arc;
use std::time::Duration;

use outrigger_protocol::id::{SessionId, TurnId};
use outrigger_protocol::session::PromptInput;
use outrigger_protocol::turn::{Begin, CommandCall, Input, TurnOutcome};
use outrigger_workspace::file_changes::Changes;
use tokio::sync::watch;

use crate::error::AgentError;
use crate::session::owner::{Owner, own};
use crate::state::waiting::InQueue;
use crate::state::{Agent, Inner};
use crate::turn::drive::Driver;
use crate::turn::effects::spawn::is_raised;
use crate::turn::request::Start;

/// How long a plugin's prompt waits for a turn that itself waits for a plugin: it may be the very call that sent the prompt,
/// and would then wait for ever. Shorter than a hook's deadline, so that the plugin reads why instead of being ended.
const PLUGIN_PROMPT_TIMEOUT: Duration = Duration::from_secs(3);

/// Cancels a turn when whoever asked for it goes away.
pub(crate) struct CancelOnDrop(pub(crate) Option<watch::Sender<bool>>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(cancel) = self.0.take() {
            let _ = cancel.send(true);
        }
    }
}

/// Takes a session off the list of running ones.
pub(crate) struct Registered<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) id: SessionId,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.inner.turns.unregister(&self.id);
        self.inner.message_changes.end(&self.id);
    }
}

impl Agent {
    /// Runs a prompt to its end. Prompts of the same session queue up behind each other; one that wants no reply is stored
    /// at once. If the caller goes away, the turn is cancelled and ends by itself.
    ///
    /// # Errors
    /// Unknown session, agent or model, another process at work in the session, and those of the store. What goes wrong
    /// within the turn is its outcome, not an error.
    pub async fn prompt(
        &self,
        session_id: &SessionId,
        mut prompt: PromptInput,
    ) -> Result<TurnOutcome, AgentError> {
        self.read_attached(&mut prompt).await;
        self.start(session_id, Start::Prompt(Box::new(prompt), None), false)
            .await
    }

    /// Like [`Self::prompt`], for a plugin that waits: it is refused where the session's turn waits for a plugin in its
    /// turn, since that may be this one.
    ///
    /// # Errors
    /// As [`Self::prompt`], and [`AgentError::WaitsForItself`].
    pub async fn prompt_from_plugin(
        &self,
        session_id: &SessionId,
        mut prompt: PromptInput,
    ) -> Result<TurnOutcome, AgentError> {
        self.read_attached(&mut prompt).await;
        self.start(session_id, Start::Prompt(Box::new(prompt), None), true)
            .await
    }

    pub(crate) async fn prompt_command(
        &self,
        id: &SessionId,
        mut prompt: PromptInput,
        call: CommandCall,
        plugin_waits: bool,
    ) -> Result<TurnOutcome, AgentError> {
        self.read_attached(&mut prompt).await;
        self.start(
            id,
            Start::Prompt(Box::new(prompt), Some(call)),
            plugin_waits,
        )
        .await
    }

    /// Goes on with an unfinished turn, to its end. A turn that cannot be gone on with (it was begun by a version that
    /// decided differently) is closed, with what is known of it kept.
    ///
    /// # Errors
    /// [`AgentError::Busy`] when another process works on it, and those of the store.
    pub async fn resume(&self, id: &SessionId, turn: &TurnId) -> Result<TurnOutcome, AgentError> {
        self.start(id, Start::Resume(turn.clone()), false).await
    }

    pub(crate) async fn start(
        &self,
        id: &SessionId,
        start: Start,
        plugin_waits: bool,
    ) -> Result<TurnOutcome, AgentError> {
        self.inner.providers_ready().await;
        if self.inner.turns.is_closing() {
            return Err(AgentError::Lost("the program is ending".to_owned()));
        }
        if let Start::Prompt(prompt, _) = &start {
            self.may_replace(id, prompt)?;
        }
        let (cancel, cancelled) = watch::channel(false);
        let mut guard = CancelOnDrop(Some(cancel.clone()));
        let (agent, id) = (self.clone(), id.clone());
        let task = tokio::spawn(async move {
            agent
                .queued(&id, start, cancel, cancelled, plugin_waits)
                .await
        });
        let result = task.await;
        guard.0 = None;
        result.unwrap_or_else(|lost| Err(AgentError::Lost(lost.to_string())))
    }

    async fn queued(
        &self,
        id: &SessionId,
        start: Start,
        cancel: watch::Sender<bool>,
        mut cancelled: watch::Receiver<bool>,
        plugin_waits: bool,
    ) -> Result<TurnOutcome, AgentError> {
        // A message that wants no reply does not have to wait for one.
        let start = match start {
            Start::Prompt(prompt, _)
                if prompt.no_reply == Some(true) && self.inner.turns.is_running(id) =>
            {
                return self.beside(id, prompt, cancelled).await;
            }
            start => start,
        };
        let queue = self.inner.session_locks.queue(id);
        let mut start = start;
        let _place = if let Ok(place) = queue.try_lock() {
            place
        } else {
            let waiting = self.inner.waiting.enter(id, cancel.clone());
            if let Start::Prompt(prompt, command) = start {
                let ready = tokio::select! {
                    place = queue.lock() => Some(place),
                    () = self.free_of_plugins(id) => None,
                    // What was said is kept, also where nobody answers it any more.
                    true = is_raised(&mut cancelled) => None,
                    () = self.waits_for_plugins(id), if plugin_waits => {
                        return Err(AgentError::WaitsForItself(id.to_string()));
                    }
                };
                drop(ready);
                start = if self.inner.turns.is_running(id) {
                    let announced =
                        self.announce(&waiting, *prompt, command.clone(), cancelled.clone());
                    Start::Announced(Box::new(announced.await?), command)
                } else {
                    Start::Prompt(prompt, command)
                };
            }
            let answered = self.answered_by_another(id, &start);
            let place = queue.lock();
            tokio::pin!(place);
            tokio::select! {
                biased;
                Some(outcome) = answered => return Ok(outcome),
                true = is_raised(&mut cancelled) => {
                    // Whoever is told that it is over finds all of it closed; a prompt that is not stored yet is kept.
                    let place = place.await;
                    if !matches!(start, Start::Prompt(..)) {
                        return Ok(TurnOutcome::Cancelled);
                    }
                    place
                }
                () = self.waits_behind_plugins(id, &waiting), if plugin_waits => {
                    if let Some(message) = waiting.message() {
                        self.leave(id, &message);
                        self.retract(id, &message).await?;
                    }
                    return Err(AgentError::WaitsForItself(id.to_string()));
                }
                place = &mut place => place,
            }
        };
        let _owner = self.own(id)?;
        self.inner.turns.register(id, cancel)?;
        let _registered = Registered {
            inner: &self.inner,
            id: id.clone(),
        };
        if !matches!(start, Start::Resume(_)) {
            // What a dead process left open here, and nobody went on with, is over now.
            self.close_open(id, "another prompt came instead").await?;
            self.close_children(id).await?;
        }
        let outcome = self.drive(id, start, cancelled).await?;
        self.inner.prune(id).await?;
        self.inner.store.flush(true).await?;
        Ok(outcome)
    }

    /// Stores a message that wants no reply, while a turn runs that may read it.
    async fn beside(
        &self,
        id: &SessionId,
        mut prompt: Box<PromptInput>,
        cancelled: watch::Receiver<bool>,
    ) -> Result<TurnOutcome, AgentError> {
        let message = prompt.message_id.take().unwrap_or_else(crate::ids::message);
        let start = Start::Beside(prompt, message.clone());
        let outcome = self.drive(id, start, cancelled).await?;
        self.join_silently(id, &message)?;
        self.inner.store.flush(true).await?;
        Ok(outcome)
    }

    /// How the turn ended that went on with this prompt. None when none did.
    async fn answered_by_another(&self, id: &SessionId, start: &Start) -> Option<TurnOutcome> {
        let Start::Announced(prompt, command) = start else {
            return None;
        };
        let joined = self.join(id, prompt, command.clone());
        let joined = joined.inspect_err(|error| {
            tracing::warn!("[turn] a prompt is answered behind the turn that runs: {error}");
        });
        joined.ok().flatten()?.await.ok()
    }

    async fn drive(
        &self,
        id: &SessionId,
        start: Start,
        cancelled: watch::Receiver<bool>,
    ) -> Result<TurnOutcome, AgentError> {
        let mut session = self.session(id)?;
        if !matches!(start, Start::Resume(_)) && session.revert.is_some() {
            self.clean_up_revert(&session).await?;
            session = self.session(id)?;
        }
        let mut history = self.inner.store.messages(id)?;
        if !matches!(start, Start::Resume(_)) && self.close_shells(id, &history).await? {
            history = self.inner.store.messages(id)?;
        }
        let changes = Changes::of(&history, &self.inner.place.worktree);
        let driver = |turn: TurnId| {
            Driver::new(
                Arc::clone(&self.inner),
                turn,
                id.clone(),
                changes.clone(),
                cancelled.clone(),
            )
        };
        match start {
            Start::Prompt(prompt, command) => {
                self.switch_tools(&mut session, prompt.tools.as_ref())
                    .await?;
                let begin = self.begin(&session, &history, *prompt, command)?;
                self.answered(driver(begin.turn.clone()), begin).await
            }
            Start::Beside(prompt, message) => {
                self.switch_tools(&mut session, prompt.tools.as_ref())
                    .await?;
                let mut begin = self.begin(&session, &history, *prompt, None)?;
                begin.message.id = message;
                driver(begin.turn.clone())
                    .run(Input::Begin(Box::new(begin)))
                    .await
            }
            Start::Announced(prompt, command) => {
                self.switch_tools(&mut session, prompt.tools.as_ref())
                    .await?;
                let begin = self.begin(&session, &history, *prompt, command)?;
                // Someone took the message back while it waited.
                let Some(begin) = crate::turn::queue::steering::stored(begin, history) else {
                    return Ok(TurnOutcome::Cancelled);
                };
                self.answered(driver(begin.turn.clone()), begin).await
            }
            Start::Compact(compact) => {
                let begin = self.begin_compaction(&session, &history, compact)?;
                driver(begin.turn.clone())
                    .run(Input::Begin(Box::new(begin)))
                    .await
            }
            Start::Resume(turn) => {
                self.close_children(id).await?;
                let mut driver = driver(turn.clone());
                match driver.restore(&self.inner.store.turn_steps(&turn)?) {
                    // Another process came to its end in between.
                    Ok(()) if driver.is_over() => Ok(TurnOutcome::Done { message_id: None }),
                    Ok(()) => {
                        let left = match driver.state() {
                            Some(state) => self.left_behind(id, state)?,
                            None => Vec::new(),
                        };
                        for begin in left {
                            let begin = Box::new(begin);
                            driver.take(Input::Joined { begin }).await?;
                        }
                        driver.run(Input::Resumed).await
                    }
                    Err(error @ AgentError::Replay { .. }) => {
                        tracing::warn!("[turn] {error}; the turn is closed");
                        self.abandon(id, &turn, &error.to_string()).await?;
                        Ok(TurnOutcome::Failed {
                            error: error.to_named(),
                        })
                    }
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Runs a prompt's turn. That nobody could be asked is the caller's error too, not only the turn's.
    async fn answered(&self, driver: Driver, begin: Begin) -> Result<TurnOutcome, AgentError> {
        let (model, unaskable) = (begin.model.clone(), begin.unaskable.clone());
        let outcome = driver.run(Input::Begin(Box::new(begin))).await?;
        match &outcome {
            TurnOutcome::Failed { error } if unaskable.as_ref() == Some(error) => {
                match self.inner.models.resolve(&model) {
                    Err(error) => Err(AgentError::Unaskable(error)),
                    Ok(_) => Ok(outcome),
                }
            }
            _ => Ok(outcome),
        }
    }

    /// Ends when the session's turn has waited for plugins for a while, without a break.
    pub(crate) async fn waits_for_plugins(&self, id: &SessionId) {
        const LOOK: Duration = Duration::from_millis(100);
        let mut waited = Duration::ZERO;
        while waited < PLUGIN_PROMPT_TIMEOUT {
            tokio::time::sleep(LOOK).await;
            waited = if self.inner.turns.is_with_plugins(id) {
                waited + LOOK
            } else {
                Duration::ZERO
            };
        }
    }

    /// The same for a prompt that waits for the turn; once the turn has gone on with it, it waits for nobody.
    async fn waits_behind_plugins(&self, id: &SessionId, waiting: &InQueue<'_>) {
        loop {
            self.waits_for_plugins(id).await;
            if !waiting.is_taken() {
                return;
            }
        }
    }

    /// Cancels what still runs and waits for it, at most `limit`; nothing new begins.
    pub(crate) async fn finish_turns(&self, limit: Duration) {
        self.inner.turns.close();
        let all_over = async {
            while self.inner.turns.cancel_all() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(limit, all_over).await.is_err() {
            tracing::warn!("[turn] a turn did not end in time; the next start goes on with it");
        }
    }

    /// Cancels the turn that runs in a session, if any, and the prompts that wait for it (the reference does so too). The
    /// turn ends by itself, with everything kept.
    pub fn cancel(&self, id: &SessionId) -> bool {
        self.inner.turns.hurry();
        // What waits ends first: it must not begin when the running one is over.
        let waited = self.inner.waiting.cancel(id);
        let ran = self.inner.turns.cancel(id);
        waited || ran
    }

    /// The unfinished turn of a session that nobody works on, if there is one.
    ///
    /// # Errors
    /// [`AgentError::Busy`] when another process is at work on it, and those of the store.
    pub fn interrupted(&self, id: &SessionId) -> Result<Option<TurnId>, AgentError> {
        // The lock first: a turn that ends while the list is read is not an interrupted one.
        let _owner = self.own(id)?;
        let open = self.inner.store.open_turns()?;
        Ok(open
            .into_iter()
            .find(|(_, session)| session == id)
            .map(|(turn, _)| turn))
    }

    /// Takes a session for this process.
    pub(crate) fn own(&self, id: &SessionId) -> Result<Owner, AgentError> {
        own(&self.inner.folders.data, id)
    }
}
