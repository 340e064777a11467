//! The plugins of one project, from the configuration to their end.

mod modules;
mod skipped;
mod start;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use outrigger_claude_hooks::{CommandBreakers, CommandHooks, Commands};
use outrigger_config::{PluginSpec, SkipReason, SkippedPlugin};
use outrigger_js::{HostHandler, Lookup};
use outrigger_kernel::breaker::Rules;
use outrigger_kernel::hooks::points::runtime::configure;
use outrigger_kernel::hooks::{HookInput, HookPoint};
use outrigger_plugin_package::name_of;
use outrigger_plugin_status::{NoticeFn, Stage};
use outrigger_plugin_trust::TrustFn;
use outrigger_protocol::Millis;
use outrigger_protocol::event::BusEvent;
use outrigger_protocol::hook::HookRecord;
use outrigger_protocol::id::PluginId;
use outrigger_protocol::tool::ToolSpec;
use outrigger_sandbox::Spawner;
use serde_json::Value;
use skipped::{guards, required, why_skipped};

use crate::admit::rules_of;
use crate::breakers::Breakers;
use crate::choose::ConsentFn;
use crate::command_hooks;
use crate::custom_points::Links;
use crate::error::PluginError;
use crate::granted::Grant;
use crate::group::{Group, Live};
use crate::launch::{CoversFn, Launch};
use crate::perf::{Perf, PerfRow};
use crate::pipeline::{Pipeline, PipelineContext};
use crate::processes::Processes;
use crate::registry::{Plugin, ProgressFn, Registry};
use crate::settings::PluginSettings;
use crate::status::PluginStatus;
use crate::tools::{PluginToolEntry, ToolRunner};
pub(crate) use start::late_launch;
use start::{Started, start, under_bun};

/// `serverUrl` of the plugin input when no TCP server runs: the host script answers this origin over the channel.
pub const SERVER_URL: &str = "http://outrigger.localhost/";

/// Whether a plugin of the list should run as everything is now, or why not.
pub type AdmitFn = Arc<dyn Fn(&PluginSpec) -> Result<(), PluginError> + Send + Sync>;

/// What plugins are loaded from and with.
pub struct LoadOptions {
    /// The plugins in load order, from the configuration; tool files before them, since their tools come first (facts 3.3).
    pub plugins: Vec<PluginSpec>,
    /// Entries that are not loaded; they are listed with their reason, behind the others.
    pub skipped: Vec<SkippedPlugin>,
    /// Asked before a plugin is loaded again: whether the layers of the snapshot (D3) still have it. It may block.
    pub admits: Option<AdmitFn>,
    /// Bundled plugins that run, by id: others may need them.
    pub bundled: Vec<String>,
    /// How they are run.
    pub settings: PluginSettings,
    /// Project folder.
    pub directory: PathBuf,
    /// Root of the working tree; `/` outside version control, as in the reference.
    pub worktree: PathBuf,
    /// `project` of the plugin input.
    pub project: Value,
    /// `serverUrl` of the plugin input, usually [`SERVER_URL`].
    pub server_url: String,
    /// What the user's rules keep from processes; asked at each start of one.
    pub covers: CoversFn,
    /// Starts processes.
    pub spawner: Spawner,
    /// Where a JavaScript runtime is looked for.
    pub runtimes: Lookup,
    /// Our data folder.
    pub data: PathBuf,
    /// Our cache folder.
    pub cache: PathBuf,
    /// The user's OpenCode configuration folder; plugin processes get copies of its files.
    pub user_config: Option<PathBuf>,
    /// Install `@opencode-ai/sdk` and its like when they are not there yet. Without them plugins run, and `client` says
    /// that it is missing when it is used.
    pub install_modules: bool,
    /// Command hooks in Claude Code's form, called behind the plugins; `None` where they are switched off.
    pub commands: Option<CommandHooks>,
    /// Asks before Bun is fetched, where the setting is to ask; `None`: nobody is there who could answer.
    pub consent: Option<ConsentFn>,
    /// Asks whether a plugin that is new or changed is to be trusted; `None`: nobody is there who could answer.
    pub trust: Option<TrustFn>,
    /// What of the project a person let count, with its settings.
    pub let_count: Option<outrigger_plugin_trust::LetCount>,
    /// Answers what plugins ask.
    pub handler: Arc<dyn HostHandler>,
    /// Told of every step of every plugin.
    pub progress: ProgressFn,
    /// Told of what becomes of plugins while they run.
    pub notice: NoticeFn,
    /// The clock of the records, in milliseconds since the Unix epoch.
    pub now: fn() -> Millis,
}

