//! A change of Codex as the text of `apply_patch`, about which rules, hooks and the user are asked: complete, or it is refused.

use serde_json::Value;

use crate::calls::text;

/// A change of one file.
pub(crate) struct Change<'v> {
    pub(crate) path: &'v str,
    pub(crate) kind: &'v str,
    pub(crate) diff: &'v str,
    to: Option<&'v str>,
}

pub(crate) fn changes(item: &Value) -> impl Iterator<Item = Change<'_>> {
    item.get("changes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|change| {
            let of = |pointer| text(change, pointer).unwrap_or_default();
            Change {
                path: of("/path"),
                kind: of("/kind/type"),
                diff: of("/diff"),
                to: text(change, "/kind/move_path"),
            }
        })
}

/// Returns the complete change; `None` if the patch language cannot represent it.
pub(crate) fn patch(item: &Value) -> Option<String> {
    let mut out = "*** Begin Patch\n".to_owned();
    for change in changes(item) {
        let path = named(change.path)?;
        match change.kind {
            "add" => {
                out.push_str(&format!("*** Add File: {path}\n"));
                for line in change.diff.lines() {
                    out.push_str(&format!("+{line}\n"));
                }
            }
            "delete" => out.push_str(&format!("*** Delete File: {path}\n")),
            "update" => update(&mut out, &change)?,
            _ => return None,
        }
    }
    out.push_str("*** End Patch");
    Some(out)
}

fn update(out: &mut String, change: &Change<'_>) -> Option<()> {
    out.push_str(&format!("*** Update File: {}\n", named(change.path)?));
    let mut diff = change.diff;
    if let Some(to) = change.to {
        let to = named(to)?;
        out.push_str(&format!("*** Move to: {to}\n"));
        // Codex repeats it after the diff.
        diff = diff
            .trim_end()
            .strip_suffix(&format!("Moved to: {to}"))
            .map_or(diff, str::trim_end);
    }
    if !diff.is_empty() && !diff.starts_with("@@") {
        return None;
    }
    for line in diff.lines() {
        match line.chars().next() {
            Some('@') if line.starts_with("@@") => out.push_str("@@"),
            // A line of the file that ends a patch would cut off the rest.
            Some(' ' | '+' | '-') if !is_marker(line) => out.push_str(line),
            Some('\\') => continue,
            None => out.push(' '),
            Some(_) => return None,
        }
        out.push('\n');
    }
    Some(())
}

fn is_marker(line: &str) -> bool {
    ["*** Begin Patch", "*** End Patch"].contains(&line.trim())
}

/// Returns a path that is one line and unchanged when parsed.
fn named(path: &str) -> Option<&str> {
    let is_said = !path.is_empty() && path.trim() == path && !path.contains(['\n', '\r']);
    is_said.then_some(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_is_a_patch() {
        let kind = |kind: &str| json!({ "type": kind });
        let moved = json!({ "type": "update", "move_path": "/p/e" });
        let item = json!({ "changes": [
            { "path": "/p/a", "kind": kind("update"), "diff": "@@ -1 +1 @@\n-one\n+two\n" },
            { "path": "/p/b", "kind": kind("add"), "diff": "new\n" },
            { "path": "/p/c", "kind": kind("delete"), "diff": "old\n" },
            { "path": "/p/d", "kind": moved, "diff": "@@ -1 +1 @@\n-one\n+two\n\n\nMoved to: /p/e" },
        ] });
        let text = "*** Begin Patch\n*** Update File: /p/a\n@@\n-one\n+two\n*** Add File: /p/b\n+new\n*** Delete File: /p/c\n*** Update File: /p/d\n*** Move to: /p/e\n@@\n-one\n+two\n*** End Patch";
        assert_eq!(patch(&item).as_deref(), Some(text));
    }

    #[test]
    fn a_change_that_no_patch_can_say_is_none() {
        let of = |path: &str, kind: &str, diff: &str| {
            let change = json!({ "path": path, "kind": { "type": kind }, "diff": diff });
            patch(&json!({ "changes": [change] }))
        };
        assert!(of("/p/a", "update", "@@\n a\n-b\n+c\n").is_some());
        for (path, kind, diff) in [
            ("/p/a", "update", "@@\n *** End Patch\n-b\n+c\n"),
            ("/p/a", "update", "@@\n   *** Begin Patch\n-b\n+c\n"),
            ("/p/a", "update", "*** Add File: /p/x\n+c\n"),
            ("/p/a", "update", "@@\n*** Add File: /p/x\n+c\n"),
            ("/p/a\n*** Delete File: /p/b", "add", ""),
            ("/p/a ", "add", ""),
            ("", "delete", ""),
            ("/p/a", "rename", ""),
        ] {
            assert_eq!(of(path, kind, diff), None, "{path:?} {kind} {diff:?}");
        }
    }
}
