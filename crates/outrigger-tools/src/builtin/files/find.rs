//! `glob` and `grep`: finding files by name and by content, with the rules of .gitignore.

mod glob;
mod grep;

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkState};
use outrigger_files::sync::lock;
use outrigger_protocol::permission::Action;

pub(in crate::builtin) use glob::Glob;
pub(in crate::builtin) use grep::Grep;

use crate::error::ToolError;
use crate::files::{Kind, Located, locate};
use crate::host::{PermissionAsk, ReadRules, ToolContext};

// Results that are shown, as OpenCode has it.
const MAX_RESULTS: usize = 100;
// Threads that walk and read files at once, at most.
const MAX_THREADS: usize = 8;

/// A file that was found. Newest first, then by path.
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

/// Which files a search looks at: those below `root` that are not ignored, wanted and not forbidden, and that the rules about
/// reading let pass.
struct Walk<'a> {
    root: &'a Path,
    wanted: Wanted,
    rules: ReadRules,
    /// Whether files may be shown for which there is such a rule.
    passes: fn(Action) -> bool,
    ctx: &'a ToolContext,
}

impl<'a> Walk<'a> {
    fn new(
        root: &'a Path,
        wanted: Wanted,
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

    /// Calls `each` for every such file, in no order and on several threads, each with a search of its own, which are the answer.
    /// Files are asked about by name alone: `each` opens one so that no link is followed (or has its results held against what is
    /// there), and asks [`Self::denies`] about what it opened. Blocking.
    fn run<S: Send>(
        &self,
        fresh: impl Fn() -> S,
        each: impl Fn(&mut S, &DirEntry) + Sync,
    ) -> Result<Vec<S>, ToolError> {
        let done = Mutex::new(Vec::new());
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        // Hidden files count, `.git` does not; .gitignore also holds in a folder that is not a repository.
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
        match self.ctx.cancel.is_cancelled() {
            true => Err(ToolError::Cancelled),
            false => Ok(std::mem::take(&mut *lock(&done))),
        }
    }

    fn has(&self, entry: &DirEntry) -> bool {
        let path = entry.path();
        if !entry.file_type().is_some_and(|kind| kind.is_file()) || !self.wanted.has(path) {
            return false;
        }
        // One that is searched by its name has been asked about.
        let passes = |rule| rule != Action::Deny && (entry.depth() == 0 || (self.passes)(rule));
        self.ctx.allowed(path, path).is_ok() && passes(self.rules.of_unlinked(path))
    }

    /// Whether a rule denies a file under another name, by what the system says of the file.
    fn denies(&self, file: impl FnOnce() -> io::Result<Metadata>) -> bool {
        self.rules.denies_files() && file().map_or(true, |file| self.rules.denies_file(&file))
    }
}

/// What a thread has found, which it hands over when it ends.
struct Handed<'a, S>(Option<S>, &'a Mutex<Vec<S>>);

impl<S> Drop for Handed<'_, S> {
    fn drop(&mut self) {
        lock(self.1).extend(self.0.take());
    }
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
