//! The door of a port: who has not shown yet that they may come in are few, and do not stay (C9, 3). The bridge and
//! `outrigger serve` listen behind it.
//!
//! The time runs to the first request that is let in, not to the end of a request's head, and then ends: a stranger who is refused
//! again and again goes, and a client's connection that waits for its next request, or that events go out on, stays.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

/// A port and what bounds strangers at it. Further ones wait in the system's queue.
#[derive(Debug)]
pub struct Door {
    listener: TcpListener,
    places: Arc<Semaphore>,
    patience: Duration,
}

impl Door {
    /// Most connections at once that nobody was let in on.
    pub const STRANGERS: usize = 128;
    /// How long one of them may take.
    pub const PATIENCE: Duration = Duration::from_secs(10);

    /// A door with the usual bounds.
    #[must_use]
    pub fn new(listener: TcpListener) -> Self {
        Self::with_bounds(listener, Self::STRANGERS, Self::PATIENCE)
    }

    /// A door for this many strangers at once, who may each take this long.
    #[must_use]
    pub fn with_bounds(listener: TcpListener, strangers: usize, patience: Duration) -> Self {
        Self {
            listener,
            places: Arc::new(Semaphore::new(strangers)),
            patience,
        }
    }
}

impl Listener for Door {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        // Never closed, so there is always a place in the end.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        // A piece of an answer is not to wait for the next one.
        let _ = stream.set_nodelay(true);
        let connection = Connection {
            stream,
            visitor: Visitor(Arc::new(Mutex::new(place))),
            until: Some(Box::pin(tokio::time::sleep(self.patience))),
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
pub struct Visitor(Arc<Mutex<Option<OwnedSemaphorePermit>>>);

impl Visitor {
    /// The connection may stay from now on, and its place among the strangers is free.
    pub fn let_in(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn is_stranger(&self) -> bool {
        let place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        place.is_some()
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
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.visitor.is_stranger() {
            this.until = None;
        }
        if let Some(until) = &mut this.until
            && until.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut this.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, bufs)
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
