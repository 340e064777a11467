//! The compared view of a request, without what differs between two runs of the same conversation.

use std::path::Path;

use outrigger_protocol::model::{ChatMessage, Content, ModelRequest};
use serde_json::{Value, json};

/// Placeholder of the working directory.
pub(crate) const DIR: &str = "{DIR}";

/// Returns the spellings of the working directory in texts: as given, and with symbolic links resolved; the
/// longer one first.
pub(crate) fn directory_names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = [Some(directory.to_path_buf()), directory.canonicalize().ok()]
        .into_iter()
        .flatten()
        .filter_map(|p| p.to_str().map(|s| s.trim_end_matches('/').to_owned()))
        .filter(|s| s.len() > 1)
        .collect();
    names.sort_by_key(|n| std::cmp::Reverse(n.len()));
    names.dedup();
    names
}

/// Replaces the working directory with `{DIR}`.
pub(crate) fn hide_directory(text: &str, names: &[String]) -> String {
    names.iter().fold(text.to_owned(), |text, name| {
        if !text.contains(name.as_str()) {
            return text;
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(at) = rest.find(name.as_str()) {
            let (before, from) = rest.split_at(at);
            let after = from.get(name.len()..).unwrap_or_default();
            let whole = !after.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-'));
            out.push_str(before);
            out.push_str(if whole { DIR } else { name });
            rest = after;
        }
        out.push_str(rest);
        out
    })
}

/// Applies a function to every text in a value, except keys.
pub(crate) fn map_text(value: &mut Value, f: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = f(text),
        Value::Array(items) => items.iter_mut().for_each(|v| map_text(v, f)),
        Value::Object(map) => map.values_mut().for_each(|v| map_text(v, f)),
        _ => {}
    }
}

/// Returns the view of a request. Call identifiers become numbers in order of appearance; reasoning is
/// omitted.
pub(crate) fn view(request: &ModelRequest, names: &[String], with_system: bool) -> Value {
    let clean = |text: &str| normal(&hide_directory(text, names));
    let mut ids: Vec<String> = Vec::new();
    let mut messages: Vec<Value> = Vec::new();
    for message in request.messages.iter() {
        match &**message {
            ChatMessage::System { content } => {
                if with_system {
                    messages.push(json!({"role": "system", "text": clean(content)}));
                }
            }
            ChatMessage::User { content } => messages.push(said("user", content, &clean, &mut ids)),
            ChatMessage::Assistant { content } => {
                messages.push(said("assistant", content, &clean, &mut ids))
            }
            ChatMessage::Tool {
                call_id,
                tool,
                content,
                is_error,
            } => {
                let call = ids.iter().rposition(|i| i == call_id).map_or(0, |p| p + 1);
                messages.push(json!({"role": "tool", "call": call, "tool": tool, "text": clean(content), "error": is_error}));
            }
        }
    }
    let mut tools: Vec<&str> = request.tools.iter().map(|t| t.name.as_str()).collect();
    tools.sort_unstable();
    json!({"messages": messages, "tools": tools})
}

fn said(
    role: &str,
    content: &[Content],
    clean: &impl Fn(&str) -> String,
    ids: &mut Vec<String>,
) -> Value {
    let (mut texts, mut calls, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for part in content {
        match part {
            Content::Text { text } => texts.push(clean(text)),
            Content::File { mime, .. } => files.push(mime.clone()),
            Content::ToolCall {
                call_id,
                tool,
                input,
                ..
            } => {
                ids.push(call_id.clone());
                let mut input = input.clone();
                map_text(&mut input, clean);
                calls.push(json!({"tool": tool, "input": input}));
            }
            Content::Reasoning { .. } => {}
        }
    }
    let mut out = json!({"role": role, "text": texts.join("\n")});
    if let Some(map) = out.as_object_mut() {
        if !calls.is_empty() {
            map.insert("calls".into(), calls.into());
        }
        if !files.is_empty() {
            map.insert("files".into(), files.into());
        }
    }
    out
}

/// Replaces our identifiers with `{ID}`, and dates, times of day, durations and epoch milliseconds with
/// `{TIME}`.
fn normal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_word = false;
    while let Some(first) = rest.chars().next() {
        let found = if in_word { None } else { variable(rest, &out) };
        if let Some((length, stand_in)) = found {
            out.push_str(stand_in);
            rest = rest.get(length..).unwrap_or_default();
            in_word = true;
            continue;
        }
        out.push(first);
        in_word = first.is_alphanumeric() || first == '_';
        // The second half of a number with a dot must not look like a separate number.
        if first == '.'
            && out
                .trim_end_matches('.')
                .ends_with(|c: char| c.is_ascii_digit())
        {
            in_word = true;
        }
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
    }
    out
}

