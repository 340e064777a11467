//! A single start of a plugin process with its plugins. Determines who is to blame if that fails; [`crate::group`] decides
//! the consequences.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use outrigger_js::{ExchangeRoot, HostHandler, JsError, JsProcess, JsRuntime};
use outrigger_network_proxy::ProxyTicket;
use outrigger_plugin_package::host_modules::Modules;
use outrigger_plugin_status::{NoticeFn, Stage};
use outrigger_plugin_trust::kept_code;
use outrigger_protocol::Millis;
use outrigger_protocol::rpc::{Initialize, Initialized, LoadedPlugin, Sources};
use outrigger_sandbox::Spawner;
use outrigger_sandbox::cgroup::Cgroup;
use outrigger_sandbox::process_time;
use outrigger_sandbox::stale_masks::Hidden;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::fault_memory::FaultMemory;
use crate::host_proxy::{CustomPoints, CustomPointsFn, HostProxy, Members};
use outrigger_plugin_registry::Registry;
use outrigger_plugin_registry::access::network::Network;
use outrigger_plugin_registry::access::settings::PluginSettings;
use outrigger_plugin_registry::error::PluginError;

mod culprit;
pub mod home;
mod plugin_input;
mod process;
mod sandbox;
pub mod tmux;
mod trust_check;

pub use sandbox::search;

/// Start options of a project's processes.
#[derive(Clone)]
pub struct Launch {
    /// Bun or Node.
    pub runtime: JsRuntime,
    /// Starts processes.
    pub spawner: Spawner,
    /// Answers requests of plugins.
    pub handler: Arc<dyn HostHandler>,
    /// Settings for running plugins.
    pub settings: PluginSettings,
    /// Project folder.
    pub directory: PathBuf,
    /// Root of the working tree; `/` outside version control, as in OpenCode.
    pub worktree: PathBuf,
    /// `project` of the plugin input.
    pub project: Value,
    /// `serverUrl` of the plugin input.
    pub server_url: String,
    /// The host's own packages, for plugins that do not bundle them.
    pub modules: Option<Modules>,
    /// Parent folder of the private folders, one for each process.
    pub homes: PathBuf,
    /// Folder of the host script.
    pub scripts: PathBuf,
    /// Folder of the sockets of their tmux servers.
    pub tmux: PathBuf,
    /// The user's OpenCode configuration, which processes get copies of.
    pub user_config: Option<PathBuf>,
    /// Faults of plugins, remembered between starts.
    pub faults: FaultMemory,
    /// The list of plugins.
    pub registry: Arc<Registry>,
    /// Folder for large payloads; without it they are sent inline.
    pub files: Option<ExchangeRoot>,
    /// Creates the access of a process to its plugin's custom points.
    pub custom_points: CustomPointsFn,
    /// The configuration as the `config` hooks left it.
    pub configured: Arc<OnceLock<Value>>,
    /// Clock of the records.
    pub now: fn() -> Millis,
    /// Notified of state changes of plugins.
    pub notice: NoticeFn,
    /// Network access of processes.
    pub network: Arc<Network>,
    /// Returns what the user's rules hide from processes; called at each start of one.
    pub covers: CoversFn,
}

pub use outrigger_sandbox::CoversFn;

/// How plugins are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// All with one request, which imports them concurrently, as OpenCode does.
    Together,
    /// One request each, so that it is always clear whose code runs.
    OneByOne,
}

/// Puts a process whose plugins are not loaded yet into a cgroup that limits its memory. The watch, which names the limit
/// and ends the process in order, should act first: the cgroup is for growth that is too fast for it.
fn held(process: &JsProcess, memory: u64) -> Option<Cgroup> {
    let cgroup = Cgroup::new(memory.saturating_add(memory / 8))?;
    match cgroup.enter(process.pid()) {
        Ok(()) => Some(cgroup),
        Err(error) => {
            tracing::debug!(
                "plugin process {}: not put into a control group: {error}",
                process.name()
            );
            None
        }
    }
}

/// Why loading failed.
pub enum Failed {
    /// The process itself could not be started; no plugin is at fault.
    Process(PluginError),
    /// This plugin (by index) is to blame.
    Culprit(usize, PluginError),
    /// Several were being imported at once, and one of them is to blame.
    Unclear,
}

/// Resources that last as long as a process.
pub(crate) struct Held {
    /// Limits its memory, if a cgroup can be created.
    pub(crate) cgroup: Option<Cgroup>,
    /// Its network access.
    _ticket: Option<ProxyTicket>,
    /// Paths hidden from it.
    pub hidden: Hidden,
}

/// A process with its plugins loaded.
pub(crate) struct Loaded {
    pub(crate) process: JsProcess,
    /// Resources that last as long as it.
    pub(crate) held: Held,
    /// Prefix of its calls' numbers.
    pub serial: u64,
    /// One for each member, in order.
    pub plugins: Vec<LoadedPlugin>,
}

