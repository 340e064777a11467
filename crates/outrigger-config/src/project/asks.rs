//! Project files that need trust and are not part of `opencode.json`: servers of `.mcp.json` and of skills, command hooks,
//! commands and skills that run something, plugins in folders with a manifest. They take effect in the state that the user
//! accepted.

use std::path::Path;

use serde_json::Value;

use crate::claude::hooks::{self, HookFile, HookScope};
use crate::claude::skills::{self, Skill, SkillSearch};
use crate::claude::{self, ClaudeServer};
use crate::load::discovery::workspace_roots;
use crate::load::layers;
use crate::load::links::Links;
use crate::load::plugin_folders::plugin_folders;
use crate::project::TrustRequest;
use crate::{LoadOptions, Loaded, Settings, paths};

/// Value of [`TrustRequest::what`] for a command or a skill.
const COMMAND: &str = "command";
/// Value of [`TrustRequest::what`] for a plugin that is found by its path.
const PLUGIN: &str = "plugin";

/// Returns what needs approval, in the order in which it is found. `asks` is what the settings need already.
pub(crate) fn of(
    options: &LoadOptions,
    settings: &Settings,
    asks: &[TrustRequest],
) -> Vec<TrustRequest> {
    let mut all = Vec::new();
    let is_on = !layers::switch(options, "OPENCODE_DISABLE_CLAUDE_CODE");
    let is_projects = |file: &Path| layers::is_project_folder(options, file.parent());
    if settings.claude.mcp && is_on {
        let servers = claude::servers(options, &mut Vec::new());
        let servers = servers.iter().filter(|it| is_projects(&it.file));
        all.extend(servers.map(of_server));
    }
    if settings.claude.hooks && is_on {
        let files = hooks::files(options, &[], &mut Vec::new());
        let files = files.iter().filter(|it| is_projects_hooks(it));
        all.extend(files.flat_map(of_hooks));
    }
    if settings.claude.commands && is_on {
        let running = claude::running_commands(options);
        all.extend(
            running
                .iter()
                .map(|(file, template)| of_template(file, template)),
        );
    }
    let roots = workspace_roots(options).into_iter();
    for root in roots.filter(|it| it.takes_trust) {
        let found = plugin_folders(&root.path).folders.into_iter();
        all.extend(found.map(|folder| of_plugin(&root.path, &folder)));
    }
    let search = search(options, asks);
    let (found, _) = skills::discover(&search);
    for skill in found {
        if runs_something(&skill) {
            all.push(of_template(&skill.location, &skill.content));
        }
        if settings.claude.mcp {
            let (servers, _) = skills::servers(&skill, &options.env);
            all.extend(servers.iter().map(of_server));
        }
    }
    all
}

/// Returns folders of the project in which skills are looked for.
fn search(options: &LoadOptions, asks: &[TrustRequest]) -> SkillSearch {
    let dirs: Vec<_> = layers::project_dirs(options)
        .into_iter()
        .filter(|it| *it != options.home)
        .collect();
    let below = |name: &str| dirs.iter().map(|it| it.join(name)).collect::<Vec<_>>();
    let named = asks
        .iter()
        .filter(|it| it.what == "/skills")
        .filter_map(|it| it.value.get("paths")?.as_array())
        .flatten()
        .filter_map(Value::as_str);
    let expand = |path: &str| paths::expand(path, &options.directory, &options.home);
    let named = named
        .map(expand)
        .filter(|it| it.starts_with(options.project_folder()));
    SkillSearch {
        plugins: Vec::new(),
        fetched: Vec::new(),
        external: [below(".claude"), below(".agents")].concat(),
        config_dirs: below(".opencode"),
        paths: named.collect(),
        links: Links::of(options),
        is_untrusted: false,
    }
}

fn is_projects_hooks(file: &HookFile) -> bool {
    matches!(file.scope, HookScope::Project | HookScope::Local)
}

fn of_server(server: &ClaudeServer) -> TrustRequest {
    TrustRequest::new(
        &server.file,
        format!("/mcpServers/{}", server.name),
        &server.written,
    )
}

fn of_hooks(file: &HookFile) -> Vec<TrustRequest> {
    file.written
        .as_object()
        .into_iter()
        .flatten()
        .map(|(event, hooks)| TrustRequest::new(&file.file, format!("/hooks/{event}"), hooks))
        .collect()
}

fn of_plugin(root: &Path, folder: &Path) -> TrustRequest {
    TrustRequest::new(root, PLUGIN, &Value::String(paths::file_url(folder)))
}

fn of_template(file: &Path, template: &str) -> TrustRequest {
    TrustRequest::new(file, COMMAND, &serde_json::json!({ "template": template }))
}

fn runs_something(skill: &Skill) -> bool {
    skill.content.contains("!`")
}

impl TrustRequest {
    /// Returns whether it follows from another request: a file that is run, a secret that is passed along.
    #[must_use]
    pub fn is_consequence(&self) -> bool {
        use super::secrets::{SENDS, UNCONFINED};
        self.what == super::named_files::IS_RUN
            || self.what.starts_with(SENDS)
            || self.what.starts_with(UNCONFINED)
    }

