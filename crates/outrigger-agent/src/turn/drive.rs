//! The loop that runs a turn: it reports events to the kernel, stores the step, and carries out the effects.
//!
//! This is the only loop: output of the model, answers of hooks and results of tools arrive through one channel in one
//! order, and the log has that order. `begin` starts the effects.

use std::sync::Arc;

use outrigger_kernel::hooks::HookPoint;
use outrigger_kernel::turn::{Effect, Turn};
use outrigger_kernel::{digest, turn};
use outrigger_protocol::event::Event;
use outrigger_protocol::history::History;
use outrigger_protocol::id::{CallId, SessionId, TurnId};
use outrigger_protocol::log::{CompletionRecord, LogRecord, TurnStep};
use outrigger_protocol::session::SessionStatus;
use outrigger_protocol::tool::ToolOutcome;
use outrigger_protocol::turn::{EffectId, Input, ModelSignal, TurnOutcome};
use outrigger_tools::CancelFlag;
use outrigger_workspace::file_changes::Changes;
use tokio::sync::watch;

use crate::error::AgentError;
use crate::state::AgentState;
use crate::turn::draft::Draft;
use crate::turn::effects::spawn::is_raised;
use crate::turn::observe::Observer;
use crate::turn::queue::continuation::{self, Continuation};
use crate::turn::queue::steering::Joined;
use crate::turn::step_events;
use outrigger_session_state::bus::numbered;
use outrigger_session_state::turn_channel::{Inbox, Msg, Outbox};
use outrigger_stdx::clock::now_ms;

mod begin;
mod transient;

pub(crate) struct Driver {
    state: Arc<AgentState>,
    turn_id: TurnId,
    session_id: SessionId,
    turn: Option<Turn>,
    /// Number of the next step in the log.
    next_step_number: u64,
    sender: Outbox,
    inbox: Inbox,
    cancel: watch::Receiver<bool>,
    /// Raised on the kernel's request; everything that runs listens to it.
    abort: (watch::Sender<bool>, CancelFlag),
    /// True while the model's answer is incomplete.
    speaking: watch::Sender<bool>,
    draft: Draft,
    /// Conversation as last shown to plugins; unchanged messages are shared with it.
    shown: History,
    changes: Changes,
    joined: Joined,
    pub(crate) continuation: Continuation,
    outcome: Option<TurnOutcome>,
}

impl Driver {
    /// On the heap, since otherwise each enclosing future would contain it.
    pub(crate) fn new(
        state: Arc<AgentState>,
        turn_id: TurnId,
        session_id: SessionId,
        changes: Changes,
        cancel: watch::Receiver<bool>,
    ) -> Box<Self> {
        let (sender, inbox) = Outbox::new();
        let joined = Joined::new(&state, &session_id);
        Box::new(Self {
            state,
            turn_id,
            session_id,
            turn: None,
            next_step_number: 0,
            sender,
            inbox,
            cancel,
            abort: CancelFlag::new(),
            speaking: watch::Sender::new(false),
            draft: Draft::default(),
            shown: History::default(),
            changes,
            joined,
            continuation: Continuation::default(),
            outcome: None,
        })
    }

    /// Takes over a turn that another process left: replays the stored steps without carrying out their effects.
    pub(crate) fn restore(&mut self, steps: &[TurnStep]) -> Result<(), AgentError> {
        self.turn = crate::turn::replay::state_after(steps)?;
        self.next_step_number = steps.last().map_or(0, |step| step.n + 1);
        Ok(())
    }

    /// Returns the state of the turn once it has started.
    pub(crate) fn turn(&self) -> Option<&Turn> {
        self.turn.as_ref()
    }

    /// Returns whether the turn that was taken over is complete or never started: nothing is left to run.
    pub(crate) fn is_over(&self) -> bool {
        self.turn.as_ref().is_none_or(Turn::is_done)
    }

    /// Runs from this input to the end of the turn.
    pub(crate) async fn run(mut self: Box<Self>, first: Input) -> Result<TurnOutcome, AgentError> {
        let state = Arc::clone(&self.state);
        let steered = state.sessions.turns.steer(&self.session_id, &self.sender);
        let result = self.run_loop(first).await;
        drop(steered);
        match &result {
            Ok(outcome) => self.joined.ended(self.turn.as_ref(), outcome),
            Err(error) => self.give_up(error),
        }
        self.state.sessions.turns.forget_step(&self.turn_id);
        self.state.log_sequence(&self.session_id, &self.turn_id);
        result
    }

