//! Named items that the agent offers: skills, tools, agents and commands.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_config::Loaded;
use outrigger_config::claude::ClaudeCommand;
use outrigger_config::skills::Skill;
use outrigger_permissions::agents::{self, AgentInfo};
use outrigger_permissions::home_files;
use outrigger_permissions::pinned_rules::{LiftedRule, UserRules};
use outrigger_plugins::Plugins;
use outrigger_prompt::command::CommandInfo;
use outrigger_prompt::template::BUNDLED;
use outrigger_protocol::id::PluginId;
use outrigger_tools::{ToolRuntime, builtin};
use outrigger_workspace::Folders;

use super::assemble::Parts;
use super::bootstrap::Bootstrap;
use crate::error::AgentError;
use crate::tools::lsp;

/// The registered bundled tools with their options.
pub(super) struct Tools {
    pub(super) runtime: ToolRuntime,
    pub(super) options: builtin::Options,
}

impl Bootstrap {
    /// Returns the skills of the configuration and of plugins; skills named by a URL are fetched.
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

    /// Returns the service of the tool `websearch` if OpenCode's variable enables it: nothing is sent to a service that the user
    /// did not choose.
    fn search_service(&self) -> Option<builtin::SearchService> {
        let env = &self.boot.env;
        lsp::switch(env, "OPENCODE_ENABLE_EXA")
            .unwrap_or(false)
            .then(|| builtin::SearchService {
                url: self.config.settings.tools.websearch_url.clone(),
                key: env
                    .get("EXA_API_KEY")
                    .filter(|key| !key.is_empty())
                    .cloned(),
            })
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
            shell_env: self.config.settings.tools.env.clone(),
            tmux: Some(outrigger_plugins::tmux_dir(data, &self.location.directory)),
            lsp: lsp::tool_is_on(&self.boot.env),
            search: self.search_service(),
            off: off.map(str::to_owned).collect(),
        };
        let runtime = ToolRuntime::new();
        builtin::register_all(&runtime, &options).map_err(|e| AgentError::Tools(e.to_string()))?;
        Ok(Tools { runtime, options })
    }

    /// Returns the agents of the configuration. Rules from plugins without the grant for them are limited to what applies without
    /// plugins.
    pub(super) fn agents(&self, parts: &Parts) -> BTreeMap<String, AgentInfo> {
        let config = &self.config.config;
        let folders = self.config.config_dirs.iter().map(PathBuf::as_path);
        let mut folders: Vec<&Path> = folders.collect();
        folders.extend(parts.skills.iter().map(|skill| skill.dir.as_path()));
        let project = [
            self.location.directory.as_path(),
            self.location.worktree.as_path(),
        ];
        let shown = &self.config.settings.tools.secrets;
        let secrets = home_files::secrets_of_project(&self.boot.folders, shown, project);
        let settings = home_files::settings_folders(&self.boot.folders, &self.location.directory);
        let places = agents::Places {
            allowed_folders: &folders,
            settings_folders: &settings,
            secrets: &secrets,
        };
        let mut all = agents::all(&config.agent, &config.permission, places);
        if !parts.ungranted.is_empty() {
            let default = agents::default_name(&all, config.default_agent.as_deref());
            let rules = &parts.user_rules;
            let lifted = rules.limit(&mut all, default.as_deref(), places);
            warn_of_lifted(&lifted, &parts.ungranted);
        }
        if let Some(users) = self.config.users.as_deref()
            && !self.config.is_trusted
        {
            let default = agents::default_name(&all, config.default_agent.as_deref());
            let rules = UserRules::of(users);
            for lifted in rules.hold_agents(&mut all, default.as_deref(), places) {
                tracing::debug!(
                    "[config] the folder is not trusted, so its rules loosen nothing: `{}` of {} still applies to {}",
                    lifted.kept.permission,
                    lifted.kept.pattern,
                    lifted.agent
                );
            }
        }
        all
    }
}

