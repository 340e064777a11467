//! A Chromium with the extension in it, as a user has it: `extension/tests/browser/lend.mjs` starts it, and does what a user does.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outrigger_browser::{Relay, Source};
use outrigger_sandbox::{Child, Spawner, Spec};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

/// With this variable the suite runs in a user's own browser. `cargo xtask extension --browser` sets it.
pub(crate) const LENT: &str = "OUTRIGGER_TEST_LENT";
pub(crate) const TOKEN: &str = "a-token-of-the-test-that-is-long-enough";

/// A user's own browser, and what the user does in it. It ends with this value.
pub(crate) struct Lending {
    stream: Mutex<BufReader<TcpStream>>,
    pub(crate) relay: Relay,
    _child: Child,
    _folder: tempfile::TempDir,
}

impl Lending {
    /// Starts one, and switches it on; `None` where the extension is not built or there is nothing to run it with.
    pub(crate) async fn start() -> Option<Arc<Self>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../extension");
        let node = std::env::var_os("PATH").and_then(|path| {
            std::env::split_paths(&path)
                .map(|it| it.join("node"))
                .find(|it| it.exists())
        });
        let is_built = root.join("dist/kernel.wasm").exists();
        let (Some(node), Some(program), true) = (node, outrigger_browser::find(), is_built) else {
            outrigger_test_support::skip::skip(
                "the extension is not built, or there is no Chromium",
            );
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("port");
        let spec = Spec::new(node)
            .arg(root.join("tests/browser/lend.mjs").display().to_string())
            .arg(file.display().to_string())
            .vars(outrigger_sandbox::env::of_host(&[]))
            .var("CHROMIUM", program.display().to_string());
        let child = Spawner::new().unwrap().spawn(spec).await.unwrap();
        let stream = TcpStream::connect(("127.0.0.1", port_in(&file).await))
            .await
            .unwrap();
        // A port that was free a moment ago.
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let mut it = Self {
            stream: Mutex::new(BufReader::new(stream)),
            relay: Relay {
                origin: String::new(),
                port,
                token: TOKEN.to_owned(),
                token_place: "the test's".to_owned(),
                wait: Duration::from_secs(60),
            },
            _child: child,
            _folder: folder,
        };
        let id = it.asked("id", json!({})).await;
        it.relay.origin = format!("chrome-extension://{}", id.as_str().unwrap());
        it.lend(TOKEN).await;
        Some(Arc::new(it))
    }

    pub(crate) fn source(&self) -> Source {
        Source::Extension(self.relay.clone())
    }

    /// The user switches it on, with a token.
    pub(crate) async fn lend(&self, token: &str) {
        let url = format!("ws://127.0.0.1:{}", self.relay.port);
        self.asked("lend", json!({ "url": url, "token": token }))
            .await;
    }

    /// The user allows or denies addresses in the extension.
    pub(crate) async fn rule(&self, action: &str, pattern: &str) {
        self.asked("rule", json!({ "action": action, "pattern": pattern }))
            .await;
    }

    /// The user's tabs and the agent's.
    pub(crate) async fn tabs(&self) -> usize {
        self.asked("tabs", json!({}))
            .await
            .as_array()
            .map_or(0, Vec::len)
    }

    pub(crate) async fn asked(&self, op: &str, mut with: Value) -> Value {
        with["op"] = op.into();
        let mut stream = self.stream.lock().await;
        stream
            .get_mut()
            .write_all(format!("{with}\n").as_bytes())
            .await
            .unwrap();
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        let mut said: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(said.get("error"), None, "{op}: {said}");
        said["ok"].take()
    }
}

async fn port_in(file: &PathBuf) -> u16 {
    for _ in 0..1200 {
        if let Ok(text) = std::fs::read_to_string(file) {
            return text.parse().unwrap();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the browser of the test does not start")
}