    /// Returns whether its description is complete, in our own words.
    #[must_use]
    pub fn is_said_in_words(&self) -> bool {
        self.is_consequence() && self.what != super::named_files::IS_RUN
    }
}

impl Loaded {
    /// Returns project files that are run for entries with these names ([`TrustRequest::what`]; `/formatter/x` is part of `/formatter`)
    /// and changed since the settings were read. Reads the disk.
    #[must_use]
    pub fn changed_files(&self, what: &[String]) -> Vec<TrustRequest> {
        let is_part = |ask: &TrustRequest, name: &String| {
            *name == ask.what || name.starts_with(&format!("{}/", ask.what))
        };
        let asks: Vec<TrustRequest> = self
            .asks
            .iter()
            .filter(|ask| what.iter().any(|name| is_part(ask, name)))
            .cloned()
            .collect();
        let now = crate::project::executed::trusted_for(&asks, &self.options, false);
        crate::project::unknown(&now, &self.asks)
            .into_iter()
            .cloned()
            .collect()
    }

    /// Returns the project files that an entry of the user's settings runs, with digests of their content, as text.
    #[must_use]
    pub fn files_run_by(&self, entry: &serde_json::Value) -> Vec<String> {
        crate::project::named_files::of_entry(entry, &self.options)
    }

    /// Returns project files that need trust and are read besides the settings: servers, command hooks, commands and skills that
    /// run something.
    pub fn files_beside(&self) -> impl Iterator<Item = &Path> {
        let is_one = |what: &str| {
            what == COMMAND
                || ["/mcpServers/", "/hooks/"]
                    .iter()
                    .any(|it| what.starts_with(it))
        };
        self.asks
            .iter()
            .filter(move |ask| is_one(&ask.what))
            .map(|ask| Path::new(&ask.file))
    }

    /// Returns whether the user accepted this, in its current state.
    fn lets(&self, ask: &TrustRequest) -> bool {
        self.is_trusted && self.asks.iter().any(|it| it.is(ask))
    }

    /// Returns whether a plugin in a folder below one of [`PluginRoots::workspace`](crate::PluginRoots) may run: the user must
    /// have accepted one of the project's.
    #[must_use]
    pub fn lets_plugin(&self, root: &Path, folder: &Path) -> bool {
        let roots = workspace_roots(&self.options);
        let mut roots = roots.iter().filter(|it| it.path == root);
        roots.all(|it| !it.takes_trust) || self.lets(&of_plugin(root, folder))
    }

    /// Returns keys ([`PluginSpec::key`](crate::PluginSpec)) of the project's plugins and tool files that are found by their path
    /// and need trust.
    pub fn asked_plugins(&self) -> impl Iterator<Item = &str> {
        self.asks
            .iter()
            .filter(|ask| ask.what == PLUGIN || ask.what == "tool")
            .filter_map(|ask| ask.value.as_str())
    }

    /// Returns whether the user accepted a server of the project, with the rest of the folder and in its current state.
    #[must_use]
    pub fn lets_server(&self, server: &ClaudeServer) -> bool {
        self.lets(&of_server(server))
    }

    /// Like [`Self::lets_server`], for the command hooks of a project file.
    #[must_use]
    pub fn lets_hooks(&self, file: &HookFile) -> bool {
        let asks = of_hooks(file);
        is_projects_hooks(file) && !asks.is_empty() && asks.iter().all(|ask| self.lets(ask))
    }

    /// Like [`Self::lets_server`], for a project command that runs something.
    pub(crate) fn lets_command(&self, file: &Path, template: &str) -> bool {
        self.lets(&of_template(file, template))
    }

    /// Returns whether the lines of a skill's text may run: the user must have accepted one of a project.
    #[must_use]
    pub fn lets_skill_run(&self, skill: &Skill) -> bool {
        let ask = of_template(&skill.location, &skill.content);
        !self.is_of_project(skill) || !runs_something(skill) || self.lets(&ask)
    }

    /// Returns whether a skill is the project's, and not the user's own if the home folder is the project.
    #[must_use]
    pub fn is_of_project(&self, skill: &Skill) -> bool {
        let own = [".claude", ".agents", ".opencode"].map(|name| self.options.home.join(name));
        let mut own = own.iter().chain([&self.options.xdg_config]);
        skill.location.starts_with(self.options.project_folder())
            && !own.any(|dir| skill.location.starts_with(dir))
    }

    /// Returns whether the project's command hooks run, as long as they are as the user accepted them.
    #[must_use]
    pub fn projects_hooks_count(&self) -> bool {
        let by_variable = self.options.project == crate::ProjectConfig::All;
        self.is_trusted && by_variable || self.is_trusted_by_person()
    }

    /// Returns whether the user accepted the folder in its current state: not the environment, and not a client that did not ask.
    #[must_use]
    pub fn is_trusted_by_person(&self) -> bool {
        self.is_trusted && matches!(self.options.project, crate::ProjectConfig::Trusted(Some(_)))
    }
}
