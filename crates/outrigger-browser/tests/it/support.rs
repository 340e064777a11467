//! A Chromium, and a site on loopback.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outrigger_browser::provider::{ActionTarget, Done, Look, Provider, Step};
use outrigger_browser::{BrowserError, Chromium, Sites, Source};
use outrigger_browser_core::action::Kind;
use outrigger_browser_core::lease::Owner;
use outrigger_browser_core::snapshot::{Key, Node};
use outrigger_sandbox::Spawner;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// How long pages may take. Nothing is asserted about it.
pub(crate) const WAIT: Duration = Duration::from_secs(20);

pub(crate) fn owner(session: &str) -> Owner {
    Owner {
        session: session.into(),
        agent: "build".into(),
        turn: 0,
    }
}

/// Serves pages by path; any other is 404. The last path segment `slow-…` waits, `file-…` is a download.
pub(crate) async fn site(pages: Vec<(&'static str, String)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let pages = Arc::new(pages);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let pages = Arc::clone(&pages);
            tokio::spawn(async move {
                let mut buffer = vec![0; 16 * 1024];
                let count = stream.read(&mut buffer).await.unwrap_or_default();
                let head = String::from_utf8_lossy(&buffer[..count]).into_owned();
                let path = head
                    .split(' ')
                    .nth(1)
                    .unwrap_or("/")
                    .split('?')
                    .next()
                    .unwrap_or("/")
                    .to_owned();
                let page = pages
                    .iter()
                    .find(|(it, _)| *it == path)
                    .map(|(_, page)| page.clone());
                let kind = if path.starts_with("/file-") {
                    "application/octet-stream\r\nContent-Disposition: attachment"
                } else {
                    "text/html; charset=utf-8"
                };
                let (status, body) =
                    page.map_or(("404 Not Found", String::new()), |page| ("200 OK", page));
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    at
}

/// A browser with what a test needs of it.
pub(crate) struct Bench {
    pub(crate) browser: Arc<Chromium>,
    pub(crate) sites: Arc<Sites>,
    pub(crate) folder: tempfile::TempDir,
}

/// A browser that may show everything of this site; `None` where this machine has none.
pub(crate) async fn bench(site: &str) -> Option<Bench> {
    let Some(program) = outrigger_browser::find() else {
        outrigger_test_support::skip::skip("there is no Chromium");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    // Ports that this process listens on are never shown, and the site is one of them: a test has its own rule.
    let sites = Arc::new(Sites::for_tests(site));
    let source = Source::Start {
        program,
        headless: true,
        arguments: vec!["--disable-gpu".into()],
    };
    let browser = started(&source, folder.path(), &sites).await;
    Some(Bench {
        browser,
        sites,
        folder,
    })
}

pub(crate) async fn started(source: &Source, folder: &Path, sites: &Arc<Sites>) -> Arc<Chromium> {
    let spawner = Spawner::new().unwrap();
    Chromium::start(source, folder, &spawner, Arc::clone(sites))
        .await
        .unwrap()
}

pub(crate) fn find<'a>(look: &'a Look, role: &str, name: &str) -> &'a Node {
    let found = look
        .nodes
        .iter()
        .find(|it| it.role == role && it.name.contains(name));
    found.unwrap_or_else(|| panic!("no {role} {name:?} in {:#?}", look.nodes))
}

/// Does something to an element, with a lease of the session `s`.
pub(crate) async fn act(
    browser: &Chromium,
    tab: &str,
    kind: Kind,
    key: &Key,
    text: &str,
) -> Result<Done, BrowserError> {
    let grant = browser.acquire(tab, &owner("s"))?;
    let step = Step {
        place: Some(ActionTarget::Element(key.clone())),
        text: Some(text.to_owned()),
        values: vec![text.to_owned()],
        ..Step::of(kind, WAIT)
    };
    browser.act(&grant, &step).await
}

/// The text of a page.
pub(crate) fn text(look: &Look) -> String {
    look.nodes
        .iter()
        .filter(|it| it.role == "text")
        .map(|it| it.name.as_str())
        .collect::<Vec<_>>()
        .join(" ")
}
