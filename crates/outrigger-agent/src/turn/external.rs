//! Turns of another vendor's agent, named by the user for the prompt or, in the user's settings, for the agent.

use std::sync::Arc;

use outrigger_executors::{
    Boxed, Executor, ExecutorError, Keeper, ProcessContext, PromptContext, Unasked, Work,
};
use outrigger_kernel::hooks::HookPoint;
use outrigger_permissions::agents::AgentInfo;
use outrigger_plugins::Grant;
use outrigger_protocol::Object;
use outrigger_protocol::audit::AuditRecord;
use outrigger_protocol::event::Event;
use outrigger_protocol::id::{MessageId, PluginId, SessionId, TurnId};
use outrigger_protocol::merged::EXECUTOR;
use outrigger_protocol::message::{ModelRef, Part};
use outrigger_protocol::provenance::{Deed, Provenance};
use outrigger_protocol::session::PromptInput;
use outrigger_protocol::tool::ToolCall;
use outrigger_protocol::turn::{EffectId, Input, TurnOutcome};
use outrigger_tools::CancelFlag;
use serde_json::json;
use tokio::sync::watch;

use crate::error::AgentError;
use crate::session::sessions::is_placeholder;
use crate::state::{Agent, AgentState};
use crate::tools::host::{CallHost, CallTurn, MadeBy};
use crate::turn::drive::Driver;
use crate::turn::effects::spawn::is_raised;
use crate::turn::start::{Prompt, Start};
use outrigger_session_state::bus::numbered;
use outrigger_session_state::ids;
use outrigger_session_state::turn_channel::Outbox;
use outrigger_stdx::clock::now_ms;

impl Agent {
    /// Returns the external executor that answers `prompt` in place of a model, if any. Projects cannot choose one, and a
    /// prompt with `no_reply` gets none.
    ///
    /// # Errors
    /// [`AgentError::Tools`]: the executor is unknown, or a plugin caused the prompt. Executors run with the user's rights,
    /// which no grant of a plugin limits.
    pub fn executor(&self, prompt: &PromptInput) -> Result<Option<Executor>, AgentError> {
        let agent = || prompt.agent.clone().or_else(|| self.default_agent());
        let of_agent = || self.state.executor_of_agent(&agent()?);
        let asks = prompt.no_reply != Some(true);
        let Some(name) = prompt.executor.clone().or_else(of_agent).filter(|_| asks) else {
            return Ok(None);
        };
        // A plugin that is the model or changes its calls also controls the prompt.
        for did in [Deed::Prompted, Deed::Called, Deed::Changed] {
            if let Some(plugin) = prompt.provenance.plugins_that(did).first() {
                let why =
                    format!("a prompt of plugin {plugin} cannot start an executor (`{name}`)");
                return Err(AgentError::Tools(why));
            }
        }
        let found = name.parse().map(Some);
        found.map_err(|error: ExecutorError| AgentError::Tools(error.to_string()))
    }

    pub(super) async fn external(
        &self,
        executor: Executor,
        id: &SessionId,
        start: Start,
        cancelled: watch::Receiver<bool>,
    ) -> Result<TurnOutcome, AgentError> {
        let (is_stored, mut prompt) = match start {
            Start::Prompt(prompt) => (false, *prompt),
            Start::Announced(prompt) => (true, *prompt),
            _ => return Ok(TurnOutcome::Done { message_id: None }),
        };
        let said = outrigger_executors::prompt_texts(&prompt.input.parts);
        self.is_no_plugins_command(&executor, &prompt)?;
        let session = self.session(id)?;
        let agent = self.choose_agent(prompt.input.agent.as_deref())?;
        self.is_no_plugins_agent(&executor, &agent.name)?;
        let model = self.choose_model(&session, &agent, prompt.input.model.clone());
        let model = model.unwrap_or_else(|_| model_of(&executor));
        prompt.input.model = Some(model.clone());
        let contributed = self
            .state
            .contributions(&agent.name, prompt.command.as_ref());
        let message = prompt
            .input
            .message_id
            .get_or_insert_with(ids::message)
            .clone();
        if is_placeholder(&session.title) && session.parent_id.is_none() {
            let title = outrigger_executors::title(&prompt.input.parts);
            self.update_session(id, |it| it.title = title).await?;
        }
        if !is_stored {
            self.keep_prompt(id, prompt, cancelled.clone()).await?;
        }
        let keeper = Keeping {
            state: Arc::clone(&self.state),
            turn: ids::turn(),
            model,
            agent,
            contributed,
            cancel: CancelFlag::new(),
        };
        let work = self.work(executor, id, &message, &keeper, said).await?;
        let raise = keeper.cancel.0.clone();
        let mut cancelled = cancelled;
        let stop = async move {
            if !is_raised(&mut cancelled).await {
                std::future::pending::<()>().await;
            }
            raise.send_replace(true);
        };
        let outcome = work.run(Arc::new(keeper), stop).await;
        let (outcome, used) = outcome.map_err(AgentError::Tools)?;
        self.update_session(id, |it| used.add_to(&mut it.tokens, &mut it.cost))
            .await?;
        Ok(outcome)
    }

