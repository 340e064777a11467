//! One word: quotes, backslashes, `$name`, wildcards.

use crate::{Doubt, UNKNOWN, Word};

/// Returns whether a character ends a word, outside quotes.
pub(crate) fn ends(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\n' | ';' | '|' | '&' | '<' | '>' | '(' | ')'
    )
}

/// Reads the word at the start of `text`, which has no control characters but newline and TAB. Returns the word and its length
/// in bytes.
pub(crate) fn read(text: &str) -> Result<(Word, usize), Doubt> {
    let mut reader = Reader {
        text,
        at: 0,
        value: String::new(),
        open: None,
        home: false,
    };
    reader.word()?;
    reader.end();
    let raw = text.get(..reader.at).unwrap_or_default().to_owned();
    let value = reader.value;
    if raw.starts_with('=') {
        // zsh replaces it with the path of a program.
        return Err(Doubt::Word(raw));
    }
    Ok((Word { raw, value }, reader.at))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    value: String,
    /// The start of a part in the value whose length only the shell knows.
    open: Option<usize>,
    /// It starts with `$HOME`.
    home: bool,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn after(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    fn take(&mut self, c: char) {
        self.at += c.len_utf8();
    }

    fn word(&mut self) -> Result<(), Doubt> {
        self.tilde();
        // The words `[`, `!` and `!=` of a test.
        for text in ["[", "!", "!="] {
            let after = self.rest().strip_prefix(text);
            if after.is_some_and(|it| it.chars().next().is_none_or(ends)) {
                self.at += text.len();
                self.value.push_str(text);
            }
        }
        while let Some(c) = self.peek() {
            match c {
                c if ends(c) => break,
                '\'' => self.single_quoted()?,
                '"' => self.double_quoted()?,
                '\\' => self.escaped()?,
                '$' => self.dollar(false)?,
                '`' => return Err(Doubt::Substitution),
                '!' => return Err(Doubt::Exclamation),
                '{' | '}' => self.braces()?,
                '*' | '?' => {
                    self.take(c);
                    self.value.push(UNKNOWN);
                }
                // After a variable or an empty text, zsh inserts the path of a program or a home folder.
                '=' | '~' if self.at > 0 && self.value.chars().all(|c| c == UNKNOWN) => {
                    return Err(Doubt::Word(
                        self.text.get(..=self.at).unwrap_or_default().to_owned(),
                    ));
                }
                '[' => {
                    self.take(c);
                    self.open.get_or_insert(self.value.len());
                }
                c => {
                    self.take(c);
                    self.value.push(c);
                }
            }
        }
        Ok(())
    }

    /// Reads a tilde: `~` and `~/…` are the home folder; `~user`, `~+` and `~-` are others.
    fn tilde(&mut self) {
        if !self.rest().starts_with('~') {
            return;
        }
        let more = self.after().filter(|c| !ends(*c));
        self.take('~');
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

    fn single_quoted(&mut self) -> Result<(), Doubt> {
        let inner = self.rest().get(1..).unwrap_or_default();
        let end = inner.find('\'').ok_or(Doubt::Unfinished)?;
        self.value.push_str(inner.get(..end).unwrap_or_default());
        self.at += end + 2;
        Ok(())
    }

    fn escaped(&mut self) -> Result<(), Doubt> {
        match self.after() {
            None => Err(Doubt::Unfinished),
            Some('\n') => Err(Doubt::Continuation),
            Some(next) => {
                self.take('\\');
                self.take(next);
                self.value.push(next);
                Ok(())
            }
        }
    }

    fn double_quoted(&mut self) -> Result<(), Doubt> {
        self.take('"');
        loop {
            match self.peek().ok_or(Doubt::Unfinished)? {
                '"' => {
                    self.take('"');
                    return Ok(());
                }
                '`' => return Err(Doubt::Substitution),
                '$' => self.dollar(true)?,
                '\\' => {
                    let next = self.after().ok_or(Doubt::Unfinished)?;
                    self.take('\\');
                    self.take(next);
                    match next {
                        '$' | '`' | '"' | '\\' => self.value.push(next),
                        '\n' => {}
                        _ => self.value.extend(['\\', next]),
                    }
                }
                c => {
                    self.take(c);
                    self.value.push(c);
                }
            }
        }
    }

    /// Reads `$name`, `${name}` or a parameter of one character. A `$` followed by none of these is literal.
    fn dollar(&mut self, quoted: bool) -> Result<(), Doubt> {
        let from = self.at;
        self.take('$');
        match self.peek() {
            None | Some(' ' | '\t' | '\n') => {
                self.value.push('$');
                return Ok(());
            }
            Some('"' | '|' | ')' | '/' | '.' | ',' | ';' | '%' | '&') if quoted => {
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
                self.take('{');
                let name = self.name();
                if name == 0 || self.peek() != Some('}') {
                    return Err(Doubt::Expansion);
                }
                self.take('}');
            }
            Some(_) if self.name() > 0 => {}
            _ => return Err(Doubt::Expansion),
        }
        // zsh reads a subscript here, letters of any language as part of the name, all digits of a number, and after `$#` the
        // name of what it counts.
        let taken = self.text.get(from..self.at).unwrap_or_default();
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
        let name = self.text.get(from..self.at).unwrap_or_default();
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
        self.at += length;
        length
    }

    /// Reads `{}`, `{0}` and `{name}`, which are plain text.
    fn braces(&mut self) -> Result<(), Doubt> {
        let rest = self.rest();
        let end = rest.find('}').ok_or(Doubt::Braces)?;
        let inner = rest.get(1..end).ok_or(Doubt::Braces)?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        if !inner.bytes().all(plain) {
            return Err(Doubt::Braces);
        }
        // `{name}>file` opens a file and sets a variable, in zsh also with blanks between them.
        let behind = rest.get(end + 1..).unwrap_or_default();
        let further = behind.trim_start_matches([' ', '\t', '\\', '\n']);
        let is_whole = self.at == 0 && further.len() < behind.len() && !inner.is_empty();
        if behind.starts_with(['<', '>']) || is_whole && further.starts_with(['<', '>']) {
            return Err(Doubt::Redirection);
        }
        self.value.push_str(rest.get(..=end).unwrap_or_default());
        self.at += end + 1;
        Ok(())
    }
}
