//! The limit of memory names itself when the system enforces it (A13), whichever way the end of the process is seen.

use crate::error::PluginError;
use crate::launch::{Failed, Held};

impl Held {
    /// Why a process is gone, with the limit where it was killed for that.
    pub(crate) fn cause(&self, cause: String, memory: u64) -> String {
        if self.cgroup.as_ref().is_none_or(|group| group.killed() == 0) {
            return cause;
        }
        let mib = memory >> 20;
        format!(
            "it took more memory than the {mib} MiB of limits.plugin_memory_mb, faster than could be watched, and the system killed it: {cause}"
        )
    }

    /// The same for one that ended while it loaded its plugins.
    pub(crate) fn explain(&self, failed: Failed, memory: u64) -> Failed {
        match failed {
            Failed::Culprit(
                index,
                PluginError::Crashed {
                    plugin,
                    what,
                    message,
                },
            ) => {
                let message = self.cause(message, memory);
                Failed::Culprit(
                    index,
                    PluginError::Crashed {
                        plugin,
                        what,
                        message,
                    },
                )
            }
            failed => failed,
        }
    }
}
