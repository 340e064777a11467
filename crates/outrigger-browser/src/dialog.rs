//! Dialogs of pages. What one says is its frame's.

use outrigger_browser_core::frame::FrameSite;

/// Whether a rule denies an address: frames of such addresses are not shown.
pub(crate) type Denies<'a> = &'a (dyn Fn(&str) -> bool + Send + Sync);

/// A dialog of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialog {
    /// `alert`, `confirm`, `prompt`, `beforeunload`.
    pub kind: String,
    /// What it says.
    pub message: String,
    /// The address of the frame that opened it.
    pub url: String,
}

impl Dialog {
    /// The same without what it says, where a rule denies its frame.
    pub(crate) fn withheld(self, denies: Denies<'_>) -> Self {
        if !denies(&self.url) {
            return self;
        }
        let site = FrameSite::at(&self.url).name();
        Self {
            message: format!("(not shown: it is of {site}, which a rule denies)"),
            ..self
        }
    }
}
