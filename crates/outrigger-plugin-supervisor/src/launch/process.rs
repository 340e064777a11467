//! Starting the process itself: its private folder, its environment, its network access and its sandbox.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outrigger_config::settings::Environment;
use outrigger_js::{JsError, JsProcess, StartOptions, Transfer};
use outrigger_network_proxy::ProxyTicket;
use outrigger_protocol::diagnose::Diagnose;
use outrigger_sandbox::path_masks::CoverWalk;
use outrigger_sandbox::stale_masks::Hidden;
use outrigger_sandbox::{Level, Limits, Policy, env};

use super::{Launch, home, sandbox, short_digest, tmux};
use crate::host_proxy::HostProxy;
use crate::process_assignment::{SHARED, SHARED_OF_PROJECT};
use outrigger_plugin_registry::Plugin;
use outrigger_plugin_registry::access::environment::Grants;
use outrigger_plugin_registry::access::rights::Access;
use outrigger_plugin_registry::error::PluginError;

/// Time limit for a runtime to say hello; it does so before any plugin's code runs.
const HELLO: Duration = Duration::from_secs(10);

/// Variables of an environment.
type Variables = Vec<(OsString, OsString)>;

/// A process that has loaded nothing yet, with the resources that last as long as it.
pub(super) struct Started {
    pub(super) process: JsProcess,
    /// Its network access.
    pub(super) ticket: Option<ProxyTicket>,
    /// Paths hidden from it.
    pub(super) hidden: Hidden,
}

/// Start parameters of a process.
struct Setup<'a> {
    launch: &'a Launch,
    name: &'a str,
    members: &'a [usize],
    private_dir: PathBuf,
    /// Folder of its tmux servers' sockets, if it has a sandbox.
    tmux: Option<PathBuf>,
}

impl Launch {
    /// Starts the process of these plugins.
    pub(super) async fn process(
        &self,
        name: &str,
        members: &[usize],
        handler: Arc<HostProxy>,
    ) -> Result<Started, PluginError> {
        let setup = Setup::new(self, name, members);
        let mut own = setup.folders()?;
        let access = self.access(members);
        let mut grants = self.grants(members, access.as_ref());
        let ticket = setup.ticket(access.as_ref()).await?;
        let proxy = ticket.iter().flat_map(ProxyTicket::variables);
        own.extend(proxy.map(|(name, value)| (name.into(), value.into())));
        let env = setup.environment(std::mem::take(&mut grants.variables), own);
        let kept = setup.kept().await?;
        let project = outrigger_plugin_trust::project_of(&self.directory, &self.worktree);
        let hidden = sandbox::hidden(&kept, [&self.directory, &project]);
        let policy = if self.settings.sandbox {
            Some(setup.policy(grants, ticket.as_ref(), kept).await?)
        } else {
            None
        };
        let options = StartOptions {
            runtime: self.runtime.clone(),
            spawner: self.spawner.clone(),
            policy,
            proxy_redirect: ticket.as_ref().map(ProxyTicket::redirect),
            env,
            limits: self.limits(),
            scripts: self.scripts.clone(),
            name: name.to_owned(),
            handler,
            output: self.settings.output,
            deadline: HELLO,
            transfer: Transfer {
                files: self.files.clone(),
                inline: self.settings.inline_bytes,
                mirror: self.settings.mirror,
            },
        };
        let process = JsProcess::start(options).await;
        let process = process.map_err(|error| match error {
            JsError::RuntimeTooOld { .. } => PluginError::NoRuntime {
                message: error.to_string(),
                hint: error.hint(),
            },
            error => setup.failed(error.to_string()),
        })?;
        if let Some(ticket) = &ticket {
            ticket.belongs_to(process.pid());
        }
        Ok(Started {
            process,
            ticket,
            hidden,
        })
    }

    /// Returns limits against growth that is too fast for the watch. Bun 1.4 fails to allocate buffers when about a quarter of
    /// this is resident, and the watch, which names the limit, should act first.
    fn limits(&self) -> Limits {
        Limits {
            data: Some(self.settings.limits.memory.saturating_mul(8)),
            nofile: Some(self.settings.limits.files),
        }
    }

    /// Returns the variables and ports that the user grants the plugins of this process.
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

    /// Returns the name of a process's private folder. Data that a plugin keeps there is for that plugin alone: another one that
    /// merely has the name (a project's file) gets a different folder, and a project's plugins do not share the folder of the
    /// user's.
    fn home_name(&self, name: &str, members: &[usize]) -> String {
        let name = match name.strip_prefix(SHARED_OF_PROJECT) {
            Some(rest) => format!("{SHARED}{rest}"),
            None => name.replace(['/', '\\'], "+"),
        };
        let of = |index: &usize| self.registry.with(*index, |it| (it.local, it.source_key()));
        let known: Vec<(bool, String)> = members.iter().filter_map(of).collect();
        let place = if known.iter().any(|(local, _)| *local) {
            "project"
        } else {
            "user"
        };
        match known.as_slice() {
            [(_, source)] if !name.starts_with(SHARED) => {
                format!("{name}-{place}-{}", short_digest(source.as_bytes()))
            }
            _ => format!("{name}-{place}"),
        }
    }

    /// Returns the folder of these plugins' tmux sockets; for a plugin with a secret it is in its private folder.
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

