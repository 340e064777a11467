//! Listening, and letting connections in.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{ConnectInfo, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::{HeaderMap, StatusCode};
use outrigger_protocol::audit::{AuditKind, AuditRecord};
use outrigger_protocol::invoke::SUBPROTOCOL;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::layers::Layer;
use crate::{Acceptor, Commands, ConnectionHandle, Gate, SharedExecutor, connection, layers};

/// Options of a bridge.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder that everything is in, absolute.
    pub root: PathBuf,
    /// Command lines that are executed.
    pub commands: Commands,
    /// Maximum number of calls at once, of all connections.
    pub concurrent: usize,
    /// Maximum number of connections.
    pub connections: usize,
    /// Largest frame, in bytes.
    pub frame_bytes: usize,
    /// Longest call.
    pub deadline: Duration,
    /// Longest pause between whole frames of a controller, pings included.
    pub idle: Duration,
    /// Maximum number of connections that have not authenticated.
    pub pending_connections: usize,
    /// Time to authenticate.
    pub handshake_timeout: Duration,
}

impl Options {
    /// Creates options with the default limits.
    #[must_use]
    pub fn new(root: PathBuf) -> Self {
        Self {
            root,
            commands: Commands::default(),
            concurrent: 100,
            connections: 16,
            frame_bytes: 8 * 1024 * 1024,
            deadline: Duration::from_secs(600),
            idle: Duration::from_secs(120),
            pending_connections: Acceptor::MAX_PENDING,
            handshake_timeout: Acceptor::HANDSHAKE_TIMEOUT,
        }
    }
}

pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) executor: SharedExecutor,
    pub(crate) layers: Vec<Box<dyn Layer>>,
    gate: Gate,
    open: Arc<Semaphore>,
    count: AtomicU64,
}

/// A bridge. It listens until the future of [`Bridge::serve`] is dropped.
pub struct Bridge(Arc<Shared>);

impl Bridge {
    /// A bridge with these limits, whom it lets in, and who executes.
    #[must_use]
    pub fn new(options: Options, gate: Gate, executor: SharedExecutor) -> Self {
        let layers = layers::all(
            &executor,
            &options.root,
            options.commands.clone(),
            options.concurrent,
        );
        Self(Arc::new(Shared {
            open: Arc::new(Semaphore::new(options.connections)),
            options,
            executor,
            layers,
            gate,
            count: AtomicU64::new(0),
        }))
    }

    /// Returns the names of the layers, in the order in which they see a call.
    #[must_use]
    pub fn layers(&self) -> Vec<&'static str> {
        self.0.layers.iter().map(|layer| layer.name()).collect()
    }

    /// Serves connections.
    ///
    /// # Errors
    /// Those of the listener.
    pub async fn serve(self, listener: TcpListener) -> std::io::Result<()> {
        let router = Router::new()
            .route("/", get(upgrade))
            .with_state(Arc::clone(&self.0));
        let Options {
            pending_connections,
            handshake_timeout,
            ..
        } = self.0.options;
        let acceptor = Acceptor::with_bounds(listener, pending_connections, handshake_timeout);
        let router = router.into_make_service_with_connect_info::<ConnectionHandle>();
        axum::serve(acceptor, router).await
    }
}

async fn upgrade(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(connection): ConnectInfo<ConnectionHandle>,
    headers: HeaderMap,
    socket: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Response {
    let admitted = shared.gate.admit(&headers);
    let number = shared.count.fetch_add(1, Ordering::Relaxed) + 1;
    let decision = admitted
        .as_ref()
        .map_or_else(|e| e.code.as_str(), |()| "connect");
    let origin = headers
        .get(http::header::ORIGIN)
        .map_or("none".into(), |it| String::from_utf8_lossy(it.as_bytes()));
    shared.executor.audit(AuditRecord {
        subject: Some(format!("connection {number}")),
        detail: Some(format!(
            "origin: {}",
            origin.chars().take(200).collect::<String>()
        )),
        errored: admitted.is_err(),
        policy_check_result: match &admitted {
            Ok(()) => "passed".to_owned(),
            Err(refusal) => format!("refused: {}", refusal.code),
        },
        ..AuditRecord::new(AuditKind::Bridge, 0, decision)
    });
    let refuse = |status: StatusCode, code: &str, message: &str| {
        let body = serde_json::json!({ "code": code, "message": message });
        (status, axum::Json(body)).into_response()
    };
    if let Err(refusal) = admitted {
        let status = match refusal.code.as_str() {
            "bridge.origin" => StatusCode::FORBIDDEN,
            _ => StatusCode::UNAUTHORIZED,
        };
        return refuse(status, &refusal.code, &refusal.message);
    }
    connection.authenticated();
    let socket = match socket {
        Ok(socket) => socket,
        Err(rejection) => return rejection.into_response(),
    };
    let Ok(place) = Arc::clone(&shared.open).try_acquire_owned() else {
        let message = "as many connections as there may be are open";
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "bridge.busy", message);
    };
    let most = shared.options.frame_bytes;
    socket
        .protocols([SUBPROTOCOL])
        .max_message_size(most)
        .max_frame_size(most)
        .on_upgrade(move |socket| async move {
            connection::serve(shared, socket, number).await;
            drop(place);
        })
}
