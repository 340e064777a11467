//! The values of a line's variables, as far as arithmetic is concerned: a shell evaluates the value of a name again, so that
//! `x='a[$(id)]'; ((x))` runs `id`. Only names whose every assignment in the line is a number may be evaluated.

use crate::folders::Walk;
use crate::lexer::{Lexer, Part};
use crate::variables::{assigned, is_name};
use crate::{Word, strict};

/// Variables that shells set to numbers.
const NUMBERS: &[&str] = &[
    "RANDOM",
    "SECONDS",
    "EPOCHSECONDS",
    "LINENO",
    "UID",
    "EUID",
    "PPID",
    "BASHPID",
    "SHLVL",
    "OPTIND",
];

/// Programs that print a number, of which a line must not define a function.
pub(super) const PRINTERS: &[&str] = &["date", "nproc", "wc", "grep", "seq"];

/// What is known of the variables, in all shells that the line starts.
#[derive(Debug, Default)]
pub(super) struct Values {
    /// Assigned a number.
    numbers: Vec<String>,
    /// Assigned another variable's value.
    copies: Vec<(String, String)>,
    /// Assigned a word that is one argument and no option.
    words: Vec<String>,
    /// Assigned something else.
    others: Vec<String>,
    /// Evaluated by arithmetic.
    evaluated: Vec<String>,
    /// An unquoted argument of a test.
    split: Vec<String>,
    /// A text, unless the line assigns it.
    literals: Vec<String>,
    /// Any name may have been assigned.
    any: bool,
}

impl Values {
    pub(super) fn merge(&mut self, other: Self) {
        self.numbers.extend(other.numbers);
        self.copies.extend(other.copies);
        self.words.extend(other.words);
        self.others.extend(other.others);
        self.evaluated.extend(other.evaluated);
        self.split.extend(other.split);
        self.literals.extend(other.literals);
        self.any |= other.any;
    }

    /// Returns whether nothing is evaluated that may be more than a number.
    pub(super) fn are_safe(&self) -> bool {
        let is_in = |list: &[String], name: &str| list.iter().any(|it| it == name);
        let mut pending: Vec<&str> = self.evaluated.iter().map(String::as_str).collect();
        let mut done: Vec<&str> = Vec::new();
        while let Some(name) = pending.pop() {
            if done.contains(&name) {
                continue;
            }
            done.push(name);
            let copied = || self.copies.iter().filter(|(to, _)| to == name);
            let is_number =
                is_in(&self.numbers, name) || NUMBERS.contains(&name) || copied().next().is_some();
            if self.any || !is_number || is_in(&self.words, name) || is_in(&self.others, name) {
                return false;
            }
            pending.extend(copied().map(|(_, from)| from.as_str()));
        }
        let is_one = |name: &String| {
            (is_in(&self.numbers, name) || is_in(&self.words, name))
                && !is_in(&self.others, name)
                && !self.copies.iter().any(|(to, _)| to == name)
        };
        let is_assigned = |name: &String| {
            is_in(&self.words, name)
                || is_in(&self.others, name)
                || self.copies.iter().any(|(to, _)| to == name)
        };
        !self.literals.iter().any(is_assigned)
            && (self.split.is_empty() || !self.any && self.split.iter().all(is_one))
            && (self.literals.is_empty() || !self.any)
    }

    /// Records that a name may have any value.
    pub(super) fn any_value(&mut self, name: &str) {
        self.others.push(name.to_owned());
    }

    /// Records that any name may have any value.
    pub(super) fn any_name(&mut self) {
        self.any = true;
    }

    pub(super) fn is_number(&mut self, name: &str) {
        self.numbers.push(name.to_owned());
    }

    pub(super) fn evaluate(&mut self, name: &str) {
        self.evaluated.push(name.to_owned());
    }

    pub(super) fn literal(&mut self, name: &str) {
        self.literals.push(name.to_owned());
    }

    pub(super) fn split(&mut self, name: &str) {
        self.split.push(name.to_owned());
    }

    /// Records an assignment of a word, as written.
    pub(super) fn assign(&mut self, name: &str, raw: &str) {
        match number(raw) {
            Some(from) => {
                if from.is_empty() {
                    self.numbers.push(name.to_owned());
                }
                let copies = from.into_iter().map(|from| (name.to_owned(), from));
                self.copies.extend(copies);
            }
            None if is_one_word(raw) => self.words.push(name.to_owned()),
            None => self.any_value(name),
        }
        if NUMBERS.contains(&name) {
            self.evaluated.push(name.to_owned());
        }
    }

    /// Records an assignment `NAME=value` or `NAME+=value`; returns false for anything else.
    pub(super) fn assign_word(&mut self, raw: &str) -> bool {
        let Some((name, (before, value))) = assigned(raw).zip(raw.split_once('=')) else {
            return false;
        };
        // It keeps what is there: a number, if the line assigns one.
        if !before.ends_with('+') || number(value).is_none_or(|it| !it.is_empty()) {
            self.assign(name, value);
        }
        true
    }

    /// Records that a word is evaluated; returns false if it may be more than numbers and names.
    #[must_use]
    pub(super) fn evaluate_word(&mut self, raw: &str) -> bool {
        let names = number(raw).or_else(|| expression(raw));
        let is_known = names.is_some();
        self.evaluated.extend(names.unwrap_or_default());
        is_known
    }
}

