//! The texts that a word may expand to if the values of its variables are known.

use crate::Word;

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
    let mut rest = raw;
    let (mut single, mut double) = (false, false);
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..)?;
        match c {
            '\'' if !double => single = !single,
            '"' if !single => double = !double,
            '\\' if !single => {
                let next = rest.chars().next()?;
                rest = rest.get(next.len_utf8()..)?;
                if double && !"$`\"\\\n".contains(next) {
                    add(&mut texts, "\\");
                }
                if next != '\n' {
                    add(&mut texts, next.encode_utf8(&mut [0; 4]));
                }
            }
            '`' if !single => return None,
            '$' if !single => {
                let (name, after) = name(rest)?;
                rest = after;
                let values = match name {
                    "" => vec!["$".to_owned()],
                    name => variable(name),
                };
                let with = |text: &String| {
                    let joined = values.iter().map(|value| format!("{text}{value}"));
                    joined.collect::<Vec<_>>()
                };
                texts = texts.iter().flat_map(with).take(MAX_TEXTS + 1).collect();
            }
            c => add(&mut texts, c.encode_utf8(&mut [0; 4])),
        }
    }
    Some(texts)
}

fn add(texts: &mut [String], more: &str) {
    for text in texts {
        text.push_str(more);
    }
}

/// Splits the name after a `$`, which is empty if none follows, from the rest. `None` for other expansions.
fn name(rest: &str) -> Option<(&str, &str)> {
    let braced = rest.strip_prefix('{');
    let text = braced.unwrap_or(rest);
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let length = match text.chars().next() {
        Some('?' | '$' | '#' | '@' | '*' | '0'..='9') => 1,
        Some('(') => return None,
        _ => text.bytes().take_while(|b| is_part(b)).count(),
    };
    let (name, after) = text.split_at_checked(length)?;
    match braced {
        Some(_) => Some((name, after.strip_prefix('}')?)).filter(|(name, _)| !name.is_empty()),
        None => Some((name, after)),
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
        let line = format!("cat {}", "$v".repeat(9));
        let word = crate::read(&line).commands.remove(0).words.remove(1);
        assert_eq!(word.possible(&variable), None);
    }
}
