//! What carries out in a browser what was decided: the one trait that every provider of the contracts `browser.read` and
//! `browser.write` implements. The conformance suite (`tests/it/conformance.rs`) runs against each of them.

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

/// What a call comes to.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, BrowserError>>;

/// A tab, for lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TabInfo {
    /// Its name: `t1`. Never used again.
    pub tab: String,
    /// Address.
    pub url: String,
    /// Title.
    pub title: String,
    /// The session that opened it, itself or by what it clicked.
    pub session: String,
    /// The tab whose page opened it.
    pub opener: Option<String>,
}

/// What a page looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Address.
    pub url: String,
    /// Title.
    pub title: String,
    /// Its elements, those of frames where the frames are.
    pub nodes: Vec<Node>,
    /// The origin of the page.
    pub origin: String,
    /// Which of the elements are of which frames. Whether a rule denies one is for the caller to say.
    pub frames: Vec<Inside>,
}

/// How far the records of a tab go: what comes after it belongs to what was done after it.
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
    /// Its number, from 1 on.
    pub number: u64,
    /// `error`, `warning`, `info`, `log`, `debug`.
    pub level: String,
    /// What it says.
    pub text: String,
    /// Where it is from.
    pub source: String,
}

/// A request of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestLine {
    /// Its number, from 1 on.
    pub number: u64,
    /// What, to where, with which answer.
    pub request: Request,
    /// `document`, `xhr`, `image` …
    pub kind: String,
    /// Why it failed.
    pub failure: Option<String>,
}

/// What has been recorded of a tab since a [`Mark`].
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Requests.
    pub requests: Vec<RequestLine>,
    /// Lines of the console.
    pub console: Vec<ConsoleLine>,
    /// Downloads.
    pub downloads: Vec<Download>,
}

/// An element, as rules and hooks are asked about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// What of the user's it holds.
    pub field: Option<FieldKind>,
    /// It sends a form.
    pub submits: bool,
    /// What a field holds; of a list the labels that are chosen, of a checkbox whether it is checked.
    pub value: Option<String>,
}

/// Where something is done.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionTarget {
    /// To an element.
    Element(Key),
    /// At a point of what is in view.
    Point(Point),
}

/// One thing that is done to a tab, decided in full.
#[derive(Clone, Debug)]
pub struct Step {
    /// What.
    pub kind: Kind,
    /// Where.
    pub place: Option<ActionTarget>,
    /// Where a drag ends.
    pub to: Option<ActionTarget>,
    /// What is typed, pressed or answered.
    pub text: Option<String>,
    /// The text is a secret: it goes into the field itself, not to what has the focus, which another frame may take meanwhile.
    pub is_secret: bool,
    /// Fields of the user's that are typed in like others.
    pub granted: Vec<FieldKind>,
    /// Options of a list.
    pub values: Vec<String>,
    /// Address.
    pub url: Option<String>,
    /// A file that is uploaded.
    pub file: Option<PathBuf>,
    /// Pixels that are scrolled.
    pub by: Option<Point>,
    /// A dialog is confirmed.
    pub accept: bool,
    /// Enter after typing.
    pub submit: bool,
    /// Keys that are held.
    pub modifiers: Vec<String>,
    /// Button of the mouse.
    pub button: String,
    /// The tab comes to the front.
    pub focus: bool,
    /// How long loading may take.
    pub wait: Duration,
}

/// What came of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The value that the field has now, where one was typed or chosen.
    pub value: Option<String>,
    /// The labels of the options that were chosen.
    pub chosen: Option<String>,
    /// Tabs that it opened.
    pub opened: Vec<String>,
    /// In words, what else is to be known.
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

/// What of a page is on a picture.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// The whole page, not only what is in view.
    pub full: bool,
    /// An element alone.
    pub element: Option<Key>,
    /// Elements that get a frame and their reference.
    pub marked: Vec<(String, Key)>,
}

/// A browser.
pub trait Provider: Send + Sync {
    /// Its name in routing rules: `cdp`, `extension`, `cdp-ext`.
    fn name(&self) -> &'static str;
    /// Whether it is gone.
    fn is_gone(&self) -> bool;
    /// Opens a tab in the background, for a session, and waits until its page is there. `None`: an empty one.
    fn open<'a>(
        &'a self,
        owner: &'a Owner,
        url: Option<&'a str>,
        wait: Duration,
    ) -> Answer<'a, String>;
    /// The tabs that sessions opened.
    fn tabs(&self) -> Vec<TabInfo>;
    /// The lease on a tab, or a place in the queue.
    ///
    /// # Errors
    /// [`BrowserError::Lease`], [`BrowserError::NoTab`].
    fn acquire(&self, tab: &str, owner: &Owner) -> Result<Grant, BrowserError>;
    /// What a tab shows.
    fn look<'a>(&'a self, tab: &'a str) -> Answer<'a, Look>;
    /// What an element is.
    fn target<'a>(&'a self, tab: &'a str, key: &'a Key) -> Answer<'a, Target>;
    /// Whose the frame of an element is, and those around it, from the innermost to the page; without an element, those of all frames
    /// of the tab. It is asked of the frames themselves, now. A provider that cannot tell refuses.
    fn frames<'a>(&'a self, tab: &'a str, key: Option<&'a Key>) -> Answer<'a, Vec<FrameSite>>;
    /// Does something. The lease is checked in here, right before anything is sent, whatever was checked before (C9, 6).
    fn act<'a>(&'a self, grant: &'a Grant, step: &'a Step) -> Answer<'a, Done>;
    /// How far the records of a tab go.
    fn mark(&self, tab: &str) -> Mark;
    /// What was recorded of a tab since.
    fn recorded(&self, tab: &str, since: Mark) -> Recorded;
    /// The dialog that is open in a tab.
    fn dialog(&self, tab: &str) -> Option<Dialog>;
    /// A picture of a tab.
    fn picture<'a>(&'a self, tab: &'a str, frame: &'a Frame) -> Answer<'a, Picture>;
    /// Runs code in a page; the answer is JSON.
    fn eval<'a>(&'a self, grant: &'a Grant, code: &'a str) -> Answer<'a, String>;
    /// The body of an answer to a request of a tab.
    fn body<'a>(&'a self, tab: &'a str, number: u64) -> Answer<'a, String>;
    /// The file of a complete download, by its name, and how it is called.
    fn downloaded(&self, tab: &str, since: Mark) -> Option<(String, PathBuf)>;
    /// A session's turn is over: its leases are free.
    fn end_turn(&self, session: &str);
    /// A session is over: its tabs are closed.
    fn end_session(&self, session: &str);
    /// A person who took a tab lets agents go on in it.
    fn hand_back(&self, tab: &str);
    /// Ends it, if it was started for this; else takes leave of it.
    fn close(&self) -> BoxFuture<'_, ()>;
}
