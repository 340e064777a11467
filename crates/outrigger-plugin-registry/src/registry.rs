//! The plugins of a project: the stage and contributions of each, and the handlers at each point.

mod commands;
mod config_steps;
mod custom_points;
mod hosted;
mod life;
mod listing;
mod missing_grants;
mod plugin;
mod table;

pub use commands::COMMAND_GROUP;
pub use config_steps::ConfigStep;
pub use hosted::ProcessList;
pub use life::{Configured, Fresh};
pub use plugin::Plugin;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{
    Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};

use outrigger_config::settings::Isolation;
use outrigger_kernel::hooks::{HookPoint, Rights};
use outrigger_plugin_package::ResolvedPlugin;
use outrigger_plugin_status::{Fetched, NoticeFn, Progress, Stage};
use outrigger_plugin_trust::Verified;
use outrigger_protocol::rpc::{HandlerRef, Instance, LoadedPlugin, PluginTool, Problem};

use crate::access::critical;
use crate::access::manifest::ManifestShown;
use crate::access::settings::PluginRules;
use crate::error::PluginError;
use crate::status::PluginStatus;
use outrigger_plugin_status::ProgressFn;

/// A hook function as the pipeline needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Index of the plugin, which is its load order.
    pub plugin: usize,
    /// Its position among all: load order, with a hosted plugin right after its host.
    pub order: u32,
    /// Id of the plugin.
    pub id: String,
    /// Index of its hooks object.
    pub instance: usize,
    /// The hook's name as the plugin spells it (A5).
    pub hook: String,
    /// Key of its process.
    pub group: u64,
    /// The rules of its plugin.
    pub rules: PluginRules,
    /// Its failure refuses (C5).
    pub fail_closed: bool,
    /// Rights of its plugin there (C3).
    pub rights: Rights,
    /// Why it cannot be called. Only a security-critical hook is bound nevertheless.
    pub absent: Option<String>,
}

impl Bound {
    /// Returns whether it is a guard: its failure refuses, or it is a command hook.
    #[must_use]
    pub fn guards(&self) -> bool {
        self.fail_closed || self.group == COMMAND_GROUP
    }
}

#[derive(Default)]
struct RegistryState {
    plugins: Vec<Plugin>,
    table: HashMap<&'static str, Arc<[Bound]>>,
}

/// State of a plugin that failed under Node and would run under Bun.
enum Bun {
    /// It has failed; with the reason why there is no Bun, if known.
    None(Option<String>),
    /// It waits, since Bun may still be fetched.
    MayCome(Vec<(usize, PluginError)>),
}

/// All plugins, in load order.
pub struct Registry {
    inner: RwLock<RegistryState>,
    bun: Mutex<Bun>,
    progress: ProgressFn,
    /// The processes of plugins, to end those of hosted ones with their hosts.
    processes: OnceLock<Weak<dyn ProcessList>>,
    /// Notified of state changes.
    notice: OnceLock<NoticeFn>,
    config_steps: RwLock<Vec<Arc<ConfigStep>>>,
}

impl Registry {
    /// Creates a list of these plugins, in load order; each is reported to `progress` at once.
    pub fn new(plugins: Vec<Plugin>, progress: ProgressFn) -> Self {
        let registry = Self {
            inner: RwLock::new(RegistryState {
                plugins,
                table: HashMap::new(),
            }),
            bun: Mutex::new(Bun::None(None)),
            progress,
            processes: OnceLock::new(),
            config_steps: RwLock::default(),
            notice: OnceLock::new(),
        };
        for index in 0..registry.count() {
            registry.report(index);
        }
        registry
    }

    fn read(&self) -> RwLockReadGuard<'_, RegistryState> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, RegistryState> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of plugins. Indexes are below it.
    pub fn count(&self) -> usize {
        self.read().plugins.len()
    }

    /// Returns a property of one plugin.
    pub fn with<T>(&self, index: usize, get: impl FnOnce(&Plugin) -> T) -> Option<T> {
        self.read().plugins.get(index).map(get)
    }

