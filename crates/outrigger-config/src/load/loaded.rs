//! The loaded configuration, and later queries: files of Claude Code, skills, a document that `config` hooks changed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::claude::hooks::HookFile;
use crate::claude::skills::{Skill, SkillSearch};
use crate::claude::{self, ClaudeCommand, ClaudeServer};
use crate::load::layers;
use crate::load::links::Links;
use crate::opencode::plugin_list::{PluginSpec, SkippedPlugin};
use crate::project::chosen_providers::ChosenProviders;
use crate::{
    ConfigProblem, LoadOptions, OpenCodeConfig, Origin, PolicyFile, Settings, TrustRequest, paths,
};

/// The configuration with the origin of its values.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Typed view of `value`.
    pub config: OpenCodeConfig,
    /// The merged document in OpenCode's form, as the `config` hook gets it.
    pub value: Value,
    /// Origin of each leaf of `value` (scalars, lists, empty objects; each element of `plugin` and `instructions`), by
    /// JSON pointer. See [`Loaded::show`].
    pub origins: BTreeMap<String, Origin>,
    /// External plugins in loading order, without duplicates; empty with `--pure`.
    pub plugins: Vec<PluginSpec>,
    /// Tool files of the config folders, lowest precedence first (B5); empty with `--pure`.
    pub tool_files: Vec<PluginSpec>,
    /// Entries that are not loaded, with reasons.
    pub skipped: Vec<SkippedPlugin>,
    /// The managed policies; settings and plugins comply with them already.
    pub policies: Vec<PolicyFile>,
    /// Config folders, lowest precedence first; the global one is included even if it does not exist.
    pub config_dirs: Vec<PathBuf>,
    /// `outrigger.toml` and its environment variables.
    pub settings: Settings,
    /// Origin of each setting, by its dotted name, defaults included.
    pub settings_origins: BTreeMap<String, Origin>,
    /// Files that were read, in order.
    pub files: Vec<PathBuf>,
    /// Problems that did not stop the loading.
    pub problems: Vec<ConfigProblem>,
    /// What the project's files request that needs trust, in order.
    pub asks: Vec<TrustRequest>,
    /// It is ignored, since it was not accepted.
    pub left_out: bool,
    /// The user trusts the folder, as far as its settings need trust.
    pub is_trusted: bool,
    /// Configuration of the user's files without the project's, if the project has any.
    pub users: Option<Box<OpenCodeConfig>>,
    /// Likely secrets that variables and files inserted into texts, under any key: the longest first.
    pub(crate) secrets: Vec<String>,
    /// Providers of models that the user has chosen.
    pub(crate) chosen: ChosenProviders,
    /// The same with those of a trusted project.
    pub(crate) chosen_with_project: ChosenProviders,
    pub(crate) options: LoadOptions,
}

impl Loaded {
    /// Returns the executor that the user's own settings name for an agent; those of a project name none.
    #[must_use]
    pub fn executor_of(&self, agent: &str) -> Option<&str> {
        let all = &self.config.agent;
        let users = self.users.as_ref().map_or(all, |it| &it.agent);
        let entry = users.iter().find(|it| it.name == agent)?;
        entry.options.get("executor")?.as_str()
    }

    /// Returns whether the user has chosen a provider of models: by settings (those of a trusted project count), a login, or a
    /// key in a variable that is for it alone. `config` hooks do not count.
    #[must_use]
    pub fn has_chosen(&self, provider: &str) -> bool {
        let model = Value::String(format!("{provider}/"));
        self.chosen_with_project.have(&model)
    }

    /// Returns the secrets that `{env:NAME}` and `{file:PATH}` inserted into texts.
    #[must_use]
    pub fn secrets(&self) -> &[String] {
        &self.secrets
    }

    /// Restores what [`Loaded::redacted`] removed from a document that plugins may have changed, and returns the positions where
    /// it did not: a secret is restored only at its origin, and only if its recipient is unchanged.
    pub fn restore(&self, value: &mut Value) -> Vec<String> {
        crate::redact::restore(value, &self.value, &self.secrets)
    }

    /// Returns the typed view of a document that `config` hooks have changed, by the rules of
    /// [`OpenCodeConfig::from_value_leniently`]: invalid values of a plugin are skipped and reported.
    pub fn reread(&self, value: Value) -> (OpenCodeConfig, Vec<ConfigProblem>) {
        OpenCodeConfig::from_value_leniently(value, &self.options.home)
    }

