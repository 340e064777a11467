//! The plugins of one project, from reading the configuration to shutdown.

mod life;
mod modules;
mod shared_process;
mod skipped;
mod start;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use outrigger_claude_hooks::{CommandBreakers, Commands};
use outrigger_config::SkipReason;
use outrigger_kernel::breaker::Rules;
use outrigger_kernel::hooks::points::runtime::configure;
use outrigger_kernel::hooks::{HookInput, HookPoint};
use outrigger_plugin_package::name_of;
use outrigger_plugin_status::Stage;
use outrigger_protocol::event::BusEvent;
use outrigger_protocol::hook::HookRecord;
use outrigger_protocol::id::PluginId;
use outrigger_protocol::rpc::RanCalls;
use outrigger_protocol::tool::ToolSpec;
use serde_json::Value;
use skipped::{guards, no_guard, required, why_skipped};

use crate::admission::admit::rules_of;
use crate::admission::command_hooks;
use crate::contributions::tools::{PluginToolEntry, ToolRunner};
use crate::options::LoadOptions;
use crate::plugin_host::{Loading, PluginHost};
use outrigger_plugin_hooks::SaidOnce;
use outrigger_plugin_hooks::breakers::HookBreakers;
use outrigger_plugin_hooks::custom_points::links::Links;
use outrigger_plugin_hooks::host::HookHost;
use outrigger_plugin_hooks::perf::PerfRow;
use outrigger_plugin_hooks::pipeline::{Pipeline, PipelineContext};
use outrigger_plugin_registry::PluginStatus;
use outrigger_plugin_registry::access::user_grants::Grant;
use outrigger_plugin_registry::{Plugin, Registry};
use outrigger_plugin_supervisor::fault_memory::FaultMemory;
use outrigger_plugin_supervisor::group::Live;
use outrigger_plugin_supervisor::watch::health::Rhythm;
pub(crate) use start::late_launch;
use start::{Started, start, under_bun};

/// The plugins of one project. Cheap to clone.
#[derive(Clone)]
pub struct Plugins(pub(crate) Arc<PluginHost>);

impl Plugins {
    /// Finds, installs, starts and initialises the plugins. Never fails: plugins that could not be loaded are in
    /// [`Plugins::list`] with their stage and cause, and the rest run (A13). Without plugins no process is started.
    pub async fn load(options: LoadOptions) -> Self {
        let options = Arc::new(options);
        let (found, base) = found(&options);
        let registry = Arc::new(Registry::new(found, Arc::clone(&options.progress)));
        registry.notifies(&options.notice);
        list_skipped(&options, &registry);
        let host = Arc::new(host(&options, base, &registry));
        let processes = Arc::downgrade(&host.processes);
        registry.live_in(processes);
        if let Some(started) = start(&options, &registry, &host).await {
            let _ = host.loading.launch.set(Arc::clone(&started.launch));
            watch(&host);
            let Started {
                launch,
                groups,
                fetch,
            } = started;
            host.run(groups).await;
            let waiting = registry.waiting();
            if let (false, Some(fetch)) = (waiting.is_empty(), fetch) {
                let fresh = under_bun(waiting, &launch, fetch, &host.processes).await;
                host.run(fresh).await;
            }
            let apart = host.apart().await;
            host.run(apart).await;
            outrigger_plugin_supervisor::isolation_memory::remember(&options.data, &registry);
        }
        required(&options, &registry);
        no_guard(&options, &registry);
        Self(host)
    }

    /// Returns a value without plugins.
    #[must_use]
    pub fn none() -> Self {
        let registry = Arc::new(Registry::new(Vec::new(), Arc::new(|_| {})));
        let (processes, settings) = (Arc::default(), Arc::default());
        let hooks = HookHost {
            registry: Arc::clone(&registry),
            processes: Arc::clone(&processes),
            settings: Arc::clone(&settings),
            now: || 0,
            breakers: HookBreakers::new(false, Rules::default(), 0, Arc::new(|_| {})),
            perf: Mutex::default(),
            commands: None,
            links: Links::default(),
            said: SaidOnce::default(),
            redact: None,
            notice: Arc::new(|_| {}),
        };
        Self(Arc::new(PluginHost {
            registry,
            processes,
            settings,
            hooks: Arc::new(hooks),
            loading: Loading::default(),
        }))
    }

    /// Returns the pipeline that runs hook chains.
    #[must_use]
    pub fn pipeline(&self) -> Pipeline {
        Pipeline::new(Arc::clone(&self.0.hooks))
    }

