//! What can be set about plugins, with the defaults.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_config::settings::{ChatMessage, Isolation, Js, JsRuntime as Wanted, Sandbox, Trust};
use outrigger_config::{PluginScope, PluginSpec, PolicyFile, Settings, package_name};
use outrigger_js::{JsError, JsRuntime, Lookup, OutputLog, RuntimeKind};
use outrigger_kernel::breaker::Rules;
use outrigger_kernel::hooks::Deadline;
use outrigger_sandbox::paths::resolve;
use tracing::Level;

use crate::access::rights::Access;
use crate::error::PluginError;

/// How plugins are run.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginSettings {
    /// Which JavaScript runtime, and where it is.
    pub js: Js,
    /// Plugin processes run in a sandbox (`sandbox = "off"` switches it off).
    pub sandbox: bool,
    /// A process whose sandbox the system cannot enforce in full is not started (`sandbox = "strict"`).
    pub strict: bool,
    /// Names of environment variables that plugin processes get besides the usual ones; a trailing `*` stands for any
    /// rest.
    pub env: Vec<String>,
    /// Deadlines by class.
    pub deadlines: Deadlines,
    /// How often a process may be started again.
    pub restarts: Restarts,
    /// How often a process is asked whether it answers; never when `None` (C7).
    pub health: Option<Duration>,
    /// What a process may use with everything it starts.
    pub limits: ProcessLimits,
    /// Handlers are called one after another, those that only observe too (A12, flag `plugin_seq_hooks`). Off: observers are
    /// called at the same time; handlers that can change something never are.
    pub seq_hooks: bool,
    /// A process whose handler missed its deadline is ended and started again (A7, flag `plugin_timeout_self_heal`).
    pub self_heal: bool,
    /// When a hook that keeps timing out is left out (A8).
    pub breaker: Rules,
    /// Breakers are in use (flag `plugin_circuit_breaker`).
    pub circuit_breaker: bool,
    /// Payloads over `inline_bytes` go by file (A10, flag `plugin_large_payload_file_ipc`).
    pub file_ipc: bool,
    /// Largest payload that is sent inline where files are in use, in bytes.
    pub inline_bytes: usize,
    /// Plugin processes keep the messages of sessions, and calls carry what changed (A14, flag `plugin_message_mirror`).
    pub mirror: bool,
    /// How what plugins print is logged (A9).
    pub output: OutputLog,
    /// Which plugins are trusted, and what is done about those that are not (issue 5).
    pub trust: Trust,
    /// The policies of the machine, which no manifest may ask beyond.
    pub policies: Vec<PolicyFile>,
    /// Hosts and addresses that every plugin may connect to, besides public ones (`network.allow`).
    pub network_allow: Vec<String>,
    /// Hosts that no plugin may connect to (`forbid.hosts` of the policy).
    pub network_forbid: Vec<String>,
    /// Names of guards, of which a project changes nothing.
    pub guards: BTreeSet<String>,
    /// The rules without the project's, where it has some.
    pub without_project: BTreeMap<String, Option<PluginRules>>,
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

/// Limits of one plugin process with everything it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Maximum resident bytes.
    pub memory: u64,
    /// Maximum number of processes.
    pub processes: usize,
    /// Highest number of open files of each process (`RLIMIT_NOFILE`).
    pub files: u64,
    /// Hundredths of one core that count as busy.
    pub busy_percent: u32,
    /// So long busy with no call open: it is put behind others, and named.
    pub busy_slow: Duration,
    /// So long: it is stopped.
    pub busy_stop: Duration,
}

impl Default for ProcessLimits {
    fn default() -> Self {
        Self {
            memory: 2 << 30,
            processes: 128,
            files: 4096,
            busy_percent: 90,
            busy_slow: Duration::from_secs(10),
            busy_stop: Duration::from_secs(30),
        }
    }
}

