//! The canonical form of a tool call and its fingerprint (D7): two equivalent calls have the same form, whatever the
//! order of their keys and the format of their numbers.

use serde_json::{Number, Value};

use crate::tools::descriptor::Capability;

/// Maximum nesting; deeper values are malformed, as in JSON parsers.
pub const MAX_DEPTH: usize = 128;

/// Maximum bytes of the form; larger ones are malformed: no tool accepts that much, and all of it would be hashed.
pub const MAX_BYTES: usize = 32 * 1024 * 1024;

/// A normalised call: what is decided about, executed, and fingerprinted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CanonicalCall {
    /// The form: one JSON object with sorted keys and no white space.
    pub text: String,
    /// FNV-1a, 64 bits, over the form.
    pub fingerprint: u64,
}

/// Why a call has no canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Its arguments are not an object.
    NoObject,
    /// Its arguments are nested deeper than [`MAX_DEPTH`].
    TooDeep,
    /// Its form would be larger than [`MAX_BYTES`].
    TooLarge,
}

impl Malformed {
    /// Returns the reason in words.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::NoObject => "its arguments are not an object",
            Self::TooDeep => "its arguments are nested deeper than 128 levels",
            Self::TooLarge => "its arguments are larger than 32 MiB",
        }
    }
}

impl CanonicalCall {
    /// Returns the form of a call.
    ///
    /// # Errors
    /// [`Malformed`]; such a call is refused.
    pub fn of(
        tool: &str,
        version: &str,
        input: &Value,
        capabilities: &[Capability],
    ) -> Result<Self, Malformed> {
        if !input.is_object() {
            return Err(Malformed::NoObject);
        }
        let mut names: Vec<&str> = capabilities.iter().map(|it| it.name()).collect();
        names.sort_unstable();
        names.dedup();
        let mut text = String::from("{\"capabilities\":");
        list(&names, &mut text);
        text.push_str(",\"input\":");
        write(input, MAX_DEPTH, &mut text)?;
        text.push_str(",\"tool\":");
        quote(tool, &mut text);
        text.push_str(",\"version\":");
        quote(version, &mut text);
        text.push('}');
        let fingerprint = fnv1a(text.as_bytes());
        Ok(Self { text, fingerprint })
    }

    /// Returns the fingerprint as stored: 16 hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> String {
        format!("{:016x}", self.fingerprint)
    }
}

/// FNV-1a, 64 bits: for fingerprints that need no secrecy.
#[must_use]
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn list(names: &[&str], out: &mut String) {
    out.push('[');
    for (index, name) in names.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        quote(name, out);
    }
    out.push(']');
}

fn write(value: &Value, left: usize, out: &mut String) -> Result<(), Malformed> {
    let deeper = left.checked_sub(1).ok_or(Malformed::TooDeep);
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(&plain(number)),
        Value::String(text) => quote(text, out),
        Value::Array(items) => {
            let left = deeper?;
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, left, out)?;
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let left = deeper?;
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, item)) in fields.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                quote(key, out);
                out.push(':');
                write(item, left, out)?;
            }
            out.push('}');
        }
    }
    if out.len() > MAX_BYTES {
        return Err(Malformed::TooLarge);
    }
    Ok(())
}

/// Formats an integer the same, whether it came as `5`, `5.0` or `5e0`.
fn plain(number: &Number) -> String {
    // Integers between these are exact as `i128`, and JSON readers return no others as integers.
    const MAX_INTEGER: f64 = 18_446_744_073_709_551_616.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < MAX_INTEGER => {
            #[expect(clippy::cast_possible_truncation, reason = "whole, and in range")]
            let whole = float as i128;
            whole.to_string()
        }
        // Rust's own shortest form, so that no library determines what is stored.
        Some(float) if number.is_f64() => format!("{float:e}"),
        _ => number.to_string(),
    }
}

