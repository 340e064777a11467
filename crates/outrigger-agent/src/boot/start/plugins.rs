//! Loading the plugins that may run.

use std::path::PathBuf;
use std::sync::Arc;

use outrigger_config::settings::{Install, Sandbox};
use outrigger_permissions::{command_sandbox, folder_trust, sandbox_policy};
use outrigger_plugins::{LoadOptions, Notice, NoticeFn, PluginSettings, Plugins};
use outrigger_workspace::ProjectLocation;
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;

use super::bootstrap::Bootstrap;
use crate::boot::notices;
use crate::plugin_api::plugin_admission;
use outrigger_stdx::clock::now_ms;

impl Bootstrap {
    /// Loads the plugins. Changes of their state arrive through the channel.
    pub(super) async fn load_plugins(&mut self) -> (Plugins, UnboundedReceiver<Notice>) {
        let (notice, notices) = notices::channel();
        let mut options = self.load_options(notice);
        options.commands = self.hooks.take().and_then(|hooks| {
            let spawner = self.commands_spawner.clone();
            hooks.load(&self.boot, &self.bridge, spawner, &self.helpers.programs)
        });
        for displaced in plugin_admission::displaced(&self.admitted) {
            (options.progress)(displaced);
        }
        (Plugins::load(options).await, notices)
    }

    fn load_options(&self, notice: NoticeFn) -> LoadOptions {
        let (boot, config) = (&self.boot, &self.config);
        let (plugins, skipped) = self.admitted.to_load(config);
        let progress = folder_trust::without_repeats(config, Arc::clone(&boot.progress));
        let covers = sandbox_policy::plugin_covers(config, &self.location, &boot.folders);
        let strict = config.settings.sandbox == Sandbox::Strict;
        let installer_covers = sandbox_policy::installer_covers(Arc::clone(&covers), &boot.folders);
        let installers = command_sandbox::network::installers(&self.spawner, config, &self.store);
        LoadOptions {
            plugins,
            skipped,
            admits: Some(plugin_admission::again(boot, &self.location)),
            bundled: self.admitted.running_bundled(),
            settings: PluginSettings {
                policies: config.policies.clone(),
                ..PluginSettings::from(&config.settings)
            },
            directory: self.location.directory.clone(),
            worktree: worktree(&self.location),
            project: json!(self.project),
            server_url: outrigger_plugins::SERVER_URL.to_owned(),
            installers: installers.with_covers(installer_covers, strict),
            covers,
            spawner: self.spawner.clone(),
            runtimes: boot.runtimes(),
            data: boot.folders.data.clone(),
            cache: boot.folders.cache.clone(),
            user_config: Some(boot.folders.config.join("opencode")),
            install_modules: boot.install_modules && config.settings.js.install != Install::Never,
            commands: None,
            consent: boot.consent.clone(),
            trust: boot.trust.clone(),
            let_count: folder_trust::let_count(config),
            handler: Arc::clone(&self.bridge) as Arc<dyn outrigger_js::HostHandler>,
            progress: outrigger_audit::progress(&self.store, progress),
            notice: outrigger_audit::notice(&self.store, notice),
            redact: Some(Arc::new(outrigger_audit::redact(&self.store))),
            now: now_ms,
        }
    }
}

/// Returns the worktree as OpenCode reports it: `/` outside version control.
pub(crate) fn worktree(location: &ProjectLocation) -> PathBuf {
    if location.git {
        location.worktree.clone()
    } else {
        PathBuf::from("/")
    }
}
