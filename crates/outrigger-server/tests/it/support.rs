//! A project with an agent in it, and requests to the router over that agent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use outrigger_agent::{Agent, Boot};
use outrigger_protocol::event::BusEvent;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::broadcast::Receiver;
use tower::ServiceExt as _;

/// An answer of the router.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    /// Returns the body, which must be JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e} in {}", self.text))
    }
    /// Returns the body of a success.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{}", self.text);
        self.json()
    }
    /// Returns status and name of an error.
    #[track_caller]
    pub(crate) fn error(&self) -> (u16, String) {
        let name = self.json()["name"].as_str().unwrap_or_default().to_owned();
        (self.status.as_u16(), name)
    }
}

/// The folders of one test.
pub(crate) struct World {
    dir: TempDir,
    pub(crate) agent: Agent,
}

impl World {
    /// Starts an agent in a folder without version control.
    pub(crate) async fn plain() -> Self {
        Self::with(&json!({}), |_| {}).await
    }

    /// Starts an agent in a git repository with a commit.
    pub(crate) async fn git() -> Self {
        Self::with(&json!({}), |project| {
            std::fs::write(project.join("hello.txt"), "hello\nworld\n").unwrap();
            std::fs::create_dir(project.join("src")).unwrap();
            std::fs::write(project.join("src/main.rs"), "fn main() {}\n").unwrap();
            git(project, &["init", "-q", "-b", "main"]);
            git(project, &["add", "hello.txt", "src"]);
            git(project, &["commit", "-qm", "first"]);
        })
        .await
    }

    /// Starts an agent with this configuration in a folder that `prepare` fills.
    pub(crate) async fn with(config: &Value, prepare: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("project");
        std::fs::create_dir(&project).unwrap();
        std::fs::create_dir(dir.path().join("home")).unwrap();
        std::fs::write(project.join("opencode.json"), config.to_string()).unwrap();
        prepare(&project);
        let agent = boot(dir.path(), &project).await;
        Self { dir, agent }
    }

    /// Starts another agent with the same data folder, in a folder next to the project.
    pub(crate) async fn neighbour(&self, name: &str) -> Agent {
        let project = self.dir.path().join(name);
        std::fs::create_dir(&project).unwrap();
        boot(self.dir.path(), &project).await
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.agent.location().directory.clone()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        std::fs::write(self.project().join(path), text).unwrap();
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: Option<&str>) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = Body::from(body.unwrap_or_default().to_owned());
        self.ask(request.body(body).unwrap()).await
    }

    /// Sends a request with these headers and no body.
    pub(crate) async fn send_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.ask(request.body(Body::empty()).unwrap()).await
    }

    async fn ask(&self, request: Request<Body>) -> Answer {
        let (method, path) = (request.method().to_string(), request.uri().to_string());
        let answer = self.raw(request).await;
        let (document, status) = (&crate::openapi::DOCUMENT, answer.status.as_u16());
        let faults = crate::openapi::faults(document, &method, &path, status, &answer.text);
        assert!(
            faults.is_empty(),
            "{method} {path} is not as /doc says: {faults:#?} in {}",
            answer.text
        );
        answer
    }

    async fn raw(&self, request: Request<Body>) -> Answer {
        let response = outrigger_server::router(self.agent.clone())
            .oneshot(request)
            .await
            .unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, Some(&body.to_string())).await
    }

    /// Returns the next event of this kind.
    pub(crate) async fn event(events: &mut Receiver<Arc<BusEvent>>, kind: &str) -> Value {
        let next = async {
            loop {
                let event = events.recv().await.unwrap();
                if event.event.kind() == kind {
                    return json!(*event)["properties"].clone();
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(120), next)
            .await
            .unwrap_or_else(|_| panic!("no {kind}"))
    }
}

async fn boot(root: &Path, project: &Path) -> Agent {
    let mut env = BTreeMap::new();
    env.insert("HOME".to_owned(), root.join("home").display().to_string());
    env.insert("PATH".to_owned(), std::env::var("PATH").unwrap());
    env.insert("OUTRIGGER_TRUST_PROJECT".to_owned(), "1".to_owned());
    let mut boot = Boot::new(project.to_path_buf(), env);
    boot.install_modules = false;
    Agent::boot(boot).await.unwrap()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test's own git, not the program's"
)]
pub(crate) fn git(folder: &Path, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
}
