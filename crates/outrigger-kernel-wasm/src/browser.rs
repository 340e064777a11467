//! Decisions about a browser (C12): leases, snapshots and changes of pages, effects of actions, protected addresses and
//! fields.

mod judge;
mod pages;

use outrigger_browser_core::action::{Action, Kind, is_grave};
use outrigger_browser_core::expect::Expectation;
use outrigger_browser_core::field::{Attributes, kind_of};
use outrigger_browser_core::frame::{FrameSite, NotTyped, may_type, others};
use outrigger_browser_core::lease::{Grant, LeaseError, Leases, Owner};
use outrigger_browser_core::site::{Address, SiteRules};
use outrigger_browser_core::untrusted::mark;
use outrigger_protocol::Millis;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{Answer, Empty, Failure, NOTHING, text};
use judge::Judged;
use pages::{Observed, Pages};

/// Operations about a browser.
#[derive(Deserialize)]
pub(crate) enum BrowserOp {
    #[serde(rename = "browser.acquire")]
    Acquire {
        tab: String,
        owner: Owner,
        now: Millis,
    },
    /// Checks a lease right before a change is sent (C9, 6).
    #[serde(rename = "browser.check")]
    Check { grant: Grant, now: Millis },
    #[serde(rename = "browser.end_turn")]
    EndTurn { session: String },
    /// The user has clicked or typed in a tab.
    #[serde(rename = "browser.person")]
    Person(OfTab),
    #[serde(rename = "browser.hand_back")]
    HandBack(OfTab),
    /// A tab was closed.
    #[serde(rename = "browser.forget")]
    Forget(OfTab),
    /// Returns the owners of tabs.
    #[serde(rename = "browser.held")]
    Held(Empty),
    /// Returns leases and references in serialised form.
    #[serde(rename = "browser.keep")]
    Keep(Empty),
    /// Restores them.
    #[serde(rename = "browser.recall")]
    Recall { kept: Kept },
    /// Returns the properties of an action, and what is missing.
    #[serde(rename = "browser.action")]
    Action {
        action: Box<Action>,
        /// Name of the target, to detect actions that cannot be undone.
        #[serde(default)]
        target: String,
        #[serde(default)]
        submits: bool,
    },
    /// Returns the kind of a protected field.
    #[serde(rename = "browser.field")]
    Field(FieldQuestion),
    /// Returns why an address may not be shown, or nothing.
    #[serde(rename = "browser.site")]
    Site(SiteQuestion),
    /// Returns the addresses of cross-origin frames, for which rules are checked too.
    #[serde(rename = "browser.frames")]
    Frames {
        page: String,
        frames: Vec<FrameSite>,
    },
    /// Returns why a secret may not be typed into a field in these frames, or nothing. `hosts`: its pattern, if it exists.
    #[serde(rename = "browser.secret")]
    Secret {
        name: String,
        hosts: Option<String>,
        frames: Vec<FrameSite>,
    },
    /// Returns text of a page, marked as untrusted.
    #[serde(rename = "browser.mark")]
    Mark { url: String, text: String },
    /// Takes the current state of a page.
    #[serde(rename = "browser.observe")]
    Observe(Box<Observed>),
    /// Returns the snapshot of the last observed page.
    #[serde(rename = "browser.show")]
    Show {
        tab: String,
        reference: Option<String>,
        #[serde(default)]
        full: bool,
        page: Option<usize>,
        budget: Option<usize>,
    },
    /// Returns the changes since the last shown snapshot.
    #[serde(rename = "browser.changed")]
    Changed(OfTab),
    /// Returns unmet expectations.
    #[serde(rename = "browser.unmet")]
    Unmet {
        tab: String,
        expect: Vec<Expectation>,
    },
    /// Returns the current status of an action.
    #[serde(rename = "browser.judge")]
    Judge(Box<Judged>),
    /// Returns the element of a reference.
    #[serde(rename = "browser.element")]
    Element { tab: String, reference: String },
}

/// A tab, for operations without other arguments.
#[derive(Deserialize)]
pub(crate) struct OfTab {
    tab: String,
}

/// A field, by its attributes.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct FieldQuestion {
    kind: String,
    autocomplete: String,
    name: String,
    id: String,
}

