//! Listening on TCP: the port, its registration for this user's programs, and the password of clients.

pub(crate) mod password;
pub(crate) mod port_registry;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use outrigger_bridge::{Acceptor, ConnectionHandle};
use tokio::net::TcpListener;

use crate::hosting::hub::Hub;

/// The port that is tried first by default, as in OpenCode.
pub const USUAL_PORT: u16 = 4096;

/// How long open requests may take to end after a shutdown request.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// An open port that does not answer yet.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    /// The address.
    pub address: SocketAddr,
}

/// Opens a port. If it is `None` or 0, [`USUAL_PORT`] is tried, then any.
///
/// # Errors
/// The system's: a port that is taken, a host name of another machine.
pub async fn listen(hostname: &str, port: Option<u16>) -> io::Result<Listening> {
    let listener = match port.filter(|port| *port != 0) {
        Some(port) => TcpListener::bind((hostname, port)).await?,
        None => match TcpListener::bind((hostname, USUAL_PORT)).await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind((hostname, 0)).await?,
        },
    };
    Ok(Listening {
        address: listener.local_addr()?,
        listener,
    })
}

impl Listening {
    /// Serves a router without a hub until `stop`.
    ///
    /// # Errors
    /// Those of the port.
    pub async fn serve_router(
        self,
        router: Router,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let router = router.into_make_service_with_connect_info::<ConnectionHandle>();
        let serving = axum::serve(Acceptor::new(self.listener), router).into_future();
        tokio::select! {
            ended = serving => ended,
            () = stop => Ok(()),
        }
    }

    /// Serves until `stop`, then ends streams and turns first, then plugins and the store.
    ///
    /// # Errors
    /// Those of the port.
    pub async fn serve(
        self,
        router: Router,
        hub: &Hub,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let acceptor = Acceptor::new(self.listener);
        let router = router.into_make_service_with_connect_info::<ConnectionHandle>();
        let renewing = tokio::spawn(crate::hosting::renew::renew(hub.clone()));
        let mut closing = hub.closing();
        let serving = async move {
            axum::serve(acceptor, router)
                .with_graceful_shutdown(async move {
                    let _ = closing.wait_for(|closing| *closing).await;
                })
                .await
        };
        let mut serving = tokio::spawn(serving);
        tokio::select! {
            ended = &mut serving => return ended.unwrap_or_else(|lost| Err(io::Error::other(lost))),
            () = stop => {}
        }
        renewing.abort();
        hub.close().await;
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, &mut serving)
            .await
            .is_err()
        {
            tracing::debug!("[server] a request did not end in time");
            serving.abort();
        }
        Ok(())
    }
}
