//! The state of a browser, collected from its events.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use outrigger_browser_core::expect::{Download, Request};
use outrigger_browser_core::lease::Leases;

use crate::provider::{ConsoleLine, Dialog, Mark, Recorded, RequestLine, TabInfo};

/// Maximum number of stored console lines and requests per tab.
const MAX_KEPT: usize = 500;
/// Maximum length of a console line, in bytes.
const MAX_TEXT: usize = 4_000;
/// Timeout for an input event that we caused to be reported back.
const OWN_EVENT_TIMEOUT: Duration = Duration::from_secs(10);

/// The whole state, behind one lock that is not held while waiting.
#[derive(Default)]
pub(super) struct State {
    pub(super) leases: Leases,
    /// By name.
    pub(super) tabs: BTreeMap<String, Tab>,
    /// Protocol sessions with their tabs.
    pub(super) sessions: HashMap<String, String>,
    /// Sessions that are opening a tab, by target: the tab's event may arrive before the answer.
    pub(super) opening: HashMap<String, String>,
    pub(super) last_tab: u64,
}

/// A tab.
#[derive(Default)]
pub(super) struct Tab {
    pub(super) info: TabInfo,
    pub(super) target: String,
    /// Protocol session.
    pub(super) session: String,
    /// Its main frame.
    pub(super) main: String,
    pub(super) frames: HashMap<String, Frame>,
    /// Loading frames.
    pub(super) loading: HashSet<String>,
    pub(super) dialog: Option<Dialog>,
    pub(super) crashed: bool,
    /// Its domains are enabled.
    pub(super) is_ready: bool,
    console: VecDeque<ConsoleLine>,
    console_count: u64,
    requests: VecDeque<RequestLine>,
    request_count: u64,
    request_ids: HashMap<String, u64>,
    downloads: Vec<Kept>,
    /// Clicks and keys that we have sent and that were not reported back yet.
    own: HashMap<String, Vec<Instant>>,
}

/// A frame of a page.
#[derive(Clone, Debug, Default)]
pub(super) struct Frame {
    /// Protocol session of its process.
    pub(super) session: String,
    pub(super) parent: Option<String>,
    /// The document that it shows.
    pub(super) document: String,
    /// Our isolated world in it.
    pub(super) world: Option<i64>,
}

#[derive(Clone, Debug)]
struct Kept {
    id: String,
    name: String,
    path: PathBuf,
    is_complete: bool,
}

impl Tab {
    /// Creates a tab without further information: the ID of a target is that of its main frame.
    pub(super) fn new(session: &str, target: String) -> Self {
        Self {
            session: session.to_owned(),
            main: target.clone(),
            target,
            ..Self::default()
        }
    }

    /// Resets the tab: pending requests are lost, and its content is unknown.
    pub(super) fn is_back(&mut self, session: &str) {
        session.clone_into(&mut self.session);
        let frame = Frame {
            session: session.to_owned(),
            ..Frame::default()
        };
        self.frames = HashMap::from([(self.main.clone(), frame)]);
        self.loading.clear();
        self.dialog = None;
        self.crashed = false;
        self.is_ready = false;
    }

