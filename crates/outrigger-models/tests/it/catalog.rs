//! The published catalog: when it is fetched, and how the copy is used.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use outrigger_models::{CatalogOptions, Models, ModelsOptions, models_url};
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::message::ModelRef;
use serde_json::json;
use tempfile::TempDir;

use crate::server::{Reply, Server, Then, hello, serve, status};
use crate::{collect, options, request, resolve, user};

const PUBLISHED: &str = r#"{"acme":{"id":"acme","name":"Acme","env":["ACME_KEY"],"npm":"@ai-sdk/openai-compatible","api":"http://127.0.0.1:1/v1",
    "models":{"a1":{"id":"a1","name":"A1","description":"long","limit":{"context":1000,"output":100},"cost":{"input":1,"output":2}}}}}"#;

fn published() -> Reply {
    status("200 OK", "", PUBLISHED)
}

struct TestCatalog {
    folder: TempDir,
    catalog: Server,
}

impl TestCatalog {
    async fn with(reply: Reply) -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            catalog: serve(vec![reply]).await,
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("models.json")
    }

    fn models(&self, model: &Server) -> Models {
        let mut providers = crate::mock(&model.url);
        // A model without limits: the catalog must be asked.
        providers["open"] = json!({"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": model.url}, "models": {"m": {}}});
        Models::new(ModelsOptions {
            providers: providers.as_object().cloned().unwrap(),
            catalog: CatalogOptions {
                file: Some(self.file()),
                url: Some(models_url(&self.catalog.url)),
                ..CatalogOptions::default()
            },
            ..ModelsOptions::default()
        })
    }

    fn asked(&self) -> usize {
        self.catalog.requests.lock().unwrap().len()
    }

    async fn until(&self, what: impl Fn() -> bool) {
        for _ in 0..1000 {
            if what() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(what(), "it does not come");
    }
}

/// Sets the file's modification time back by this many hours.
fn age(path: &Path, hours: u64) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let then = SystemTime::now() - Duration::from_secs(hours * 3600);
    file.set_modified(then).unwrap();
}

async fn ask(models: &Models, name: &str) {
    let stream = resolve(models, name).stream(&request(vec![user("hi")], &[]), &options(0));
    assert!(collect(stream).await.1.is_none());
}

fn knows_acme(models: &Models) -> bool {
    models
        .resolve(&ModelRef::parse("acme/a1").unwrap())
        .err()
        .map(|e| e.code())
        == Some("model.no_key")
}

#[tokio::test]
async fn it_is_fetched_when_a_provider_needs_it_and_once_a_day() {
    let place = TestCatalog::with(published()).await;
    let model = serve(vec![hello()]).await;
    let models = place.models(&model);
    ask(&models, "mock/m1").await;
    assert!(
        !place.file().exists(),
        "a provider that is described needs none"
    );
    ask(&models, "open/m").await;
    place.until(|| knows_acme(&models)).await;
    let text = std::fs::read_to_string(place.file()).unwrap();
    assert!(
        text.contains("\"a1\"") && !text.contains("description"),
        "{text}"
    );
    assert_eq!(
        place.file().metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
    let head = place.catalog.requests.lock().unwrap()[0].head.clone();
    assert!(head.starts_with("GET /v1/api.json "), "{head}");

    // Another process: nothing for a day, then once more.
    for (hours, want) in [(1, 1), (25, 2)] {
        age(&place.file(), hours);
        let models = place.models(&model);
        ask(&models, "open/m").await;
        ask(&models, "open/m").await;
        place.until(|| place.asked() >= want).await;
        assert_eq!(place.asked(), want, "{hours} h");
    }
}

#[tokio::test]
async fn nobody_waits_for_an_answer_that_does_not_come() {
    let stalled = published().then(Then::Stall);
    let place = TestCatalog::with(Reply {
        bytes: b"HTTP/1.1 200 OK\r\n".to_vec(),
        ..stalled
    })
    .await;
    let model = serve(vec![hello()]).await;
    let models = place.models(&model);
    // If the catalog hangs, the answer still arrives.
    ask(&models, "open/m").await;
    place.until(|| place.asked() == 1).await;
    assert!(!place.file().exists());
}

#[tokio::test]
async fn a_broken_answer_keeps_the_old_one() {
    for (reply, want) in [
        (status("500 Oops", "", "{}"), "catalog.fetch"),
        (
            status("301 Moved", "location: http://127.0.0.1:1/\r\n", ""),
            "catalog.fetch",
        ),
        (status("200 OK", "", "<html>"), "catalog.format"),
        (
            status("200 OK", "", r#"{"acme":{"models":{"a":{"limit":"#),
            "catalog.format",
        ),
        (status("200 OK", "", "{}"), "catalog.format"),
        (
            status("200 OK", "", r#"{"acme":{"models":{}}}"#),
            "catalog.format",
        ),
        (
            status("200 OK", "", r#"{"acme":{"models":[]}}"#),
            "catalog.format",
        ),
    ] {
        let place = TestCatalog::with(reply).await;
        std::fs::write(place.file(), PUBLISHED).unwrap();
        let model = serve(vec![hello()]).await;
        let models = place.models(&model);
        let error = models.refresh_catalog().await.unwrap_err();
        assert_eq!(error.code(), want, "{error}");
        assert_eq!(std::fs::read_to_string(place.file()).unwrap(), PUBLISHED);
        assert!(knows_acme(&models));
    }
}

#[tokio::test]
async fn what_must_not_be_asked_is_not() {
    outrigger_net::forbid(&["catalog.example".to_owned()]);
    let folder = TempDir::new().unwrap();
    let refresh = async |url: Option<&str>| {
        let models = Models::new(ModelsOptions {
            catalog: CatalogOptions {
                file: Some(folder.path().join("models.json")),
                url: url.map(models_url),
                ..CatalogOptions::default()
            },
            ..ModelsOptions::default()
        });
        models.refresh_catalog().await.unwrap_err()
    };
    assert_eq!(refresh(None).await.code(), "catalog.off");
    for (url, want) in [
        ("https://catalog.example", "forbids the host"),
        ("http://models.example", "https://"),
        ("file:///etc/passwd.json", "https://"),
    ] {
        let error = refresh(Some(url)).await;
        assert_eq!(error.code(), "catalog.address");
        assert!(error.to_string().contains(want), "{error}");
    }
}
