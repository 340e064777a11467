//! Valid values, for tests that check a table against the code that reads what it describes.

use serde_json::{Map, Value, json};

use crate::{Format, Schema};

impl Schema {
    /// Returns a valid value, with every named member, by its first name, and lists of one.
    #[must_use]
    pub fn example(&self) -> Value {
        match self.plain() {
            Self::Null => Value::Null,
            Self::Boolean => true.into(),
            Self::Exactly(which) => (*which).into(),
            Self::Any | Self::String => "a".into(),
            Self::Text(format) => format.example().into(),
            Self::Word(words) => words.first().copied().into(),
            Self::Number => json!(1.5),
            Self::Integer { min, max } => 1.clamp(*min, *max).into(),
            Self::List(item) => json!([item.example()]),
            Self::Pair(first, second) => json!([first.example(), second.example()]),
            Self::Map(value) => json!({ "a": value.example() }),
            Self::Object(fields) => fields
                .iter()
                .map(|field| (field.name.to_owned(), field.schema.example()))
                .collect::<Map<_, _>>()
                .into(),
            Self::AnyOf(all) => all.first().map_or(Value::Null, Self::example),
            Self::Of(inner) | Self::Named(_, inner) | Self::Said(_, inner) => inner.example(),
        }
    }
}

impl Format {
    fn example(self) -> &'static str {
        match self {
            Self::NotEmpty | Self::Name => "a",
            Self::Variable => "A",
            Self::Program | Self::Folder => "/a",
        }
    }
}
