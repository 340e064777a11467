//! Recognition of numbers in cells: one rule for conditions, orders and joins.

use std::cmp::Ordering;

use serde_json::Value;

/// Parses a text as a number. One with leading zeros is not a number (postal codes, article numbers), nor is an
/// integer that cannot be represented exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Whole(i64),
    Real(f64),
}

impl Number {
    pub(crate) fn of(cell: &Value) -> Option<Self> {
        match cell {
            Value::Number(number) => number
                .as_i64()
                .map(Self::Whole)
                .or_else(|| number.as_f64().map(Self::Real)),
            Value::String(text) => Self::of_text(text.trim()),
            _ => None,
        }
    }

    fn of_text(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let mut bytes = digits.bytes();
        let leads = bytes.next() == Some(b'0') && bytes.next().is_some_and(|b| b.is_ascii_digit());
        if leads {
            return None;
        }
        if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().ok().map(Self::Whole);
        }
        text.parse()
            .ok()
            .filter(|real: &f64| real.is_finite())
            .map(Self::Real)
    }

    pub(crate) fn real(self) -> f64 {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "compared with another real")]
            Self::Whole(whole) => whole as f64,
            Self::Real(real) => real,
        }
    }

    pub(crate) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => a.cmp(&b),
            (a, b) => a.real().partial_cmp(&b.real()).unwrap_or(Ordering::Equal),
        }
    }

    /// Returns the same text for the same value: 7, "7" and 7.0.
    pub(crate) fn key(self) -> String {
        match self {
            Self::Whole(whole) => whole.to_string(),
            Self::Real(real) => real.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_a_number() {
        for (cell, key) in [
            (json!(7), Some("7")),
            (json!(7.0), Some("7")),
            (json!(" 7 "), Some("7")),
            (json!("7.0"), Some("7")),
            (json!("-7"), Some("-7")),
            (json!("0"), Some("0")),
            (json!("0.5"), Some("0.5")),
            (json!("1e3"), Some("1000")),
            (json!("007"), None),
            (json!("-07"), None),
            (json!("00"), None),
            (json!("9007199254740993"), Some("9007199254740993")),
            (json!("99999999999999999999"), None),
            (json!("NaN"), None),
            (json!("inf"), None),
            (json!(""), None),
            (json!("7a"), None),
            (json!(true), None),
            (json!(null), None),
        ] {
            let got = Number::of(&cell).map(Number::key);
            assert_eq!(got.as_deref(), key, "{cell}");
        }
    }
}