    fn report(&self, index: usize) {
        let progress = self.with(index, |plugin| Progress {
            cause: plugin.cause.clone(),
            mention: plugin.mention,
            guards: plugin.guards(),
            ..Progress::at(&plugin.id, &plugin.spec, plugin.stage)
        });
        if let Some(progress) = progress {
            // The reason for its end is in the log already.
            if progress.cause.is_none() {
                tracing::info!("[plugin:{}] {}", progress.plugin, progress.stage);
            }
            (self.progress)(progress);
        }
    }

    fn change(&self, index: usize, change: impl FnOnce(&mut Plugin)) {
        let stage = {
            let mut inner = self.write();
            let Some(plugin) = inner.plugins.get_mut(index) else {
                return;
            };
            let before = plugin.stage;
            change(plugin);
            let after = plugin.stage;
            inner.bind();
            (before, after)
        };
        if stage.0 != stage.1 {
            self.report(index);
            self.tell_state(index);
        }
    }

    /// Reports the number of bytes fetched.
    pub fn fetched(&self, index: usize, bytes: u64) {
        let progress = self.with(index, |plugin| Progress {
            // Its dependencies are fetched with it, so the total is unknown.
            fetched: Some(Fetched { bytes, total: None }),
            ..Progress::at(&plugin.id, &plugin.spec, Stage::Installing)
        });
        if let Some(progress) = progress {
            (self.progress)(progress);
        }
    }

    /// Sets the stage of a plugin. A suspended plugin stays suspended, whatever happens to its process: only
    /// [`Registry::suspend`] resumes it (C7).
    pub fn stage(&self, index: usize, stage: Stage) {
        self.change(index, |plugin| plugin.come_to(stage));
    }

    /// Sets the stage of the plugin with this id.
    pub fn stage_of(&self, id: &str, stage: Stage) {
        if let Some(index) = self.index_of(id) {
            self.stage(index, stage);
        }
    }

    /// Sets its files.
    pub fn resolved(&self, index: usize, resolved: ResolvedPlugin, rules: PluginRules) {
        self.change(index, |plugin| {
            plugin.own = custom_points::declared(&resolved);
            plugin.id.clone_from(&resolved.id);
            plugin.version.clone_from(&resolved.version);
            plugin.resolved = Some(resolved);
            plugin.rules = rules;
            plugin.stage = Stage::Installed;
        });
    }

    /// Records that its files are trusted.
    pub fn verified(&self, index: usize, verified: Option<Verified>) {
        self.change(index, |plugin| plugin.verified = verified);
    }

    /// Resets it: it is not started after all.
    pub fn unresolved(&self, index: usize) {
        self.change(index, |plugin| plugin.resolved = None);
    }

    /// Sets its manifest, or the defaults that it gets.
    pub fn manifest(&self, index: usize, shown: ManifestShown) {
        self.change(index, |plugin| plugin.manifest = Some(shown));
    }

    /// Returns the modules of the plugins whose files are installed.
    pub fn resolved_files(&self) -> Vec<(usize, PathBuf)> {
        let inner = self.read();
        let plugins = inner.plugins.iter().enumerate();
        let file = |(index, plugin): (usize, &Plugin)| {
            Some((index, plugin.resolved.as_ref()?.file.clone()))
        };
        plugins.filter_map(file).collect()
    }

    fn bun(&self) -> std::sync::MutexGuard<'_, Bun> {
        self.bun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails the waiting plugins: Bun is unavailable.
    pub fn no_bun(&self, reason: String) {
        *self.bun() = Bun::None(Some(reason));
    }

    /// From now on plugins that need Bun wait instead of failing, until [`Registry::waiting`].
    pub fn may_wait_for_bun(&self) {
        *self.bun() = Bun::MayCome(Vec::new());
    }

    /// Returns the plugins that wait for Bun, with their errors. From now on none waits.
    pub fn waiting(&self) -> Vec<(usize, PluginError)> {
        let mut bun = self.bun();
        let Bun::MayCome(waiting) = &mut *bun else {
            return Vec::new();
        };
        let mut waiting = std::mem::take(waiting);
        *bun = Bun::None(None);
        waiting.sort_by_key(|(index, _)| *index);
        waiting
    }

