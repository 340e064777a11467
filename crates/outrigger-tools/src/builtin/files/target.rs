//! The file that `edit` or `write` changes, and the question about it.

use serde_json::{Value, json};

use crate::builtin::text;
use crate::edits::diff::Diff;
use crate::error::ToolError;
use crate::files::{Kind, Located, locate};
use crate::host::{PermissionAsk, ToolContext};

/// Returns the file of `filePath`.
///
/// # Errors
/// There is none, or the path may not be used.
pub(in crate::builtin) fn target(input: &Value, ctx: &ToolContext) -> Result<Located, ToolError> {
    match text(input, "filePath") {
        "" => Err(ToolError::failed("filePath is required")),
        path => locate(ctx, path),
    }
}

/// Asks about a change of a file, with its diff.
pub(in crate::builtin) fn ask_edit(
    at: &Located,
    diff: Option<&Diff>,
    ctx: &ToolContext,
) -> PermissionAsk {
    PermissionAsk {
        permission: "edit".to_owned(),
        patterns: at.patterns(ctx),
        always: vec!["*".to_owned()],
        metadata: json!({"filepath": at.shown, "diff": diff.map_or("", |d| d.patch.as_str())}),
        ..PermissionAsk::default()
    }
}

/// Asks about a change of a file that this host does not access.
pub(in crate::builtin) fn ask_edit_elsewhere(
    at: &Located,
    ctx: &ToolContext,
) -> Vec<PermissionAsk> {
    at.ask_outside(Kind::File)
        .into_iter()
        .chain([ask_edit(at, None, ctx)])
        .collect()
}