/// Rules for one plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginRules {
    /// Not loaded at all.
    pub disabled: bool,
    /// The project's own file says so, which counts for what the project brings.
    pub disabled_in_project: bool,
    /// Whether it may share a process.
    pub isolation: Isolation,
    /// Higher comes first (A6, C4).
    pub priority: i32,
    /// Its security-critical hooks, in either spelling: where one throws, is late or cannot be called, what it guards is
    /// refused (C5). Such a plugin has a process of its own.
    pub fail_closed: Vec<String>,
    /// Hooks that the policy of the machine requires of it (in `fail_closed`, too).
    pub required: Vec<String>,
    /// `chat.message` is called for completed assistant messages instead of user messages (A4, `chat_message`).
    pub completed_messages: bool,
    /// Deadline of its hooks, whatever their class.
    pub hook_deadline: Option<Duration>,
    /// Environment variables that it gets although they look like secrets; they give it a process of its own.
    pub env: Vec<String>,
    /// TCP ports that it may listen on; they give it a process of its own.
    pub ports: Vec<u16>,
    /// It may make UNIX sockets. Such a plugin has a process of its own.
    pub unix_sockets: bool,
    /// It may approve what the user would be asked about. Such a plugin has a process of its own.
    pub approve: bool,
    /// Its changes of a tool call's arguments count without a question.
    pub rewrite: bool,
    /// Where it speaks for a model, that one's tool calls run by the user's rules without a question for each.
    pub model: bool,
    /// The tool calls of turns that it starts run by the user's rules without a question for each.
    pub prompt: bool,
    /// Files and folders outside of the project that it may read; they give it a process of its own.
    pub read: Vec<PathBuf>,
    /// Files and folders outside of the project that it may read and change; as above.
    pub write: Vec<PathBuf>,
    /// Programs that it may run, by name or path; `None`: all. Such a plugin has a process of its own.
    pub processes: Option<Vec<String>>,
    /// Hosts that it may connect to; `None`: every public one. Such a plugin has a process of its own.
    pub hosts: Option<Vec<String>>,
    /// It goes merely by the name for which [`PluginRules::hosts`] are: of these, addresses do not count.
    pub hosts_withheld: bool,
    /// No hook of it runs longer, as its manifest says.
    pub max_timeout: Option<Duration>,
    /// What it may reach, where it has a manifest. Such a plugin has a process of its own.
    pub access: Option<Access>,
}

impl PluginRules {
    /// Whether it is switched off, by somebody who may.
    #[must_use]
    pub fn is_off(&self, declared: &PluginSpec) -> bool {
        self.disabled || self.disabled_in_project && declared.scope == PluginScope::Local
    }
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
        Self {
            most: 3,
            within: Duration::from_secs(60),
        }
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
    /// The rules for a plugin, by its id, else by its package, else by its spec.
    #[must_use]
    pub fn rules(&self, id: &str, spec: &str, scope: PluginScope) -> PluginRules {
        let package = package_name(spec);
        let names = [id, package.as_str(), spec];
        self.rules_of(&names, scope).unwrap_or_default()
    }

    /// The rules that stand under the first of several names of a plugin that has some. Whichever of them says that it is a
    /// guard, it is one, and what a project says about it by another does not count; nor does it about a plugin that the project does
    /// not bring. What a project adds to the hooks whose failure refuses counts for each.
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

    /// What is reported where a project has settings for a guard under another of its names, or for a plugin that is not the project's.
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

