//! Accepts connections and bounds those that have not authenticated yet, in number and in time (C9, 3). The bridge and
//! `outrigger serve` listen with it.
//!
//! Every connection is accepted at once, so that slow clients delay nobody. If too many of them have not authenticated, one is
//! evicted: an address from which no client has authenticated is preferred, of those the one with the most connections, and of
//! these the oldest. A client authenticates with its first request. A program that opens many connections at once has them all
//! pending for a moment, so an address from which a client has authenticated has additional slots.
//!
//! The deadline of a connection runs until its first authenticated request, not until the head of a request is complete: one
//! whose requests are refused again and again is closed. An authenticated connection that waits for its next request, or that
//! receives events, has no deadline.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use outrigger_stdx::sync::lock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Sleep;

/// Maximum bytes that a client may send before it authenticates: the line and head of a request.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Maximum number of remembered addresses from which a client has authenticated.
const MAX_KNOWN: usize = 256;
/// Time to authenticate while more than half of the slots are used.
const CROWDED_HANDSHAKE_TIMEOUT: Duration = Duration::from_millis(2500);

/// A port, and the bounds for connections that have not authenticated.
#[derive(Debug)]
pub struct Acceptor {
    listener: TcpListener,
    pending: Arc<Mutex<PendingConnections>>,
    handshake_timeout: Duration,
}

/// The connections that have not authenticated.
#[derive(Debug)]
struct PendingConnections {
    most: usize,
    /// Additional slots for known addresses.
    more_for_known: usize,
    next: u64,
    /// In the order in which they were accepted.
    all: BTreeMap<u64, PendingConnection>,
    /// Addresses from which a client has authenticated, the most recent one at the end.
    known: VecDeque<IpAddr>,
}

#[derive(Debug)]
struct PendingConnection {
    address: IpAddr,
    /// The tasks that wait to read from it, and to write to it.
    wakers: [Option<Waker>; 2],
}

impl PendingConnections {
    fn add(&mut self, address: IpAddr) -> u64 {
        let number = self.next;
        self.next += 1;
        let wakers = [None, None];
        self.all
            .insert(number, PendingConnection { address, wakers });
        // An unknown address has at most half of the slots.
        let of_address = self.all.values().filter(|it| it.address == address);
        let too_many = of_address.count() > self.most.div_ceil(2) && !self.known.contains(&address);
        if self.used() > self.most || too_many {
            self.evict_one(too_many.then_some(address));
        }
        number
    }

    /// Returns how many of the slots for all addresses are used.
    fn used(&self) -> usize {
        let is_known = |it: &&PendingConnection| self.known.contains(&it.address);
        // Skips counting where there cannot be too many.
        let known = if self.all.len() > self.most && self.more_for_known > 0 {
            self.all.values().filter(is_known).count()
        } else {
            0
        };
        self.all.len() - known.min(self.more_for_known)
    }

    /// Evicts a connection; its tasks are woken and find that it has no slot.
    fn evict_one(&mut self, of: Option<IpAddr>) {
        let mut counts: BTreeMap<(bool, IpAddr), usize> = BTreeMap::new();
        for connection in self.all.values() {
            let key = (
                !self.known.contains(&connection.address),
                connection.address,
            );
            *counts.entry(key).or_default() += 1;
        }
        let most = counts
            .iter()
            .max_by_key(|((unknown, _), count)| (*unknown, **count));
        let Some(address) = of.or_else(|| most.map(|((_, address), _)| *address)) else {
            return;
        };
        let mut all = self.all.iter();
        let oldest = all
            .find(|(_, it)| it.address == address)
            .map(|(number, _)| *number);
        if let Some(evicted) = oldest.and_then(|number| self.all.remove(&number)) {
            evicted.wakers.into_iter().flatten().for_each(Waker::wake);
        }
    }

