//! One connection of a client: its head, the decision, the way there, and the bytes in both directions.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::hosts::Refusal;
use crate::listens::listens;

use super::head::{self, Head, Wanted};
use super::{Clients, Known, MOST, MOST_OF_ONE, Upstream, refuse};

/// How long a client may take for its head.
const HEAD: Duration = Duration::from_secs(30);
/// How long a name may take, and one address of it.
const LOOKUP: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(15);
/// Most addresses of a name that are tried.
const TRIED: usize = 6;
/// A connection without a byte for so long is cut. Long enough for a server that is polled.
const IDLE: Duration = Duration::from_secs(15 * 60);
const IDLE_LOOK: Duration = Duration::from_secs(60);
/// What `localhost` leads to.
const LOCALHOST: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];
const PIECE: usize = 32 * 1024;
/// What is read of a client that was refused, so that it gets to see the answer.
const DRAINED: usize = 256 * 1024;

pub(super) struct Shared {
    pub(super) clients: Arc<Clients>,
    pub(super) upstream: Option<Arc<Upstream>>,
    pub(super) port: u16,
}

pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let room = Arc::new(Semaphore::new(MOST));
    // Connections end with the proxy.
    let mut open = tokio::task::JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let shared = Arc::clone(&shared);
                open.spawn(async move {
                    if let Err(error) = serve(stream, &shared).await {
                        tracing::debug!("[proxy] {error}");
                    }
                    drop(place);
                });
            }
            // Out of descriptors, most likely: it passes.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// A connection of a client that counts.
struct Open(Arc<Known>);

impl Open {
    fn of(known: &Arc<Known>) -> Option<Self> {
        let before = known.open.fetch_add(1, Ordering::Relaxed);
        let open = Self(Arc::clone(known));
        (before < MOST_OF_ONE).then_some(open)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = Vec::new();
    let read = timeout(HEAD, read_head(&mut stream, &mut bytes));
    let head = match read.await.map_err(|_| io::ErrorKind::TimedOut)?? {
        Some(head) => head,
        None => return Ok(()),
    };
    let known = head
        .token
        .as_ref()
        .and_then(|token| shared.clients.get(token));
    let Some(known) = known else {
        return answer(stream, &refuse::unknown_client()).await;
    };
    let said = (head.said.clone(), 0);
    let (host, port) = head.target.clone().unwrap_or(said);
    let way = match (&head.target, Open::of(&known)) {
        (None, _) => Err((Refusal::NoHost, None)),
        (_, None) => Err((Refusal::TooMany, None)),
        (Some(_), Some(open)) => way(shared, &known, &host, port)
            .await
            .map(|way| (way, open)),
    };
    let (way, open) = match way {
        Ok(way) => way,
        Err((refused, address)) => {
            known.tell(&host, port, address, Some(refused));
            let text = refuse::refusal(&known.client, &host, port, refused);
            return answer(stream, &text).await;
        }
    };
    known.tell(&host, port, way.address(), None);
    let mut there = match way.go(&host, port).await {
        Ok(there) => there,
        Err(error) => {
            let message = format!("no connection to {host}:{port}: {error}");
            return answer(stream, &refuse::failed(&known.client, &host, &message)).await;
        }
    };
    match head.wanted {
        Wanted::Tunnel => stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await?,
        Wanted::Pass(text) => there.write_all(&text).await?,
    }
    there
        .write_all(bytes.get(head.size..).unwrap_or_default())
        .await?;
    relay(stream, there, &known).await;
    drop(open);
    Ok(())
}

async fn read_head(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<Option<Head>> {
    loop {
        if stream.read_buf(bytes).await? == 0 {
            return Ok(None);
        }
        match head::read(bytes) {
            Ok(Some(head)) => return Ok(Some(head)),
            Ok(None) => {}
            Err(why) => return Err(io::Error::new(io::ErrorKind::InvalidData, why)),
        }
    }
}

/// Answers and closes. What the client still sends is read for a moment: a reset would cost it the answer.
async fn answer(mut stream: TcpStream, text: &[u8]) -> io::Result<()> {
    stream.write_all(text).await?;
    stream.shutdown().await?;
    let drain = async {
        let mut rest = Vec::new();
        let _ = (&mut stream)
            .take(DRAINED as u64)
            .read_to_end(&mut rest)
            .await;
    };
    let _ = timeout(Duration::from_secs(2), drain).await;
    Ok(())
}

/// How a target is reached.
enum Way {
    /// These addresses, all of them asked about.
    Direct(Vec<SocketAddr>),
    /// Another proxy.
    Through(Arc<Upstream>),
}

/// Asks about a target, before and behind the look-up of its name.
async fn way(
    shared: &Shared,
    known: &Known,
    host: &str,
    port: u16,
) -> Result<Way, (Refusal, Option<IpAddr>)> {
    let reach = &known.client.reach;
    let literal = host.parse::<IpAddr>().ok();
    // A server of its own, on this machine.
    let own = |at: &IpAddr| {
        let pid = known.pid.load(Ordering::Relaxed);
        pid != 0 && port != shared.port && listens(pid, *at, port)
    };
    let local: &[IpAddr] = match &literal {
        Some(it) if it.to_canonical().is_loopback() => std::slice::from_ref(it),
        None if host == "localhost" => &LOCALHOST,
        _ => &[],
    };
    if let Some(own) = local.iter().find(|at| own(at)) {
        return Ok(Way::Direct(vec![(*own, port).into()]));
    }
    reach
        .before(host, port)
        .map_err(|refused| (refused, literal))?;
    let upstream = shared.upstream.as_ref().filter(|it| it.serves(host));
    let found: Vec<IpAddr> = match literal {
        Some(address) => vec![address],
        None => match timeout(LOOKUP, lookup_host((host, port))).await {
            Ok(Ok(found)) => found.map(|it| it.ip()).collect(),
            _ => Vec::new(),
        },
    };
    let mut refused = Refusal::Unknown;
    let mut allowed = Vec::new();
    for address in found {
        match reach.address(host, port, address) {
            Ok(()) => allowed.push(SocketAddr::new(address, port)),
            Err(why) => refused = why,
        }
    }
    allowed.truncate(TRIED);
    let private = allowed.iter().any(|it| !crate::hosts::is_public(it.ip()));
    match (upstream, allowed.is_empty()) {
        // What is private is not behind the proxy that leads out.
        (_, false) if private => Ok(Way::Direct(allowed)),
        (Some(upstream), false) => Ok(Way::Through(Arc::clone(upstream))),
        // Behind such a proxy, this machine often knows no names of the outside.
        (Some(upstream), true) if refused == Refusal::Unknown => {
            by_name(reach, host, port).map(|()| Way::Through(Arc::clone(upstream)))
        }
        (None, false) => Ok(Way::Direct(allowed)),
        (_, true) => {
            let address = match refused {
                Refusal::Private(address) => Some(address),
                _ => literal,
            };
            Err((refused, address))
        }
    }
}

/// Whether a name may be left to another proxy to look up: as if it led to a public address.
fn by_name(
    reach: &crate::hosts::Reach,
    host: &str,
    port: u16,
) -> Result<(), (Refusal, Option<IpAddr>)> {
    const PUBLIC: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(1, 1, 1, 1));
    // `2130706433` and the like are addresses to those who look names up.
    let odd = host
        .rsplit('.')
        .next()
        .is_some_and(|last| last.starts_with(|c: char| c.is_ascii_digit()));
    if odd || host == "localhost" || host.ends_with(".localhost") {
        return Err((Refusal::Unknown, None));
    }
    reach
        .address(host, port, PUBLIC)
        .map_err(|refused| (refused, None))
}

impl Way {
    fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Direct(addresses) => addresses.first().map(SocketAddr::ip),
            Self::Through(_) => None,
        }
    }

    async fn go(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        match self {
            Self::Direct(addresses) => {
                for address in addresses {
                    match timeout(CONNECT, TcpStream::connect(address)).await {
                        Ok(Ok(stream)) => {
                            stream.set_nodelay(true)?;
                            return Ok(stream);
                        }
                        Ok(Err(error)) => last = error,
                        Err(_) => last = io::ErrorKind::TimedOut.into(),
                    }
                }
                Err(last)
            }
            Self::Through(upstream) => {
                let tunnel = timeout(CONNECT, tunnel(upstream, host, port));
                tunnel.await.map_err(|_| io::ErrorKind::TimedOut)?
            }
        }
    }
}

