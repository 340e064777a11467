//! The browser of an agent: which tab a session uses, what it was shown of it, who is recorded.

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

/// How long a place in the queue for a tab is kept in a call.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(20);
/// How often the queue is asked.
const QUEUE_PAUSE: Duration = Duration::from_millis(200);

/// What an agent's browser is to be.
#[derive(Clone)]
pub struct Options {
    /// Where it is.
    pub source: Source,
    /// A folder of its own, which is removed when it ends.
    pub folder: PathBuf,
    /// Starts it.
    pub spawner: Spawner,
    /// What it may show.
    pub sites: Arc<Sites>,
    /// What may be typed by name.
    pub secrets: Secrets,
    /// Fields that are read and typed in like others.
    pub fields: Vec<FieldKind>,
    /// Sites where each change needs a person's word.
    pub ask: Vec<String>,
    /// The model may run code in pages.
    pub eval: bool,
    /// Takes records for the audit.
    pub record: RecordFn,
}

/// The browser of an agent. It is started with its first use.
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
    /// The outcome of the last action is not known.
    is_unknown: bool,
}

/// A tab at one moment.
pub(crate) struct Seen {
    pub(crate) snapshot: Snapshot,
    pub(crate) facts: Facts,
}

impl Browser {
    /// None is started yet.
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

    /// The browser that runs, or one that is started.
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

    /// The browser, where one runs.
    #[must_use]
    pub fn running(&self) -> Option<Arc<dyn Provider>> {
        lock(&self.provider).clone().filter(|it| !it.is_gone())
    }

    /// The browser that runs; one that has ended is said to have.
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

    /// Who calls.
    pub(crate) fn owner(&self, session: &str, agent: &str) -> Owner {
        let turn = lock(&self.sessions).get(session).map_or(0, |it| it.turn);
        Owner {
            session: session.to_owned(),
            agent: agent.to_owned(),
            turn,
        }
    }

    /// The tab that a call is about: the one it names, which has to be its session's or a shared one, or the last one used.
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

    /// The address that a call is about, without asking the browser.
    pub(crate) fn address(&self, session: &str, named: Option<&str>) -> Option<String> {
        self.tab(session, named).ok().map(|it| it.url)
    }

    /// A session uses a tab from now on.
    pub(crate) fn uses(&self, session: &str, tab: &str) {
        lock(&self.sessions)
            .entry(session.to_owned())
            .or_default()
            .tab = Some(tab.to_owned());
    }

    /// The lease on a tab; a place in the queue is kept for [`QUEUE_TIMEOUT`]. That there is none in the end is in the audit.
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

    /// What a tab shows, with the records since a mark. Fields of the user's and secrets are masked.
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

    /// The element of a reference.
    pub(crate) fn key(&self, tab: &str, reference: &str) -> Result<Key, BrowserError> {
        let views = lock(&self.views);
        views
            .get(tab)
            .and_then(|view| view.references.key(reference).cloned())
            .ok_or_else(|| BrowserError::Stale {
                reference: reference.to_owned(),
            })
    }

    /// What was shown of a tab last, and what is from now on.
    pub(crate) fn shows(&self, tab: &str, snapshot: Snapshot) -> Option<Snapshot> {
        let mut views = lock(&self.views);
        let view = views.entry(tab.to_owned()).or_default();
        view.is_unknown = false;
        view.shown.replace(snapshot)
    }

    /// What was shown of a tab last.
    pub(crate) fn last_shown(&self, tab: &str) -> Option<Snapshot> {
        lock(&self.views).get(tab)?.shown.clone()
    }

    /// Whether the outcome of the last action on a tab is not known.
    pub(crate) fn is_unknown(&self, tab: &str) -> bool {
        lock(&self.views)
            .get(tab)
            .is_some_and(|view| view.is_unknown)
    }

    /// The outcome of an action is not known.
    pub(crate) fn lost_sight(&self, tab: &str) {
        lock(&self.views)
            .entry(tab.to_owned())
            .or_default()
            .is_unknown = true;
    }

    /// A session's turn is over, or was cancelled: its leases are free.
    pub fn end_turn(&self, session: &str) {
        if let Some(it) = lock(&self.sessions).get_mut(session) {
            it.turn += 1;
        }
        if let Some(provider) = self.running() {
            provider.end_turn(session);
        }
    }

    /// A session is deleted: its tabs are closed.
    pub fn end_session(&self, session: &str) {
        lock(&self.sessions).remove(session);
        if let Some(provider) = self.running() {
            provider.end_session(session);
        }
    }

    /// Ends it.
    pub async fn close(&self) {
        let provider = lock(&self.provider).take();
        if let Some(provider) = provider {
            provider.close().await;
        }
    }
}
