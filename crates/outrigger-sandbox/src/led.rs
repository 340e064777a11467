//! Processes of a handle that reach hosts of a list and no others (`tools.hosts`): each is given a pass of one proxy, the
//! variables that name it, and a box in which nothing else connects.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use crate::calls::Calls;
use crate::error::SandboxError;
use crate::hosts::{Hosts, Reach};
use crate::policy::{Level, Policy};
use crate::proxy::{Client, ConnectFn, Connection, Pass, Proxy, Upstream};
use crate::spec::Spec;

/// Refusals that a process's output can name.
const NAMED: usize = 10;

/// What the processes of a handle reach ([`crate::Spawner::with_hosts`]).
pub struct Led {
    /// What they are called in messages: "shell commands".
    pub name: String,
    /// The hosts.
    pub reach: Reach,
    /// How one is granted; `HOST` stands for it.
    pub hint: String,
    /// Told of decisions, for the audit.
    pub told: ConnectFn,
    /// A process that the system cannot hold to it is not started.
    pub strict: bool,
    /// The proxy that this machine itself needs to get out.
    pub upstream: Option<Upstream>,
    /// Started with the first process.
    pub proxy: OnceCell<Proxy>,
}

impl std::fmt::Debug for Led {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Led")
            .field("name", &self.name)
            .field("reach", &self.reach)
            .finish_non_exhaustive()
    }
}

/// A process's way to its hosts, as long as it runs.
#[derive(Debug)]
pub(crate) struct Way {
    pass: Pass,
    refused: Arc<Mutex<Vec<String>>>,
}

impl Led {
    /// Leads the process to be.
    pub(crate) async fn lead(&self, spec: &mut Spec) -> Result<Way, SandboxError> {
        let failed = |source| SandboxError::Spawn {
            program: spec.program.clone(),
            source,
        };
        let proxy = self
            .proxy
            .get_or_try_init(|| Proxy::start(self.upstream.clone()))
            .await
            .map_err(failed)?;
        let refused = Arc::new(Mutex::new(Vec::new()));
        let (names, then) = (Arc::clone(&refused), Arc::clone(&self.told));
        let told: ConnectFn = Arc::new(move |it: &Connection| {
            if let Some(why) = it.refused {
                let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
                let name = format!("{}:{} ({})", it.host, it.port, why.code());
                if names.len() < NAMED && !names.contains(&name) {
                    names.push(name);
                }
            }
            then(it);
        });
        let client = Client {
            name: self.name.clone(),
            reach: self.reach.clone(),
            hint: self.hint.clone(),
            told,
        };
        let pass = proxy.admit(client).map_err(failed)?;
        let policy = spec.policy.get_or_insert_with(Policy::open);
        policy.connect_tcp = Some(vec![pass.port()]);
        // Names are looked up by the proxy, and a service on a UNIX socket connects where it likes.
        let calls = policy.calls.unwrap_or_default();
        policy.calls = Some(Calls {
            udp: false,
            unix_sockets: false,
            ..calls
        });
        if self.strict && policy.level() < Level::Full {
            return Err(SandboxError::Strict {
                program: spec.program.clone(),
            });
        }
        spec.door = Some(pass.door());
        for (name, value) in pass.variables() {
            spec.env.push((name.into(), value.into()));
        }
        Ok(Way { pass, refused })
    }
}

impl Way {
    /// Says whose it is.
    pub(crate) fn belongs_to(&self, pid: u32) {
        self.pass.belongs_to(pid);
    }

    /// Hosts that were refused so far, with the port and why, each once.
    pub(crate) fn refused(&self) -> Vec<String> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.clone()
    }
}

/// Hosts of a list, less forbidden ones; without a list all there are, this machine's among them.
#[must_use]
pub fn reach(hosts: Option<Hosts>, forbidden: Hosts) -> Reach {
    Reach {
        asked: None,
        granted: hosts.unwrap_or_else(Hosts::all),
        forbidden,
    }
}
