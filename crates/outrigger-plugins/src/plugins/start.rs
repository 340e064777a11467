//! From the resolved plugins to the processes that they run in.

use std::sync::{Arc, Weak};

use outrigger_js::{JsRuntime, RuntimeKind};
use outrigger_plugin_package::{Cache, Installer, Source};

use super::modules;
use crate::admission::admit::{absent_with_rules, resolve_all};
use crate::admission::runtime_selection::{self, Fetch};
use crate::options::LoadOptions;
use crate::plugin_host::PluginHost;
use outrigger_plugin_hooks::custom_points::gateway::PointGateway;
use outrigger_plugin_registry::Registry;
use outrigger_plugin_registry::access::network::Network;
use outrigger_plugin_registry::error::PluginError;
use outrigger_plugin_supervisor::fault_memory::{self, FaultMemory};
use outrigger_plugin_supervisor::group::Group;
use outrigger_plugin_supervisor::host_proxy::CustomPointsFn;
use outrigger_plugin_supervisor::launch::{self, Launch, short_digest};
use outrigger_plugin_supervisor::process_assignment::{divide, groups};
use outrigger_plugin_supervisor::processes::Processes;

/// Processes to start, and the retry that is left for plugins that fail in them.
pub(super) struct Started {
    pub(super) launch: Arc<Launch>,
    pub(super) groups: Vec<Arc<Group>>,
    pub(super) fetch: Option<Fetch>,
}

/// Resolves all plugins and assigns each to a process; starts none yet.
pub(super) async fn start(
    options: &LoadOptions,
    registry: &Arc<Registry>,
    host: &Arc<PluginHost>,
) -> Option<Started> {
    let processes = &host.processes;
    if options.plugins.is_empty() {
        return None;
    }
    let found = options.settings.runtime(&options.runtimes);
    let mut fetch = Fetch::allowed(options, &found);
    let bun = match &found {
        Ok(runtime) => (runtime.kind == RuntimeKind::Bun).then(|| runtime.path.clone()),
        Err(error) if fetch.is_none() => {
            fail_all(options, registry, error);
            return None;
        }
        Err(_) => None,
    };
    let installer = Installer::find_in(bun.as_deref(), &options.runtimes.path);
    let cache = Cache::new(
        &options.cache,
        installer.clone(),
        options.installers.clone(),
    );
    resolve_all(options, registry, &cache).await;
    let runtime =
        runtime_selection::runtime(registry, found, fetch.as_mut(), &options.spawner).await?;
    let all: Vec<usize> = (0..registry.count()).collect();
    outrigger_plugin_supervisor::isolation_memory::recall(&options.data, registry);
    recall_faults(options, registry, host);
    let divided = divide(registry, &all);
    if divided.is_empty() {
        return None;
    }
    let launch = launch(options, registry, host, runtime, installer.as_ref()).await;
    let groups = groups(&launch, divided, processes);
    Some(Started {
        launch,
        groups,
        fetch,
    })
}

/// Restores what earlier starts learned about the plugins of this project.
fn recall_faults(options: &LoadOptions, registry: &Registry, host: &PluginHost) {
    let memory = FaultMemory::new(&options.data, &options.directory);
    let names = fault_memory::recall(&memory, registry, (options.now)());
    let breakers = &host.hooks.breakers;
    outrigger_plugin_hooks::breakers::remember(breakers, Arc::new(memory), names);
}

/// Returns the options for starting processes.
async fn launch(
    options: &LoadOptions,
    registry: &Arc<Registry>,
    host: &Arc<PluginHost>,
    runtime: JsRuntime,
    installer: Option<&Installer>,
) -> Arc<Launch> {
    Arc::new(Launch {
        runtime,
        spawner: options.spawner.clone(),
        covers: Arc::clone(&options.covers),
        handler: Arc::clone(&options.handler),
        settings: options.settings.clone(),
        directory: options.directory.clone(),
        worktree: options.worktree.clone(),
        project: options.project.clone(),
        server_url: options.server_url.clone(),
        modules: modules::modules(options, registry, installer).await,
        homes: options.data.join("plugin-homes").join(short_digest(
            options.directory.as_os_str().as_encoded_bytes(),
        )),
        scripts: options.data.join("plugin-scripts"),
        tmux: outrigger_plugin_supervisor::launch::tmux::tmux_dir(
            &options.data,
            &options.directory,
        ),
        user_config: options.user_config.clone(),
        files: launch::files(&options.settings, &options.data).await,
        faults: FaultMemory::new(&options.data, &options.directory),
        registry: Arc::clone(registry),
        custom_points: custom_points(options, host),
        now: options.now,
        configured: Arc::clone(&host.loading.configured),
        notice: Arc::clone(&options.notice),
        network: Network::new(&options.settings, Arc::clone(&options.notice)),
    })
}

/// Returns how a process reaches the points and events that its plugin declared.
fn custom_points(options: &LoadOptions, host: &Arc<PluginHost>) -> CustomPointsFn {
    let (hooks, notice) = (Arc::downgrade(&host.hooks), Arc::clone(&options.notice));
    Arc::new(move |plugin, id| {
        let (hooks, notice) = (Weak::clone(&hooks), Arc::clone(&notice));
        Box::new(PointGateway::new(hooks, plugin, id, notice))
    })
}

/// The same for a plugin that is started when none was before.
///
/// # Errors
/// `plugin.no_runtime`.
pub(crate) async fn late_launch(
    options: &LoadOptions,
    host: &Arc<PluginHost>,
) -> Result<Arc<Launch>, PluginError> {
    if let Some(launch) = host.loading.launch.get() {
        return Ok(Arc::clone(launch));
    }
    let runtime = options.settings.runtime(&options.runtimes)?;
    let bun = (runtime.kind == RuntimeKind::Bun).then(|| runtime.path.clone());
    let installer = Installer::find_in(bun.as_deref(), &options.runtimes.path);
    let made = launch(options, &host.registry, host, runtime, installer.as_ref()).await;
    Ok(Arc::clone(host.loading.launch.get_or_init(|| made)))
}

/// Creates processes under a Bun that is fetched now, for plugins that turned out to need it. The others stay
/// where they are.
pub(super) async fn under_bun(
    waiting: Vec<(usize, PluginError)>,
    launch: &Launch,
    mut fetch: Fetch,
    processes: &Arc<Processes>,
) -> Vec<Arc<Group>> {
    match fetch.bun().await {
        Ok(runtime) => {
            let launch = Arc::new(Launch {
                runtime,
                ..launch.clone()
            });
            let members: Vec<usize> = waiting.iter().map(|(index, _)| *index).collect();
            let mut divided = divide(&launch.registry, &members);
            for (name, _) in &mut divided {
                // Its private folder differs from that of the process under Node.
                name.push_str("-bun");
            }
            groups(&launch, divided, processes)
        }
        Err(reason) => {
            for (index, error) in waiting {
                launch.registry.fail(index, &error.because(&reason));
            }
            Vec::new()
        }
    }
}

// Skipped plugins are listed as skipped, not as failed by the missing runtime.
fn fail_all(options: &LoadOptions, registry: &Registry, error: &PluginError) {
    for (index, plugin) in options.plugins.iter().enumerate() {
        match Source::parse(&plugin.spec, &plugin.declared_in) {
            Err(skip) if skip.is_skip() => registry.fail(index, &skip.into()),
            _ => {
                absent_with_rules(options, registry, index);
                registry.fail(index, error);
            }
        }
    }
}
