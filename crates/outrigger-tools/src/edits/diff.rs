//! Unified diffs in OpenCode's form.

use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};
use std::path::Path;
use std::time::Duration;

use std::fmt::Write;

// Lines of context around a change, as in OpenCode.
const CONTEXT: usize = 4;
// After this the algorithm settles for a diff that is correct but not minimal.
const DIFF_TIMEOUT: Duration = Duration::from_secs(1);
// Contents up to this many bytes are included whole in the metadata, so that a client can show the true texts before
// and after.
const MAX_SHOWN_BYTES: usize = 256 * 1024;

/// A diff with its statistics.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Diff {
    pub(crate) patch: String,
    pub(crate) additions: usize,
    pub(crate) deletions: usize,
}

/// Returns whether lines of a text end with `\r\n`, and whether some end with `\n` alone.
fn line_ends(text: &str) -> (bool, bool) {
    let windows = text.matches("\r\n").count();
    (windows > 0, text.matches('\n').count() > windows)
}

/// Compares two texts. Line ends are treated as `\n`, as in OpenCode, unless they are part of the change.
pub(crate) fn diff(path: &Path, before: &str, after: &str) -> Diff {
    let is_same = line_ends(before) == line_ends(after) && line_ends(after) != (true, true);
    let shown = |text: &str| {
        if is_same {
            text.replace("\r\n", "\n")
        } else {
            text.to_owned()
        }
    };
    let (before, after) = (shown(before), shown(after));
    let compared = TextDiff::configure()
        .timeout(DIFF_TIMEOUT)
        .diff_lines(&before, &after);
    let path = path.display();
    let mut patch = format!(
        "Index: {path}\n{}\n--- {path}\n+++ {path}\n",
        "=".repeat(67)
    );
    let (mut additions, mut deletions) = (0, 0);
    for group in compared.grouped_ops(CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let old = first.old_range().start..last.old_range().end;
        let new = first.new_range().start..last.new_range().end;
        // Writing to a String cannot fail.
        let _ = writeln!(patch, "@@ -{} +{} @@", span(&old), span(&new));
        for change in group.iter().flat_map(|op| compared.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Delete => {
                    deletions += 1;
                    '-'
                }
                ChangeTag::Insert => {
                    additions += 1;
                    '+'
                }
                ChangeTag::Equal => ' ',
            };
            let line = change.value();
            patch.push(sign);
            patch.push_str(line);
            if !line.ends_with('\n') {
                patch.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    Diff {
        patch,
        additions,
        deletions,
    }
}

// OpenCode always writes the count, and an empty range starts at the line before it.
fn span(range: &std::ops::Range<usize>) -> String {
    let start = if range.is_empty() {
        range.start
    } else {
        range.start + 1
    };
    format!("{start},{}", range.len())
}

impl Diff {
    /// Returns `filediff` of the metadata. `before` and `after` are ours (E3: the true contents), the other keys
    /// OpenCode's.
    pub(crate) fn filediff(&self, path: &Path, before: &str, after: &str) -> Value {
        let mut value = json!({
            "file": path,
            "patch": self.patch,
            "additions": self.additions,
            "deletions": self.deletions,
        });
        if before.len() <= MAX_SHOWN_BYTES
            && after.len() <= MAX_SHOWN_BYTES
            && let Value::Object(fields) = &mut value
        {
            fields.insert("before".to_owned(), json!(before));
            fields.insert("after".to_owned(), json!(after));
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunks(before: &str, after: &str) -> String {
        let patch = diff(Path::new("/p/f"), before, after).patch;
        patch.splitn(5, '\n').last().unwrap_or_default().to_owned()
    }

    #[test]
    fn the_header_is_opencodes() {
        let found = diff(Path::new("/p/hello.txt"), "hi there\n", "bye there\n");
        insta::assert_snapshot!(found.patch, @r"
        Index: /p/hello.txt
        ===================================================================
        --- /p/hello.txt
        +++ /p/hello.txt
        @@ -1,1 +1,1 @@
        -hi there
        +bye there
        ");
        assert_eq!((found.additions, found.deletions), (1, 1));
    }

    #[test]
    fn hunks_are_written_as_opencode_writes_them() {
        assert_eq!(hunks("", "made\n"), "@@ -0,0 +1,1 @@\n+made\n");
        assert_eq!(
            hunks("one\ntwo", "one\nthree"),
            "@@ -1,2 +1,2 @@\n one\n-two\n\\ No newline at end of file\n+three\n\\ No newline at end of file\n"
        );
        assert_eq!(
            hunks("one\r\ntwo\r\nthree\r\n", "1\r\n2\r\nthree\r\n"),
            "@@ -1,3 +1,3 @@\n-one\n-two\n+1\n+2\n three\n"
        );
        // Line ends are shown where they change.
        assert_eq!(
            hunks("a\nb\n", "a\r\nb\n"),
            "@@ -1,2 +1,2 @@\n-a\n+a\r\n b\n"
        );
        assert_eq!(
            hunks("", "#!/bin/sh\r\n"),
            "@@ -0,0 +1,1 @@\n+#!/bin/sh\r\n"
        );
        let lines: String = (1..=20).map(|n| format!("{n}\n")).collect();
        assert_eq!(
            hunks(&lines, &lines.replace("\n5\n", "\n")),
            "@@ -1,9 +1,8 @@\n 1\n 2\n 3\n 4\n-5\n 6\n 7\n 8\n 9\n"
        );
    }
}
