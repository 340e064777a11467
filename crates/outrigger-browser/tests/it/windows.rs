//! A browser with windows, on a display of its own (Xvfb): what a person has in front of them stays there.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_browser::provider::{ActionTarget, Frame, Provider as _, Step};
use outrigger_browser::{Chromium, Sites, Source};
use outrigger_browser_core::action::Kind;
use outrigger_sandbox::{Child, Spawner, Spec, env, run};

use crate::support::{WAIT, act, find, owner, site, started};

/// An X server without a screen that somebody sees.
struct Display {
    name: String,
    spawner: Spawner,
    _server: Child,
}

impl Display {
    /// `None` where this machine has none, or nothing that asks one.
    async fn start(folder: &Path) -> Option<Self> {
        let hosts = env::of_host(&[]);
        let missing = |it: &&str| !Path::new("/usr/bin").join(it).exists();
        if ["Xvfb", "xdotool"].iter().any(missing) {
            outrigger_test_support::skip::skip("there is no Xvfb, or no xdotool");
            return None;
        }
        let said = folder.join("display");
        let start = "exec Xvfb -displayfd 1 -screen 0 1280x800x24 -nolisten tcp > \"$0\"";
        let spec = Spec::new("/bin/sh")
            .args(["-c", start])
            .arg(&said)
            .vars(hosts);
        let spawner = Spawner::new().unwrap();
        let server = spawner.spawn(spec).await.unwrap();
        let mut number = String::new();
        for _ in 0..400 {
            number = std::fs::read_to_string(&said).unwrap_or_default();
            if number.ends_with('\n') {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Some(Self {
            name: format!(":{}", number.trim()),
            spawner,
            _server: server,
        })
    }

    async fn ask(&self, arguments: &[&str]) -> String {
        let spec = Spec::new("xdotool")
            .args(arguments)
            .vars(env::of_host(&[]))
            .var("DISPLAY", &self.name);
        let said = run(&self.spawner, spec, WAIT, 1_000).await.unwrap();
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    }

    /// The window that the keyboard writes to.
    async fn focus(&self) -> String {
        self.ask(&["getwindowfocus"]).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_keeps_the_focus_and_the_browser_its_last_tab() {
    let Some(program) = outrigger_browser::find() else {
        return outrigger_test_support::skip::skip("there is no Chromium");
    };
    let folder = tempfile::tempdir().unwrap();
    let Some(display) = Display::start(folder.path()).await else {
        return;
    };
    let page = "<title>agent</title><input aria-label=Name><select aria-label=Size><option>Small<option>Large</select>";
    let at = site(vec![("/", page.to_owned())]).await;
    let source = Source::Start {
        program,
        headless: false,
        arguments: vec![
            "--disable-gpu".into(),
            format!("--display={}", display.name),
        ],
    };
    let (sites, audit) = (Arc::new(Sites::for_tests(&at)), Arc::new(Mutex::default()));
    let browser: Arc<Chromium> = started(&source, folder.path(), &sites, &audit).await;
    // The window that the browser began with is the person's.
    let mut before = String::new();
    for _ in 0..400 {
        before = display.focus().await;
        if !before.is_empty() && !display.ask(&["getwindowname", &before]).await.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut tabs = Vec::new();
    for _ in 0..3 {
        tabs.push(browser.open(&owner("s"), Some(&at), WAIT).await.unwrap());
    }
    for tab in &tabs {
        let look = browser.look(tab).await.unwrap();
        let name = &find(&look, "textbox", "Name").key;
        let done = act(&browser, tab, Kind::Fill, name, "Ada").await.unwrap();
        assert_eq!(done.value.as_deref(), Some("Ada"));
        let size = &find(&look, "combobox", "Size").key;
        act(&browser, tab, Kind::Select, size, "Large")
            .await
            .unwrap();
        let grant = browser.acquire(tab, &owner("s")).unwrap();
        let hover = Step {
            place: Some(ActionTarget::Element(name.clone())),
            ..Step::of(Kind::Hover, WAIT)
        };
        browser.act(&grant, &hover).await.unwrap();
        browser
            .act(&grant, &Step::of(Kind::TabSwitch, WAIT))
            .await
            .unwrap();
        // Nobody sees the tab, and its picture is there at once.
        browser.picture(tab, &Frame::default()).await.unwrap();
    }
    assert_eq!(display.focus().await, before);
    // All of ours are closed, and then the person's window: the browser is there, and opens the next one.
    for tab in &tabs {
        let grant = browser.acquire(tab, &owner("s")).unwrap();
        browser
            .act(&grant, &Step::of(Kind::TabClose, WAIT))
            .await
            .unwrap();
    }
    assert!(browser.tabs().is_empty() && !browser.is_gone());
    let tab = browser.open(&owner("s"), Some(&at), WAIT).await.unwrap();
    display.ask(&["windowclose", &before]).await;
    let grant = browser.acquire(&tab, &owner("s")).unwrap();
    browser
        .act(&grant, &Step::of(Kind::TabClose, WAIT))
        .await
        .unwrap();
    assert!(!browser.is_gone());
    browser.open(&owner("s"), Some(&at), WAIT).await.unwrap();
    browser.close().await;
}
