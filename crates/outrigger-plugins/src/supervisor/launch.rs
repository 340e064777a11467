//! Starting one plugin process and loading plugins into it, once. Who is to blame when that does not end is found here;
//! what follows from it is decided in [`crate::supervisor::group`].

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use outrigger_config::settings::Environment;
use outrigger_js::{
    ExchangeRoot, HostHandler, JsError, JsProcess, JsRuntime, StartOptions, Transfer,
};
use outrigger_network_proxy::ProxyTicket;
use outrigger_plugin_package::host_modules::Modules;
use outrigger_plugin_status::{NoticeFn, Stage};
use outrigger_plugin_trust::kept_code;
use outrigger_protocol::Millis;
use outrigger_protocol::rpc::{Initialize, Initialized, LoadedPlugin, Sources};
use outrigger_sandbox::cgroup::Cgroup;
use outrigger_sandbox::path_masks::Kept;
use outrigger_sandbox::stale_masks::Hidden;
use outrigger_sandbox::{Level, Limits, Policy, Spawner, env};
use serde_json::Value;

use crate::access::environment::Grants;
use crate::access::network::Network;
use crate::access::rights::Access;
use crate::access::settings::PluginSettings;
use crate::error::PluginError;
use crate::registry::Registry;
use crate::supervisor::host_proxy::{CustomPoints, CustomPointsFn, Relay};

mod culprit;
pub(crate) mod home;
mod plugin_box;
mod plugin_input;
pub(crate) mod tmux;
mod trust_check;

pub(crate) use plugin_box::search;

/// How long a runtime may take to say hello; it does so before any plugin's code runs.
const HELLO: Duration = Duration::from_secs(10);

/// What every process of a project is started with.
#[derive(Clone)]
pub(crate) struct Launch {
    pub(crate) runtime: JsRuntime,
    pub(crate) spawner: Spawner,
    pub(crate) handler: Arc<dyn HostHandler>,
    pub(crate) settings: PluginSettings,
    pub(crate) directory: PathBuf,
    pub(crate) worktree: PathBuf,
    pub(crate) project: Value,
    pub(crate) server_url: String,
    pub(crate) modules: Option<Modules>,
    /// Folder of the private folders, one for each process.
    pub(crate) homes: PathBuf,
    /// Folder of the sockets of their tmux servers.
    pub(crate) tmux: PathBuf,
    /// The user's OpenCode configuration, which processes get copies of.
    pub(crate) user_config: Option<PathBuf>,
    pub(crate) registry: Arc<Registry>,
    /// Where large payloads are put for processes; without it they are sent inline.
    pub(crate) files: Option<ExchangeRoot>,
    /// How a process reaches what its plugin declared.
    pub(crate) custom_points: CustomPointsFn,
    /// The configuration as the `config` hooks left it.
    pub(crate) configured: Arc<OnceLock<Value>>,
    /// The clock of the records.
    pub(crate) now: fn() -> Millis,
    pub(crate) notice: NoticeFn,
    pub(crate) network: Arc<Network>,
    pub(crate) covers: CoversFn,
}

pub use outrigger_sandbox::CoversFn;

/// How plugins are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// All with one request, which imports them side by side, as the reference does.
    Together,
    /// One request each, so that there is never a doubt whose code runs.
    OneByOne,
}

/// Puts a process whose plugins are not loaded yet into a group that holds its memory. The watch, which names the limit and
/// ends the process in order, is to come first: the group is for what grows faster than it looks.
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

/// Why loading did not end.
pub(crate) enum Failed {
    /// The process itself could not be had; it is no plugin's fault.
    Process(PluginError),
    /// This plugin (its index) is to blame.
    Culprit(usize, PluginError),
    /// Several were being imported at once, and one of them is to blame.
    Unclear,
}

/// What lasts as long as a process.
pub(crate) struct Held {
    /// Holds its memory, where a group can be made.
    pub(crate) cgroup: Option<Cgroup>,
    /// Its way to other hosts.
    _pass: Option<ProxyTicket>,
    /// What it does not see.
    pub(crate) hidden: Hidden,
}

/// A process with its plugins loaded.
pub(crate) struct Loaded {
    pub(crate) process: JsProcess,
    /// What lasts as long as it.
    pub(crate) held: Held,
    /// The number in front of its calls' numbers.
    pub(crate) serial: u64,
    /// One for each member, in order.
    pub(crate) plugins: Vec<LoadedPlugin>,
}

/// Why a load request came to no answer.
enum Stuck {
    Silent,
    Error(JsError),
}

