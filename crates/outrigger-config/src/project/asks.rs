//! What of a project's files takes trust and is no part of `opencode.json` (issue 18): servers of `.mcp.json` and of skills,
//! command hooks, commands and skills that run something, plugins in folders with a manifest. All of it counts where a person let it count as it is.

use std::path::Path;

use serde_json::Value;

use crate::claude::hooks::{self, HookFile, HookScope};
use crate::claude::skills::{self, Skill, SkillSearch};
use crate::claude::{self, ClaudeServer};
use crate::load::discovery::workspace_roots;
use crate::load::layers;
use crate::load::links::Links;
use crate::load::plugin_folders::plugin_folders;
use crate::project::Asked;
use crate::{LoadOptions, Loaded, Settings, paths};

/// What a file asks for that is a command or a skill ([`Asked::what`]).
const COMMAND: &str = "command";
/// The same of a plugin that is found by its place.
const PLUGIN: &str = "plugin";

/// What needs approval, in the order in which it is found. `asks` is what the settings need already.
pub(crate) fn of(options: &LoadOptions, settings: &Settings, asks: &[Asked]) -> Vec<Asked> {
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

/// Folders of the project in which skills are looked for.
fn search(options: &LoadOptions, asks: &[Asked]) -> SkillSearch {
    let dirs = layers::project_dirs(options);
    let dirs: Vec<_> = dirs.into_iter().filter(|it| *it != options.home).collect();
    let below = |name: &str| dirs.iter().map(|it| it.join(name)).collect::<Vec<_>>();
    let named = asks.iter().filter(|it| it.what == "/skills");
    let named = named.filter_map(|it| it.value.get("paths")?.as_array());
    let named = named.flatten().filter_map(Value::as_str);
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

fn of_server(server: &ClaudeServer) -> Asked {
    Asked::new(
        &server.file,
        format!("/mcpServers/{}", server.name),
        &server.written,
    )
}

fn of_hooks(file: &HookFile) -> Vec<Asked> {
    let events = file.written.as_object().into_iter().flatten();
    let events =
        events.map(|(event, hooks)| Asked::new(&file.file, format!("/hooks/{event}"), hooks));
    events.collect()
}

fn of_plugin(root: &Path, folder: &Path) -> Asked {
    Asked::new(root, PLUGIN, &Value::String(paths::file_url(folder)))
}

fn of_template(file: &Path, template: &str) -> Asked {
    Asked::new(file, COMMAND, &serde_json::json!({ "template": template }))
}

fn runs_something(skill: &Skill) -> bool {
    skill.content.contains("!`")
}

impl Asked {
    /// Whether it is what comes of another one that is asked for: a file that is run, a secret that goes along.
    #[must_use]
    pub fn is_consequence(&self) -> bool {
        use super::secrets::{SENDS, UNCONFINED};
        self.what == super::named_files::IS_RUN
            || self.what.starts_with(SENDS)
            || self.what.starts_with(UNCONFINED)
    }

    /// Whether what is shown of it says all, in words of ours.
    #[must_use]
    pub fn is_said_in_words(&self) -> bool {
        self.is_consequence() && self.what != super::named_files::IS_RUN
    }
}

impl Loaded {
    /// Files of the project that are run for what stands under these names ([`Asked::what`]; `/formatter/x` is part of
    /// `/formatter`), and are not as they were when the settings were read. Reads the disk.
    #[must_use]
    pub fn changed_files(&self, what: &[String]) -> Vec<Asked> {
        let is_part = |ask: &Asked, name: &String| {
            *name == ask.what || name.starts_with(&format!("{}/", ask.what))
        };
        let asks = self.asks.iter();
        let asks = asks.filter(|ask| what.iter().any(|name| is_part(ask, name)));
        let asks: Vec<Asked> = asks.cloned().collect();
        let now = crate::project::named_files::of(&asks, &self.options, false);
        let changed = crate::project::unknown(&now, &self.asks).into_iter();
        changed.cloned().collect()
    }

    /// The files of the project that an entry of the user's settings names as what is run, with digests of what they hold, as text.
    #[must_use]
    pub fn files_run_by(&self, entry: &serde_json::Value) -> Vec<String> {
        crate::project::named_files::of_entry(entry, &self.options)
    }

    /// Files of the project that take trust and are read beside the settings: servers, command hooks, commands and skills that run
    /// something.
    pub fn files_beside(&self) -> impl Iterator<Item = &Path> {
        let is_one = |what: &str| {
            what == COMMAND
                || ["/mcpServers/", "/hooks/"]
                    .iter()
                    .any(|it| what.starts_with(it))
        };
        let asks = self.asks.iter().filter(move |ask| is_one(&ask.what));
        asks.map(|ask| Path::new(&ask.file))
    }

    /// Whether a person let this count, as it is.
    fn lets(&self, ask: &Asked) -> bool {
        self.is_trusted && self.asks.iter().any(|it| it.is(ask))
    }

    /// Whether a plugin in a folder below one of [`PluginRoots::workspace`](crate::PluginRoots) may run: one of the project's
    /// must be let count.
    #[must_use]
    pub fn lets_plugin(&self, root: &Path, folder: &Path) -> bool {
        let roots = workspace_roots(&self.options);
        let mut roots = roots.iter().filter(|it| it.path == root);
        roots.all(|it| !it.takes_trust) || self.lets(&of_plugin(root, folder))
    }

    /// Keys ([`PluginSpec::key`](crate::PluginSpec)) of the project's plugins and tool files that are found by their place and take trust.
    pub fn asked_plugins(&self) -> impl Iterator<Item = &str> {
        let by_place = self.asks.iter();
        let by_place = by_place.filter(|ask| ask.what == PLUGIN || ask.what == "tool");
        by_place.filter_map(|ask| ask.value.as_str())
    }

    /// Whether a person let a server of the project's count, with the rest of the folder and as it is.
    #[must_use]
    pub fn lets_server(&self, server: &ClaudeServer) -> bool {
        self.lets(&of_server(server))
    }

    /// The same of the command hooks of a file of the project's.
    #[must_use]
    pub fn lets_hooks(&self, file: &HookFile) -> bool {
        let asks = of_hooks(file);
        is_projects_hooks(file) && !asks.is_empty() && asks.iter().all(|ask| self.lets(ask))
    }

    /// The same of a command of the project's that runs something.
    pub(crate) fn lets_command(&self, file: &Path, template: &str) -> bool {
        self.lets(&of_template(file, template))
    }

    /// Whether what the text of a skill names may be run: one of a project's must be let count.
    #[must_use]
    pub fn lets_skill_run(&self, skill: &Skill) -> bool {
        let ask = of_template(&skill.location, &skill.content);
        !self.is_of_project(skill) || !runs_something(skill) || self.lets(&ask)
    }

    /// Whether a skill is the project's, and not the user's own where the home folder is the project.
    #[must_use]
    pub fn is_of_project(&self, skill: &Skill) -> bool {
        let own = [".claude", ".agents", ".opencode"].map(|name| self.options.home.join(name));
        let mut own = own.iter().chain([&self.options.xdg_config]);
        skill.location.starts_with(self.options.project_folder())
            && !own.any(|dir| skill.location.starts_with(dir))
    }

    /// Command hooks of the project run, as long as they are as the user let them count.
    #[must_use]
    pub fn projects_hooks_count(&self) -> bool {
        let by_variable = self.options.project == crate::ProjectConfig::All;
        self.is_trusted && by_variable || self.is_trusted_by_person()
    }

    /// A person let the folder count, as it is: not the environment, and not a client that did not ask.
    #[must_use]
    pub fn is_trusted_by_person(&self) -> bool {
        self.is_trusted && matches!(self.options.project, crate::ProjectConfig::Trusted(Some(_)))
    }
}
