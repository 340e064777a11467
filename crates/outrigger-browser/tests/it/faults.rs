//! What goes wrong around a browser: the network, pages that move on, crashes.

use outrigger_browser::BrowserError;
use outrigger_browser::provider::{Provider as _, Step};
use outrigger_browser_core::action::Kind;

use crate::support::{WAIT, find, opened, owner, stoppable};

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_goes_away_is_said_and_one_that_comes_back_is_used() {
    let page = r#"<title>Shop</title><a href="/next">Next</a>
        <button onclick="fetch('/api').catch(() => document.title = 'no network')">Pay</button>"#;
    let pages = vec![("/", page.to_owned()), ("/next", "here".to_owned())];
    let server = stoppable(pages.clone(), 0).await;
    let Some(it) = crate::support::bench(&server.at).await else {
        return;
    };
    let browser = &it.browser;
    let tab = browser
        .open(&owner("s"), Some(&server.at), WAIT)
        .await
        .unwrap();
    let look = browser.look(&tab).await.unwrap();
    let (at, port) = (server.at.clone(), server.port);
    server.stop().await;
    // What the page asks for fails, and is written down with the reason.
    let mark = browser.mark(&tab);
    let act = async |role, name| {
        let key = &find(&look, role, name).key;
        crate::support::act(browser, &tab, Kind::Click, key, "").await
    };
    act("button", "Pay").await.unwrap();
    let failed = || {
        let requests = browser.recorded(&tab, mark).requests;
        requests.into_iter().find_map(|it| it.failure)
    };
    assert_eq!(failed().as_deref(), Some("net::ERR_CONNECTION_REFUSED"));
    assert_eq!(browser.look(&tab).await.unwrap().title, "no network");
    // A navigation by us is an error; one by a link is not passed off as the page that it led to.
    let grant = browser.acquire(&tab, &owner("s")).unwrap();
    let error = browser
        .act(&grant, &Step::navigate(&format!("{at}/next"), WAIT))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "browser.not_done");
    assert!(
        error.to_string().contains("ERR_CONNECTION_REFUSED"),
        "{error}"
    );
    // It comes back, and the tab with it.
    let _server = stoppable(pages, port).await;
    browser
        .act(&grant, &Step::navigate(&at, WAIT))
        .await
        .unwrap();
    assert_eq!(browser.look(&tab).await.unwrap().title, "Shop");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_moves_on_in_the_middle_of_an_action_gets_nothing_of_it() {
    let start = r#"<title>Start</title><button onpointerenter="location.replace('/other')" onclick="document.title='clicked'">Go</button>
        <input aria-label=Name onfocus="location.replace('/other')">"#;
    // The same places on the page that comes: whatever is clicked or typed there was meant for the first one.
    let other = r#"<title>Other</title><button onclick="document.title='hit'">Go</button>
        <input aria-label=Name oninput="document.title='typed'">"#;
    let pages = vec![("/", start.to_owned()), ("/other", other.to_owned())];
    let Some(it) = opened(pages).await else {
        return;
    };
    for round in 0..10 {
        let grant = it.browser.acquire(&it.tab, &owner("s")).unwrap();
        it.browser
            .act(&grant, &Step::navigate(&it.at, WAIT))
            .await
            .unwrap();
        let look = it.look().await;
        let (kind, role, name) = match round % 2 {
            0 => (Kind::Click, "button", "Go"),
            _ => (Kind::Fill, "textbox", "Name"),
        };
        let key = &find(&look, role, name).key;
        let done = crate::support::act(&it.browser, &it.tab, kind, key, "secret").await;
        it.loads("Other").await;
        let now = it.look().await;
        assert_eq!(now.title, "Other", "{done:?}");
        assert_eq!(
            find(&now, "textbox", "Name")
                .value
                .as_deref()
                .unwrap_or_default(),
            ""
        );
        match done {
            Err(error) => assert!(matches!(error, BrowserError::Stale { .. }), "{error}"),
            // Sent to the page that was meant, before it went.
            Ok(done) => assert!(done.value.as_deref() != Some("secret"), "{done:?}"),
        }
    }
    it.browser.close().await;
}
