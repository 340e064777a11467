//! An agent in a fresh project, with the router in front of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt as _;
use outrigger_agent::{Agent, Answering, Boot};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt as _;

use outrigger_test_support::merge;
use outrigger_test_support::model::Mock;

/// Longer than anything here takes.
const STUCK: Duration = Duration::from_secs(120);

pub(crate) struct Harness {
    root: TempDir,
    pub(crate) mock: Mock,
    pub(crate) agent: Agent,
    router: Router,
    /// Every event since the start, as clients receive it.
    events: Arc<Mutex<Vec<Value>>>,
    /// `METHOD path` of requests answered successfully.
    answered: Mutex<BTreeSet<String>>,
}

fn root() -> TempDir {
    tempfile::Builder::new()
        .prefix("outrigger-it-")
        .tempdir()
        .unwrap()
}

impl Harness {
    pub(crate) async fn new(turns: impl IntoIterator<Item = Value>, config: Value) -> Self {
        Self::in_folder(turns, config, |_| {}).await
    }

    /// Does the same in a project that `prepare` has filled.
    pub(crate) async fn in_folder(
        turns: impl IntoIterator<Item = Value>,
        config: Value,
        prepare: impl FnOnce(&std::path::Path),
    ) -> Self {
        let (mock, asks) = (Mock::new(turns), Answering::Ask);
        Self::in_place(root(), mock, config, asks, &[], prepare).await
    }

    /// Does the same with this model, and without anyone who answers questions.
    pub(crate) async fn unattended(
        mock: Mock,
        config: Value,
        prepare: impl FnOnce(&std::path::Path),
    ) -> Self {
        Self::in_place(root(), mock, config, Answering::Refuse, &[], prepare).await
    }

