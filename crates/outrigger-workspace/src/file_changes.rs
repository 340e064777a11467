//! Files changed by a session, for its summary and its diff.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use outrigger_protocol::message::{MessageInfo, MessageWithParts, PartKind, ToolState};
use outrigger_protocol::session::SessionSummary;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

/// One file: from before its first change to after its last.
#[derive(Clone, Debug, Default, PartialEq)]
struct FileChange {
    before: Option<String>,
    after: Option<String>,
    additions: u64,
    deletions: u64,
    patch: String,
    created: bool,
    deleted: bool,
    /// Known only from the file snapshots.
    adopted: bool,
}

/// Changes by file. Cheap to clone: the texts of the files are shared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    files: BTreeMap<String, Arc<FileChange>>,
}

/// The changes in a stored history, read message by message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredChanges {
    /// Changes reported by tools.
    reported: Changes,
    /// Changes from snapshots. Used for files that no tool reported, before or after.
    adopted: Changes,
}

impl StoredChanges {
    /// Adds the next message.
    pub fn add(&mut self, message: &MessageWithParts, worktree: &Path) {
        for part in &message.parts {
            if let PartKind::Tool(call) = &part.kind
                && let ToolState::Completed { metadata, .. } = &call.state
            {
                self.reported.add(metadata);
            }
        }
        if let MessageInfo::User(user) = &message.info
            && let Some(summary) = &user.summary
            && let Some(diffs) = summary.get("diffs").and_then(Value::as_array)
        {
            self.adopted.adopt(diffs, worktree);
        }
    }

    /// Returns all changes.
    #[must_use]
    pub fn changes(&self) -> Changes {
        let mut changes = self.reported.clone();
        for (file, change) in &self.adopted.files {
            let file = changes.files.entry(file.clone());
            file.or_insert_with(|| Arc::clone(change));
        }
        changes
    }
}

impl Changes {
    /// Adds changes from snapshots, for files that no tool reported: those that a shell command wrote.
    pub fn adopt(&mut self, diffs: &[Value], worktree: &Path) {
        for diff in diffs {
            let text = |key: &str| diff.get(key).and_then(Value::as_str).unwrap_or_default();
            let number = |key: &str| diff.get(key).and_then(Value::as_u64).unwrap_or(0);
            let file = worktree.join(text("file")).display().to_string();
            let reported = self.files.get(&file).is_some_and(|change| !change.adopted);
            if reported {
                continue;
            }
            let change = FileChange {
                additions: number("additions"),
                deletions: number("deletions"),
                patch: text("patch").to_owned(),
                created: text("status") == "added",
                deleted: text("status") == "deleted",
                adopted: true,
                ..FileChange::default()
            };
            self.files.insert(file, Arc::new(change));
        }
    }

    /// Adds a file reported by `apply_patch`: it does not report contents, so the last patch represents all.
    fn add_patched(&mut self, file: &Value) {
        let text = |key: &str| file.get(key).and_then(Value::as_str);
        let number = |key: &str| file.get(key).and_then(Value::as_u64).unwrap_or(0);
        let Some(path) = text("filePath") else { return };
        let kind = text("type").unwrap_or_default();
        if !matches!(kind, "add" | "update" | "move" | "delete") {
            return;
        }
        let left = text("movePath").unwrap_or(path);
        if left != path {
            self.deleted(path);
        }
        if kind == "delete" && !self.deleted(path) {
            return;
        }
        let first = !self.files.contains_key(left);
        let change = Arc::make_mut(self.files.entry(left.to_owned()).or_default());
        change.adopted = false;
        change.created |= first && matches!(kind, "add" | "move");
        change.deleted = kind == "delete";
        // Later edits report only their own change: not the whole.
        (change.before, change.after) = (None, None);
        change.additions += number("additions");
        change.deletions += number("deletions");
        change.patch = text("patch").unwrap_or_default().to_owned();
    }

    /// Records a deletion; returns `false` if this session had created the file, so that no change remains.
    fn deleted(&mut self, path: &str) -> bool {
        if self.files.get(path).is_some_and(|change| change.created) {
            self.files.remove(path);
            return false;
        }
        let change = Arc::make_mut(self.files.entry(path.to_owned()).or_default());
        (change.adopted, change.deleted) = (false, true);
        true
    }

