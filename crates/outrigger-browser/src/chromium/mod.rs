//! The providers `cdp` and `extension`: a Chromium over the DevTools protocol, started by us or the user's own.

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

/// Our isolated world in each frame: pages cannot see or change it.
const WORLD: &str = "outrigger";
/// Binding by which it reports clicks of the user.
const PERSON: &str = "outriggerPerson";
const WATCH: &str = include_str!("../scripts/watch.js");
/// Timeout for the browser to answer at the start.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Where the browser is.
#[derive(Clone, Debug)]
pub enum Source {
    /// Started by us; it ends with this program.
    Start {
        /// Program.
        program: PathBuf,
        /// Run without a window.
        headless: bool,
        /// Additional arguments.
        arguments: Vec<String>,
    },
    /// A running browser at this WebSocket address.
    Running(String),
    /// The user's own browser, whose extension connects to us.
    Extension(Relay),
}

/// A Chromium.
pub struct Chromium {
    connection: Connection,
    /// The browser context of our tabs, with separate cookies and caches; it is closed with the connection.
    context: String,
    /// The proxy of a browser that we started.
    network: Option<Network>,
    /// For the user's own browser: the address to which its extension connects.
    listening: Mutex<Option<Listening>>,
    /// Whether it is the user's own browser.
    is_lent: bool,
    /// Private folder.
    folder: PathBuf,
    state: Mutex<State>,
    /// Counts events, for callers that wait for one.
    changed: watch::Sender<u64>,
    /// Dragged data, by protocol session.
    drags: Mutex<HashMap<String, Value>>,
    /// Why a tab's last request was refused.
    refused: Mutex<HashMap<String, String>>,
    /// A secret was typed: if the focus is unknown, its field may have it.
    has_secret: AtomicBool,
    sites: Arc<Sites>,
    /// Receives records of invalid leases.
    record: RecordFn,
    begun: Instant,
    child: tokio::sync::Mutex<Option<Child>>,
}

/// A browser that has answered.
struct Reached {
    connection: Connection,
    events: UnboundedReceiver<Event>,
    /// For a browser that we started.
    own: Option<(Child, Network)>,
    listening: Option<Listening>,
}

/// Starts a browser, or connects to the running one.
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

/// Enables protocol domains of a target before it is resumed. `interception` are the parameters of `Fetch.enable`.
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
        // A background page behaves like a visible one, so that the user's focus does not have to change.
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

    /// From now on, our tabs, including those that pages open, are attached before they load anything.
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
            // Its downloads belong to the user, and tabs are attached as its extension reports them.
            return Ok(());
        }
        let downloads = self.folder.join("downloads");
        let behaviour = json!({
            "behavior": "allowAndName", "browserContextId": self.context, "downloadPath": downloads, "eventsEnabled": true,
        });
        if self.network.is_some() {
            // First, because it disables download events. In a separate window, others cannot save files past the rules.
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

    /// Enables the needed domains of a tab, or of a frame in another process, and resumes it.
    ///
    /// With a window, a background tab is rendered only while something captures it. Otherwise screenshots would never complete, and
    /// clicks in cross-origin frames would use an outdated layout. Therefore it is captured all the time, as small as possible.
    async fn set_up(&self, session: &str, tab: &str) {
        for (method, params) in domains(self.interception()) {
            self.connection.post(session, method, &params);
        }
        let tree = self
            .connection
            .call(session, "Page.getFrameTree", json!({}))
            .await;
        // The connection was lost meanwhile, and it is attached again.
        let is_lost = self.is_lent && tree.is_err();
        let mut state = lock(&self.state);
        if let (Ok(tree), Some(it)) = (tree, state.tabs.get_mut(tab)) {
            let mut open = vec![&tree["frameTree"]];
            while let Some(part) = open.pop() {
                let id = part["frame"]["id"].as_str().unwrap_or_default();
                // Newer events take precedence.
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

    /// Returns an existing tab.
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

    /// Returns a tab whose page responds.
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

    /// Milliseconds of the clock used for leases.
    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Checks a lease (C9, 6). An invalid one is recorded in the audit.
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

    /// Returns new tabs that this tab's page opened.
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
