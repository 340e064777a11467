//! The SDK of plugins that bring none of their own.

use super::LoadOptions;
use crate::installer::Installer;
use crate::registry::Registry;
use crate::setup::{self, Modules};
use outrigger_plugin_status::{Progress, Stage};

pub(super) async fn modules(
    options: &LoadOptions,
    registry: &Registry,
    installer: Option<&Installer>,
) -> Option<Modules> {
    if !options.install_modules {
        return setup::modules(&options.data);
    }
    if let Some(modules) = setup::modules(&options.data) {
        return Some(modules);
    }
    let used = |index: usize| {
        registry.with(index, |plugin| {
            plugin.resolved.as_ref().is_some_and(setup::is_used_by)
        })
    };
    if !(0..registry.len()).any(|index| used(index) == Some(true)) {
        return None;
    }
    if setup::failed_lately(&options.data) {
        tracing::debug!("plugins run without the SDK: it could not be fetched a short time ago");
        return None;
    }
    let tell = |stage, cause| {
        (options.progress)(Progress {
            cause,
            ..Progress::at("sdk", setup::SPEC, stage)
        });
    };
    tell(Stage::Installing, None);
    match setup::setup(&options.data, installer, &options.spawner).await {
        Ok(modules) => {
            tell(Stage::Active, None);
            Some(modules)
        }
        Err(error) => {
            tracing::warn!("plugins run without the SDK: {error}");
            setup::note_failure(&options.data);
            tell(Stage::Skipped, Some(error.cause(Stage::Installing)));
            None
        }
    }
}
