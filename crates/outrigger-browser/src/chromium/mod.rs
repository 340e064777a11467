//! The providers `cdp` and `extension`: a Chromium over the DevTools protocol, our own or the user's.

mod act;
mod element;
mod events;
mod frames;
mod input;
mod keys;
mod lent;
mod look;
mod node;
mod requests;
mod serve;
mod state;
mod wait;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outrigger_browser_core::lease::Grant;
use outrigger_sandbox::{Child, Spawner};
use outrigger_stdx::sync::lock;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use self::state::{State, Tab};
use crate::cdp::extension::{Listening, Relay, over_extension};
use crate::cdp::launch::{self, Launch};
use crate::cdp::{Connection, Event, over_websocket};
use crate::error::BrowserError;
use crate::network::Network;
use crate::perform;
use crate::record::RecordFn;
use crate::sites::Sites;

/// The world of ours in each frame: pages do not see what is in it, and cannot change what our code uses.
const WORLD: &str = "outrigger";
/// How a person's click comes from there.
const PERSON: &str = "outriggerPerson";
const WATCH: &str = include_str!("../scripts/watch.js");
/// How long the browser may take until it answers.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Where the browser is.
#[derive(Clone, Debug)]
pub enum Source {
    /// It is started, and ends with us.
    Start {
        /// Program.
        program: PathBuf,
        /// Without a window.
        headless: bool,
        /// More arguments.
        arguments: Vec<String>,
    },
    /// It is there, at this WebSocket address.
    Running(String),
    /// It is the user's own, and its extension connects to us.
    Extension(Relay),
}

/// A Chromium.
pub struct Chromium {
    connection: Connection,
    /// The context that all of our tabs are in: its cookies and caches are nobody else's, and it goes with our connection.
    context: String,
    /// The way out of one that we started.
    network: Option<Network>,
    /// Of the user's own browser: where its extension connects to.
    listening: Mutex<Option<Listening>>,
    /// It is the user's own.
    is_lent: bool,
    /// A folder of its own.
    folder: PathBuf,
    state: Mutex<State>,
    /// Counts events, for those who wait for one.
    changed: watch::Sender<u64>,
    /// What is dragged, by session of the protocol.
    drags: Mutex<HashMap<String, Value>>,
    /// Why a tab's last request was refused.
    refused: Mutex<HashMap<String, String>>,
    /// A secret was typed: where it is not known what has the focus, it may be its field.
    has_secret: AtomicBool,
    sites: Arc<Sites>,
    /// Takes records of leases that do not count.
    record: RecordFn,
    begun: Instant,
    child: tokio::sync::Mutex<Option<Child>>,
}

/// A browser that answers.
struct Reached {
    connection: Connection,
    events: UnboundedReceiver<Event>,
    /// Of one that we started.
    own: Option<(Child, Network)>,
    listening: Option<Listening>,
}

/// Starts a browser, or connects to the one that is there.
async fn reach(
    source: &Source,
    folder: &Path,
    spawner: &Spawner,
    sites: &Arc<Sites>,
    record: &RecordFn,
) -> Result<Reached, BrowserError> {
    match source {
        Source::Start {
            program,
            headless,
            arguments,
        } => {
            let network = Network::open(sites, record).await?;
            let launch = Launch {
                program,
                folder,
                headless: *headless,
                arguments,
                proxy: network.port(),
            };
            let (child, connection, events) = launch::start(&launch, spawner).await?;
            Ok(Reached {
                connection,
                events,
                own: Some((child, network)),
                listening: None,
            })
        }
        Source::Running(url) => {
            let (connection, wire, events) = Connection::new();
            over_websocket(url, wire).await?;
            Ok(Reached {
                connection,
                events,
                own: None,
                listening: None,
            })
        }
        Source::Extension(relay) => {
            let (connection, wire, events) = Connection::awaited();
            let listening = over_extension(relay, wire, record).await?;
            if !connection.is_back(relay.wait).await {
                let why = format!("its extension has not connected; {}", relay.advice());
                return Err(BrowserError::Relay(why));
            }
            Ok(Reached {
                connection,
                events,
                own: None,
                listening: Some(listening),
            })
        }
    }
}

