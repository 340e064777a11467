//! Words: variables and substitutions.

use super::{NESTED, Reader, ansi};
use crate::lexer::{Lexer, Part};
use crate::{UNKNOWN, Word};

impl Reader<'_> {
    pub(super) fn word(&mut self) -> Option<Word> {
        let start = self.at;
        let mut value = String::new();
        let mut lexer = Lexer::new(self.rest());
        loop {
            let part = lexer.next();
            self.at = self.src.len() - lexer.rest().len();
            match part.ok()? {
                None => break,
                Some(Part::Quoted(text)) => value.push_str(text),
                Some(Part::Plain('*' | '?' | '[')) => value.push(UNKNOWN),
                Some(Part::Plain(c)) => value.push(c),
                Some(Part::Continuation) => {}
                Some(Part::Expansion) => {
                    let from = self.at;
                    if !self.starts("$'") {
                        self.dollar()?;
                        expand(&mut value, self.src.get(from..self.at)?);
                    } else if lexer.is_quoted() {
                        // This quote means itself.
                        value.push('$');
                        self.at += 1;
                    } else {
                        self.ansi_quoted(&mut value)?;
                    }
                    lexer.skip(self.at - from);
                }
            }
        }
        let raw = self.src.get(start..self.at)?.to_owned();
        if raw == "[" {
            value = raw.clone();
        }
        Some(Word { raw, value })
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
