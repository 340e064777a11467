//! Words: variables and substitutions.

use super::{Doubt, NESTED, Reader, ansi};
use crate::lexer::{Lexer, Part, ends};
use crate::{UNKNOWN, Word};

impl Reader<'_> {
    pub(super) fn word(&mut self) -> Option<Word> {
        let start = self.at;
        let mut value = String::new();
        // The start of what only the shell knows, up to the end of the word.
        let mut unknown = None;
        let mut lexer = Lexer::new(self.rest());
        loop {
            let part = lexer.next();
            self.at = self.src.len() - lexer.rest().len();
            match part.ok()? {
                None => break,
                Some(Part::Quoted(text)) => value.push_str(text),
                Some(Part::Plain(c)) => {
                    let is_first = self.at == start + c.len_utf8();
                    if is_open(c, &value, lexer.rest(), is_first) {
                        unknown.get_or_insert(value.len());
                    }
                    value.push(if matches!(c, '*' | '?') { UNKNOWN } else { c });
                }
                // It may hide a keyword or an assignment.
                Some(Part::Continuation) if !lexer.is_quoted() => {
                    let is_last = lexer.rest().chars().next().is_none_or(ends);
                    self.doubt.missed |= !is_last;
                }
                Some(Part::Continuation) => {}
                Some(Part::Expansion) => {
                    let from = self.at;
                    if !self.starts("$'") {
                        self.dollar(lexer.is_quoted())?;
                        let before = self.src.get(start..from)?;
                        self.expand(&mut value, from, before, lexer.is_quoted())?;
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
        let raw = self.src.get(start..self.at)?;
        let raw = raw.trim_end_matches("\\\n").to_owned();
        if matches!(raw.as_str(), "[" | "[[") {
            unknown = None;
            value = raw.clone();
        }
        // bash opens a file and sets a variable: `{fd}>file`.
        if raw.starts_with('{') && raw.len() > 2 && self.rest().starts_with(['<', '>']) {
            unknown = Some(0);
        }
        if let Some(from) = unknown {
            value.truncate(from);
            value.push(UNKNOWN);
        }
        Some(Word { raw, value })
    }

    // Adds the expansion that was read from `from` on. `$HOME` at the start is `~`; any other variable is unknown.
    fn expand(&self, value: &mut String, from: usize, before: &str, is_quoted: bool) -> Option<()> {
        let rest = self.rest();
        let closed = rest.strip_prefix('"').filter(|_| before == "\"");
        let is_first = before.is_empty() || before == "\"";
        match self.src.get(from..self.at)? {
            "$HOME" | "${HOME}" if is_first && is_home(closed.unwrap_or(rest)) => value.push('~'),
            // `$"…"` is translated.
            "$" if is_quoted || !rest.starts_with(['"', '\'']) => value.push('$'),
            "$" => {}
            _ => value.push(UNKNOWN),
        }
        Some(())
    }

    // Reads `$'…'`.
    fn ansi_quoted(&mut self, value: &mut String) -> Option<()> {
        self.doubt.differs = true;
        let inner = self.src.get(self.at + 2..)?;
        let length = ansi::decode(inner, value)?;
        self.at += length + 2;
        Some(())
    }

    // Reads `$name`, `${…}`, `$(…)`, `$((…))`, `$'…'` or a back-quoted command.
    pub(super) fn dollar(&mut self, is_quoted: bool) -> Option<()> {
        if self.starts("`") {
            return self.back_quoted(is_quoted);
        }
        if self.starts("$((") {
            self.at += 3;
            return self.arithmetic();
        }
        if self.starts("$(") {
            self.at += 2;
            return self.list(Some(b')'));
        }
        if self.starts("${") {
            return self.braced(is_quoted);
        }
        if self.starts("$'") {
            // Within quotes or a here-document it means itself.
            self.doubt.missed = true;
            return self.ansi_quoted(&mut String::new());
        }
        self.doubt.differs |= !is_quoted && self.starts("$\"");
        // Arithmetic in another form.
        self.doubt.missed |= self.starts("$[");
        self.at += 1;
        let name = self
            .rest()
            .bytes()
            .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_');
        let is_special = |c: char| "@*#?$!-".contains(c) || c.is_ascii_digit();
        let length = if self.rest().starts_with(is_special) {
            1
        } else {
            name.count()
        };
        self.at += length;
        // zsh reads a subscript here, and a name goes on after a line continuation.
        self.doubt.missed |= length > 0 && (self.starts("[") || self.starts("\\\n"));
        Some(())
    }

    fn back_quoted(&mut self, is_quoted: bool) -> Option<()> {
        let inner = self.src.get(self.at + 1..)?;
        let mut end = None;
        let mut text = String::new();
        let mut chars = inner.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '`' => {
                    end = Some(at);
                    break;
                }
                '\\' => match chars.next()?.1 {
                    c @ ('`' | '$' | '\\') => text.push(c),
                    // Shells disagree about it.
                    c => {
                        self.doubt.missed |= c == '"' && is_quoted;
                        text.extend(['\\', c]);
                    }
                },
                c => text.push(c),
            }
        }
        let place = self.at + 1;
        self.at += end? + 2;
        self.nested(place, &text, |reader| reader.list(None))
    }

    // Reads `${…}`. Whether quotes within quotes hide its end depends on the operator, and on the shell.
    fn braced(&mut self, is_quoted: bool) -> Option<()> {
        let from = self.at;
        self.at += 2;
        self.depth += 1;
        if self.depth > NESTED {
            return None;
        }
        loop {
            match self.peek()? {
                b'}' => break,
                b'\'' | b'"' if is_quoted => {
                    self.doubt.missed = true;
                    self.at += 1;
                }
                b'\'' => {
                    let text = self.rest().get(1..)?;
                    self.at += text.find('\'')? + 2;
                }
                b'"' => {
                    self.at += 1;
                    while !self.starts("\"") {
                        self.scan_one()?;
                    }
                    self.at += 1;
                }
                _ => self.scan_one()?,
            }
        }
        self.at += 1;
        self.depth -= 1;
        let inner = self.src.get(from + 2..self.at - 1)?;
        self.doubt.parameter(inner);
        Some(())
    }

    pub(super) fn scan_all(&mut self) -> Option<()> {
        while self.peek().is_some() {
            self.scan_one()?;
        }
        Some(())
    }
    pub(super) fn scan_one(&mut self) -> Option<()> {
        match self.peek()? {
            b'$' | b'`' => self.dollar(true),
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

impl Doubt {
    // Notes what the expansion of a parameter evaluates and assigns.
    fn parameter(&mut self, inner: &str) {
        let counted = inner.strip_prefix('#').filter(|it| !it.is_empty());
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let text = counted.or_else(|| inner.strip_prefix('!')).unwrap_or(inner);
        let is_special = |c: char| "@*#?-$!".contains(c) || c.is_ascii_digit();
        let length = match text.find(|c| !is_part(c)) {
            Some(0) if text.starts_with(is_special) => 1,
            Some(0) => return self.missed = true,
            found => found.unwrap_or(text.len()),
        };
        let (name, mut rest) = text.split_at_checked(length).unwrap_or((text, ""));
        // `${!x}` evaluates its value as a name; `${!x[@]}` and `${!x*}` list names.
        self.missed |= inner.starts_with('!') && !matches!(rest, "[@]" | "[*]" | "*" | "@");
        if inner.starts_with('!') {
            return;
        }
        if let Some((subscript, after)) = rest.strip_prefix('[').and_then(|it| it.split_once(']')) {
            let is_text = self.associative.iter().any(|it| it == name);
            self.subscript(subscript, is_text);
            rest = after;
        }
        let operator = rest.strip_prefix(':').unwrap_or(rest);
        if operator.starts_with('=') {
            self.values.any_value(name);
        } else if rest.starts_with(':') && !operator.starts_with(['-', '+', '?']) {
            for part in operator.split(':') {
                self.missed |= !self.values.evaluate_word(part.trim());
            }
        } else if rest.starts_with('@') {
            self.missed |= !matches!(
                rest,
                "@Q" | "@E" | "@U" | "@u" | "@L" | "@A" | "@a" | "@K" | "@k"
            );
        } else {
            self.missed |= rest.starts_with(['[', '(']);
        }
    }
}

// Returns whether an unquoted character, which was read, makes the rest of its word one that only the shell knows: a range of
// characters, `{a,b}`, another home folder than the user's, and one within a word (`a=~`, `a=b:~/c`).
fn is_open(c: char, before: &str, after: &str, is_first: bool) -> bool {
    match c {
        '[' => true,
        '{' => !is_text(after),
        '~' if is_first => !is_home(after),
        '~' => before.ends_with(['=', ':']),
        _ => false,
    }
}

// Returns whether a brace, which was read, is not the start of a brace expansion.
fn is_text(after: &str) -> bool {
    let end = after.find([' ', '\t', '\n', '}']).unwrap_or(after.len());
    let inner = after.get(..end).unwrap_or_default();
    !inner.contains([',', '\'', '"', '\\', '$', '`']) && !inner.contains("..")
}

// Returns whether a tilde, which was read, is the user's home folder.
fn is_home(after: &str) -> bool {
    after.chars().next().is_none_or(|c| c == '/' || ends(c))
}