    /// Sets its rules.
    pub fn set_rules(&self, index: usize, rules: PluginRules) {
        self.change(index, |plugin| plugin.rules = rules);
    }

    /// Assigns it to a process.
    pub fn assign(&self, index: usize, group: u64) {
        self.change(index, |plugin| plugin.group = Some(group));
    }

    /// Marks it as failed.
    pub fn fail(&self, index: usize, error: &PluginError) {
        self.end(
            index,
            if error.is_skip() {
                Stage::Skipped
            } else {
                Stage::Failed
            },
            error,
        );
    }

    /// Switches it off.
    pub fn off(&self, index: usize, error: &PluginError) {
        self.end(index, Stage::Off, error);
    }

    fn end(&self, index: usize, stage: Stage, error: &PluginError) {
        let id = self.with(index, |p| p.id.clone()).unwrap_or_default();
        if error.is_expected() {
            tracing::debug!("plugin {id}: {stage}: {error}");
        } else {
            tracing::warn!("plugin {id}: {stage}: {error}");
        }
        self.change(index, |plugin| {
            plugin.cause = Some(error.cause(plugin.stage));
            plugin.mention = error.is_worth_a_line(plugin.local);
            plugin.stage = stage;
            plugin.instances = Vec::new();
        });
        self.end_process(index);
        self.end_hosted(index, &id);
    }

    /// Takes its answer; returns `true` if it has something to call.
    pub fn adopt(&self, index: usize, loaded: LoadedPlugin) -> bool {
        let Some(id) = self.with(index, |plugin| plugin.id.clone()) else {
            return false;
        };
        if self.ends_with_host(index) {
            return false;
        }
        let problems = &loaded.problems;
        let decisive = problems.iter().find(|problem| problem.needs_bun);
        if let (true, Some(problem)) = (
            loaded.instances.is_empty(),
            decisive.or_else(|| problems.first()),
        ) {
            let error = PluginError::Load {
                plugin: id,
                stage: problem.stage.clone(),
                message: problem.message.clone(),
            };
            self.not_loaded(index, error, problem.needs_bun);
            return false;
        }
        let (notes, warnings): (Vec<Problem>, Vec<Problem>) = loaded
            .problems
            .into_iter()
            .partition(|problem| problem.stage == "note");
        let notes = notes.into_iter().map(|note| note.message).collect();
        let mut warnings: Vec<String> = warnings.into_iter().map(listing::warning).collect();
        if loaded.instances.is_empty() {
            warnings.push("it has no hooks and no tools".to_owned());
        }
        let mut instances = loaded.instances;
        let access = self.with(index, |plugin| plugin.rules.access.clone());
        match access.flatten() {
            Some(access) => warnings.extend(access.cut(&mut instances)),
            None => warnings.extend(custom_points::without_manifest(&mut instances)),
        }
        let declared = self.read().declared();
        self.change(index, |plugin| {
            let hooks = instances.iter().flat_map(|i| i.hooks.iter());
            for problem in critical::problems(&plugin.rules, hooks, &declared) {
                tracing::warn!("plugin {id}: {problem}");
                warnings.push(problem);
            }
            plugin.warnings = warnings;
            plugin.notes = notes;
            plugin.instances = instances;
            plugin.load_ms = loaded.ms;
            plugin.come_to(Stage::Initialised);
        });
        self.stage(index, Stage::Active);
        // Its host, in another process, may have ended since.
        !self.ends_with_host(index)
    }

    fn not_loaded(&self, index: usize, error: PluginError, needs_bun: bool) {
        let error = match &mut *self.bun() {
            Bun::MayCome(waiting) if needs_bun => {
                waiting.push((index, error));
                return;
            }
            Bun::None(Some(reason)) if needs_bun => error.because(reason),
            _ => error,
        };
        self.fail(index, &error);
    }

    /// Returns the handlers at a point, in calling order; `None` if there are none.
    pub fn bound(&self, point: HookPoint) -> Option<Arc<[Bound]>> {
        self.read().table.get(point.name()).cloned()
    }

