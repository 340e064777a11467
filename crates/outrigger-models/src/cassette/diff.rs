//! Finds the first difference of two JSON values.

use serde_json::Value;

/// Returns the first difference: JSON pointer, and both texts there.
pub(crate) fn first_difference(wanted: &Value, got: &Value) -> Option<(String, String, String)> {
    let mut path = Vec::new();
    walk(wanted, got, &mut path).map(|(w, g)| {
        let pointer = path
            .iter()
            .map(|p: &String| format!("/{}", p.replace('~', "~0").replace('/', "~1")))
            .collect();
        (pointer, w, g)
    })
}

fn walk(wanted: &Value, got: &Value, path: &mut Vec<String>) -> Option<(String, String)> {
    match (wanted, got) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|k| !a.contains_key(*k)));
            for key in keys {
                path.push(key.clone());
                if let Some(found) = walk_at(a.get(key), b.get(key), path) {
                    return Some(found);
                }
                path.pop();
            }
            None
        }
        (Value::Array(a), Value::Array(b)) => {
            for at in 0..a.len().max(b.len()) {
                path.push(at.to_string());
                if let Some(found) = walk_at(a.get(at), b.get(at), path) {
                    return Some(found);
                }
                path.pop();
            }
            None
        }
        (a, b) if a == b => None,
        (Value::String(a), Value::String(b)) => Some(text_difference(a, b)),
        (a, b) => Some((shown(a), shown(b))),
    }
}

fn walk_at(
    wanted: Option<&Value>,
    got: Option<&Value>,
    path: &mut Vec<String>,
) -> Option<(String, String)> {
    match (wanted, got) {
        (Some(a), Some(b)) => walk(a, b, path),
        (a, b) => {
            let text = |v: Option<&Value>| v.map_or_else(|| "nothing".to_owned(), shown);
            Some((text(a), text(b)))
        }
    }
}

const SHOWN: usize = 160;
const LEAD: usize = 24;

fn shown(value: &Value) -> String {
    window(&value.to_string(), 0)
}

// Returns both texts from shortly before the first difference.
fn text_difference(a: &str, b: &str) -> (String, String) {
    let common = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
    let from = if common > LEAD * 2 { common - LEAD } else { 0 };
    let quote = |text: &str| Value::from(window(text, from)).to_string();
    (quote(a), quote(b))
}

fn window(text: &str, from: usize) -> String {
    let mut out = String::new();
    if from > 0 {
        out.push('\u{2026}');
    }
    let mut chars = text.chars().skip(from);
    out.extend(chars.by_ref().take(SHOWN));
    if chars.next().is_some() {
        out.push('\u{2026}');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_difference_is_named() {
        let long = "same ".repeat(20);
        let table = [
            (
                json!({"a": [1, {"b": "x"}]}),
                json!({"a": [1, {"b": "y"}]}),
                "/a/1/b: \"x\" | \"y\"",
            ),
            (json!({"a": 1}), json!({}), "/a: 1 | nothing"),
            (json!([1]), json!([1, 2]), "/1: nothing | 2"),
            (json!({"a/b": null}), json!({"a/b": 0}), "/a~1b: null | 0"),
            (
                json!(format!("{long}old")),
                json!(format!("{long}new")),
                ": \"\u{2026}ame same same same same old\" | \"\u{2026}ame same same same same new\"",
            ),
        ];
        for (a, b, want) in table {
            let (pointer, w, g) = first_difference(&a, &b).unwrap();
            assert_eq!(format!("{pointer}: {w} | {g}"), want);
            assert_eq!(first_difference(&a, &a), None);
        }
    }
}
