//! An agent's routes, answered by a test.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::http::{Method, Uri};
use futures_util::future::BoxFuture;
use outrigger_client::{Connection, Login, Remote};
use serde_json::{Value, json};

/// The answer of a route.
pub(crate) type Answer = BoxFuture<'static, Value>;

/// Returns an agent whose routes answer with `answer` of a method, a path and a body.
pub(crate) async fn answering(
    answer: impl Fn(&Method, &str, Value) -> Answer + Send + Sync + 'static,
) -> Connection {
    let answer = Arc::new(answer);
    let app = Router::new().fallback(move |method: Method, uri: Uri, body: Bytes| {
        let body = serde_json::from_slice(&body).unwrap_or_default();
        let answered = answer(&method, uri.path(), body);
        async move { axum::Json(answered.await) }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let login = Login {
        password: Some("none".to_owned()),
        username: None,
    };
    Connection::Remote(Remote::new(&url, &login, &[].into(), None).unwrap())
}

/// Answers at once.
pub(crate) fn now(value: Value) -> Answer {
    Box::pin(std::future::ready(value))
}

/// Returns a session in the form of a route's answer.
pub(crate) fn session(id: &str, folder: &str) -> Value {
    json!({
        "id": id, "slug": "a-b-c", "projectID": "p", "directory": folder, "path": "", "title": "T", "version": "1",
        "cost": 0.0, "time": { "created": 1, "updated": 1 },
        "tokens": { "input": 0, "output": 0, "reasoning": 0, "cache": { "read": 0, "write": 0 } },
    })
}
