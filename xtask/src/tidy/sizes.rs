//! Checks the size of source files, functions and crates.
//!
//! Justified exceptions are in a list. Unjustified ones are counted by crate, and the number may only fall: lower it in the
//! change that reduces it.

use super::{Repo, code};

/// Maximum lines of a source file before its tests; a longer file has more than one idea.
const MAX_SOURCE_LINES: usize = 500;
/// Maximum lines of a source file with its tests; beyond that they belong in a separate file.
const MAX_FILE_LINES: usize = 650;
/// Maximum lines of a function, from its name to its last brace.
const MAX_FUNCTION_LINES: usize = 60;
/// Maximum lines of code of a crate, without comments, blank lines and tests; a larger one should be split.
const MAX_CRATE_LINES: usize = 15_000;
/// Maximum number of exceptions of both kinds.
const MAX_EXCEPTIONS: usize = 10;

/// Longer files: path and reason.
const LONG_FILES: &[(&str, &str)] = &[];
/// Longer functions: path, name and reason.
const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[];

/// Number of longer files by crate.
const OLD_FILES: &[(&str, usize)] = &[];

/// Number of longer functions by crate.
const OLD_FUNCTIONS: &[(&str, usize)] = &[];

/// Returns source files that are too long.
pub(super) fn files(repo: &Repo) -> Vec<String> {
    let mut found = Vec::new();
    for name in repo.packages() {
        let mut long = Vec::new();
        for (path, text) in sources(repo, name) {
            let lines = text.lines().count();
            if lines > MAX_FILE_LINES {
                found.push(format!(
                    "{path} has {lines} lines, more than {MAX_FILE_LINES}: split it"
                ));
            }
            let lines = code::before_tests(text).lines().count();
            let excepted = LONG_FILES.iter().any(|(file, _)| *file == path);
            if lines > MAX_SOURCE_LINES && !excepted {
                long.push(format!("{path} ({lines})"));
            }
        }
        let what = format!("files have more than {MAX_SOURCE_LINES} lines before their tests");
        found.extend(above(name, &what, OLD_FILES, &long));
    }
    found
}

/// Returns functions that are too long.
pub(super) fn functions(repo: &Repo) -> Vec<String> {
    let mut found = Vec::new();
    for name in repo.packages() {
        let mut long = Vec::new();
        for (path, text) in sources(repo, name) {
            for it in code::functions(code::before_tests(text)) {
                let excepted = LONG_FUNCTIONS
                    .iter()
                    .any(|(file, name, _)| *file == path && *name == it.name);
                if it.lines > MAX_FUNCTION_LINES && !excepted {
                    long.push(format!("{path}:{} {} ({})", it.line, it.name, it.lines));
                }
            }
        }
        let what = format!("functions have more than {MAX_FUNCTION_LINES} lines");
        found.extend(above(name, &what, OLD_FUNCTIONS, &long));
    }
    let exceptions = LONG_FILES.len() + LONG_FUNCTIONS.len();
    if exceptions > MAX_EXCEPTIONS {
        found.push(format!(
            "{exceptions} exceptions, at most {MAX_EXCEPTIONS} may be there"
        ));
    }
    found
}

/// Returns crates that are too large.
pub(super) fn crates(repo: &Repo) -> Vec<String> {
    repo.crates().into_iter().filter_map(|name| {
        let lines: usize = sources(repo, name)
            .map(|(_, text)| lines_of_code(text))
            .sum();
        (lines > MAX_CRATE_LINES).then(|| {
            format!(
                "{name} has {lines} lines of code, more than {MAX_CRATE_LINES}: move a part that has a name into a crate"
            )
        })
    }).collect()
}

fn lines_of_code(text: &str) -> usize {
    code::before_tests(text)
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .count()
}

fn above(name: &str, what: &str, old: &[(&str, usize)], long: &[String]) -> Option<String> {
    let allowed = old
        .iter()
        .find(|(old, _)| *old == name)
        .map_or(0, |it| it.1);
    (long.len() > allowed).then(|| {
        format!(
            "{name}: {} {what}, at most {allowed} may: {}",
            long.len(),
            long.join(", ")
        )
    })
}