async fn tunnel(upstream: &Upstream, host: &str, port: u16) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect((upstream.host.as_str(), upstream.port)).await?;
    stream.set_nodelay(true)?;
    stream.write_all(&upstream.connect(host, port)).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        // Byte by byte: what comes behind the head is the target's.
        head.push(stream.read_u8().await?);
        if head.len() > head::MOST {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    let line = String::from_utf8_lossy(&head);
    let line = line.lines().next().unwrap_or_default();
    match line.split(' ').nth(1) {
        Some("200") => Ok(stream),
        _ => Err(io::Error::other(format!(
            "the proxy of this machine answered {line:?}"
        ))),
    }
}

/// Both directions, until both are over or nothing has come for too long.
async fn relay(client: TcpStream, there: TcpStream, known: &Known) {
    let (from_client, to_client) = client.into_split();
    let (from_there, to_there) = there.into_split();
    let seen = AtomicU64::new(0);
    let both = async {
        tokio::join!(
            pump(from_client, to_there, &seen, &known.sent),
            pump(from_there, to_client, &seen, &known.received),
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
) {
    let mut piece = vec![0; PIECE];
    while let Ok(size @ 1..) = from.read(&mut piece).await {
        let Some(some) = piece.get(..size) else { break };
        if to.write_all(some).await.is_err() {
            break;
        }
        seen.fetch_add(1, Ordering::Relaxed);
        count.fetch_add(size as u64, Ordering::Relaxed);
    }
    let _ = to.shutdown().await;
}

async fn idle(seen: &AtomicU64) {
    let mut quiet = Duration::ZERO;
    let mut before = seen.load(Ordering::Relaxed);
    while quiet < IDLE {
        tokio::time::sleep(IDLE_LOOK).await;
        let now = seen.load(Ordering::Relaxed);
        quiet = if now == before {
            quiet + IDLE_LOOK
        } else {
            Duration::ZERO
        };
        before = now;
    }
}
