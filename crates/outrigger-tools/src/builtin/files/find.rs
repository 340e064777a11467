//! `glob` and `grep`: find files by name and by content, following the rules of .gitignore.

mod glob;
mod grep;

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkState};
use outrigger_protocol::permission::Action;
use outrigger_stdx::sync::lock;

pub(in crate::builtin) use glob::Glob;
pub(in crate::builtin) use grep::Grep;

use crate::error::ToolError;
use crate::files::{Kind, Located, locate};
use crate::host::{PermissionAsk, ReadRules, ToolContext};

// Maximum number of results shown, as in OpenCode.
const MAX_RESULTS: usize = 100;
// Maximum number of threads that walk and read files at once.
const MAX_THREADS: usize = 8;

/// A file that was found. Sorted newest first, then by path.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    age: std::cmp::Reverse<SystemTime>,
    path: PathBuf,
}

impl Found {
    fn new(path: &Path, meta: Option<&Metadata>) -> Self {
        let time = meta.and_then(|it| it.modified().ok());
        Self {
            age: std::cmp::Reverse(time.unwrap_or(SystemTime::UNIX_EPOCH)),
            path: path.to_owned(),
        }
    }
}

/// A filter of files in ripgrep's pattern language: `*.rs` at any depth, `src/*.rs` from the folder.
struct FileFilter(Override);

impl FileFilter {
    fn new(root: &Path, pattern: Option<&str>) -> Result<Self, ToolError> {
        let mut builder = OverrideBuilder::new(root);
        if let Some(pattern) = pattern {
            outrigger_files::check_pattern(pattern).map_err(|e| {
                ToolError::failed(format!("The pattern {pattern:.100} cannot be used: {e}"))
            })?;
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

/// The files of a search: those below `root` that are not ignored, match the filter, are not forbidden, and pass the rules about
/// reading.
struct Walk<'a> {
    root: &'a Path,
    wanted: FileFilter,
    rules: ReadRules,
    /// Returns whether files with such a rule may be shown.
    passes: fn(Action) -> bool,
    ctx: &'a ToolContext,
}

impl<'a> Walk<'a> {
    fn new(
        root: &'a Path,
        wanted: FileFilter,
        passes: fn(Action) -> bool,
        ctx: &'a ToolContext,
    ) -> Self {
        Self {
            root,
            wanted,
            rules: ctx.host.read_rules(),
            passes,
            ctx,
        }
    }

    /// Calls `each` for every such file, in no particular order and on several threads, each with its own search state; returns
    /// these. Files are checked by name alone: `each` opens one without following links (or has its results checked against the
    /// file system) and calls [`Self::denies`] for what it opened. Blocking.
    fn run<S: Send>(
        &self,
        fresh: impl Fn() -> S,
        each: impl Fn(&mut S, &DirEntry) + Sync,
    ) -> Result<Vec<S>, ToolError> {
        let done = Mutex::new(Vec::new());
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        // Includes hidden files, excludes `.git`; .gitignore also applies in a folder that is not a repository.
        let mut walk = crate::ignored::walk(self.root);
        walk.threads(threads.min(MAX_THREADS))
            .build_parallel()
            .run(|| {
                let mut search = Handed(Some(fresh()), &done);
                let each = &each;
                Box::new(move |entry| {
                    if self.ctx.cancel.is_cancelled() {
                        return WalkState::Quit;
                    }
                    if let Ok(entry) = entry
                        && let Some(search) = &mut search.0
                        && self.has(&entry)
                    {
                        each(search, &entry);
                    }
                    WalkState::Continue
                })
            });
        if self.ctx.cancel.is_cancelled() {
            Err(ToolError::Cancelled)
        } else {
            Ok(std::mem::take(&mut *lock(&done)))
        }
    }

    fn has(&self, entry: &DirEntry) -> bool {
        let path = entry.path();
        if !entry.file_type().is_some_and(|kind| kind.is_file()) || !self.wanted.has(path) {
            return false;
        }
        // A file that is searched by its own name was asked about already.
        let passes = |rule| rule != Action::Deny && (entry.depth() == 0 || (self.passes)(rule));
        self.ctx.allowed(path, path).is_ok() && passes(self.rules.of_unlinked(path))
    }

    /// Returns whether a rule denies a file under another name, by its metadata.
    fn denies(&self, file: impl FnOnce() -> io::Result<Metadata>) -> bool {
        self.rules.denies_files() && file().map_or(true, |file| self.rules.denies_file(&file))
    }
}

/// The results of a thread, handed over when it ends.
struct Handed<'a, S>(Option<S>, &'a Mutex<Vec<S>>);

impl<S> Drop for Handed<'_, S> {
    fn drop(&mut self) {
        lock(self.1).extend(self.0.take());
    }
}

/// Returns the folder to search and the questions before: the tool's own permission, then the folder if it is outside.
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

/// Returns the path under the name that was requested, not the one that links point to.
fn shown(found: &Path, root: &Located) -> PathBuf {
    match found.strip_prefix(&root.real) {
        Ok(rest) if rest.as_os_str().is_empty() => root.shown.clone(),
        Ok(rest) => root.shown.join(rest),
        Err(_) => found.to_owned(),
    }
}
