//! A bridge with an executor for tests, and a remote controller.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{SinkExt as _, StreamExt as _};
use outrigger_bridge::{Bridge, BridgeError, Call, Commands, Gate, Options, ToolExecutor};
use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::audit::AuditRecord;
use outrigger_protocol::tool::ToolOutput;
use outrigger_protocol::turn::HookPayload;
use outrigger_tools::CancelFlag;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Answers with what it was asked; a command `hang` never ends, `panic` panics, `fail` fails.
#[derive(Default)]
pub(crate) struct Noting {
    pub(crate) lines: Mutex<Vec<String>>,
    pub(crate) running: Arc<AtomicUsize>,
}

struct Runs(Arc<AtomicUsize>);

impl Drop for Runs {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Noting {
    fn note(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

impl ToolExecutor for Noting {
    fn execute<'a>(
        &'a self,
        call: &'a Call,
        _cancel: CancelFlag,
    ) -> BoxFuture<'a, Result<ToolOutput, BridgeError>> {
        Box::pin(async move {
            self.running.fetch_add(1, Ordering::SeqCst);
            let _runs = Runs(Arc::clone(&self.running));
            let params = call.params.as_ref().unwrap();
            let asked = format!("{} {}", params.contract().name(), params.to_value());
            if asked.contains("hang") {
                std::future::pending::<()>().await;
            }
            assert!(!asked.contains("panic"), "as asked");
            if asked.contains("fail") {
                return Err(BridgeError::new("tool.failed", "as asked"));
            }
            if asked.contains("slow") {
                // Like a command that ends at its time limit.
                let limit = params.to_value()["timeout"].as_u64().unwrap();
                tokio::time::sleep(Duration::from_millis(limit)).await;
                return Ok(ToolOutput {
                    title: "t".into(),
                    output: "so far".into(),
                    metadata: json!({"exit": null}),
                    attachments: None,
                });
            }
            Ok(ToolOutput {
                title: "t".into(),
                output: asked,
                metadata: json!({}),
                attachments: None,
            })
        })
    }
    fn tell(&self, _: u64, point: HookPoint, payload: HookPayload) {
        self.note(format!("{point} {} {}", payload.input, payload.output));
    }
    fn audit(&self, record: AuditRecord) {
        self.note(format!(
            "audit {} {} {}",
            record.subject.unwrap_or_default(),
            record.decision,
            record.policy_check_result
        ));
    }
}

pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) executor: Arc<Noting>,
    pub(crate) address: String,
    server: tokio::task::JoinHandle<()>,
}

impl World {
    pub(crate) async fn new(change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::new(std::fs::canonicalize(folder.path()).unwrap());
        options.commands = Commands::new(Vec::new(), true);
        change(&mut options);
        let executor = Arc::new(Noting::default());
        let gate = Gate::new(TOKEN.into(), vec!["https://app.example".into()], true);
        let bridge = Bridge::new(
            options,
            gate,
            Arc::clone(&executor) as Arc<dyn ToolExecutor>,
        );
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = tokio::spawn(async move { bridge.serve(listener).await.unwrap() });
        Self {
            folder,
            executor,
            address,
            server,
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        std::fs::canonicalize(self.folder.path()).unwrap()
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    pub(crate) fn stop(&self) {
        self.server.abort();
    }

    pub(crate) async fn controller(&self) -> Controller {
        let stream = TcpStream::connect(&self.address).await.unwrap();
        let mut request = self.url().into_client_request().unwrap();
        let headers = request.headers_mut();
        headers.insert("authorization", format!("Bearer {TOKEN}").parse().unwrap());
        headers.insert(
            "sec-websocket-protocol",
            "outrigger.bridge.v1".parse().unwrap(),
        );
        let (socket, _) = tokio_tungstenite::client_async(request, stream)
            .await
            .unwrap();
        let mut controller = Controller(socket);
        assert_eq!(controller.next().await["type"], "hello");
        controller
    }

    pub(crate) async fn wait_until_running(&self, count: usize) {
        for _ in 0..20_000 {
            if self.executor.running.load(Ordering::SeqCst) == count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!(
            "{} run, not {count}",
            self.executor.running.load(Ordering::SeqCst)
        );
    }
}

pub(crate) struct Controller(pub(crate) WebSocketStream<TcpStream>);

impl Controller {
    pub(crate) async fn send(&mut self, frame: Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }
    pub(crate) async fn invoke(&mut self, id: &str, tool: &str, params: Value) {
        self.send(json!({"type": "invoke", "id": id, "tool": tool, "params": params}))
            .await;
    }
    /// The next frame; one that says how the connection was closed, at its end.
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            let next = tokio::time::timeout(Duration::from_secs(60), self.0.next());
            return match next.await.unwrap() {
                Some(Ok(Message::Text(text))) => serde_json::from_str(&text).unwrap(),
                Some(Ok(Message::Ping(_))) => continue,
                Some(Ok(Message::Close(close))) => {
                    json!({"type": "close", "code": close.map(|it| u16::from(it.code))})
                }
                Some(Ok(other)) => panic!("{other:?}"),
                Some(Err(_)) | None => json!({"type": "end"}),
            };
        }
    }
}
