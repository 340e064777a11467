//! Routes to a target: what a client may connect to, by its name and by each resolved address.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::connection::Shared;
use super::{ClientState, Upstream, request_head};
use crate::hosts::{Refusal, is_public};

/// Timeout of a lookup, and of connecting to one address.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum number of addresses of a name that are tried.
const MAX_ADDRESSES: usize = 6;

/// The reason, and the address if known.
type Refused = (Refusal, Option<IpAddr>);

/// The route to a target.
pub(super) enum Route {
    /// These addresses, all checked.
    Direct(Vec<SocketAddr>),
    /// Another proxy.
    Through(Arc<Upstream>),
}

/// Checks a target before and after the lookup of its name.
pub(super) async fn find(
    shared: &Shared,
    known: &ClientState,
    host: &str,
    port: u16,
) -> Result<Route, Refused> {
    let reach = &known.client.reach;
    let literal = host.parse::<IpAddr>().ok();
    if let Some(at) = own_server(shared, known, host, port).await {
        return Ok(Route::Direct(vec![(at, port).into()]));
    }
    reach
        .before(host, port)
        .map_err(|refused| (refused, literal))?;
    let upstream = shared.upstream.as_ref().filter(|it| it.serves(host));
    let (allowed, refused) = addresses(known, host, port, literal).await;
    let private = allowed.iter().any(|it| !is_public(it.ip()));
    match (upstream, allowed.is_empty()) {
        // Private addresses are not reached through the upstream proxy.
        (_, false) if private => Ok(Route::Direct(allowed)),
        (Some(upstream), false) => Ok(Route::Through(Arc::clone(upstream))),
        // With such a proxy, this machine often cannot resolve external names.
        (Some(upstream), true) if refused == Refusal::Unknown => {
            by_name(known, host, port).map(|()| Route::Through(Arc::clone(upstream)))
        }
        (None, false) => Ok(Route::Direct(allowed)),
        (_, true) => {
            let address = match refused {
                Refusal::Private(address) => Some(address),
                _ => literal,
            };
            Err((refused, address))
        }
    }
}

/// Returns the address of the client's own local server. The check reads much of `/proc`.
async fn own_server(shared: &Shared, known: &ClientState, host: &str, port: u16) -> Option<IpAddr> {
    let pid = known.pid.load(Ordering::Relaxed);
    if pid == 0 || port == shared.port {
        return None;
    }
    let (sockets, host) = (Arc::clone(&shared.sockets), host.to_owned());
    let found = tokio::task::spawn_blocking(move || sockets.own_server(pid, &host, port));
    found.await.ok().flatten()
}

/// Returns the allowed addresses of a host, and why the last of the others is refused.
async fn addresses(
    known: &ClientState,
    host: &str,
    port: u16,
    literal: Option<IpAddr>,
) -> (Vec<SocketAddr>, Refusal) {
    let found: Vec<IpAddr> = match literal {
        Some(address) => vec![address],
        None => match timeout(LOOKUP_TIMEOUT, lookup_host((host, port))).await {
            Ok(Ok(found)) => found.map(|it| it.ip()).collect(),
            _ => Vec::new(),
        },
    };
    let mut refused = Refusal::Unknown;
    let mut allowed = Vec::new();
    for address in found {
        match known.may(host, port, address) {
            Ok(()) => allowed.push(SocketAddr::new(address, port)),
            Err(why) => refused = why,
        }
    }
    allowed.truncate(MAX_ADDRESSES);
    (allowed, refused)
}

/// Checks whether a name may be left to another proxy to look up: as if it resolved to a public address.
fn by_name(known: &ClientState, host: &str, port: u16) -> Result<(), Refused> {
    const PUBLIC: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(1, 1, 1, 1));
    // Resolvers treat `2130706433` and the like as addresses.
    let odd = host
        .rsplit('.')
        .next()
        .is_some_and(|last| last.starts_with(|c: char| c.is_ascii_digit()));
    if odd || host == "localhost" || host.ends_with(".localhost") {
        return Err((Refusal::Unknown, None));
    }
    known
        .may(host, port, PUBLIC)
        .map_err(|refused| (refused, None))
}

impl Route {
    pub(super) fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Direct(addresses) => addresses.first().map(SocketAddr::ip),
            Self::Through(_) => None,
        }
    }

    pub(super) async fn connect(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        match self {
            Self::Direct(addresses) => {
                for address in addresses {
                    match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
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
                let tunnel = timeout(CONNECT_TIMEOUT, tunnel(upstream, host, port));
                tunnel.await.map_err(|_| io::ErrorKind::TimedOut)?
            }
        }
    }
}

pub(super) async fn connect_upstream(upstream: &Upstream) -> io::Result<TcpStream> {
    let connected = timeout(
        CONNECT_TIMEOUT,
        TcpStream::connect((upstream.host.as_str(), upstream.port)),
    );
    let stream = connected.await.map_err(|_| io::ErrorKind::TimedOut)??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn tunnel(upstream: &Upstream, host: &str, port: u16) -> io::Result<TcpStream> {
    let mut stream = connect_upstream(upstream).await?;
    stream.write_all(&upstream.connect(host, port)).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        // Byte by byte: what follows the head comes from the target.
        head.push(stream.read_u8().await?);
        if head.len() > request_head::MAX_BYTES {
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
