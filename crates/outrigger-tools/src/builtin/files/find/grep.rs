//! `grep`: finds files by content.

use std::path::Path;

use futures_util::future::BoxFuture;
use grep_regex::RegexMatcher;
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use outrigger_protocol::permission::Action;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use outrigger_sandbox::paths::open_resolved;
use serde_json::{Value, json};

use super::super::read::asks_read;
use super::{FileFilter, Found, MAX_RESULTS, Walk, asks, root, shown};
use crate::builtin::{reading, spec, text};
use crate::error::ToolError;
use crate::files::Located;
use crate::host::{PermissionAsk, ToolContext};
use crate::tool::Tool;

const DESCRIPTION: &str = r"
Finds lines in files by a regular expression. Returns at most 100 lines with file and line number, newest file first.

- pattern: the syntax of Rust's regex crate, as in ripgrep; escape literal `(`, `{` and `.`. Matching is case-sensitive; start with `(?i)` for case-insensitive.
- include: only files whose name matches, for example `*.rs` or `*.{ts,tsx}`.
- path: a folder or a file (default: the working directory).
- Files ignored by .gitignore and binary files are skipped. To count matches, run rg with bash.
";

const MAX_LINE_LENGTH: usize = 2000;
// Maximum number of lines held in memory; those of the oldest files are dropped.
const MAX_HELD: usize = 4000;

/// The grep tool.
pub(in crate::builtin) struct Grep {
    spec: ToolSpec,
}

impl Grep {
    pub(in crate::builtin) fn new() -> Self {
        let string = json!({"type": "string"});
        Self {
            spec: reading(spec(
                "grep",
                DESCRIPTION,
                json!({"pattern": string, "path": string, "include": string}),
                &["pattern"],
            )),
        }
    }
}

// One file's matching lines, with their line ends, as OpenCode shows them.
type Hits = Vec<(u64, String)>;

struct Search {
    matcher: RegexMatcher,
    searcher: Searcher,
    files: Vec<(Found, Hits)>,
    held: usize,
    more: bool,
}

impl Search {
    fn new(pattern: &str) -> Result<Self, ToolError> {
        let matcher = crate::expression::expression(pattern).map_err(ToolError::failed)?;
        let searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .line_number(true)
            .heap_limit(Some(64 * 1024 * 1024))
            .build();
        Ok(Self {
            matcher,
            searcher,
            files: Vec::new(),
            held: 0,
            more: false,
        })
    }

    /// Returns the same search for another thread.
    fn beside(&self) -> Self {
        Self {
            matcher: self.matcher.clone(),
            searcher: self.searcher.clone(),
            files: Vec::new(),
            held: 0,
            more: false,
        }
    }

    /// Merges the results of another thread.
    fn take(&mut self, other: Self) {
        self.files.extend(other.files);
        self.more |= other.more;
    }

    fn look_into(&mut self, path: &Path, walk: &Walk<'_>) {
        // A link that appeared on its path after the rules were checked points to another file.
        let Ok(file) = open_resolved(path, false, false) else {
            return;
        };
        if walk.denies(|| file.metadata()) {
            return;
        }
        let mut hits = Hits::new();
        let sink = Lossy(|number, line| {
            if hits.len() == MAX_RESULTS {
                self.more = true;
                return Ok(false);
            }
            hits.push((number, shorten(line)));
            Ok(true)
        });
        // Files that cannot be read are skipped, as in ripgrep; a file found to be binary after some hits keeps
        // none.
        let searched = self.searcher.search_file(&self.matcher, &file, sink);
        if searched.is_err() || hits.is_empty() {
            return;
        }
        self.held += hits.len();
        let found = Found::new(path, file.metadata().ok().as_ref());
        self.files.push((found, hits));
        if self.held > MAX_HELD {
            self.trim();
        }
    }

    // Sorts newest first and keeps no more lines than are shown.
    fn trim(&mut self) {
        self.files.sort_by(|a, b| a.0.cmp(&b.0));
        let mut left = MAX_RESULTS;
        for (_, hits) in &mut self.files {
            self.more |= hits.len() > left;
            hits.truncate(left);
            left -= hits.len();
        }
        self.files.retain(|(_, hits)| !hits.is_empty());
        self.held = MAX_RESULTS - left;
    }
}

fn shorten(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE_LENGTH) {
        Some((at, _)) if line.len() > at + 1 => format!("{}...", &line[..at]),
        _ => line.to_owned(),
    }
}

fn find(
    root: &Located,
    pattern: &str,
    include: Option<&str>,
    ctx: &ToolContext,
) -> Result<Search, ToolError> {
    if !root.real.exists() {
        return Err(ToolError::failed(format!(
            "There is nothing at {}",
            root.shown.display()
        )));
    }
    let mut search = Search::new(pattern)?;
    let wanted = FileFilter::new(&root.real, include.filter(|_| root.real.is_dir()))?;
    // Lines of a file that needs the user's approval are not shown without it.
    let walk = Walk::new(&root.real, wanted, |rule| rule == Action::Allow, ctx);
    let found = walk.run(
        || search.beside(),
        |search, entry| search.look_into(entry.path(), &walk),
    )?;
    found.into_iter().for_each(|found| search.take(found));
    search.trim();
    Ok(search)
}

fn present(search: &Search, root: &Located) -> (String, usize) {
    let count = search.files.iter().map(|(_, hits)| hits.len()).sum();
    if count == 0 {
        return ("No files found".to_owned(), 0);
    }
    let more = if search.more {
        " (more matches available)"
    } else {
        ""
    };
    let mut lines = vec![format!("Found {count} matches{more}")];
    for (at, (file, hits)) in search.files.iter().enumerate() {
        if at > 0 {
            lines.push(String::new());
        }
        lines.push(format!("{}:", shown(&file.path, root).display()));
        lines.extend(hits.iter().map(|(n, line)| format!("  Line {n}: {line}")));
    }
    if search.more {
        lines.push(String::new());
        lines.push(
            "(Results truncated. Consider using a more specific path or pattern.)".to_owned(),
        );
    }
    (lines.join("\n"), count)
}

impl Tool for Grep {
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
        if text(input, "pattern").is_empty() {
            return Err(ToolError::failed("pattern is required"));
        }
        let root = root(text(input, "path"), ctx)?;
        let pattern = text(input, "pattern");
        let mut asks = asks("grep", pattern, &root, input.clone(), ctx);
        if root.real.is_file() {
            let read = asks_read(&root, ctx);
            asks.extend(read.into_iter().filter(|ask| ask.permission == "read"));
        }
        Ok(asks)
    }

    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let root = root(text(&input, "path"), ctx)?;
            let pattern = text(&input, "pattern").to_owned();
            let include = input
                .get("include")
                .and_then(Value::as_str)
                .filter(|include| !include.is_empty())
                .map(str::to_owned);
            let (place, title, here) = (root.clone(), pattern.clone(), ctx.clone());
            let search = tokio::task::spawn_blocking(move || {
                find(&place, &pattern, include.as_deref(), &here)
            })
            .await
            .map_err(|e| ToolError::failed(e.to_string()))??;
            let (output, count) = present(&search, &root);
            Ok(ToolOutput {
                title,
                output,
                metadata: json!({"matches": count, "truncated": search.more}),
                attachments: None,
            })
        })
    }
}
