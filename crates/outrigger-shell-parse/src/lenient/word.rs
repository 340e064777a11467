//! Words: quotes, variables and substitutions.

use super::{NESTED, Reader, ansi};
use crate::{UNKNOWN, Word};

impl Reader<'_> {
    pub(super) fn word(&mut self) -> Option<Word> {
        let start = self.at;
        let mut value = String::new();
        while let Some(c) = self.peek() {
            match c {
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'|' | b'&' | b'<' | b'>' | b'(' | b')' => {
                    break;
                }
                b'\'' => {
                    let inner = self.src.get(self.at + 1..)?;
                    let end = inner.find('\'')?;
                    value.push_str(inner.get(..end)?);
                    self.at += end + 2;
                }
                b'"' => self.double_quoted(&mut value)?,
                b'\\' => {
                    let next = self.rest().chars().nth(1)?;
                    if next != '\n' {
                        value.push(next);
                    }
                    self.at += 1 + next.len_utf8();
                }
                b'$' if self.starts("$'") => self.ansi_quoted(&mut value)?,
                b'$' | b'`' => {
                    let from = self.at;
                    self.dollar()?;
                    let raw = self.src.get(from..self.at)?;
                    expand(&mut value, raw);
                }
                b'*' | b'?' | b'[' => {
                    value.push(UNKNOWN);
                    self.at += 1;
                }
                _ => {
                    let c = self.rest().chars().next()?;
                    value.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
        let raw = self.src.get(start..self.at)?.to_owned();
        if raw == "[" {
            value = raw.clone();
        }
        Some(Word { raw, value })
    }

    fn double_quoted(&mut self, value: &mut String) -> Option<()> {
        self.at += 1;
        loop {
            let c = self.rest().chars().next()?;
            match c {
                '"' => {
                    self.at += 1;
                    return Some(());
                }
                '\\' => {
                    let next = self.rest().chars().nth(1)?;
                    if !matches!(next, '$' | '`' | '"' | '\\' | '\n') {
                        value.push('\\');
                    }
                    value.push(next);
                    self.at += 1 + next.len_utf8();
                }
                // A quote means nothing here.
                '$' if self.starts("$'") => {
                    value.push(c);
                    self.at += 1;
                }
                '$' | '`' => {
                    let from = self.at;
                    self.dollar()?;
                    let raw = self.src.get(from..self.at)?;
                    expand(value, raw);
                }
                other => {
                    value.push(other);
                    self.at += other.len_utf8();
                }
            }
        }
    }

    // Reads `$'…'`.
    fn ansi_quoted(&mut self, value: &mut String) -> Option<()> {
        let inner = self.src.get(self.at + 2..)?;
        let length = ansi::decode(inner, value)?;
        self.at += length + 2;
        Some(())
    }

    // Reads `$name`, `${…}`, `$(…)`, `$((…))`, `$'…'` or a back-quoted command.
    fn dollar(&mut self) -> Option<()> {
        if self.starts("`") {
            let inner = self.src.get(self.at + 1..)?;
            let mut end = None;
            let mut escaped = false;
            for (i, b) in inner.bytes().enumerate() {
                match b {
                    b'`' if !escaped => {
                        end = Some(i);
                        break;
                    }
                    b'\\' => escaped = !escaped,
                    _ => escaped = false,
                }
            }
            let end = end?;
            let text = inner.get(..end)?.replace("\\`", "`");
            let place = self.at + 1;
            self.at += end + 2;
            return self.nested(place, &text, |reader| reader.list(None));
        }
        if self.starts("$((") {
            self.at += 3;
            return self.scan("))");
        }
        if self.starts("$(") {
            self.at += 2;
            return self.list(Some(b')'));
        }
        if self.starts("${") {
            self.at += 2;
            return self.scan("}");
        }
        if self.starts("$'") {
            return self.ansi_quoted(&mut String::new());
        }
        self.at += 1;
        let name = self
            .rest()
            .bytes()
            .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_');
        self.at += name.count();
        Some(())
    }

    // Reads text up to `end` in which only substitutions matter.
    pub(super) fn scan(&mut self, end: &str) -> Option<()> {
        self.depth += 1;
        if self.depth > NESTED {
            return None;
        }
        loop {
            if self.starts(end) {
                self.at += end.len();
                self.depth -= 1;
                return Some(());
            }
            self.scan_one()?;
        }
    }
    pub(super) fn scan_all(&mut self) -> Option<()> {
        while self.peek().is_some() {
            self.scan_one()?;
        }
        Some(())
    }
    fn scan_one(&mut self) -> Option<()> {
        match self.peek()? {
            b'$' | b'`' => self.dollar(),
            b'\\' => {
                self.at += 1;
                self.at += self.rest().chars().next().map_or(0, char::len_utf8);
                Some(())
            }
            _ => {
                self.at += self.rest().chars().next()?.len_utf8();
                Some(())
            }
        }
    }
}

// Replaces `$HOME` with `~`; any other variable is unknown.
fn expand(value: &mut String, raw: &str) {
    if matches!(raw, "$HOME" | "${HOME}") && value.is_empty() {
        value.push('~');
    } else if raw != "$" {
        value.push(UNKNOWN);
    }
}
