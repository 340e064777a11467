//! What is on offer by name: skills, tools, agents and commands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_config::Loaded;
use outrigger_config::skills::Skill;
use outrigger_permissions::agents::{self, AgentInfo};
use outrigger_permissions::home_files;
use outrigger_permissions::pinned_rules::LiftedRule;
use outrigger_plugins::Plugins;
use outrigger_prompt::command::CommandInfo;
use outrigger_prompt::template::BUNDLED;
use outrigger_protocol::id::PluginId;
use outrigger_tools::ToolRuntime;
use outrigger_tools::builtin;
use outrigger_workspace::Folders;

use super::assemble::Parts;
use super::bootstrap::Bootstrap;
use crate::error::AgentError;
use crate::tools::lsp;

/// The bundled tools, registered, with the options that they were given.
pub(super) struct Tools {
    pub(super) runtime: ToolRuntime,
    pub(super) options: builtin::Options,
}

impl Bootstrap {
    /// The skills of the configuration and of plugins; those named by an address are fetched.
    pub(super) async fn find_skills(&self, plugins: &Plugins) -> Vec<Skill> {
        outrigger_skills::find(
            &self.config,
            &self.config.config,
            &self.boot.folders,
            &self.sandboxes,
            plugins.skill_folders(),
        )
        .await
    }

    /// Registers the bundled tools. Those of plugins and MCP servers follow when the agent is there.
    ///
    /// # Errors
    /// [`AgentError::Tools`], a defect of a tool's description.
    pub(super) fn register_tools(&self) -> Result<Tools, AgentError> {
        let data = &self.boot.folders.data;
        let off = self.admitted.tools_off().into_iter();
        let options = builtin::Options {
            shell: self.config.config.shell.as_ref().map(PathBuf::from),
            shell_timeout: Duration::from_millis(self.config.settings.tools.bash_timeout_ms),
            tmux: Some(outrigger_plugins::tmux_dir(data, &self.place.directory)),
            lsp: lsp::tool_is_on(&self.boot.env),
            off: off.map(str::to_owned).collect(),
            ..Default::default()
        };
        let runtime = ToolRuntime::new();
        builtin::register_all(&runtime, &options).map_err(|e| AgentError::Tools(e.to_string()))?;
        Ok(Tools { runtime, options })
    }

    /// The agents of the configuration. Where plugins without the grant for it gave them rules, these are no wider than what holds
    /// without plugins.
    pub(super) fn agents(&self, parts: &Parts) -> BTreeMap<String, AgentInfo> {
        let config = &self.config.config;
        let folders = self.config.config_dirs.iter().map(PathBuf::as_path);
        let mut folders: Vec<&Path> = folders.collect();
        folders.extend(parts.skills.iter().map(|skill| skill.dir.as_path()));
        let project = [
            self.place.directory.as_path(),
            self.place.worktree.as_path(),
        ];
        let shown = &self.config.settings.tools.secrets;
        let secrets = home_files::secrets_of_project(&self.boot.folders, shown, project);
        let places = agents::Places {
            allowed_folders: &folders,
            secrets: &secrets,
        };
        let mut all = agents::all(&config.agent, &config.permission, places);
        if !parts.ungranted.is_empty() {
            let default = agents::default_name(&all, config.default_agent.as_deref());
            let rules = &parts.user_rules;
            let lifted = rules.limit(&mut all, default.as_deref(), places);
            warn_of_lifted(&lifted, &parts.ungranted);
        }
        all
    }
}

/// One line for each plugin that may have given rules which were left out.
fn warn_of_lifted(lifted: &[LiftedRule], plugins: &[(PluginId, String)]) {
    let Some(first) = lifted.first() else {
        return;
    };
    let (agent, kept) = (&first.agent, &first.kept);
    let kept = format!("`{}` of {}", kept.permission, kept.pattern);
    for (plugin, name) in plugins {
        tracing::warn!(
            "[config] the plugin {} gives agents rules that would lift what holds without it ({kept} for {agent}): these are left out \
             (`approve = true` under [plugins.\"{name}\"] in your own outrigger.toml lets them count)",
            plugin.0
        );
    }
}

pub(super) fn all_commands(
    config: &Loaded,
    skills: &[Skill],
    folders: &Folders,
) -> BTreeMap<String, CommandInfo> {
    let bundled = BUNDLED
        .iter()
        .map(|(name, description, template)| CommandInfo {
            name: (*name).to_owned(),
            description: Some((*description).to_owned()),
            template: (*template).to_owned(),
            ..CommandInfo::default()
        });
    let info = |entry: &outrigger_config::CommandEntry| CommandInfo {
        name: entry.name.clone(),
        description: entry.description.clone(),
        template: entry.template.clone(),
        agent: entry.agent.clone(),
        model: entry.model.clone(),
        subtask: entry.subtask,
        ..CommandInfo::default()
    };
    let (of_claude, problems) = config.claude_commands();
    for problem in problems {
        tracing::warn!("[config] {problem}");
    }
    let configured = config.config.command.iter().map(info);
    let mut all: BTreeMap<String, CommandInfo> = bundled
        .chain(of_claude.iter().map(info))
        .chain(configured)
        .map(|command| (command.name.clone(), command))
        .collect();
    for command in skills
        .iter()
        .map(|skill| outrigger_skills::command(skill, config, folders))
    {
        all.entry(command.name.clone()).or_insert(command);
    }
    all
}
