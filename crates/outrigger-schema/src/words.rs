//! Schemas in words.

use crate::{Format, Schema};

impl Schema {
    /// Describes what is expected: `"on" or "off"`, `a whole number from 1`.
    #[must_use]
    pub fn expected(&self) -> String {
        match self {
            Self::Any => "anything".into(),
            Self::Null => "null".into(),
            Self::Boolean => "true or false".into(),
            Self::Exactly(which) => which.to_string(),
            Self::String => "text".into(),
            Self::Text(format) => format.one().into(),
            Self::Word(words) => choice(
                &words
                    .iter()
                    .map(|word| format!("\"{word}\""))
                    .collect::<Vec<_>>(),
            ),
            Self::Number => "a number".into(),
            Self::Integer {
                min: 0 | i64::MIN, ..
            } => "a whole number".into(),
            Self::Integer { min, max } if *min < 0 => {
                format!("a whole number from {min} to {max}")
            }
            Self::Integer { min, .. } => format!("a whole number from {min}"),
            Self::List(item) => match item.plain() {
                Self::String => "a list of texts".into(),
                Self::Text(format) => format!("a list of {}", format.several()),
                Self::Integer {
                    min: 1,
                    max: 65_535,
                } => "a list of port numbers from 1 to 65535".into(),
                Self::Integer { .. } => "a list of whole numbers".into(),
                _ => "a list".into(),
            },
            Self::Pair(..) => "a list of two".into(),
            Self::Map(_) | Self::Object(_) => "an object".into(),
            Self::AnyOf(all) => choice(&all.iter().map(Self::expected).collect::<Vec<_>>()),
            Self::Of(inner) | Self::Named(_, inner) => inner.expected(),
            Self::Said(words, _) => (*words).into(),
        }
    }
}

impl Format {
    fn one(self) -> &'static str {
        match self {
            Self::NotEmpty => "a text",
            Self::Name => "a name",
            Self::Variable => "the name of a variable as text",
            Self::Program => "the path of a program as text",
            Self::Folder => "the path of a folder as text",
        }
    }

    fn several(self) -> &'static str {
        match self {
            Self::NotEmpty => "texts",
            Self::Name => "names",
            Self::Variable => "names of variables as text",
            Self::Program => "paths of programs as text",
            Self::Folder => "folders",
        }
    }

    /// Returns whether a text has this format.
    #[must_use]
    pub fn fits(self, text: &str) -> bool {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match self {
            Self::NotEmpty | Self::Program | Self::Folder => !text.is_empty(),
            Self::Name => !text.is_empty() && text.parse::<i64>().is_err(),
            Self::Variable => {
                !text.is_empty()
                    && text.chars().all(is_word)
                    && !text.starts_with(|c: char| c.is_ascii_digit())
            }
        }
    }
}

/// Joins choices: `a, b or c`.
fn choice(all: &[String]) -> String {
    match all.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => all.concat(),
    }
}
