//! The plugins of a project while they run: their list, their processes, their hook chains, and what they were loaded from.

use std::sync::{Arc, OnceLock};

use futures_util::future::join_all;
use serde_json::Value;

use crate::options::LoadOptions;
use outrigger_plugin_hooks::host::HookHost;
use outrigger_plugin_registry::Registry;
use outrigger_plugin_registry::access::settings::PluginSettings;
use outrigger_plugin_supervisor::group::{Group, Live};
use outrigger_plugin_supervisor::launch::Launch;
use outrigger_plugin_supervisor::processes::Processes;

/// Shared by [`crate::Plugins`] and what plugins contribute.
pub(crate) struct PluginHost {
    pub(crate) registry: Arc<Registry>,
    pub(crate) processes: Arc<Processes>,
    pub(crate) settings: Arc<PluginSettings>,
    pub(crate) hooks: Arc<HookHost>,
    pub(crate) loading: Loading,
}

/// What plugins were loaded from, and what it takes to load one again.
#[derive(Default)]
pub(crate) struct Loading {
    /// What everything was loaded from; none where there are no plugins at all.
    pub(crate) options: Option<Arc<LoadOptions>>,
    /// What processes are started with, once there was one to start.
    pub(crate) launch: OnceLock<Arc<Launch>>,
    /// The configuration as the `config` hooks left it.
    pub(crate) configured: Arc<OnceLock<Value>>,
    /// One change of states at a time.
    pub(crate) changing: tokio::sync::Mutex<()>,
}

impl PluginHost {
    /// The process that a plugin lives in now ([`Processes::live`]).
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn live(&self, plugin: usize) -> Result<(Arc<Group>, Arc<Live>), String> {
        self.processes.live(&self.registry, plugin).await
    }

    /// Plugins that bring authentication handle secrets, and no other plugin's code may live beside them: where one turns
    /// out to be in a shared process, it gets one of its own, and that process is started again without it.
    pub(crate) async fn apart(&self) -> Vec<Arc<Group>> {
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
    pub(crate) async fn run(&self, fresh: Vec<Arc<Group>>) {
        for group in &fresh {
            self.processes.add(group);
        }
        join_all(fresh.iter().map(|group| group.live())).await;
        // One that came apart while it loaded has made others.
        let all = self.processes.all();
        join_all(all.iter().map(|group| group.live())).await;
    }
}
