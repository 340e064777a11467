//! Quotes and backslashes, as bash, dash and zsh read them: splits a word into text and expansions.

/// Returns whether a character ends a word, outside quotes.
pub(crate) fn ends(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\r' | '\n' | ';' | '|' | '&' | '<' | '>' | '(' | ')'
    )
}

/// A part of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// Text that means itself: within quotes, or after a backslash.
    Quoted(&'a str),
    /// A character outside quotes.
    Plain(char),
    /// A backslash and a newline, which the shell removes.
    Continuation,
    /// A `$` or a backquote. It is not consumed: the caller reads the expansion, and [skips](Lexer::skip) it.
    Expansion,
}

/// The text ends within quotes, or after a backslash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unfinished;

/// Reads one word.
#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    rest: &'a str,
    /// Within double quotes.
    quoted: bool,
}

impl<'a> Lexer<'a> {
    /// Reads the word at the start of `text`.
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            rest: text,
            quoted: false,
        }
    }

    /// Returns the text that was not read.
    pub(crate) fn rest(&self) -> &'a str {
        self.rest
    }

    /// Returns whether the last part, or the expansion ahead, is within double quotes.
    pub(crate) fn is_quoted(&self) -> bool {
        self.quoted
    }

    /// Skips bytes that the caller read.
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.take(bytes);
    }

    /// Returns the next part; `None` at the end of the word.
    pub(crate) fn next(&mut self) -> Result<Option<Part<'a>>, Unfinished> {
        while self.rest.starts_with('"') {
            self.take(1);
            self.quoted = !self.quoted;
        }
        let Some(c) = self.rest.chars().next() else {
            return if self.quoted {
                Err(Unfinished)
            } else {
                Ok(None)
            };
        };
        let part = match c {
            '$' | '`' => Part::Expansion,
            '\\' => self.escaped()?,
            _ if self.quoted => {
                let end = self.rest.find(['"', '\\', '$', '`']);
                Part::Quoted(self.take(end.unwrap_or(self.rest.len())))
            }
            '\'' => {
                let inner = self.rest.get(1..).unwrap_or_default();
                let length = inner.find('\'').ok_or(Unfinished)?;
                self.take(1);
                let text = self.take(length);
                self.take(1);
                Part::Quoted(text)
            }
            c if ends(c) => return Ok(None),
            c => {
                self.take(c.len_utf8());
                Part::Plain(c)
            }
        };
        Ok(Some(part))
    }

    /// Reads a backslash. Within double quotes it remains before characters that mean themselves there.
    fn escaped(&mut self) -> Result<Part<'a>, Unfinished> {
        let c = self.rest.chars().nth(1).ok_or(Unfinished)?;
        let both = self.take(1 + c.len_utf8());
        let remains = self.quoted && !matches!(c, '$' | '`' | '"' | '\\');
        Ok(match c {
            '\n' => Part::Continuation,
            _ if remains => Part::Quoted(both),
            _ => Part::Quoted(both.get(1..).unwrap_or_default()),
        })
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (text, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        text
    }
}

/// Returns the text of a word in which the shell expands nothing; `None` for any other, and for more than one word.
#[must_use]
pub fn unquoted(word: &str) -> Option<String> {
    let mut lexer = Lexer::new(word);
    let mut text = String::new();
    while let Some(part) = lexer.next().ok()? {
        match part {
            Part::Quoted(part) => text.push_str(part),
            Part::Plain(c) if c.is_alphanumeric() || "-_./,:=@%+".contains(c) => text.push(c),
            Part::Continuation => {}
            Part::Plain(_) | Part::Expansion => return None,
        }
    }
    lexer.rest().is_empty().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_words() {
        use Part::{Continuation, Expansion, Plain, Quoted};
        for (word, parts, rest) in [
            ("ab c", &[Plain('a'), Plain('b')][..], " c"),
            ("''\"\"", &[Quoted("")], ""),
            ("'a\"b\\'", &[Quoted("a\"b\\")], ""),
            ("\"a 'b'\";", &[Quoted("a 'b'")], ";"),
            ("\\'\\é", &[Quoted("'"), Quoted("é")], ""),
            ("\"\\\"\\a\"", &[Quoted("\""), Quoted("\\a")], ""),
            (
                "a\\\n\"\\\n\"",
                &[Plain('a'), Continuation, Continuation],
                "",
            ),
            ("a$b", &[Plain('a'), Expansion], "$b"),
            ("\"a`b`\"", &[Quoted("a"), Expansion], "`b`\""),
        ] {
            let mut lexer = Lexer::new(word);
            let mut found = Vec::new();
            while found.last() != Some(&Expansion) {
                let Some(part) = lexer.next().unwrap() else {
                    break;
                };
                found.push(part);
            }
            assert_eq!((found.as_slice(), lexer.rest()), (parts, rest), "{word}");
        }
        for word in ["'a", "\"a", "a\\", "\"a\\"] {
            let mut lexer = Lexer::new(word);
            let end = std::iter::from_fn(|| lexer.next().transpose()).find_map(Result::err);
            assert_eq!(end, Some(Unfinished), "{word}");
        }
    }
}
