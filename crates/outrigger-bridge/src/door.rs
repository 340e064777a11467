//! The door of a port: who has not shown yet that they may come in are few, and do not stay (C9, 3). The bridge and
//! `outrigger serve` listen behind it.
//!
//! Everybody is let as far as the door at once, so that strangers who are slow keep nobody waiting. Where there are too many
//! of them, one goes: of an address that nobody was let in from, of those the one with the most strangers, and of these who
//! has stood there longest. A client says who it is with its first bytes, and has left the strangers by then. A program that
//! opens many connections at once is there a moment before those bytes: an address that somebody was let in from has more
//! places.
//!
//! A stranger's time runs to the first request that is let in, not to the end of a request's head, and then ends: who is
//! refused again and again goes, and a client's connection that waits for its next request, or that events go out on, stays.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use outrigger_files::sync::lock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Sleep;

/// Maximum bytes that a stranger may send: a request's line and head.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Addresses that are remembered since somebody was let in from them.
const MAX_KNOWN: usize = 256;
/// How long a stranger may take where more than half of the places are taken.
const HURRIED: Duration = Duration::from_millis(2500);

/// A port and what bounds strangers at it.
#[derive(Debug)]
pub struct Door {
    listener: TcpListener,
    strangers: Arc<Mutex<Strangers>>,
    handshake_timeout: Duration,
}

/// Who is there and was not let in.
#[derive(Debug)]
struct Strangers {
    most: usize,
    /// Places beside those, for addresses that somebody was let in from.
    more_for_known: usize,
    next: u64,
    /// In the order in which they came.
    all: BTreeMap<u64, Stranger>,
    /// Addresses that somebody was let in from, the last one at the end.
    known: VecDeque<IpAddr>,
}

#[derive(Debug)]
struct Stranger {
    address: IpAddr,
    /// The tasks that wait for the stranger's next bytes, or to send some.
    wakers: [Option<Waker>; 2],
}

impl Strangers {
    fn come(&mut self, address: IpAddr) -> u64 {
        let number = self.next;
        self.next += 1;
        let wakers = [None, None];
        self.all.insert(number, Stranger { address, wakers });
        // Half of the places at most are for one address, as long as it is not known.
        let of_address = self.all.values().filter(|it| it.address == address);
        let too_many = of_address.count() > self.most.div_ceil(2) && !self.known.contains(&address);
        if self.taken() > self.most || too_many {
            self.send_one_away(too_many.then_some(address));
        }
        number
    }

    /// How many of the places are taken that are for everybody.
    fn taken(&self) -> usize {
        let is_known = |it: &&Stranger| self.known.contains(&it.address);
        // Nobody has to be looked at where there cannot be too many.
        let known = if self.all.len() > self.most && self.more_for_known > 0 {
            self.all.values().filter(is_known).count()
        } else {
            0
        };
        self.all.len() - known.min(self.more_for_known)
    }

    /// Takes one's place away; the connection ends when it looks for it.
    fn send_one_away(&mut self, of: Option<IpAddr>) {
        let mut counts: BTreeMap<(bool, IpAddr), usize> = BTreeMap::new();
        for stranger in self.all.values() {
            let key = (!self.known.contains(&stranger.address), stranger.address);
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
        if let Some(gone) = oldest.and_then(|number| self.all.remove(&number)) {
            gone.wakers.into_iter().flatten().for_each(Waker::wake);
        }
    }

    fn let_in(&mut self, number: u64, address: IpAddr) {
        self.all.remove(&number);
        self.known.retain(|known| *known != address);
        self.known.push_back(address);
        if self.known.len() > MAX_KNOWN {
            self.known.pop_front();
        }
    }

    fn is_crowded(&self) -> bool {
        self.taken() > self.most / 2
    }
}

impl Door {
    /// Maximum number of connections at once that nobody was let in on.
    pub const MAX_STRANGERS: usize = 128;
    /// So many more from addresses that somebody was let in from. A quarter of the open files at most.
    pub const KNOWN_STRANGERS: usize = 2048;
    /// How long one of them may take.
    pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

    /// A door with the usual bounds, for clients that come with many connections at once.
    #[must_use]
    pub fn new(listener: TcpListener) -> Self {
        let door = Self::with_bounds(listener, Self::MAX_STRANGERS, Self::HANDSHAKE_TIMEOUT);
        let quarter = outrigger_sandbox::open_files::limit() / 4;
        let quarter = usize::try_from(quarter).unwrap_or(usize::MAX);
        lock(&door.strangers).more_for_known = Self::KNOWN_STRANGERS.min(quarter);
        door
    }

