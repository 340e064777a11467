//! Connections that have not sent a request yet. Their owner is unknown, so their number is small: when one more
//! arrives, the one that has been silent longest is closed. A client sends its head with the connection.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outrigger_stdx::tally::Tally;
use tokio::sync::oneshot;

use super::{ClientState, Clients};
use crate::hosts::Refusal;
use crate::process_sockets::ProcessSockets;
use outrigger_stdx::sync::lock;

/// Maximum number of them.
pub(super) const MAX_PENDING: usize = 64;
/// Timeout for the head.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of log entries about closed connections with an unknown owner, and the period.
const MAX_WARNINGS: (u32, Duration) = (2, Duration::from_secs(60));

/// The silent connections, the longest first.
pub(super) struct Pending {
    waiting: Mutex<WaitingConnections>,
    clients: Arc<Clients>,
    sockets: Arc<dyn ProcessSockets>,
    port: u16,
    /// An owner is being looked up: only one at a time, since it reads much of `/proc`.
    looking: AtomicBool,
    pub(super) head_timeout: Duration,
    unknown: Mutex<Tally>,
}

#[derive(Default)]
struct WaitingConnections {
    next: u64,
    /// Number, and what is dropped when the place is needed.
    places: VecDeque<(u64, oneshot::Sender<()>)>,
}

/// A place among them.
pub(super) struct Waits {
    pending: Arc<Pending>,
    number: u64,
}

impl Drop for Waits {
    fn drop(&mut self) {
        let places = &mut lock(&self.pending.waiting).places;
        if let Ok(at) = places.binary_search_by_key(&self.number, |(number, _)| *number) {
            places.remove(at);
        }
    }
}

impl Pending {
    pub(super) fn new(
        clients: Arc<Clients>,
        sockets: Arc<dyn ProcessSockets>,
        port: u16,
        head_timeout: Duration,
    ) -> Arc<Self> {
        let (max, period) = MAX_WARNINGS;
        Arc::new(Self {
            waiting: Mutex::default(),
            clients,
            sockets,
            port,
            looking: AtomicBool::new(false),
            head_timeout,
            unknown: Mutex::new(Tally::new(max, period)),
        })
    }

    /// Takes a place; returns a receiver that ends when another connection needs it.
    pub(super) fn enter(self: &Arc<Self>) -> (Waits, oneshot::Receiver<()>) {
        let (sender, ended) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        let number = waiting.next;
        waiting.next += 1;
        waiting.places.push_back((number, sender));
        if waiting.places.len() > MAX_PENDING {
            waiting.places.pop_front();
        }
        drop(waiting);
        let pending = Arc::clone(self);
        (Waits { pending, number }, ended)
    }

    /// Handles one that was closed because of silence. Reports its owner, if that can be determined.
    pub(super) fn silent(self: &Arc<Self>, peer: SocketAddr) {
        if self.looking.swap(true, Ordering::Relaxed) {
            return;
        }
        let pending = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            match pending.owner(peer) {
                Some(known) => known.report("(nothing asked)", 0, None, Some(Refusal::TooMany)),
                None => {
                    let due = lock(&pending.unknown).take(Instant::now());
                    if let Some(unreported) = due {
                        tracing::warn!(
                            "[proxy] {peer}, an unknown process, opened a connection and sent no request within {} s, or opened too many ({unreported} more before it)",
                            pending.head_timeout.as_secs()
                        );
                    }
                }
            }
            pending.looking.store(false, Ordering::Relaxed);
        });
    }

    fn owner(&self, peer: SocketAddr) -> Option<Arc<ClientState>> {
        let clients = self.clients.all();
        let pids: Vec<u32> = clients
            .iter()
            .map(|known| known.pid.load(Ordering::Relaxed))
            .collect();
        let at = self.sockets.connects(&pids, peer.port(), self.port)?;
        clients.into_iter().nth(at)
    }
}
