//! What a request offers the model: tools, parameters, instructions.

use std::time::Duration;

use outrigger_config::Origin;
use outrigger_kernel::hooks::points::hook::on_error;
use outrigger_kernel::hooks::points::llm::{before_request, tool_definition};
use outrigger_kernel::hooks::{Empty, HookInput, HookPoint};
use outrigger_kernel::permission::{is_disabled, is_wanted};
use outrigger_mcp_tools::is_mcp;
use outrigger_models::Resolved;
use outrigger_permissions::agents::AgentInfo;
use outrigger_plugins::{PipelineContext, PipelineResult};
use outrigger_protocol::Object;
use outrigger_protocol::hook::{HookRecord, OutcomeKind};
use outrigger_protocol::id::{SessionId, TurnId};
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::message::{ModelRef, NamedError};
use outrigger_protocol::model::{ModelInfo, ModelParams, ToolOffer};
use outrigger_protocol::tool::ToolSpec;
use outrigger_protocol::turn::{HookPayload, KnownTool};
use outrigger_tools::builtin::optional;
use outrigger_tools::{AgentEntry, CancelFlag, SkillEntry};
use serde_json::Value;

use crate::state::Inner;
use crate::state::notifications::About;
use outrigger_prompt::system::{SystemPrompt, instructions};

/// Told of every handler that failed at another point.
const HOOK_ERROR: HookPoint = HookPoint::HookOnError;

impl Inner {
    /// Runs a chain and writes down what every handler did.
    pub(crate) async fn run_hooks(
        &self,
        point: HookPoint,
        items: Vec<HookPayload>,
        session: Option<&SessionId>,
        turn: Option<&TurnId>,
        cancel: Option<CancelFlag>,
    ) -> PipelineResult {
        let cancel = cancel.map(|flag| flag.receiver());
        let context = PipelineContext {
            session: session.cloned(),
            turn: turn.cloned(),
            cancel,
            ..PipelineContext::default()
        };
        let pipeline = self.plugins.pipeline();
        let _open = session
            .filter(|_| pipeline.has(point))
            .map(|id| self.turns.enter_plugins(id));
        let mut result = pipeline.run(point, items, context).await;
        if !result.records.is_empty() {
            self.write_down(&mut result.records, turn);
            if point != HOOK_ERROR {
                self.tell_hook_errors(&result.records, session, turn);
            }
        }
        result
    }

    /// Asks whoever may refuse a request to a model (C2), whatever it is for; a refusal is final.
    ///
    /// # Errors
    /// `HookBlockedError`, with what was said.
    pub(crate) async fn run_before_request_hooks(
        &self,
        about: &before_request::Input<'_>,
        session: &SessionId,
        turn: Option<&TurnId>,
        cancel: Option<CancelFlag>,
    ) -> Result<(), NamedError> {
        const POINT: HookPoint = HookPoint::LlmBeforeRequest;
        if !self.plugins.pipeline().has(POINT) {
            return Ok(());
        }
        let payload = about.payload(&Empty {});
        let result = self
            .run_hooks(POINT, vec![payload], Some(session), turn, cancel)
            .await;
        match result.block {
            None => Ok(()),
            Some(block) => Err(block.into_error(POINT.name())),
        }
    }

    fn write_down(&self, records: &mut [HookRecord], turn: Option<&TurnId>) {
        for record in &mut *records {
            record.audit.step = self.turns.step_of(turn);
        }
        let records = records.iter();
        self.note(
            records
                .map(|r| LogRecord::Hook(Box::new(r.clone())))
                .collect(),
        );
    }

    /// What hooks did that were not reached from here (those of plugins' own points, B8, and of `config`, `event` and
    /// `dispose`), or why they were not run: written down and told as for any other chain.
    pub(crate) fn hooks_ran(&self, mut records: Vec<HookRecord>) {
        let Some(first) = records.first() else {
            return;
        };
        let (session, turn) = (first.session.clone(), first.turn.clone());
        self.write_down(&mut records, turn.as_ref());
        self.tell_hook_errors(&records, session.as_ref(), turn.as_ref());
    }

