//! Questions to the user, one line each. If standard input is not a terminal, its lines are the answers, so that a
//! script can log in.

use std::io::{BufRead as _, IsTerminal as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::failure::Failure;
use crate::terminal::{Paint, err, hold};

/// Maximum number of invalid answers to a question; a script would answer forever.
pub(crate) const TRIES: usize = 5;

/// Disables echo until it is dropped.
struct Silent(Termios);

impl Silent {
    fn begin() -> Option<Self> {
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin).ok()?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        quiet.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(&stdin, OptionalActions::Flush, &quiet).ok()?;
        Some(Self(before))
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// Returns whether a user answers.
pub(crate) fn is_terminal() -> bool {
    std::io::stdin().is_terminal()
}

fn line(prompt: &str) -> Result<String, Failure> {
    hold(true);
    err(prompt);
    let mut text = String::new();
    let read = std::io::stdin().lock().read_line(&mut text).unwrap_or(0);
    hold(false);
    if read == 0 {
        err("\n");
        return Err(Failure::usage(
            "standard input ended before the question was answered",
            None,
        ));
    }
    if !std::io::stdin().is_terminal() {
        err("\n");
    }
    Ok(text.trim().to_owned())
}

/// Asks a question; `check` returns what is wrong with an answer.
pub(crate) fn text(
    question: &str,
    mut check: impl FnMut(&str) -> Option<String>,
) -> Result<String, Failure> {
    for _ in 0..TRIES {
        let answer = line(&format!("{question} "))?;
        match check(&answer) {
            None => return Ok(answer),
            Some(problem) => err(&Paint::for_stderr().bad(&format!("{problem}\n"))),
        }
    }
    Err(Failure::usage("no answer was acceptable", None))
}

/// Asks a question without echoing the answer.
pub(crate) fn secret(question: &str) -> Result<String, Failure> {
    let _silent = Silent::begin();
    text(question, |answer| {
        answer.is_empty().then(|| "nothing was typed".to_owned())
    })
}

/// Asks to choose by number or name; returns the index.
pub(crate) fn choose(question: &str, choices: &[String]) -> Result<usize, Failure> {
    for (at, choice) in choices.iter().enumerate() {
        err(&format!("  {:>2}  {choice}\n", at + 1));
    }
    let find = |answer: &str| {
        answer
            .parse::<usize>()
            .ok()
            .and_then(|n| n.checked_sub(1).filter(|at| *at < choices.len()))
            .or_else(|| choices.iter().position(|c| c.eq_ignore_ascii_case(answer)))
    };
    let answer = text(question, |answer| {
        find(answer)
            .is_none()
            .then(|| format!("type a number from 1 to {}", choices.len()))
    })?;
    Ok(find(&answer).unwrap_or_default())
}