    /// Returns the current position of its records.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            requests: self.request_count,
            console: self.console_count,
            downloads: self.downloads.len() as u64,
        }
    }

    /// Returns the records since a mark.
    pub(super) fn recorded(&self, since: Mark) -> Recorded {
        let downloads = self
            .downloads
            .iter()
            .skip(usize::try_from(since.downloads).unwrap_or(usize::MAX));
        Recorded {
            requests: self
                .requests
                .iter()
                .filter(|it| it.number > since.requests)
                .cloned()
                .collect(),
            console: self
                .console
                .iter()
                .filter(|it| it.number > since.console)
                .cloned()
                .collect(),
            downloads: downloads
                .map(|it| Download {
                    name: it.name.clone(),
                    complete: it.is_complete,
                })
                .collect(),
        }
    }

    /// Returns the last complete download since a mark, with its file.
    pub(super) fn downloaded(&self, since: Mark) -> Option<(String, PathBuf)> {
        let new = usize::try_from(since.downloads).ok()?;
        let mut new = self.downloads.iter().skip(new);
        let found = new.rfind(|it| it.is_complete)?;
        Some((found.name.clone(), found.path.clone()))
    }

    pub(super) fn says(&mut self, level: &str, text: &str, source: &str) {
        self.console_count += 1;
        let end = (0..=MAX_TEXT.min(text.len()))
            .rev()
            .find(|at| text.is_char_boundary(*at));
        let line = ConsoleLine {
            number: self.console_count,
            level: level.to_owned(),
            text: text
                .get(..end.unwrap_or_default())
                .unwrap_or_default()
                .to_owned(),
            source: source.to_owned(),
        };
        push(&mut self.console, line);
    }

    /// Records a request. A redirect is another request with the same ID.
    pub(super) fn asks(&mut self, id: &str, method: &str, url: &str, kind: &str) {
        self.request_count += 1;
        let request = Request {
            method: method.to_owned(),
            url: url.to_owned(),
            status: None,
        };
        let line = RequestLine {
            number: self.request_count,
            request,
            kind: kind.to_ascii_lowercase(),
            failure: None,
        };
        push(&mut self.requests, line);
        self.request_ids.insert(id.to_owned(), self.request_count);
        if self.request_ids.len() > 4 * MAX_KEPT {
            let oldest = self.request_count.saturating_sub(MAX_KEPT as u64);
            self.request_ids.retain(|_, number| *number > oldest);
        }
    }

    /// Returns the request with this protocol ID.
    pub(super) fn request(&mut self, id: &str) -> Option<&mut RequestLine> {
        let number = *self.request_ids.get(id)?;
        self.requests.iter_mut().find(|it| it.number == number)
    }

    /// The protocol ID of a request.
    pub(super) fn request_id(&self, number: u64) -> Option<String> {
        let mut ids = self.request_ids.iter();
        ids.find(|(_, it)| **it == number).map(|(id, _)| id.clone())
    }

    /// Returns whether a request since a mark that can change the page is still unanswered.
    pub(super) fn waits_since(&self, since: Mark) -> bool {
        let open = |it: &&RequestLine| {
            it.number > since.requests && it.request.status.is_none() && it.failure.is_none()
        };
        let counts = |it: &RequestLine| {
            matches!(
                it.kind.as_str(),
                "document" | "xhr" | "fetch" | "script" | "stylesheet"
            )
        };
        self.requests.iter().filter(open).any(counts)
    }

    pub(super) fn downloads(&mut self, id: &str, name: &str, path: PathBuf) {
        self.downloads.push(Kept {
            id: id.to_owned(),
            name: name.to_owned(),
            path,
            is_complete: false,
        });
    }

    pub(super) fn has_downloaded(&mut self, id: &str) -> bool {
        self.downloads
            .iter_mut()
            .find(|it| it.id == id)
            .map(|it| it.is_complete = true)
            .is_some()
    }

    /// Records that we are about to send a click or key.
    pub(super) fn will_send(&mut self, kind: &str) {
        self.own
            .entry(kind.to_owned())
            .or_default()
            .push(Instant::now());
    }

    /// Handles a reported click or key; returns whether it is one of ours.
    pub(super) fn is_own(&mut self, kind: &str) -> bool {
        let Some(sent) = self.own.get_mut(kind) else {
            return false;
        };
        sent.retain(|at| at.elapsed() < OWN_EVENT_TIMEOUT);
        sent.pop().is_some()
    }

    /// Removes a frame with its children.
    pub(super) fn forget_frame(&mut self, frame: &str) {
        self.frames.remove(frame);
        self.loading.remove(frame);
        let inside: Vec<String> = self
            .frames
            .iter()
            .filter(|(_, it)| it.parent.as_deref() == Some(frame))
            .map(|(id, _)| id.clone())
            .collect();
        for id in inside {
            self.forget_frame(&id);
        }
    }

    /// Returns the frame of a document.
    pub(super) fn frame_of(&self, document: &str) -> Option<(&String, &Frame)> {
        self.frames
            .iter()
            .find(|(_, frame)| frame.document == document)
    }
}

fn push<T>(kept: &mut VecDeque<T>, new: T) {
    if kept.len() >= MAX_KEPT {
        kept.pop_front();
    }
    kept.push_back(new);
}

impl State {
    /// Returns the tab of a protocol session.
    pub(super) fn tab_of(&mut self, session: &str) -> Option<&mut Tab> {
        let tab = self.sessions.get(session)?;
        self.tabs.get_mut(tab)
    }

    /// Returns the tab of a target.
    pub(super) fn tab_with(&self, target: &str) -> Option<String> {
        let mut tabs = self.tabs.iter();
        tabs.find(|(_, tab)| tab.target == target)
            .map(|(name, _)| name.clone())
    }

    /// The connection to the browser is lost.
    pub(super) fn are_away(&mut self) {
        for tab in self.tabs.values_mut() {
            tab.is_ready = false;
            tab.dialog = None;
        }
    }

    /// Removes a tab.
    pub(super) fn forget_tab(&mut self, tab: &str) {
        self.tabs.remove(tab);
        self.sessions.retain(|_, it| it != tab);
        self.leases.forget(tab);
    }
}
