//! Arrays, the patterns of `case`, and functions.

use super::values::{PRINTERS, is_range, is_sequence};
use super::{Doubt, OpenCommand, Reader, element};
use crate::variables::assigned;
use crate::{UNKNOWN, Word, builtins};

impl Doubt {
    /// Notes a subscript. It is evaluated, unless the array is associative: then it is a text, which would be evaluated if the
    /// declaration did not take place.
    pub(super) fn subscript(&mut self, text: &str, is_associative: bool) {
        if matches!(text, "@" | "*") {
            return;
        }
        if !is_associative {
            self.missed |= !self.values.evaluate_word(text);
            return;
        }
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let is_text = |c: char| is_part(c) || "-./: '\"".contains(c);
        self.missed |= !text.chars().all(is_text);
        for name in text.split(|c| !is_part(c)) {
            self.values.literal(name);
        }
    }
}

impl Reader<'_> {
    /// Reads what follows `NAME=`, which was read, if it is an array.
    pub(super) fn assignment(&mut self, raw: &str, is_associative: bool) -> Option<()> {
        if let Some((name, subscript)) = element(raw) {
            let is_text = self.doubt.associative.iter().any(|it| it == name);
            self.doubt.subscript(subscript, is_text);
            let value = raw.split_once("=").map_or("", |(_, value)| value);
            self.doubt.values.assign(name, value);
        } else if self.starts("(") {
            let name = assigned(raw).unwrap_or_default();
            self.doubt.values.any_value(name);
        } else {
            self.doubt.assigned(raw);
        }
        if self.starts("(") {
            self.doubt.differs = true;
            self.doubt.has_arrays = true;
            let name = assigned(raw);
            let is_text = is_associative
                || self
                    .doubt
                    .associative
                    .iter()
                    .any(|it| Some(it.as_str()) == name);
            self.array(is_text)?;
        }
        Some(())
    }

    /// Reads `(a b c)` after `NAME=`. Its subscripts are evaluated, unless they are texts.
    pub(super) fn array(&mut self, is_associative: bool) -> Option<()> {
        self.at += 1;
        loop {
            match self.peek()? {
                b')' => {
                    self.at += 1;
                    return Some(());
                }
                b' ' | b'\t' | b'\n' => self.at += 1,
                b'#' => self.skip_comment(),
                b'<' | b'>' if self.starts("<(") || self.starts(">(") => {
                    self.process()?;
                }
                _ => {
                    let before = self.at;
                    let word = self.word()?;
                    if self.at == before {
                        return None;
                    }
                    let subscript = word.raw.strip_prefix('[');
                    if let Some((text, _)) = subscript.and_then(|it| it.split_once(']')) {
                        self.doubt.subscript(text, is_associative);
                    }
                    self.doubt.lists.push(word);
                }
            }
        }
    }

    pub(super) fn skip_comment(&mut self) {
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
    }

    /// Reads `<(…)` or `>(…)`.
    pub(super) fn process(&mut self) -> Option<Word> {
        let start = self.at;
        self.doubt.differs = true;
        self.at += 2;
        self.list(Some(b')'))?;
        let raw = self.src.get(start..self.at)?.to_owned();
        Some(Word {
            raw,
            value: UNKNOWN.to_string(),
        })
    }

    /// Reads `a|b)` of a case arm, if there is another arm.
    pub(super) fn case_pattern(&mut self) -> Option<()> {
        loop {
            let text = self.rest();
            self.at += text.len() - text.trim_start().len();
            if !self.starts("#") {
                break;
            }
            self.skip_comment();
        }
        if self.starts("esac") {
            return Some(());
        }
        if self.starts("(") {
            self.at += 1;
        }
        loop {
            match self.peek()? {
                b')' => {
                    self.at += 1;
                    return Some(());
                }
                b' ' | b'\t' | b'|' => self.at += 1,
                // A comment, or a part of the pattern.
                b'#' => return None,
                _ => {
                    let before = self.at;
                    self.word()?;
                    if self.at == before {
                        return None;
                    }
                }
            }
        }
    }

    /// Reads the `(` after words, which belongs to an array, a function or a keyword.
    pub(super) fn parenthesis(&mut self, open: &mut OpenCommand) -> Option<()> {
        let head = open.simple.words.first().map(|word| word.raw.clone());
        let head = head.unwrap_or_default();
        let count = open.simple.words.len();
        if self.starts("((") && (count == 0 || head == "for" && count == 1) {
            self.doubt.differs = true;
            self.at += 2;
            *open = OpenCommand::default();
            return self.arithmetic();
        }
        self.at += 1;
        // `((`, across lines.
        self.doubt.missed |= self.starts("\\\n");
        let is_definition = self.rest().trim_start_matches([' ', '\t']).starts_with(')');
        match count {
            // `function f () …` and `function f (…)`.
            2 if head == "function" => {
                self.close(open);
                if is_definition {
                    self.at += self.rest().find(')')? + 1;
                    return Some(());
                }
                self.list(Some(b')'))
            }
            0 => self.list(Some(b')')),
            // `name() …` defines a function: the name is not a command, and its body's commands are found as they come.
            1 if is_definition => {
                self.at += self.rest().find(')')? + 1;
                self.defines(&head);
                *open = OpenCommand::default();
                Some(())
            }
            1 if head == "time" => {
                *open = OpenCommand::default();
                self.list(Some(b')'))
            }
            // `a=(1 2)` or something unknown.
            _ => None,
        }
    }

    /// Notes the definition of a function.
    pub(super) fn defines(&mut self, name: &str) {
        self.doubt.missed |= PRINTERS.contains(&name);
    }

    /// Notes what the words of a `for`, `select` or `function` assign or define.
    pub(super) fn silent(&mut self, words: &[Word]) {
        let [head, name, list @ ..] = words else {
            return;
        };
        match head.raw.as_str() {
            "for" | "select" => {}
            "function" => return self.defines(&name.raw),
            _ => return,
        }
        let items = list.get(1..).unwrap_or_default();
        if items.is_empty() || head.raw == "select" {
            self.doubt.values.any_value(&name.raw);
        }
        for item in items {
            if is_range(&item.raw) || is_sequence(&item.raw) {
                self.doubt.values.is_number(&name.raw);
            } else {
                self.doubt.values.assign(&name.raw, &item.raw);
            }
        }
    }
}

/// Returns whether a command declares arrays whose subscripts are texts.
pub(super) fn declares_associative(words: &[Word]) -> bool {
    let is = |it: &Word| builtins::declares(&it.raw);
    let mut options = words.iter().filter(|it| it.raw.starts_with('-'));
    words.first().is_some_and(is) && options.any(|it| it.raw.contains('A'))
}
