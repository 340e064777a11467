//! Files that a session changed, for its summary and its diff.

use std::collections::BTreeMap;
use std::path::Path;

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
    /// Known by the files' trees only.
    adopted: bool,
}

/// Changes by file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Changes {
    files: BTreeMap<String, FileChange>,
}

impl Changes {
    /// What the stored history says.
    pub(crate) fn of(history: &[MessageWithParts], worktree: &Path) -> Self {
        let mut changes = Self::default();
        for part in history.iter().flat_map(|message| &message.parts) {
            if let PartKind::Tool(call) = &part.kind
                && let ToolState::Completed { metadata, .. } = &call.state
            {
                changes.add(metadata);
            }
        }
        for message in history {
            if let MessageInfo::User(user) = &message.info
                && let Some(summary) = &user.summary
                && let Some(diffs) = summary.get("diffs").and_then(Value::as_array)
            {
                changes.adopt(diffs, worktree);
            }
        }
        changes
    }

    /// Adds what the files themselves say, for files that no tool reported: those that a shell command wrote.
    pub(crate) fn adopt(&mut self, diffs: &[Value], worktree: &Path) {
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
            self.files.insert(file, change);
        }
    }

    /// Adds what a tool reported under `filediff`; other tools report nothing.
    pub(crate) fn add(&mut self, metadata: &Value) {
        let Some(diff) = metadata.get("filediff") else {
            return;
        };
        let text = |key: &str| diff.get(key).and_then(Value::as_str).map(str::to_owned);
        let number = |key: &str| diff.get(key).and_then(Value::as_u64).unwrap_or(0);
        let Some(file) = text("file") else { return };
        let first = !self.files.contains_key(&file);
        let change = self.files.entry(file.clone()).or_default();
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
            // A file too large to be reported whole: the sum of its changes is the best there is.
            change.additions += number("additions");
            change.deletions += number("deletions");
            change.patch = text("patch").unwrap_or_default();
        }
    }

    /// The entries of `session.diff`.
    pub(crate) fn list(&self) -> Vec<Value> {
        let entry = |(file, change): (&String, &FileChange)| {
            json!({
                "file": file, "patch": change.patch, "additions": change.additions, "deletions": change.deletions,
                "status": if change.created { "added" } else if change.deleted { "deleted" } else { "modified" },
            })
        };
        self.files.iter().map(entry).collect()
    }

    /// The counts for the session's record.
    pub(crate) fn summary(&self) -> SessionSummary {
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
}
