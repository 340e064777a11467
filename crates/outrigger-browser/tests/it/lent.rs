//! The user's own browser: who may lend it, what of it is lent, what becomes of a connection that is lost.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_browser::provider::Provider as _;
use outrigger_browser::{BrowserError, Chromium, Relay, Sites, Source};
use outrigger_browser_core::action::Kind;
use outrigger_protocol::audit::AuditRecord;
use outrigger_sandbox::Spawner;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::lending::TOKEN;
use crate::support::{Bench, WAIT, act, find, lent, owner, site, text};
use crate::tools::Room;

const ORIGIN: &str = "chrome-extension://abcdefghijklmnopabcdefghijklmnop";

type Audit = Arc<Mutex<Vec<AuditRecord>>>;

async fn start(relay: &Relay, audit: &Audit) -> Result<Arc<Chromium>, BrowserError> {
    let folder = tempfile::tempdir().unwrap();
    let (spawner, records) = (Spawner::new().unwrap(), Arc::clone(audit));
    let record = Arc::new(move |it| records.lock().unwrap().push(it));
    let sites = Arc::new(Sites::for_tests("http://127.0.0.1:1"));
    let source = Source::Extension(relay.clone());
    Chromium::start(&source, folder.path(), &spawner, sites, record).await
}

async fn relay(wait: Duration) -> Relay {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    Relay {
        origin: ORIGIN.to_owned(),
        port: listener.local_addr().unwrap().port(),
        token: TOKEN.to_owned(),
        token_place: "in /a/file".to_owned(),
        wait,
    }
}

