//! Fields of an output that an answer may change, and their required types.

use alloc::format;
use alloc::string::{String, ToString};

use outrigger_protocol::hook::{Change, Key};
use serde_json::Value;

use super::fold::pointer;
use super::points::HookPoint;
use super::spec::{Field, Kind, Phase};

/// Returns whether a field of the output may be changed.
pub(super) fn open(point: HookPoint, name: &str) -> bool {
    let mut fields = point.spec().patch.iter();
    point.spec().phase != Phase::Observe
        && fields.any(|field| field.key == name || field.key == "*")
}

/// Returns the forbidden field that a change touches, if any.
pub(super) fn forbidden(point: HookPoint, output: &Value, change: &Change) -> Option<String> {
    let open = |name: &str| open(point, name);
    match change.path.first() {
        Some(Key::Name(name)) if open(name) => None,
        Some(_) => Some(pointer(&change.path)),
        // Replacing the whole output counts as replacing every field that differs; the types are checked later.
        None => {
            let (Value::Object(before), Some(Value::Object(after))) = (output, &change.value)
            else {
                return Some("the whole output".to_string());
            };
            let mut names = before.keys().chain(after.keys());
            let name = names.find(|name| before.get(*name) != after.get(*name) && !open(name))?;
            Some(pointer(&[Key::Name(name.clone())]))
        }
    }
}

// Returns a field that a handler broke: turning a list into a text, or deleting what the host needs, would break the
// next reader. Only its own changes are checked: a field that was absent or of another type before may stay so.
pub(super) fn broken_field(
    patch: &[Field],
    touched: impl Fn(&str) -> bool,
    after: &Value,
) -> Option<String> {
    let Value::Object(fields) = after else {
        return Some(format!(
            "the output is no longer an object but {}",
            type_name(after)
        ));
    };
    patch
        .iter()
        .filter(|field| field.key != "*" && touched(field.key))
        .find_map(|field| match fields.get(field.key) {
            None => field.required.then(|| format!("{} is gone", field.key)),
            Some(value) if has_kind(value, field.kind) => None,
            // Null switches an optional field off.
            Some(Value::Null) if !field.required => None,
            Some(value) => Some(format!("{} is {} now", field.key, type_name(value))),
        })
}

fn has_kind(value: &Value, kind: Kind) -> bool {
    match kind {
        Kind::Any => true,
        Kind::String => value.is_string(),
        Kind::Number => value.is_number(),
        Kind::Bool => value.is_boolean(),
        Kind::Array => value.is_array(),
        Kind::Object => value.is_object(),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