    /// `hook.on_error` (C5). A failure there is recorded and goes no further.
    fn tell_hook_errors(
        &self,
        records: &[HookRecord],
        session: Option<&SessionId>,
        turn: Option<&TurnId>,
    ) {
        if !self.plugins.pipeline().has(HOOK_ERROR) {
            return;
        }
        // An answer against a rule is an error of its plugin as well (C3).
        let failed = records
            .iter()
            .filter(|r| r.outcome.is_failure() || r.audit.refused.is_some());
        for record in failed {
            let refused = record.audit.refused.map(|_| OutcomeKind::Refused);
            let input = on_error::Input {
                point: &record.point,
                hook: &record.hook,
                plugin: &record.plugin,
                outcome: refused.unwrap_or(record.outcome).name(),
                message: record.message.as_deref(),
                session_id: session,
            };
            if let Some(inner) = self.this.upgrade() {
                inner.notify_hook(&input, &Empty {}, About::of(session, turn));
            }
        }
    }

    /// The tools of a step: those that the agent's rules leave, as the hooks describe them. The second list is what a call
    /// may name, with the hidden ones.
    pub(crate) async fn offer_tools(
        &self,
        agent: &str,
        model: &ModelRef,
        switches: Option<&Object>,
        session: &SessionId,
        turn: &TurnId,
        cancel: CancelFlag,
    ) -> (Vec<ToolOffer>, Vec<KnownTool>) {
        let rules = self
            .agents
            .get(agent)
            .map(|a| a.permission.clone())
            .unwrap_or_default();
        let own = self
            .store
            .session(session)
            .ok()
            .flatten()
            .and_then(|s| s.permission)
            .unwrap_or_default();
        let off = |spec: &ToolSpec| {
            switches
                .and_then(|s| s.get(&spec.name))
                .and_then(Value::as_bool)
                == Some(false)
                || is_disabled(&spec.name, &[&rules, &own])
        };
        // What OpenCode does not have costs tokens in each request, so somebody has to want it.
        let wanted = |spec: &ToolSpec| {
            let on = switches.and_then(|s| s.get(&spec.name)) == Some(&Value::Bool(true));
            let Some(plugin) = optional::plugin(spec) else {
                return true;
            };
            let plugin = self.config.settings.plugins.get(plugin);
            on || plugin.and_then(|it| it.enabled) == Some(true)
                || is_wanted(&spec.name, &[&rules, &own])
        };
        // The one hidden tool that is shown where somebody can answer it.
        let asks = |spec: &ToolSpec| {
            spec.name == "question"
                && spec.source == "builtin"
                && self.can_ask_questions()
                && !off(spec)
        };
        let model = self.api_name(model);
        let specs: Vec<ToolSpec> = self
            .runtime
            .specs()
            .into_iter()
            .filter(|spec| spec.hidden || !off(spec))
            .filter(|spec| wanted(spec) && outrigger_tools::builtin::suits(spec, &model))
            .filter(|spec| self.skill_servers.offers(Some(session), spec))
            .collect();
        let (agents, skills) = (self.agent_entries(), self.skill_entries());
        let items = specs
            .iter()
            .filter(|spec| !is_mcp(spec))
            .map(|spec| {
                definition(
                    spec,
                    &outrigger_tools::builtin::describe(spec, &agents, &skills),
                )
            })
            .collect();
        let result = self
            .run_hooks(
                HookPoint::LlmToolDefinition,
                items,
                Some(session),
                Some(turn),
                Some(cancel),
            )
            .await;
        let mut offers: Vec<ToolOffer> = specs
            .iter()
            .filter(|spec| is_mcp(spec))
            .map(outrigger_mcp_tools::offer)
            .collect();
        for (spec, output) in specs
            .iter()
            .filter(|spec| !is_mcp(spec))
            .zip(&result.outputs)
            .filter(|(spec, _)| !spec.hidden || asks(spec))
        {
            let (description, parameters) = tool_definition::read(output);
            offers.push(ToolOffer {
                name: spec.name.clone(),
                description: description.unwrap_or_else(|| spec.description.clone()),
                parameters: parameters.unwrap_or_else(|| spec.input_schema.clone()),
            });
        }
        offers.sort_by(|a, b| a.name.cmp(&b.name));
        let known = specs
            .iter()
            .filter(|spec| spec.name != "question" || spec.source != "builtin" || asks(spec))
            .map(|spec| KnownTool {
                name: spec.name.clone(),
                read_only: spec.read_only,
            })
            .collect();
        (offers, known)
    }

    /// The name that a provider's API knows a model by, which says what tools it is offered; its own where it is not known.
    pub(crate) fn api_name(&self, model: &ModelRef) -> String {
        match self.models.resolve(model) {
            Ok(resolved) if !resolved.model.api.id.is_empty() => resolved.model.api.id,
            _ => model.model_id.clone(),
        }
    }