    /// Does the same in this folder, with or without someone who answers questions.
    pub(crate) async fn in_place(
        root: TempDir,
        mock: Mock,
        config: Value,
        answering: Answering,
        variables: &[(&str, &str)],
        prepare: impl FnOnce(&std::path::Path),
    ) -> Self {
        let base = root.path().canonicalize().unwrap();
        let project = base.join("project");
        for folder in [&project, &base.join("home"), &base.join("tmp")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let model = json!({ "name": "M1", "tool_call": true, "limit": { "context": 100_000, "output": 4000 } });
        let mut whole = json!({
            "model": "mock/m1",
            "provider": { "mock": {
                "npm": "@ai-sdk/openai-compatible", "name": "Mock",
                "options": { "baseURL": mock.url(), "apiKey": "x" }, "models": { "m1": model.clone(), "gpt-5": model },
            }},
        });
        merge(&mut whole, config);
        std::fs::write(project.join("opencode.json"), whole.to_string()).unwrap();
        std::fs::write(project.join("hello.txt"), "hi there\n").unwrap();
        prepare(&project);
        let mut env: BTreeMap<String, String> = [
            ("HOME", base.join("home").display().to_string()),
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("TMPDIR", base.join("tmp").display().to_string()),
            ("OUTRIGGER_TRUST_PROJECT", "1".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        let own = |text: &&str| (*text).to_owned();
        env.extend(
            variables
                .iter()
                .map(|(name, value)| (own(name), own(value))),
        );
        let mut boot = Boot::new(project, env);
        boot.pure = true;
        boot.answering = answering;
        let agent = Agent::boot(boot).await.unwrap();
        let events = Arc::new(Mutex::new(Vec::new()));
        let (mut listener, kept) = (agent.listen(), Arc::clone(&events));
        tokio::spawn(async move {
            while let Ok(event) = listener.recv().await {
                kept.lock().unwrap().push(json!(*event));
            }
        });
        Self {
            router: outrigger_server::router(agent.clone()),
            agent,
            root,
            mock,
            events,
            answered: Mutex::default(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root
            .path()
            .canonicalize()
            .unwrap()
            .join("project")
            .join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Sends one request, and returns status and body.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let (status, bytes) = self.bytes(method, path, body).await;
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// Returns the raw body of an answer.
    pub(crate) async fn text(&self, method: &str, path: &str) -> String {
        let (_, bytes) = self.bytes(method, path, Value::Null).await;
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns `METHOD path` of the requests answered successfully so far.
    pub(crate) fn answered(&self) -> BTreeSet<String> {
        self.answered.lock().unwrap().clone()
    }

    /// Returns what a stream sends until it is silent for a while.
    pub(crate) async fn beginning(&self, path: &str) -> String {
        let mut body = self.answer("GET", path, Value::Null).await.into_body();
        let mut text = Vec::new();
        let silence = Duration::from_millis(300);
        while let Ok(Some(Ok(frame))) = tokio::time::timeout(silence, body.frame()).await {
            text.extend(frame.into_data().unwrap_or_default());
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    async fn bytes(&self, method: &str, path: &str, body: Value) -> (u16, Vec<u8>) {
        let response = self.answer(method, path, body).await;
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, bytes.to_vec())
    }

    async fn answer(&self, method: &str, path: &str, body: Value) -> http::Response<Body> {
        let body = if body.is_null() {
            Body::empty()
        } else {
            Body::from(body.to_string())
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(body)
            .unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        if response.status().is_success() {
            let path = path.split('?').next().unwrap_or_default();
            let mut answered = self.answered.lock().unwrap();
            answered.insert(format!("{method} {path}"));
        }
        response
    }

    /// Sends a request that must succeed.
    #[track_caller]
    pub(crate) fn ok(
        &self,
        method: &str,
        path: &str,
        body: Value,
    ) -> impl Future<Output = Value> + '_ {
        let (method, path) = (method.to_owned(), path.to_owned());
        async move {
            let (status, answer) = self.call(&method, &path, body).await;
            assert!(
                (200..300).contains(&status),
                "{method} {path}: {status} {answer}"
            );
            answer
        }
    }

    /// Creates a session.
    pub(crate) async fn session(&self) -> String {
        let session = self.ok("POST", "/session", json!({})).await;
        session["id"].as_str().unwrap().to_owned()
    }

    /// Runs a whole turn, and returns the answer.
    pub(crate) async fn prompt(&self, session: &str, text: &str) -> Value {
        self.ok(
            "POST",
            &format!("/session/{session}/message"),
            json!({ "parts": [{ "type": "text", "text": text }] }),
        )
        .await
    }

    /// Sends a prompt without waiting.
    pub(crate) async fn prompt_async(&self, session: &str, text: &str) {
        self.ok(
            "POST",
            &format!("/session/{session}/prompt_async"),
            json!({ "parts": [{ "type": "text", "text": text }] }),
        )
        .await;
    }

    pub(crate) async fn messages(&self, session: &str) -> Vec<Value> {
        let all = self
            .ok("GET", &format!("/session/{session}/message"), Value::Null)
            .await;
        all.as_array().unwrap().clone()
    }

    /// Returns every part of this kind in the session.
    pub(crate) async fn parts(&self, session: &str, kind: &str) -> Vec<Value> {
        let messages = self.messages(session).await;
        messages
            .iter()
            .filter_map(|m| m["parts"].as_array())
            .flatten()
            .filter(|p| p["type"] == kind)
            .cloned()
            .collect()
    }

    /// Returns the events of a kind so far.
    pub(crate) fn published(&self, kind: &str) -> Vec<Value> {
        let events = self.events.lock().unwrap();
        events
            .iter()
            .filter(|e| e["type"] == kind)
            .cloned()
            .collect()
    }

    /// Returns the kinds of all events so far, in order.
    pub(crate) fn kinds(&self) -> Vec<String> {
        let events = self.events.lock().unwrap();
        events
            .iter()
            .filter_map(|e| e["type"].as_str().map(str::to_owned))
            .collect()
    }

    /// Waits for the n-th event of a kind (from 1).
    pub(crate) async fn sees(&self, kind: &str, n: usize) -> Value {
        let end = Instant::now() + STUCK;
        loop {
            if let Some(event) = self.published(kind).get(n - 1) {
                return event.clone();
            }
            assert!(Instant::now() < end, "no {n}. {kind} in {:?}", self.kinds());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
