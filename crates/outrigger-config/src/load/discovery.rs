//! Roots of plugins with a manifest, and the user's switches of single plugins (D1, D3).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::load::layers;
use crate::load::loaded::Loaded;
use crate::opencode::plugin_list;
use crate::settings::keys::dotted;
use crate::{LoadOptions, Origin, PluginScope, PluginSpec, package_name, paths};

/// The variable that names additional roots, separated like the folders in `PATH`.
pub const PLUGIN_PATH: &str = "OUTRIGGER_PLUGIN_PATH";

/// Roots of plugins with a manifest, by source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginRoots {
    /// `discovery.paths`.
    pub config: Vec<PathBuf>,
    /// Absolute ones of [`PLUGIN_PATH`].
    pub env: Vec<PathBuf>,
    /// `.outrigger/plugins` of the working folder and of the root of the working tree, and relative folders of
    /// [`PLUGIN_PATH`]: whose these are depends on where one works.
    pub workspace: Vec<PathBuf>,
    /// `plugins` in Outrigger's folder of the user's configuration.
    pub user: Vec<PathBuf>,
}

/// A switch of a single plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switched {
    /// Whether it is on.
    pub on: bool,
    /// The setting, and its file.
    pub by: String,
}

/// A root among [`PluginRoots::workspace`].
pub(crate) struct WorkspaceRoot {
    /// The folder.
    pub(crate) path: PathBuf,
    /// It is the project's, and not the user's own (if the user works in the home folder).
    pub(crate) takes_trust: bool,
}

/// Returns the folders that [`PLUGIN_PATH`] names, and whether each is relative.
fn named_roots(options: &LoadOptions) -> impl Iterator<Item = (PathBuf, bool)> {
    options
        .env
        .get(PLUGIN_PATH)
        .map(String::as_str)
        .unwrap_or_default()
        .split(':')
        .filter(|it| !it.is_empty())
        .map(|path| {
            let is_relative = !path.starts_with(['/', '~']);
            let root = paths::expand(path, &options.directory, &options.home);
            (root, is_relative)
        })
}

pub(crate) fn workspace_roots(options: &LoadOptions) -> Vec<WorkspaceRoot> {
    if layers::switch(options, "OPENCODE_DISABLE_PROJECT_CONFIG") {
        return Vec::new();
    }
    let root = |path: PathBuf, base: &Path| WorkspaceRoot {
        path,
        takes_trust: layers::is_project_folder(options, Some(base)),
    };
    let mut bases = vec![&options.directory];
    if options.worktree.parent().is_some() && options.worktree != options.directory {
        bases.push(&options.worktree);
    }
    let beside = bases
        .into_iter()
        .map(|base| root(base.join(".outrigger/plugins"), base));
    let named = named_roots(options)
        .filter(|(_, is_relative)| *is_relative)
        .map(|(path, _)| root(path, &options.directory));
    beside.chain(named).collect()
}

impl Loaded {
    /// Returns the roots of plugins with a manifest. Those of the project are excluded with `OPENCODE_DISABLE_PROJECT_CONFIG`.
    #[must_use]
    pub fn plugin_roots(&self) -> PluginRoots {
        let options = &self.options;
        let workspace = workspace_roots(options).into_iter();
        PluginRoots {
            config: self.settings.discovery.paths.clone(),
            env: named_roots(options)
                .filter(|(_, is_relative)| !is_relative)
                .map(|(root, _)| root)
                .collect(),
            workspace: workspace.map(|it| it.path).collect(),
            user: vec![options.xdg_config.join("outrigger/plugins")],
        }
    }

    /// Returns why no found plugin is loaded in this run, if so; `key` identifies the plugin ([`PluginSpec::key`]).
    #[must_use]
    pub fn left_out(&self, key: &str) -> Option<&'static str> {
        if self.options.pure || layers::switch(&self.options, "OPENCODE_PURE") {
            return Some("--pure");
        }
        let list = self.options.env.get(plugin_list::LEFT_OUT)?;
        let keys: Vec<String> = serde_json::from_str(list).unwrap_or_default();
        keys.iter()
            .any(|it| it == key)
            .then_some("`outrigger plugin bisect`")
    }

    /// Returns the switch of a plugin by the path of its file or folder, or by its entry.
    #[must_use]
    pub fn switch_by_place(&self, plugin: &PluginSpec) -> Option<Switched> {
        let path = paths::from_file_url(&plugin.spec).map(|path| path.display().to_string());
        let mut names = path.into_iter().chain([plugin.spec.clone()]);
        names.find_map(|name| self.switch(&name, Some(plugin)))
    }

    /// Returns the switch of a plugin by its id or its package.
    #[must_use]
    pub fn switch_by_name(&self, id: &str, plugin: Option<&PluginSpec>) -> Option<Switched> {
        let package = plugin.map(|plugin| package_name(&plugin.spec));
        let mut names = [id.to_owned()].into_iter().chain(package);
        names.find_map(|name| self.switch(&name, plugin))
    }

    /// Returns the switch under one name. A project's switch applies only to its own plugins.
    fn switch(&self, name: &str, plugin: Option<&PluginSpec>) -> Option<Switched> {
        let rules = self.settings.plugins.get(name)?;
        let local = plugin.is_some_and(|plugin| plugin.scope == PluginScope::Local);
        let (on, key) = match (rules.disabled, rules.enabled) {
            (true, _) => (false, "disabled"),
            (false, _) if local && rules.disabled_in_project => (false, "disabled_in_project"),
            (false, Some(on)) => (on, "enabled"),
            (false, None) => return None,
        };
        let setting = dotted(&dotted("plugins", name), key);
        let origin = self.settings_origins.get(&setting);
        let setting = setting.replace("disabled_in_project", "disabled");
        let by = match origin.filter(|origin| **origin != Origin::Default) {
            Some(origin) => format!("`{setting}` ({origin})"),
            None => format!("`{setting}`"),
        };
        Some(Switched { on, by })
    }

    /// Returns the ids that the user has rules for: a project's plugin takes none of them. Grants by name are not such rules:
    /// they are bound to a package or a path anyway.
    #[must_use]
    pub fn ruled_ids(&self) -> BTreeSet<String> {
        let plugins = self.settings.plugins.iter();
        plugins
            .filter(|(_, it)| it.disabled || it.enabled.is_some() || !it.fail_closed.is_empty())
            .map(|(id, _)| id)
            .chain(&self.settings.discovery.allow)
            .cloned()
            .collect()
    }

    /// Returns the folder whose plugins are a project's own: the root of the working tree, or outside version control the
    /// folder itself.
    #[must_use]
    pub fn project_folder(&self) -> PathBuf {
        self.options.project_folder().to_owned()
    }
}
