//! Conditions: `[[ … ]]`.

use super::unfold::is_named;
use super::{OpenCommand, Reader, begin};
use crate::variables::is_name;
use crate::{Word, builtins};

impl Reader<'_> {
    /// Reads a condition after its `[[`. dash runs what follows its operators as commands: these are found, too.
    pub(super) fn condition(&mut self) -> Option<()> {
        self.doubt.differs = true;
        let mut open = 0usize;
        let mut part = OpenCommand::default();
        let mut words: Vec<Word> = Vec::new();
        loop {
            self.skip_blanks();
            if self.starts("\\\n") {
                self.at += 2;
            } else if self.starts("&&") || self.starts("||") {
                self.close(&mut part);
                part = OpenCommand::default();
                begin(&mut part, self.at + 2);
                self.at += 2;
                self.tested(&std::mem::take(&mut words));
            } else if !is_compared(words.last()) && (self.starts("(") || self.starts(")")) {
                open = if self.starts("(") {
                    open + 1
                } else {
                    open.checked_sub(1)?
                };
                self.at += 1;
                self.tested(&std::mem::take(&mut words));
            } else if self.starts("<(") || self.starts(">(") {
                return None;
            } else if self.starts("<")
                || self.starts(">")
                || self.starts("\n") && self.heredocs.is_empty()
            {
                self.at += 1;
            } else {
                let word = self.operand_of_condition(words.last())?;
                if word.raw == "]]" && open == 0 {
                    self.tested(&words);
                    self.close(&mut part);
                    return Some(());
                }
                // A name that only the shell knows is none that bash or zsh would run.
                if part.start.is_some() && (!part.simple.words.is_empty() || is_named(&word)) {
                    part.simple.words.push(word.clone());
                }
                words.push(word);
            }
        }
    }

    fn operand_of_condition(&mut self, operator: Option<&Word>) -> Option<Word> {
        let from = self.at;
        let mut word = self.word()?;
        while is_compared(operator) && (self.starts("(") || self.starts("|") && !self.starts("||"))
        {
            self.group()?;
            self.word()?;
            self.src.get(from..self.at)?.clone_into(&mut word.raw);
            word.value.push(crate::UNKNOWN);
        }
        // What a comment hides is not known.
        (!word.raw.is_empty() && !word.raw.starts_with('#')).then_some(word)
    }

    /// Reads `(a|b)` of a pattern, or a `|`.
    fn group(&mut self) -> Option<()> {
        let mut open = 0usize;
        loop {
            match self.peek()? {
                b'|' => self.at += 1,
                b'(' => {
                    open += 1;
                    self.at += 1;
                }
                b')' => {
                    open = open.checked_sub(1)?;
                    self.at += 1;
                }
                b' ' if open > 0 && !self.starts(" #") => self.at += 1,
                _ => {
                    let word = self.word()?;
                    (!word.raw.is_empty() && word.raw != "]]").then_some(())?;
                }
            }
            if open == 0 {
                return Some(());
            }
        }
    }

    /// Notes what a test evaluates.
    fn tested(&mut self, words: &[Word]) {
        for (at, word) in words.iter().enumerate() {
            let next = words.get(at + 1);
            let before = at.checked_sub(1).and_then(|at| words.get(at));
            let raw = word.raw.as_str();
            let is_evaluated = |it: Option<&Word>, doubt: &mut super::Doubt| {
                it.is_none_or(|it| doubt.values.evaluate_word(&it.raw))
            };
            if builtins::compares_numbers(raw) {
                self.doubt.missed |= !is_evaluated(before, &mut self.doubt);
                self.doubt.missed |= !is_evaluated(next, &mut self.doubt);
            } else if matches!(raw, "-v" | "-R") {
                self.doubt.missed |= next.is_some_and(|it| !is_name(&it.raw));
            } else if raw == "-t" {
                self.doubt.missed |= !is_evaluated(next, &mut self.doubt);
            }
        }
    }
}

/// Returns whether a pattern follows a word.
fn is_compared(word: Option<&Word>) -> bool {
    word.is_some_and(|it| matches!(it.raw.as_str(), "=~" | "==" | "=" | "!="))
}