/// Why a load request got no answer.
enum Stuck {
    Silent,
    Error(JsError),
}

/// Creates the folder for large payloads; removes that of a dead host.
pub async fn files(settings: &PluginSettings, data: &Path) -> Option<ExchangeRoot> {
    let base = settings.file_ipc.then(|| data.join("plugin-files"))?;
    let made = tokio::task::spawn_blocking(move || ExchangeRoot::open(&base)).await;
    match made.map_err(std::io::Error::other).flatten() {
        Ok(root) => Some(root),
        Err(error) => {
            tracing::warn!("payloads of plugins are sent inline, no folder for files: {error}");
            None
        }
    }
}

impl Launch {
    /// Starts a process for `members` and loads them.
    pub(crate) async fn start(
        &self,
        name: &str,
        members: &[usize],
        order: Order,
    ) -> Result<Loaded, Failed> {
        static SERIAL: AtomicU64 = AtomicU64::new(1);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let host_proxy = self.host_proxy(serial, members);
        let trusted = self.trusted(members).await?;
        let started = self
            .process(name, members, Arc::clone(&host_proxy))
            .await
            .map_err(Failed::Process)?;
        let proxy = started.ticket.as_ref().map(ProxyTicket::url);
        let process = started.process;
        let held = Held {
            cgroup: held(&process, self.settings.limits.memory),
            _ticket: started.ticket,
            hidden: started.hidden,
        };
        let mut plugins = Vec::with_capacity(members.len());
        let batches: Vec<&[usize]> = match order {
            Order::Together => vec![members],
            Order::OneByOne => members.chunks(1).collect(),
        };
        for batch in batches {
            let mut sources = Sources::default();
            // Files that are not compared are named in the first batch: Bun takes the pattern of that one.
            let needed = |it: &&trust_check::Looked| batch.contains(&it.0) || !it.1.from_path;
            for (_, plugin, content) in trusted.iter().filter(needed) {
                sources.extend(kept_code::sources(plugin, content));
            }
            let initialize = Initialize {
                proxy: proxy.clone(),
                sources,
                ..self.initialize(batch)
            };
            match self.load(&process, &host_proxy, batch, &initialize).await {
                Ok(loaded) => plugins.extend(loaded.plugins),
                Err(stuck) => {
                    let failed = self.blame(&process, &host_proxy, batch, stuck).await;
                    return Err(held.explain(failed, self.settings.limits.memory));
                }
            }
        }
        self.untouched(trusted).await?;
        Ok(Loaded {
            process,
            held,
            serial,
            plugins,
        })
    }

    /// Returns the proxy between the process of these plugins and the host's handler.
    fn host_proxy(&self, serial: u64, members: &[usize]) -> Arc<HostProxy> {
        let registry = Arc::clone(&self.registry);
        let ids = members
            .iter()
            .filter_map(|index| registry.with(*index, |plugin| plugin.id.clone()));
        let members = Members {
            ids: ids.collect(),
            access: self.access(members),
            points: self.points_of(members),
        };
        HostProxy::new(
            Arc::clone(&self.handler),
            serial,
            members,
            move |id: &str| registry.stage_of(id, Stage::Starting),
            Arc::clone(&self.notice),
            self.now,
        )
    }

    /// Returns the access to custom points for the only plugin of this process.
    fn points_of(&self, members: &[usize]) -> Option<Box<dyn CustomPoints>> {
        let [one] = members else {
            return None;
        };
        let (id, declares) = self.registry.with(*one, |plugin| {
            (plugin.id.clone(), plugin.rules.access.is_some())
        })?;
        declares.then(|| (self.custom_points)(*one, id))
    }

    // Each step of loading has the deadline, not all of them together: ten slow plugins are not a hang.
    async fn load(
        &self,
        process: &JsProcess,
        host_proxy: &HostProxy,
        batch: &[usize],
        initialize: &Initialize,
    ) -> Result<Initialized, Stuck> {
        let deadline = self.settings.deadlines.load;
        let steps = u32::try_from(2 * batch.len() + 1).unwrap_or(u32::MAX);
        let mut call =
            std::pin::pin!(process.initialize(initialize, deadline.saturating_mul(steps)));
        let mut ticks = host_proxy.ticks();
        loop {
            tokio::select! {
                biased;
                answer = &mut call => return answer.map_err(|error| match error {
                    JsError::CallTimeout { .. } => Stuck::Silent,
                    error => Stuck::Error(error),
                }),
                changed = ticks.changed() => if changed.is_err() { return Err(Stuck::Silent) },
                () = process_time::sleep(deadline) => return Err(Stuck::Silent),
            }
        }
    }
}

/// Returns a short name for one that is too long: the first 16 digits of its SHA-256.
#[must_use]
pub fn short_digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    outrigger_stdx::text::hex(digest.get(..8).unwrap_or_default())
}