const ID_PREFIXES: &[&str] = &[
    "ses_", "msg_", "prt_", "evt_", "per_", "trn_", "call_", "toolu_",
];
const UNITS: &[&str] = &[
    "milliseconds",
    "microseconds",
    "seconds",
    "second",
    "minutes",
    "minute",
    "secs",
    "sec",
    "mins",
    "min",
    "ms",
    "us",
    "\u{b5}s",
    "\u{3bc}s",
    "ns",
    "s",
];

// Returns the length of a variable piece at the start of `rest`, and its placeholder.
fn variable(rest: &str, before: &str) -> Option<(usize, &'static str)> {
    let first = rest.bytes().next()?;
    if first.is_ascii_lowercase() {
        let prefix = ID_PREFIXES.iter().find(|p| rest.starts_with(**p))?;
        let tail = rest.get(prefix.len()..)?;
        let length = tail
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(tail.len());
        return (length >= 6).then_some((prefix.len() + length, "{ID}"));
    }
    if !first.is_ascii_digit() {
        return None;
    }
    let length = date(rest)
        .or_else(|| clock(rest))
        .or_else(|| duration(rest, before))?;
    let next = rest.get(length..)?.chars().next();
    (!next.is_some_and(|c| c.is_alphanumeric() || c == '_')).then_some((length, "{TIME}"))
}

// Matches a pattern in which `9` is any digit.
fn shape(text: &str, pattern: &str) -> bool {
    text.len() >= pattern.len()
        && text.bytes().zip(pattern.bytes()).all(|(c, p)| {
            if p == b'9' {
                c.is_ascii_digit()
            } else {
                c == p
            }
        })
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn fraction(text: &str) -> usize {
    match text.strip_prefix(['.', ',']).map(digits) {
        Some(n) if n > 0 => n + 1,
        _ => 0,
    }
}

fn date(text: &str) -> Option<usize> {
    if !shape(text, "9999-99-99") {
        return None;
    }
    let mut length = 10;
    let tail = text.get(length..)?;
    if tail.starts_with(['T', ' '])
        && let Some(time) = tail.get(1..).and_then(clock)
    {
        length += 1 + time;
    }
    Some(length)
}

fn clock(text: &str) -> Option<usize> {
    if !shape(text, "99:99:99") {
        return None;
    }
    let mut length = 8;
    length += fraction(text.get(length..)?);
    let tail = text.get(length..)?;
    if tail.starts_with('Z') {
        length += 1;
    } else if shape(tail, "+99:99") || shape(tail, "-99:99") {
        length += 6;
    }
    Some(length)
}

fn duration(text: &str, before: &str) -> Option<usize> {
    let whole = digits(text);
    let number = whole + fraction(text.get(whole..)?);
    // `duration_ms 1.25`, `"time_ms": 3`
    if before
        .trim_end_matches([' ', ':', '=', '"'])
        .ends_with("_ms")
    {
        return Some(number);
    }
    if whole == 13 && number == whole && text.starts_with('1') {
        return Some(number);
    }
    let tail = text.get(number..)?;
    let spaced = tail.strip_prefix(' ');
    let (gap, tail) = spaced.map_or((0, tail), |t| (1, t));
    UNITS
        .iter()
        .find(|u| {
            tail.strip_prefix(**u)
                .is_some_and(|t| !t.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        })
        .map(|u| number + gap + u.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_from_run_to_run_is_written_in_one_way() {
        for (text, want) in [
            ("ses_e0021b1d4ffeO44iN37LlQ5HLf done", "{ID} done"),
            ("session call_it a day", "session call_it a day"),
            ("at 2026-11-21T23:20:38.123Z.", "at {TIME}."),
            ("2026-11-21 23:20:38+01:00 x", "{TIME} x"),
            ("made 2026-11-21", "made {TIME}"),
            ("# duration_ms 12.5", "# duration_ms {TIME}"),
            (
                "ok in 0.03s, 12 ms, 5 seconds",
                "ok in {TIME}, {TIME}, {TIME}",
            ),
            ("epoch 1763767238123", "epoch {TIME}"),
            ("3 passed, v1.25 x10 12345", "3 passed, v1.25 x10 12345"),
            ("line 5 says 1.5.2s", "line 5 says 1.5.2s"),
            ("5 stones", "5 stones"),
        ] {
            assert_eq!(normal(text), want);
        }
    }

    #[test]
    fn the_directory_is_hidden_where_it_is_a_whole_name() {
        let names = vec!["/tmp/a".to_owned()];
        for (text, want) in [
            ("/tmp/a/b and /tmp/a", "{DIR}/b and {DIR}"),
            ("/tmp/ab /tmp/a-1 /tmp/a.", "/tmp/ab /tmp/a-1 {DIR}."),
        ] {
            assert_eq!(hide_directory(text, &names), want);
        }
    }
}