/// What is enabled of a target before it goes on. `interception` are the parameters of `Fetch.enable`.
fn domains(interception: Value) -> [(&'static str, Value); 13] {
    [
        ("Page.enable", json!({})),
        ("Runtime.enable", json!({})),
        (
            "Runtime.addBinding",
            json!({ "name": PERSON, "executionContextName": WORLD }),
        ),
        (
            "Page.addScriptToEvaluateOnNewDocument",
            json!({ "source": WATCH, "worldName": WORLD, "runImmediately": true }),
        ),
        ("Network.enable", json!({})),
        ("Fetch.enable", interception),
        ("Log.enable", json!({})),
        ("DOM.enable", json!({})),
        ("Inspector.enable", json!({})),
        (
            "Page.setInterceptFileChooserDialog",
            json!({ "enabled": true }),
        ),
        // A page in the background behaves as one that is looked at, so that the person's focus can be left where it is.
        (
            "Emulation.setFocusEmulationEnabled",
            json!({ "enabled": true }),
        ),
        (
            "Target.setAutoAttach",
            json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true }),
        ),
        ("Runtime.runIfWaitingForDebugger", json!({})),
    ]
}

impl Chromium {
    /// Starts a browser, or connects to one.
    ///
    /// # Errors
    /// [`BrowserError::Start`].
    pub async fn start(
        source: &Source,
        folder: &Path,
        spawner: &Spawner,
        sites: Arc<Sites>,
        record: RecordFn,
    ) -> Result<Arc<Self>, BrowserError> {
        let made = |path: &Path| {
            std::fs::create_dir_all(path)
                .map_err(|error| BrowserError::Start(format!("{}: {error}", path.display())))
        };
        for sub in ["profile", "downloads", "uploads"] {
            made(&folder.join(sub))?;
        }
        let reached = reach(source, folder, spawner, &sites, &record).await?;
        let Reached {
            connection,
            events,
            own,
            listening,
        } = reached;
        let is_lent = listening.is_some();
        let (child, network) = own.unzip();
        let failed = |error: BrowserError| match error {
            BrowserError::Lost { cause } => BrowserError::Start(format!("it {cause}")),
            other => BrowserError::Start(other.to_string()),
        };
        let made = connection.call_within(
            "",
            "Target.createBrowserContext",
            json!({ "disposeOnDetach": true }),
            START_TIMEOUT,
        );
        let context = made.await.map_err(failed)?["browserContextId"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let browser = Arc::new(Self {
            connection,
            context,
            network,
            listening: Mutex::new(listening),
            is_lent,
            folder: folder.to_owned(),
            state: Mutex::default(),
            changed: watch::Sender::new(0),
            drags: Mutex::default(),
            refused: Mutex::default(),
            has_secret: AtomicBool::new(false),
            sites,
            record,
            begun: Instant::now(),
            child: tokio::sync::Mutex::new(child),
        });
        browser.watch_targets(events).await.map_err(failed)?;
        Ok(browser)
    }

    /// From now on each tab of ours, those that pages open too, is attached to before it loads anything.
    async fn watch_targets(
        self: &Arc<Self>,
        mut events: UnboundedReceiver<Event>,
    ) -> Result<(), BrowserError> {
        let this = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                let Some(this) = this.upgrade() else { return };
                this.take(&event);
            }
        });
        if self.is_lent {
            // Its downloads are the user's, and tabs are attached to as its extension says them.
            return Ok(());
        }
        let downloads = self.folder.join("downloads");
        let behaviour = json!({
            "behavior": "allowAndName", "browserContextId": self.context, "downloadPath": downloads, "eventsEnabled": true,
        });
        if self.network.is_some() {
            // First, for it switches events of downloads off. In a window of its own, somebody else saves nothing past the rules about files.
            let none = json!({ "behavior": "deny" });
            self.connection
                .call("", "Browser.setDownloadBehavior", none)
                .await?;
        }
        self.connection
            .call("", "Browser.setDownloadBehavior", behaviour)
            .await?;
        self.connection
            .call("", "Target.setDiscoverTargets", json!({ "discover": true }))
            .await?;
        let attach = json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true });
        self.connection
            .call("", "Target.setAutoAttach", attach)
            .await
            .map(drop)
    }

    /// Enables what is needed of a tab, or of a frame in another process, and lets it go on.
    ///
    /// With a window, a tab in the background is drawn only while something captures it. Without that no picture of it is ever taken, and
    /// clicks in frames of other sites go by what was drawn last. So it is captured all the time, as small as it can be.
    async fn set_up(&self, session: &str, tab: &str) {
        for (method, params) in domains(self.interception()) {
            self.connection.post(session, method, &params);
        }
        let tree = self
            .connection
            .call(session, "Page.getFrameTree", json!({}))
            .await;
        // Its connection was lost meanwhile, and it is attached to anew.
        let is_lost = self.is_lent && tree.is_err();
        let mut state = lock(&self.state);
        if let (Ok(tree), Some(it)) = (tree, state.tabs.get_mut(tab)) {
            let mut open = vec![&tree["frameTree"]];
            while let Some(part) = open.pop() {
                let id = part["frame"]["id"].as_str().unwrap_or_default();
                // Events that came meanwhile know better.
                if it
                    .frames
                    .get(id)
                    .is_none_or(|frame| frame.document.is_empty())
                {
                    events::navigated(it, session, &part["frame"]);
                }
                open.extend(part["childFrames"].as_array().into_iter().flatten());
            }
        }
        if let Some(it) = state.tabs.get_mut(tab).filter(|it| it.session == session) {
            it.is_ready = !is_lost;
            self.connection.post(
                session,
                "Page.startScreencast",
                &json!({ "format": "jpeg", "quality": 1, "maxWidth": 1, "maxHeight": 1 }),
            );
        }
        drop(state);
        self.changed
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    /// A tab that there is.
    fn known<'s>(&self, state: &'s State, tab: &str) -> Result<&'s Tab, BrowserError> {
        state.tabs.get(tab).ok_or_else(|| {
            let open: Vec<&str> = state.tabs.keys().map(String::as_str).collect();
            let open = match open.as_slice() {
                [] => "None is open: browser_open opens one.".to_owned(),
                open => format!("Open are: {}.", open.join(", ")),
            };
            if self.connection.is_closed() {
                return BrowserError::Lost {
                    cause: "has ended, and its tabs with it".to_owned(),
                };
            }
            BrowserError::NoTab {
                tab: tab.to_owned(),
                open,
            }
        })
    }

    /// A tab whose page answers.
    fn usable(&self, tab: &str) -> Result<(), BrowserError> {
        let state = lock(&self.state);
        let it = self.known(&state, tab)?;
        if it.crashed {
            return Err(BrowserError::Crashed {
                tab: tab.to_owned(),
            });
        }
        match &it.dialog {
            Some(dialog) => Err(BrowserError::Dialog(dialog.clone())),
            None => Ok(()),
        }
    }

    /// Milliseconds of our clock, which leases are counted by.
    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether a lease counts, now (C9, 6). One that does not is in the audit.
    fn check_lease(&self, grant: &Grant) -> Result<(), BrowserError> {
        let now = self.now();
        let checked = lock(&self.state).leases.check(grant, now);
        checked.map_err(|refusal| {
            (self.record)(perform::refused(&grant.owner, &grant.tab, &refusal));
            BrowserError::Lease(refusal)
        })
    }

    fn tab_names(&self) -> Vec<String> {
        lock(&self.state).tabs.keys().cloned().collect()
    }

    /// Tabs that were not there before and that this one's page opened.
    fn opened_by(&self, tab: &str, before: &[String]) -> Vec<String> {
        let state = lock(&self.state);
        let new = state
            .tabs
            .values()
            .filter(|it| it.info.opener.as_deref() == Some(tab));
        new.map(|it| it.info.tab.clone())
            .filter(|it| !before.contains(it))
            .collect()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        self.connection.close();
    }
}
