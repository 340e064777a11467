//! Frames of other sites: secrets and rules go by whose a frame is, not by the tab that shows it.

use outrigger_protocol::tool::ToolOutput;
use serde_json::{Value, json};
use url::Url;

use crate::support::site;
use crate::tools::{Room, reference};

/// What of a page has been typed into is in its text.
const FIELD: &str = r#"<input id=p type=password aria-label=NAME oninput="o.textContent = 'NAME holds ' + p.value"><p id=o></p>"#;

fn field(name: &str) -> String {
    FIELD.replace("NAME", name)
}

/// A site with these pages, on this machine under another name than `127.0.0.1`.
async fn elsewhere(pages: Vec<(&'static str, String)>) -> String {
    site(pages).await.replace("127.0.0.1", "localhost")
}

async fn room(at: &str, other: &str, ask: &[&str]) -> Option<Room> {
    let room = Room::new(at, ask)?;
    room.sites.allow(&Url::parse(other).unwrap());
    Some(room)
}

/// The page, once all of these are on it: frames come later than it.
async fn with(room: &Room, parts: &[&str]) -> ToolOutput {
    let mut shown = room.call("snapshot", json!({ "full": true })).await;
    for _ in 0..100 {
        if parts.iter().all(|it| shown.output.contains(it)) {
            return shown;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        shown = room.call("snapshot", json!({ "full": true })).await;
    }
    panic!("{parts:?} are not in {}", shown.output)
}

fn secret(kind: &str, shown: &ToolOutput, name: &str) -> Value {
    json!({ "action": kind, "ref": reference(shown, &format!("\"{name}\"")), "secret": "SHOP_PASSWORD" })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_typed_in_no_frame_of_another_site() {
    // The secret is for 127.0.0.1.
    let own = site(vec![("/own", field("Nested"))]).await;
    let other = elsewhere(vec![(
        "/frame",
        field("Foreign") + &format!("<iframe src='{own}/own'></iframe>"),
    )])
    .await;
    let quoted = |name: &str| field(name).replace('"', "&quot;");
    let page = format!(
        r#"<iframe src="{other}/frame" role=presentation></iframe><iframe srcdoc="{}"></iframe><iframe sandbox=allow-scripts srcdoc="{}"></iframe>"#,
        quoted("Same"),
        quoted("Boxed")
    );
    let at = site(vec![("/", page)]).await;
    let Some(it) = room(&at, &other, &[]).await else {
        return;
    };
    it.sites.allow(&Url::parse(&own).unwrap());
    it.call("open", json!({ "url": at })).await;
    let names = ["\"Foreign\"", "\"Nested\"", "\"Same\"", "\"Boxed\""];
    let shown = with(&it, &names).await;
    let named = |line: &str| shown.output.matches(line).count();
    assert_eq!(named(&format!("(frame of {other})")), 1, "{}", shown.output);
    assert_eq!(named(&format!("(frame of {own})")), 1, "{}", shown.output);
    assert_eq!(named("(frame of nobody's"), 1, "{}", shown.output);
    for (name, whose) in [
        ("Foreign", other.as_str()),
        ("Nested", other.as_str()),
        ("Boxed", "nobody's origin (about:srcdoc)"),
    ] {
        for kind in ["fill", "type"] {
            let (code, said) = it.refused("action", secret(kind, &shown, name)).await;
            assert!(
                code == "tool.denied" && said.contains(&format!("in a frame of {whose}")),
                "{name} {kind}: {said}"
            );
        }
    }
    for kind in ["fill", "type"] {
        let filled = it.call("action", secret(kind, &shown, "Same")).await;
        assert_eq!(filled.metadata["status"], "done", "{}", filled.output);
    }
    let after = it.call("snapshot", json!({ "full": true })).await.output;
    assert!(
        after.contains("Same holds [secret SHOP_PASSWORD]"),
        "{after}"
    );
    for name in ["Foreign", "Nested", "Boxed"] {
        assert!(!after.contains(&format!("{name} holds")), "{after}");
    }
    it.browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_that_takes_the_focus_gets_nothing_of_a_secret() {
    let other = elsewhere(vec![(
        "/frame",
        field("Thief") + "<script>onfocus = () => p.focus()</script>",
    )])
    .await;
    // As soon as the field has the focus, the frame takes it.
    let page = format!(
        r#"{}<iframe id=f src="{other}/frame"></iframe><script>p.onfocus = () => queueMicrotask(() => f.contentWindow.focus())</script>"#,
        field("Own")
    );
    let at = site(vec![("/", page)]).await;
    let Some(it) = room(&at, &other, &[]).await else {
        return;
    };
    it.call("open", json!({ "url": at })).await;
    let shown = with(&it, &["\"Thief\"", "\"Own\""]).await;
    for kind in ["fill", "type"] {
        // Whatever it comes to: that the frame gets nothing is what counts.
        let filled = it.call_as("s", "action", secret(kind, &shown, "Own")).await;
        let after = it.call("snapshot", json!({ "full": true })).await.output;
        assert!(!after.contains("Thief holds"), "{kind} {filled:?}: {after}");
        assert!(after.contains("Own holds"), "{kind} {filled:?}: {after}");
    }
    it.browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_about_a_site_count_for_its_frames_in_pages_of_others() {
    let button = |name: &str| {
        format!(
            r#"<button onclick="o.textContent = '{name} was pressed'">{name}</button><p id=o></p>"#
        )
    };
    let other = elsewhere(vec![("/frame", button("Transfer"))]).await;
    let page = button("Own") + &format!("<iframe src='{other}/frame'></iframe>");
    let at = site(vec![("/", page)]).await;
    let Some(it) = room(&at, &other, &["localhost"]).await else {
        return;
    };
    it.call("open", json!({ "url": at })).await;
    let shown = with(&it, &["\"Transfer\"", "\"Own\""]).await;
    let click =
        |name: &str| json!({ "action": "click", "ref": reference(&shown, &format!("\"{name}\"")) });
    // What is not aimed at an element may be of any frame.
    let inside = [
        click("Transfer"),
        json!({ "action": "click", "at": { "x": 30, "y": 90 } }),
        json!({ "action": "press", "text": "Enter" }),
        json!({ "action": "drag", "ref": reference(&shown, "\"Own\""), "to": reference(&shown, "\"Transfer\"") }),
    ];
    for action in &inside {
        let (code, said) = it.refused("action", action.clone()).await;
        assert!(
            code == "tool.denied" && said.contains("localhost") && said.contains("was not given"),
            "{action}: {said}"
        );
    }
    let own = it.call("action", click("Own")).await;
    assert!(own.output.contains("Own was pressed"), "{}", own.output);
    assert!(!own.output.contains("Transfer was"), "{}", own.output);
    *it.host.person.lock().unwrap() = Some("Go on");
    *it.host.denied.lock().unwrap() = Some(("browser", "localhost".into()));
    for action in &inside {
        let (code, said) = it.refused("action", action.clone()).await;
        assert_eq!(code, "tool.denied", "{action}: {said}");
    }
    *it.host.denied.lock().unwrap() = None;
    let done = it.call("action", click("Transfer")).await;
    assert!(
        done.output.contains("Transfer was pressed"),
        "{}",
        done.output
    );
    it.browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_frame_of_a_denied_address_shows_is_not_read() {
    let other = elsewhere(vec![(
        "/frame",
        "<p>balance 4711</p><button>Transfer</button>".to_owned(),
    )])
    .await;
    let page = format!(
        r#"<h1>Outer</h1><iframe src="{other}/frame" role=presentation aria-label="balance 4711"></iframe>"#
    );
    let at = site(vec![("/", page)]).await;
    let Some(it) = room(&at, &other, &[]).await else {
        return;
    };
    it.call("open", json!({ "url": at })).await;
    // Without a rule it is shown.
    with(&it, &["balance 4711", "\"Transfer\""]).await;
    it.call("screenshot", json!({})).await;
    let network = it
        .call("network", json!({ "filter": "/frame" }))
        .await
        .output;
    let number = network
        .lines()
        .find(|it| it.contains("/frame"))
        .and_then(|it| it.split(' ').next()?.parse::<u64>().ok())
        .unwrap_or_else(|| panic!("{network}"));
    *it.host.denied.lock().unwrap() = Some(("browser", "localhost".into()));
    let shown = it.call("snapshot", json!({ "full": true })).await.output;
    assert!(
        shown.contains("\"Outer\"") && shown.contains(&format!("(frame of {other}: denied)")),
        "{shown}"
    );
    assert!(!shown.contains("Transfer"), "{shown}");
    let waits = json!({ "action": "wait", "timeout_ms": 1, "expect": [{ "text": "4711" }] });
    for (tool, input) in [
        ("action", waits),
        (
            "verify",
            json!({ "expect": [{ "role": "button", "name": "Transfer" }], "timeout_ms": 1 }),
        ),
    ] {
        let said = it.call(tool, input).await;
        assert_eq!(said.metadata["status"], "failed_verify", "{tool}");
        assert!(!said.output.contains("\"Transfer\" e"), "{}", said.output);
    }
    for input in [json!({}), json!({ "full": true }), json!({ "marks": true })] {
        let (code, said) = it.refused("screenshot", input).await;
        assert!(
            code == "tool.denied" && said.contains("a frame of http://localhost:"),
            "{said}"
        );
    }
    let (code, said) = it.refused("network", json!({ "number": number })).await;
    assert!(
        code == "tool.denied" && said.contains("A rule denies"),
        "{said}"
    );
    it.browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dialog_is_judged_by_the_frame_that_opens_it() {
    let other = elsewhere(vec![(
        "/frame",
        "<script>onmessage = () => document.title = confirm('balance 4711')</script>".to_owned(),
    )])
    .await;
    let page = format!(
        r#"<button onclick="f.contentWindow.postMessage('', '*')">Ask</button><iframe id=f src="{other}/frame"></iframe>"#
    );
    let at = site(vec![("/", page)]).await;
    let Some(it) = room(&at, &other, &["localhost"]).await else {
        return;
    };
    it.call("open", json!({ "url": at })).await;
    let shown = with(&it, &["\"Ask\"", &format!("frame of {other}")]).await;
    let click = json!({ "action": "click", "ref": reference(&shown, "\"Ask\"") });
    let asked = it.call("action", click.clone()).await.output;
    assert!(
        asked.contains("confirm") && asked.contains("balance 4711"),
        "{asked}"
    );
    let answer = json!({ "action": "dialog", "accept": true });
    // `ask` names the frame's site.
    let (code, said) = it.refused("action", answer.clone()).await;
    assert!(
        code == "tool.denied" && said.contains("localhost") && said.contains("was not given"),
        "{said}"
    );
    *it.host.person.lock().unwrap() = Some("Go on");
    *it.host.denied.lock().unwrap() = Some(("browser", "localhost".into()));
    for (tool, input) in [
        ("snapshot", json!({})),
        ("screenshot", json!({})),
        ("action", click.clone()),
    ] {
        let (_, said) = it.refused(tool, input).await;
        assert!(
            said.contains("not shown: it is of http://localhost:") && !said.contains("4711"),
            "{tool}: {said}"
        );
    }
    assert_eq!(it.refused("action", answer.clone()).await.0, "tool.denied");
    *it.host.denied.lock().unwrap() = None;
    it.call("action", answer).await;
    *it.host.denied.lock().unwrap() = Some(("browser", "localhost".into()));
    let asked = it.call("action", click).await.output;
    assert!(
        asked.contains("not shown: it is of http://localhost:") && !asked.contains("4711"),
        "{asked}"
    );
    it.browser.close().await;
}
