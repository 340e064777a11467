//! The files of a change: what a question says of each, and the content before and after, reconstructed from a unified diff.

use std::path::Path;

use outrigger_protocol::permission::PermissionRequest;
use serde_json::{Value, json};

use super::calls;

/// A file of a patch, as our own `apply_patch` reports it in its question.
pub(crate) struct File<'a> {
    /// The file.
    from: &'a str,
    /// The destination of a move.
    pub(crate) to: Option<&'a str>,
    /// What is done to it: `add`, `update`, `move`, `delete`.
    kind: &'a str,
    /// The unified diff.
    pub(crate) patch: &'a str,
}

/// Returns whether the metadata of a question about a change are those of our own tool.
pub(crate) fn is_ours(request: &PermissionRequest, tool: Option<&str>) -> bool {
    tool.is_some_and(|tool| calls::kind(tool) == "edit")
        && request.provenance.replaced_tool_of().is_none()
}

/// Returns the files of a patch; none if the question is about something else.
pub(crate) fn files<'a>(request: &'a PermissionRequest, tool: Option<&str>) -> Vec<File<'a>> {
    if request.permission != "edit" || !is_ours(request, tool) {
        return Vec::new();
    }
    let files = request.metadata["files"].as_array().into_iter().flatten();
    let file = |file: &'a Value| {
        Some(File {
            from: file["filePath"].as_str()?,
            to: file["movePath"].as_str(),
            kind: file["type"].as_str().unwrap_or_default(),
            patch: file["patch"].as_str().unwrap_or_default(),
        })
    };
    files.filter_map(file).collect()
}

/// Returns the title of a question about a patch, which names each file.
pub(crate) fn title(files: &[File<'_>], folder: &Path) -> Option<String> {
    let one = |file: &File<'_>| {
        let from = calls::shown(file.from, folder);
        match (file.kind, file.to) {
            (_, Some(to)) => format!("Move {from} to {}", calls::shown(to, folder)),
            ("add", _) => format!("Write {from}"),
            ("delete", _) => format!("Delete {from}"),
            _ => format!("Edit {from}"),
        }
    };
    // Moves first: a long title is cut at its end.
    let (moved, others): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.to.is_some());
    let lines: Vec<String> = moved.into_iter().chain(others).map(one).collect();
    (!lines.is_empty()).then(|| calls::one_line(&lines.join(", ")))
}

/// Returns every file of a patch, for an editor that follows.
pub(crate) fn locations(files: &[File<'_>], folder: &Path) -> Vec<Value> {
    let paths = files.iter().flat_map(|file| [Some(file.from), file.to]);
    let place = |path: &str| json!({ "path": folder.join(path) });
    paths.flatten().map(place).collect()
}

/// A file in a diff.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// As the diff names it.
    pub(crate) path: String,
    /// `None` if the file is new.
    pub(crate) before: Option<String>,
    /// Empty if it is removed.
    pub(crate) after: String,
}

/// Returns the files of a diff, in order.
pub(crate) fn changes(diff: &str) -> Vec<Change> {
    let mut all: Vec<Change> = Vec::new();
    let mut is_in_hunk = false;
    let mut is_new = false;
    for line in diff.split_inclusive('\n') {
        if let Some(path) = line.strip_prefix("Index: ") {
            all.push(Change {
                path: path.trim_end().to_owned(),
                before: Some(String::new()),
                after: String::new(),
            });
            (is_in_hunk, is_new) = (false, false);
            continue;
        }
        let Some(change) = all.last_mut() else {
            continue;
        };
        if let Some(range) = line.strip_prefix("@@ -") {
            // A hunk of no lines at line 0 means that the file did not exist, or was empty.
            is_new |= range.starts_with("0,0 ");
            if is_in_hunk && !is_new {
                gap(change);
            }
            is_in_hunk = true;
        } else if is_in_hunk {
            add(change, line);
        }
        if is_new && change.before.as_deref() == Some("") {
            change.before = None;
        }
    }
    all
}

/// Marks a gap between two hunks, which the diff does not show.
fn gap(change: &mut Change) {
    change.after.push_str("…\n");
    if let Some(before) = &mut change.before {
        before.push_str("…\n");
    }
}

fn add(change: &mut Change, line: &str) {
    let (mark, text) = line.split_at_checked(1).unwrap_or((" ", ""));
    let no_end = |text: &mut String| {
        if text.ends_with('\n') {
            text.pop();
        }
    };
    if mark != "+" && mark != "\\" {
        change.before.get_or_insert_default().push_str(text);
    }
    if mark != "-" && mark != "\\" {
        change.after.push_str(text);
    }
    if mark == "\\" {
        // Refers to the line above, on either side.
        no_end(&mut change.after);
        if let Some(before) = &mut change.before {
            no_end(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_with_what_is_shown_of_it() {
        let diff = "Index: /p/a\n====\n--- /p/a\n+++ /p/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n@@ -9,1 +9,1 @@\n-x\n+y\n\
                    Index: /p/new\n====\n--- /p/new\n+++ /p/new\n@@ -0,0 +1,1 @@\n+text\n";
        let change = |path: &str, before: Option<&str>, after: &str| Change {
            path: path.to_owned(),
            before: before.map(str::to_owned),
            after: after.to_owned(),
        };
        let want = [
            change("/p/a", Some("one\ntwo\n…\nx\n"), "one\n2\n…\ny\n"),
            change("/p/new", None, "text\n"),
        ];
        assert_eq!(changes(diff), want);
        assert_eq!(changes("no diff"), []);
    }
}
