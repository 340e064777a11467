//! The texts that a word may expand to if the values of its variables are known.

use crate::Word;
use crate::lexer::{Lexer, Part};

/// Maximum number of texts.
const MAX_TEXTS: usize = 64;

impl Word {
    /// Returns the texts that it may expand to: without quotes, and with wildcards as written. `variable` returns the possible
    /// values of a variable or shell parameter. Empty if something in it is unknown, such as a command substitution; `None` if
    /// there are too many.
    #[must_use]
    pub fn possible(&self, variable: &dyn Fn(&str) -> Vec<String>) -> Option<Vec<String>> {
        let texts = texts(&self.raw, variable).unwrap_or_default();
        if texts.len() > MAX_TEXTS {
            return None;
        }
        let is_split = self.raw.contains('$') && !self.is_one();
        if !is_split {
            return Some(texts);
        }
        let parts = texts.iter().flat_map(|text| text.split_whitespace());
        Some(parts.map(str::to_owned).collect())
    }
}

fn texts(raw: &str, variable: &dyn Fn(&str) -> Vec<String>) -> Option<Vec<String>> {
    let mut texts = vec![String::new()];
    let mut lexer = Lexer::new(raw);
    while let Some(part) = lexer.next().ok()? {
        match part {
            Part::Quoted(text) => add(&mut texts, text),
            Part::Plain(c) => add(&mut texts, c.encode_utf8(&mut [0; 4])),
            Part::Continuation => {}
            Part::Expansion => {
                let (name, length) = name(lexer.rest(), lexer.is_quoted())?;
                lexer.skip(length);
                let values = match name {
                    "" => vec!["$".to_owned()],
                    name => variable(name),
                };
                let with = |text: &String| {
                    values
                        .iter()
                        .map(|value| format!("{text}{value}"))
                        .collect::<Vec<_>>()
                };
                texts = texts.iter().flat_map(with).take(MAX_TEXTS + 1).collect();
            }
        }
    }
    lexer.rest().is_empty().then_some(texts)
}

fn add(texts: &mut [String], more: &str) {
    for text in texts {
        text.push_str(more);
    }
}

/// Returns the name at the start of an expansion, which is empty for a literal `$`, and the length of the expansion. `None` for
/// other expansions.
fn name(expansion: &str, is_quoted: bool) -> Option<(&str, usize)> {
    let rest = expansion.strip_prefix('$')?;
    let braced = rest.strip_prefix('{');
    let text = braced.unwrap_or(rest);
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let length = match text.chars().next() {
        Some('?' | '$' | '#' | '@' | '*' | '0'..='9') => 1,
        Some('(') => return None,
        // bash reads escapes in the first, and translates the second.
        Some('\'' | '"') if !is_quoted => return None,
        _ => text.bytes().take_while(|b| is_part(b)).count(),
    };
    let (name, after) = text.split_at_checked(length)?;
    match braced {
        Some(_) if name.is_empty() || !after.starts_with('}') => None,
        Some(_) => Some((name, "${}".len() + length)),
        None => Some((name, "$".len() + length)),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn texts_of_words() {
        let variable = |name: &str| match name {
            "v" => vec!["/a b".to_owned(), String::new()],
            "1" => vec!["x".to_owned()],
            _ => Vec::new(),
        };
        for (source, want) in [
            ("'$v'\"\\$v\"\\ x", &["$v$v x"][..]),
            ("\"$v\"", &["/a b", ""]),
            ("$v/x", &["/a", "b/x", "/x"]),
            ("\"${v}\"/*", &["/a", "b/*", "/*"]),
            ("~/$1*", &["~/x*"]),
            ("a$", &["a$"]),
            ("$other/x", &[]),
            ("\"\\a\"", &["\\a"]),
        ] {
            let line = format!("cat {source}");
            let word = crate::read(&line).commands.remove(0).words.remove(1);
            assert_eq!(word.possible(&variable).unwrap(), want, "{source}");
        }
        let word = crate::read("cat $(x)").commands.remove(0).words.remove(1);
        assert_eq!(word.possible(&variable), Some(Vec::new()));
        let word = crate::read("cat $'a'").commands.remove(0).words.remove(1);
        assert_eq!(word.possible(&variable), Some(Vec::new()));
        let line = format!("cat {}", "$v".repeat(9));
        let word = crate::read(&line).commands.remove(0).words.remove(1);
        assert_eq!(word.possible(&variable), None);
    }
}
