//! The SDK for plugins that do not bundle it.

use outrigger_plugin_package::Installer;
use outrigger_plugin_package::host_modules::{self, Modules};
use outrigger_plugin_status::{Progress, Stage};

use crate::options::LoadOptions;
use outrigger_plugin_registry::Registry;
use outrigger_plugin_registry::error::PluginError;

pub(super) async fn modules(
    options: &LoadOptions,
    registry: &Registry,
    installer: Option<&Installer>,
) -> Option<Modules> {
    if !options.install_modules {
        return host_modules::modules(&options.data);
    }
    if let Some(modules) = host_modules::modules(&options.data) {
        return Some(modules);
    }
    let used = |index: usize| {
        registry.with(index, |plugin| {
            plugin
                .resolved
                .as_ref()
                .is_some_and(host_modules::is_used_by)
        })
    };
    if !(0..registry.count()).any(|index| used(index) == Some(true)) {
        return None;
    }
    if host_modules::failed_lately(&options.data) {
        tracing::debug!("plugins run without the SDK: it could not be fetched a short time ago");
        return None;
    }
    let tell = |stage, cause| {
        (options.progress)(Progress {
            cause,
            ..Progress::at("sdk", host_modules::SPEC, stage)
        });
    };
    tell(Stage::Installing, None);
    match host_modules::setup(&options.data, installer, &options.installers).await {
        Ok(modules) => {
            tell(Stage::Active, None);
            Some(modules)
        }
        Err(error) => {
            tracing::warn!("plugins run without the SDK: {error}");
            host_modules::note_failure(&options.data);
            tell(
                Stage::Skipped,
                Some(PluginError::from(error).cause(Stage::Installing)),
            );
            None
        }
    }
}
