//! Processes that may connect only to listed hosts (`tools.hosts`): each gets a ticket for one proxy, the variables that
//! name it, and a sandbox in which nothing else can connect.

use std::sync::{Arc, Mutex};

use outrigger_network_proxy::hosts::Reach;
use outrigger_network_proxy::{Client, ConnectFn, Connection, Proxy, ProxyTicket, Upstream};
use outrigger_stdx::sync::lock;
use tokio::sync::OnceCell;

use crate::error::SandboxError;
use crate::policy::Policy;
use crate::policy::level::Level;
use crate::processes::socket_owners::ProcSockets;
use crate::seccomp::calls::Calls;
use crate::spawn::spec::Spec;

/// Maximum number of refusals named in a process's output.
const MAX_NAMED: usize = 10;

/// The hosts that processes of a handle may connect to ([`crate::Spawner::with_hosts`]).
pub struct ScopedNetwork {
    /// Their name in messages: "shell commands".
    pub name: String,
    /// The hosts.
    pub reach: Reach,
    /// How to grant a host; `HOST` is its placeholder.
    pub hint: String,
    /// Called with each decision, for the audit.
    pub on_connect: ConnectFn,
    /// A process is not started if the system cannot enforce this.
    pub strict: bool,
    /// The proxy that this machine itself needs for outgoing connections.
    pub upstream: Option<Upstream>,
    /// Started with the first process.
    pub proxy: OnceCell<Proxy>,
}

impl std::fmt::Debug for ScopedNetwork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScopedNetwork")
            .field("name", &self.name)
            .field("reach", &self.reach)
            .finish_non_exhaustive()
    }
}

/// A process's access to its hosts while it runs.
#[derive(Debug)]
pub(crate) struct NetworkLease {
    ticket: ProxyTicket,
    refused: Arc<Mutex<Vec<String>>>,
}

impl ScopedNetwork {
    /// Adds the access to a process before it starts.
    pub(crate) async fn apply(&self, spec: &mut Spec) -> Result<NetworkLease, SandboxError> {
        let failed = |source| SandboxError::Spawn {
            program: spec.program.clone(),
            source,
        };
        let proxy = self
            .proxy
            .get_or_try_init(|| Proxy::start(self.upstream.clone(), ProcSockets))
            .await
            .map_err(failed)?;
        let refused = Arc::new(Mutex::new(Vec::new()));
        let (names, then) = (Arc::clone(&refused), Arc::clone(&self.on_connect));
        let on_connect: ConnectFn = Arc::new(move |it: &Connection| {
            if let Some(why) = it.refused {
                let mut names = lock(&names);
                let name = format!("{}:{} ({})", it.host, it.port, why.code());
                if names.len() < MAX_NAMED && !names.contains(&name) {
                    names.push(name);
                }
            }
            then(it);
        });
        let client = Client {
            name: self.name.clone(),
            reach: self.reach.clone(),
            hint: self.hint.clone(),
            on_connect,
        };
        let ticket = proxy.admit(client).map_err(failed)?;
        let policy = spec.policy.get_or_insert_with(Policy::open);
        policy.connect_tcp = Some(vec![ticket.port()]);
        // Names are resolved by the proxy, and a service on a UNIX socket could connect anywhere.
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
        spec.proxy_redirect = Some(ticket.redirect());
        for (name, value) in ticket.variables() {
            spec.env.push((name.into(), value.into()));
        }
        Ok(NetworkLease { ticket, refused })
    }
}

impl NetworkLease {
    /// Sets the process that the access belongs to.
    pub(crate) fn belongs_to(&self, pid: u32) {
        self.ticket.belongs_to(pid);
    }

    /// Returns the hosts refused so far, with the port and the reason, each once.
    pub(crate) fn refused(&self) -> Vec<String> {
        let refused = lock(&self.refused);
        refused.clone()
    }
}
