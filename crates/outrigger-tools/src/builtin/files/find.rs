//! `glob` and `grep`: finding files by name and by content, with the rules of .gitignore.

mod glob;
mod grep;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ignore::overrides::{Override, OverrideBuilder};
use outrigger_protocol::permission::Action;

pub(in crate::builtin) use glob::Glob;
pub(in crate::builtin) use grep::Grep;

use crate::error::ToolError;
use crate::files::{Kind, Located, locate};
use crate::host::{PermissionAsk, ToolContext};

// Results that are shown, as OpenCode has it.
const MAX_RESULTS: usize = 100;

/// A file that was found. Newest first, then by path.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    age: std::cmp::Reverse<SystemTime>,
    path: PathBuf,
}

/// Which files are wanted, in the pattern language of ripgrep: `*.rs` at any depth, `src/*.rs` from the folder.
struct Wanted(Override);

impl Wanted {
    fn new(root: &Path, pattern: Option<&str>) -> Result<Self, ToolError> {
        let mut builder = OverrideBuilder::new(root);
        if let Some(pattern) = pattern {
            builder.add(pattern).map_err(|e| {
                ToolError::failed(format!("The pattern {pattern} cannot be used: {e}"))
            })?;
        }
        builder
            .build()
            .map(Self)
            .map_err(|e| ToolError::failed(e.to_string()))
    }

    fn has(&self, path: &Path) -> bool {
        let verdict = self.0.matched(path, false);
        verdict.is_whitelist() || (verdict.is_none() && self.0.num_whitelists() == 0)
    }
}

/// Calls `each` for every file below `root` that is not ignored, wanted and not forbidden, and that the rules about reading let
/// pass; it answers whether to go on. Blocking.
fn walk(
    root: &Path,
    wanted: &Wanted,
    passes: impl Fn(Action) -> bool,
    ctx: &ToolContext,
    mut each: impl FnMut(Found) -> bool,
) -> Result<(), ToolError> {
    // Hidden files count, `.git` does not; .gitignore also holds in a folder that is no repository.
    let walk = crate::ignored::walk(root).build();
    let rules = ctx.host.read_rules();
    for entry in walk.filter_map(Result::ok) {
        if ctx.cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        if !entry.file_type().is_some_and(|kind| kind.is_file()) || !wanted.has(entry.path()) {
            continue;
        }
        if ctx.allowed(entry.path(), entry.path()).is_err() {
            continue;
        }
        // One that is searched by its name has been asked about.
        let rule = rules.of(entry.path());
        if rule == Action::Deny || entry.depth() > 0 && !passes(rule) {
            continue;
        }
        let time = entry.metadata().ok().and_then(|m| m.modified().ok());
        let found = Found {
            age: std::cmp::Reverse(time.unwrap_or(SystemTime::UNIX_EPOCH)),
            path: entry.into_path(),
        };
        if !each(found) {
            break;
        }
    }
    Ok(())
}

/// The folder that is searched, and what is asked before: the tool's own permission, then the folder if it is outside.
fn asks(
    permission: &str,
    pattern: &str,
    root: &Located,
    metadata: serde_json::Value,
    ctx: &ToolContext,
) -> Vec<PermissionAsk> {
    let mut asks = vec![PermissionAsk {
        permission: permission.to_owned(),
        patterns: vec![pattern.to_owned()],
        always: vec!["*".to_owned()],
        metadata,
        ..PermissionAsk::default()
    }];
    let kind = if root.real.is_file() {
        Kind::File
    } else {
        Kind::Folder
    };
    if !root.is_lent(ctx) {
        asks.extend(root.ask_outside(kind));
    }
    asks
}

fn root(path: &str, ctx: &ToolContext) -> Result<Located, ToolError> {
    locate(ctx, if path.is_empty() { "." } else { path })
}

/// Results are shown under the path that was named, not the one that links lead to.
fn shown(found: &Path, root: &Located) -> PathBuf {
    match found.strip_prefix(&root.real) {
        Ok(rest) if rest.as_os_str().is_empty() => root.shown.clone(),
        Ok(rest) => root.shown.join(rest),
        Err(_) => found.to_owned(),
    }
}
