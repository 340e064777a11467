//! The only way out of a sandbox with network rules: an HTTP proxy on loopback that knows who asks.
//!
//! A sandboxed process may open TCP connections to this port and to no other. It says who it is by the token of its
//! [`ProxyTicket`]; the proxy resolves names itself, asks the [`Reach`] of that process about every address, and connects to
//! the address that it asked about. `CONNECT` makes a tunnel, `http://` addresses in absolute form are passed on, one request
//! a connection.

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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outrigger_protocol::tally::Tally;
use rustix::process::{Resource, getrlimit};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::hosts::{Reach, Refusal};
use crate::process_sockets::ProcessSockets;
use crate::redirect::ProxyRedirect;
pub use upstream::Upstream;

/// Connections of one client at a time, and of all clients; fewer where this process may not have many files open. Each
/// takes two.
const MAX_PER_CLIENT: usize = 128;
const MAX_CONNECTIONS: usize = 1024;
/// So much of what this process may have open is for connections of clients: one in `PART` for the places, two files each.
const PART: u64 = 8;
/// Refusals of one client that are reported within [`PERIOD`].
const MAX_REPORTS: u32 = 30;
const PERIOD: Duration = Duration::from_secs(60);
/// Hosts of one client that are remembered as reported.
const MAX_REMEMBERED: usize = 1000;

/// A decision about a connection, for the audit (C13). A granted host is reported once for each client, a refusal each time,
/// up to a limit of 30 a minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Who asked, as [`Client::name`].
    pub client: String,
    /// Host as it was asked for, or what stood in its place.
    pub host: String,
    /// Port.
    pub port: u16,
    /// What was connected to, or refused; unknown where the name was refused already.
    pub address: Option<IpAddr>,
    /// Why it was refused; `None` when it was not.
    pub refused: Option<Refusal>,
    /// Refusals before this one that were not reported.
    pub unreported: u64,
}

/// Called with each decision. It must not block.
pub type ConnectFn = Arc<dyn Fn(&Connection) + Send + Sync>;

/// Who may use the proxy, and for what.
#[derive(Clone)]
pub struct Client {
    /// What it is called in messages and in the audit.
    pub name: String,
    /// What it may connect to.
    pub reach: Reach,
    /// How a host is granted to it; `HOST` stands for the host.
    pub hint: String,
    /// Called with each decision.
    pub on_connect: ConnectFn,
}

impl Client {
    /// Why it may not ask this address (`https://host:port/…`), with what would grant it, as far as that can be said without
    /// looking the name up.
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

/// What the proxy knows of a client.
struct Known {
    client: Client,
    /// The process that has the ticket, 0 until it is there.
    pid: AtomicU32,
    open: AtomicUsize,
    sent: AtomicU64,
    received: AtomicU64,
    hosts: Mutex<HashSet<(String, u16)>>,
    refusals: Mutex<Tally>,
}

impl Known {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The clients by token.
#[derive(Default)]
struct Clients(RwLock<HashMap<String, Arc<Known>>>);

impl Clients {
    fn get(&self, token: &str) -> Option<Arc<Known>> {
        let clients = self.0.read().unwrap_or_else(PoisonError::into_inner);
        clients.get(token).cloned()
    }

    fn all(&self) -> Vec<Arc<Known>> {
        let clients = self.0.read().unwrap_or_else(PoisonError::into_inner);
        clients.values().cloned().collect()
    }
}

/// A proxy that runs. It ends with its value; what goes through it then is cut.
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
    /// Starts one, on a port of loopback that the system picks. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The system's answer when there is no port to be had.
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

    /// Its port on `127.0.0.1`.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Lets a client in, for as long as its ticket is held.
    ///
    /// # Errors
    /// The system's answer when it has no random numbers.
    pub fn admit(&self, client: Client) -> io::Result<ProxyTicket> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let token = outrigger_protocol::text::hex(&bytes);
        let known = Arc::new(Known {
            client,
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

/// How many files this process may have open.
fn open_files_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One client's way in. What it opened goes on when it is dropped, and nothing new is opened with it.
pub struct ProxyTicket {
    token: String,
    port: u16,
    known: Arc<Known>,
    clients: Arc<Clients>,
}

/// The token is not shown: anybody who has it is that client.
impl std::fmt::Debug for ProxyTicket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyTicket")
            .field("client", &self.known.client.name)
            .finish_non_exhaustive()
    }
}

impl ProxyTicket {
    /// The proxy's address, with the token in it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://outrigger:{}@127.0.0.1:{}", self.token, self.port)
    }

    /// The proxy's port on `127.0.0.1`.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How connections of its process that know of no proxy get there.
    #[must_use]
    pub fn redirect(&self) -> ProxyRedirect {
        let credentials = STANDARD.encode(format!("outrigger:{}", self.token));
        ProxyRedirect::new(self.port, format!("Basic {credentials}"))
    }

    /// The variables by which programs find their proxy. `NO_PROXY` is there and empty: what goes past it is refused.
    #[must_use]
    pub fn variables(&self) -> Vec<(String, String)> {
        let url = self.url();
        let ways = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].into_iter();
        let both = ways.flat_map(|name| [name.to_owned(), name.to_ascii_lowercase()]);
        let none = ["NO_PROXY", "no_proxy"].map(|name| (name.to_owned(), String::new()));
        both.map(|name| (name, url.clone())).chain(none).collect()
    }

    /// Says which process has it: ports that this one, or what it started, listens on are its own, and it may connect to
    /// them.
    pub fn belongs_to(&self, pid: u32) {
        self.known.pid.store(pid, Ordering::Relaxed);
    }

    /// Bytes that it sent and got so far.
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
