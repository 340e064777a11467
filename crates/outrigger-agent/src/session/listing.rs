//! Lists for clients: formatters, tools and the files that they may see.

use std::path::Path;
use std::sync::Arc;

use outrigger_kernel::hooks::HookPoint;
use outrigger_permissions::access::startup::RunsLater;
use outrigger_permissions::access::{Operation, PathRules, SearchRules};
use outrigger_protocol::message::ModelRef;
use outrigger_protocol::model::ToolOffer;
use outrigger_protocol::permission::Action;
use outrigger_protocol::provenance::Actor;
use outrigger_sandbox::Anchor;
use outrigger_tools::ReadRules;
use outrigger_workspace::formatters::FormatterStatus;
use serde_json::Value;

use crate::error::AgentError;
use crate::state::Agent;
use crate::tools::tool_catalog::definition;

impl Agent {
    /// Returns the formatters and whether each would run.
    #[must_use]
    pub fn formatters(&self) -> Vec<FormatterStatus> {
        self.state.tools.formatters.status()
    }

    /// Returns every tool as a model gets it: with up-to-date lists of agents or skills in the description, and with the plugins'
    /// changes.
    pub async fn tool_list(&self, model: &ModelRef) -> Vec<ToolOffer> {
        let state = &self.state;
        let model = state.api_name(model);
        let (agents, skills) = (state.catalog.agent_entries(), state.catalog.skill_entries());
        let (mcp, own): (Vec<_>, Vec<_>) = state
            .tools
            .runtime
            .specs()
            .into_iter()
            .filter(|spec| state.tools.skill_servers.offers(None, spec))
            .filter(|spec| outrigger_tools::builtin::suits(spec, &model))
            .partition(outrigger_mcp_tools::is_mcp);
        let describe = |spec| outrigger_tools::builtin::describe(spec, &agents, &skills);
        let items = own.iter().map(|spec| definition(spec, &describe(spec)));
        let result = state
            .run_hooks(
                HookPoint::LlmToolDefinition,
                items.collect(),
                None,
                None,
                None,
            )
            .await;
        let mut offers: Vec<ToolOffer> = mcp.iter().map(outrigger_mcp_tools::offer).collect();
        for (spec, output) in own.iter().zip(&result.outputs) {
            let schema = output
                .get("jsonSchema")
                .or_else(|| output.get("parameters"))
                .filter(|schema| schema.is_object());
            offers.push(ToolOffer {
                name: spec.name.clone(),
                description: output
                    .get("description")
                    .and_then(Value::as_str)
                    .unwrap_or(&spec.description)
                    .to_owned(),
                parameters: schema.unwrap_or(&spec.input_schema).clone(),
            });
        }
        offers.sort_by(|a, b| a.name.cmp(&b.name));
        offers
    }

    /// The folder that it was started in, held open, where that is still the one at its path.
    ///
    /// # Errors
    /// [`AgentError::Moved`]: nothing is to be read by that path for anybody.
    pub fn folder(&self) -> Result<Option<Arc<Anchor>>, AgentError> {
        match &self.state.project.anchor {
            Some(anchor) if !anchor.stands() => {
                Err(AgentError::Moved(anchor.path().display().to_string()))
            }
            anchor => Ok(anchor.clone()),
        }
    }

    /// Returns whether a client may see a file: not if the default agent's rules deny reading it. Files that need approval are
    /// shown, since the client is the one who would approve.
    #[must_use]
    pub fn may_read(&self, path: &Path) -> bool {
        self.may("read", path)
    }

    /// Like [`Self::may_read`], for another path permission such as `edit`.
    #[must_use]
    pub fn may(&self, permission: &str, path: &Path) -> bool {
        let operation = match permission {
            "edit" => Operation::Write,
            _ => Operation::Read,
        };
        self.view().may(operation, path)
    }

    /// Returns the file, among these paths relative to the project root, that the caller may not change without the user: for a
    /// plugin, files that make something run later.
    pub(crate) fn runs_later<'f>(
        &self,
        by: &Actor,
        files: impl IntoIterator<Item = &'f str>,
    ) -> Vec<RunsLater> {
        if by.plugin_id().is_none() {
            return Vec::new();
        }
        let files: Vec<String> = files.into_iter().map(str::to_owned).collect();
        let worktree = &self.state.project.location.worktree;
        self.state
            .permissions
            .access
            .runs_later(worktree, &files, &[])
    }

    /// Returns the view of files for one request.
    #[must_use]
    pub fn view(&self) -> View {
        let name = self.default_agent().unwrap_or_default();
        let agent = self.state.catalog.agents.get(&name);
        View {
            agent: self.clone(),
            rules: agent.map(|agent| self.state.permissions.access.rules(&[&agent.permission])),
        }
    }
}

/// The files that a client may see or change. Reads the disk.
pub struct View {
    agent: Agent,
    /// Rules of the default agent; if `None`, nothing is shown.
    rules: Option<PathRules>,
}

impl View {
    /// Returns whether a file or its name may be shown.
    #[must_use]
    pub fn may_read(&self, path: &Path) -> bool {
        self.may(Operation::Read, path)
    }

    /// Returns the same rules for a search, which checks very many files.
    #[must_use]
    pub fn into_search_rules(self) -> ReadRules {
        match self.rules {
            Some(rules) => {
                Box::new(SearchRules::new(rules).with_policy(&self.agent.state.processes.spawner))
            }
            None => Box::new(|_: &Path| Action::Deny),
        }
    }

    pub(crate) fn into_rules(self) -> Option<PathRules> {
        self.rules
    }

    fn may(&self, operation: Operation, path: &Path) -> bool {
        let Some(rules) = &self.rules else {
            return false;
        };
        let verdict = rules.decide_by_file(operation, path);
        !self.agent.state.processes.is_forbidden(path)
            && verdict.is_ok_and(|verdict| verdict.action != Action::Deny)
    }
}
