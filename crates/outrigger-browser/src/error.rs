//! Errors of a browser. The model reads their text.

use outrigger_browser_core::frame::NotTyped;
use outrigger_browser_core::lease::LeaseError;
use outrigger_browser_core::site::Refused;

use crate::dialog::{Denies, Dialog};

/// Why an operation in a browser failed, or has an unknown outcome.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BrowserError {
    /// No Chromium was found, or it does not start.
    #[error("No browser could be started: {0}")]
    Start(String),
    /// The user's own browser cannot be used through its extension.
    #[error("The user's own browser is not there: {0}")]
    Relay(String),
    /// The browser is gone or does not respond. The last operation may have happened.
    #[error(
        "The browser {cause}. It is unknown whether the last action happened: look at the page (browser_snapshot) before repeating it."
    )]
    Lost {
        /// What happened to it.
        cause: String,
    },
    /// The browser refused a command.
    #[error("The browser refused {method}: {message}")]
    Refused {
        /// Command of the DevTools protocol.
        method: String,
        /// Its reason.
        message: String,
    },
    /// The tab does not exist, or not any more.
    #[error("There is no tab {tab}. {open}")]
    NoTab {
        /// The given name.
        tab: String,
        /// The existing tabs.
        open: String,
    },
    /// The tab's page has crashed.
    #[error(
        "The page of the tab {tab} has crashed. It is unknown whether the last action happened; `reload` or `navigate` restores the tab."
    )]
    Crashed {
        /// Tab.
        tab: String,
    },
    /// An invalid element reference.
    #[error(
        "{reference} is no longer on the page. Take a browser_snapshot for current references."
    )]
    Stale {
        /// The given reference.
        reference: String,
    },
    /// The target is covered or cannot be used.
    #[error("The {action} was not done: {why}")]
    NotDone {
        /// Kind of the action.
        action: String,
        /// Why.
        why: String,
    },
    /// A dialog of the page is open and must be answered first.
    #[error("A dialog is open ({}: {:?}). Answer it with the action `dialog`.", .0.kind, .0.message)]
    Dialog(Dialog),
    /// There is no valid lease (C9, 6).
    #[error("Not done: {0}.")]
    Lease(LeaseError),
    /// The address may not be shown.
    #[error("{url} is not opened: {refused}")]
    Site {
        /// Address.
        url: String,
        /// Why.
        refused: Refused,
    },
    /// The outcome of the previous action is unknown.
    #[error(
        "The outcome of the last action on this tab is unknown. Look at the tab first (browser_snapshot or browser_verify), so that nothing is done twice."
    )]
    Unknown,
    /// The field is protected.
    #[error(
        "{field} fields are neither read nor typed in without a grant. Type one of the user's secrets by name (`secret`), or ask the user."
    )]
    Field {
        /// `password`, `card`, `code`.
        field: &'static str,
    },
    /// The secret does not exist, or is not for the sites of the field.
    #[error("{0}.")]
    Secret(NotTyped),
    /// The request is invalid.
    #[error("{0}")]
    Input(String),
}

impl BrowserError {
    /// Returns the stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Start(_) => "browser.start",
            Self::Relay(_) => "browser.relay",
            Self::Lost { .. } => "browser.lost",
            Self::Refused { .. } => "browser.refused",
            Self::NoTab { .. } => "browser.no_tab",
            Self::Crashed { .. } => "browser.crashed",
            Self::Stale { .. } => "browser.stale",
            Self::NotDone { .. } => "browser.not_done",
            Self::Dialog(_) => "browser.dialog",
            Self::Lease(refusal) => refusal.code(),
            Self::Site { refused, .. } => refused.code(),
            Self::Unknown => "browser.unknown",
            Self::Field { .. } => "browser.field",
            Self::Secret(_) => "browser.secret",
            Self::Input(_) => "browser.input",
        }
    }

    /// Returns whether the operation may have happened nevertheless.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Lost { .. } | Self::Crashed { .. })
    }

    /// Removes the text of a dialog whose frame a rule denies.
    pub(crate) fn withheld(self, denies: Denies<'_>) -> Self {
        match self {
            Self::Dialog(dialog) => Self::Dialog(dialog.withheld(denies)),
            other => other,
        }
    }

    /// Returns a hint for the user.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Start(_) => {
                Some("install Chromium, or name one as `browser.program` in outrigger.toml")
            }
            Self::Site { .. } => {
                Some("a rule of the permission `webfetch` that names the address lets it be opened")
            }
            Self::Field { .. } => {
                Some("`browser.fields` in outrigger.toml grants fields of a kind")
            }
            Self::Secret(NotTyped::NoSecret { .. }) => Some(
                "`browser.secrets = [\"NAME@HOST\"]` in outrigger.toml; the value is the environment variable NAME",
            ),
            _ => None,
        }
    }
}

impl From<LeaseError> for BrowserError {
    fn from(refusal: LeaseError) -> Self {
        Self::Lease(refusal)
    }
}
