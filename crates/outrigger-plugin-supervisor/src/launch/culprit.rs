//! Blame for a process that fails before its plugins are loaded.

use outrigger_js::{JsError, JsProcess};

use super::{Failed, Launch, Stuck};
use crate::blame::PING;
use crate::host_proxy::HostProxy;
use outrigger_plugin_registry::error::PluginError;

impl Launch {
    // Determines the culprit. Imports run concurrently: with several open, the last report of the process proves nothing.
    // A plugin function that was entered and has not returned does, unless it waits and the process is held up by
    // something else, such as a timer of a plugin that was ready before.
    pub(super) async fn blame(
        &self,
        process: &JsProcess,
        host_proxy: &HostProxy,
        batch: &[usize],
        stuck: Stuck,
    ) -> Failed {
        let id = |index: &usize| {
            self.registry
                .with(*index, |plugin| plugin.id.clone())
                .unwrap_or_default()
        };
        let stage = |index: &usize| host_proxy.stage_of(&id(index)).unwrap_or_default();
        let starting = batch.iter().find(|index| stage(index) == "starting");
        if let Some(index) = starting {
            let suspects = process.suspects();
            let holds = suspects.iter().any(|enter| enter.plugin == id(index));
            let others = !host_proxy.is_alone(&id(index)) && !holds;
            if others && !(process.is_alive() && process.responds(PING).await) {
                // Imports start together, and it is unknown which of them have ended.
                let mut known = suspects.iter().filter(|enter| enter.what != "import");
                return match (known.next(), known.next()) {
                    (Some(enter), None) => match self.registry.index_of(&enter.plugin) {
                        Some(index) => {
                            Failed::Culprit(index, self.stuck(&enter.plugin, &enter.what, stuck))
                        }
                        None => Failed::Unclear,
                    },
                    _ => Failed::Unclear,
                };
            }
        }
        let open: Vec<&usize> = batch
            .iter()
            .filter(|index| !matches!(stage(index).as_str(), "ready" | "failed"))
            .filter(|index| {
                process
                    .all_entered()
                    .iter()
                    .any(|enter| enter.plugin == id(index))
            })
            .collect();
        let (index, what) = match (starting, open.as_slice(), batch) {
            (Some(index), ..) => (*index, "server"),
            (None, [index], _) => (**index, "import"),
            (None, [], [index]) => (*index, "import"),
            // It is responsive but has not finished loading: loading one by one finds the culprit.
            (None, [], _)
                if matches!(
                    &stuck,
                    Stuck::Error(JsError::Plugin { .. } | JsError::BadAnswer { .. })
                ) =>
            {
                return Failed::Unclear;
            }
            (None, [], _) => return Failed::Process(self.silent(process, &stuck)),
            (None, ..) => return Failed::Unclear,
        };
        Failed::Culprit(index, self.stuck(&id(&index), what, stuck))
    }

    fn stuck(&self, plugin: &str, what: &str, stuck: Stuck) -> PluginError {
        let (plugin, what) = (plugin.to_owned(), what.to_owned());
        let ms = u64::try_from(self.settings.deadlines.load.as_millis()).unwrap_or(u64::MAX);
        match stuck {
            Stuck::Silent => PluginError::Hung { plugin, what, ms },
            Stuck::Error(error) => PluginError::Crashed {
                plugin,
                what,
                message: error.to_string(),
            },
        }
    }

    fn silent(&self, process: &JsProcess, stuck: &Stuck) -> PluginError {
        let message = match stuck {
            Stuck::Silent => "it did not answer while it loaded plugins".to_owned(),
            Stuck::Error(error) => error.to_string(),
        };
        PluginError::Process {
            process: process.name().to_owned(),
            message,
        }
    }
}