    /// The runtime that the settings ask for, else the one that is found.
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
                    // Node was the last that was looked for, so there is no Bun.
                    RuntimeKind::Node => {
                        let searched = ["settings", "OUTRIGGER_BUN", "bun on PATH", "data folder"];
                        let searched = searched.map(str::to_owned).to_vec();
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

impl From<&outrigger_config::settings::Plugin> for PluginRules {
    fn from(plugin: &outrigger_config::settings::Plugin) -> Self {
        Self {
            disabled: plugin.disabled || plugin.enabled == Some(false),
            disabled_in_project: plugin.disabled_in_project,
            isolation: plugin.isolation,
            priority: plugin.priority,
            fail_closed: plugin.fail_closed.clone(),
            required: plugin.required.clone(),
            completed_messages: plugin.chat_message == ChatMessage::Assistant,
            hook_deadline: plugin.timeout_ms.map(Duration::from_millis),
            env: plugin.env.clone(),
            ports: plugin.ports.clone(),
            unix_sockets: plugin.unix_sockets,
            approve: plugin.approve,
            rewrite: plugin.rewrite,
            model: plugin.model,
            prompt: plugin.prompt,
            hosts: plugin.hosts.clone(),
            read: plugin.read.iter().filter_map(|it| place(it)).collect(),
            write: plugin.write.iter().filter_map(|it| place(it)).collect(),
            processes: plugin.processes.clone(),
            ..Self::default()
        }
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

/// An absolute path, or one in the home folder (`~/...`).
pub fn place(text: &str) -> Option<PathBuf> {
    let path = match text.strip_prefix("~/") {
        Some(rest) => PathBuf::from(std::env::var_os("HOME")?).join(rest),
        None => PathBuf::from(text),
    };
    let whole = path.is_absolute().then(|| resolve(Path::new("/"), &path));
    if whole.is_none() {
        tracing::warn!("{text} is granted to no plugin: it is no absolute path");
    }
    whole
}

/// None for 0.
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
        // `off`: nothing but the count, where it is seen least.
        Err(_) => OutputLog {
            level: Level::TRACE,
            lines_per_second: 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_outrigger_toml() {
        let mut settings = Settings {
            sandbox: Sandbox::Off,
            ..Settings::default()
        };
        settings.deadlines.normal_ms = 700;
        settings.log.plugin_stderr_level = "off".into();
        settings.flags.plugin_timeout_self_heal = false;
        settings.plugins.insert(
            "guard".into(),
            outrigger_config::settings::Plugin {
                isolation: Isolation::Own,
                priority: 9,
                timeout_ms: Some(200),
                ..Default::default()
            },
        );
        let ours = PluginSettings::from(&settings);
        assert_eq!(
            (ours.sandbox, ours.self_heal, ours.output.lines_per_second),
            (false, false, 0)
        );
        assert_eq!(
            ours.deadlines.of(Deadline::Normal),
            Duration::from_millis(700)
        );
        assert_eq!(
            PluginSettings::from(&Settings::default()),
            PluginSettings::default()
        );
        let rules = ours.rules("guard#2", "guard@^1", PluginScope::Local);
        assert_eq!(
            (rules.isolation, rules.priority, rules.hook_deadline),
            (Isolation::Own, 9, Some(Duration::from_millis(200)))
        );
        assert_eq!(
            ours.rules("other", "./guard.ts", PluginScope::Local),
            PluginRules::default()
        );
    }

    #[test]
    fn a_guard_is_one_by_whichever_name_and_a_project_changes_nothing_about_it() {
        use outrigger_config::settings::Plugin;
        let guard = Plugin {
            fail_closed: vec!["tool.execute.before".into()],
            timeout_ms: Some(900),
            ..Plugin::default()
        };
        let of_project = Plugin {
            timeout_ms: Some(1),
            priority: -9,
            ..Plugin::default()
        };
        let late = Duration::from_millis(1);
        for (guarded, changed, spec, deadline) in [
            // Package and id are two names of one plugin.
            (
                "@acme/guard",
                "guard",
                "@acme/guard@1",
                Duration::from_millis(900),
            ),
            (
                "@acme/guard@1",
                "@acme/guard",
                "@acme/guard@1",
                Duration::from_millis(900),
            ),
            // Another one is nobody's guard.
            ("@acme/guard", "guard", "other", late),
        ] {
            let mut settings = Settings::default();
            settings.plugins.insert(guarded.into(), guard.clone());
            settings.plugins.insert(changed.into(), of_project.clone());
            settings.guards.insert(guarded.into());
            settings
                .without_project
                .insert(changed.into(), Plugin::default());
            let ours = PluginSettings::from(&settings);
            let rules = ours.rules("guard", spec, PluginScope::Local);
            assert_eq!(
                rules.hook_deadline,
                Some(deadline),
                "{guarded} {changed} {spec}"
            );
            let kept = deadline != late;
            assert_eq!(
                (rules.priority == 0, !rules.fail_closed.is_empty()),
                (kept, kept)
            );
            let package = outrigger_config::package_name(spec);
            let refused = ours.refused_of_project(&["guard", &package, spec], PluginScope::Local);
            assert_eq!(refused.is_some(), kept, "{refused:?}");
        }
    }

    #[test]
    fn a_project_changes_nothing_about_a_plugin_that_it_does_not_bring() {
        let mut settings = Settings::default();
        use outrigger_config::settings::Plugin;
        let user = Plugin {
            priority: 1,
            ..Plugin::default()
        };
        let changed = Plugin {
            priority: 2,
            timeout_ms: Some(1),
            isolation: Isolation::Shared,
            chat_message: outrigger_config::settings::ChatMessage::Assistant,
            ..Plugin::default()
        };
        for name in ["mine", "./mine.ts"] {
            settings.plugins.insert(name.into(), changed.clone());
        }
        settings.without_project.insert("mine".into(), user.clone());
        settings
            .without_project
            .insert("./mine.ts".into(), Plugin::default());
        let ours = PluginSettings::from(&settings);
        for (scope, want) in [(PluginScope::Global, &user), (PluginScope::Local, &changed)] {
            let rules = ours.rules("mine", "./mine.ts", scope);
            assert_eq!(rules, PluginRules::from(want), "{scope:?}");
            let refused = ours.refused_of_project(&["mine", "./mine.ts"], scope);
            assert_eq!(
                refused.is_some(),
                scope == PluginScope::Global,
                "{refused:?}"
            );
        }
        // It may be stricter about any.
        settings
            .plugins
            .entry("mine".into())
            .or_default()
            .fail_closed = vec!["chat.params".into()];
        let rules = PluginSettings::from(&settings).rules("mine", "mine", PluginScope::Global);
        assert_eq!((rules.priority, rules.fail_closed.len()), (1, 1));
    }

    #[test]
    fn a_runtime_that_is_asked_for_is_not_replaced_by_the_other() {
        let settings = |runtime| PluginSettings {
            js: Js {
                runtime,
                ..Js::default()
            },
            ..PluginSettings::default()
        };
        let nowhere = Lookup::default();
        for (wanted, says) in [
            (Wanted::Auto, "no JavaScript runtime found"),
            (Wanted::Bun, "no JavaScript runtime found"),
            (Wanted::Node, "node named by the settings does not exist"),
        ] {
            let error = settings(wanted).runtime(&nowhere).unwrap_err();
            assert_eq!(error.code(), "plugin.no_runtime");
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
