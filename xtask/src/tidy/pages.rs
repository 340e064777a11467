//! What pages promise about the source: the files that they name exist, and no page is too long.

use super::Repo;

const PAGES_OF_PATHS: [&str; 3] = ["docs/where.md", "CONTRIBUTING.md", "STYLE.md"];

/// Lines of a page; one that is longer has more than one idea. Generated pages have no limit.
const MAX_PAGE_LINES: usize = 300;

/// Checks the paths in backticks on pages that point readers to files.
pub(super) fn paths(repo: &Repo) -> Vec<String> {
    let mut found = Vec::new();
    for page in PAGES_OF_PATHS {
        let Some(text) = repo.text(page) else {
            found.push(format!("{page} is missing"));
            continue;
        };
        let files = in_backticks(text)
            .filter(|path| path.starts_with("crates/") && path.ends_with(".rs"))
            .filter(|path| repo.text(path).is_none());
        found.extend(files.map(|path| format!("{page} names {path}, which does not exist")));
    }
    for name in repo.crates() {
        found.extend(paths_of_readme(repo, name));
    }
    found
}

/// A crate's README names files and folders of that crate: `src/lib.rs`, or only their end, `lib.rs` and `parts/`.
fn paths_of_readme(repo: &Repo, name: &str) -> Vec<String> {
    let folder = format!("crates/{name}/");
    let page = format!("{folder}README.md");
    let files: Vec<&str> = repo
        .iter()
        .filter_map(|(path, _)| path.strip_prefix(&folder))
        .collect();
    let exists = |path: &str| match path.strip_suffix('/') {
        Some(_) => files
            .iter()
            .any(|file| file.starts_with(path) || file.contains(&format!("/{path}"))),
        None => files
            .iter()
            .any(|file| *file == path || file.ends_with(&format!("/{path}"))),
    };
    let is_path = |path: &&str| {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "_-./".contains(it);
        let is_named = path.ends_with(".rs") || path.ends_with('/');
        path.chars().all(is_plain) && is_named && !path.starts_with("crates/") && path.len() > 1
    };
    in_backticks(repo.text(&page).unwrap_or_default())
        .filter(is_path)
        .filter(|path| !exists(path))
        .map(|path| format!("{page} names {path}, which does not exist"))
        .collect()
}

fn in_backticks(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Pages that have too many lines.
pub(super) fn lengths(repo: &Repo) -> Vec<String> {
    repo.iter()
        .filter(|(path, text)| path.ends_with(".md") && !is_generated(text))
        .filter_map(|(path, text)| {
            let lines = text.lines().count();
            (lines > MAX_PAGE_LINES).then(|| {
                format!(
                    "{path} has {lines} lines, {MAX_PAGE_LINES} are allowed: split it by its ideas"
                )
            })
        })
        .collect()
}

pub(super) fn is_generated(text: &str) -> bool {
    text.lines()
        .take(5)
        .any(|line| line.contains("Made by `cargo xtask generate`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_page_is_an_offence_unless_it_is_generated() {
        let long = "line\n".repeat(MAX_PAGE_LINES + 1);
        let generated = format!("# Hooks\n\nMade by `cargo xtask generate`.\n{long}");
        let repo = Repo::of(&[
            ("docs/a.md", &long),
            ("docs/b.md", &generated),
            ("docs/c.md", "line\n"),
        ]);
        assert_eq!(
            lengths(&repo),
            ["docs/a.md has 301 lines, 300 are allowed: split it by its ideas"]
        );
    }

    #[test]
    fn what_pages_do_not_hold_is_an_offence() {
        let repo = Repo::of(&[
            (
                "docs/where.md",
                "`crates/a/src/lib.rs` `crates/a/src/gone.rs`",
            ),
            ("CONTRIBUTING.md", ""),
            ("STYLE.md", ""),
            ("crates/a/src/lib.rs", ""),
            ("crates/a/tests/it", ""),
            ("crates/a/Cargo.toml", ""),
            (
                "crates/a/README.md",
                "`src/lib.rs` `lib.rs` `src/` `tests/it` `other.rs` `src/other.rs` `parts/` `Type::new` `host/*.mjs`",
            ),
        ]);
        assert_eq!(
            paths(&repo),
            [
                "docs/where.md names crates/a/src/gone.rs, which does not exist",
                "crates/a/README.md names other.rs, which does not exist",
                "crates/a/README.md names src/other.rs, which does not exist",
                "crates/a/README.md names parts/, which does not exist",
            ]
        );
    }
}
