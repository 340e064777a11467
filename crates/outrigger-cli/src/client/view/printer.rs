//! The output streams of a view: standard output or standard error, starting a new line below a question.

use crate::terminal::{err, out};

/// The stream of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    Out,
    Err,
}

type Print = Box<dyn FnMut(To, &str) + Send>;

/// Prints the output of a view.
pub(super) struct Printer {
    print: Print,
    /// The cursor is after a question.
    mid_line: bool,
}

impl Printer {
    /// Creates a printer for the streams of this process.
    pub(super) fn new() -> Self {
        Self::with(Box::new(|to, text| match to {
            To::Out => out(text),
            To::Err => err(text),
        }))
    }

    pub(super) fn with(print: Print) -> Self {
        Self {
            print,
            mid_line: false,
        }
    }

    pub(super) fn out(&mut self, text: &str) {
        self.leave_question();
        (self.print)(To::Out, text);
    }

    pub(super) fn err(&mut self, text: &str) {
        self.leave_question();
        (self.print)(To::Err, text);
    }

    fn leave_question(&mut self) {
        if std::mem::take(&mut self.mid_line) {
            (self.print)(To::Err, "\n");
        }
    }

    /// Records that a question is on the screen: the next text starts a new line.
    pub(super) fn begin_beside_question(&mut self) {
        self.mid_line = true;
    }

    /// Returns whether a question is on the screen with nothing printed below it.
    pub(super) fn is_beside_question(&self) -> bool {
        self.mid_line
    }

    /// Returns whether something was printed since the question was shown, so that it must be shown again.
    pub(super) fn end_beside_question(&mut self) -> bool {
        !std::mem::take(&mut self.mid_line)
    }
}
