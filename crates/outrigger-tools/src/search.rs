//! Searches a folder for clients: lines by a regular expression, names by their letters, and ignored files.
//!
//! The tools `grep` and `glob` answer a model, with their limits and texts; this module answers the API (`GET /find`,
//! `GET /find/file`, `GET /file`) with plain data. Both exclude `.git` and what .gitignore and .ignore exclude.
//! Symbolic links are not followed, so nothing outside the folder is seen (invariant 11). Everything here blocks.

use std::path::{Path, PathBuf};

use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use ignore::gitignore::Gitignore;
use outrigger_protocol::permission::Action;
use outrigger_sandbox::Anchor;

use crate::host::DecideRead;

/// Longer lines are truncated, as in OpenCode.
const MAX_LINE_LENGTH: usize = 2000;
/// Maximum number of files and folders that a search of names visits.
const MAX_SEEN: usize = 200_000;

/// A matching line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Relative to the searched folder.
    pub path: PathBuf,
    /// The line with its end, truncated after 2000 characters.
    pub line: String,
    /// The line number, from 1.
    pub number: u64,
    /// Bytes of the file before the line.
    pub offset: u64,
    /// The matches in the line, as byte ranges.
    pub spans: Vec<(usize, usize)>,
}

/// The kind of names to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Files only.
    File,
    /// Folders only.
    Folder,
    /// Both.
    Any,
}

/// Returns lines below `root` that match `pattern` (the syntax of Rust's regex crate), at most `most`, by path. Skips
/// files that the rules deny; the rules know the root as `named`.
///
/// # Errors
/// What is wrong with the pattern, for the user.
pub fn lines(
    root: &Path,
    named: &Path,
    pattern: &str,
    most: usize,
    rules: &dyn DecideRead,
) -> Result<Vec<Hit>, String> {
    let matcher = crate::expression::expression(pattern)?;
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .line_number(true)
        .heap_limit(Some(64 * 1024 * 1024))
        .build();
    let mut hits = Vec::new();
    let held = Anchor::again(root).map_err(|e| format!("cannot open {}: {e}", root.display()))?;
    for entry in walk(root) {
        if hits.len() >= most {
            break;
        }
        let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let is_denied = || rules.of_unlinked(&named.join(path)) == Action::Deny;
        if !entry.file_type().is_some_and(|kind| kind.is_file()) || is_denied() {
            continue;
        }
        // A link that has appeared on its path since it was found points to another file.
        let Ok(file) = held.open(path) else {
            continue;
        };
        let denies = || {
            file.metadata()
                .map_or(true, |file| rules.denies_file(&file))
        };
        if rules.denies_files() && denies() {
            continue;
        }
        let before = hits.len();
        let mut sink = Collect {
            matcher: &matcher,
            path,
            hits: &mut hits,
            most,
            binary: false,
        };
        // Files that cannot be read are skipped; a file found to be binary after some lines keeps none.
        let searched = searcher.search_file(&matcher, &file, &mut sink);
        if searched.is_err() || sink.binary {
            hits.truncate(before);
        }
    }
    Ok(hits)
}

struct Collect<'a> {
    matcher: &'a RegexMatcher,
    path: &'a Path,
    hits: &'a mut Vec<Hit>,
    most: usize,
    binary: bool,
}

impl Sink for Collect<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        use grep_searcher::SinkError as _;
        let bytes = found.bytes();
        let mut spans = Vec::new();
        let each = |at: grep_matcher::Match| {
            spans.push((at.start(), at.end()));
            spans.len() < 100
        };
        grep_matcher::Matcher::find_iter(self.matcher, bytes, each)
            .map_err(std::io::Error::error_message)?;
        let text = String::from_utf8_lossy(bytes);
        let line = match text.char_indices().nth(MAX_LINE_LENGTH) {
            Some((at, _)) if text.len() > at + 1 => format!("{}...", text.get(..at).unwrap_or("")),
            _ => text.into_owned(),
        };
        self.hits.push(Hit {
            path: self.path.to_owned(),
            line,
            number: found.line_number().unwrap_or(0),
            offset: found.absolute_byte_offset(),
            spans,
        });
        Ok(self.hits.len() < self.most)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, Self::Error> {
        self.binary = true;
        Ok(false)
    }
}