    async fn run_loop(&mut self, first: Input) -> Result<TurnOutcome, AgentError> {
        // A turn mostly waits, so its future must not include the state of a single step.
        Box::pin(self.take(first)).await?;
        let mut cancel = self.cancel.clone();
        let mut cancelled = false;
        loop {
            if let Some(outcome) = self.outcome.take() {
                return Ok(outcome);
            }
            tokio::select! {
                biased;
                raised = is_raised(&mut cancel), if !cancelled => {
                    cancelled = true;
                    if raised {
                        Box::pin(self.take(Input::Cancel)).await?;
                    }
                }
                // The driver holds a sender, so the channel never closes.
                Some(message) = self.inbox.recv() => Box::pin(self.receive(*message)).await?,
            }
        }
    }

    /// Gives up a turn that can no longer be stored: stops everything that runs and notifies listeners. The log shows the
    /// turn as unfinished, which is correct.
    fn give_up(&self, error: &AgentError) {
        let _ = self.abort.0.send(true);
        let session_id = self.session_id.clone();
        self.state.broadcast(vec![
            numbered(Event::SessionError {
                session_id: Some(session_id.clone()),
                error: error.to_named(),
            }),
            numbered(Event::SessionStatus {
                session_id,
                status: SessionStatus::Idle,
            }),
        ]);
    }

    async fn receive(&mut self, message: Msg) -> Result<(), AgentError> {
        match message {
            Msg::Input(input) => {
                if let Input::Model { signal, .. } = &input {
                    self.state.sessions.turns.retries_no_more(&self.session_id);
                    self.note_used_call(signal).await?;
                }
                self.take(input).await
            }
            Msg::Delta { index, text } => {
                self.publish_delta(index, text);
                Ok(())
            }
            Msg::Hooked {
                effect,
                point,
                result,
            } => self.hooked(effect, point, result).await,
            Msg::Tools {
                effect,
                offers,
                known,
            } => {
                self.draft.offers = offers;
                let tools = known;
                self.take(Input::ToolsReady { effect, tools }).await
            }
            Msg::Planned { effect, planned } => {
                let plan = Box::new(planned.plan.clone());
                self.draft.planned = Some(*planned);
                self.take(Input::CompactionPlanned { effect, plan }).await
            }
            Msg::Compact(asked) => {
                self.take(asked.input()).await?;
                asked.answer(self.turn.as_ref());
                Ok(())
            }
            Msg::Join(joining) => {
                self.continuation = Continuation::default();
                let input = self.joined.input(*joining);
                self.take(input).await
            }
            Msg::Preview { effect, metadata } => {
                self.publish_preview(effect, metadata);
                Ok(())
            }
            Msg::Published(answer) => {
                // A cancelled call does not wait for the answer.
                let _ = answer.send(());
                Ok(())
            }
            Msg::Event(event) => self.state.commit(Vec::new(), vec![*event]).await,
            Msg::Retry(status) => {
                self.waits_to_retry(status);
                Ok(())
            }
        }
    }

    /// Handles the result of a request's hook chain.
    async fn hooked(
        &mut self,
        effect: EffectId,
        point: HookPoint,
        result: outrigger_plugins::PipelineResult,
    ) -> Result<(), AgentError> {
        if point == continuation::POINT {
            self.continue_turn(&result).await?;
        }
        let changed_by = match point {
            HookPoint::RunBeforeCommand | HookPoint::RunBeforeStart => result.changed_by(),
            _ => Vec::new(),
        };
        let output = result.outputs.into_iter().next();
        let mut output = output.and_then(|output| self.draft.take(point, output, result.history));
        if let (false, Some(turn), Some(output)) = (changed_by.is_empty(), &self.turn, &mut output)
        {
            self.state.hold_choices(turn, point, output, &changed_by);
        }
        self.take(Input::HookDone {
            effect,
            output,
            block: result.block,
            changed_by,
        })
        .await
    }

    fn waits_to_retry(&self, status: SessionStatus) {
        let turns = &self.state.sessions.turns;
        turns.waits_to_retry(&self.session_id, status.clone());
        self.state.broadcast(vec![numbered(Event::SessionStatus {
            session_id: self.session_id.clone(),
            status,
        })]);
    }

    /// Adds a message with what handlers want done before the turn ends.
    async fn continue_turn(
        &mut self,
        result: &outrigger_plugins::PipelineResult,
    ) -> Result<(), AgentError> {
        let agent = crate::state::Agent {
            state: Arc::clone(&self.state),
        };
        let Some((text, by)) = self
            .continuation
            .wanted(&self.state.config.settings, result)
        else {
            return Ok(());
        };
        let Some(turn) = &self.turn else {
            return Ok(());
        };
        if let Some(begin) = agent
            .continue_with(&self.session_id, turn, text, by)
            .await?
        {
            let begin = Box::new(begin);
            self.take(Input::Joined { begin }).await?;
        }
        Ok(())
    }

