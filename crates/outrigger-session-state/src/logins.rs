//! Logins that wait for their user.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use outrigger_models::WaitingLogin;
use outrigger_plugins::Flow;
use outrigger_protocol::auth::Authorization;
use outrigger_stdx::sync::lock;

/// Time after which an abandoned login is given up.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// A login at a provider in progress.
pub enum PendingLogin {
    /// By a method of a plugin.
    Plugin(Flow),
    /// By a built-in method.
    BuiltIn(WaitingLogin),
}

impl PendingLogin {
    /// Returns the URL and the instructions for the user.
    pub fn begun(&self) -> &Authorization {
        match self {
            Self::Plugin(flow) => &flow.begun,
            Self::BuiltIn(waiting) => &waiting.begun,
        }
    }
}

/// Waiting logins, each with its start.
#[derive(Default)]
pub struct WaitingLogins(Mutex<BTreeMap<(LoginAt, String), Instant>>);

/// Target of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoginAt {
    /// A provider of models.
    Provider,
    /// An MCP server.
    McpServer,
}

impl WaitingLogins {
    /// Adds a waiting login.
    pub fn begin(&self, at: LoginAt, name: &str) {
        lock(&self.0).insert((at, name.to_owned()), Instant::now());
    }

    /// Removes a login; others may still wait.
    pub fn end(&self, at: LoginAt, name: &str) {
        lock(&self.0).remove(&(at, name.to_owned()));
    }

    /// Returns whether no login waits; abandoned ones are given up.
    pub fn is_empty(&self) -> bool {
        let mut waiting = lock(&self.0);
        waiting.retain(|_, begun| begun.elapsed() <= LOGIN_TIMEOUT);
        waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_one_login_leaves_the_others_waiting() {
        let waiting = WaitingLogins::default();
        waiting.begin(LoginAt::Provider, "a");
        waiting.begin(LoginAt::McpServer, "a");
        waiting.end(LoginAt::Provider, "a");
        waiting.end(LoginAt::Provider, "b");
        assert!(!waiting.is_empty());
        waiting.end(LoginAt::McpServer, "a");
        assert!(waiting.is_empty());
    }
}
