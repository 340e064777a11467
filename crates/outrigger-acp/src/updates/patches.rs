//! The content before and after, reconstructed from a unified diff.

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