    /// Adds what a tool reported under `filediff` or `files`; other tools report nothing.
    pub fn add(&mut self, metadata: &Value) {
        let patched = metadata.get("files").and_then(Value::as_array);
        for file in patched.into_iter().flatten() {
            self.add_patched(file);
        }
        let Some(diff) = metadata.get("filediff") else {
            return;
        };
        let text = |key: &str| diff.get(key).and_then(Value::as_str).map(str::to_owned);
        let number = |key: &str| diff.get(key).and_then(Value::as_u64).unwrap_or(0);
        let Some(file) = text("file") else { return };
        let first = !self.files.contains_key(&file);
        let change = Arc::make_mut(self.files.entry(file.clone()).or_default());
        change.adopted = false;
        if first {
            change.before = text("before");
            change.created = metadata.get("exists").and_then(Value::as_bool) == Some(false);
        }
        change.after = text("after");
        if let (Some(before), Some(after)) = (&change.before, &change.after) {
            let whole = TextDiff::from_lines(before.as_str(), after.as_str());
            let count = |tag| whole.iter_all_changes().filter(|c| c.tag() == tag).count() as u64;
            (change.additions, change.deletions) =
                (count(ChangeTag::Insert), count(ChangeTag::Delete));
            change.patch = whole
                .unified_diff()
                .context_radius(3)
                .header(&file, &file)
                .to_string();
        } else {
            // A file too large to be reported whole: the sum of its changes is the best estimate.
            change.additions += number("additions");
            change.deletions += number("deletions");
            change.patch = text("patch").unwrap_or_default();
        }
    }

    /// Returns the entries of `session.diff`.
    pub fn list(&self) -> Vec<Value> {
        let entry = |(file, change): (&String, &Arc<FileChange>)| {
            json!({
                "file": file, "patch": change.patch, "additions": change.additions, "deletions": change.deletions,
                "status": if change.created { "added" } else if change.deleted { "deleted" } else { "modified" },
            })
        };
        self.files.iter().map(entry).collect()
    }

    /// Returns the counts for the session's record.
    pub fn summary(&self) -> SessionSummary {
        SessionSummary {
            additions: self.files.values().map(|c| c.additions).sum(),
            deletions: self.files.values().map(|c| c.deletions).sum(),
            files: self.files.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(before: &str, after: &str) -> Value {
        json!({ "filediff": { "file": "/p/a", "before": before, "after": after, "additions": 9, "deletions": 9, "patch": "p" } })
    }

    #[test]
    fn several_changes_of_a_file_are_one_from_first_to_last() {
        let mut changes = Changes::default();
        changes.add(&report("one\ntwo\n", "1\ntwo\n"));
        changes.add(&report("1\ntwo\n", "1\n2\n"));
        changes.add(&json!({ "exit": 0 }));
        assert_eq!(
            changes.summary(),
            SessionSummary {
                additions: 2,
                deletions: 2,
                files: 1
            }
        );
        changes.add(&report("1\n2\n", "one\ntwo\n"));
        assert_eq!(
            changes.summary(),
            SessionSummary {
                additions: 0,
                deletions: 0,
                files: 1
            }
        );
        let list = changes.list();
        assert_eq!(
            list.first().and_then(|d| d.get("status")),
            Some(&json!("modified"))
        );
    }

    #[test]
    fn files_without_contents_are_summed() {
        let mut changes = Changes::default();
        let diff = json!({ "exists": false, "filediff": { "file": "/p/b", "additions": 3, "deletions": 1, "patch": "p" } });
        changes.add(&diff);
        changes.add(&diff);
        assert_eq!(
            changes.summary(),
            SessionSummary {
                additions: 6,
                deletions: 2,
                files: 1
            }
        );
        assert_eq!(
            changes.list().first().and_then(|d| d.get("status")),
            Some(&json!("added"))
        );
    }

    #[test]
    fn the_files_of_a_patch_count() {
        let file = |path: &str, kind: &str, to: Option<&str>| json!({ "filePath": path, "type": kind, "additions": 2, "deletions": 1, "patch": "p", "movePath": to });
        for (patches, want) in [
            (vec![file("/a", "add", None)], "/a added 2 1"),
            (
                vec![file("/a", "update", None), file("/a", "update", None)],
                "/a modified 4 2",
            ),
            (vec![file("/a", "delete", None)], "/a deleted 2 1"),
            (
                vec![file("/a", "move", Some("/b"))],
                "/a deleted 0 0, /b added 2 1",
            ),
            (
                vec![file("/a", "add", None), file("/a", "delete", None)],
                "",
            ),
            (
                vec![file("/a", "add", None), file("/a", "move", Some("/b"))],
                "/b added 2 1",
            ),
            (
                vec![file("/a", "delete", None), file("/a", "update", None)],
                "/a modified 4 2",
            ),
        ] {
            let mut changes = Changes::default();
            for patch in &patches {
                changes.add(&json!({ "files": [patch] }));
            }
            let list: Vec<String> = changes
                .list()
                .iter()
                .map(|c| {
                    format!(
                        "{} {} {} {}",
                        c["file"].as_str().unwrap(),
                        c["status"].as_str().unwrap(),
                        c["additions"],
                        c["deletions"]
                    )
                })
                .collect();
            assert_eq!(list.join(", "), want, "{patches:?}");
        }
    }
}