    fn authenticated(&mut self, number: u64, address: IpAddr) {
        self.all.remove(&number);
        self.known.retain(|known| *known != address);
        self.known.push_back(address);
        if self.known.len() > MAX_KNOWN {
            self.known.pop_front();
        }
    }

    fn is_crowded(&self) -> bool {
        self.used() > self.most / 2
    }
}

impl Acceptor {
    /// Maximum number of connections that have not authenticated.
    pub const MAX_PENDING: usize = 128;
    /// Additional connections from addresses from which a client has authenticated; at most a quarter of the open files.
    pub const MAX_PENDING_OF_KNOWN: usize = 2048;
    /// Time to authenticate.
    pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

    /// Creates an acceptor with the default bounds, for clients that open many connections at once.
    #[must_use]
    pub fn new(listener: TcpListener) -> Self {
        let acceptor = Self::with_bounds(listener, Self::MAX_PENDING, Self::HANDSHAKE_TIMEOUT);
        let quarter = outrigger_sandbox::open_files::limit() / 4;
        let quarter = usize::try_from(quarter).unwrap_or(usize::MAX);
        lock(&acceptor.pending).more_for_known = Self::MAX_PENDING_OF_KNOWN.min(quarter);
        acceptor
    }

    /// Creates an acceptor for this many unauthenticated connections, and with this time to authenticate.
    #[must_use]
    pub fn with_bounds(listener: TcpListener, pending: usize, handshake_timeout: Duration) -> Self {
        Self {
            listener,
            pending: Arc::new(Mutex::new(PendingConnections {
                most: pending.max(1),
                more_for_known: 0,
                next: 0,
                all: BTreeMap::new(),
                known: VecDeque::new(),
            })),
            handshake_timeout,
        }
    }
}

impl Listener for Acceptor {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.listener).await;
        // A part of an answer must not wait for the next one.
        let _ = stream.set_nodelay(true);
        let (number, crowded) = {
            let mut pending = lock(&self.pending);
            (pending.add(address.ip()), pending.is_crowded())
        };
        let handshake_timeout = if crowded {
            self.handshake_timeout.min(CROWDED_HANDSHAKE_TIMEOUT)
        } else {
            self.handshake_timeout
        };
        let connection = Connection {
            stream,
            handle: ConnectionHandle(Arc::new(ConnectionSlot {
                pending: Arc::clone(&self.pending),
                number,
                address: address.ip(),
                is_authenticated: Mutex::new(false),
            })),
            until: Some(Box::pin(tokio::time::sleep(handshake_timeout))),
            left: MAX_HEAD_BYTES,
        };
        (connection, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// The connection of a request, which carries it as `ConnectInfo<ConnectionHandle>`.
#[derive(Clone, Debug)]
pub struct ConnectionHandle(Arc<ConnectionSlot>);

#[derive(Debug)]
struct ConnectionSlot {
    pending: Arc<Mutex<PendingConnections>>,
    number: u64,
    address: IpAddr,
    is_authenticated: Mutex<bool>,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        lock(&self.pending).all.remove(&self.number);
    }
}

impl ConnectionHandle {
    /// Marks the connection as authenticated: it has no deadline from now on, and its slot is free.
    pub fn authenticated(&self) {
        if !std::mem::replace(&mut *lock(&self.0.is_authenticated), true) {
            lock(&self.0.pending).authenticated(self.0.number, self.0.address);
        }
    }

    fn is_pending(&self) -> bool {
        !*lock(&self.0.is_authenticated)
    }

    /// Returns whether the connection still has a slot. If it is evicted later, `side` of the connection is woken.
    fn has_slot(&self, side: usize, waker: &Waker) -> bool {
        let mut pending = lock(&self.0.pending);
        let slot = pending.all.get_mut(&self.0.number);
        slot.is_some_and(|connection| {
            if let Some(last) = connection.wakers.get_mut(side) {
                *last = Some(waker.clone());
            }
            true
        })
    }
}

