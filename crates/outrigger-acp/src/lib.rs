//! The Agent Client Protocol, version 1: our agent inside editors. See the crate's README.

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

/// Bounds of what an editor sends: pictures come in lines of some megabytes.
const LIMITS: Limits = Limits {
    line: 64 * 1024 * 1024,
    at_once: 256,
};
/// How long the last lines may take.
const LAST_LINES_TIMEOUT: Duration = Duration::from_secs(2);
/// Takes a request back.
const CANCEL: &str = "$/cancel_request";

/// An agent that was started for a folder.
#[derive(Clone)]
pub struct Opened {
    /// Its routes.
    pub connection: Connection,
    /// What the person must know of its start, a line each: settings that do not count, plugins that did not load.
    pub notices: Vec<String>,
}

/// Who has the agents, one for each folder.
pub trait Host: Send + Sync {
    /// The agent of a folder, which is started where there is none yet.
    fn open(&self, folder: PathBuf) -> BoxFuture<'static, Result<Opened, ClientError>>;
    /// The folder of requests that name none.
    fn folder(&self) -> PathBuf;
}

/// Answers an editor until its input ends. Lines for it go to `write`, from a thread of its own. Turns that run at the end are
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
    // An editor that does no longer read is not waited for.
    let _ = tokio::time::timeout(LAST_LINES_TIMEOUT, writer).await;
    served
}
