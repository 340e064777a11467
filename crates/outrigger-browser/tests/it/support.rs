//! A Chromium, and a site on loopback.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::lending::{LENT, Lending};
use outrigger_browser::provider::{ActionTarget, Done, Look, Provider, Step};
use outrigger_browser::{BrowserError, Chromium, Sites, Source};
use outrigger_browser_core::action::Kind;
use outrigger_browser_core::lease::Owner;
use outrigger_browser_core::snapshot::{Key, Node};
use outrigger_protocol::audit::AuditRecord;
use outrigger_sandbox::Spawner;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// With this variable the browser has a window.
pub(crate) const WINDOWS: &str = "OUTRIGGER_TEST_WINDOWS";

/// How long pages may take. Nothing is asserted about it.
pub(crate) const WAIT: Duration = Duration::from_secs(20);

pub(crate) fn owner(session: &str) -> Owner {
    Owner {
        session: session.into(),
        agent: "build".into(),
        turn: 0,
    }
}

/// Serves pages by path; any other is 404. `/file-…` is a download, `….js` a script, a page `redirect ADDRESS` leads there.
pub(crate) async fn site(pages: Vec<(&'static str, String)>) -> String {
    stoppable(pages, 0).await.at
}

/// A site that can go away.
pub(crate) struct Site {
    pub(crate) at: String,
    pub(crate) port: u16,
    task: tokio::task::JoinHandle<()>,
}

impl Site {
    /// Nobody listens on its port any more.
    pub(crate) async fn stop(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

/// The same on a port, 0 for any.
pub(crate) async fn stoppable(pages: Vec<(&'static str, String)>, port: u16) -> Site {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let pages = Arc::new(pages);
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, Arc::clone(&pages)));
        }
    });
    Site {
        at: format!("http://127.0.0.1:{port}"),
        port,
        task,
    }
}