/// Shared by [`Plugins`], its pipelines and its tools.
pub(crate) struct Inner {
    pub(crate) registry: Arc<Registry>,
    pub(crate) settings: PluginSettings,
    pub(crate) now: fn() -> Millis,
    pub(crate) breakers: Breakers,
    pub(crate) perf: Mutex<Perf>,
    pub(crate) commands: Option<Commands>,
    pub(crate) links: Links,
    pub(crate) processes: Arc<Processes>,
    /// What everything was loaded from.
    pub(crate) options: Option<Arc<LoadOptions>>,
    /// What processes are started with, once there was one to start.
    pub(crate) launch: OnceLock<Arc<Launch>>,
    /// The configuration as the `config` hooks left it.
    pub(crate) configured: OnceLock<Value>,
    /// One change of states at a time.
    pub(crate) changing: tokio::sync::Mutex<()>,
}

impl Inner {
    /// The process that a plugin lives in now; waits for a restart that is under way. A plugin that is given a process
    /// of its own meanwhile is found there.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn live(&self, plugin: usize) -> Result<(Arc<Group>, Arc<Live>), String> {
        loop {
            let key = || self.registry.with(plugin, |plugin| plugin.group).flatten();
            let Some(group) = key().and_then(|key| self.processes.get(key)) else {
                return Err("its plugin is not loaded".to_owned());
            };
            let live = group.live().await;
            // It moves at most once, so this ends.
            if key() == Some(group.key) {
                return Ok((group, live?));
            }
        }
    }

    /// Plugins that bring authentication handle secrets, and no other plugin's code may live beside them: where one turns
    /// out to be in a shared process, it gets one of its own, and that process is started again without it.
    async fn apart(&self) -> Vec<Arc<Group>> {
        let mut fresh = Vec::new();
        for group in self.processes.all() {
            let members = group.members().await;
            let secret = |index: &usize| self.registry.brings_auth(*index);
            let leave: Vec<usize> = members.iter().copied().filter(secret).collect();
            if members.len() < 2 || leave.is_empty() {
                continue;
            }
            // All of them handle secrets: the first may stay where it is.
            let stays = usize::from(leave.len() == members.len());
            let leave = leave.get(stays..).unwrap_or_default();
            group.without(leave).await;
            for index in leave {
                let one = group.beside(self.processes.key(), *index);
                self.registry.assign(*index, one.key);
                fresh.push(one);
            }
        }
        fresh
    }

    /// Starts the processes side by side. They are known before: a restart may need them.
    async fn run(&self, fresh: Vec<Arc<Group>>) {
        for group in &fresh {
            self.processes.add(group);
        }
        join_all(fresh.iter().map(|group| group.live())).await;
        // One that came apart while it loaded has made others.
        let all = self.processes.all();
        join_all(all.iter().map(|group| group.live())).await;
    }
}

/// The plugins of one project. Cheap to clone.
#[derive(Clone)]
pub struct Plugins(pub(crate) Arc<Inner>);