    /// Returns the tools of all plugins in load order; of two with one name the later one replaces the earlier one.
    #[must_use]
    pub fn tools(&self) -> Vec<PluginToolEntry> {
        let entry = |(plugin, id, tool): (usize, String, outrigger_protocol::rpc::PluginTool)| {
            PluginToolEntry {
                is_local: self.0.registry.with(plugin, |it| it.local) == Some(true),
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

    /// Sends events to the plugins, in order. Nothing waits for them; a process sees them before any later call, and a
    /// restarting one when it is back.
    pub fn events(&self, events: &[BusEvent]) {
        for key in self.0.registry.groups_at(HookPoint::SessionOnEvent) {
            if let Some(group) = self.0.processes.get(key) {
                group.events(events);
            }
        }
    }

    /// Runs the `config` hooks over the merged configuration. Runs once: after a restart of a process they are called, and
    /// their changes are compared but not applied, since they are in the configuration already. The records are for the
    /// audit, which does not exist yet at this point.
    pub async fn configure(&self, config: Value) -> (Value, Vec<HookRecord>) {
        let (point, item) = configure::Input.call(&config);
        let mut result = self
            .pipeline()
            .run(point, vec![item], PipelineContext::default())
            .await;
        let output = result.outputs.pop().unwrap_or_default();
        // For hooks of a later generation; set once, since this runs once.
        let known = self.0.registry.granted_secrets();
        let shown = outrigger_config::without_secrets(&output, &known);
        let _ = self.0.loading.configured.set(shown);
        (output, result.records)
    }

    /// Notifies command hooks that the sessions of this process end. Called before [`Plugins::dispose`]; hooks that exceed
    /// the deadline are killed.
    pub async fn end_sessions(&self, deadline: Duration) -> Vec<HookRecord> {
        let pipeline = self.pipeline();
        let ended =
            outrigger_sandbox::process_time::timeout(deadline, pipeline.end_sessions()).await;
        let records = ended.unwrap_or_else(|_| {
            tracing::warn!("SessionEnd hooks did not end within {deadline:?} and are given up");
            Vec::new()
        });
        if let Some(commands) = &self.0.hooks.commands {
            commands.end_async().await;
        }
        records
    }

    /// Lets all plugins dispose of their resources and ends their processes, by force at the deadline. No plugin is called
    /// afterwards.
    pub async fn dispose(&self, deadline: Duration) {
        let groups = self.0.processes.all();
        join_all(groups.iter().map(|group| group.close(deadline))).await;
    }

    /// Returns why the user must be asked about a call regardless of the rules, if a command hook requires that. Returned
    /// once.
    #[must_use]
    pub fn requires_approval(&self, session: &str, call: &str) -> Option<String> {
        self.0.hooks.commands.as_ref()?.take_asked(session, call)
    }

    /// Adds the cost of background hooks (A1).
    pub fn observed(&self, calls: &[RanCalls]) {
        let perf = self.0.hooks.perf.lock();
        let mut perf = perf.unwrap_or_else(PoisonError::into_inner);
        for calls in calls {
            perf.observed(calls);
            outrigger_plugin_hooks::log_observed(calls);
        }
    }

    /// Adds failed calls; other records came through a chain, which counted them.
    pub fn failed_beside(&self, records: &[HookRecord]) {
        let perf = self.0.hooks.perf.lock();
        let mut perf = perf.unwrap_or_else(PoisonError::into_inner);
        let beside = records
            .iter()
            .filter(|it| matches!(it.hook.as_str(), "event" | "dispose"));
        beside.for_each(|record| perf.add(record));
    }

    /// Returns the cost of hooks since the start, most expensive first (A1).
    #[must_use]
    pub fn perf(&self) -> Vec<PerfRow> {
        let perf = self.0.hooks.perf.lock();
        let perf = perf.unwrap_or_else(PoisonError::into_inner);
        perf.rows()
    }

    /// Returns the `[plugins.NAME]` under which the user would have to grant this to the plugin; `None` if it has the grant.
    /// Command hooks need no grant: their file runs only if the user allowed its content. If several plugins have this id,
    /// all of them need it.
    #[must_use]
    pub fn grant_missing(&self, id: &PluginId, grant: Grant) -> Option<String> {
        self.0.registry.grant_missing(&id.0, grant)
    }

    /// Returns whether these are command hooks that are not the user's own, but a project's or of a plugin of Claude Code.
    #[must_use]
    pub fn is_foreign_hook(&self, id: &PluginId) -> bool {
        self.0.registry.is_foreign_hook(&id.0)
    }

    /// Returns whether a plugin with this id is from a project. An unknown id is treated as a project's.
    #[must_use]
    pub fn is_of_project(&self, id: &str) -> bool {
        self.0.registry.is_of_project(id)
    }

    /// Returns the NAME of `[plugins.NAME]` that identifies this plugin and no other; `None` if there is none.
    #[must_use]
    pub fn grant_name(&self, id: &PluginId) -> Option<String> {
        self.0.registry.grant_name(&id.0)
    }

    /// Returns every plugin of the configuration, in load order.
    #[must_use]
    pub fn list(&self) -> Vec<PluginStatus> {
        let with_process = |(index, (group, mut status)): (usize, (Option<u64>, PluginStatus))| {
            status.breakers = self.0.hooks.breakers.statuses(|key| key.plugin == index);
            let commands = self.0.hooks.commands.iter();
            let commands = commands.flat_map(|commands| commands.breakers_of(index));
            status.breakers.extend(commands);
            if let Some(group) = group.and_then(|key| self.0.processes.get(key)) {
                let (live, generation) = group.current();
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
        let all: Vec<PluginStatus> = self
            .0
            .registry
            .list()
            .into_iter()
            .enumerate()
            .map(with_process)
            .collect();
        under_their_hosts(all, |index| self.0.registry.host_of(index))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the hooks and tools of a plugin that its process is running.
fn entered(live: Option<&Live>, plugin: &str) -> Vec<String> {
    live.map(|live| live.process.all_entered())
        .into_iter()
        .flatten()
        .filter(|enter| enter.plugin == plugin)
        .map(|enter| enter.what)
        .collect()
}

/// Places each hosted plugin after its host.
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

/// Returns the initial list: the plugins of the configuration, those of it that are not loaded, and files of command hooks,
/// with the index of the first of these.
fn found(options: &LoadOptions) -> (Vec<Plugin>, usize) {
    let loaded = options
        .plugins
        .iter()
        .map(|plugin| Plugin::found(name_of(plugin), plugin));
    let skipped = options.skipped.iter().map(|it| match &it.reason {
        SkipReason::NotAdmitted { id, .. } => Plugin::found(id.clone(), &it.plugin),
        _ => Plugin::found(name_of(&it.plugin), &it.plugin),
    });
    let mut found: Vec<Plugin> = loaded.chain(skipped).collect();
    let base = found.len();
    found.extend(command_hooks::found(options.commands.as_ref()));
    (found, base)
}

/// Lists the entries that are not loaded with their reasons.
fn list_skipped(options: &LoadOptions, registry: &Registry) {
    for (index, skipped) in (options.plugins.len()..).zip(&options.skipped) {
        let mut rules = rules_of(options, registry, index, &skipped.plugin);
        if !guards(&skipped.reason) {
            rules.fail_closed.clone_from(&rules.required);
        }
        registry.set_rules(index, rules);
        registry.fail(index, &why_skipped(skipped));
    }
}

fn host(options: &Arc<LoadOptions>, base: usize, registry: &Arc<Registry>) -> PluginHost {
    let processes = Arc::default();
    let settings = Arc::new(options.settings.clone());
    let hooks = HookHost {
        registry: Arc::clone(registry),
        processes: Arc::clone(&processes),
        settings: Arc::clone(&settings),
        now: options.now,
        breakers: HookBreakers::new(
            settings.circuit_breaker,
            settings.breaker,
            (options.now)(),
            Arc::clone(&options.notice),
        ),
        perf: Mutex::default(),
        commands: command_hooks(options, base, registry),
        links: Links::default(),
        said: SaidOnce::default(),
        redact: options.redact.clone(),
        notice: Arc::clone(&options.notice),
    };
    PluginHost {
        registry: Arc::clone(registry),
        processes,
        settings,
        hooks: Arc::new(hooks),
        loading: Loading {
            options: Some(Arc::clone(options)),
            ..Loading::default()
        },
    }
}

/// Watches the processes until the plugins are dropped: resource use, hidden paths, health.
fn watch(host: &PluginHost) {
    let (processes, settings) = (&host.processes, &host.settings);
    let stuck = settings.self_heal.then_some(settings.deadlines.normal);
    outrigger_plugin_supervisor::watch::usage::watch(processes, settings.limits, stuck);
    outrigger_plugin_supervisor::watch::stale_masks::watch(processes);
    if let (Some(every), true) = (settings.health, settings.self_heal) {
        let deadline = settings.deadlines.normal;
        outrigger_plugin_supervisor::watch::health::check(processes, Rhythm { every, deadline });
    }
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
            (options.now)(),
            Arc::new(FaultMemory::new(&options.data, &options.directory)),
            Arc::clone(&options.notice),
        ),
    ))
}