/// The folder for large payloads; that of a host that died is removed here.
pub(crate) async fn files(settings: &PluginSettings, data: &Path) -> Option<ExchangeRoot> {
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
        let registry = Arc::clone(&self.registry);
        let names = members.iter();
        let names = names.filter_map(|index| registry.with(*index, |plugin| plugin.id.clone()));
        let names = names.collect();
        let access = self.access(members);
        let relay = Relay::new(
            Arc::clone(&self.handler),
            serial,
            (names, access),
            self.points_of(members),
            (
                move |id: &str| registry.stage_of(id, Stage::Starting),
                Arc::clone(&self.notice),
            ),
            self.now,
        );
        let looked = self.trusted(members).await?;
        let (process, pass, hidden) = self
            .process(name, members, Arc::clone(&relay))
            .await
            .map_err(Failed::Process)?;
        let proxy = pass.as_ref().map(ProxyTicket::url);
        let held = Held {
            cgroup: held(&process, self.settings.limits.memory),
            _pass: pass,
            hidden,
        };
        let mut plugins = Vec::with_capacity(members.len());
        let batches: Vec<&[usize]> = match order {
            Order::Together => vec![members],
            Order::OneByOne => members.chunks(1).collect(),
        };
        for batch in batches {
            let mut sources = Sources::default();
            for (_, plugin, content) in looked.iter().filter(|it| batch.contains(&it.0)) {
                sources.extend(kept_code::sources(plugin, content));
            }
            let initialize = Initialize {
                proxy: proxy.clone(),
                sources,
                ..self.initialize(batch)
            };
            match self.load(&process, &relay, batch, &initialize).await {
                Ok(loaded) => plugins.extend(loaded.plugins),
                Err(stuck) => {
                    let failed = self.blame(&process, &relay, batch, stuck).await;
                    return Err(held.explain(failed, self.settings.limits.memory));
                }
            }
        }
        self.untouched(looked).await?;
        Ok(Loaded {
            process,
            held,
            serial,
            plugins,
        })
    }

    async fn process(
        &self,
        name: &str,
        members: &[usize],
        relay: Arc<Relay>,
    ) -> Result<(JsProcess, Option<ProxyTicket>, Hidden), PluginError> {
        let failed = |message: String| PluginError::Process {
            process: name.to_owned(),
            message,
        };
        let private_dir = self.homes.join(name.replace(['/', '\\'], "+"));
        let mut own =
            home::prepare(&private_dir, self.user_config.as_deref()).map_err(|error| {
                failed(format!(
                    "its folder {} cannot be made: {error}",
                    private_dir.display()
                ))
            })?;
        let (granted, ports) = self.granted(members);
        let extra = self.settings.env.iter().chain(&granted);
        let extra: Vec<&str> = extra.map(String::as_str).collect();
        let tmux = self
            .settings
            .sandbox
            .then(|| self.tmux_of(members, &private_dir));
        if let Some(folder) = &tmux {
            own.push(tmux::prepare(folder).map_err(|error| {
                failed(format!(
                    "its folder {} cannot be made: {error}",
                    folder.display()
                ))
            })?);
        }
        let access = self.access(members);
        let mut grants = self.grants(access.as_ref());
        if self.settings.sandbox {
            grants.make();
        }
        let Grants {
            variables,
            packages,
            write,
            read,
            ..
        } = grants;
        let pass = match self.settings.sandbox {
            true => {
                self.network
                    .pass(&self.registry, members, access.as_ref())
                    .await
            }
            false => Ok(None),
        };
        let pass = pass.map_err(&failed)?;
        for (name, value) in pass.iter().flat_map(ProxyTicket::variables) {
            own.push((name.into(), value.into()));
        }
        let mut env = env::allow_list(&extra);
        env.retain(|(name, _)| !name.as_encoded_bytes().starts_with(b"XDG_"));
        // Of two variables of one name the later one counts: what leads into the private folder comes last.
        let known: Vec<OsString> = env.iter().map(|(name, _)| name.clone()).collect();
        env.extend(
            variables
                .into_iter()
                .filter(|(name, _)| !known.contains(name)),
        );
        env.retain(|(name, _)| !own.iter().any(|(ours, _)| ours == name));
        env.extend(own);
        let kept = match self.settings.sandbox {
            true => self.covers().await.map_err(&failed)?,
            false => Kept::default(),
        };
        let project = crate::admission::admit::project_of(&self.directory, &self.worktree);
        let hidden = plugin_box::hidden(&kept, [&self.directory, &project]);
        let mut policy = None;
        if self.settings.sandbox {
            if !(packages.is_empty() && write.is_empty()) {
                tracing::info!(
                    "[plugin:{name}] named by the environment: packages {packages:?}, files {write:?}"
                );
            }
            let own = self.plugin_box(members, &private_dir, pass.as_ref(), packages);
            let mut own = own.await.map_err(|error| failed(error.to_string()))?;
            own.write.extend(write);
            own.read.extend(read);
            // What lies in the private folder is the plugin's by that; a rule of its own would follow a link there.
            own.write
                .extend(tmux.filter(|folder| !folder.starts_with(&private_dir)));
            own.bind_tcp.get_or_insert_default().extend(ports);
            own.kept = kept;
            policy = Some(own);
        }
        let short = |policy: &Policy| policy.level() < Level::Full;
        if self.settings.strict && policy.as_ref().is_some_and(short) {
            let why = "the system can enforce only a part of its box, and `sandbox` is \"strict\"";
            return Err(failed(why.to_owned()));
        }
        let process = JsProcess::start(StartOptions {
            runtime: self.runtime.clone(),
            spawner: self.spawner.clone(),
            policy,
            proxy_redirect: pass.as_ref().map(ProxyTicket::redirect),
            env,
            limits: Limits {
                // Against what grows faster than the watch looks. Bun 1.4 fails to allocate buffers when about a quarter
                // of this is resident, and the watch, which names the limit, is to come first.
                data: Some(self.settings.limits.memory.saturating_mul(8)),
                nofile: Some(self.settings.limits.files),
            },
            private_dir,
            name: name.to_owned(),
            handler: relay,
            output: self.settings.output,
            deadline: HELLO,
            transfer: Transfer {
                files: self.files.clone(),
                inline: self.settings.inline_bytes,
                mirror: self.settings.mirror,
            },
        })
        .await
        .map_err(|error| match error {
            JsError::RuntimeTooOld { .. } => PluginError::NoRuntime {
                message: error.to_string(),
                hint: error.hint(),
            },
            error => failed(error.to_string()),
        })?;
        if let Some(pass) = &pass {
            pass.belongs_to(process.pid());
        }
        Ok((process, pass, hidden))
    }

    /// What the user grants the plugins of this process: variables and ports.
    fn granted(&self, members: &[usize]) -> (Vec<String>, Vec<u16>) {
        let rules = members.iter();
        let rules = rules.filter_map(|index| self.registry.with(*index, |p| p.rules.clone()));
        let (mut env, mut ports) = (Vec::new(), Vec::new());
        for rules in rules {
            env.extend(rules.env);
            ports.extend(rules.ports);
        }
        (env, ports)
    }

    fn tmux_of(&self, members: &[usize], private: &Path) -> PathBuf {
        let secret = |index: &usize| {
            let granted = self.registry.with(*index, |p| !p.rules.env.is_empty());
            granted == Some(true) || self.registry.brings_auth(*index)
        };
        if members.iter().any(secret) {
            private.join("tmp")
        } else {
            self.tmux.clone()
        }
    }

    async fn covers(&self) -> Result<Kept, String> {
        let covers = Arc::clone(&self.covers);
        let found = tokio::task::spawn_blocking(move || covers()).await;
        let why = match found {
            Ok(Ok(found)) => return Ok(Kept::new(found, Arc::clone(&self.covers))),
            Ok(Err(error)) => {
                let hint = error.hint().map(|hint| format!("; {hint}"));
                format!("{error}{}", hint.unwrap_or_default())
            }
            Err(error) => error.to_string(),
        };
        Err(format!(
            "what the permission rules deny cannot be kept from it: {why}"
        ))
    }

    /// Where the one plugin of this process reaches what it declared.
    fn points_of(&self, members: &[usize]) -> Option<Box<dyn CustomPoints>> {
        let [one] = members else {
            return None;
        };
        let (id, declares) = self.registry.with(*one, |plugin| {
            (plugin.id.clone(), plugin.rules.access.is_some())
        })?;
        declares.then(|| (self.custom_points)(*one, id))
    }

    fn grants(&self, access: Option<&Access>) -> Grants {
        let asked = |name: &OsString| {
            access.is_none_or(|access| name.to_str().is_some_and(|name| access.has_variable(name)))
        };
        match self.settings.js.environment {
            Environment::User => Grants::of(std::env::vars_os().filter(|(name, _)| asked(name))),
            Environment::List => Grants::default(),
        }
    }

    // Each step of loading has the deadline, not all of them together: ten slow plugins are no hang.
    async fn load(
        &self,
        process: &JsProcess,
        relay: &Relay,
        batch: &[usize],
        initialize: &Initialize,
    ) -> Result<Initialized, Stuck> {
        let deadline = self.settings.deadlines.load;
        let steps = u32::try_from(2 * batch.len() + 1).unwrap_or(u32::MAX);
        let mut call =
            std::pin::pin!(process.initialize(initialize, deadline.saturating_mul(steps)));
        let mut ticks = relay.ticks();
        loop {
            tokio::select! {
                biased;
                answer = &mut call => return answer.map_err(|error| match error {
                    JsError::CallTimeout { .. } => Stuck::Silent,
                    error => Stuck::Error(error),
                }),
                changed = ticks.changed() => if changed.is_err() { return Err(Stuck::Silent) },
                () = tokio::time::sleep(deadline) => return Err(Stuck::Silent),
            }
        }
    }
}
