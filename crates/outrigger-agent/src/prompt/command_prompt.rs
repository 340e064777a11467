//! Expands a slash command to its prompt.

use outrigger_config::AgentMode;
use outrigger_permissions::agents::AgentInfo;
use outrigger_permissions::pinned_rules;
use outrigger_plugins::Grant;
use outrigger_prompt::command::CommandInfo;
use outrigger_prompt::filled::{Filled, Unprinted};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::ModelRef;
use outrigger_protocol::session::{PartInput, PromptInput};
use outrigger_protocol::turn::CommandCall;

use crate::error::AgentError;
use crate::prompt::guards::GuardedBy;
use crate::prompt::template_shell::ShellLine;
use crate::state::Agent;
use crate::turn::start::Prompt;

impl Agent {
    /// The prompt that a command stands for: its template with the arguments, the output of its shell lines, and the files that
    /// it names.
    ///
    /// # Errors
    /// [`AgentError::NoCommand`], an unknown agent, and those of the store.
    pub(crate) async fn command_prompt(
        &self,
        session_id: &SessionId,
        name: &str,
        arguments: &str,
        mut prompt: PromptInput,
    ) -> Result<Prompt, AgentError> {
        let info = match self.state.catalog.commands.get(name) {
            Some(info) => info.clone(),
            None => self.server_command(session_id, name, &prompt).await?,
        };
        let agent = self.command_agent(&info, prompt.agent.as_deref())?;
        if info.source.is_skill() {
            let causes = &prompt.provenance;
            let by = GuardedBy {
                session_id,
                agent: &agent,
                causes,
                command: Some(name),
            };
            self.decide_skill(by, name).await?;
        }
        let filled = self.fill(session_id, &info, &agent, arguments, &prompt);
        let filled = filled.await;
        let model = info.model.as_deref().and_then(ModelRef::parse);
        let is_named = info.agent.as_ref() == Some(&agent.name);
        let by_agent = agent.model.clone().filter(|_| is_named);
        let model = model.or(by_agent).or(prompt.model.clone());
        let mut parts = if info.subtask.unwrap_or(agent.mode == AgentMode::Subagent) {
            let chosen = match model {
                Some(model) => model,
                None => self.choose_model(&self.session(session_id)?, &agent, None)?,
            };
            prompt.agent = prompt.agent.or_else(|| self.default_agent());
            vec![filled.subtask(&info, &agent.name, &chosen)]
        } else {
            prompt.agent = Some(agent.name.clone());
            prompt.model = model;
            self.command_parts(session_id, &info, &agent, filled, &prompt)
                .await
        };
        parts.append(&mut prompt.parts);
        prompt.parts = parts;
        Ok(Prompt {
            input: prompt,
            command: Some(CommandCall {
                name: name.to_owned(),
                arguments: arguments.to_owned(),
            }),
        })
    }

    /// Returns the command of an MCP server's prompt, with the server's text.
    async fn server_command(
        &self,
        session_id: &SessionId,
        name: &str,
        prompt: &PromptInput,
    ) -> Result<CommandInfo, AgentError> {
        let found = outrigger_mcp_tools::prompts::find(&self.state.tools.mcp, name).await;
        let found = found.ok_or_else(|| self.no_command(name))?;
        let agent = self.choose_agent(prompt.agent.as_deref())?;
        let by = GuardedBy {
            session_id,
            agent: &agent,
            causes: &prompt.provenance,
            command: None,
        };
        self.fetched_prompt(by, found).await
    }

    /// Returns the agent that a command names. A plugin's command without the grant cannot select an agent with more permissions
    /// than the one that would answer without the command.
    fn command_agent(
        &self,
        info: &CommandInfo,
        usual: Option<&str>,
    ) -> Result<AgentInfo, AgentError> {
        let Some(named) = info.agent.as_deref() else {
            return self.choose_agent(usual);
        };
        let named = self.choose_agent(Some(named))?;
        // A subagent has the limits of its caller.
        let is_subtask = info.subtask.unwrap_or(named.mode == AgentMode::Subagent);
        let plugins = self.state.plugins.host.configured_by("command", &info.name);
        if is_subtask {
            return Ok(named);
        }
        let what = format!(
            "names the agent {} for the command {}",
            named.name, info.name
        );
        let mut lacking = plugins.iter();
        let lacking = lacking.find_map(|it| self.state.lacks(it, Grant::Approve, &what));
        let Some(lacking) = lacking else {
            return Ok(named);
        };
        let usual = self.choose_agent(usual)?;
        if pinned_rules::is_within(&usual.permission, &named.permission) {
            return Ok(named);
        }
        tracing::warn!(
            "[config] {}: {} answers instead, which has fewer permissions",
            lacking.why,
            usual.name
        );
        Ok(usual)
    }

    /// Fills in a template. Text from a server is never run.
    async fn fill(
        &self,
        session_id: &SessionId,
        info: &CommandInfo,
        agent: &AgentInfo,
        arguments: &str,
        prompt: &PromptInput,
    ) -> Filled {
        let template = Unprinted::new(&info.template, arguments, info.source.is_own());
        let mut outputs = Vec::new();
        for line in &template.lines {
            let line = ShellLine {
                session_id,
                agent,
                causes: &prompt.provenance,
                command: &info.name,
                line,
            };
            outputs.push(self.shell_output(line).await);
        }
        template.filled(&outputs)
    }

    /// Returns the text of a command, with the servers of its skill and the files and agents that it names.
    async fn command_parts(
        &self,
        session_id: &SessionId,
        info: &CommandInfo,
        agent: &AgentInfo,
        mut filled: Filled,
        prompt: &PromptInput,
    ) -> Vec<PartInput> {
        let by = GuardedBy {
            session_id,
            agent,
            causes: &prompt.provenance,
            command: Some(&info.name),
        };
        if info.source.is_skill()
            && let Some(servers) = self.servers_of_skill(by, &info.name).await
        {
            filled.text.push_str("\n\n");
            filled.text.push_str(&servers);
        }
        let mut parts = vec![filled.part()];
        if info.source.is_own() {
            let mut files = self.mentioned(by, &filled.named).await;
            // A file that the client sent as well is not included twice, as in OpenCode.
            files.retain(|part| prompt.parts.iter().all(|sent| sent.kind != part.kind));
            parts.extend(files);
            parts.extend(self.mentioned_agents(&filled.named, agent));
        }
        parts
    }
}