/// Returns names below `root` that contain the letters of `query` in order, best first, at most `most`; folders end
/// with a slash. An empty query finds what is nearest to the root. Skips what `may_read` refuses.
#[must_use]
pub fn names(
    root: &Path,
    query: &str,
    kind: Kind,
    most: usize,
    may_read: &dyn Fn(&Path) -> bool,
) -> Vec<String> {
    let query: Vec<char> = query.trim().to_lowercase().chars().collect();
    let mut found: Vec<(i64, String)> = walk(root)
        .filter(|entry| entry.depth() > 0)
        .take(MAX_SEEN)
        .filter_map(|entry| {
            let folder = entry.file_type()?.is_dir();
            let wanted = match kind {
                Kind::File => entry.file_type()?.is_file(),
                Kind::Folder => folder,
                Kind::Any => folder || entry.file_type()?.is_file(),
            };
            let mut path = wanted
                .then(|| entry.path().strip_prefix(root).ok())??
                .to_str()?
                .to_owned();
            let score = score(&path, &query)?;
            if folder {
                path.push('/');
            }
            Some((score, path))
        })
        .collect();
    found.sort_by(|a, b| {
        b.0.cmp(&a.0)
            .then_with(|| a.1.len().cmp(&b.1.len()))
            .then_with(|| a.1.cmp(&b.1))
    });
    // Names found through a path that became a link during the search belong to another folder.
    let Ok(held) = Anchor::again(root) else {
        return Vec::new();
    };
    found
        .into_iter()
        .map(|(_, path)| path)
        .filter(|path| {
            held.has(Path::new(path)) && may_read(&root.join(path.trim_end_matches('/')))
        })
        .take(most)
        .collect()
}

/// Returns how well the letters match, `None` if they do not all occur in order. The file's name counts more than the
/// folders above it; letters that are adjacent or start a word count more than scattered ones.
fn score(path: &str, query: &[char]) -> Option<i64> {
    if query.is_empty() {
        return Some(-i64::try_from(path.matches('/').count()).unwrap_or(i64::MAX));
    }
    let lower: Vec<char> = path.to_lowercase().chars().collect();
    let name = lower.iter().rposition(|c| *c == '/').map_or(0, |at| at + 1);
    let in_name = fit(&lower, name, query).map(|fit| fit + 50);
    let best = in_name.max(fit(&lower, 0, query))?;
    let exact = lower.get(name..) == Some(query);
    Some(best + if exact { 100 } else { 0 })
}

/// Returns the best match of `query` in `text` from `from` on: every position of the first letter is tried, then the
/// following letters are matched greedily.
fn fit(text: &[char], from: usize, query: &[char]) -> Option<i64> {
    let first = query.first()?;
    (from..text.len())
        .filter(|at| text.get(*at) == Some(first))
        .filter_map(|start| fit_at(text, start, query))
        .max()
}

fn fit_at(text: &[char], start: usize, query: &[char]) -> Option<i64> {
    let mut total = 0;
    let mut at = start;
    let mut last = None;
    for letter in query {
        at += text.get(at..)?.iter().position(|c| c == letter)?;
        let begins = at == 0
            || text
                .get(at - 1)
                .is_some_and(|c| matches!(c, '/' | '.' | '_' | '-' | ' '));
        total += match last {
            Some(before) if before + 1 == at => 16,
            _ if begins => 12,
            None => 4,
            Some(before) => -i64::try_from(at - before).unwrap_or(i64::MAX).min(8),
        };
        last = Some(at);
        at += 1;
    }
    Some(total)
}

/// Includes hidden files, excludes `.git`; .gitignore also applies in a folder that is not a repository.
fn walk(root: &Path) -> impl Iterator<Item = ignore::DirEntry> + use<> {
    crate::ignored::walk(root)
        .sort_by_file_path(Ord::cmp)
        .build()
        .filter_map(Result::ok)
}

/// The rules of the .gitignore and the .ignore of a project's root, as OpenCode's `GET /file` applies them. Such files
/// in subfolders are not used there.
#[derive(Debug)]
pub struct Ignored(Gitignore);

impl Ignored {
    /// Reads the two files; skips invalid lines.
    #[must_use]
    pub fn of(root: &Path) -> Self {
        Self(crate::ignored::of_folder(root))
    }

