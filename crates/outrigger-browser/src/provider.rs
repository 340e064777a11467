//! The trait of browser providers: every provider of the contracts `browser.read` and
//! `browser.write` implements it. The conformance suite (`tests/it/conformance.rs`) tests all of them.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_browser_core::action::{Kind, Point};
use outrigger_browser_core::expect::{Download, Request};
use outrigger_browser_core::field::FieldKind;
pub use outrigger_browser_core::frame::{FrameSite, Inside};
use outrigger_browser_core::lease::{Grant, Owner};
use outrigger_browser_core::snapshot::{Key, Node};

pub use crate::dialog::Dialog;
use crate::error::BrowserError;

/// Result of a call.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, BrowserError>>;

/// A tab, for lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TabInfo {
    /// Its name: `t1`. Not reused.
    pub tab: String,
    /// Address.
    pub url: String,
    /// Title.
    pub title: String,
    /// The session that opened it, directly or by a click.
    pub session: String,
    /// The tab whose page opened it.
    pub opener: Option<String>,
}

/// A page at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Address.
    pub url: String,
    /// Title.
    pub title: String,
    /// Its elements, with those of frames in place.
    pub nodes: Vec<Node>,
    /// The origin of the page.
    pub origin: String,
    /// Which elements belong to which frames. The caller decides whether a rule denies one.
    pub frames: Vec<Inside>,
}

/// A position in the records of a tab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Requests.
    pub requests: u64,
    /// Lines of the console.
    pub console: u64,
    /// Downloads.
    pub downloads: u64,
}

/// A line of the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleLine {
    /// Its number, starting at 1.
    pub number: u64,
    /// `error`, `warning`, `info`, `log`, `debug`.
    pub level: String,
    /// Its text.
    pub text: String,
    /// Its source.
    pub source: String,
}

/// A request of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestLine {
    /// Its number, starting at 1.
    pub number: u64,
    /// Method, address and response.
    pub request: Request,
    /// `document`, `xhr`, `image` …
    pub kind: String,
    /// Why it failed.
    pub failure: Option<String>,
}

/// Records of a tab since a [`Mark`].
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Requests.
    pub requests: Vec<RequestLine>,
    /// Lines of the console.
    pub console: Vec<ConsoleLine>,
    /// Downloads.
    pub downloads: Vec<Download>,
}

/// An element, for rules and hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The kind of protected field.
    pub field: Option<FieldKind>,
    /// Whether it submits a form.
    pub submits: bool,
    /// The content of a field; for a list the selected labels, for a checkbox whether it is checked.
    pub value: Option<String>,
}

/// Target of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionTarget {
    /// An element.
    Element(Key),
    /// A point of the viewport.
    Point(Point),
}

/// A fully resolved operation on a tab.
#[derive(Clone, Debug)]
pub struct Step {
    /// Kind.
    pub kind: Kind,
    /// Target.
    pub place: Option<ActionTarget>,
    /// End of a drag.
    pub to: Option<ActionTarget>,
    /// Text to type, key to press, or answer.
    pub text: Option<String>,
    /// The text is a secret: it is entered into the field itself, not into the focused element, which another frame may change.
    pub is_secret: bool,
    /// Kinds of protected fields that may be typed in.
    pub granted: Vec<FieldKind>,
    /// Options of a list to select.
    pub values: Vec<String>,
    /// Address.
    pub url: Option<String>,
    /// File to upload.
    pub file: Option<PathBuf>,
    /// Pixels to scroll.
    pub by: Option<Point>,
    /// Confirm the dialog.
    pub accept: bool,
    /// Press Enter after typing.
    pub submit: bool,
    /// Modifier keys.
    pub modifiers: Vec<String>,
    /// Mouse button.
    pub button: String,
    /// Bring the tab to the front.
    pub focus: bool,
    /// Timeout for loading.
    pub wait: Duration,
}

/// Result of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The new value of the field, if one was typed or selected.
    pub value: Option<String>,
    /// Labels of the selected options.
    pub chosen: Option<String>,
    /// Tabs that it opened.
    pub opened: Vec<String>,
    /// Further information as text.
    pub notes: Vec<String>,
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// `image/png` or `image/jpeg`.
    pub mime: &'static str,
    /// In Base64.
    pub base64: String,
}

/// Area of a screenshot.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// The whole page, not only the viewport.
    pub full: bool,
    /// Only this element.
    pub element: Option<Key>,
    /// Elements to mark with a frame and their reference.
    pub marked: Vec<(String, Key)>,
}

/// A browser.
pub trait Provider: Send + Sync {
    /// Its name in routing rules: `cdp`, `extension`, `cdp-ext`.
    fn name(&self) -> &'static str;
    /// Returns whether it is gone.
    fn is_gone(&self) -> bool;
    /// Opens a background tab for a session and waits until its page has loaded. `None`: an empty tab.
    fn open<'a>(
        &'a self,
        owner: &'a Owner,
        url: Option<&'a str>,
        wait: Duration,
    ) -> Answer<'a, String>;
    /// Returns the tabs that sessions opened.
    fn tabs(&self) -> Vec<TabInfo>;
    /// Acquires the lease on a tab, or a place in the queue.
    ///
    /// # Errors
    /// [`BrowserError::Lease`], [`BrowserError::NoTab`].
    fn acquire(&self, tab: &str, owner: &Owner) -> Result<Grant, BrowserError>;
    /// Returns what a tab shows.
    fn look<'a>(&'a self, tab: &'a str) -> Answer<'a, Look>;
    /// Describes an element.
    fn target<'a>(&'a self, tab: &'a str, key: &'a Key) -> Answer<'a, Target>;
    /// Returns the sites of an element's frame and its ancestors, from the innermost to the page; without an element, of all frames
    /// of the tab. The frames report them at the time of the call. A provider that does not know them fails.
    fn frames<'a>(&'a self, tab: &'a str, key: Option<&'a Key>) -> Answer<'a, Vec<FrameSite>>;
    /// Performs a step. The lease is checked here, right before anything is sent, whatever was checked before (C9, 6).
    fn act<'a>(&'a self, grant: &'a Grant, step: &'a Step) -> Answer<'a, Done>;
    /// Returns the current position of the records of a tab.
    fn mark(&self, tab: &str) -> Mark;
    /// Returns the records of a tab since a mark.
    fn recorded(&self, tab: &str, since: Mark) -> Recorded;
    /// Returns the open dialog of a tab.
    fn dialog(&self, tab: &str) -> Option<Dialog>;
    /// Takes a screenshot of a tab.
    fn picture<'a>(&'a self, tab: &'a str, frame: &'a Frame) -> Answer<'a, Picture>;
    /// Runs JavaScript in a page; the result is JSON.
    fn eval<'a>(&'a self, grant: &'a Grant, code: &'a str) -> Answer<'a, String>;
    /// Returns the response body of a request of a tab.
    fn body<'a>(&'a self, tab: &'a str, number: u64) -> Answer<'a, String>;
    /// Returns the file of a complete download, and its name.
    fn downloaded(&self, tab: &str, since: Mark) -> Option<(String, PathBuf)>;
    /// Releases the leases of a session whose turn has ended.
    fn end_turn(&self, session: &str);
    /// Closes the tabs of a session that has ended.
    fn end_session(&self, session: &str);
    /// The user allows agents to continue in a tab that the user took over.
    fn hand_back(&self, tab: &str);
    /// Closes the browser if it was started for this agent, otherwise the connection.
    fn close(&self) -> BoxFuture<'_, ()>;
}
