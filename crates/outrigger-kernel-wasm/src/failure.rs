//! Errors of requests.

/// An error with a stable code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Stable code: `kernel.request`, `kernel.number`, `kernel.replay`, `kernel.abandoned`, `kernel.place`, or that of a lease.
    pub code: String,
    /// What failed, on what.
    pub message: String,
}

impl Failure {
    pub(crate) fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
        }
    }

    /// There is no turn, chain or conversation with that number.
    pub(crate) fn number(what: &str, number: u32) -> Self {
        Self::new("kernel.number", format!("there is no {what} {number}"))
    }
}
