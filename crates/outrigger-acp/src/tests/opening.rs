//! Sessions opened while the editor's servers are slow or fail.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::Method;
use futures_util::future::BoxFuture;
use outrigger_client::{ClientError, Connection};
use outrigger_jsonrpc::{Peer, Service as _};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::agents::{answering, now, session};
use crate::server::Server;
use crate::session::servers;
use crate::{Host, Opened};

/// The same agent for each folder.
pub(super) struct OneAgent(pub(super) Connection);

impl Host for OneAgent {
    fn open(&self, _: PathBuf) -> BoxFuture<'static, Result<Opened, ClientError>> {
        let opened = Opened {
            connection: self.0.clone(),
            notices: Vec::new(),
        };
        Box::pin(std::future::ready(Ok(opened)))
    }

    fn folder(&self) -> PathBuf {
        "/".into()
    }
}

#[tokio::test]
async fn a_slow_server_of_one_folder_holds_up_no_other_folder() {
    let (begun, goes_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (slow_begun, slow_goes_on) = (Arc::clone(&begun), Arc::clone(&goes_on));
    let made = AtomicUsize::new(0);
    let agent = answering(move |method, path, body| match (method, path) {
        (&Method::POST, "/session") => {
            // The first is of `/`, the second of `/tmp`.
            let number = made.fetch_add(1, Ordering::Relaxed);
            now(session(&format!("ses_{number}"), ["/", "/tmp"][number]))
        }
        (&Method::POST, "/mcp") if body["name"] == "slow" => {
            let (begun, goes_on) = (Arc::clone(&slow_begun), Arc::clone(&slow_goes_on));
            Box::pin(async move {
                begun.notify_one();
                goes_on.notified().await;
                json!({})
            })
        }
        (_, "/command" | "/agent") => now(json!([])),
        _ => now(json!({})),
    })
    .await;
    let (peer, _outbox) = Peer::new(None);
    let server = Server::new(Arc::new(OneAgent(agent)), peer);
    server.request("initialize", json!({})).await.unwrap();
    let new = |folder: &str, name: &str| {
        let servers = json!([{ "name": name, "command": "x", "args": [], "env": [] }]);
        server.request(
            "session/new",
            json!({ "cwd": folder, "mcpServers": servers }),
        )
    };
    let first = tokio::spawn(new("/", "slow"));
    begun.notified().await;
    let second = new("/tmp", "quick").await.unwrap();
    assert_eq!(second.value["sessionId"], "ses_1");
    assert!(!first.is_finished());
    goes_on.notify_one();
    let first = first.await.unwrap().unwrap();
    assert_eq!(first.value["sessionId"], "ses_0");
}

#[tokio::test]
async fn a_server_that_failed_is_tried_again_and_one_that_runs_is_not() {
    let tries = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&tries);
    let agent = answering(move |method, path, _| {
        assert_eq!(path, "/mcp");
        let tried = match *method {
            Method::POST => count.fetch_add(1, Ordering::Relaxed) + 1,
            _ => count.load(Ordering::Relaxed),
        };
        now(match tried {
            0 => json!({}),
            1 => json!({ "a": { "status": "failed", "error": "no such program" } }),
            _ => json!({ "a": { "status": "connected" } }),
        })
    })
    .await;
    let mut known = Vec::new();
    let mut said: Vec<Vec<String>> = Vec::new();
    for _ in 0..3 {
        let handed = json!({ "mcpServers": [{ "name": "a", "command": "x" }] });
        let handed: Vec<servers::Handed> = servers::read(&handed).unwrap();
        said.push(servers::start(&agent, handed, &mut known).await.unwrap());
    }
    assert_eq!(said[0], ["MCP server a: no such program"]);
    assert_eq!(said[1..], [Vec::<String>::new(), Vec::new()]);
    assert_eq!(tries.load(Ordering::Relaxed), 2);
    let _: Value = agent.get("/mcp").await.unwrap();
}