    /// Returns the executor of a prompt, stored with its message.
    pub(crate) fn kept_executor(&self, prompt: &PromptInput) -> Object {
        let executor = self.executor(prompt).ok().flatten();
        let executor = executor.map(|it| (EXECUTOR.to_owned(), json!(it.to_string())));
        executor.into_iter().collect()
    }

    /// Checks that a plugin did not contribute the command's template.
    fn is_no_plugins_command(
        &self,
        executor: &Executor,
        prompt: &Prompt,
    ) -> Result<(), AgentError> {
        let Some(command) = prompt.command.as_ref().filter(|_| !executor.asks()) else {
            return Ok(());
        };
        let plugins = &self.state.plugins.host;
        let plugins = plugins.configured_by("command", &command.name);
        let lacks = |it: &PluginId| self.state.lacks(it, Grant::Prompt, "").is_some();
        let lacking = plugins.into_iter().find(lacks);
        lacking.map_or(Ok(()), |it| Err(unasked_text(executor, &it)))
    }

    /// Checks that no plugin wrote the prompt of the agent: it is the first text of the executor's session.
    fn is_no_plugins_agent(&self, executor: &Executor, agent: &str) -> Result<(), AgentError> {
        if executor.asks() {
            return Ok(());
        }
        let plugins = &self.state.plugins.host;
        let writers = plugins.all_that_configured(&["agent", agent, "prompt"]);
        let lacks = |it: &PluginId| self.state.lacks(it, Grant::Prompt, "").is_some();
        let lacking = writers.into_iter().find(lacks);
        lacking.map_or(Ok(()), |it| Err(unasked_text(executor, &it)))
    }

    /// Checks that no plugin changed the prompt: an executor that needs no approval acts on every word, so text added by a
    /// plugin would be the plugin's action.
    fn is_as_said(
        &self,
        executor: &Executor,
        said: &[String],
        stored: &[Part],
    ) -> Result<(), AgentError> {
        if executor.asks() || outrigger_executors::is_as_said(said, stored) {
            return Ok(());
        }
        let plugins = self.state.plugins.host.pipeline();
        let plugins = plugins.plugins_at(HookPoint::RunBeforeStart);
        let lacks = |it: &PluginId| self.state.lacks(it, Grant::Prompt, "").is_some();
        let lacking = plugins.into_iter().find(lacks);
        lacking.map_or(Ok(()), |it| Err(unasked_text(executor, &it)))
    }

    /// Answers the prompts for other vendors' agents that a process stored during a turn before it died.
    pub(super) async fn answer_left_behind(
        &self,
        id: &SessionId,
        left: Vec<PromptInput>,
        cancelled: &watch::Receiver<bool>,
    ) -> Result<(), AgentError> {
        for prompt in left {
            let Ok(Some(executor)) = self.executor(&prompt) else {
                continue;
            };
            let start = Start::Announced(Box::new(prompt.into()));
            Box::pin(self.external(executor, id, start, cancelled.clone())).await?;
        }
        Ok(())
    }

    /// Stores the prompt as one that no model answers.
    async fn keep_prompt(
        &self,
        id: &SessionId,
        mut prompt: Prompt,
        cancelled: watch::Receiver<bool>,
    ) -> Result<(), AgentError> {
        prompt.input.no_reply = Some(true);
        let conversation = self.state.conversation(id)?;
        let changes = conversation.facts.changes.changes();
        let mut begin = self.begin(&self.session(id)?, &conversation, prompt)?;
        begin.wants_title = false;
        let (state, turn) = (Arc::clone(&self.state), begin.turn.clone());
        let driver = Driver::new(state, turn, id.clone(), changes, cancelled);
        driver.run(Input::Begin(Box::new(begin))).await.map(drop)
    }

