//! What every provider of `browser.read` and `browser.write` does. `cdp` is the first of them.

use outrigger_browser::provider::{ActionTarget, Provider as _, Step};
use outrigger_browser_core::action::{Kind, Point};
use outrigger_browser_core::lease::Grant;

use outrigger_protocol::audit::{AuditKind, AuditRecord};

use crate::lending::LENT;
use crate::support::{WAIT, act, bench, find, opened, owner, site, text};

fn form() -> String {
    r#"<!doctype html><title>Form</title><h1>Order</h1>
    <label>Name <input id=n></label><label>Note <textarea id=t></textarea></label>
    <select aria-label=Size id=s><option>Small<option>Large</select>
    <label><input type=checkbox id=c> Gift</label>
    <input type=date aria-label=Day id=d><input type=file aria-label=File id=f>
    <div contenteditable aria-label=Rich role=textbox id=e></div>
    <button onclick="out.textContent=[n.value,t.value,s.value,c.checked,d.value,f.files[0]?.name,e.textContent].join('|')">Send</button>
    <button ondblclick="out.textContent='twice'">Double</button>
    <button onmouseenter="out.textContent='over'">Hover</button>
    <button disabled>Off</button>
    <input aria-label=Keys onkeydown="out.textContent=event.key+(event.ctrlKey?'+ctrl':'')">
    <div id=drag style="width:60px;height:30px;background:#ccc" aria-label=Drag role=button>Drag</div>
    <div id=to style="width:60px;height:30px;background:#aaa" aria-label=Drop role=button onmouseup="out.textContent='dropped'">Drop</div>
    <p id=out role=status></p><div style="height:3000px"></div><button id=far onclick="out.textContent='far'">Far</button>"#
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_action_has_its_effect_on_the_page() {
    let at = site(vec![("/", form())]).await;
    let Some(it) = bench(&at).await else { return };
    let browser = &it.browser;
    let tab = browser.open(&owner("s"), Some(&at), WAIT).await.unwrap();
    let look = browser.look(&tab).await.unwrap();
    assert_eq!(
        (look.title.as_str(), look.url.as_str()),
        ("Form", format!("{at}/").as_str())
    );
    let key = |role: &str, name: &str| find(&look, role, name).key.clone();
    let fill = async |role: &str, name: &str, kind: Kind, value: &str| {
        let done = act(browser, &tab, kind, &key(role, name), value)
            .await
            .unwrap();
        done.value.unwrap_or_default()
    };
    assert_eq!(fill("textbox", "Name", Kind::Fill, "Ada é").await, "Ada é");
    assert_eq!(fill("textbox", "Name", Kind::Fill, "Bob").await, "Bob");
    assert_eq!(fill("textbox", "Note", Kind::Type, "ab c").await, "ab c");
    assert_eq!(
        fill("combobox", "Size", Kind::Select, "Large").await,
        "Large"
    );
    assert_eq!(fill("checkbox", "Gift", Kind::Check, "").await, "true");
    assert_eq!(
        fill("date", "Day", Kind::Fill, "2026-01-02").await,
        "2026-01-02"
    );
    assert_eq!(fill("textbox", "Rich", Kind::Fill, "rich").await, "rich");
    let file = it.folder.path().join("a.txt");
    std::fs::write(&file, "a").unwrap();
    let grant = browser.acquire(&tab, &owner("s")).unwrap();
    let upload = Step {
        place: Some(ActionTarget::Element(key("button", "File"))),
        file: Some(file),
        ..Step::of(Kind::Upload, WAIT)
    };
    browser.act(&grant, &upload).await.unwrap();
    let out = async || text(&browser.look(&tab).await.unwrap());
    act(browser, &tab, Kind::Click, &key("button", "Send"), "")
        .await
        .unwrap();
    let said = out().await;
    assert!(
        said.contains("Bob|ab c|Large|true|2026-01-02|a.txt|rich"),
        "{said}"
    );
    for (kind, role, name, value, want) in [
        (Kind::DoubleClick, "button", "Double", "", "twice"),
        (Kind::Hover, "button", "Hover", "", "over"),
        (Kind::Press, "textbox", "Keys", "Control+k", "k+ctrl"),
        (Kind::Click, "button", "Far", "", "far"),
    ] {
        act(browser, &tab, kind, &key(role, name), value)
            .await
            .unwrap();
        let said = out().await;
        assert!(said.contains(want), "{name}: {said}");
    }
    let to = Some(ActionTarget::Element(key("button", "Drop")));
    let drag = Step {
        place: Some(ActionTarget::Element(key("button", "Drag"))),
        to,
        ..Step::of(Kind::Drag, WAIT)
    };
    browser.act(&grant, &drag).await.unwrap();
    assert!(out().await.contains("dropped"));
    let refused = act(browser, &tab, Kind::Click, &key("button", "Off"), "")
        .await
        .unwrap_err();
    assert_eq!(
        (refused.code(), refused.to_string().as_str()),
        ("browser.not_done", "The click was not done: it is disabled")
    );
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_click_that_would_go_to_something_else_is_not_sent() {
    let page = r#"<button id=b onclick="document.title='clicked'">Pay</button>
        <div id=cover style="position:fixed;inset:0;opacity:0" onclick="document.title='hijacked'"></div>"#;
    let Some(it) = opened(vec![("/", page.to_owned())]).await else {
        return;
    };
    let error = it.click("Pay").await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains(r#"something else is in front of it (<div id="cover">)"#),
        "{error}"
    );
    assert_eq!(it.title().await, "");
    it.browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_of_other_sites_shadow_roots_and_pop_ups_are_part_of_it() {
    let inner = r#"<button onclick="document.body.append('inner done')">Inner</button>"#;
    let other = site(vec![
        ("/inner", inner.to_owned()),
        ("/popup", "<title>Popup</title>popped up".to_owned()),
    ])
    .await
    .replace("127.0.0.1", "localhost");
    let page = format!(
        r#"<div id=open></div><div id=closed></div><p>above</p><iframe src="{other}/inner" style="margin-left:70px"></iframe>
        <iframe srcdoc="<button onclick='this.textContent=`same done`'>Same</button>"></iframe>
        <a href="{other}/popup" target=_blank rel=opener>Pop</a>
        <script>for (const [it, mode] of [[open, 'open'], [closed, 'closed']]) {{
          const root = document.getElementById(mode).attachShadow({{ mode }})
          root.innerHTML = `<button>${{mode}} root</button>`
          root.firstChild.onclick = () => root.append(mode + ' done')
        }}</script>"#
    );
    let at = site(vec![("/", page)]).await;
    let Some(it) = bench(&at).await else { return };
    it.allow(&other).await;
    let tab = it.browser.open(&owner("s"), Some(&at), WAIT).await.unwrap();
    let mut look = it.browser.look(&tab).await.unwrap();
    for _ in 0..100 {
        if look.nodes.iter().any(|it| it.name == "Inner")
            && look.nodes.iter().any(|it| it.name == "Same")
        {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        look = it.browser.look(&tab).await.unwrap();
    }
    for (name, want) in [
        ("Inner", "inner done"),
        ("Same", "same done"),
        ("open root", "open done"),
        ("closed root", "closed done"),
    ] {
        act(
            &it.browser,
            &tab,
            Kind::Click,
            &find(&look, "button", name).key,
            "",
        )
        .await
        .unwrap();
        let said = text(&it.browser.look(&tab).await.unwrap());
        assert!(said.contains(want), "{name}: {said}");
    }
    let done = act(
        &it.browser,
        &tab,
        Kind::Click,
        &find(&look, "link", "Pop").key,
        "",
    )
    .await
    .unwrap();
    let [popup] = done.opened.as_slice() else {
        panic!("{done:?}")
    };
    let shown = it.browser.look(popup).await.unwrap();
    assert!(text(&shown).contains("popped up"), "{shown:?}");
    let info = it
        .browser
        .tabs()
        .into_iter()
        .find(|it| it.tab == *popup)
        .unwrap();
    assert_eq!(
        (info.session.as_str(), info.opener.as_deref()),
        ("s", Some(tab.as_str()))
    );
    it.browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dialogs_wait_for_their_answer_and_nothing_hangs() {
    let page = r#"<button onclick="document.title=prompt('Name?','x')">Ask</button><button onclick="document.title=confirm('Sure?')">Sure</button>"#;
    let Some(it) = opened(vec![("/", page.to_owned())]).await else {
        return;
    };
    it.click("Ask").await.unwrap();
    let dialog = it.browser.dialog(&it.tab).unwrap();
    assert_eq!(
        (dialog.kind.as_str(), dialog.message.as_str()),
        ("prompt", "Name?")
    );
    assert_eq!(
        it.browser.look(&it.tab).await.unwrap_err().code(),
        "browser.dialog"
    );
    let error = it.click("Sure").await.unwrap_err();
    assert_eq!(error.code(), "browser.dialog");
    let grant = it.browser.acquire(&it.tab, &owner("s")).unwrap();
    let answer = Step {
        text: Some("Ada".into()),
        accept: true,
        ..Step::of(Kind::Dialog, WAIT)
    };
    it.browser.act(&grant, &answer).await.unwrap();
    assert_eq!(it.title().await, "Ada");
    it.click("Sure").await.unwrap();
    it.browser
        .act(&grant, &Step::of(Kind::Dialog, WAIT))
        .await
        .unwrap();
    assert_eq!(it.title().await, "false");
    it.browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_forged_and_stale_leases_change_nothing() {
    let page = r#"<button onclick="document.title=Number(document.title)+1">Count</button>"#;
    let Some(it) = opened(vec![("/", page.to_owned())]).await else {
        return;
    };
    let tab = &it.tab;
    let step = Step {
        place: Some(ActionTarget::Element(it.key("button", "Count").clone())),
        ..Step::of(Kind::Click, WAIT)
    };
    let stale = it.browser.acquire(tab, &owner("s")).unwrap();
    it.browser.end_turn("s");
    let held = it.browser.acquire(tab, &owner("s2")).unwrap();
    let mut codes = std::collections::BTreeMap::new();
    for number in 0..1000u64 {
        let forged = match number % 4 {
            0 => stale.clone(),
            1 => Grant {
                token: held.token + number,
                ..stale.clone()
            },
            2 => Grant {
                owner: owner("thief"),
                ..held.clone()
            },
            _ => Grant {
                token: number,
                tab: "t99".into(),
                ..held.clone()
            },
        };
        let error = it.browser.act(&forged, &step).await.unwrap_err();
        *codes.entry(error.code()).or_insert(0) += 1;
        assert!(
            it.browser
                .eval(&forged, "document.title = 'evil'")
                .await
                .is_err()
        );
    }
    assert_eq!(
        codes.into_iter().collect::<Vec<_>>(),
        [("lease.none", 250), ("lease.stale", 750)]
    );
    // Each of both calls of each lease is in the audit, with whose it was said to be.
    let mut audit = it.bench.audit.lock().unwrap().clone();
    audit.retain(|it| it.kind == AuditKind::Browser);
    assert_eq!(audit.len(), 2000);
    let count = |decision: &str| audit.iter().filter(|it| it.decision == decision).count();
    assert_eq!((count("lease.none"), count("lease.stale")), (500, 1500));
    let is_whole = |it: &&AuditRecord| {
        let detail = it.detail.as_deref().unwrap_or_default();
        it.errored
            && it.policy_check_result == format!("refused {}", it.decision)
            && detail.contains("the agent build of session ")
    };
    assert_eq!(
        audit.iter().filter(is_whole).count(),
        2000,
        "{:?}",
        audit[0]
    );
    assert_eq!(it.title().await, "");
    it.browser.act(&held, &step).await.unwrap();
    assert_eq!(it.title().await, "1");
    it.browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_is_killed_is_said_and_its_tabs_are_known_to_be_gone() {
    if std::env::var_os(LENT).is_some() {
        return outrigger_test_support::skip::skip("the user's own browser is not ended by us");
    }
    let Some(it) = opened(vec![("/", "<button>x</button>".to_owned())]).await else {
        return;
    };
    // The page's process ends by itself.
    let grant = it.browser.acquire(&it.tab, &owner("s")).unwrap();
    it.browser.crash(&it.tab).await;
    assert_eq!(it.click("x").await.unwrap_err().code(), "browser.crashed");
    // It comes back by a navigation, with new references.
    let again = Step::navigate(&it.at, WAIT);
    it.browser.act(&grant, &again).await.unwrap();
    let look = it.look().await;
    let key = &find(&look, "button", "x").key;
    let click = async || act(&it.browser, &it.tab, Kind::Click, key, "").await;
    click().await.unwrap();
    it.browser.kill().await;
    let error = click().await.unwrap_err();
    assert!(error.is_unknown() && it.browser.is_gone(), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_takes_a_tab_and_the_focus_and_the_last_tab_stay() {
    let page = r#"<button onclick="document.title+='c'">Count</button>"#;
    let Some(it) = opened(vec![("/", page.to_owned())]).await else {
        return;
    };
    // Our own clicks are not a person's.
    for _ in 0..3 {
        it.click("Count").await.unwrap();
    }
    assert_eq!(it.title().await, "ccc");
    it.browser
        .as_person(&it.tab, Point { x: 20.0, y: 15.0 })
        .await;
    assert_eq!(it.click("Count").await.unwrap_err().code(), "lease.person");
    it.browser.hand_back(&it.tab);
    it.click("Count").await.unwrap();
    // Closed with its session; the browser stays, with another session's tab opened after it.
    it.browser.end_session("s");
    for _ in 0..100 {
        if it.browser.tabs().is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(it.browser.tabs(), []);
    let error = it.browser.look(&it.tab).await.unwrap_err();
    assert_eq!(error.code(), "browser.no_tab");
    assert_eq!(
        it.browser
            .open(&owner("s2"), Some(&it.at), WAIT)
            .await
            .unwrap(),
        "t2"
    );
    it.browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_leads_to_what_may_not_be_shown() {
    let forbidden = site(vec![("/secret", "<title>secret</title>".to_owned())]).await;
    let page = format!(
        r#"<title>start</title><a href="{forbidden}/secret">Local</a><a href="file:///etc/passwd">File</a><a href="data:text/html,<title>data</title>">Data</a>
        <a href="javascript:document.title='script'">Script</a><img src="{forbidden}/secret?img">
        <script>fetch("{forbidden}/secret").catch(() => document.title = 'start refused')</script>"#
    );
    let at = site(vec![("/", page)]).await;
    let Some(it) = bench(&at).await else { return };
    let tab = it.browser.open(&owner("s"), Some(&at), WAIT).await.unwrap();
    let look = it.browser.look(&tab).await.unwrap();
    for name in ["File", "Data", "Local"] {
        // What becomes of it is said or not; the page that may not be shown is not.
        let _ = act(
            &it.browser,
            &tab,
            Kind::Click,
            &find(&look, "link", name).key,
            "",
        )
        .await;
        let now = it.browser.look(&tab).await.unwrap();
        assert!(
            now.title != "data" && now.title != "secret" && !text(&now).contains("root:"),
            "{name}: {now:?}"
        );
        if name == "Local" {
            break;
        }
        assert!(now.title.starts_with("start"), "{name}: {now:?}");
    }
    let refused = it
        .browser
        .recorded(&tab, outrigger_browser::provider::Mark::default())
        .console;
    assert!(
        refused
            .iter()
            .any(|it| it.text.contains("no rule allows it by name")
                // The user's own browser refuses it first, by the rules of its extension.
                || it.text.contains("ERR_BLOCKED_BY_CLIENT") && it.source.starts_with(&forbidden)),
        "{refused:?}"
    );
    let error = it
        .browser
        .open(&owner("s"), Some(&format!("{forbidden}/secret")), WAIT)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("no rule allows it by name"),
        "{error}"
    );
    // A tab that was not to be shown is not left behind.
    assert_eq!(it.browser.tabs().len(), 1);
    it.browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_is_there_already_is_used_and_left() {
    let at = site(vec![("/", "<title>here</title>".to_owned())]).await;
    let Some(program) = outrigger_browser::find() else {
        return outrigger_test_support::skip::skip("there is no Chromium");
    };
    let folder = tempfile::tempdir().unwrap();
    let spec = outrigger_sandbox::Spec::new(program)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--remote-debugging-port=0",
            "about:blank",
        ])
        .arg(format!("--user-data-dir={}", folder.path().display()))
        .vars(outrigger_sandbox::env::of_host(&[]));
    let child = outrigger_sandbox::Spawner::new()
        .unwrap()
        .spawn(spec)
        .await
        .unwrap();
    let port = folder.path().join("DevToolsActivePort");
    let mut address = String::new();
    for _ in 0..600 {
        let text = std::fs::read_to_string(&port).unwrap_or_default();
        if let Some((port, path)) = text.trim().split_once('\n') {
            address = format!("ws://127.0.0.1:{port}{path}");
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let sites = std::sync::Arc::new(outrigger_browser::Sites::for_tests(&at));
    let own = tempfile::tempdir().unwrap();
    let source = outrigger_browser::Source::Running(address);
    for _ in 0..2 {
        let audit = std::sync::Arc::default();
        let browser = crate::support::started(&source, own.path(), &sites, &audit).await;
        assert_eq!(browser.tabs(), []);
        let tab = browser.open(&owner("s"), Some(&at), WAIT).await.unwrap();
        assert_eq!(browser.look(&tab).await.unwrap().title, "here");
        browser.close().await;
    }
    child.kill_tree();
}
