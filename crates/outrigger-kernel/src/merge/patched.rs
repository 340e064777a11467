//! `apply_patch`: one line that names the files.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use outrigger_protocol::Object;
use outrigger_protocol::merged::{ConversationMessage, Details};
use serde_json::{Value, json};

use super::processors::{ToolProcessor, failed, reported};

/// Maximum number of names shown; a patch may have many.
const MAX_NAMED: usize = 5;

/// `apply_patch`.
pub(super) struct Patched;

impl ToolProcessor for Patched {
    fn tools(&self) -> &[&str] {
        &["apply_patch"]
    }
    /// Returns the patch for one file, or the list of several files: the changes of each are in `changes`.
    fn details(&self, _: &ConversationMessage, result: &ConversationMessage) -> Option<Details> {
        if failed(result) {
            return None;
        }
        let files = reported(result, "/files")?.as_array()?;
        match files.as_slice() {
            [one] => change(one),
            _ => Some(Details::FileList {
                files: files.iter().filter_map(path).collect(),
            }),
        }
    }
    fn more(&self, _: &ConversationMessage, result: &ConversationMessage) -> Object {
        let files = reported(result, "/files").and_then(Value::as_array);
        let files = files.filter(|files| files.len() > 1 && !failed(result));
        let changes: Vec<Details> = files.into_iter().flatten().filter_map(change).collect();
        let mut more = Object::new();
        if !changes.is_empty() {
            more.insert("changes".into(), json!(changes));
        }
        more
    }
    fn summary(
        &self,
        _: &ConversationMessage,
        result: &ConversationMessage,
        _: Option<&Details>,
    ) -> Option<String> {
        if failed(result) {
            return None;
        }
        let files = reported(result, "/files")?.as_array()?;
        let sign = |file: &Value| match file.get("type").and_then(Value::as_str) {
            Some("add") => "+",
            Some("delete") => "-",
            _ => "",
        };
        let names: Vec<String> = files
            .iter()
            .filter_map(|file| {
                let name = file.get("relativePath")?.as_str()?;
                Some(format!("{}{name}", sign(file)))
            })
            .collect();
        let more = names.len().saturating_sub(MAX_NAMED);
        let shown = names.get(..MAX_NAMED).unwrap_or(&names).join(", ");
        Some(if more == 0 {
            format!("Patched {shown}").trim_end().to_string()
        } else {
            format!("Patched {shown} and {more} more")
        })
    }
}

fn path(file: &Value) -> Option<String> {
    Some(file.get("relativePath")?.as_str()?.to_string())
}

/// Returns what a unified diff shows of a file before and after.
fn change(file: &Value) -> Option<Details> {
    let patch = file.get("patch")?.as_str()?;
    let (mut old, mut new) = (String::new(), String::new());
    let hunks = patch.lines().skip_while(|line| !line.starts_with("@@"));
    for line in hunks.filter(|line| !line.starts_with("@@")) {
        let (mark, text) = line.split_at_checked(1).unwrap_or((" ", ""));
        for (side, other) in [(&mut old, "+"), (&mut new, "-")] {
            // A backslash line marks a missing newline at the end.
            if mark != other && mark != "\\" {
                side.push_str(text);
                side.push('\n');
            }
        }
    }
    Some(Details::Diff {
        old_content: old,
        new_content: new,
        path: path(file),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn message(metadata: &Value) -> ConversationMessage {
        let message = json!({
            "id": "m", "role": "assistant", "messageType": "tool_result", "content": "", "timestamp": 1, "metadata": metadata,
        });
        serde_json::from_value(message).unwrap()
    }

    #[test]
    fn one_file_is_a_diff_and_several_are_a_list_with_their_diffs() {
        let patch = "Index: a\n--- a\n+++ a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n\\ No newline at end of file\n";
        let file = |name: &str| json!({ "type": "update", "relativePath": name, "patch": patch });
        let diff = |name: &str| Details::Diff {
            old_content: "one\ntwo\n".into(),
            new_content: "one\n2\n".into(),
            path: Some(name.into()),
        };
        let one = message(&json!({ "metadata": { "files": [file("a")] } }));
        assert_eq!(Patched.details(&one, &one), Some(diff("a")));
        assert!(Patched.more(&one, &one).is_empty());
        let two = message(&json!({ "metadata": { "files": [file("a"), file("b")] } }));
        let files = vec!["a".to_string(), "b".to_string()];
        assert_eq!(
            Patched.details(&two, &two),
            Some(Details::FileList { files })
        );
        assert_eq!(
            Patched.more(&two, &two)["changes"],
            json!([diff("a"), diff("b")])
        );
        let failed = message(&json!({ "is_error": true, "metadata": { "files": [file("a")] } }));
        assert_eq!(Patched.details(&failed, &failed), None);
    }

    fn said(metadata: &Value) -> Option<String> {
        let message = message(metadata);
        Patched.summary(&message, &message, None)
    }

    #[test]
    fn files_are_named_up_to_a_limit() {
        let file = |kind: &str, name: &str| json!({ "type": kind, "relativePath": name });
        let files = [file("add", "a"), file("delete", "b"), file("move", "c")];
        let of = |files: &[Value]| json!({ "metadata": { "files": files } });
        assert_eq!(said(&of(&files)).as_deref(), Some("Patched +a, -b, c"));
        let many: Vec<Value> = (0..7).map(|n| file("update", &n.to_string())).collect();
        assert_eq!(
            said(&of(&many)).as_deref(),
            Some("Patched 0, 1, 2, 3, 4 and 2 more")
        );
        assert_eq!(said(&json!({ "metadata": {} })), None);
        assert_eq!(
            said(&json!({ "is_error": true, "metadata": { "files": [] } })),
            None
        );
    }
}
