//! `glob`: finds files by name.

use std::io::ErrorKind;

use futures_util::future::BoxFuture;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use outrigger_sandbox::paths::stands;
use serde_json::{Value, json};

use super::{FileFilter, Found, MAX_RESULTS, Walk, asks, root, shown};
use crate::builtin::{reading, spec, text};
use crate::error::ToolError;
use crate::files::Located;
use crate::host::{PermissionAsk, ToolContext};
use crate::tool::Tool;

const DESCRIPTION: &str = r"
Finds files by name. Returns at most 100 absolute paths, newest file first.

- pattern: `*.rs` matches at any depth, `src/**/*.ts` below the searched folder, `*.{js,ts}` either extension.
- path: the folder to search (default: the working directory). Omit it rather than guess.
- Files ignored by .gitignore are skipped.
";

// Maximum number of files held in memory; the oldest are dropped.
const MAX_HELD: usize = 10_000;

/// The glob tool.
pub(in crate::builtin) struct Glob {
    spec: ToolSpec,
}

impl Glob {
    pub(in crate::builtin) fn new() -> Self {
        Self {
            spec: reading(spec(
                "glob",
                DESCRIPTION,
                json!({"pattern": {"type": "string"}, "path": {"type": "string"}}),
                &["pattern"],
            )),
        }
    }
}

// A pattern with an absolute path searches the folder that it starts with.
fn target<'a>(input: &'a Value, ctx: &ToolContext) -> Result<(Located, &'a str), ToolError> {
    let pattern = text(input, "pattern");
    if pattern.is_empty() {
        return Err(ToolError::failed("pattern is required"));
    }
    if !pattern.starts_with('/') {
        return Ok((root(text(input, "path"), ctx)?, pattern));
    }
    let special = pattern.find(['*', '?', '[', '{']).unwrap_or(pattern.len());
    let cut = pattern[..special].rfind('/').map_or(0, |at| at + 1);
    let (folder, rest) = pattern.split_at(cut);
    // Anchored, so that `/p/*.rs` does not also match deeper files.
    Ok((root(folder, ctx)?, if rest.is_empty() { "*" } else { rest }))
}

fn find(
    root: &Located,
    pattern: &str,
    anchored: bool,
    ctx: &ToolContext,
) -> Result<Newest, ToolError> {
    if root.real.is_file() {
        return Err(ToolError::failed(format!(
            "glob path must be a directory: {}",
            root.shown.display()
        )));
    }
    if !root.real.is_dir() {
        return Err(ToolError::failed(format!(
            "There is no directory {}",
            root.shown.display()
        )));
    }
    let pattern = if anchored {
        format!("/{pattern}")
    } else {
        pattern.to_owned()
    };
    let wanted = FileFilter::new(&root.real, Some(&pattern))?;
    let walk = Walk::new(&root.real, wanted, |_| true, ctx);
    let found = walk.run(Newest::default, |found, entry| {
        let meta = entry.metadata().ok();
        if !walk.denies(|| meta.clone().ok_or(ErrorKind::NotFound.into())) {
            found.add(Found::new(entry.path(), meta.as_ref()));
        }
    })?;
    let mut all = Newest::default();
    found.into_iter().for_each(|found| all.take(found));
    all.files.sort_unstable();
    Ok(all)
}

/// The newest files of those found.
#[derive(Default)]
struct Newest {
    files: Vec<Found>,
    /// There were more.
    more: bool,
}

impl Newest {
    fn add(&mut self, file: Found) {
        self.files.push(file);
        if self.files.len() > 2 * MAX_HELD {
            self.trim();
        }
    }

    /// Merges the results of another thread.
    fn take(&mut self, other: Self) {
        self.files.extend(other.files);
        self.more |= other.more;
        self.trim();
    }

    fn trim(&mut self) {
        if self.files.len() > MAX_HELD {
            self.files.select_nth_unstable(MAX_HELD);
            self.files.truncate(MAX_HELD);
            self.more = true;
        }
    }
}

impl Tool for Glob {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn place<'a>(&self, input: &'a Value) -> Option<&'a str> {
        Some(input.get("path").and_then(Value::as_str).unwrap_or("."))
    }

    fn permissions(
        &self,
        input: &Value,
        ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        let (root, _) = target(input, ctx)?;
        Ok(asks(
            "glob",
            text(input, "pattern"),
            &root,
            input.clone(),
            ctx,
        ))
    }

    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let anchored = text(&input, "pattern").starts_with('/');
            let (root, pattern) = target(&input, ctx)?;
            let title = root.relative(ctx);
            let (place, pattern, here) = (root.clone(), pattern.to_owned(), ctx.clone());
            let found =
                tokio::task::spawn_blocking(move || find(&place, &pattern, anchored, &here))
                    .await
                    .map_err(|e| ToolError::failed(e.to_string()))??;
            let truncated = found.more || found.files.len() > MAX_RESULTS;
            // Names found through a path that became a link during the search belong to another
            // folder.
            let mut lines: Vec<String> = found
                .files
                .iter()
                .filter(|file| stands(&file.path))
                .take(MAX_RESULTS)
                .map(|file| shown(&file.path, &root).display().to_string())
                .collect();
            let count = lines.len();
            if lines.is_empty() {
                lines.push("No files found".to_owned());
            }
            if truncated {
                lines.push(format!(
                    "\n(Results are truncated: showing first {MAX_RESULTS} results. Consider using a more specific path or pattern.)"
                ));
            }
            Ok(ToolOutput {
                title,
                output: lines.join("\n"),
                metadata: json!({"count": count, "truncated": truncated}),
                attachments: None,
            })
        })
    }
}
