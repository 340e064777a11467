//! Reading the value of a setting: from TOML, or from an environment variable.

use std::path::Path;

use outrigger_schema::{Format, Schema};
use serde_json::Value;
use toml::de::DeValue;

use crate::paths;

/// Converts a value of a file, if it is valid.
pub(super) fn of_toml(schema: &Schema, value: &DeValue<'_>) -> Option<Value> {
    let whole = |number: &toml::de::DeInteger<'_>| {
        let number = i64::from_str_radix(number.as_str(), number.radix());
        number.ok().map(Value::from)
    };
    let value = match value {
        DeValue::Boolean(boolean) => (*boolean).into(),
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(number) => whole(number)?,
        DeValue::Array(items) => {
            let item = |item: &DeValue<'_>| match item {
                DeValue::String(text) => Some(item_of(schema, text)),
                DeValue::Integer(number) => whole(number),
                _ => None,
            };
            items
                .iter()
                .map(|it| item(it.get_ref()))
                .collect::<Option<_>>()?
        }
        DeValue::Table(members) => {
            let member = |value: &DeValue<'_>| match value {
                DeValue::String(text) => Some(Value::from(text.as_ref())),
                _ => None,
            };
            let members = members
                .iter()
                .map(|(name, value)| Some((name.get_ref().to_string(), member(value.get_ref())?)));
            Value::Object(members.collect::<Option<_>>()?)
        }
        _ => return None,
    };
    fits(schema, value)
}

/// Converts the value of a variable, if it is valid. Items of a list are separated by commas, members of a table (`name=value`)
/// by semicolons.
pub(super) fn of_variable(schema: &Schema, text: &str) -> Option<Value> {
    let value = match schema.plain() {
        Schema::Boolean => match text {
            "1" | "true" | "on" | "yes" => true.into(),
            "0" | "false" | "off" | "no" => false.into(),
            _ => return None,
        },
        Schema::Integer { .. } => text.parse::<i64>().ok()?.into(),
        Schema::List(_) => text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .map(|item| item_of(schema, item))
            .collect(),
        Schema::Map(_) => {
            let members = text
                .split(';')
                .filter(|it| !it.trim().is_empty())
                .map(|it| {
                    let (name, value) = it.split_once('=')?;
                    Some((name.trim().to_owned(), Value::from(value.trim())))
                });
            Value::Object(members.collect::<Option<_>>()?)
        }
        _ => text.into(),
    };
    fits(schema, value)
}

/// Converts an item of a list: to a number if the list accepts those and it is one.
fn item_of(list: &Schema, text: &str) -> Value {
    let of_numbers = match list.plain() {
        Schema::List(item) => matches!(item.plain(), Schema::Integer { .. }),
        _ => false,
    };
    text.parse::<i64>()
        .ok()
        .filter(|_| of_numbers)
        .map_or_else(|| text.into(), Value::from)
}

fn fits(schema: &Schema, value: Value) -> Option<Value> {
    schema.check(&value).is_empty().then_some(value)
}

/// Makes the paths of a value absolute, relative to `folder`. A program name without a slash is not a path: it is looked up in
/// `PATH` when it is started.
pub(super) fn absolute(schema: &Schema, value: Value, folder: &Path, home: &Path) -> Value {
    match (schema.plain(), value) {
        (Schema::Text(Format::Program), Value::String(text)) if !text.contains('/') => text.into(),
        (Schema::Text(Format::Program | Format::Folder), Value::String(text)) => {
            let path = paths::expand(&text, folder, home);
            path.to_string_lossy().into_owned().into()
        }
        (Schema::List(item), Value::Array(items)) => items
            .into_iter()
            .map(|it| absolute(item, it, folder, home))
            .collect(),
        (_, other) => other,
    }
}