    /// Returns what the user's rules hide from every process.
    async fn covers(&self) -> Result<CoverWalk, String> {
        let covers = Arc::clone(&self.covers);
        let found = tokio::task::spawn_blocking(move || covers()).await;
        let why = match found {
            Ok(Ok(found)) => return Ok(CoverWalk::new(found, Arc::clone(&self.covers))),
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

    /// Returns what passes of the user's environment, as far as a manifest requests it. A manifest is the plugin's own word: files
    /// that variables name are opened by the user's settings alone.
    fn grants(&self, members: &[usize], access: Option<&Access>) -> Grants {
        let asked = |name: &OsString| {
            access.is_none_or(|access| name.to_str().is_some_and(|name| access.has_variable(name)))
        };
        let (granted, _) = self.granted(members);
        // A pattern names no variable.
        let is_named = |name: &str| {
            let mut named = self.settings.env.iter().chain(&granted);
            named.any(|it| it == name)
        };
        match self.settings.js.environment {
            Environment::User => {
                let passed = std::env::vars_os().filter(|(name, _)| asked(name));
                Grants::of(passed, is_named)
            }
            Environment::List => Grants::default(),
        }
    }
}

impl<'a> Setup<'a> {
    fn new(launch: &'a Launch, name: &'a str, members: &'a [usize]) -> Self {
        let private_dir = launch.homes.join(launch.home_name(name, members));
        let tmux = launch
            .settings
            .sandbox
            .then(|| launch.tmux_of(members, &private_dir));
        Self {
            launch,
            name,
            members,
            private_dir,
            tmux,
        }
    }

    fn failed(&self, message: String) -> PluginError {
        PluginError::Process {
            process: self.name.to_owned(),
            message,
        }
    }

    /// Creates its folders, and returns the variables that point to them.
    fn folders(&self) -> Result<Variables, PluginError> {
        let failed = |folder: &Path, error: &std::io::Error| {
            let folder = folder.display();
            self.failed(format!("cannot create its folder {folder}: {error}"))
        };
        let of_user = self.members.iter().filter_map(|index| {
            let registry = &self.launch.registry;
            registry.with(*index, Plugin::package_of_user).flatten()
        });
        let own: Vec<String> = of_user.collect();
        let config = self.launch.user_config.as_deref();
        let made = home::prepare(&self.private_dir, config, &own);
        let mut variables = made.map_err(|error| failed(&self.private_dir, &error))?;
        if let Some(folder) = &self.tmux {
            variables.push(tmux::prepare(folder).map_err(|error| failed(folder, &error))?);
        }
        Ok(variables)
    }

    /// Returns its network access.
    async fn ticket(&self, access: Option<&Access>) -> Result<Option<ProxyTicket>, PluginError> {
        let launch = self.launch;
        if !launch.settings.sandbox {
            return Ok(None);
        }
        let ticket = launch
            .network
            .ticket(&launch.registry, self.members, access);
        ticket.await.map_err(|message| self.failed(message))
    }

    /// Returns its whole environment. The later one of two variables with one name wins: the paths of its own folders come last.
    fn environment(&self, granted_by_user: Variables, own: Variables) -> Variables {
        let (granted, _) = self.launch.granted(self.members);
        let extra: Vec<&str> = self
            .launch
            .settings
            .env
            .iter()
            .chain(&granted)
            .map(String::as_str)
            .collect();
        let mut env = env::allow_list(&extra);
        env.retain(|(name, _)| !name.as_encoded_bytes().starts_with(b"XDG_"));
        let known: Vec<OsString> = env.iter().map(|(name, _)| name.clone()).collect();
        let more = granted_by_user.into_iter();
        env.extend(more.filter(|(name, _)| !known.contains(name)));
        env.retain(|(name, _)| !own.iter().any(|(ours, _)| ours == name));
        env.extend(own);
        // Bun's transpiler cache is not stored next to sources: a plugin that writes to the cache would run in later processes.
        env.push(("BUN_RUNTIME_TRANSPILER_CACHE_PATH".into(), "0".into()));
        env
    }

    /// Returns what is hidden from it.
    async fn kept(&self) -> Result<CoverWalk, PluginError> {
        if self.launch.settings.sandbox {
            let covers = self.launch.covers().await;
            covers.map_err(|message| self.failed(message))
        } else {
            Ok(CoverWalk::default())
        }
    }

    /// Returns its sandbox, with what only the process itself gets: ports, and files named by the environment.
    async fn policy(
        &self,
        grants: Grants,
        ticket: Option<&ProxyTicket>,
        kept: CoverWalk,
    ) -> Result<Policy, PluginError> {
        let Grants { packages, read, .. } = grants;
        if !(packages.is_empty() && read.is_empty()) {
            tracing::info!(
                "[plugin:{}] named by the environment: packages {packages:?}, files {read:?}",
                self.name
            );
        }
        let policy = self
            .launch
            .sandbox(self.members, &self.private_dir, ticket, packages);
        let mut policy = policy
            .await
            .map_err(|error| self.failed(error.to_string()))?;
        policy.read.extend(read);
        // Files in the private folder belong to the plugin already; a rule of their own would follow a link there.
        let tmux = self.tmux.clone();
        let outside = tmux.filter(|folder| !folder.starts_with(&self.private_dir));
        policy.write.extend(outside);
        let (_, ports) = self.launch.granted(self.members);
        policy.bind_tcp.get_or_insert_default().extend(ports);
        policy.kept = kept;
        if self.launch.settings.strict && policy.level() < Level::Full {
            let why =
                "the system can enforce only a part of its sandbox, and `sandbox` is \"strict\"";
            return Err(self.failed(why.to_owned()));
        }
        Ok(policy)
    }
}
