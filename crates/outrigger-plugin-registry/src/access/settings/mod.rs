//! Settings for plugins, with their defaults.

mod limits;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use outrigger_config::settings::{Js, JsRuntime as Wanted, Sandbox, Trust};
use outrigger_config::{PluginScope, PolicyFile, Settings, package_name};
use outrigger_js::{JsError, JsRuntime, Lookup, OutputLog, RuntimeKind};
use outrigger_kernel::breaker::Rules;
use outrigger_protocol::diagnose::Diagnose;
use tracing::Level;

use crate::error::PluginError;

pub use limits::{Deadlines, ProcessLimits, Restarts};
pub use rules::{PluginRules, place};

/// Settings for running plugins.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginSettings {
    /// JavaScript runtime and its path.
    pub js: Js,
    /// Plugin processes run in a sandbox (`sandbox = "off"` disables it).
    pub sandbox: bool,
    /// A process whose sandbox the system cannot fully enforce is not started (`sandbox = "strict"`).
    pub strict: bool,
    /// Names of additional environment variables for plugin processes; a trailing `*` matches any rest.
    pub env: Vec<String>,
    /// Deadlines by class.
    pub deadlines: Deadlines,
    /// Limit of process restarts.
    pub restarts: Restarts,
    /// Interval of health checks; `None`: never (C7).
    pub health: Option<Duration>,
    /// Limits of a process with everything it started.
    pub limits: ProcessLimits,
    /// Handlers are called one after another, including observers (A12, flag `plugin_seq_hooks`). Off: observers are called
    /// concurrently; handlers that can change something never are.
    pub seq_hooks: bool,
    /// A process whose handler missed its deadline is ended and started again (A7, flag `plugin_timeout_self_heal`).
    pub self_heal: bool,
    /// When a hook that keeps timing out is skipped (A8).
    pub breaker: Rules,
    /// Breakers are in use (flag `plugin_circuit_breaker`).
    pub circuit_breaker: bool,
    /// Payloads over `inline_bytes` are sent as files (A10, flag `plugin_large_payload_file_ipc`).
    pub file_ipc: bool,
    /// Maximum size in bytes of an inline payload if files are in use.
    pub inline_bytes: usize,
    /// Plugin processes keep the messages of sessions, and calls carry what changed (A14, flag `plugin_message_mirror`).
    pub mirror: bool,
    /// How output of plugins is logged (A9).
    pub output: OutputLog,
    /// Which plugins are trusted, and how others are handled.
    pub trust: Trust,
    /// The policies of the machine, which limit every manifest.
    pub policies: Vec<PolicyFile>,
    /// Additional hosts and addresses that every plugin may connect to (`network.allow`).
    pub network_allow: Vec<String>,
    /// Hosts that no plugin may connect to (`forbid.hosts` of the policy).
    pub network_forbid: Vec<String>,
    /// Names of guards, which a project cannot change.
    pub guards: BTreeSet<String>,
    /// The rules without the project's, if it has some.
    pub without_project: BTreeMap<String, Option<PluginRules>>,
    /// Rules for single plugins, by id, npm package name or spec.
    pub plugins: BTreeMap<String, PluginRules>,
}

impl Default for PluginSettings {
    fn default() -> Self {
        let log = Settings::default().log;
        Self {
            js: Js::default(),
            sandbox: true,
            strict: false,
            env: Vec::new(),
            deadlines: Deadlines::default(),
            restarts: Restarts::default(),
            health: seconds(Settings::default().limits.plugin_health_seconds),
            limits: ProcessLimits::default(),
            seq_hooks: true,
            self_heal: true,
            breaker: Rules::default(),
            circuit_breaker: true,
            file_ipc: true,
            inline_bytes: 64 * 1024,
            mirror: true,
            output: output(&log.plugin_stderr_level, log.plugin_stderr_lines_per_second),
            trust: Trust::default(),
            policies: Vec::new(),
            network_allow: Vec::new(),
            network_forbid: Vec::new(),
            guards: BTreeSet::new(),
            without_project: BTreeMap::new(),
            plugins: BTreeMap::new(),
        }
    }
}

impl PluginSettings {
    /// Returns the rules for a plugin, by its id, else by its package, else by its spec.
    #[must_use]
    pub fn rules(&self, id: &str, spec: &str, scope: PluginScope) -> PluginRules {
        let package = package_name(spec);
        let names = [id, package.as_str(), spec];
        self.rules_of(&names, scope).unwrap_or_default()
    }

    /// Returns the rules under the first of a plugin's names that has some. If any of the names marks it as a guard, it is one,
    /// and a project's rules under another name are ignored, as they are for a plugin that the project does not contain. Hooks
    /// that a project adds to those whose failure refuses apply in every case.
    pub fn rules_of(&self, names: &[&str], scope: PluginScope) -> Option<PluginRules> {
        let is_guard = names.iter().any(|name| self.guards.contains(*name));
        let is_kept = is_guard || scope != PluginScope::Local;
        let of_user = |name: &&str| match self.without_project.get(*name).filter(|_| is_kept) {
            Some(without) => without.as_ref(),
            None => self.plugins.get(*name),
        };
        let rules = names.iter().find_map(of_user);
        let of_any = |name: &&str| self.plugins.get(*name);
        let mut rules = match rules {
            Some(rules) => rules.clone(),
            None => {
                let mut others = names.iter().filter_map(of_any);
                let adds = others.any(|it| !it.fail_closed.is_empty() || !it.required.is_empty());
                adds.then(PluginRules::default)?
            }
        };
        let all = names.iter().filter_map(of_user);
        for other in all.chain(names.iter().filter_map(of_any)) {
            for (list, more) in [
                (&mut rules.fail_closed, &other.fail_closed),
                (&mut rules.required, &other.required),
            ] {
                let new: Vec<String> = more
                    .iter()
                    .filter(|it| !list.contains(it))
                    .cloned()
                    .collect();
                list.extend(new);
            }
        }
        Some(rules)
    }

