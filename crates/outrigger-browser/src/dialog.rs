//! Dialogs of pages. The text of a dialog belongs to its frame.

use outrigger_browser_core::frame::FrameSite;

/// A check whether a rule denies an address; frames with such addresses are not shown.
pub(crate) type Denies<'a> = &'a (dyn Fn(&str) -> bool + Send + Sync);

/// A dialog of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialog {
    /// `alert`, `confirm`, `prompt`, `beforeunload`.
    pub kind: String,
    /// Its text.
    pub message: String,
    /// The address of the frame that opened it.
    pub url: String,
}

impl Dialog {
    /// Removes the text if a rule denies its frame.
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
