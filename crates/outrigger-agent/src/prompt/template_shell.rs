//! Shell lines in command templates: `` !`git status` ``. Each needs the same approval as a call of the `bash`
//! tool and runs in the same sandbox; a line that a plugin contributed runs in the plugin's sandbox.

use std::sync::Arc;
use std::time::Duration;

use outrigger_contributions::{command_label, grants};
use outrigger_permissions::agents::AgentInfo;
use outrigger_permissions::approval::ApprovalReason;
use outrigger_permissions::sandbox_policy::ConfineError;
use outrigger_protocol::id::{CallId, MessageId, SessionId};
use outrigger_protocol::permission::Rule;
use outrigger_protocol::provenance::Provenance;
use outrigger_protocol::tool::ToolCall;
use outrigger_sandbox::{Policy, Spec};
use outrigger_tools::{LineHost, ToolContext};
use serde_json::{Value, json};

use crate::permission::ask::{Asker, Refusal};
use crate::prompt::guards::GuardedBy;
use crate::state::Agent;

/// Maximum run time of one line.
const DEADLINE: Duration = Duration::from_secs(30);
/// Maximum bytes of its output.
const MAX_OUTPUT: usize = 256 * 1024;

/// A line of a command's template and its context.
#[derive(Clone, Copy)]
pub(crate) struct ShellLine<'a> {
    pub(crate) session_id: &'a SessionId,
    pub(crate) agent: &'a AgentInfo,
    /// Who sent the prompt.
    pub(crate) causes: &'a Provenance,
    /// Name of the command.
    pub(crate) command: &'a str,
    pub(crate) line: &'a str,
}

impl Agent {
    /// Returns the output of a line, or why it did not run.
    pub(crate) async fn shell_output(&self, line: ShellLine<'_>) -> String {
        let output = self.run_line(&line).await;
        output.unwrap_or_else(|why| format!("(not run: {why})"))
    }

    async fn run_line(&self, line: &ShellLine<'_>) -> Result<String, String> {
        let own = self.state.session_rules(line.session_id);
        let own = own.map_err(|error| error.to_string())?;
        let by = GuardedBy {
            session_id: line.session_id,
            agent: line.agent,
            causes: line.causes,
            command: Some(line.command),
        };
        let args = json!({ "command": line.line, "description": "A line of a command's template" });
        let passed = self.pass_guards(by, "bash", args).await?;
        let text = passed.args.get("command").and_then(Value::as_str);
        let text = text.ok_or("a guard leaves no command of it")?.to_owned();
        let line = &ShellLine {
            line: &text,
            ..*line
        };
        self.approve_line(line, &own, passed.requires_approval)
            .await?;
        let label = command_label(line.command);
        let spec = Spec::new("/bin/sh")
            .args(["-c", line.line])
            .cwd(&self.state.project.location.directory)
            .vars(outrigger_sandbox::env::allow_list(&[]))
            .label(label.clone());
        let rules = [line.agent.permission.clone(), own].concat();
        let spec = self.confine_line(spec, &label, line.session_id, rules);
        let spec = spec.await;
        let spec = spec.map_err(|error| format!("{error}; {}", error.hint()))?;
        let output = outrigger_sandbox::run(
            &self.state.processes.commands_spawner,
            spec,
            DEADLINE,
            MAX_OUTPUT,
        )
        .await;
        let output = output.map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Requests approval for a line as the `bash` tool does.
    async fn approve_line(
        &self,
        line: &ShellLine<'_>,
        own: &[Rule],
        by_guards: Option<ApprovalReason>,
    ) -> Result<(), String> {
        let label = command_label(line.command);
        // A line contributed by the plugin itself, alone or with others, runs in the plugin's sandbox.
        let plugins = &self.state.plugins;
        let is_plugins = plugins.sandboxes.of(&label).is_some();
        let mut owners = plugins.host.configured_by("command", line.command);
        owners.retain(|_| is_plugins);
        let runtime = &self.state.tools.runtime;
        let asks =
            runtime.questions_of_line(by_guards.is_some(), is_plugins, &self.line_context(line));
        for ask in asks.map_err(|error| error.to_string())? {
            let ungranted = self.state.prompted_without_grant(line.causes, None, &ask);
            let ungranted = ungranted.filter(|it| !owners.iter().any(|owner| it.may_be(owner)));
            let by_guards = by_guards.clone().filter(|_| ask.permission == "bash");
            let requires_approval = ungranted.map(ApprovalReason::Ungranted).or(by_guards);
            let asker = Asker {
                session_id: line.session_id,
                tool: None,
                rules: &[&line.agent.permission, own],
                wanted: line.agent.wanted.as_deref(),
                requires_approval: requires_approval.as_ref(),
                causes: line.causes,
                reports: None,
            };
            let decided = self.state.decide(&asker, ask).await;
            decided.map_err(Refusal::text)?;
        }
        Ok(())
    }

    /// Returns the context in which a line would be a call of `bash`.
    fn line_context(&self, line: &ShellLine<'_>) -> ToolContext {
        let state = &self.state;
        let call = ToolCall {
            call_id: CallId::default(),
            session_id: line.session_id.clone(),
            message_id: MessageId::default(),
            agent: line.agent.name.clone(),
            tool: "bash".to_owned(),
            input: json!({ "command": line.line }),
            provenance: line.causes.clone(),
        };
        let skills = state.catalog.skill_entries();
        let location = &state.project.location;
        let mut ctx = ToolContext::new(
            call,
            location.directory.clone(),
            location.worktree.clone(),
            Arc::new(LineHost { skills }),
            state.processes.commands_spawner.clone(),
            state.outputs_of(line.session_id),
        );
        ctx.callers = state.callers_of(line.session_id);
        let agents = ctx.callers.iter().chain([&line.agent.name]);
        ctx.granted = grants::of_agents(&state.config.settings.tool_execution, agents);
        ctx
    }

    /// Applies the command sandbox, or the sandbox of the plugin that contributed the line.
    async fn confine_line(
        &self,
        mut spec: Spec,
        label: &str,
        session: &SessionId,
        rules: Vec<Rule>,
    ) -> Result<Spec, ConfineError> {
        let confined = self.state.confine(Some(session), rules).await?;
        spec.policy = match self.state.plugins.sandboxes.of(label) {
            None => confined,
            Some(own) => {
                // The plugin can see its own home here.
                let kept = self.state.covers_of_helpers().await?.unwrap_or_default();
                spec.env.extend(own.variables);
                spec.proxy_redirect = own.proxy_redirect;
                Some(Policy { kept, ..own.policy })
            }
        };
        Ok(spec)
    }
}
