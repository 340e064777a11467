//! What can be set about plugins, with the defaults.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use outrigger_kernel::hooks::Deadline;

/// How plugins are run.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginSettings {
    /// Path or name of the JavaScript runtime; else it is looked for.
    pub runtime: Option<PathBuf>,
    /// Plugin processes run in a box (`sandbox = "off"` switches it off).
    pub sandbox: bool,
    /// Names of environment variables that plugin processes get besides the usual ones; a trailing `*` stands for any
    /// rest.
    pub env: Vec<String>,
    /// Deadlines by class.
    pub deadlines: Deadlines,
    /// How often a process may be started again.
    pub restarts: Restarts,
    /// Most bytes of private writable memory for a process (`RLIMIT_DATA`); no limit when absent.
    pub memory: Option<u64>,
    /// Rules for single plugins, by id, by npm package name or by spec.
    pub plugins: BTreeMap<String, PluginRules>,
}

/// How long calls may take (C5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// Pure policy hooks.
    pub fast: Duration,
    /// Hooks of JS plugins.
    pub normal: Duration,
    /// Each step of a plugin's loading, and the `config` hook.
    pub load: Duration,
    /// Authentication.
    pub slow: Duration,
    /// A plugin's tool. The tool runtime has its own deadlines; this one is the last resort.
    pub tool: Duration,
}

/// How often a process may be started again (A7, A13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restarts {
    /// At most so many.
    pub most: usize,
    /// Within this time; then its plugins are off.
    pub within: Duration,
}

/// Rules for one plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginRules {
    /// Not loaded at all.
    pub disabled: bool,
    /// It has a process of its own (`isolation = "own"`).
    pub own_process: bool,
    /// Higher comes first (A6, C4).
    pub priority: i32,
    /// Security-critical: a throw or timeout refuses (C5). Such a plugin has a process of its own.
    pub fail_closed: bool,
    /// Deadline of its hooks, whatever their class.
    pub hook_deadline: Option<Duration>,
}

impl Default for PluginSettings {
    fn default() -> Self {
        Self {
            runtime: None,
            sandbox: true,
            env: Vec::new(),
            deadlines: Deadlines::default(),
            restarts: Restarts::default(),
            memory: None,
            plugins: BTreeMap::new(),
        }
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        let of = |class: Deadline| Duration::from_millis(class.default_ms());
        Self {
            fast: of(Deadline::Fast),
            normal: of(Deadline::Normal),
            load: of(Deadline::Load),
            slow: of(Deadline::Slow),
            // `task` tools of plugins run whole subagents.
            tool: Duration::from_secs(60 * 60),
        }
    }
}

impl Default for Restarts {
    fn default() -> Self {
        Self { most: 3, within: Duration::from_secs(60) }
    }
}

impl Deadlines {
    /// The deadline of a class.
    #[must_use]
    pub fn of(&self, class: Deadline) -> Duration {
        match class {
            Deadline::Fast => self.fast,
            Deadline::Normal => self.normal,
            Deadline::Load => self.load,
            Deadline::Slow => self.slow,
        }
    }
}

impl PluginSettings {
    /// The rules for a plugin, by its id or else by its spec.
    #[must_use]
    pub fn rules(&self, id: &str, spec: &str) -> PluginRules {
        self.plugins.get(id).or_else(|| self.plugins.get(spec)).cloned().unwrap_or_default()
    }
}