async fn answer(mut stream: TcpStream, pages: Arc<Vec<(&'static str, String)>>) {
    let mut buffer = vec![0; 16 * 1024];
    let count = stream.read(&mut buffer).await.unwrap_or_default();
    let head = String::from_utf8_lossy(&buffer[..count]).into_owned();
    let path = head
        .split(' ')
        .nth(1)
        .unwrap_or("/")
        .split('?')
        .next()
        .unwrap_or("/");
    let page = pages.iter().find(|(it, _)| *it == path);
    let kind = match path {
        it if it.starts_with("/file-") => {
            "application/octet-stream\r\nContent-Disposition: attachment"
        }
        it if it.ends_with(".js") => "text/javascript",
        _ => "text/html; charset=utf-8",
    };
    let (status, body) = page.map_or(("404 Not Found", ""), |(_, page)| ("200 OK", page));
    let elsewhere = body
        .strip_prefix("redirect ")
        .map(|to| format!("302 Found\r\nLocation: {to}"));
    let status = elsewhere.as_deref().unwrap_or(status);
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
}

/// A browser with what a test needs of it.
pub(crate) struct Bench {
    pub(crate) browser: Arc<Chromium>,
    pub(crate) sites: Arc<Sites>,
    pub(crate) folder: tempfile::TempDir,
    /// Where it is the user's own.
    pub(crate) lending: Option<Arc<Lending>>,
    /// What it wrote into the audit.
    pub(crate) audit: Arc<Mutex<Vec<AuditRecord>>>,
}

impl Bench {
    /// One more site that may be shown.
    pub(crate) async fn allow(&self, site: &str) {
        self.sites.allow(&url::Url::parse(site).unwrap());
        if let Some(lending) = &self.lending {
            lending.rule("allow", &format!("{site}/*")).await;
        }
    }
}

/// A browser that may show everything of this site; `None` where this machine has none.
pub(crate) async fn bench(site: &str) -> Option<Bench> {
    if std::env::var_os(LENT).is_some() {
        return lent(site).await;
    }
    let Some(program) = outrigger_browser::find() else {
        outrigger_test_support::skip::skip("there is no Chromium");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    // Ports that this process listens on are never shown, and the site is one of them: a test has its own rule.
    let sites = Arc::new(Sites::for_tests(site));
    let source = Source::Start {
        program,
        headless: std::env::var_os(WINDOWS).is_none(),
        arguments: vec!["--disable-gpu".into()],
    };
    let audit = Arc::new(Mutex::new(Vec::new()));
    let browser = started(&source, folder.path(), &sites, &audit).await;
    Some(Bench {
        browser,
        sites,
        lending: None,
        folder,
        audit,
    })
}

/// The same in the user's own browser.
pub(crate) async fn lent(site: &str) -> Option<Bench> {
    let lending = Lending::start().await?;
    lending.rule("allow", &format!("{site}/*")).await;
    let folder = tempfile::tempdir().unwrap();
    let (sites, audit) = (Arc::new(Sites::for_tests(site)), Arc::default());
    let browser = started(&lending.source(), folder.path(), &sites, &audit).await;
    Some(Bench {
        browser,
        sites,
        lending: Some(lending),
        folder,
        audit,
    })
}

pub(crate) async fn started(
    source: &Source,
    folder: &Path,
    sites: &Arc<Sites>,
    audit: &Arc<Mutex<Vec<AuditRecord>>>,
) -> Arc<Chromium> {
    let spawner = Spawner::new().unwrap();
    let records = Arc::clone(audit);
    let record = Arc::new(move |it| records.lock().unwrap().push(it));
    Chromium::start(source, folder, &spawner, Arc::clone(sites), record)
        .await
        .unwrap()
}

/// A page that is open in a tab of the session `s`, as it looked then.
pub(crate) struct Opened {
    pub(crate) bench: Bench,
    pub(crate) browser: Arc<Chromium>,
    pub(crate) at: String,
    pub(crate) tab: String,
    pub(crate) look: Look,
}

/// Opens the page `/` of a site; `None` where this machine has no Chromium.
pub(crate) async fn opened(pages: Vec<(&'static str, String)>) -> Option<Opened> {
    let at = site(pages).await;
    let bench = bench(&at).await?;
    let browser = Arc::clone(&bench.browser);
    let tab = browser.open(&owner("s"), Some(&at), WAIT).await.unwrap();
    let look = browser.look(&tab).await.unwrap();
    Some(Opened {
        bench,
        browser,
        at,
        tab,
        look,
    })
}

impl Opened {
    /// The key of an element that was on the page when it was opened.
    pub(crate) fn key(&self, role: &str, name: &str) -> &Key {
        &find(&self.look, role, name).key
    }

    /// Does something to such an element.
    pub(crate) async fn act(
        &self,
        kind: Kind,
        (role, name): (&str, &str),
        text: &str,
    ) -> Result<Done, BrowserError> {
        act(&self.browser, &self.tab, kind, self.key(role, name), text).await
    }

    /// Clicks such a button.
    pub(crate) async fn click(&self, name: &str) -> Result<Done, BrowserError> {
        self.act(Kind::Click, ("button", name), "").await
    }

    pub(crate) async fn look(&self) -> Look {
        self.browser.look(&self.tab).await.unwrap()
    }

    pub(crate) async fn title(&self) -> String {
        self.look().await.title
    }

    /// Until the page that is called so is there.
    pub(crate) async fn loads(&self, title: &str) {
        let mut seen = None;
        for _ in 0..400 {
            let look = self.browser.look(&self.tab).await;
            seen = look.ok().map(|it| it.title);
            if seen.as_deref() == Some(title) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{title} does not come: {seen:?}");
    }
}

pub(crate) fn find<'a>(look: &'a Look, role: &str, name: &str) -> &'a Node {
    look.nodes
        .iter()
        .find(|it| it.role == role && it.name.contains(name))
        .unwrap_or_else(|| panic!("no {role} {name:?} in {:#?}", look.nodes))
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