impl Plugins {
    /// Finds, installs, starts and initialises the plugins. Never fails: what could not be loaded is in
    /// [`Plugins::list`] with its stage and cause, and the rest runs (A13). Without plugins no process is started.
    pub async fn load(options: LoadOptions) -> Self {
        let options = Arc::new(options);
        let loaded = options.plugins.iter();
        let loaded = loaded.map(|plugin| Plugin::found(name_of(plugin), plugin));
        let skipped = options.skipped.iter();
        let skipped = skipped.map(|it| match &it.reason {
            SkipReason::NotAdmitted { id, .. } => Plugin::found(id.clone(), &it.plugin),
            _ => Plugin::found(name_of(&it.plugin), &it.plugin),
        });
        let found = loaded.chain(skipped);
        let mut found: Vec<Plugin> = found.collect();
        let base = found.len();
        found.extend(command_hooks::found(options.commands.as_ref()));
        let registry = Arc::new(Registry::new(found, Arc::clone(&options.progress)));
        registry.tells(&options.notice);
        for (index, skipped) in (options.plugins.len()..).zip(&options.skipped) {
            let mut rules = rules_of(&options, &registry, index, &skipped.plugin);
            if !guards(&skipped.reason) {
                rules.fail_closed.clone_from(&rules.required);
            }
            registry.set_rules(index, rules);
            registry.fail(index, &why_skipped(skipped));
        }
        let inner = Arc::new(Inner {
            registry: Arc::clone(&registry),
            settings: options.settings.clone(),
            now: options.now,
            breakers: Breakers::new(
                options.settings.circuit_breaker,
                options.settings.breaker,
                Arc::clone(&options.notice),
            ),
            perf: Mutex::default(),
            commands: command_hooks(&options, base, &registry),
            links: Links::default(),
            processes: Arc::default(),
            options: Some(Arc::clone(&options)),
            launch: OnceLock::new(),
            configured: OnceLock::new(),
            changing: tokio::sync::Mutex::default(),
        });
        registry.live_in(&inner.processes);
        if let Some(started) = start(&options, &registry, &inner).await {
            let _ = inner.launch.set(Arc::clone(&started.launch));
            let settings = &options.settings;
            let stuck = settings.self_heal.then_some(settings.deadlines.normal);
            crate::watch::watch(&inner.processes, settings.limits, stuck);
            crate::uncovered::watch(&inner.processes);
            if let (Some(every), true) = (settings.health, settings.self_heal) {
                let deadline = settings.deadlines.normal;
                crate::health::check(&inner.processes, crate::health::Rhythm { every, deadline });
            }
            let Started {
                launch,
                groups,
                fetch,
            } = started;
            inner.run(groups).await;
            let waiting = registry.waiting();
            if let (false, Some(fetch)) = (waiting.is_empty(), fetch) {
                let fresh = under_bun(waiting, &launch, fetch, &inner.processes).await;
                inner.run(fresh).await;
            }
            let apart = inner.apart().await;
            inner.run(apart).await;
            crate::apart::remember(&options.data, &registry);
        }
        required(&options, &registry);
        Self(inner)
    }

    /// No plugins at all.
    #[must_use]
    pub fn none() -> Self {
        Self(Arc::new(Inner {
            registry: Arc::new(Registry::new(Vec::new(), Arc::new(|_| {}))),
            settings: PluginSettings::default(),
            now: || 0,
            breakers: Breakers::new(false, Rules::default(), Arc::new(|_| {})),
            perf: Mutex::default(),
            commands: None,
            links: Links::default(),
            processes: Arc::default(),
            options: None,
            launch: OnceLock::new(),
            configured: OnceLock::new(),
            changing: tokio::sync::Mutex::default(),
        }))
    }

    /// Runs hook chains.
    #[must_use]
    pub fn pipeline(&self) -> Pipeline {
        Pipeline(Arc::clone(&self.0))
    }

    /// The tools of all plugins in load order; of two with one name the later one is meant to replace the earlier one.
    #[must_use]
    pub fn tools(&self) -> Vec<PluginToolEntry> {
        let entry = |(plugin, id, tool): (usize, String, outrigger_protocol::rpc::PluginTool)| {
            PluginToolEntry {
                declares: tool.declares,
                spec: ToolSpec {
                    name: tool.name.clone(),
                    description: tool.description,
                    input_schema: tool.schema,
                    read_only: false,
                    hidden: false,
                    source: format!("plugin:{id}"),
                },
                runner: ToolRunner {
                    inner: Arc::clone(&self.0),
                    plugin,
                    tool: tool.name,
                },
            }
        };
        self.0.registry.tools().into_iter().map(entry).collect()
    }

    /// Tells the plugins of events, in order. Nothing waits for them; a process sees them before any later call, and one
    /// that is being started again sees them when it is there.
    pub fn events(&self, events: &[BusEvent]) {
        for key in self.0.registry.groups_at(HookPoint::SessionOnEvent) {
            if let Some(group) = self.0.processes.get(key) {
                group.events(events);
            }
        }
    }

    /// Runs the `config` hooks over the merged configuration. Done once: after a restart of a process they are called, and
    /// what they change is compared and not applied, since it is in the configuration already. The records are for the
    /// audit, which is not there yet when this is called.
    pub async fn configure(&self, config: Value) -> (Value, Vec<HookRecord>) {
        let (point, item) = configure::Input.call(&config);
        let mut result = self
            .pipeline()
            .run(point, vec![item], PipelineContext::default())
            .await;
        let output = result.outputs.pop().unwrap_or_default();
        // For hooks that a later generation brings; once, since this is done once.
        let _ = self.0.configured.set(output.clone());
        (output, result.records)
    }

    /// Tells command hooks that the sessions of this process end. Goes before [`Plugins::dispose`]; what takes longer than
    /// the deadline is ended.
    pub async fn end_sessions(&self, deadline: Duration) -> Vec<HookRecord> {
        let pipeline = self.pipeline();
        let told = tokio::time::timeout(deadline, pipeline.end_sessions()).await;
        let records = told.unwrap_or_else(|_| {
            tracing::warn!("SessionEnd hooks did not end within {deadline:?} and are given up");
            Vec::new()
        });
        if let Some(commands) = &self.0.commands {
            commands.end_async().await;
        }
        records
    }

