//! The difference of two snapshots.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use super::{SnapshotError, Snapshots, checked};

/// Maximum bytes of a file whose patch contains all of it, so that clients can show the whole file (as in
/// OpenCode).
const WHOLE: usize = 64 * 1024;
/// After this time a comparison becomes coarser.
const COMPARE_TIMEOUT: Duration = Duration::from_millis(500);

/// One file of a difference.
#[derive(Clone, Debug, PartialEq)]
pub struct FileDiff {
    /// Path relative to the project's root.
    pub file: String,
    /// `added`, `deleted`, `modified`.
    pub status: &'static str,
    /// Lines added.
    pub additions: u64,
    /// Lines removed.
    pub deletions: u64,
    /// Unified; empty for a binary file.
    pub patch: String,
}

impl FileDiff {
    /// Returns it in the form of messages and events.
    pub fn to_wire(&self) -> Value {
        json!({
            "file": self.file, "patch": self.patch, "additions": self.additions, "deletions": self.deletions,
            "status": self.status,
        })
    }
}

struct Entry {
    file: String,
    before: Option<String>,
    after: Option<String>,
}

impl Snapshots {
    /// Returns the files that differ, by name.
    ///
    /// # Errors
    /// Those of git, and [`SnapshotError::Tree`].
    pub async fn changed(&self, from: &str, to: &str) -> Result<Vec<String>, SnapshotError> {
        let entries = self.entries(from, to).await?;
        Ok(entries.into_iter().map(|entry| entry.file).collect())
    }

    /// Returns the files that differ, with their patches.
    ///
    /// # Errors
    /// Those of git, and [`SnapshotError::Tree`].
    pub async fn diff(&self, from: &str, to: &str) -> Result<Vec<FileDiff>, SnapshotError> {
        let entries = self.entries(from, to).await?;
        let wanted: Vec<&str> = entries
            .iter()
            .flat_map(|entry| [&entry.before, &entry.after])
            .filter_map(|object| object.as_deref())
            .collect();
        let contents = self.contents(&wanted).await?;
        Ok(entries
            .iter()
            .map(|entry| compare(entry, &contents))
            .collect())
    }

    async fn entries(&self, from: &str, to: &str) -> Result<Vec<Entry>, SnapshotError> {
        if from == to {
            return Ok(Vec::new());
        }
        checked(from)?;
        checked(to)?;
        let raw = [
            "diff-tree",
            "-r",
            "-z",
            "--raw",
            "--no-renames",
            "--no-abbrev",
            "--end-of-options",
            from,
            to,
        ];
        let out = self.git(&raw, None).await?;
        let mut fields = out.split(|byte| *byte == 0);
        let mut entries = Vec::new();
        while let (Some(about), Some(name)) = (fields.next(), fields.next()) {
            let about = String::from_utf8_lossy(about).into_owned();
            let words: Vec<&str> = about.trim_start_matches(':').split(' ').collect();
            let (Some(before), Some(after), Ok(file)) =
                (words.get(2), words.get(3), String::from_utf8(name.to_vec()))
            else {
                continue;
            };
            let object = |id: &str| id.bytes().any(|byte| byte != b'0').then(|| id.to_owned());
            entries.push(Entry {
                file,
                before: object(before),
                after: object(after),
            });
        }
        Ok(entries)
    }

    async fn contents(&self, wanted: &[&str]) -> Result<HashMap<String, Vec<u8>>, SnapshotError> {
        let mut contents = HashMap::new();
        if wanted.is_empty() {
            return Ok(contents);
        }
        let input = format!("{}\n", wanted.join("\n"));
        let out = self
            .git(&["cat-file", "--batch"], Some(input.into_bytes()))
            .await?;
        let mut rest = out.as_slice();
        // `NAME blob SIZE`, the bytes, a line end. Truncated content is treated as binary.
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let head = String::from_utf8_lossy(rest.get(..end).unwrap_or_default()).into_owned();
            rest = rest.get(end + 1..).unwrap_or_default();
            let words: Vec<&str> = head.split(' ').collect();
            let [name, _, size] = words.as_slice() else {
                continue;
            };
            let Some(bytes) = size.parse().ok().and_then(|size: usize| rest.get(..size)) else {
                break;
            };
            contents.insert((*name).to_owned(), bytes.to_vec());
            rest = rest.get(bytes.len() + 1..).unwrap_or_default();
        }
        Ok(contents)
    }
}

fn compare(entry: &Entry, contents: &HashMap<String, Vec<u8>>) -> FileDiff {
    let status = match (&entry.before, &entry.after) {
        (None, _) => "added",
        (_, None) => "deleted",
        _ => "modified",
    };
    let text = |object: &Option<String>| match object {
        None => Some(String::new()),
        Some(id) => contents
            .get(id)
            .filter(|bytes| !bytes.contains(&0))
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
    };
    let mut found = FileDiff {
        file: entry.file.clone(),
        status,
        additions: 0,
        deletions: 0,
        patch: String::new(),
    };
    let (Some(before), Some(after)) = (text(&entry.before), text(&entry.after)) else {
        return found;
    };
    let diff = TextDiff::configure()
        .timeout(COMPARE_TIMEOUT)
        .diff_lines(before.as_str(), after.as_str());
    let count = |tag| diff.iter_all_changes().filter(|c| c.tag() == tag).count() as u64;
    found.additions = count(ChangeTag::Insert);
    found.deletions = count(ChangeTag::Delete);
    let whole = before.len().max(after.len()) <= WHOLE;
    found.patch = diff
        .unified_diff()
        .context_radius(if whole { usize::MAX / 4 } else { 3 })
        .header(&entry.file, &entry.file)
        .to_string();
    found
}