fn quote(text: &str, out: &mut String) {
    let simple = text
        .bytes()
        .all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
    if simple {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&Value::String(text.to_owned()).to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn form(input: &Value) -> CanonicalCall {
        CanonicalCall::of("demo", "1.0.0", input, &[]).unwrap()
    }

    /// Stored records contain these: they must never change.
    #[test]
    fn fingerprints_are_these_for_ever() {
        let read = [Capability::FsRead];
        for (tool, version, input, capabilities, text, hex) in [
            (
                "demo",
                "1.0.0",
                json!({}),
                &[][..],
                r#"{"capabilities":[],"input":{},"tool":"demo","version":"1.0.0"}"#,
                "750debea83024f6d",
            ),
            (
                "read",
                "1.0.0",
                json!({"offset": 5.0, "filePath": "a\"b"}),
                &read[..],
                r#"{"capabilities":["fs.read"],"input":{"filePath":"a\"b","offset":5},"tool":"read","version":"1.0.0"}"#,
                "9215584f982b129f",
            ),
            (
                "n",
                "2",
                json!({"a": [1e2, -0.0, 0.1, 1e300, null, true], "k": "\n"}),
                &[][..],
                r#"{"capabilities":[],"input":{"a":[100,0,1e-1,1e300,null,true],"k":"\n"},"tool":"n","version":"2"}"#,
                "42004b99d0175a2a",
            ),
        ] {
            let got = CanonicalCall::of(tool, version, &input, capabilities).unwrap();
            assert_eq!((got.text.as_str(), got.hex().as_str()), (text, hex));
        }
    }

    #[test]
    fn what_has_no_form_is_refused() {
        let mut deep = json!(1);
        for _ in 0..MAX_DEPTH {
            deep = json!([deep]);
        }
        let long = "x".repeat(MAX_BYTES);
        for (input, want) in [
            (json!([]), Malformed::NoObject),
            (json!(null), Malformed::NoObject),
            (json!({ "a": deep }), Malformed::TooDeep),
            (json!({ "a": long }), Malformed::TooLarge),
        ] {
            let got = CanonicalCall::of("t", "1", &input, &[]);
            assert_eq!(got.unwrap_err(), want);
            assert!(!want.reason().is_empty());
        }
    }

    #[test]
    fn order_of_capabilities_does_not_matter_and_everything_else_does() {
        use Capability::{FsRead, FsWrite};
        let of = |tool: &str, version: &str, input: Value, caps: &[Capability]| {
            CanonicalCall::of(tool, version, &input, caps)
                .unwrap()
                .fingerprint
        };
        let one = of("a", "1", json!({}), &[FsRead, FsWrite]);
        assert_eq!(one, of("a", "1", json!({}), &[FsWrite, FsRead, FsRead]));
        for other in [
            of("b", "1", json!({}), &[FsRead, FsWrite]),
            of("a", "2", json!({}), &[FsRead, FsWrite]),
            of("a", "1", json!({"x": null}), &[FsRead, FsWrite]),
            of("a", "1", json!({}), &[FsRead]),
        ] {
            assert_ne!(one, other);
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            any::<f64>().prop_map(|f| json!(if f.is_finite() { f } else { 0.5 })),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(".{0,5}", inner, 0..5)
                    .prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    /// Returns the same value with its keys reversed and its integers as floats.
    fn otherwise(value: &Value) -> Value {
        match value {
            Value::Number(number) => match number.as_i64() {
                Some(whole) if whole.abs() < (1 << 52) => json!(whole as f64),
                _ => value.clone(),
            },
            Value::Array(items) => items.iter().map(otherwise).collect(),
            Value::Object(fields) => fields
                .iter()
                .rev()
                .map(|(key, value)| (key.clone(), otherwise(value)))
                .collect(),
            other => other.clone(),
        }
    }

    proptest! {
        #[test]
        fn order_of_keys_and_forms_of_numbers_do_not_matter(value in values()) {
            let (a, b) = (json!({ "v": value }), json!({ "v": otherwise(&value) }));
            prop_assert_eq!(form(&a), form(&b));
            let read: Value = serde_json::from_str(&form(&a).text).unwrap();
            // The form is equivalent JSON.
            prop_assert_eq!(form(&read["input"]), form(&a));
        }
    }
}