    /// Returns whether a path below the root is ignored, itself or through a parent folder.
    #[must_use]
    pub fn has(&self, path: &Path, folder: bool) -> bool {
        path.starts_with(self.0.path())
            && self.0.matched_path_or_any_parents(path, folder).is_ignore()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn project() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            (".gitignore", "target\n*.log\n"),
            ("src/main.rs", "fn main() {}\n"),
            ("src/domain/main_loop.rs", "// main\nfn other() {}\n"),
            ("target/main.rs", "fn main() {}\n"),
            ("x.log", "main\n"),
            ("bin", "main\0\n"),
            (".git/main", "main\n"),
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::os::unix::fs::symlink("/etc", dir.path().join("etc")).unwrap();
        dir
    }

    #[test]
    fn lines_say_where_they_stand() {
        let dir = project();
        let root = dir.path();
        let all = |_: &Path| Action::Allow;
        let hits = lines(root, root, r"\bmain\b", 10, &all).unwrap();
        let shown: Vec<_> = hits
            .iter()
            .map(|h| {
                (
                    h.path.to_str().unwrap(),
                    h.number,
                    h.offset,
                    h.line.as_str(),
                    h.spans.clone(),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("src/domain/main_loop.rs", 1, 0, "// main\n", vec![(3, 7)]),
                ("src/main.rs", 1, 0, "fn main() {}\n", vec![(3, 7)]),
            ]
        );
        let one = |path: &Path| {
            if path.ends_with("main_loop.rs") {
                Action::Deny
            } else {
                Action::Ask
            }
        };
        assert_eq!(lines(root, root, "fn", 9, &one).unwrap().len(), 1);
        assert_eq!(lines(root, root, "fn", 1, &all).unwrap().len(), 1);
        assert!(
            lines(root, root, "(", 1, &all)
                .unwrap_err()
                .contains("unclosed")
        );
    }

    #[test]
    fn names_are_found_by_their_letters() {
        let dir = project();
        let cases: [(&str, Kind, &[&str]); 6] = [
            (
                "main.rs",
                Kind::File,
                &["src/main.rs", "src/domain/main_loop.rs"],
            ),
            ("mlp", Kind::File, &["src/domain/main_loop.rs"]),
            (
                "MAIN",
                Kind::File,
                &["src/main.rs", "src/domain/main_loop.rs"],
            ),
            ("dom", Kind::Folder, &["src/domain/"]),
            (
                "",
                Kind::Any,
                &[
                    "bin",
                    "src/",
                    ".gitignore",
                    "src/domain/",
                    "src/main.rs",
                    "src/domain/main_loop.rs",
                ],
            ),
            ("zzz", Kind::Any, &[]),
        ];
        for (query, kind, want) in cases {
            assert_eq!(
                names(dir.path(), query, kind, 10, &|_| true),
                want,
                "{query}"
            );
        }
        assert_eq!(names(dir.path(), "", Kind::Any, 1, &|_| true).len(), 1);
        let none = |path: &Path| !path.ends_with("main.rs");
        assert!(names(dir.path(), "main.rs", Kind::File, 9, &none) == ["src/domain/main_loop.rs"]);
    }

    #[test]
    fn what_is_ignored_is_listed_with_what_is_below() {
        let dir = project();
        let ignored = Ignored::of(dir.path());
        for (path, folder, want) in [
            ("target", true, true),
            ("target/main.rs", false, true),
            ("x.log", false, true),
            ("src/main.rs", false, false),
            ("../elsewhere.log", false, false),
        ] {
            let path = outrigger_sandbox::paths::resolve(dir.path(), Path::new(path));
            assert_eq!(ignored.has(&path, folder), want, "{}", path.display());
        }
    }

    proptest! {
        /// A query matches exactly the texts that contain its letters in order.
        #[test]
        fn a_fit_is_a_subsequence(text in "[ab/]{0,12}", query in "[ab]{1,4}") {
            let letters: Vec<char> = query.chars().collect();
            let mut rest = text.chars();
            let holds = letters.iter().all(|c| rest.any(|t| t == *c));
            prop_assert_eq!(score(&text, &letters).is_some(), holds);
        }
    }
}
