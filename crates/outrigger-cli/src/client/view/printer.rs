//! Where the texts of a view go: standard output or standard error, each on a line of its own below a question.

use crate::terminal::{err, out};

/// Where a text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    Out,
    Err,
}

type Print = Box<dyn FnMut(To, &str) + Send>;

/// Prints what a view says.
pub(super) struct Printer {
    print: Print,
    /// The cursor stands after a question.
    mid_line: bool,
}

impl Printer {
    /// Prints to the streams of this process.
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

    /// A question is on the screen: the next text begins a line.
    pub(super) fn begin_beside_question(&mut self) {
        self.mid_line = true;
    }

    /// Whether a question is on the screen, below which nothing was printed.
    pub(super) fn is_beside_question(&self) -> bool {
        self.mid_line
    }

    /// True when something was printed since the question was shown, so that it must be shown again.
    pub(super) fn end_beside_question(&mut self) -> bool {
        !std::mem::take(&mut self.mid_line)
    }
}
