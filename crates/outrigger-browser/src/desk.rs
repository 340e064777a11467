//! The browser of an agent: the tab of each session, what it was shown, and audit records.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outrigger_browser_core::expect::{Element, Facts};
use outrigger_browser_core::field::FieldKind;
use outrigger_browser_core::frame::name_strangers;
use outrigger_browser_core::lease::{Grant, Owner};
use outrigger_browser_core::snapshot::{Key, References, Snapshot};
use outrigger_sandbox::Spawner;
use outrigger_stdx::sync::lock;

use crate::chromium::{Chromium, Source};
use crate::dialog::Denies;
use crate::error::BrowserError;
use crate::perform::refused;
use crate::provider::{Mark, Provider, TabInfo};
use crate::record::RecordFn;
use crate::secrets::Secrets;
use crate::sites::Sites;

/// How long a call waits in the queue for a tab.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval of queue checks.
const QUEUE_PAUSE: Duration = Duration::from_millis(200);

/// Options of an agent's browser.
#[derive(Clone)]
pub struct Options {
    /// Where it is.
    pub source: Source,
    /// Private folder, removed when the browser ends.
    pub folder: PathBuf,
    /// Starts it.
    pub spawner: Spawner,
    /// What it may show.
    pub sites: Arc<Sites>,
    /// Secrets that may be typed by name.
    pub secrets: Secrets,
    /// Kinds of protected fields that are treated like others.
    pub fields: Vec<FieldKind>,
    /// Sites at which each change needs the user's approval.
    pub ask: Vec<String>,
    /// Whether the model may run JavaScript in pages.
    pub eval: bool,
    /// Receives audit records.
    pub record: RecordFn,
}

/// The browser of an agent. It is started at its first use.
pub struct Browser {
    pub(crate) options: Options,
    starting: tokio::sync::Mutex<()>,
    provider: Mutex<Option<Arc<dyn Provider>>>,
    sessions: Mutex<HashMap<String, Session>>,
    views: Mutex<HashMap<String, View>>,
}

#[derive(Default)]
struct Session {
    turn: u64,
    tab: Option<String>,
}

/// What was shown of a tab.
#[derive(Default)]
struct View {
    references: References,
    shown: Option<Snapshot>,
    /// The outcome of the last action is unknown.
    is_unknown: bool,
}

/// A tab at one moment.
pub(crate) struct Seen {
    pub(crate) snapshot: Snapshot,
    pub(crate) facts: Facts,
}

impl Browser {
    /// Creates a browser that is not started yet.
    #[must_use]
    pub fn new(options: Options) -> Arc<Self> {
        Arc::new(Self {
            options,
            starting: tokio::sync::Mutex::default(),
            provider: Mutex::default(),
            sessions: Mutex::default(),
            views: Mutex::default(),
        })
    }

    /// Returns the running browser, or starts one.
    ///
    /// # Errors
    /// [`BrowserError::Start`].
    pub(crate) async fn started(&self) -> Result<Arc<dyn Provider>, BrowserError> {
        let _one = self.starting.lock().await;
        if let Some(running) = self.running() {
            return Ok(running);
        }
        let Options {
            source,
            folder,
            spawner,
            sites,
            record,
            ..
        } = &self.options;
        let (sites, record) = (Arc::clone(sites), Arc::clone(record));
        let begun = Chromium::start(source, folder, spawner, sites, record).await?;
        lock(&self.views).clear();
        let provider: Arc<dyn Provider> = begun;
        *lock(&self.provider) = Some(Arc::clone(&provider));
        Ok(provider)
    }

    /// Returns the browser if one is running.
    #[must_use]
    pub fn running(&self) -> Option<Arc<dyn Provider>> {
        lock(&self.provider).clone().filter(|it| !it.is_gone())
    }

    /// Returns the running browser, or the error that it has ended.
    pub(crate) fn current(&self) -> Result<Arc<dyn Provider>, BrowserError> {
        match lock(&self.provider).clone() {
            Some(it) if it.is_gone() => Err(BrowserError::Lost {
                cause: "has ended, and its tabs with it".to_owned(),
            }),
            Some(it) => Ok(it),
            None => Err(BrowserError::Input(
                "No browser is open: browser_open opens a page.".to_owned(),
            )),
        }
    }

    /// Returns the caller.
    pub(crate) fn owner(&self, session: &str, agent: &str) -> Owner {
        let turn = lock(&self.sessions).get(session).map_or(0, |it| it.turn);
        Owner {
            session: session.to_owned(),
            agent: agent.to_owned(),
            turn,
        }
    }

    /// Returns the tab of a call: the named one, which must be its session's or shared, or the last one used.
    pub(crate) fn tab(&self, session: &str, named: Option<&str>) -> Result<TabInfo, BrowserError> {
        let provider = self.current()?;
        let used = lock(&self.sessions)
            .get(session)
            .and_then(|it| it.tab.clone());
        let mut tabs = provider.tabs();
        let wanted = named.map(str::to_owned).or(used);
        let found = match &wanted {
            Some(wanted) => tabs.iter().position(|it| it.tab == *wanted),
            None => tabs.iter().rposition(|it| it.session == session),
        };
        match found {
            Some(at) => Ok(tabs.swap_remove(at)),
            None => {
                let open: Vec<String> = tabs
                    .iter()
                    .map(|it| format!("{} ({})", it.tab, it.url))
                    .collect();
                let open = if open.is_empty() {
                    "None is open: browser_open opens one.".to_owned()
                } else {
                    format!("Open are: {}.", open.join(", "))
                };
                Err(BrowserError::NoTab {
                    tab: wanted.unwrap_or_else(|| "of this session".to_owned()),
                    open,
                })
            }
        }
    }

