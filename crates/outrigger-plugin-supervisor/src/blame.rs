//! Blame: which plugin is responsible for a call that was not answered in time.

use std::time::Duration;

use outrigger_js::JsError;
use outrigger_protocol::rpc::Enter;

use crate::group::{Group, Live};
use crate::launch::{Failed, Held};
use outrigger_plugin_registry::error::PluginError;

/// Time for a process to confirm that it takes requests, once a call is late: a busy machine must not make a hang look like
/// a spin, and the next call must work within 2 s (A7).
pub const PING: Duration = Duration::from_millis(400);

/// Findings about a late call.
pub struct Late {
    /// Index of the plugin at fault; `None` if unknown.
    pub culprit: Option<usize>,
    /// Description for display.
    pub who: String,
}

/// Formats the entered code: `a (event)`, `a (tool:x) or b (event)`.
pub fn named(entered: &[Enter]) -> String {
    if entered.is_empty() {
        return "code that no call entered (a timer, say)".to_owned();
    }
    // Each plugin once, by what it was entered for: the cause states that it ended the process in there.
    let first = |(at, enter): &(usize, &Enter)| {
        let mut before = entered.iter().take(*at);
        before.all(|other| other.plugin != enter.plugin)
    };
    entered
        .iter()
        .enumerate()
        .filter(first)
        .map(|(_, enter)| format!("{} ({})", enter.plugin, enter.what))
        .collect::<Vec<_>>()
        .join(" or ")
}

/// Determines the fault of a late call. A process that takes requests is waiting for something that the late call should do.
/// One that does not is held up by code that was entered and has not yielded the thread since; if there is none, or it
/// belongs to several plugins, the culprit is unknown: a waiting call is not blamed for another plugin's timer.
///
/// `what` is the hook or `tool:NAME` of the call, and `reached` states that its code was entered.
pub async fn late(
    group: &Group,
    live: &Live,
    index: usize,
    plugin: &str,
    what: &str,
    reached: bool,
) -> Late {
    let waits = reached && live.process.responds(PING).await;
    let suspects = live.process.suspects();
    let culprit = match live.given_up() {
        _ if waits => Some(index),
        // Another call was late at the same moment and has determined it already.
        Some(fault) => fault.culprit,
        None => group.sole_suspect(&suspects),
    };
    let mine = reached && culprit == Some(index);
    let who = if mine {
        format!("{plugin} ({what})")
    } else {
        named(&suspects)
    };
    Late { culprit, who }
}

/// Describes a process that exited on its own; `memory` is its limit in bytes.
pub(crate) fn ended_by_itself(ended: &outrigger_js::Closed, memory: u64) -> String {
    let status = ended.status.as_deref().unwrap_or("unknown status");
    // Messages of Bun and Node after a failed allocation that they cannot do without.
    const NO_MEMORY: &[&str] = &["out of memory", "0xbbadbeef", "allocation failed"];
    let says = |word: &&str| {
        let mut lines = ended.stderr.iter();
        lines.any(|line| line.to_ascii_lowercase().contains(word))
    };
    let limit = if NO_MEMORY.iter().any(says) {
        let mib = memory >> 20;
        format!(", out of memory (limits.plugin_memory_mb is {mib})")
    } else {
        String::new()
    };
    match ended.stderr.last() {
        Some(line) => format!("it ended by itself ({status}{limit}): {line}"),
        None => format!("it ended by itself ({status}{limit})"),
    }
}

/// Names the memory limit if the system enforces it (A13), however the end of the process is observed.
impl Held {
    /// Returns why a process exited, with the limit if it was killed for that.
    pub(crate) fn cause(&self, cause: String, memory: u64) -> String {
        if self.cgroup.as_ref().is_none_or(|group| group.killed() == 0) {
            return cause;
        }
        let mib = memory >> 20;
        format!(
            "it took more memory than the {mib} MiB of limits.plugin_memory_mb, faster than could be watched, and the system killed it: {cause}"
        )
    }

    /// Like [`Self::cause`], for a process that exited while it loaded its plugins.
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

/// Warns of a process that did not exit when asked, with the plugin whose `dispose` was running. A process that had exited
/// before is ignored.
pub(crate) fn warn_undisposed(process: &str, error: &JsError) {
    match error {
        JsError::CallTimeout {
            entered: Some(enter),
            ms,
            ..
        } => tracing::warn!(
            "plugin {}: its {} did not end within {ms} ms, and its process was killed",
            enter.plugin,
            enter.what
        ),
        JsError::CallTimeout { ms, .. } => tracing::warn!(
            "plugin process {process}: it did not end within {ms} ms, and was killed"
        ),
        error => tracing::debug!("plugin process {process}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_named_once() {
        let enter = |plugin: &str, what: &str| Enter {
            plugin: plugin.into(),
            what: what.into(),
            call: None,
        };
        let entered = [
            enter("a", "chat.message"),
            enter("b", "event"),
            enter("a", "process.exit"),
        ];
        assert_eq!(named(&entered), "a (chat.message) or b (event)");
        assert!(named(&[]).contains("a timer"));
    }
}