/// Returns the source files of a crate, except those that contain only tests.
fn sources<'r>(repo: &'r Repo, name: &str) -> impl Iterator<Item = (&'r str, &'r str)> {
    let base = super::source_folder(name);
    repo.iter().filter(move |(path, _)| {
        path.starts_with(&base)
            && path.ends_with(".rs")
            && !path.ends_with("/tests.rs")
            && !path.ends_with("_tests.rs")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: (&str, &str) = ("crates/a/Cargo.toml", "");

    #[test]
    fn a_long_file_is_found_and_its_tests_do_not_count() {
        let code = "x\n".repeat(MAX_SOURCE_LINES);
        let tested = format!("{code}#[cfg(test)]\nmod tests {{\n}}\n");
        let long = format!("{code}x\n");
        let longest = format!("{tested}{}", "x\n".repeat(150));
        let repo = Repo::of(&[
            MANIFEST,
            ("crates/a/src/lib.rs", &tested),
            ("crates/a/tests/it/main.rs", &longest),
            ("crates/a/src/x_tests.rs", &long),
        ]);
        assert!(files(&repo).is_empty());
        let repo = Repo::of(&[
            MANIFEST,
            ("crates/a/src/b.rs", &long),
            ("crates/a/src/c.rs", &longest),
            ("xtask/Cargo.toml", ""),
            ("xtask/src/d.rs", &long),
        ]);
        assert_eq!(
            files(&repo),
            [
                "crates/a/src/c.rs has 653 lines, more than 650: split it",
                "a: 1 files have more than 500 lines before their tests, at most 0 may: crates/a/src/b.rs (501)",
                "xtask: 1 files have more than 500 lines before their tests, at most 0 may: xtask/src/d.rs (501)",
            ]
        );
    }

    #[test]
    fn a_long_function_is_found() {
        let function = |lines: usize| format!("fn f() {{\n{}}}\n", "x;\n".repeat(lines - 2));
        let fits = function(MAX_FUNCTION_LINES);
        let repo = Repo::of(&[MANIFEST, ("crates/a/src/lib.rs", &fits)]);
        assert!(functions(&repo).is_empty());
        let long = function(MAX_FUNCTION_LINES + 1);
        let repo = Repo::of(&[MANIFEST, ("crates/a/src/lib.rs", &long)]);
        assert_eq!(
            functions(&repo),
            ["a: 1 functions have more than 60 lines, at most 0 may: crates/a/src/lib.rs:1 f (61)"]
        );
    }

    #[test]
    fn an_exception_is_still_one() {
        let root = crate::sh::root();
        let text = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        for (path, reason) in LONG_FILES {
            let lines = code::before_tests(&text(path)).lines().count();
            assert!(
                lines > MAX_SOURCE_LINES && !reason.is_empty(),
                "{path}: {lines}"
            );
        }
        for (path, name, reason) in LONG_FUNCTIONS {
            let all = code::functions(code::before_tests(&text(path)));
            let long = |it: &code::Function| it.name == *name && it.lines > MAX_FUNCTION_LINES;
            assert!(all.iter().any(long) && !reason.is_empty(), "{path}: {name}");
        }
    }

    #[test]
    fn a_large_crate_is_found_and_comments_do_not_count() {
        let half = format!("// why\n\n{}", "x;\n".repeat(MAX_CRATE_LINES / 2));
        let one = ("crates/a/src/one.rs", half.as_str());
        let repo = Repo::of(&[MANIFEST, one, ("crates/a/src/two.rs", &half)]);
        assert!(crates(&repo).is_empty());
        let more = format!("{half}x;\n");
        let repo = Repo::of(&[MANIFEST, one, ("crates/a/src/two.rs", &more)]);
        assert_eq!(
            crates(&repo),
            [
                "a has 15001 lines of code, more than 15000: move a part that has a name into a crate"
            ]
        );
    }
}