    /// Returns the address of a call's tab without a request to the browser.
    pub(crate) fn address(&self, session: &str, named: Option<&str>) -> Option<String> {
        self.tab(session, named).ok().map(|it| it.url)
    }

    /// Makes a tab the current one of a session.
    pub(crate) fn uses(&self, session: &str, tab: &str) {
        lock(&self.sessions)
            .entry(session.to_owned())
            .or_default()
            .tab = Some(tab.to_owned());
    }

    /// Acquires the lease on a tab, waiting in the queue up to [`QUEUE_TIMEOUT`]. A failure is recorded in the audit.
    pub(crate) async fn lease(
        &self,
        provider: &dyn Provider,
        tab: &str,
        owner: &Owner,
    ) -> Result<Grant, BrowserError> {
        let begun = Instant::now();
        loop {
            match provider.acquire(tab, owner) {
                Err(BrowserError::Lease(refusal))
                    if refusal.code() == "lease.held" && begun.elapsed() < QUEUE_TIMEOUT =>
                {
                    tokio::time::sleep(QUEUE_PAUSE).await;
                }
                Err(BrowserError::Lease(refusal)) => {
                    (self.options.record)(refused(owner, tab, &refusal));
                    return Err(BrowserError::Lease(refusal));
                }
                other => return other,
            }
        }
    }

    /// Returns what a tab shows, with the records since a mark. Protected fields and secrets are masked.
    pub(crate) async fn observe(
        &self,
        provider: &dyn Provider,
        tab: &str,
        since: Mark,
        denies: Denies<'_>,
    ) -> Result<Seen, BrowserError> {
        let mut look = provider
            .look(tab)
            .await
            .map_err(|error| error.withheld(denies))?;
        for frame in &mut look.frames {
            frame.denied = denies(&frame.site.address());
        }
        name_strangers(&mut look.nodes, &look.origin, &look.frames);
        for node in &mut look.nodes {
            let is_kept = node
                .field
                .is_some_and(|it| !self.options.fields.contains(&it));
            if is_kept && node.value.as_ref().is_some_and(|it| !it.is_empty()) {
                node.value = Some("(not shown)".to_owned());
            }
            self.options.secrets.hide(&mut node.name);
            if let Some(value) = &mut node.value {
                self.options.secrets.hide(value);
            }
        }
        let text: Vec<&str> = look
            .nodes
            .iter()
            .filter(|it| it.role == "text")
            .map(|it| it.name.as_str())
            .collect();
        let text = text.join(" ");
        let recorded = provider.recorded(tab, since);
        let (snapshot, elements): (Snapshot, Vec<Element>) = {
            let mut views = lock(&self.views);
            let view = views.entry(tab.to_owned()).or_default();
            Snapshot::of(&look.url, &look.title, look.nodes, &mut view.references)
        };
        let errors = recorded
            .console
            .into_iter()
            .filter(|it| it.level == "error");
        let facts = Facts {
            url: look.url,
            title: look.title,
            text,
            elements,
            requests: recorded.requests.into_iter().map(|it| it.request).collect(),
            errors: errors.map(|it| it.text).collect(),
            downloads: recorded.downloads,
            stable: false,
        };
        Ok(Seen { snapshot, facts })
    }

    /// Returns the element of a reference.
    pub(crate) fn key(&self, tab: &str, reference: &str) -> Result<Key, BrowserError> {
        let views = lock(&self.views);
        views
            .get(tab)
            .and_then(|view| view.references.key(reference).cloned())
            .ok_or_else(|| BrowserError::Stale {
                reference: reference.to_owned(),
            })
    }

    /// Replaces the last shown snapshot of a tab, and returns the previous one.
    pub(crate) fn shows(&self, tab: &str, snapshot: Snapshot) -> Option<Snapshot> {
        let mut views = lock(&self.views);
        let view = views.entry(tab.to_owned()).or_default();
        view.is_unknown = false;
        view.shown.replace(snapshot)
    }

    /// Returns the last shown snapshot of a tab.
    pub(crate) fn last_shown(&self, tab: &str) -> Option<Snapshot> {
        lock(&self.views).get(tab)?.shown.clone()
    }

    /// Returns whether the outcome of the last action on a tab is unknown.
    pub(crate) fn is_unknown(&self, tab: &str) -> bool {
        lock(&self.views)
            .get(tab)
            .is_some_and(|view| view.is_unknown)
    }

    /// Marks the outcome of an action as unknown.
    pub(crate) fn lost_sight(&self, tab: &str) {
        lock(&self.views)
            .entry(tab.to_owned())
            .or_default()
            .is_unknown = true;
    }

    /// Releases the leases of a session whose turn has ended or was cancelled.
    pub fn end_turn(&self, session: &str) {
        if let Some(it) = lock(&self.sessions).get_mut(session) {
            it.turn += 1;
        }
        if let Some(provider) = self.running() {
            provider.end_turn(session);
        }
    }

    /// Closes the tabs of a deleted session.
    pub fn end_session(&self, session: &str) {
        lock(&self.sessions).remove(session);
        if let Some(provider) = self.running() {
            provider.end_session(session);
        }
    }

    /// Closes it.
    pub async fn close(&self) {
        let provider = lock(&self.provider).take();
        if let Some(provider) = provider {
            provider.close().await;
        }
    }
}
