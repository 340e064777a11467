//! Notices about running plugins.

use std::sync::Arc;

use serde::Serialize;

use crate::breaker::BreakerState;
use crate::stage::LifeState;

/// Receives notices about running plugins. Called where they occur; must not block.
pub type NoticeFn = Arc<dyn Fn(Notice) + Send + Sync>;

/// An event of a running plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Notice {
    /// A breaker opened, let a trial through or closed (A8).
    Breaker {
        /// Id of the plugin.
        plugin: String,
        /// Name of the hook.
        hook: String,
        /// New state of the breaker.
        state: BreakerState,
        /// For how long, if it opened.
        #[serde(skip_serializing_if = "Option::is_none")]
        pause_ms: Option<u64>,
    },
    /// It hung or crashed the process that it shared, and now has its own.
    Quarantine {
        /// Id of the plugin.
        plugin: String,
        /// Cause.
        cause: String,
    },
    /// Its process was killed and is restarting.
    Restart {
        /// Plugins in the process.
        plugins: Vec<String>,
        /// Cause.
        cause: String,
        /// Plugin at fault; `None` if unknown or none.
        #[serde(skip_serializing_if = "Option::is_none")]
        culprit: Option<String>,
    },
    /// Its state changed, or a requested change failed (C7).
    State {
        /// Id of the plugin.
        plugin: String,
        /// Its new state.
        state: LifeState,
        /// Requested action (`suspend`, `resume`, `reload`), or event (`register`, `activate`, `deactivate`, `fail`).
        action: String,
        /// The generation of its process.
        generation: u64,
        /// Why the change failed; the running plugin is unaffected.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// Its process is close to a limit and continues: it uses CPU with no call open, or is running out of file descriptors.
    Limit {
        /// Plugins in the process.
        plugins: Vec<String>,
        /// The limit and the current value.
        cause: String,
    },
    /// A command hook has a message for the user, or a problem that does not stop it.
    Command {
        /// The file that defines it.
        plugin: String,
        /// The session that it was called for.
        #[serde(rename = "sessionID", skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        /// The message.
        message: String,
    },
    /// A connection to a host was allowed or refused.
    Network {
        /// Plugins in the process.
        plugins: Vec<String>,
        /// Host as named by the plugin.
        host: String,
        /// Port.
        port: u16,
        /// Its address, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        address: Option<String>,
        /// Code of the refusal; `None` if allowed.
        #[serde(skip_serializing_if = "Option::is_none")]
        refused: Option<String>,
        /// Number of unreported refusals before this one.
        #[serde(skip_serializing_if = "is_zero")]
        unreported: u64,
    },
    /// Its process requested something that its manifest does not declare, or claimed to be a plugin that it does not run.
    Refused {
        /// Plugins in the process.
        plugins: Vec<String>,
        /// The request: a route, a point, an event, a credential.
        request: String,
        /// The rule that refuses it: `permissions.client`, `custom_point.undeclared`, `credential.member`.
        rule: String,
    },
    /// A session waits for a hook that takes long, or no longer does.
    Waiting {
        /// Id of the plugin.
        plugin: String,
        /// Name of the hook.
        hook: String,
        /// The session that waits.
        #[serde(rename = "sessionID")]
        session_id: String,
        /// How long it has waited, in milliseconds.
        ms: u64,
        /// The wait is over.
        over: bool,
    },
    /// It is no longer called.
    Off {
        /// Id of the plugin.
        plugin: String,
        /// Cause.
        cause: String,
    },
}

impl Notice {
    /// Returns whether it is for display only: clients are notified, and nothing is stored.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        self.is_of_itself() || matches!(self, Self::Waiting { .. })
    }

    /// Returns whether the plugin reached the state on its own; the steps are reported as [`Progress`](crate::Progress).
    #[must_use]
    pub fn is_of_itself(&self) -> bool {
        let own = ["register", "activate", "deactivate", "fail"];
        matches!(self, Self::State { action, .. } if own.contains(&action.as_str()))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