    /// The system prompt for an agent, as one text.
    pub(crate) fn system_text(
        &self,
        agent: &AgentInfo,
        model: &ModelInfo,
        skills: bool,
        extra: &[&str],
    ) -> String {
        let found = instructions(
            &self.place,
            &self.folders.home,
            &self.folders.config,
            &self.config.config.instructions,
            |path| self.instruction(path),
        );
        let skills: Vec<(String, String)> = if skills {
            self.skills
                .iter()
                .filter_map(|s| Some((s.name.clone(), s.description.clone()?)))
                .collect()
        } else {
            Vec::new()
        };
        let today = jiff::Zoned::now().strftime("%a %b %d %Y").to_string();
        SystemPrompt {
            agent_prompt: agent.prompt.as_deref(),
            model: &model.api.id,
            model_ref: &format!("{}/{}", model.provider_id, model.id),
            place: &self.place,
            today: &today,
            instructions: &found,
            skills: &skills,
            extra,
        }
        .text()
    }

    /// Skills, as the `skill` tool needs them.
    pub(crate) fn skill_entries(&self) -> Vec<SkillEntry> {
        let entry = |skill: &outrigger_config::skills::Skill| SkillEntry {
            name: skill.name.clone(),
            description: skill.description.clone().unwrap_or_default(),
            content: skill.content.clone(),
            dir: skill.dir.clone(),
        };
        self.skills.iter().map(entry).collect()
    }

    /// Agents, as the `task` tool needs them.
    pub(crate) fn agent_entries(&self) -> Vec<AgentEntry> {
        let entry = |agent: &AgentInfo| AgentEntry {
            name: agent.name.clone(),
            description: agent.description.clone().unwrap_or_default(),
            subagent: agent.mode != "primary",
        };
        self.agents
            .values()
            .filter(|agent| !agent.hidden)
            .map(entry)
            .collect()
    }

    pub(crate) fn tool_limits(&self) -> outrigger_tools::Limits {
        let tools = &self.config.settings.tools;
        outrigger_tools::Limits {
            max_lines: usize::try_from(tools.output_lines).unwrap_or(usize::MAX),
            max_bytes: usize::try_from(tools.output_bytes).unwrap_or(usize::MAX),
            ..outrigger_tools::Limits::default()
        }
    }

    pub(crate) fn stream_options(&self, session: &SessionId) -> outrigger_models::StreamOptions {
        let models = &self.config.settings.models;
        let set = |key: &str| {
            self.config
                .settings_origins
                .get(key)
                .is_some_and(|origin| *origin != Origin::Default)
        };
        // What nobody set is left to the provider's own options.
        let deadlines = ["first_byte_ms", "idle_ms", "total_ms"]
            .iter()
            .any(|key| set(&format!("models.{key}")));
        let ms = |value| Some(Duration::from_millis(value));
        outrigger_models::StreamOptions {
            session_id: session.to_string(),
            directory: self.place.directory.clone(),
            deadlines: deadlines.then(|| outrigger_models::Deadlines {
                first_byte: ms(models.first_byte_ms),
                idle: ms(models.idle_ms),
                total: ms(models.total_ms),
            }),
            retry: set("models.max_retries").then(|| outrigger_models::RetryPolicy {
                max_retries: models.max_retries,
                ..outrigger_models::RetryPolicy::default()
            }),
            ..outrigger_models::StreamOptions::default()
        }
    }
}

/// The payload of `tool.definition`. Tools of plugins carry their schema under `jsonSchema` as well, as in OpenCode.
pub(crate) fn definition(spec: &ToolSpec, description: &str) -> HookPayload {
    let apart = spec.source != "builtin" || spec.name == "task";
    let output = tool_definition::Output {
        description,
        parameters: &spec.input_schema,
        json_schema: apart.then_some(&spec.input_schema),
    };
    tool_definition::Input {
        tool_id: &spec.name,
    }
    .payload(&output)
}

/// The parameters that hooks get: absent where neither agent nor model says anything.
pub(crate) fn parameters(
    agent: &AgentInfo,
    resolved: &Resolved,
    session: &SessionId,
    small: bool,
) -> ModelParams {
    let model = &resolved.model;
    let mut options = resolved.default_options(&session.0, small);
    options.extend(agent.options.clone());
    ModelParams {
        temperature: agent
            .temperature
            .or_else(|| outrigger_models::temperature(model))
            .filter(|_| model.capabilities.temperature),
        top_p: agent.top_p.or_else(|| outrigger_models::top_p(model)),
        top_k: outrigger_models::top_k(model),
        max_output_tokens: Some(outrigger_models::max_output_tokens(model)),
        options,
    }
}
