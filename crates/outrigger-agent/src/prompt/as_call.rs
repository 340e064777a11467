//! MCP resources, MCP prompts and skills that a prompt names. Each is decided like the tool call with the same effect, so
//! that a prompt cannot bypass the rules for the call.

use outrigger_mcp_tools::attach::{READ_RESOURCE, Resource};
use outrigger_mcp_tools::{McpPrompt, start_skill_servers};
use outrigger_permissions::approval::ApprovalReason;
use outrigger_prompt::command::CommandInfo;
use outrigger_protocol::permission::Rule;
use outrigger_protocol::session::PartInput;
use outrigger_tools::PermissionAsk;
use serde_json::{Value, json};

use crate::error::AgentError;
use crate::permission::ask::{Asker, Refusal};
use crate::prompt::guards::GuardedBy;
use crate::state::Agent;
use crate::tools::mcp::host;

impl Agent {
    /// Returns the content of a resource that a prompt names, or a note in its place.
    pub(crate) async fn resource(&self, by: GuardedBy<'_>, resource: &Resource) -> Vec<PartInput> {
        let decided = self
            .decide_as_call(by, READ_RESOURCE, resource.arguments(), resource.asks())
            .await;
        match decided {
            Ok(()) => resource.read(&self.state.tools.mcp).await,
            Err(why) => resource.left(&why),
        }
    }

    /// Returns the command that a server's prompt stands for, with the server's text.
    ///
    /// # Errors
    /// [`AgentError::Refused`] if it is not allowed, or the error of the server.
    pub(crate) async fn fetched_prompt(
        &self,
        by: GuardedBy<'_>,
        prompt: McpPrompt,
    ) -> Result<CommandInfo, AgentError> {
        let ask = prompt.asks();
        let tool = ask.permission.clone();
        let args = json!({ "prompt": prompt.name });
        let decided = self.decide_as_call(by, &tool, args, ask).await;
        decided.map_err(|why| refused("the prompt", &prompt.name, &why))?;
        Ok(prompt.command(&self.state.tools.mcp).await?)
    }

    /// Decides whether a command may load the skill of that name.
    ///
    /// # Errors
    /// [`AgentError::Refused`].
    pub(crate) async fn decide_skill(
        &self,
        by: GuardedBy<'_>,
        name: &str,
    ) -> Result<(), AgentError> {
        let ask = PermissionAsk {
            permission: "skill".to_owned(),
            patterns: vec![name.to_owned()],
            always: vec![name.to_owned()],
            ..PermissionAsk::default()
        };
        let args = json!({ "name": name });
        let decided = self.decide_as_call(by, "skill", args, ask).await;
        decided.map_err(|why| refused("the skill", name, &why))
    }

    /// Starts the servers of a skill that a command loads, and returns what the model reads about them.
    pub(crate) async fn servers_of_skill(&self, by: GuardedBy<'_>, name: &str) -> Option<String> {
        let skill = self
            .state
            .catalog
            .skills
            .iter()
            .find(|it| it.name == name)?;
        start_skill_servers(&host(&self.state), by.session_id, skill).await
    }

    /// Decides about a request of a prompt in the same stages as about a call of `tool`. Guards are asked only if a plugin is
    /// a cause of the prompt, as for files.
    async fn decide_as_call(
        &self,
        by: GuardedBy<'_>,
        tool: &str,
        args: Value,
        ask: PermissionAsk,
    ) -> Result<(), String> {
        let by_guards = if by.causes.is_plain() {
            None
        } else {
            let passed = self.pass_guards(by, tool, args.clone()).await?;
            if passed.args != args {
                return Err("a guard changed the name or path".to_owned());
            }
            passed.requires_approval
        };
        let own = self.rules_of_session(by)?;
        self.decide_for_prompt(by, &own, ask, by_guards).await
    }

    /// Decides a request of a prompt under the rules of its agent and session. A plugin that sent the prompt without the grant
    /// and cannot do the same itself needs the user's approval.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub(crate) async fn decide_for_prompt(
        &self,
        by: GuardedBy<'_>,
        own: &[Rule],
        ask: PermissionAsk,
        by_guards: Option<ApprovalReason>,
    ) -> Result<(), String> {
        let ungranted = self.state.prompted_without_grant(by.causes, None, &ask);
        let requires_approval = ungranted.map(ApprovalReason::Ungranted).or(by_guards);
        let asker = Asker {
            session_id: by.session_id,
            tool: None,
            rules: &[&by.agent.permission, own],
            wanted: by.agent.wanted.as_deref(),
            requires_approval: requires_approval.as_ref(),
            causes: by.causes,
            reports: None,
        };
        let decided = self.state.decide(&asker, ask).await;
        decided.map(drop).map_err(Refusal::text)
    }

    /// Returns the rules of the prompt's session.
    ///
    /// # Errors
    /// The store cannot be read; the caller must refuse then.
    pub(crate) fn rules_of_session(&self, by: GuardedBy<'_>) -> Result<Vec<Rule>, String> {
        let own = self.state.session_rules(by.session_id);
        own.map_err(|error| error.to_string())
    }
}

fn refused(what: &str, name: &str, why: &str) -> AgentError {
    AgentError::Refused(format!("{what} {name} is not used: {why}"))
}