    /// A door for this many strangers at once, who may each take this long.
    #[must_use]
    pub fn with_bounds(
        listener: TcpListener,
        strangers: usize,
        handshake_timeout: Duration,
    ) -> Self {
        Self {
            listener,
            strangers: Arc::new(Mutex::new(Strangers {
                most: strangers.max(1),
                more_for_known: 0,
                next: 0,
                all: BTreeMap::new(),
                known: VecDeque::new(),
            })),
            handshake_timeout,
        }
    }
}

impl Listener for Door {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.listener).await;
        // A piece of an answer is not to wait for the next one.
        let _ = stream.set_nodelay(true);
        let (number, crowded) = {
            let mut strangers = lock(&self.strangers);
            (strangers.come(address.ip()), strangers.is_crowded())
        };
        let handshake_timeout = if crowded {
            self.handshake_timeout.min(HURRIED)
        } else {
            self.handshake_timeout
        };
        let connection = Connection {
            stream,
            visitor: Visitor(Arc::new(ConnectionSlot {
                strangers: Arc::clone(&self.strangers),
                number,
                address: address.ip(),
                is_let_in: Mutex::new(false),
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

/// Who is at the other end of a connection: a stranger, until a request is let in. Requests carry it as
/// `ConnectInfo<Visitor>`.
#[derive(Clone, Debug)]
pub struct Visitor(Arc<ConnectionSlot>);

#[derive(Debug)]
struct ConnectionSlot {
    strangers: Arc<Mutex<Strangers>>,
    number: u64,
    address: IpAddr,
    is_let_in: Mutex<bool>,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        lock(&self.strangers).all.remove(&self.number);
    }
}

impl Visitor {
    /// The connection may stay from now on, and its place among the strangers is free.
    pub fn let_in(&self) {
        if !std::mem::replace(&mut *lock(&self.0.is_let_in), true) {
            lock(&self.0.strangers).let_in(self.0.number, self.0.address);
        }
    }

    fn is_stranger(&self) -> bool {
        !*lock(&self.0.is_let_in)
    }

    /// Whether the stranger still has a place. When it loses it, `side` of the connection is woken.
    fn has_place(&self, side: usize, waker: &Waker) -> bool {
        let mut strangers = lock(&self.0.strangers);
        let place = strangers.all.get_mut(&self.0.number);
        place.is_some_and(|stranger| {
            if let Some(slot) = stranger.wakers.get_mut(side) {
                *slot = Some(waker.clone());
            }
            true
        })
    }
}

impl Connected<IncomingStream<'_, Door>> for Visitor {
    fn connect_info(stream: IncomingStream<'_, Door>) -> Self {
        stream.io().visitor.clone()
    }
}

/// A connection that came through a [`Door`].
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    visitor: Visitor,
    until: Option<Pin<Box<Sleep>>>,
    /// Bytes that a stranger may still send.
    left: usize,
}

const READS: usize = 0;
const WRITES: usize = 1;

impl Connection {
    /// Ends a stranger's connection whose time or place is gone, while it reads and while it writes: who does not take an
    /// answer does not stay either.
    fn may_stay(&mut self, side: usize, cx: &mut Context<'_>) -> io::Result<()> {
        if !self.visitor.is_stranger() {
            self.until = None;
            return Ok(());
        }
        let is_over = |until: &mut Pin<Box<Sleep>>| until.as_mut().poll(cx).is_ready();
        if self.until.as_mut().is_some_and(is_over) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match self.visitor.has_place(side, cx.waker()) {
            true => Ok(()),
            // Let in since it was asked.
            false if !self.visitor.is_stranger() => Ok(()),
            false => Err(io::ErrorKind::ConnectionAborted.into()),
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
        this.may_stay(READS, cx)?;
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
        this.may_stay(WRITES, cx)?;
        Pin::new(&mut this.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.may_stay(WRITES, cx)?;
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

    fn strangers(most: usize, known: &[u8]) -> Strangers {
        let address = |last: &u8| IpAddr::from([10, 0, 0, *last]);
        Strangers {
            most,
            more_for_known: 0,
            next: 0,
            all: BTreeMap::new(),
            known: known.iter().map(address).collect(),
        }
    }

    #[test]
    fn who_goes_where_there_are_too_many() {
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
            let mut all = strangers(most, known);
            for last in come {
                all.come(IpAddr::from([10, 0, 0, *last]));
            }
            let left: Vec<u64> = all.all.keys().copied().collect();
            assert_eq!(left, stay, "{case}");
        }
    }

    #[test]
    fn a_known_address_has_places_of_its_own() {
        let mut all = strangers(4, &[1]);
        all.more_for_known = 3;
        for last in [1, 1, 1, 2, 1, 3, 1, 4, 1] {
            all.come(IpAddr::from([10, 0, 0, last]));
        }
        // Six of the known address take three of the others' places, so two unknown ones go.
        let left: Vec<u64> = all.all.keys().copied().collect();
        assert_eq!(left, [0, 1, 2, 3, 4, 6, 8]);
    }

    #[test]
    fn few_addresses_are_remembered() {
        let mut all = strangers(4, &[]);
        for n in 0..1000_u32 {
            let address = IpAddr::from(n.to_be_bytes());
            let number = all.come(address);
            all.let_in(number, address);
        }
        assert_eq!((all.all.len(), all.known.len()), (0, MAX_KNOWN));
    }
}