    /// Adds a warning about something that did not stop the plugin.
    pub fn warn(&self, index: usize, warning: String) {
        if let Some(id) = self.with(index, |plugin| plugin.id.clone()) {
            tracing::warn!("plugin {id}: {warning}");
        }
        self.change(index, |plugin| plugin.warnings.push(warning));
    }

    /// Adds several warnings.
    pub fn warn_all(&self, warnings: Vec<(usize, String)>) {
        for (index, warning) in warnings {
            self.warn(index, warning);
        }
    }

    /// Returns the processes that have a handler at a point.
    pub fn groups_at(&self, point: HookPoint) -> Vec<u64> {
        let mut groups: Vec<u64> = self
            .bound(point)
            .iter()
            .flat_map(|b| b.iter().map(|bound| bound.group))
            .collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// Returns the tools of all plugins in load order; later ones of the same name come later.
    pub fn tools(&self) -> Vec<(usize, String, PluginTool)> {
        let inner = self.read();
        inner
            .plugins
            .iter()
            .enumerate()
            .filter(|(_, plugin)| plugin.stage != Stage::Suspended)
            .flat_map(|(index, plugin)| {
                plugin
                    .instances
                    .iter()
                    .flat_map(|instance| instance.tools.iter())
                    .map(move |tool| (index, plugin.id.clone(), tool.clone()))
            })
            .collect()
    }

    /// Returns a property of the instances of active plugins, in load order.
    pub fn instances<T>(&self, get: impl Fn(&Instance) -> Option<T>) -> Vec<(usize, String, T)> {
        let inner = self.read();
        let mut out = Vec::new();
        let plugins = inner.plugins.iter().enumerate();
        for (index, plugin) in plugins.filter(|(_, plugin)| plugin.stage != Stage::Suspended) {
            let contributed = plugin.instances.iter().filter_map(&get);
            out.extend(contributed.map(|it| (index, plugin.id.clone(), it)));
        }
        out
    }

    /// Returns whether a plugin provides authentication.
    pub fn brings_auth(&self, index: usize) -> bool {
        self.with(index, |plugin| {
            plugin.instances.iter().any(|i| i.auth.is_some())
        }) == Some(true)
    }

    /// Marks a plugin for its own process.
    pub fn set_apart(&self, index: usize) {
        self.change(index, |plugin| plugin.rules.isolation = Isolation::Own);
    }

    /// Moves a plugin to its own process, since it hung or crashed the shared one.
    pub fn quarantine(&self, index: usize, group: u64, cause: &str) {
        self.change(index, |plugin| {
            plugin.group = Some(group);
            plugin.quarantine = Some(cause.to_owned());
        });
    }

    /// Returns the index of the plugin with this id.
    pub fn index_of(&self, id: &str) -> Option<usize> {
        let inner = self.read();
        // A failed entry may have the same name.
        let mut plugins = inner.plugins.iter();
        let placed = plugins.position(|plugin| plugin.id == id && plugin.group.is_some());
        placed.or_else(|| inner.plugins.iter().position(|plugin| plugin.id == id))
    }

    /// Returns the last matching instance of a plugin.
    pub fn handler(&self, index: usize, is: impl Fn(&Instance) -> bool) -> Option<HandlerRef> {
        self.with(index, |plugin| {
            Some(HandlerRef {
                plugin: plugin.id.clone(),
                instance: plugin.instances.iter().rposition(is)?,
            })
        })?
    }

    /// Returns the handler that runs a plugin's tool. The last of its instances that has the tool wins.
    pub fn tool(&self, index: usize, name: &str) -> Option<HandlerRef> {
        self.with(index, |plugin| {
            let instance = plugin
                .instances
                .iter()
                .rposition(|i| i.tools.iter().any(|tool| tool.name == name))?;
            Some(HandlerRef {
                plugin: plugin.id.clone(),
                instance,
            })
        })?
    }

    /// Returns the list, without data that only the processes have.
    pub fn list(&self) -> Vec<(Option<u64>, PluginStatus)> {
        self.read()
            .plugins
            .iter()
            .map(|plugin| (plugin.group, plugin.status()))
            .collect()
    }
}

#[cfg(test)]
mod tests;
