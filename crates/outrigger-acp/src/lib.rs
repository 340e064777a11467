//! The Agent Client Protocol, version 1: our agent in editors. See the crate's README.

mod client;
mod content;
mod errors;
mod permissions;
mod questions;
mod server;
mod session;
mod turn;
mod updates;

#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_client::{ClientError, Connection};
use outrigger_jsonrpc::{Limits, Outbox, Peer};
use tokio::io::AsyncRead;

use self::server::Server;

/// Limits of an editor's input: images come in lines of some megabytes.
const LIMITS: Limits = Limits {
    line: 64 * 1024 * 1024,
    at_once: 256,
};
/// How long the last lines may take.
const LAST_LINES_TIMEOUT: Duration = Duration::from_secs(2);
/// Cancels a request.
const CANCEL: &str = "$/cancel_request";

/// An agent that was started for a folder.
#[derive(Clone)]
pub struct Opened {
    /// Its routes.
    pub connection: Connection,
    /// Messages about its start, a line each: settings that do not apply, plugins that did not load.
    pub notices: Vec<String>,
}

/// The owner of the agents, one for each folder.
pub trait Host: Send + Sync {
    /// Returns the agent of a folder, starting it if there is none.
    fn open(&self, folder: PathBuf) -> BoxFuture<'static, Result<Opened, ClientError>>;
    /// Returns the folder of requests that name none.
    fn folder(&self) -> PathBuf;
}

/// Serves an editor until its input ends. Output lines go to `write`, from a separate thread. Turns that run at the end are
/// cancelled.
///
/// # Errors
/// Those of the input.
pub async fn serve(
    host: Arc<dyn Host>,
    input: impl AsyncRead + Unpin,
    write: impl FnMut(&[u8]) + Send + 'static,
) -> io::Result<()> {
    let (peer, outbox) = Peer::new(Some(CANCEL));
    let writer = tokio::task::spawn_blocking(move || Outbox::print(outbox, write));
    let server = Server::new(host, peer.clone());
    let served = outrigger_jsonrpc::serve(&peer, input, LIMITS, &server).await;
    server.close();
    drop((server, peer));
    // Do not wait for an editor that no longer reads.
    let _ = tokio::time::timeout(LAST_LINES_TIMEOUT, writer).await;
    served
}