    /// Lets all plugins dispose of what they hold and ends their processes, by force at the deadline. Nothing is called
    /// afterwards.
    pub async fn dispose(&self, deadline: Duration) {
        let groups = self.0.processes.all();
        join_all(groups.iter().map(|group| group.close(deadline))).await;
    }

    /// Why the user is to be asked about a call whatever the rules allow, if a command hook wants that. Said once.
    #[must_use]
    pub fn requires_approval(&self, session: &str, call: &str) -> Option<String> {
        self.0.commands.as_ref()?.take_asked(session, call)
    }

    /// What the hooks cost since the start, the costliest first (A1).
    #[must_use]
    pub fn perf(&self) -> Vec<PerfRow> {
        let perf = self.0.perf.lock().unwrap_or_else(PoisonError::into_inner);
        perf.rows()
    }

    /// The `[plugins.NAME]` under which the user would have to grant this to the plugin; `None` where it has it. Command
    /// hooks need no grant: a file of them runs only if the user allowed its content. Of several plugins with this id, all
    /// need it.
    #[must_use]
    pub fn grant_missing(&self, id: &PluginId, grant: Grant) -> Option<String> {
        self.0.registry.grant_missing(&id.0, grant)
    }

    /// The NAME of `[plugins.NAME]` that stands for this plugin and no other; `None` where there is none.
    #[must_use]
    pub fn grant_name(&self, id: &PluginId) -> Option<String> {
        self.0.registry.grant_name(&id.0)
    }

    /// Every plugin of the configuration, in load order.
    #[must_use]
    pub fn list(&self) -> Vec<PluginStatus> {
        let with_process = |(index, (group, mut status)): (usize, (Option<u64>, PluginStatus))| {
            status.breakers = self.0.breakers.of(index);
            let commands = self.0.commands.iter();
            let commands = commands.flat_map(|commands| commands.breakers_of(index));
            status.breakers.extend(commands);
            if let Some(group) = group.and_then(|key| self.0.processes.get(key)) {
                let (live, generation) = group.now();
                status.pid = live
                    .as_ref()
                    .filter(|live| status.stage == Stage::Active && live.process.is_alive())
                    .map(|live| live.process.pid());
                status.generation = generation;
                status.events_missed = group.missed();
                status.own_cpu_ms = millis(self.0.processes.charges.of(index));
                status.entered = entered(live.as_deref(), &status.id);
                status.usage = status
                    .pid
                    .and_then(|_| self.0.processes.readings.of(group.key));
            }
            status
        };
        let all = self.0.registry.list().into_iter().enumerate();
        let all: Vec<PluginStatus> = all.map(with_process).collect();
        under_their_hosts(all, |index| self.0.registry.host_of(index))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What of a plugin its process is in.
fn entered(live: Option<&Live>, plugin: &str) -> Vec<String> {
    let all = live.map(|live| live.process.all_entered());
    let its = all.into_iter().flatten();
    let its = its.filter(|enter| enter.plugin == plugin);
    its.map(|enter| enter.what).collect()
}

/// Each hosted plugin behind its host.
fn under_their_hosts(
    all: Vec<PluginStatus>,
    host_of: impl Fn(usize) -> Option<usize>,
) -> Vec<PluginStatus> {
    let ids: Vec<String> = all.iter().map(|status| status.id.clone()).collect();
    let mut places: Vec<(usize, usize, PluginStatus)> = all
        .into_iter()
        .enumerate()
        .map(|(index, mut status)| {
            let host = host_of(index);
            status.host = host.and_then(|host| ids.get(host).cloned());
            (host.unwrap_or(index), index, status)
        })
        .collect();
    places.sort_by_key(|(host, index, _)| (*host, *index));
    places.into_iter().map(|(_, _, status)| status).collect()
}

fn command_hooks(options: &LoadOptions, base: usize, registry: &Registry) -> Option<Commands> {
    let with = options.commands.clone()?;
    let handlers =
        command_hooks::bind(&with, base, registry, &options.settings, &options.directory);
    Some(Commands::new(
        with,
        handlers,
        base,
        options.directory.clone(),
        Arc::clone(&options.notice),
        CommandBreakers::new(
            options.settings.circuit_breaker,
            options.settings.breaker,
            Arc::clone(&options.notice),
        ),
    ))
}