/// Logs one line for each plugin whose rules may have been dropped.
fn warn_of_lifted(lifted: &[LiftedRule], plugins: &[(PluginId, String)]) {
    let Some(first) = lifted.first() else {
        return;
    };
    let (agent, kept) = (&first.agent, &first.kept);
    let kept = format!("`{}` of {}", kept.permission, kept.pattern);
    for (plugin, name) in plugins {
        tracing::warn!(
            "[config] the plugin {} gives agents rules that would loosen existing ones ({kept} for {agent}): they are skipped \
             (`approve = true` under [plugins.\"{name}\"] in your own outrigger.toml allows them)",
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
    let own = kept_names(config, &of_claude, skills);
    let gives_way = |name: &str, is_users: bool| !is_users && own.contains(name);
    let of_claude = of_claude.iter();
    let of_claude = of_claude.filter(|it| !gives_way(&it.entry.name, it.is_users));
    let users = config.users.as_ref().map_or(&config.config, |it| it);
    let is_users = |name: &str| users.command.iter().any(|it| it.name == name);
    let configured = config.config.command.iter();
    let configured = configured.filter(|it| !gives_way(&it.name, is_users(&it.name)));
    let mut all: BTreeMap<String, CommandInfo> = bundled
        .chain(of_claude.map(|it| info(&it.entry)))
        .chain(configured.map(info))
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

/// Names of the user's commands from `.claude/commands` and of the user's skills. In an untrusted folder, a project command
/// cannot shadow either. Conflicts between commands in OpenCode's format are resolved by the configuration.
fn kept_names<'a>(
    config: &Loaded,
    of_claude: &'a [ClaudeCommand],
    skills: &'a [Skill],
) -> BTreeSet<&'a str> {
    if config.is_trusted {
        return BTreeSet::new();
    }
    let of_claude = of_claude.iter().filter(|it| it.is_users);
    let skills = skills.iter().filter(|it| !config.is_of_project(it));
    let of_claude = of_claude.map(|it| it.entry.name.as_str());
    of_claude.chain(skills.map(|it| it.name.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use outrigger_config::{LoadOptions, ProjectConfig, load};

    use super::*;

    #[test]
    fn in_a_folder_that_is_not_trusted_commands_and_skills_of_the_user_stay() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for file in [
            "home/.claude/commands/both.md",
            "home/.claude/commands/mine.md",
            "p/.claude/commands/both.md",
            "p/.claude/commands/skill.md",
            "p/.claude/commands/theirs.md",
            "p/.opencode/command/mine.md",
            "p/.opencode/command/skill2.md",
            "p/.opencode/command/theirs2.md",
        ] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let whose = file.split('/').next().unwrap();
            std::fs::write(path, whose).unwrap();
        }
        let skill = |name: &str| Skill {
            name: name.to_owned(),
            description: None,
            location: root.join("home/.claude/skills").join(name).join("SKILL.md"),
            content: "home".to_owned(),
            dir: root.join("home/.claude/skills").join(name),
            mcp: None,
        };
        let folders = Folders {
            home: root.join("home"),
            config: root.join("home/.config"),
            data: root.join("home/data"),
            cache: root.join("home/cache"),
        };
        let of = |project: ProjectConfig| {
            let options = LoadOptions {
                policy: root.join("none"),
                project,
                ..LoadOptions::new(root.join("p"), root.join("p"), root.join("home"), [].into())
            };
            let config = load(&options).unwrap();
            let all = all_commands(&config, &[skill("skill"), skill("skill2")], &folders);
            let names = ["both", "mine", "skill", "skill2", "theirs", "theirs2"];
            names.map(|it| {
                all[it]
                    .template
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            })
        };
        assert_eq!(
            of(ProjectConfig::Trusted(None)),
            ["home", "home", "home", "home", "p", "p"]
        );
        assert_eq!(of(ProjectConfig::All), ["p"; 6]);
    }
}
