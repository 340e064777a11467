//! Checks docs/peers.md and docs/oh-my-opencode.md: each row of their tables names existing tests.
//!
//! The names are in the last cell, in backticks: tests, rules of tidy, tasks of `cargo xtask`. A row without a test yet says so instead
//! (`issue N`).

use super::{Repo, invariants};

const FILES: [&str; 2] = ["docs/peers.md", "docs/oh-my-opencode.md"];

pub(super) fn check(repo: &Repo) -> Vec<String> {
    FILES.iter().flat_map(|file| page(repo, file)).collect()
}

fn page(repo: &Repo, file: &str) -> Vec<String> {
    let Some(text) = repo.text(file) else {
        return vec![format!("{file} is missing")];
    };
    let mut found = Vec::new();
    let mut rows = 0;
    for (index, line) in text.lines().enumerate() {
        let Some((what, tests)) = row(line) else {
            continue;
        };
        rows += 1;
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        let later = tests
            .split("issue ")
            .skip(1)
            .any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if names.is_empty() && !later {
            found.push(format!("{file}:{} no test shows: {what}", index + 1));
        }
        let unknown = names
            .into_iter()
            .filter(|name| !invariants::shows(repo, name));
        found.extend(
            unknown
                .map(|name| format!("{file}:{} names `{name}`, which does not exist", index + 1)),
        );
    }
    if rows == 0 {
        found.push(format!("{file} has no table"));
    }
    found
}

/// Returns the first and last cell of a row that is neither a header nor the line below it.
fn row(line: &str) -> Option<(&str, &str)> {
    let cells = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let (first, last) = cells.split_once('|')?;
    let (first, last) = (first.trim(), last.trim());
    let head =
        first.starts_with("---") || first.starts_with("What goes wrong") || first == "Function";
    (!head).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_existing_test_is_found() {
        let page = "# P\n\n| What goes wrong elsewhere | Shown by |\n|---|---|\n\
            | Hangs. | `crates/a/src/b.rs::it_does_not`, `tidy:peers` |\n\
            | Never trips. | comes with issue 4 |\n\
            | Leaks. | nothing yet |\n\
            | Loses. | `crates/a/src/b.rs::gone`, `crates/a/src/b.rs` |\n";
        let files = &[
            ("docs/a.md", page),
            (
                "docs/b.md",
                "| Function | Tests |\n|---|---|\n| Sleeps | `tidy:peers` |\n",
            ),
            ("docs/c.md", "# P\n"),
            ("crates/a/src/b.rs", "#[test]\nfn it_does_not() {}\n"),
        ];
        let repo = Repo::of(files);
        assert_eq!(
            super::page(&repo, "docs/a.md"),
            [
                "docs/a.md:7 no test shows: Leaks.",
                "docs/a.md:8 names `crates/a/src/b.rs::gone`, which does not exist",
                "docs/a.md:8 names `crates/a/src/b.rs`, which does not exist",
            ]
        );
        assert_eq!(super::page(&repo, "docs/b.md"), [""; 0]);
        assert_eq!(super::page(&repo, "docs/c.md"), ["docs/c.md has no table"]);
        assert_eq!(
            check(&repo),
            [
                "docs/peers.md is missing",
                "docs/oh-my-opencode.md is missing"
            ]
        );
    }
}