/// Returns the variables whose values, with digits around them, are a word's value; `None` if it may be something else than a
/// number.
pub(super) fn number(raw: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut lexer = Lexer::new(raw);
    while let Some(part) = lexer.next().ok()? {
        let is_digit = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | '%');
        match part {
            Part::Quoted(text) if text.chars().all(is_digit) => {}
            Part::Plain(c) if is_digit(c) => {}
            Part::Quoted(_) | Part::Plain(_) | Part::Continuation => return None,
            Part::Expansion => {
                let (name, length) = expansion(lexer.rest())?;
                names.extend(name);
                lexer.skip(length);
            }
        }
    }
    lexer.rest().is_empty().then_some(names)
}

/// Reads an expansion that is a number if the variable that it returns is one. Returns its length, too.
fn expansion(text: &str) -> Option<(Option<String>, usize)> {
    let after = text.strip_prefix('$')?;
    if after.starts_with(['#', '?', '$', '!']) {
        return Some((None, 2));
    }
    if let Some(inner) = after.strip_prefix('{') {
        let (inner, _) = inner.split_once('}')?;
        let length = "${}".len() + inner.len();
        if let Some(counted) = inner.strip_prefix('#') {
            let name = counted.split('[').next().unwrap_or_default();
            let whole = ["", "[@]", "[*]"].contains(&counted.get(name.len()..)?);
            return (is_name(name) && whole).then_some((None, length));
        }
        let (name, default) = inner.split_once(":-").unwrap_or((inner, ""));
        let is_digits = default.bytes().all(|b| b.is_ascii_digit());
        return (is_name(name) && is_digits).then(|| (Some(name.to_owned()), length));
    }
    if after.starts_with("((") {
        // What is in it was checked when it was read.
        return Some((None, closed(text)?));
    }
    if after.starts_with('(') {
        let length = closed(text)?;
        let inner = text.get(2..length - 1)?;
        return prints_number(inner).then_some((None, length));
    }
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let length = after.bytes().take_while(is_part).count();
    let name = after.get(..length)?;
    is_name(name).then(|| (Some(name.to_owned()), 1 + length))
}

/// Returns the length of a text up to the parenthesis that closes its first one. Quotes and here-documents are not known here: what
/// may hide a parenthesis is `None`.
fn closed(text: &str) -> Option<usize> {
    let mut open = 0usize;
    for (at, b) in text.bytes().enumerate() {
        match b {
            b'(' => open += 1,
            b')' if open == 1 => return Some(at + 1),
            b')' => open = open.checked_sub(1)?,
            b'\'' | b'"' | b'\\' | b'`' if open > 0 => return None,
            _ => {}
        }
    }
    None
}

/// Returns whether all that a substitution prints is one number.
fn prints_number(line: &str) -> bool {
    if line.contains([';', '&', '\n', '{']) || line.contains("||") {
        return false;
    }
    let commands = strict::read(line, 0, Walk::begin());
    let Some(words) = commands
        .ok()
        .and_then(|mut list| list.pop())
        .map(|it| it.words)
    else {
        return false;
    };
    let values: Option<Vec<&str>> = words.iter().map(Word::known).collect();
    let values = values.unwrap_or_default();
    let letters = |it: &&&str, of: &str| {
        let option = it.strip_prefix('-').unwrap_or("-");
        !option.is_empty() && option.chars().all(|c| of.contains(c))
    };
    match values.split_first() {
        Some((&"nproc", [])) => true,
        Some((&"wc", rest)) => !rest.is_empty() && rest.iter().all(|it| letters(&it, "lcwm")),
        Some((&"date", rest)) => rest.iter().all(|it| {
            let format = it.strip_prefix('+').unwrap_or("-");
            let is_format = |c: char| "%sNYmdHMSjy".contains(c);
            *it == "-u" || !format.is_empty() && format.chars().all(is_format)
        }),
        // Of one file, or of its input.
        Some((&"grep", rest)) => {
            let options = rest.iter().filter(|it| letters(it, "ciEFwvxs"));
            let counts = options.clone().any(|it| it.contains('c'));
            counts
                && rest.len() - options.count() <= 2
                && !rest.iter().any(|it| it.starts_with("--"))
                && rest
                    .iter()
                    .filter(|it| it.starts_with('-'))
                    .all(|it| letters(&it, "ciEFwvxs"))
        }
        _ => false,
    }
}

/// Returns the names in an expression of numbers, names, operators and parentheses.
pub(super) fn expression(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        let length = rest.bytes().take_while(is_part).count();
        let (word, after) = rest.split_at_checked(length)?;
        if c.is_ascii_digit() {
            rest = after;
        } else if is_name(word) {
            names.push(word.to_owned());
            rest = after;
        } else if c == '$' {
            let (name, length) = expansion(rest).filter(|_| !rest.starts_with("$("))?;
            names.extend(name);
            rest = rest.get(length..)?;
        } else if " +-*/%()<>=!&|?:,".contains(c) {
            rest = rest.get(1..)?;
        } else {
            return None;
        }
    }
    Some(names)
}

/// Returns whether a literal is one argument, whatever is expected, and no option.
fn is_one_word(raw: &str) -> bool {
    let text = crate::unquoted(raw);
    let is_plain = |c: char| c.is_alphanumeric() || "_./:,@%+=-".contains(c);
    text.is_some_and(|it| !it.is_empty() && !it.starts_with('-') && it.chars().all(is_plain))
}

/// Returns whether a word of a loop's list is a number, or a range of numbers.
pub(super) fn is_range(raw: &str) -> bool {
    let inner = raw.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
    inner.is_some_and(|it| {
        it.bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b','))
    })
}

/// Returns whether a word of a loop's list is a substitution that prints numbers only.
pub(super) fn is_sequence(raw: &str) -> bool {
    let inner = raw
        .strip_prefix("$(seq ")
        .and_then(|it| it.strip_suffix(')'));
    inner.is_some_and(|it| {
        it.bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b' ' | b'-'))
    })
}