impl FieldQuestion {
    fn answer(&self) -> String {
        text(&kind_of(Attributes {
            kind: &self.kind,
            autocomplete: &self.autocomplete,
            name: &self.name,
            id: &self.id,
        }))
    }
}

/// An address, in its parts.
#[derive(Deserialize)]
pub(crate) struct SiteQuestion {
    scheme: String,
    host: String,
    port: u16,
    is_local: bool,
    /// Local origins that a rule allows by name.
    #[serde(default)]
    local: Vec<String>,
}

impl SiteQuestion {
    fn answer(self) -> Answer {
        let address = Address {
            scheme: &self.scheme,
            host: &self.host,
            port: self.port,
            is_local: self.is_local,
        };
        let rules = SiteRules {
            own_ports: Vec::new(),
            local: self.local,
        };
        match rules.judge(address) {
            Ok(()) => Ok(NOTHING.to_owned()),
            Err(refused) => Err(Failure::new(refused.code(), refused.to_string())),
        }
    }
}

/// State that survives the host.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Kept {
    leases: Leases,
    pages: pages::KeptPages,
}

/// Leases and pages of a host's browser.
#[derive(Default)]
pub(crate) struct Browser {
    leases: Leases,
    pages: Pages,
}

impl From<LeaseError> for Failure {
    fn from(error: LeaseError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<NotTyped> for Failure {
    fn from(refused: NotTyped) -> Self {
        Self::new("browser.secret", refused.to_string())
    }
}

impl Browser {
    pub(crate) fn answer(&mut self, op: BrowserOp) -> Answer {
        Ok(match op {
            BrowserOp::Acquire { tab, owner, now } => {
                text(&self.leases.acquire(&tab, &owner, now)?)
            }
            BrowserOp::Check { grant, now } => text(&self.leases.check(&grant, now)?),
            BrowserOp::EndTurn { session } => text(&self.leases.end_turn(&session)),
            BrowserOp::Person(OfTab { tab }) => text(&self.leases.taken_by_person(&tab)),
            BrowserOp::HandBack(OfTab { tab }) => text(&self.leases.handed_back(&tab)),
            BrowserOp::Forget(OfTab { tab }) => {
                self.leases.forget(&tab);
                self.pages.forget(&tab);
                NOTHING.to_owned()
            }
            BrowserOp::Held(Empty {}) => text(&self.leases.held()),
            BrowserOp::Keep(Empty {}) => text(&Kept {
                leases: self.leases.clone(),
                pages: self.pages.keep(),
            }),
            BrowserOp::Recall { kept } => {
                self.leases = kept.leases;
                self.pages = Pages::recall(kept.pages);
                NOTHING.to_owned()
            }
            BrowserOp::Action {
                action,
                target,
                submits,
            } => about(&action, &target, submits),
            BrowserOp::Field(it) => it.answer(),
            BrowserOp::Site(it) => it.answer()?,
            BrowserOp::Frames { page, frames } => text(&others(&page, &frames)),
            BrowserOp::Secret {
                name,
                hosts,
                frames,
            } => {
                may_type(&name, hosts.as_deref(), &frames)?;
                NOTHING.to_owned()
            }
            BrowserOp::Mark { url, text: said } => text(&mark(&url, &said)),
            BrowserOp::Observe(observed) => self.pages.observe(*observed),
            BrowserOp::Show {
                tab,
                reference,
                full,
                page,
                budget,
            } => self
                .pages
                .show(&tab, reference.as_deref(), full, page, budget)?,
            BrowserOp::Changed(OfTab { tab }) => self.pages.changed(&tab)?,
            BrowserOp::Unmet { tab, expect } => self.pages.unmet(&tab, &expect)?,
            BrowserOp::Judge(it) => self.pages.judge(&it)?,
            BrowserOp::Element { tab, reference } => self.pages.element(&tab, &reference)?,
        })
    }
}

fn about(action: &Action, target: &str, submits: bool) -> String {
    let kind: Kind = action.action;
    let submits = submits || is_grave(target) || action.submit;
    json!({
        "missing": action.check().err(), "kind": kind.name(), "write": kind.is_write(), "risk": kind.risk(submits).name(),
        "should_change": kind.should_change_something(), "needs_target": kind.needs_target(),
    })
    .to_string()
}
