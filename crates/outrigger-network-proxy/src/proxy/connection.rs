//! One connection of a client: its head, the decision, the route, and the data in both directions.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::pending::{self, Pending};
use super::request_head::{self, Head, RequestKind};
use super::route::{self, Route};
use super::{ClientState, Clients, Upstream, refusal};
use crate::hosts::Refusal;
use crate::process_sockets::ProcessSockets;

/// A connection without data for this long is closed. Long enough for polling.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15 * 60);
const IDLE_CHECK: Duration = Duration::from_secs(60);
const BUFFER: usize = 32 * 1024;
/// Maximum number of refused clients that get time to read their response.
pub(super) const MAX_REFUSED: usize = 32;
/// How long such a client may take for the response, and for what it still sends.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum bytes read from a refused client, so that it sees the response.
const MAX_DRAINED: u64 = 256 * 1024;

pub(super) struct Shared {
    pub(super) pending: Arc<Pending>,
    pub(super) sockets: Arc<dyn ProcessSockets>,
    /// For connections of clients.
    pub(super) places: Arc<Semaphore>,
    pub(super) max_per_client: usize,
    /// For refused ones.
    pub(super) refused: Semaphore,
    pub(super) clients: Arc<Clients>,
    pub(super) upstream: Option<Arc<Upstream>>,
    pub(super) port: u16,
}

pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // A few more than may be without a head, for those that are being closed. Others wait to be accepted.
    let room = Arc::new(Semaphore::new(2 * pending::MAX_PENDING));
    // Connections end with the proxy.
    let mut open = tokio::task::JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, peer)) => {
                let shared = Arc::clone(&shared);
                open.spawn(async move {
                    if let Err(error) = serve(stream, peer, &shared, place).await {
                        tracing::debug!("[proxy] {error}");
                    }
                });
            }
            // Most likely out of descriptors, which is temporary.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// A counted connection of a client.
struct CountedConnection(Arc<ClientState>, Option<OwnedSemaphorePermit>);

impl CountedConnection {
    fn of(known: &Arc<ClientState>, shared: &Shared) -> Option<Self> {
        let before = known.open.fetch_add(1, Ordering::Relaxed);
        let mut open = Self(Arc::clone(known), None);
        if before < shared.max_per_client {
            open.1 = Arc::clone(&shared.places).try_acquire_owned().ok();
        }
        open.1.is_some().then_some(open)
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn serve(
    mut stream: TcpStream,
    peer: SocketAddr,
    shared: &Shared,
    place: OwnedSemaphorePermit,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = Vec::new();
    let Some(read) = head_in_time(&mut stream, &mut bytes, shared).await else {
        drop((stream, place));
        shared.pending.silent(peer);
        return Err(io::ErrorKind::TimedOut.into());
    };
    let Some(head) = read? else { return Ok(()) };
    let known = head
        .token
        .as_ref()
        .and_then(|token| shared.clients.get(token));
    let Some(known) = known else {
        return answer(stream, &refusal::unknown_client(), shared).await;
    };
    let said = (head.said.clone(), 0);
    let (host, port) = head.target.clone().unwrap_or(said);
    let open = CountedConnection::of(&known, shared);
    // From here on it counts as its client's; a refused one keeps its place among the new ones.
    let _place = open.is_none().then_some(place);
    let route = match (&head.target, open) {
        (None, _) => Err((Refusal::NoHost, None)),
        (_, None) => Err((Refusal::TooMany, None)),
        (Some(_), Some(open)) => route::find(shared, &known, &host, port)
            .await
            .map(|route| (route, open)),
    };
    let (route, open) = match route {
        Ok(route) => route,
        Err((refused, address)) => {
            known.report(&host, port, address, Some(refused));
            let text = refusal::refusal(&known.client, &host, port, refused);
            return answer(stream, &text, shared).await;
        }
    };
    known.report(&host, port, route.address(), None);
    let rest = bytes.get(head.size..).unwrap_or_default();
    let request = Request {
        host: &host,
        port,
        wanted: head.wanted,
        rest,
    };
    match request.send(&mut stream, &route).await? {
        Ok((there, limit)) => relay(stream, there, &known, limit).await,
        Err(error) => {
            let message = format!("no connection to {host}:{port}: {error}");
            let text = refusal::failed(&known.client, &host, &message);
            return answer(stream, &text, shared).await;
        }
    }
    drop(open);
    Ok(())
}

/// An allowed request.
struct Request<'r> {
    host: &'r str,
    port: u16,
    wanted: RequestKind,
    /// Data received with the head.
    rest: &'r [u8],
}

impl Request<'_> {
    /// Connects and forwards what was read. The client's further data up to the given number of bytes belongs to the request;
    /// `None` means no limit. The inner error is that of the connection to the target.
    async fn send(
        self,
        stream: &mut TcpStream,
        route: &Route,
    ) -> io::Result<io::Result<(TcpStream, Option<u64>)>> {
        let Self { host, port, .. } = self;
        // Another proxy often accepts only plain requests for ports other than 443. Only if the end of the request is known:
        // after that, the other proxy would accept another request, for any host.
        let plain = match (route, &self.wanted) {
            (Route::Through(upstream), RequestKind::Forward { head, body }) => {
                body.map(|body| (upstream, head, body))
            }
            _ => None,
        };
        let connected = match &plain {
            Some((upstream, ..)) => route::connect_upstream(upstream).await,
            None => route.connect(host, port).await,
        };
        let mut there = match connected {
            Ok(there) => there,
            Err(error) => return Ok(Err(error)),
        };
        let mut rest = self.rest;
        let mut limit = None;
        match (plain, &self.wanted) {
            (Some((upstream, head, body)), _) => {
                let head = request_head::absolute(head, host, port, &upstream.login_line());
                there.write_all(&head).await?;
                let here = usize::try_from(body).unwrap_or(usize::MAX).min(rest.len());
                rest = rest.get(..here).unwrap_or_default();
                limit = Some(body - here as u64);
            }
            (None, RequestKind::Tunnel) => {
                stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await?;
            }
            (None, RequestKind::Forward { head, .. }) => there.write_all(head).await?,
        }
        there.write_all(rest).await?;
        Ok(Ok((there, limit)))
    }
}

