//! Connections that have not said yet what they want. Nobody knows whose they are, so there are few: when one more comes, the
//! one that has been silent longest is closed. Whoever means it sends its head with the connection.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outrigger_protocol::tally::Tally;
use tokio::sync::oneshot;

use super::{Clients, Known, lock};
use crate::hosts::Refusal;
use crate::listens;

/// Most of them.
pub(super) const MOST: usize = 64;
/// How long one may take for its head.
pub(super) const WITHIN: Duration = Duration::from_secs(5);
/// How often it is told that such are closed whose owner is not known.
const TOLD: (u32, Duration) = (2, Duration::from_secs(60));

/// What is silent now, the longest first.
pub(super) struct Heads {
    waiting: Mutex<Waiting>,
    clients: Arc<Clients>,
    port: u16,
    /// Somebody looks for an owner: once at a time, for it reads much of `/proc`.
    looking: AtomicBool,
    pub(super) within: Duration,
    unknown: Mutex<Tally>,
}

#[derive(Default)]
struct Waiting {
    next: u64,
    /// Number, and what is dropped when the place is needed.
    places: VecDeque<(u64, oneshot::Sender<()>)>,
}

/// A place among them.
pub(super) struct Waits {
    heads: Arc<Heads>,
    number: u64,
}

impl Drop for Waits {
    fn drop(&mut self) {
        let places = &mut lock(&self.heads.waiting).places;
        if let Ok(at) = places.binary_search_by_key(&self.number, |(number, _)| *number) {
            places.remove(at);
        }
    }
}

impl Heads {
    pub(super) fn new(clients: Arc<Clients>, port: u16, within: Duration) -> Arc<Self> {
        let (told, period) = TOLD;
        Arc::new(Self {
            waiting: Mutex::default(),
            clients,
            port,
            looking: AtomicBool::new(false),
            within,
            unknown: Mutex::new(Tally::new(told, period)),
        })
    }

    /// A place for one more, and what ends when another one needs it.
    pub(super) fn enter(self: &Arc<Self>) -> (Waits, oneshot::Receiver<()>) {
        let (sender, ended) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        let number = waiting.next;
        waiting.next += 1;
        waiting.places.push_back((number, sender));
        if waiting.places.len() > MOST {
            waiting.places.pop_front();
        }
        drop(waiting);
        let heads = Arc::clone(self);
        (Waits { heads, number }, ended)
    }

    /// One was closed because it said nothing. Tells who it was, if that can be found out.
    pub(super) fn silent(self: &Arc<Self>, peer: SocketAddr) {
        if self.looking.swap(true, Ordering::Relaxed) {
            return;
        }
        let heads = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            match heads.owner(peer) {
                Some(known) => known.tell("(nothing asked)", 0, None, Some(Refusal::TooMany)),
                None => {
                    let told = lock(&heads.unknown).take(Instant::now());
                    if let Some(untold) = told {
                        tracing::warn!(
                            "[proxy] {peer} opened a connection and asked for nothing within {} s, or too many of them; whose it is is not known ({untold} more before it)",
                            heads.within.as_secs()
                        );
                    }
                }
            }
            heads.looking.store(false, Ordering::Relaxed);
        });
    }

    fn owner(&self, peer: SocketAddr) -> Option<Arc<Known>> {
        let clients = self.clients.all();
        let pids = clients
            .iter()
            .map(|known| known.pid.load(Ordering::Relaxed));
        let pids: Vec<u32> = pids.collect();
        let at = listens::connects(&pids, peer.port(), self.port)?;
        clients.into_iter().nth(at)
    }
}