    /// Returns the warning if a project has settings for a guard under another of its names, or for a plugin that is not the
    /// project's.
    pub fn refused_of_project(&self, names: &[&str], scope: PluginScope) -> Option<String> {
        let other = names
            .iter()
            .find(|name| self.without_project.contains_key(**name))?;
        let guard = names.iter().find(|name| self.guards.contains(**name));
        let Some(guard) = guard else {
            return (scope != PluginScope::Local).then(|| {
                format!(
                    "[plugins.\"{other}\"] of the project is ignored: it is about what the project brings, and this plugin is yours"
                )
            });
        };
        Some(format!(
            "[plugins.\"{other}\"] of the project is ignored: that plugin is the guard {guard} of the user or of the machine, and a project changes nothing about it"
        ))
    }

    /// Returns the runtime that the settings name, else the one that is found.
    pub fn runtime(&self, base: &Lookup) -> Result<JsRuntime, PluginError> {
        let find = |lookup: Lookup| JsRuntime::find(&lookup).map_err(|error| missing(&error));
        match self.js.runtime {
            Wanted::Auto => find(Lookup {
                bun: self.js.bun.clone().or_else(|| base.bun.clone()),
                node: self.js.node.clone().or_else(|| base.node.clone()),
                ..base.clone()
            }),
            Wanted::Bun => {
                let found = find(Lookup {
                    configured: self.js.bun.clone(),
                    node: None,
                    ..base.clone()
                })?;
                match found.kind {
                    RuntimeKind::Bun => Ok(found),
                    // Node is tried last, so there is no Bun.
                    RuntimeKind::Node => {
                        let searched = ["settings", "OUTRIGGER_BUN", "bun on PATH", "data folder"]
                            .map(str::to_owned)
                            .to_vec();
                        Err(missing(&JsError::RuntimeMissing { searched }))
                    }
                }
            }
            Wanted::Node => {
                let node = self.js.node.clone().or_else(|| base.node.clone());
                find(Lookup {
                    configured: Some(node.unwrap_or_else(|| "node".into())),
                    ..base.clone()
                })
            }
        }
    }
}

fn missing(error: &JsError) -> PluginError {
    PluginError::NoRuntime {
        message: error.to_string(),
        hint: error.hint(),
    }
}

impl From<&Settings> for PluginSettings {
    fn from(settings: &Settings) -> Self {
        let ms = Duration::from_millis;
        let plugins = settings.plugins.iter();
        let without = settings.without_project.iter().map(|(name, plugin)| {
            let said = *plugin != outrigger_config::settings::Plugin::default();
            (name.clone(), said.then(|| plugin.into()))
        });
        Self {
            js: settings.js.clone(),
            sandbox: settings.sandbox != Sandbox::Off,
            strict: settings.sandbox == Sandbox::Strict,
            deadlines: Deadlines {
                fast: ms(settings.deadlines.fast_ms),
                normal: ms(settings.deadlines.normal_ms),
                load: ms(settings.deadlines.load_ms),
                slow: ms(settings.deadlines.slow_ms),
                ..Deadlines::default()
            },
            seq_hooks: settings.flags.plugin_seq_hooks,
            self_heal: settings.flags.plugin_timeout_self_heal,
            circuit_breaker: settings.flags.plugin_circuit_breaker,
            file_ipc: settings.flags.plugin_large_payload_file_ipc,
            inline_bytes: usize::try_from(settings.limits.plugin_inline_bytes)
                .unwrap_or(usize::MAX),
            mirror: settings.flags.plugin_message_mirror,
            health: seconds(settings.limits.plugin_health_seconds),
            limits: ProcessLimits {
                memory: settings.limits.plugin_memory_mb << 20,
                processes: usize::try_from(settings.limits.plugin_processes).unwrap_or(usize::MAX),
                files: settings.limits.plugin_open_files,
                ..ProcessLimits::default()
            },
            output: output(
                &settings.log.plugin_stderr_level,
                settings.log.plugin_stderr_lines_per_second,
            ),
            trust: settings.trust.clone(),
            network_allow: settings.network.allow.clone(),
            network_forbid: settings.forbid.hosts.clone(),
            plugins: plugins
                .map(|(name, plugin)| (name.clone(), plugin.into()))
                .collect(),
            guards: settings.guards.clone(),
            without_project: without.collect(),
            ..Self::default()
        }
    }
}

/// Returns `None` for 0.
fn seconds(seconds: u64) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

fn output(level: &str, lines: u64) -> OutputLog {
    let lines = u32::try_from(lines).unwrap_or(u32::MAX);
    match level.parse::<Level>() {
        Ok(level) => OutputLog {
            level,
            lines_per_second: lines,
        },
        // `off`: only the count, at the lowest level.
        Err(_) => OutputLog {
            level: Level::TRACE,
            lines_per_second: 0,
        },
    }
}