impl Connected<IncomingStream<'_, Acceptor>> for ConnectionHandle {
    fn connect_info(stream: IncomingStream<'_, Acceptor>) -> Self {
        stream.io().handle.clone()
    }
}

/// A connection of an [`Acceptor`].
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    handle: ConnectionHandle,
    until: Option<Pin<Box<Sleep>>>,
    /// Bytes that it may still send before it authenticates.
    left: usize,
}

const READS: usize = 0;
const WRITES: usize = 1;

impl Connection {
    /// Fails if the connection has not authenticated and is past its deadline or evicted. Called for reading and writing: a
    /// client that does not read its answer is closed too.
    fn check(&mut self, side: usize, cx: &mut Context<'_>) -> io::Result<()> {
        if !self.handle.is_pending() {
            self.until = None;
            return Ok(());
        }
        let is_over = |until: &mut Pin<Box<Sleep>>| until.as_mut().poll(cx).is_ready();
        if self.until.as_mut().is_some_and(is_over) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // It may have authenticated since.
        if self.handle.has_slot(side, cx.waker()) || !self.handle.is_pending() {
            Ok(())
        } else {
            Err(io::ErrorKind::ConnectionAborted.into())
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.check(READS, cx)?;
        let before = buf.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buf);
        if this.until.is_some() {
            let came = buf.filled().len() - before;
            match this.left.checked_sub(came) {
                Some(left) => this.left = left,
                None => return Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
            }
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.check(WRITES, cx)?;
        Pin::new(&mut this.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.check(WRITES, cx)?;
        Pin::new(&mut this.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(most: usize, known: &[u8]) -> PendingConnections {
        let address = |last: &u8| IpAddr::from([10, 0, 0, *last]);
        PendingConnections {
            most,
            more_for_known: 0,
            next: 0,
            all: BTreeMap::new(),
            known: known.iter().map(address).collect(),
        }
    }

    #[test]
    fn which_connection_is_evicted() {
        for (case, most, known, come, stay) in [
            (
                "the oldest",
                8,
                &[1][..],
                &[1, 1, 1, 1, 1, 1, 1, 1, 1][..],
                &[1, 2, 3, 4, 5, 6, 7, 8][..],
            ),
            ("half for one address", 4, &[], &[1, 1, 1], &[1, 2]),
            (
                "all for one that is known",
                4,
                &[1],
                &[1, 1, 1, 1],
                &[0, 1, 2, 3],
            ),
            ("one of the many", 4, &[], &[2, 1, 1, 3, 4], &[0, 2, 3, 4]),
            (
                "an unknown one first",
                4,
                &[1],
                &[1, 1, 2, 1, 1],
                &[0, 1, 3, 4],
            ),
        ] {
            let mut all = pending(most, known);
            for last in come {
                all.add(IpAddr::from([10, 0, 0, *last]));
            }
            let left: Vec<u64> = all.all.keys().copied().collect();
            assert_eq!(left, stay, "{case}");
        }
    }

    #[test]
    fn a_known_address_has_additional_slots() {
        let mut all = pending(4, &[1]);
        all.more_for_known = 3;
        for last in [1, 1, 1, 2, 1, 3, 1, 4, 1] {
            all.add(IpAddr::from([10, 0, 0, last]));
        }
        // Three of the six connections of the known address use slots for all, so two of unknown ones are evicted.
        let left: Vec<u64> = all.all.keys().copied().collect();
        assert_eq!(left, [0, 1, 2, 3, 4, 6, 8]);
    }

    #[test]
    fn few_addresses_are_remembered() {
        let mut all = pending(4, &[]);
        for n in 0..1000_u32 {
            let address = IpAddr::from(n.to_be_bytes());
            let number = all.add(address);
            all.authenticated(number, address);
        }
        assert_eq!((all.all.len(), all.known.len()), (0, MAX_KNOWN));
    }
}