    /// Takes one step: the kernel decides, the step and its events are stored in one transaction, then the effects begin.
    pub(crate) async fn take(&mut self, input: Input) -> Result<(), AgentError> {
        let at = now_ms();
        self.note_changes(&input);
        let effects = turn::step(&mut self.turn, at, input.clone());
        let step = self.step_record(at, &input, &effects);
        outrigger_store::fault::point("turn.before_step");
        let state = Arc::clone(&self.state);
        let observer = self.turn.as_ref().map(|turn| Observer {
            state: &state,
            session_id: &self.session_id,
            turn: &self.turn_id,
            begin: turn.begin(),
            user: &turn.user().id,
            asked: turn.asked_after_step(),
        });
        let completed = self
            .store_step(step, &input, &effects, observer.as_ref())
            .await?;
        outrigger_store::fault::point("turn.after_step");
        // A completion belongs to the step before the one that it starts.
        if let Some(observer) = &observer {
            observer.effects(&effects, &completed);
        }
        if let Some(turn) = &self.turn {
            let step = u64::from(turn.current_step());
            self.state.sessions.turns.at_step(&self.turn_id, step);
            self.joined.stepped(turn);
        }
        let speaking = self.turn.as_ref().is_some_and(Turn::is_speaking);
        self.speaking
            .send_if_modified(|was| std::mem::replace(was, speaking) != speaking);
        for effect in effects {
            self.begin(effect);
        }
        Ok(())
    }

    /// Returns whether a tool call of the session used this id.
    fn has_stored_call(&self, id: &CallId) -> Result<bool, AgentError> {
        let state = &self.state;
        let (histories, worktree) = (&state.sessions.histories, &state.project.location.worktree);
        Ok(histories.has_call(&state.store, worktree, &self.session_id, id)?)
    }

    /// Reports to the kernel that the model reuses a call id of the session. Providers reject duplicate ids.
    async fn note_used_call(&mut self, signal: &ModelSignal) -> Result<(), AgentError> {
        let Some(id) = signal.call_id() else {
            return Ok(());
        };
        let is_known = |turn: &Turn| turn.has_used_call(&id);
        if self.turn.as_ref().is_some_and(is_known) || !self.has_stored_call(&id)? {
            return Ok(());
        }
        let ids = vec![id.0];
        Box::pin(self.take(Input::CallsUsed { ids })).await
    }

    /// Stores the changed files of an input.
    fn note_changes(&mut self, input: &Input) {
        match input {
            Input::ToolDone {
                outcome: ToolOutcome::Completed { output, .. },
                ..
            } => self.changes.add(&output.metadata),
            Input::FilesTracked {
                diffs: Some(diffs), ..
            } => self
                .changes
                .adopt(diffs, &self.state.project.location.worktree),
            _ => {}
        }
    }

    /// Returns the record of a step.
    fn step_record(&mut self, at: u64, input: &Input, effects: &[Effect]) -> TurnStep {
        let n = self.next_step_number;
        self.next_step_number += 1;
        TurnStep {
            turn: self.turn_id.clone(),
            session_id: self.session_id.clone(),
            n,
            at,
            input: input.clone(),
            intents: digest::intents(effects),
            digest: digest::effects(effects),
            last: effects.iter().any(|e| matches!(e, Effect::Finish { .. })),
            abandoned: None,
        }
    }

    /// Stores a step with its events and publishes them, including those of subagents that waited for it. Returns the
    /// messages that it completed.
    async fn store_step(
        &self,
        step: TurnStep,
        input: &Input,
        effects: &[Effect],
        observer: Option<&Observer<'_>>,
    ) -> Result<Vec<CompletionRecord>, AgentError> {
        let (state, session_id) = (&self.state, &self.session_id);
        let release = step.last || matches!(input, Input::ToolDone { .. });
        let begin = self.turn.as_ref().map(Turn::begin);
        let events = || step_events::events_of(state, session_id, begin, effects, &self.changes);
        let published = |events| {
            // Before the messages that the same step completes.
            if let Some(observer) = observer {
                observer.input(input);
            }
            state
                .sessions
                .deferred
                .published_now(session_id, input, events)
        };
        let records = vec![LogRecord::TurnStep(Box::new(step))];
        let completed = state.commit_publishing(records, events, published).await?;
        if release {
            state.broadcast(state.sessions.deferred.release(session_id));
        }
        Ok(completed)
    }
}
