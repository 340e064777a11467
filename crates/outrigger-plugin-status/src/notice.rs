//! What becomes of plugins while they run.

use std::sync::Arc;

use serde::Serialize;

use crate::breaker::BreakerState;
use crate::stage::LifeState;

/// Notified of what becomes of plugins while they run. Called where it happens; it must not block.
pub type NoticeFn = Arc<dyn Fn(Notice) + Send + Sync>;

/// What became of a plugin while it ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Notice {
    /// A breaker opened, let a trial through or closed (A8).
    Breaker {
        /// Plugin.
        plugin: String,
        /// Hook.
        hook: String,
        /// How the breaker stands now.
        state: BreakerState,
        /// For how long, when it opened.
        #[serde(skip_serializing_if = "Option::is_none")]
        pause_ms: Option<u64>,
    },
    /// It hung or crashed the process that it shared, and has one of its own now.
    Quarantine {
        /// Plugin.
        plugin: String,
        /// What it did.
        cause: String,
    },
    /// Its process was ended and is started again.
    Restart {
        /// Plugins that live in it.
        plugins: Vec<String>,
        /// Why.
        cause: String,
        /// Whose fault it was; none where that is not known or was nobody's.
        #[serde(skip_serializing_if = "Option::is_none")]
        culprit: Option<String>,
    },
    /// It has come to another state, or somebody tried to bring it there (C7).
    State {
        /// Plugin.
        plugin: String,
        /// How it is now.
        state: LifeState,
        /// What somebody asked for (`suspend`, `resume`, `reload`), or what happened (`register`, `activate`, `deactivate`,
        /// `fail`).
        action: String,
        /// The generation of its process.
        generation: u64,
        /// Why it did not come about; what ran before runs on.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// Its process is close to a limit and goes on: it burns CPU with no call open, or has hardly a file left.
    Limit {
        /// Plugins that live in it.
        plugins: Vec<String>,
        /// Which limit, and how far it is.
        cause: String,
    },
    /// A command hook says something to the user, or something is wrong with it that stops nothing.
    Command {
        /// The file that it stands in.
        plugin: String,
        /// The session that it was called for.
        #[serde(rename = "sessionID", skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        /// What it says.
        message: String,
    },
    /// Whether it may connect to a host was decided.
    Network {
        /// Plugins that live in the process.
        plugins: Vec<String>,
        /// Host as they named it.
        host: String,
        /// Port.
        port: u16,
        /// The address that it leads to, where that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        address: Option<String>,
        /// Code of the refusal; it may when there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        refused: Option<String>,
        /// Refusals before this one that were not reported.
        #[serde(skip_serializing_if = "is_zero")]
        unreported: u64,
    },
    /// Its process asked for what its manifest does not ask for, or as somebody who does not live in it.
    Refused {
        /// Plugins that live in the process.
        plugins: Vec<String>,
        /// The request: a route, a point, an event, a credential.
        request: String,
        /// What refuses it: `permissions.client`, `own.undeclared`, `credential.member`.
        rule: String,
    },
    /// It is no longer called.
    Off {
        /// Plugin.
        plugin: String,
        /// Why.
        cause: String,
    },
}

impl Notice {
    /// A state that a plugin came to by itself; how it came there is reported step by step as [`Progress`](crate::Progress).
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
