//! What every error of a crate says of itself, besides its message.

/// An error with a stable code and, where the user can act, a hint. The command line prints all of them in one form:
/// `error: MESSAGE [CODE]`, and a line `hint: …`.
pub trait Diagnose: std::error::Error {
    /// Returns the stable code, such as `config.read`, for programs, tests and the audit.
    fn code(&self) -> &'static str;

    /// Returns what the user can do about it, as an imperative.
    fn hint(&self) -> Option<String>;
}
