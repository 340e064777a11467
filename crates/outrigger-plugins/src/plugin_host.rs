//! The running plugins of a project: their list, their processes, their hook chains, and their load options.

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

/// Shared by [`crate::Plugins`] and the contributions of plugins.
pub(crate) struct PluginHost {
    pub(crate) registry: Arc<Registry>,
    pub(crate) processes: Arc<Processes>,
    pub(crate) settings: Arc<PluginSettings>,
    pub(crate) hooks: Arc<HookHost>,
    pub(crate) loading: Loading,
}

/// Options and state for loading and reloading plugins.
#[derive(Default)]
pub(crate) struct Loading {
    /// Load options; `None` if there are no plugins at all.
    pub(crate) options: Option<Arc<LoadOptions>>,
    /// Start options of processes, set by the first start.
    pub(crate) launch: OnceLock<Arc<Launch>>,
    /// The configuration as the `config` hooks left it.
    pub(crate) configured: Arc<OnceLock<Value>>,
    /// Allows one state change at a time.
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

    /// Plugins with authentication handle secrets, so no other plugin's code may share their process. Moves such a plugin
    /// out of a shared process into its own, and restarts the shared process without it.
    pub(crate) async fn apart(&self) -> Vec<Arc<Group>> {
        let mut fresh = Vec::new();
        for group in self.processes.all() {
            let members = group.members().await;
            let secret = |index: &usize| self.registry.brings_auth(*index);
            let leave: Vec<usize> = members.iter().copied().filter(secret).collect();
            if members.len() < 2 || leave.is_empty() {
                continue;
            }
            // All of them handle secrets: the first may stay.
            let stays = usize::from(leave.len() == members.len());
            let leave = leave.get(stays..).unwrap_or_default();
            group.restart_without(leave).await;
            for index in leave {
                let one = group.split_off(self.processes.key(), *index);
                self.registry.assign(*index, one.key);
                fresh.push(one);
            }
        }
        fresh
    }

    /// Starts the processes concurrently. They are registered first: a restart may need them.
    pub(crate) async fn run(&self, fresh: Vec<Arc<Group>>) {
        for group in &fresh {
            self.processes.add(group);
        }
        join_all(fresh.iter().map(|group| group.live())).await;
        // A process that was split while loading has created others.
        let all = self.processes.all();
        join_all(all.iter().map(|group| group.live())).await;
    }
}
