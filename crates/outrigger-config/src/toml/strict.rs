//! TOML files of a fixed form: the managed policy, manifests of plugins. An unknown key is an error with its position.

use serde::de::DeserializeOwned;

use crate::ConfigError;
use crate::origin::Position;
use crate::suggest::nearest;

/// Reads a text into a type that refuses unknown keys (`deny_unknown_fields`). `file` is for messages.
///
/// # Errors
/// `config.syntax` for what is not TOML or of the wrong type, `config.unknown_setting` and `config.unknown_value` with a suggestion; each with line
/// and column.
pub fn read_toml<T: DeserializeOwned>(text: &str, file: &str) -> Result<T, ConfigError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    toml::from_str(text).map_err(|error| {
        let at = Position::at(text, error.span().map_or(0, |span| span.start));
        let message = error
            .message()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        match (unknown(&message, "field"), unknown(&message, "variant")) {
            (None, Some((value, known))) => ConfigError::UnknownValue {
                file: file.to_owned(),
                line: at.line,
                column: at.column,
                suggestion: nearest(&value, known.iter().map(String::as_str)).map(str::to_owned),
                value,
                known,
            },
            (Some((key, known)), _) => ConfigError::UnknownSetting {
                file: file.to_owned(),
                line: at.line,
                column: at.column,
                suggestion: nearest(&key, known.iter().map(String::as_str)).map(str::to_owned),
                key,
                known,
            },
            (None, None) => ConfigError::Syntax {
                file: file.to_owned(),
                line: at.line,
                column: at.column,
                language: "TOML",
                message,
                hint: "correct the text at this place; text values stand in double quotes".into(),
            },
        }
    })
}

/// Returns the texts of the lists in a table, each with its position.
pub(crate) fn texts_below(text: &str, table: &[&str]) -> Vec<(String, Position)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Ok(document) = toml::de::DeTable::parse(text) else {
        return Vec::new();
    };
    let mut here = Some(document.get_ref());
    for name in table {
        here = match here.and_then(|it| it.get(*name)).map(|it| it.get_ref()) {
            Some(toml::de::DeValue::Table(inner)) => Some(inner),
            _ => None,
        };
    }
    let lists = here.into_iter().flat_map(|it| it.values());
    lists
        .filter_map(|it| match it.get_ref() {
            toml::de::DeValue::Array(items) => Some(items),
            _ => None,
        })
        .flat_map(|it| it.iter())
        .filter_map(|item| match item.get_ref() {
            toml::de::DeValue::String(value) => {
                Some((value.to_string(), Position::at(text, item.span().start)))
            }
            _ => None,
        })
        .collect()
}

/// Returns the position of a key in a text, by its dotted name: line and column from 1; if not found, that of the nearest
/// enclosing table, or of the beginning.
#[must_use]
pub fn place_in_toml(text: &str, key: &str) -> (u32, u32) {
    let mut place = Position::at(text, 0);
    let document = toml::de::DeTable::parse(text);
    let mut table = document.as_ref().ok().map(|document| document.get_ref());
    for part in key.split('.') {
        let Some((name, value)) =
            table.and_then(|table| table.iter().find(|(name, _)| name.get_ref() == part))
        else {
            break;
        };
        place = Position::at(text, name.span().start);
        table = match value.get_ref() {
            toml::de::DeValue::Table(inner) => Some(inner),
            _ => None,
        };
    }
    (place.line, place.column)
}

/// Parses serde's message about an unknown key (`field`) or word (`variant`): the written name, and the known ones.
fn unknown(message: &str, what: &str) -> Option<(String, Vec<String>)> {
    let rest = message.strip_prefix("unknown ")?.strip_prefix(what)?;
    let mut quoted = rest.split('`').skip(1).step_by(2).map(str::to_owned);
    Some((quoted.next()?, quoted.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_protocol::diagnose::Diagnose;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case")]
    #[expect(dead_code, reason = "only read")]
    struct File {
        id: String,
        #[serde(default)]
        level: Level,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Level {
        #[default]
        Low,
        High,
    }

    #[test]
    fn errors_have_a_place_and_a_way_out() {
        let mut seen = String::new();
        for text in [
            "id = \"a\"\nlevl = \"low\"",
            "id = 3",
            "level = \"low\"",
            "id = \"a\"\nlevel = \"hihg\"",
            "id = a",
            "id = \"a\"\n[other]\nx = 1",
        ] {
            let error = read_toml::<File>(text, "x.toml").unwrap_err();
            seen += &format!("{error}\n  {}\n", error.hint().unwrap());
        }
        insta::assert_snapshot!(seen, @r"
        x.toml:2:1: unknown setting `levl`
          did you mean `level`?
        x.toml:1:6: not valid TOML: invalid type: integer `3`, expected a string
          correct the text at this place; text values stand in double quotes
        x.toml:1:1: not valid TOML: missing field `id`
          correct the text at this place; text values stand in double quotes
        x.toml:2:9: unknown value `hihg`; known are low, high
          did you mean `high`?
        x.toml:1:6: not valid TOML: string values must be quoted, expected literal string
          correct the text at this place; text values stand in double quotes
        x.toml:2:2: unknown setting `other`
          known here: id, level
        ");
    }
}
