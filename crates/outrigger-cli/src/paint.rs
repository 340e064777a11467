//! Writing for people: colors where the terminal wants them, the answer on standard output, the rest on standard error.

use std::io::{IsTerminal as _, Write as _};

/// Colors, where the terminal wants them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(bool);

impl Paint {
    /// For standard output.
    pub(crate) fn for_stdout() -> Self {
        Self(std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none())
    }
    /// Off without a terminal and under `NO_COLOR`.
    pub(crate) fn for_stderr() -> Self {
        Self(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
    }
    #[cfg(test)]
    pub(crate) fn off() -> Self {
        Self(false)
    }
    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap("90", text)
    }
    pub(crate) fn bad(self, text: &str) -> String {
        self.wrap("91", text)
    }
    pub(crate) fn good(self, text: &str) -> String {
        self.wrap("32", text)
    }
    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }
}

/// Writes to standard output; a reader that is gone is no error of ours.
pub(crate) fn out(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes());
    let _ = stdout.flush();
}

/// Writes to standard error.
pub(crate) fn err(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
