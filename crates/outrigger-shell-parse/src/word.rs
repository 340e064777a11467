//! One word of the strict reader: `$name`, wildcards, and what may not be in it.

use crate::lexer::{Lexer, Part, ends};
use crate::{Doubt, UNKNOWN, Word};

/// Reads the word at the start of `text`, which has no control characters but newline and TAB. Returns the word and its length
/// in bytes.
pub(crate) fn read(text: &str) -> Result<(Word, usize), Doubt> {
    let mut reader = Reader {
        text,
        lexer: Lexer::new(text),
        value: String::new(),
        open: None,
        home: false,
    };
    reader.word()?;
    reader.end();
    let length = reader.at();
    let raw = text.get(..length).unwrap_or_default().to_owned();
    let value = reader.value;
    if raw.starts_with('=') {
        // zsh replaces it with the path of a program.
        return Err(Doubt::Word(raw));
    }
    Ok((Word { raw, value }, length))
}

struct Reader<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    value: String,
    /// The start of a part in the value whose length only the shell knows.
    open: Option<usize>,
    /// It starts with `$HOME`.
    home: bool,
}

impl<'a> Reader<'a> {
    fn at(&self) -> usize {
        self.text.len() - self.rest().len()
    }

    fn rest(&self) -> &'a str {
        self.lexer.rest()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn after(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    fn word(&mut self) -> Result<(), Doubt> {
        self.tilde();
        // The words `[`, `!` and `!=` of a test.
        for text in ["[", "!", "!="] {
            let after = self.rest().strip_prefix(text);
            if after.is_some_and(|it| it.chars().next().is_none_or(ends)) {
                self.lexer.skip(text.len());
                self.value.push_str(text);
            }
        }
        while let Some(part) = self.lexer.next().map_err(|_| Doubt::Unfinished)? {
            match part {
                Part::Quoted(text) => self.value.push_str(text),
                Part::Continuation if self.lexer.is_quoted() => {}
                Part::Continuation => return Err(Doubt::Continuation),
                Part::Expansion if self.peek() == Some('`') => return Err(Doubt::Substitution),
                Part::Expansion => self.dollar()?,
                Part::Plain(c) => self.plain(c)?,
            }
        }
        Ok(())
    }

    /// Handles a character outside quotes, which was read.
    fn plain(&mut self, c: char) -> Result<(), Doubt> {
        let from = self.at() - c.len_utf8();
        match c {
            '!' => return Err(Doubt::Exclamation),
            '{' | '}' => self.braces(from)?,
            '*' | '?' => self.value.push(UNKNOWN),
            // After a variable or an empty text, zsh inserts the path of a program or a home folder.
            '=' | '~' if from > 0 && self.value.chars().all(|c| c == UNKNOWN) => {
                let raw = self.text.get(..=from).unwrap_or_default();
                return Err(Doubt::Word(raw.to_owned()));
            }
            '[' => {
                self.open.get_or_insert(self.value.len());
            }
            c => self.value.push(c),
        }
        Ok(())
    }

    /// Reads a tilde: `~` and `~/…` are the home folder; `~user`, `~+` and `~-` are others.
    fn tilde(&mut self) {
        if !self.rest().starts_with('~') {
            return;
        }
        let more = self.after().filter(|c| !ends(*c));
        self.lexer.skip(1);
        match more {
            None | Some('/') => self.value.push('~'),
            Some(_) => self.open = Some(0),
        }
    }

    fn end(&mut self) {
        if self.home && !matches!(self.value.as_bytes().get(1), None | Some(b'/')) {
            self.value.replace_range(..1, &UNKNOWN.to_string());
        }
        if let Some(from) = self.open {
            self.value.truncate(from);
            self.value.push(UNKNOWN);
        }
    }

    /// Reads `$name`, `${name}` or a parameter of one character. A `$` followed by none of these is literal.
    fn dollar(&mut self) -> Result<(), Doubt> {
        let from = self.at();
        self.lexer.skip(1);
        match self.peek() {
            None | Some(' ' | '\t' | '\n') => {
                self.value.push('$');
                return Ok(());
            }
            Some('"' | '|' | ')' | '/' | '.' | ',' | ';' | '%' | '&') if self.lexer.is_quoted() => {
                self.value.push('$');
                return Ok(());
            }
            Some('(') => {
                let arithmetic = self.after() == Some('(');
                return Err(if arithmetic {
                    Doubt::Expansion
                } else {
                    Doubt::Substitution
                });
            }
            Some('{') => {
                self.lexer.skip(1);
                let name = self.name();
                if name == 0 || self.peek() != Some('}') {
                    return Err(Doubt::Expansion);
                }
                self.lexer.skip(1);
            }
            Some(_) if self.name() > 0 => {}
            _ => return Err(Doubt::Expansion),
        }
        // zsh reads a subscript here, letters of any language as part of the name, all digits of a number, and after `$#` the
        // name of what it counts.
        let taken = self.text.get(from..self.at()).unwrap_or_default();
        let counts = taken == "$#";
        let numbered = taken.ends_with(|c: char| c.is_ascii_digit()) && taken.len() == 2;
        let goes_on = |c: char| {
            c == '['
                || !c.is_ascii()
                || counts && c != '"' && !ends(c)
                || numbered && c.is_ascii_digit()
        };
        if self.peek().is_some_and(goes_on) {
            return Err(Doubt::Expansion);
        }
        // dash continues the name after a line continuation, bash does not.
        if self.rest().starts_with("\\\n") {
            return Err(Doubt::Continuation);
        }
        let begins = from == 0 || from == 1 && self.text.starts_with('"');
        let name = self.text.get(from..self.at()).unwrap_or_default();
        // A line that sets it is not supported.
        if matches!(name, "$HOME" | "${HOME}") && begins {
            self.home = true;
            self.value.push('~');
        } else {
            self.value.push(UNKNOWN);
        }
        Ok(())
    }

    /// Reads the name of a variable or of a shell parameter; returns its length.
    fn name(&mut self) -> usize {
        let rest = self.rest();
        let first = rest.chars().next();
        let length = match first {
            Some('?' | '$' | '#' | '@' | '*' | '0'..='9') => 1,
            Some(c) if c.is_ascii_alphabetic() || c == '_' => rest
                .bytes()
                .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_')
                .count(),
            _ => 0,
        };
        self.lexer.skip(length);
        length
    }

    /// Reads `{}`, `{0}` and `{name}`, which are plain text, from the brace at `from`, which was read.
    fn braces(&mut self, from: usize) -> Result<(), Doubt> {
        let braces = self.text.get(from..).unwrap_or_default();
        let end = braces.find('}').ok_or(Doubt::Braces)?;
        let inner = braces.get(1..end).ok_or(Doubt::Braces)?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        if !inner.bytes().all(plain) {
            return Err(Doubt::Braces);
        }
        // `{name}>file` opens a file and sets a variable, in zsh also with blanks between them.
        let after = braces.get(end + 1..).unwrap_or_default();
        let further = after.trim_start_matches([' ', '\t', '\\', '\n']);
        let is_whole = from == 0 && further.len() < after.len() && !inner.is_empty();
        if after.starts_with(['<', '>']) || is_whole && further.starts_with(['<', '>']) {
            return Err(Doubt::Redirection);
        }
        self.value.push_str(braces.get(..=end).unwrap_or_default());
        self.lexer.skip(end);
        Ok(())
    }
}