    async fn work(
        &self,
        executor: Executor,
        id: &SessionId,
        prompt: &MessageId,
        keeper: &Keeping,
        said: Vec<String>,
    ) -> Result<Work, AgentError> {
        let (state, agent) = (&self.state, &keeper.agent);
        let history = state.history(id)?;
        let messages: Vec<_> = history.iter().filter_map(|it| it.stored()).collect();
        let stored = messages.iter().find(|it| it.info.id() == prompt);
        if let Some(stored) = stored {
            self.is_as_said(&executor, &said, &stored.parts)?;
        }
        let own = state.session_rules(id)?;
        let rules = [agent.permission.clone(), own].concat();
        // Guards check each call, which an executor that cannot ask does not submit to them.
        let is_free = !state.plugins.host.pipeline().has(HookPoint::ToolBeforeCall);
        let unasked = Unasked {
            edits: is_free && state.permissions.access.allows_all("edit", &rules),
            commands: is_free && state.permissions.access.allows_all("bash", &rules),
        };
        let policy = state.confine(Some(id), rules).await;
        let place = ProcessContext {
            spawner: state.processes.commands_spawner.clone(),
            policy: policy.map_err(|error| AgentError::Tools(error.to_string()))?,
            env: outrigger_tools::builtin::shell_environment(&state.tools.options.shell_env, None),
            home: state.project.folders.home.clone(),
            is_trusted: state.config.is_trusted,
        };
        let asked = PromptContext {
            session: id,
            prompt,
            agent: &agent.name,
            instructions: agent.prompt.as_deref(),
            contributed: keeper.contributed.clone(),
            path: state.project.message_path(),
            messages: &messages,
        };
        Ok(Work::new(executor, asked, unasked, place, ids::seed()))
    }
}

impl AgentState {
    /// Returns the executor that the user's settings name for an agent that no plugin defined.
    fn executor_of_agent(&self, name: &str) -> Option<String> {
        let named = self.config.executor_of(name)?.to_owned();
        let plugins = self.plugins.host.configured_by("agent", name);
        plugins.is_empty().then_some(named)
    }
}

/// The session side of an executor's turn.
struct Keeping {
    state: Arc<AgentState>,
    turn: TurnId,
    model: ModelRef,
    agent: AgentInfo,
    /// Who contributed the agent and the command, if not the user: a cause of every call.
    contributed: Provenance,
    cancel: (watch::Sender<bool>, CancelFlag),
}

/// Returns the model of an executor's prompt where no other can be asked.
fn model_of(executor: &Executor) -> ModelRef {
    ModelRef {
        provider_id: executor.to_string(),
        model_id: "default".to_owned(),
        variant: None,
    }
}

/// Returns the error for handing a plugin's text to an executor that needs no approval.
fn unasked_text(executor: &Executor, plugin: &PluginId) -> AgentError {
    AgentError::Tools(format!(
        "plugin {plugin} changed this prompt, and {executor} acts on it without asking (`prompt = true` under [plugins.\"{plugin}\"] in your own outrigger.toml grants that; `acp:gemini --acp` asks)"
    ))
}

impl Keeper for Keeping {
    fn publish(&self, event: Event) {
        self.state.broadcast(vec![numbered(event)]);
    }

    fn commit(&self, events: Vec<Event>) -> Boxed<'static, Result<(), String>> {
        let state = Arc::clone(&self.state);
        Box::pin(async move {
            let stored = state.commit(Vec::new(), events).await;
            stored.map_err(|error| error.to_string())
        })
    }

    fn authorize(&self, call: ToolCall) -> Boxed<'static, Result<(), String>> {
        let state = Arc::clone(&self.state);
        let (_silent, speaking) = watch::channel(false);
        let turn = CallTurn {
            state: Arc::clone(&state),
            turn: self.turn.clone(),
            effect: EffectId::default(),
            sender: Outbox::new().0,
            cancel: self.cancel.1.clone(),
            speaking,
        };
        let (agent, model) = (self.agent.clone(), self.model.clone());
        let host = Arc::new(CallHost::new(turn, &call, agent, model, MadeBy::Executor));
        let ctx = host.context(&call);
        Box::pin(async move {
            let allowed = state.tools.runtime.authorize(call, ctx).await;
            allowed.map_err(|error| error.to_string())
        })
    }

    fn audit(&self, record: AuditRecord) {
        let record = AuditRecord {
            trace_id: self.turn.0.clone(),
            ..record
        };
        self.state.store.audit_lazily(now_ms(), vec![record]);
    }
}
