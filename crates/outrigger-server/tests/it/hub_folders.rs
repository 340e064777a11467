//! The agents of a server stay in the folders that requests named: a link that is in a folder's place for a moment leads nowhere.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt as _;
use outrigger_agent::{Boot, Folders};
use outrigger_server::{Hub, serve_router};
use tempfile::TempDir;
use tower::ServiceExt as _;

/// A text that only a file outside of the project has.
const CANARY: &str = "canary-of-the-other-folder";
/// The name in the project that is a link at times.
const NAME: &str = "passing";

/// A server for a project, with another folder next to it.
struct Served {
    root: TempDir,
    hub: Hub,
    router: Router,
}

/// What happens to the link while an agent starts.
#[derive(Clone, Copy)]
enum Link {
    /// Only the start finds it: its question about the settings there comes after the folder was resolved.
    Passing,
    Absent,
}

impl Served {
    fn new(link: Link) -> Self {
        let root = tempfile::Builder::new()
            .prefix("outrigger-hub-")
            .tempdir()
            .unwrap();
        let base = root.path().canonicalize().unwrap();
        for folder in ["project", "other", "home", "tmp"] {
            std::fs::create_dir(base.join(folder)).unwrap();
        }
        std::fs::write(base.join("other/s.txt"), CANARY).unwrap();
        let settings = r#"{ "mcp": { "x": { "type": "local", "command": ["x"] } } }"#;
        std::fs::write(base.join("other/opencode.json"), settings).unwrap();
        let env: BTreeMap<String, String> = [
            ("HOME", base.join("home").display().to_string()),
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("TMPDIR", base.join("tmp").display().to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        let project = base.join("project");
        let folders = Folders::from_env(&env);
        let (name, other) = (project.join(NAME), base.join("other"));
        let make = move |directory: PathBuf| {
            if matches!(link, Link::Passing) && directory == name {
                symlink(&other, &name).unwrap();
            }
            let mut boot = Boot::new(directory, env.clone());
            boot.pure = true;
            let name = name.clone();
            boot.trust_folder = Some(Arc::new(move |_| {
                std::fs::remove_file(&name).unwrap();
                Box::pin(async { false })
            }));
            boot
        };
        let hub = Hub::new(folders, project, Arc::new(make));
        let router = serve_router(hub.clone());
        Self { root, hub, router }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    /// Sends a request for a folder, and returns status and body.
    async fn get(&self, route: &str, folder: Option<&Path>) -> (u16, String) {
        let folder = folder.map(|it| format!("&directory={}", it.display()));
        let uri = format!("{route}{}", folder.unwrap_or_default());
        let request = http::Request::get(uri).body(Body::empty()).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8_lossy(&body).into_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_was_there_while_an_agent_started_is_not_its_folder() {
    let served = Served::new(Link::Passing);
    let named = served.path("project").join(NAME);
    let (status, body) = served.get("/path?x=1", Some(&named)).await;
    assert!(!named.is_symlink(), "the start asked, and the link is gone");
    assert_eq!(status, 409, "{body}");
    let (_, body) = served.get("/file/content?path=s.txt", Some(&named)).await;
    assert!(!body.contains(CANARY), "{body}");
    served.hub.close().await;
}

/// A folder that had an agent is not forgotten with it, and neither is the server's own before it has one.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_in_the_place_of_a_folder_that_had_an_agent_is_refused() {
    let served = Served::new(Link::Absent);
    let (own, sub) = (served.path("project"), served.path("project/sub"));
    std::fs::create_dir(&sub).unwrap();
    assert_eq!(served.get("/path?x=1", Some(&sub)).await.0, 200);
    let end = http::Request::post(format!("/instance/dispose?directory={}", sub.display()));
    let end = end.body(Body::empty()).unwrap();
    let ended = served.router.clone().oneshot(end).await.unwrap();
    assert_eq!(ended.status(), 200);
    for (folder, named) in [(&sub, Some(sub.as_path())), (&own, None)] {
        std::fs::rename(folder, served.path("away")).unwrap();
        std::fs::remove_dir_all(served.path("away")).unwrap();
        symlink(served.path("other"), folder).unwrap();
        let (status, body) = served.get("/file/content?path=s.txt", named).await;
        assert_eq!(status, 409, "{}: {body}", folder.display());
        assert!(!body.contains(CANARY), "{body}");
    }
    served.hub.close().await;
}
