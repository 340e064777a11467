//! The tools that a request offers the model.

use outrigger_config::AgentMode;
use outrigger_kernel::hooks::points::llm::tool_definition;
use outrigger_kernel::hooks::{HookInput, HookPoint};
use outrigger_kernel::permission::{is_disabled, is_wanted};
use outrigger_mcp_tools::is_mcp;
use outrigger_permissions::agents::AgentInfo;
use outrigger_protocol::Object;
use outrigger_protocol::id::{SessionId, TurnId};
use outrigger_protocol::message::ModelRef;
use outrigger_protocol::model::ToolOffer;
use outrigger_protocol::permission::Rule;
use outrigger_protocol::tool::ToolSpec;
use outrigger_protocol::turn::{HookPayload, KnownTool};
use outrigger_tools::builtin::optional;
use outrigger_tools::{AgentEntry, CancelFlag, SkillEntry};
use serde_json::Value;

use crate::state::{AgentState, Catalog};

impl AgentState {
    /// Returns the tools of a step: those that the agent's rules allow, as changed by hooks. The second list has the names
    /// that a call may use, including hidden tools.
    pub(crate) async fn offer_tools(
        &self,
        agent: &str,
        model: &ModelRef,
        switches: Option<&Object>,
        session: &SessionId,
        turn: &TurnId,
        cancel: CancelFlag,
    ) -> (Vec<ToolOffer>, Vec<KnownTool>) {
        let choice = ToolChoice::new(self, agent, model, switches, session);
        let specs: Vec<ToolSpec> = self.tools.runtime.specs();
        let specs: Vec<ToolSpec> = specs.into_iter().filter(|it| choice.has(it)).collect();
        let (mcp, described): (Vec<&ToolSpec>, Vec<&ToolSpec>) =
            specs.iter().partition(|spec| is_mcp(spec));
        let (agents, skills) = (self.catalog.agent_entries(), self.catalog.skill_entries());
        let definitions = described.iter().map(|spec| {
            let description = outrigger_tools::builtin::describe(spec, &agents, &skills);
            definition(spec, &description)
        });
        let result = self
            .run_hooks(
                HookPoint::LlmToolDefinition,
                definitions.collect(),
                Some(session),
                Some(turn),
                Some(cancel),
            )
            .await;
        let defined = described.into_iter().zip(&result.outputs);
        let defined = defined.filter(|(spec, _)| !spec.hidden || choice.asks_questions(spec));
        let mut offers: Vec<ToolOffer> = mcp
            .into_iter()
            .map(outrigger_mcp_tools::offer)
            .chain(defined.map(|(spec, output)| offer(spec, output)))
            .collect();
        offers.sort_by(|a, b| a.name.cmp(&b.name));
        let known = specs
            .iter()
            .filter(|spec| !is_question(spec) || choice.asks_questions(spec))
            .map(|spec| KnownTool {
                name: spec.name.clone(),
                read_only: spec.read_only,
            })
            .collect();
        (offers, known)
    }

    /// Returns the API name of a model, which determines its tools; its own name if the API name is unknown.
    pub(crate) fn api_name(&self, model: &ModelRef) -> String {
        match self.models.resolve(model) {
            Ok(resolved) if !resolved.model.api.id.is_empty() => resolved.model.api.id,
            _ => model.model_id.clone(),
        }
    }

    pub(crate) fn tool_limits(&self) -> outrigger_tools::Limits {
        let tools = &self.config.settings.tools;
        outrigger_tools::Limits {
            max_lines: usize::try_from(tools.output_lines).unwrap_or(usize::MAX),
            max_bytes: usize::try_from(tools.output_bytes).unwrap_or(usize::MAX),
            ..outrigger_tools::Limits::default()
        }
    }
}

