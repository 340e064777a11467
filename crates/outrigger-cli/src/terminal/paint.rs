//! Our own colours, if the terminal supports them.

use crate::terminal;

/// Colours, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(bool);

impl Paint {
    /// Returns the colours for standard output.
    pub(crate) fn for_stdout() -> Self {
        Self(terminal::out_has_colours())
    }
    /// Returns the colours for standard error.
    pub(crate) fn for_stderr() -> Self {
        Self(terminal::err_has_colours())
    }
    #[cfg(test)]
    pub(crate) fn off() -> Self {
        Self(false)
    }
    /// Colours each line separately: no colour crosses a line end.
    fn wrap(self, code: &str, text: &str) -> String {
        if !self.0 {
            return text.to_owned();
        }
        text.split('\n')
            .map(|line| {
                if line.is_empty() {
                    String::new()
                } else {
                    format!("\x1b[{code}m{line}\x1b[0m")
                }
            })
            .collect::<Vec<_>>()
            .join("\n")
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
