//! The only way out of a sandbox with network rules: an HTTP proxy on loopback that identifies its clients.
//!
//! A sandboxed process may open TCP connections to this port and to no other. It identifies itself with the token of its
//! [`ProxyTicket`]. The proxy resolves names itself, checks every address against the [`Reach`] of that process, and connects
//! to the checked address. `CONNECT` creates a tunnel; `http://` URLs in absolute form are forwarded, one request per
//! connection.

mod connection;
mod pending;
mod refusal;
mod request_head;
mod route;
mod upstream;

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outrigger_stdx::sync::lock;
use outrigger_stdx::tally::Tally;
use rustix::process::{Resource, getrlimit};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::hosts::{Reach, Refusal};
use crate::process_sockets::ProcessSockets;
use crate::redirect::ProxyRedirect;
pub use upstream::Upstream;

/// Maximum number of connections of one client, and of all clients; fewer if this process may not open many files. Each takes
/// two.
const MAX_PER_CLIENT: usize = 128;
const MAX_CONNECTIONS: usize = 1024;
/// The share of this process's open files for connections of clients: one in `PART` for the places, two files each.
const PART: u64 = 8;
/// Maximum number of reported refusals of one client within [`PERIOD`].
const MAX_REPORTS: u32 = 30;
const PERIOD: Duration = Duration::from_secs(60);
/// Maximum number of hosts of one client that are remembered as reported.
const MAX_REMEMBERED: usize = 1000;

/// A decision about a connection, for the audit (C13). A granted host is reported once for each client, a refusal each time,
/// up to a limit of 30 a minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The client, as in [`Client::name`].
    pub client: String,
    /// The requested host, or what was in its place.
    pub host: String,
    /// Port.
    pub port: u16,
    /// The target, connected or refused; unknown if the name was refused already.
    pub address: Option<IpAddr>,
    /// Why it was refused; `None` if it was not.
    pub refused: Option<Refusal>,
    /// Unreported refusals before this one.
    pub unreported: u64,
}

/// Called with each decision. It must not block.
pub type ConnectFn = Arc<dyn Fn(&Connection) + Send + Sync>;

/// Checks each address in addition to [`Client::reach`]; gets the requested host and the port. It must not block.
pub type CheckFn = Arc<dyn Fn(&str, u16, IpAddr) -> Result<(), Refusal> + Send + Sync>;

/// A client of the proxy, and its permissions.
#[derive(Clone)]
pub struct Client {
    /// Its name in messages and in the audit.
    pub name: String,
    /// What it may connect to.
    pub reach: Reach,
    /// How to grant it a host; `HOST` is a placeholder.
    pub hint: String,
    /// Called with each decision.
    pub on_connect: ConnectFn,
}

impl Client {
    /// Returns why it may not request this URL (`https://host:port/…`), with the grant that is needed, as far as that is
    /// known without looking the name up.
    #[must_use]
    pub fn refuses(&self, url: &str) -> Option<String> {
        let (host, port) = crate::hosts::of_url(url)?;
        let refused = self.reach.before(&host, port).err()?;
        let (message, grant) = refusal::words(self, &host, port, refused);
        Some(match grant {
            Some(grant) => format!("{message}; {grant}"),
            None => message,
        })
    }
}

/// The proxy's data about a client.
struct ClientState {
    client: Client,
    check: Option<CheckFn>,
    /// The process that has the ticket, 0 until it exists.
    pid: AtomicU32,
    open: AtomicUsize,
    sent: AtomicU64,
    received: AtomicU64,
    hosts: Mutex<HashSet<(String, u16)>>,
    refusals: Mutex<Tally>,
}

impl ClientState {
    /// Whether it may connect to an address under this name.
    fn may(&self, host: &str, port: u16, address: IpAddr) -> Result<(), Refusal> {
        self.client.reach.address(host, port, address)?;
        match &self.check {
            Some(check) => check(host, port, address),
            None => Ok(()),
        }
    }

    fn report(&self, host: &str, port: u16, address: Option<IpAddr>, refused: Option<Refusal>) {
        let unreported = match refused {
            None => {
                let mut hosts = lock(&self.hosts);
                let new = hosts.len() < MAX_REMEMBERED && hosts.insert((host.to_owned(), port));
                new.then_some(0)
            }
            Some(_) => lock(&self.refusals).take(Instant::now()),
        };
        let Some(unreported) = unreported else { return };
        (self.client.on_connect)(&Connection {
            client: self.client.name.clone(),
            host: host.to_owned(),
            port,
            address,
            refused,
            unreported,
        });
    }
}

/// The clients by token.
#[derive(Default)]
struct Clients(RwLock<HashMap<String, Arc<ClientState>>>);

impl Clients {
    fn get(&self, token: &str) -> Option<Arc<ClientState>> {
        let clients = self.0.read().unwrap_or_else(PoisonError::into_inner);
        clients.get(token).cloned()
    }

