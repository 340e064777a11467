//! What a hook changed, in lines: `/temperature: 1 -> 0.2`.

use std::fmt::Write as _;

use outrigger_protocol::hook::{ChangedValues, RecordedValue};
use outrigger_stdx::text::{ceil_char_boundary, floor_char_boundary};

/// Bytes of a value that are shown; `--json` has all that is kept.
const MAX_SHOWN: usize = 120;
/// Bytes that are shown of what a long value has in common with the other one, before the difference.
const CONTEXT: usize = 20;

/// A line for each place.
pub(super) fn lines(values: &ChangedValues) -> String {
    let mut text = String::new();
    for place in &values.places {
        let (before, after) = (shown(place.before.as_ref()), shown(place.after.as_ref()));
        let begin = std::iter::zip(before.bytes(), after.bytes())
            .take_while(|(a, b)| a == b)
            .count();
        let _ = writeln!(
            text,
            "       {}: {} -> {}",
            if place.at.is_empty() { "/" } else { &place.at },
            brief(&before, begin),
            brief(&after, begin)
        );
    }
    match values.more {
        0 => {}
        1 => text.push_str("       and one further place\n"),
        more => {
            let _ = writeln!(text, "       and {more} further places");
        }
    }
    text
}

fn shown(value: Option<&RecordedValue>) -> String {
    match value {
        None => "(nothing)".to_owned(),
        Some(RecordedValue::Whole { value }) => value.to_string(),
        Some(RecordedValue::Excerpt { text, .. }) => {
            serde_json::Value::from(text.as_str()).to_string()
        }
        Some(RecordedValue::Digest { bytes, sha256 }) => {
            let sha256 = sha256.get(..12).unwrap_or(sha256);
            format!("({bytes} bytes, SHA-256 {sha256})")
        }
    }
}

/// A long text from where it differs.
fn brief(text: &str, begin: usize) -> String {
    if text.len() <= MAX_SHOWN {
        return text.to_owned();
    }
    let from = match begin {
        0..=MAX_SHOWN => 0,
        _ => ceil_char_boundary(text, begin - CONTEXT),
    };
    let until = floor_char_boundary(text, from + MAX_SHOWN);
    let part = text.get(from..until).unwrap_or_default();
    let mark = |is_cut: bool| if is_cut { "…" } else { "" };
    format!("{}{part}{}", mark(from > 0), mark(until < text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_protocol::hook::ChangedValue;
    use serde_json::{Value, json};

    #[test]
    fn a_line_says_what_stood_there_and_what_stands_there_now() {
        let whole = |value: Value| Some(RecordedValue::Whole { value });
        let long = "a".repeat(300);
        let place = |at: &str, before, after| ChangedValue {
            at: at.to_owned(),
            before,
            after,
        };
        let digest = RecordedValue::Digest {
            bytes: 5_000_000,
            sha256: "0123456789abcdef".to_owned(),
        };
        let places = vec![
            place("/t", whole(json!(1)), whole(json!(0.2))),
            place("", None, whole(json!("a\nb"))),
            place(
                "/long",
                whole(json!(long)),
                whole(json!(format!("{long}b"))),
            ),
            place("/huge", Some(digest), None),
        ];
        let shown = lines(&ChangedValues { places, more: 2 });
        let tail = "a".repeat(20);
        let want = [
            "/t: 1 -> 0.2".to_owned(),
            "/: (nothing) -> \"a\\nb\"".to_owned(),
            format!("/long: …{tail}\" -> …{tail}b\""),
            "/huge: (5000000 bytes, SHA-256 0123456789ab) -> (nothing)".to_owned(),
            "and 2 further places".to_owned(),
        ];
        let shown: Vec<&str> = shown.lines().map(str::trim_start).collect();
        assert_eq!(shown, want);
    }
}