/// Reads a head; `None` if it did not arrive in time, or the place of this connection was needed.
async fn head_in_time(
    stream: &mut TcpStream,
    bytes: &mut Vec<u8>,
    shared: &Shared,
) -> Option<io::Result<Option<Head>>> {
    let (_place, pushed_out) = shared.pending.enter();
    let read = timeout(shared.pending.head_timeout, read_head(stream, bytes));
    tokio::select! {
        biased;
        read = read => read.ok(),
        _ = pushed_out => None,
    }
}

async fn read_head(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<Option<Head>> {
    loop {
        if stream.read_buf(bytes).await? == 0 {
            return Ok(None);
        }
        match request_head::read(bytes) {
            Ok(Some(head)) => return Ok(Some(head)),
            Ok(None) => {}
            Err(why) => return Err(io::Error::new(io::ErrorKind::InvalidData, why)),
        }
    }
}

/// Responds and closes. The client's remaining data is read for a moment, since a reset would lose the response. If many are
/// refused, this is skipped.
async fn answer(mut stream: TcpStream, text: &[u8], shared: &Shared) -> io::Result<()> {
    let Ok(_permit) = shared.refused.try_acquire() else {
        let _ = stream.try_write(text);
        return Ok(());
    };
    let said = async {
        stream.write_all(text).await?;
        stream.shutdown().await
    };
    timeout(ANSWER_TIMEOUT, said)
        .await
        .map_err(|_| io::ErrorKind::TimedOut)??;
    let drain = async {
        let mut rest = Vec::new();
        let _ = (&mut stream).take(MAX_DRAINED).read_to_end(&mut rest).await;
    };
    let _ = timeout(ANSWER_TIMEOUT, drain).await;
    Ok(())
}

/// Relays both directions until both have ended or there was no data for too long. At most `limit` bytes of the client are
/// forwarded.
async fn relay(client: TcpStream, there: TcpStream, known: &ClientState, limit: Option<u64>) {
    let (from_client, to_client) = client.into_split();
    let (from_there, to_there) = there.into_split();
    let seen = AtomicU64::new(0);
    let both = async {
        tokio::join!(
            pump(from_client, to_there, &seen, &known.sent, limit),
            pump(from_there, to_client, &seen, &known.received, None),
        )
    };
    tokio::select! {
        _ = both => {}
        () = idle(&seen) => tracing::debug!("[proxy] a connection of {} is cut: nothing came", known.client.name),
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    seen: &AtomicU64,
    count: &AtomicU64,
    limit: Option<u64>,
) {
    let mut left = limit.unwrap_or(u64::MAX);
    let mut piece = vec![0; BUFFER];
    while let Ok(size @ 1..) = from.read(&mut piece).await {
        // Excess data is read and discarded: closing this direction would lose the response.
        let size = usize::try_from(left).unwrap_or(usize::MAX).min(size);
        let Some(some) = piece.get(..size) else { break };
        if to.write_all(some).await.is_err() {
            break;
        }
        left -= size as u64;
        seen.fetch_add(1, Ordering::Relaxed);
        count.fetch_add(size as u64, Ordering::Relaxed);
    }
    let _ = to.shutdown().await;
}

async fn idle(seen: &AtomicU64) {
    let mut quiet = Duration::ZERO;
    let mut before = seen.load(Ordering::Relaxed);
    while quiet < IDLE_TIMEOUT {
        tokio::time::sleep(IDLE_CHECK).await;
        let now = seen.load(Ordering::Relaxed);
        quiet = if now == before {
            quiet + IDLE_CHECK
        } else {
            Duration::ZERO
        };
        before = now;
    }
}