/// The status of the answer to who wants to connect.
async fn knocks(port: u16, headers: &[&str]) -> String {
    let mut stream = loop {
        match TcpStream::connect(("127.0.0.1", port)).await {
            Ok(stream) => break stream,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    let head = format!(
        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{}\r\n\r\n",
        headers.join("\r\n")
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut buffer = [0; 12];
    stream.read_exact(&mut buffer).await.unwrap();
    String::from_utf8_lossy(&buffer[9..]).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_that_is_not_there_is_said_with_what_to_do() {
    let (relay, audit) = (relay(Duration::from_millis(1)).await, Audit::default());
    let error = start(&relay, &audit).await.err().unwrap();
    let said = error.to_string();
    assert_eq!(error.code(), "browser.relay");
    for part in [
        format!("ws://127.0.0.1:{}", relay.port),
        "in /a/file".to_owned(),
        "Settings, Native program".to_owned(),
    ] {
        assert!(said.contains(&part), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_the_extension_is_not_let_in_and_one_agent_has_it() {
    let (relay, audit) = (relay(Duration::from_secs(60)).await, Audit::default());
    let waiting = {
        let (relay, audit) = (relay.clone(), Arc::clone(&audit));
        tokio::spawn(async move { start(&relay, &audit).await.map(drop) })
    };
    let origin = format!("Origin: {ORIGIN}");
    let nonce = "nonce.00000000000000000000000000000000";
    for (headers, want) in [
        (vec![], "403"),
        (vec!["Origin: https://evil.example".to_owned()], "403"),
        (vec![origin.clone()], "401"),
        // The token itself is never sent, and is not what lets in.
        (
            vec![
                origin.clone(),
                format!("Sec-WebSocket-Protocol: bearer.{TOKEN}, {nonce}"),
            ],
            "401",
        ),
    ] {
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        assert_eq!(knocks(relay.port, &headers).await, want, "{headers:?}");
    }
    let codes: Vec<String> = audit
        .lock()
        .unwrap()
        .iter()
        .map(|it| it.decision.clone())
        .collect();
    assert_eq!(
        codes,
        [
            "relay.origin",
            "relay.origin",
            "relay.unauthorized",
            "relay.unauthorized"
        ]
    );
    let error = start(&relay, &Audit::default()).await.err().unwrap();
    assert!(error.to_string().contains("another agent"), "{error}");
    waiting.abort();
}

const PAGE: &str = r#"<title>0</title><button onclick="document.title=+document.title+1">Count</button><a href="/denied">Denied</a>"#;

/// A page that is open in the user's own browser.
async fn page() -> Option<(Bench, String, String)> {
    let pages = [("/", PAGE), ("/denied", "<title>secret</title>secret")];
    let at = site(pages.map(|(path, page)| (path, page.to_owned())).into()).await;
    let bench = lent(&at).await?;
    let tab = bench
        .browser
        .open(&owner("s"), Some(&at), WAIT)
        .await
        .unwrap();
    Some((bench, at, tab))
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_the_agents_tabs_and_what_is_on_the_list_is_lent() {
    let Some((it, at, tab)) = page().await else {
        return;
    };
    let (browser, lending) = (&it.browser, it.lending.as_ref().unwrap());
    assert_eq!(browser.name(), "extension");
    let users = lending
        .asked("open", json!({ "url": format!("{at}/denied") }))
        .await;
    let before = lending.tabs().await;
    let known = browser
        .command(None, "Target.getTargets", json!({}))
        .await
        .unwrap();
    assert_eq!(known["targetInfos"].as_array().unwrap().len(), 1, "{known}");
    let user = json!({ "targetId": users });
    for (tab, method, params) in [
        (None, "Target.closeTarget", user.clone()),
        (None, "Target.attachToTarget", user.clone()),
        (None, "Target.exposeDevToolsProtocol", user),
        (None, "Storage.getCookies", json!({})),
        (None, "Browser.getVersion", json!({})),
        (None, "Browser.close", json!({})),
        (Some(&*tab), "Network.getAllCookies", json!({})),
        (Some(&tab), "Network.getCookies", json!({})),
        (Some(&tab), "Storage.getCookies", json!({})),
        (
            Some(&tab),
            "Page.setDownloadBehavior",
            json!({ "behavior": "allow" }),
        ),
        (Some(&tab), "Target.createTarget", json!({ "url": at })),
        (
            Some(&tab),
            "DOM.setFileInputFiles",
            json!({ "files": ["/etc/passwd"] }),
        ),
        (
            Some(&tab),
            "Page.navigate",
            json!({ "url": "file:///etc/passwd" }),
        ),
        (
            Some(&tab),
            "Page.navigate",
            json!({ "url": "http://127.0.0.1:1/" }),
        ),
    ] {
        let error = browser.command(tab, method, params).await.unwrap_err();
        assert_eq!(error.code(), "browser.refused", "{method}: {error}");
        let audit = it.audit.lock().unwrap();
        let last = audit.last().unwrap();
        assert_eq!(
            (last.decision.as_str(), last.subject.as_deref()),
            ("relay.refused", Some(method))
        );
    }
    assert_eq!(lending.tabs().await, before);
    // The user's rules in the extension count, whatever ours say, and however the page comes to be there.
    lending.rule("deny", &format!("{at}/denied")).await;
    let look = browser.look(&tab).await.unwrap();
    let link = &find(&look, "link", "Denied").key;
    let _ = act(browser, &tab, Kind::Click, link, "").await;
    let error = browser.look(&tab).await.unwrap_err();
    assert!(
        error.to_string().contains("a rule of the extension denies"),
        "{error}"
    );
    let url = format!("{at}/denied");
    let error = browser
        .open(&owner("s"), Some(&url), WAIT)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("a rule of the extension denies"),
        "{error}"
    );
    browser.close().await;
    // What the agent has opened goes with it, the user's tabs stay.
    for _ in 0..200 {
        if lending.tabs().await < before {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(lending.tabs().await, before - 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_ended_in_the_middle_of_an_action_comes_back_and_nothing_is_done_twice() {
    let Some((it, _, tab)) = page().await else {
        return;
    };
    let (browser, lending) = (&it.browser, it.lending.as_ref().unwrap());
    let key = find(&browser.look(&tab).await.unwrap(), "button", "Count")
        .key
        .clone();
    // A command that is on its way when the worker ends.
    let grant = browser.acquire(&tab, &owner("s")).unwrap();
    let forever = browser.eval(&grant, "new Promise(() => {})");
    let (ended, _) = tokio::join!(forever, lending.asked("kill", json!({})));
    let error = ended.unwrap_err();
    assert!(error.is_unknown(), "{error}");
    let mut expected = 0;
    for round in 0..3 {
        // Wherever in a click it ends: what is there is what was done.
        let click = act(browser, &tab, Kind::Click, &key, "");
        let (clicked, _) = tokio::join!(click, lending.asked("kill", json!({})));
        let look = browser.look(&tab).await.unwrap();
        let count: u32 = look.title.parse().unwrap();
        match &clicked {
            Ok(_) => assert!(count <= expected + 1, "{round}: {look:?}"),
            Err(error) => assert!(error.is_unknown(), "{round}: {error}"),
        }
        assert!(
            count == expected || count == expected + 1,
            "{round}: {count}"
        );
        expected = count;
        // The tab is the same, its references hold, and our own clicks are not a person's.
        for _ in 0..2 {
            act(browser, &tab, Kind::Click, &key, "").await.unwrap();
            expected += 1;
        }
        let title = browser.look(&tab).await.unwrap().title;
        assert_eq!(title, expected.to_string(), "{round}");
    }
    assert_eq!(browser.tabs().len(), 1);
    browser.close().await;
}

/// Serves a page whose button asks for `/slow` and waits for the answer, which comes when the test says so.
async fn slow() -> (String, Arc<Notify>, Arc<Notify>) {
    let page = r#"<title>0</title><button onclick="document.title=+document.title+1; const it = new XMLHttpRequest(); it.open('POST', '/slow', false); it.send()">Slow</button>"#;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let at = format!("http://{}", listener.local_addr().unwrap());
    let (asked, answer) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (asks, answers) = (Arc::clone(&asked), Arc::clone(&answer));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (asks, answers) = (Arc::clone(&asks), Arc::clone(&answers));
            tokio::spawn(async move {
                let mut buffer = vec![0; 16 * 1024];
                let count = stream.read(&mut buffer).await.unwrap_or_default();
                if buffer[..count].starts_with(b"POST /slow") {
                    asks.notify_one();
                    answers.notified().await;
                }
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
                    page.len()
                );
                let _ = stream.write_all(head.as_bytes()).await;
            });
        }
    });
    (at, asked, answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_whose_outcome_is_unknown_is_not_repeated_before_somebody_has_looked() {
    let (at, asked, answer) = slow().await;
    let Some(lending) = crate::lending::Lending::start().await else {
        return;
    };
    let lent = Some(Arc::clone(&lending));
    let room = Room::with(lending.source(), lent, &at, &[], Vec::new());
    room.allow(&at).await;
    let shown = room.call("open", json!({ "url": at })).await;
    let click = json!({ "action": "click", "ref": crate::tools::reference(&shown, "Slow") });
    // The page is in the middle of what the click has set off when the worker ends.
    let clicked = room.call_as("s", "action", click.clone());
    let ended = async {
        asked.notified().await;
        lending.asked("kill", json!({})).await;
        answer.notify_one();
    };
    let (clicked, ()) = tokio::join!(clicked, ended);
    let (_, said) = clicked.unwrap_err();
    assert!(said.contains("is unknown"), "{said}");
    let (_, said) = room.call_as("s", "action", click).await.unwrap_err();
    assert!(said.contains("Look at the tab first"), "{said}");
    let seen = room.call("snapshot", json!({ "full": true })).await.output;
    assert!(seen.contains("title \"1\""), "{seen}");
    let click = json!({ "action": "click", "ref": crate::tools::reference(&shown, "Slow") });
    answer.notify_one();
    let said = room.call("action", click).await.output;
    assert!(said.contains("title \"2\""), "{said}");
    room.browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_crashes_in_it_is_said_and_comes_back() {
    let Some((it, at, tab)) = page().await else {
        return;
    };
    let (browser, lending) = (&it.browser, it.lending.as_ref().unwrap());
    lending
        .asked("crash", json!({ "url": format!("{at}/") }))
        .await;
    for _ in 0..200 {
        if let Err(BrowserError::Crashed { .. }) = browser.look(&tab).await {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(
        browser.look(&tab).await.unwrap_err().code(),
        "browser.crashed"
    );
    let grant = browser.acquire(&tab, &owner("s")).unwrap();
    let again = outrigger_browser::provider::Step::navigate(&at, WAIT);
    browser.act(&grant, &again).await.unwrap();
    assert!(text(&browser.look(&tab).await.unwrap()).contains("Denied"));
    browser.close().await;
}