impl Catalog {
    /// Returns the agents for the `task` tool.
    pub(crate) fn agent_entries(&self) -> Vec<AgentEntry> {
        let entry = |agent: &AgentInfo| AgentEntry {
            name: agent.name.clone(),
            description: agent.description.clone().unwrap_or_default(),
            subagent: agent.mode != AgentMode::Primary,
        };
        self.agents
            .values()
            .filter(|agent| !agent.hidden)
            .map(entry)
            .collect()
    }

    /// Returns the skills for the `skill` tool.
    pub(crate) fn skill_entries(&self) -> Vec<SkillEntry> {
        let entry = |skill: &outrigger_config::skills::Skill| SkillEntry {
            name: skill.name.clone(),
            description: skill.description.clone().unwrap_or_default(),
            content: skill.content.clone(),
            dir: skill.dir.clone(),
        };
        self.skills.iter().map(entry).collect()
    }
}

/// Selects the tools of an agent in a session: by rules, switches of the prompt, and the model.
struct ToolChoice<'a> {
    state: &'a AgentState,
    switches: Option<&'a Object>,
    session: &'a SessionId,
    /// API name of the model.
    model: String,
    /// Rules of the agent and of the session.
    rules: [Vec<Rule>; 2],
}

impl<'a> ToolChoice<'a> {
    fn new(
        state: &'a AgentState,
        agent: &str,
        model: &ModelRef,
        switches: Option<&'a Object>,
        session: &'a SessionId,
    ) -> Self {
        let agent = state
            .catalog
            .agents
            .get(agent)
            .map(|it| it.permission.clone());
        let own = state.session_rules(session);
        Self {
            state,
            switches,
            session,
            model: state.api_name(model),
            rules: [agent.unwrap_or_default(), own.unwrap_or_default()],
        }
    }

    /// Returns whether the tool may be called; a hidden tool is not offered but still answers calls.
    fn has(&self, spec: &ToolSpec) -> bool {
        (spec.hidden || !self.is_off(spec))
            && self.is_wanted(spec)
            && outrigger_tools::builtin::suits(spec, &self.model)
            && self
                .state
                .tools
                .skill_servers
                .offers(Some(self.session), spec)
    }

    fn is_off(&self, spec: &ToolSpec) -> bool {
        self.switch(spec) == Some(false)
            || is_disabled(&spec.name, &self.rules.each_ref().map(Vec::as_slice))
    }

    /// Returns whether the tool is enabled. Tools that OpenCode does not have cost tokens in each request, so they are
    /// opt-in.
    fn is_wanted(&self, spec: &ToolSpec) -> bool {
        let Some(plugin) = optional::plugin(spec) else {
            return true;
        };
        let plugin = self.state.config.settings.plugins.get(plugin);
        self.switch(spec) == Some(true)
            || plugin.and_then(|it| it.enabled) == Some(true)
            || is_wanted(&spec.name, &self.rules.each_ref().map(Vec::as_slice))
    }

    /// Returns whether this is `question`, the one hidden tool that is offered if there is a user to answer.
    fn asks_questions(&self, spec: &ToolSpec) -> bool {
        is_question(spec) && self.state.permissions.can_ask_questions() && !self.is_off(spec)
    }

    fn switch(&self, spec: &ToolSpec) -> Option<bool> {
        let switch = self.switches?.get(&spec.name)?;
        switch.as_bool()
    }
}

fn is_question(spec: &ToolSpec) -> bool {
    spec.name == "question" && spec.source == "builtin"
}

/// Returns a tool as changed by a hook.
fn offer(spec: &ToolSpec, output: &Value) -> ToolOffer {
    let (description, parameters) = tool_definition::read(output);
    ToolOffer {
        name: spec.name.clone(),
        description: description.unwrap_or_else(|| spec.description.clone()),
        parameters: parameters.unwrap_or_else(|| spec.input_schema.clone()),
    }
}

/// Returns the payload of `tool.definition`. Tools of plugins have their schema under `jsonSchema` as well, as in OpenCode.
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