    /// Returns the servers of the project's `.mcp.json` files, unless `claude.mcp` is off. They are not part of
    /// [`OpenCodeConfig::mcp`]: the user must allow each first.
    #[must_use]
    pub fn claude_servers(&self) -> (Vec<ClaudeServer>, Vec<ConfigProblem>) {
        let mut problems = Vec::new();
        let off = layers::switch(&self.options, "OPENCODE_DISABLE_CLAUDE_CODE");
        let servers = if self.settings.claude.mcp && !off {
            claude::servers(&self.options, &mut problems)
        } else {
            Vec::new()
        };
        (servers, problems)
    }

    /// Returns the MCP servers of a skill, unless `claude.mcp` is off. A skill of an untrusted project has none.
    #[must_use]
    pub fn skill_servers(&self, skill: &Skill) -> (Vec<ClaudeServer>, Vec<ConfigProblem>) {
        if !self.settings.claude.mcp {
            return (Vec::new(), Vec::new());
        }
        let (servers, problems) = crate::claude::skills::servers(skill, &self.options.env);
        let is_let = || servers.iter().all(|server| self.lets_server(server));
        if !self.is_of_project(skill) || servers.is_empty() || is_let() {
            return (servers, problems);
        }
        let why = "the MCP servers of this skill are skipped: the folder is not trusted (`outrigger trust`)";
        let problem = ConfigProblem {
            file: skill.location.display().to_string(),
            pointer: None,
            message: why.into(),
        };
        (Vec::new(), vec![problem])
    }

    /// Returns the commands of `.claude/commands`, unless `claude.commands` is off. OpenCode's own commands take precedence.
    #[must_use]
    pub fn claude_commands(&self) -> (Vec<ClaudeCommand>, Vec<ConfigProblem>) {
        let mut problems = Vec::new();
        let off = layers::switch(&self.options, "OPENCODE_DISABLE_CLAUDE_CODE");
        let commands = if self.settings.claude.commands && !off {
            claude::commands(
                &self.options,
                &claude::OfProject {
                    is_trusted: self.is_trusted,
                    lets: &|file, template| self.lets_command(file, template),
                    // If nothing of the folder takes effect, one line reports that.
                    is_quiet: self.left_out,
                    may_choose: &|model| self.chosen.have(model),
                },
                &self.config.permission,
                &mut problems,
            )
        } else {
            Vec::new()
        };
        (commands, problems)
    }

    /// Returns command hooks of `.claude/settings.json` and similar files, and of `claude.plugins`, unless `claude.hooks` is off.
    /// The user must allow all but their own first.
    #[must_use]
    pub fn claude_hooks(&self) -> (Vec<HookFile>, Vec<ConfigProblem>) {
        let mut problems = Vec::new();
        let off = layers::switch(&self.options, "OPENCODE_DISABLE_CLAUDE_CODE");
        let files = if self.settings.claude.hooks && !off {
            let plugins = &self.settings.claude.plugins;
            crate::claude::hooks::files(&self.options, plugins, &mut problems)
        } else {
            Vec::new()
        };
        problems.extend(self.unheld_hooks(&files));
        (files, problems)
    }

    /// Returns the environment that the configuration was read with, for entries that are read later.
    #[must_use]
    pub fn env(&self) -> &BTreeMap<String, String> {
        &self.options.env
    }

    /// Returns the folders to search for skills. `config` is the effective view, perhaps changed by hooks, whose `skills.paths`
    /// apply. `OPENCODE_DISABLE_EXTERNAL_SKILLS`, `OPENCODE_DISABLE_CLAUDE_CODE` and `OPENCODE_DISABLE_CLAUDE_CODE_SKILLS` are
    /// obeyed. Skills from `skills.urls` are not fetched here.
    pub fn skill_search(&self, config: &OpenCodeConfig) -> SkillSearch {
        let options = &self.options;
        let on = |name: &str| layers::switch(options, name);
        let mut names = Vec::new();
        if !on("OPENCODE_DISABLE_EXTERNAL_SKILLS") {
            if !on("OPENCODE_DISABLE_CLAUDE_CODE") && !on("OPENCODE_DISABLE_CLAUDE_CODE_SKILLS") {
                names.push(".claude");
            }
            names.push(".agents");
        }
        let up = paths::upwards(&options.directory, &options.worktree);
        let mut external = Vec::new();
        for dir in std::iter::once(&options.home).chain(&up) {
            for name in &names {
                let path = dir.join(name);
                if !external.contains(&path) {
                    external.push(path);
                }
            }
        }
        let expand = |path: &String| paths::expand(path, &options.directory, &options.home);
        SkillSearch {
            plugins: Vec::new(),
            fetched: Vec::new(),
            external,
            config_dirs: self.config_dirs.clone(),
            paths: config.skill_paths.iter().map(expand).collect(),
            links: Links::of(options).under(&self.config.permission),
            is_untrusted: !self.is_trusted,
        }
    }
}