    fn all(&self) -> Vec<Arc<ClientState>> {
        let clients = self.0.read().unwrap_or_else(PoisonError::into_inner);
        clients.values().cloned().collect()
    }
}

/// A running proxy. Dropping it ends it and its connections.
pub struct Proxy {
    port: u16,
    clients: Arc<Clients>,
    task: JoinHandle<()>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl Proxy {
    /// Starts a proxy on a loopback port that the system picks. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The system's error if there is no port.
    pub async fn start(
        upstream: Option<Upstream>,
        sockets: impl ProcessSockets + 'static,
    ) -> io::Result<Self> {
        Self::start_with(upstream, Arc::new(sockets), pending::HEAD_TIMEOUT).await
    }

    async fn start_with(
        upstream: Option<Upstream>,
        sockets: Arc<dyn ProcessSockets>,
        head_timeout: Duration,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let clients = Arc::new(Clients::default());
        let places = usize::try_from(open_files_limit() / PART).unwrap_or(MAX_CONNECTIONS);
        let places = places.clamp(16, MAX_CONNECTIONS);
        let shared = connection::Shared {
            pending: pending::Pending::new(
                Arc::clone(&clients),
                Arc::clone(&sockets),
                port,
                head_timeout,
            ),
            sockets,
            places: Arc::new(Semaphore::new(places)),
            max_per_client: MAX_PER_CLIENT.min(places / 2),
            refused: Semaphore::new(connection::MAX_REFUSED),
            clients: Arc::clone(&clients),
            upstream: upstream.map(Arc::new),
            port,
        };
        let task = tokio::spawn(connection::accept(listener, Arc::new(shared)));
        Ok(Self {
            port,
            clients,
            task,
        })
    }

    /// Returns its port on `127.0.0.1`.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Admits a client while its ticket is held.
    ///
    /// # Errors
    /// The system's error if it has no random numbers.
    pub fn admit(&self, client: Client) -> io::Result<ProxyTicket> {
        self.admit_known(client, None)
    }

    /// The same for a client whose rules change while it runs: `check` is asked about each address as well.
    ///
    /// # Errors
    /// As [`Proxy::admit`].
    pub fn admit_checked(&self, client: Client, check: CheckFn) -> io::Result<ProxyTicket> {
        self.admit_known(client, Some(check))
    }

    fn admit_known(&self, client: Client, check: Option<CheckFn>) -> io::Result<ProxyTicket> {
        let token = outrigger_stdx::random::token::<16>()?;
        let known = Arc::new(ClientState {
            client,
            check,
            pid: AtomicU32::new(0),
            open: AtomicUsize::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            hosts: Mutex::default(),
            refusals: Mutex::new(Tally::new(MAX_REPORTS, PERIOD)),
        });
        let mut clients = self
            .clients
            .0
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        clients.insert(token.clone(), Arc::clone(&known));
        drop(clients);
        Ok(ProxyTicket {
            token,
            port: self.port,
            known,
            clients: Arc::clone(&self.clients),
        })
    }
}

/// Returns how many files this process may have open.
fn open_files_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A client's access. On drop, existing connections continue, and no new ones are possible.
pub struct ProxyTicket {
    token: String,
    port: u16,
    known: Arc<ClientState>,
    clients: Arc<Clients>,
}

/// The token is not shown: anyone who has it is that client.
impl std::fmt::Debug for ProxyTicket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyTicket")
            .field("client", &self.known.client.name)
            .finish_non_exhaustive()
    }
}

impl ProxyTicket {
    /// Returns the proxy's URL, including the token.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://outrigger:{}@127.0.0.1:{}", self.token, self.port)
    }

    /// Returns the proxy's port on `127.0.0.1`.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns how connections of its process without proxy support are redirected to it.
    #[must_use]
    pub fn redirect(&self) -> ProxyRedirect {
        let credentials = STANDARD.encode(format!("outrigger:{}", self.token));
        ProxyRedirect::new(self.port, format!("Basic {credentials}"))
    }

    /// Returns the variables by which programs find their proxy. `NO_PROXY` is set and empty: what bypasses the proxy is
    /// refused.
    #[must_use]
    pub fn variables(&self) -> Vec<(String, String)> {
        let url = self.url();
        let ways = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].into_iter();
        let both = ways.flat_map(|name| [name.to_owned(), name.to_ascii_lowercase()]);
        let none = ["NO_PROXY", "no_proxy"].map(|name| (name.to_owned(), String::new()));
        both.map(|name| (name, url.clone())).chain(none).collect()
    }

    /// Sets the process that has it: ports on which this one, or its descendants, listen are its own, and it may connect to
    /// them.
    pub fn belongs_to(&self, pid: u32) {
        self.known.pid.store(pid, Ordering::Relaxed);
    }

    /// Returns the bytes sent and received so far.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (load(&self.known.sent), load(&self.known.received))
    }
}

impl Drop for ProxyTicket {
    fn drop(&mut self) {
        let mut clients = self
            .clients
            .0
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        clients.remove(&self.token);
    }
}

#[cfg(test)]
mod tests;
