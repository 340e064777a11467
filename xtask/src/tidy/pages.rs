//! Checks of pages: files named in them exist, no page is too long, and banned words are not used.

use super::Repo;

const PAGES_OF_PATHS: [&str; 3] = ["docs/where.md", "CONTRIBUTING.md", "STYLE.md"];

/// Maximum lines of a page; a longer one has more than one idea. Generated pages and the list of changes are exempt.
const MAX_PAGE_LINES: usize = 300;
const CHANGES: &str = "CHANGELOG.md";

/// Words banned by STYLE.md, with their replacements.
const OLD_WORDS: &[(&str, &str)] = &[
    ("told", "notified, published or reported"),
    ("box", "sandbox"),
    ("boxed", "sandboxed"),
    ("boxes", "sandboxes"),
    ("brought", "contributed"),
    ("the reference", "OpenCode"),
    ("The reference", "OpenCode"),
    ("whoever", "name the caller"),
    ("lets go", "releases"),
    ("comes to its end", "completes"),
    ("put aside", "moved aside or drained"),
    ("by heart", "say the thing"),
    ("on whose word", "authorised by"),
    ("a word in it", "say the thing"),
];

/// Checks the paths in backticks on pages that point readers to files.
pub(super) fn paths(repo: &Repo) -> Vec<String> {
    let mut found = Vec::new();
    for page in PAGES_OF_PATHS {
        let Some(text) = repo.text(page) else {
            found.push(format!("{page} is missing"));
            continue;
        };
        for path in text.split('`').skip(1).step_by(2) {
            let is_file = path.starts_with("crates/") && path.ends_with(".rs");
            if is_file && repo.text(path).is_none() {
                found.push(format!("{page} leads to {path}, which does not exist"));
            }
        }
    }
    found
}

/// Returns pages that are too long.
pub(super) fn lengths(repo: &Repo) -> Vec<String> {
    let pages = repo
        .iter()
        .filter(|(path, text)| path.ends_with(".md") && *path != CHANGES && !is_generated(text));
    pages
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

fn is_generated(text: &str) -> bool {
    text.lines()
        .take(5)
        .any(|line| line.contains("cargo xtask generate"))
}

/// Checks the words of STYLE.md in comments and names, and that constants are named `MAX_*` and `*_TIMEOUT`.
pub(super) fn words(repo: &Repo) -> Vec<String> {
    let mut found = old_words(repo);
    found.extend(old_words_of_pages(repo));
    found.extend(old_constants(repo));
    found
}

/// Returns lines with a word of [`OLD_WORDS`] in a comment or in the name of a variable or function.
fn old_words(repo: &Repo) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in code(repo) {
        for (number, line) in text.lines().enumerate() {
            if let Some((old, new)) = OLD_WORDS.iter().find(|(old, _)| has_old_word(line, old)) {
                let number = number + 1;
                found.push(format!("{path}:{number} says {old}: {new} (STYLE.md)"));
            }
        }
    }
    found
}

/// Checks pages for users. The list of changes is history, and STYLE.md names the words.
fn old_words_of_pages(repo: &Repo) -> Vec<String> {
    let is_page =
        |path: &str| path.ends_with(".md") && (path.starts_with("docs/") || path == "README.md");
    let (old, new) = ("told", "notified, published, reported or shown");
    let mut found = Vec::new();
    for (path, text) in repo.iter().filter(|(path, _)| is_page(path)) {
        for (number, line) in text.lines().enumerate() {
            let is_part = |it: char| !it.is_alphanumeric() && it != '_';
            if line.split(is_part).any(|word| word == old) {
                found.push(format!(
                    "{path}:{} says {old}: {new} (STYLE.md)",
                    number + 1
                ));
            }
        }
    }
    found
}

/// Returns whether a line has a word in its comment, or defines that name.
fn has_old_word(line: &str, word: &str) -> bool {
    let is_part = |it: char| it.is_alphanumeric() || it == '_';
    // `https://` does not start a comment.
    let mut starts = line.match_indices("//").map(|(at, _)| at);
    let start = starts.find(|at| !line.get(..*at).is_some_and(|it| it.ends_with(':')));
    let comment = start.and_then(|at| line.get(at..)).unwrap_or_default();
    let commented = comment.match_indices(word).any(|(at, _)| {
        let before = comment.get(..at).and_then(|it| it.chars().next_back());
        let after = comment.get(at + word.len()..);
        let after = after.and_then(|it| it.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    });
    let mut made = ["let ", "let mut ", "fn "].iter();
    let made = made.any(|start| {
        let rest = line.split_once(start).map_or("", |(_, rest)| rest);
        rest.split(|it| !is_part(it)).next() == Some(word)
    });
    commented || made
}

fn old_constants(repo: &Repo) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in code(repo) {
        for (number, line) in text.lines().enumerate() {
            if is_old_constant(line) {
                let number = number + 1;
                found.push(format!(
                    "{path}:{number} names a constant MOST or PATIENCE: MAX_* or *_TIMEOUT (STYLE.md)"
                ));
            }
        }
    }
    found
}

/// Returns sources, tests and benches of the crates.
fn code(repo: &Repo) -> impl Iterator<Item = (&str, &str)> {
    let is_code = |path: &str| {
        path.starts_with("crates/") && (path.ends_with(".rs") || path.contains("/host/"))
    };
    repo.iter().filter(move |(path, _)| is_code(path))
}

fn is_old_constant(line: &str) -> bool {
    let name = line
        .split_once("const ")
        .and_then(|(_, rest)| rest.split_once([':', '=']));
    name.is_some_and(|(name, _)| {
        name.trim()
            .split('_')
            .any(|it| ["MOST", "PATIENCE"].contains(&it))
    })
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
            (CHANGES, &long),
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
            ("crates/a/src/lib.rs", "const MAX_X: u8 = 1;\n"),
        ]);
        assert_eq!(
            paths(&repo),
            ["docs/where.md leads to crates/a/src/gone.rs, which does not exist"]
        );
        assert_eq!(words(&repo), [""; 0]);
        assert!(is_old_constant("pub(crate) const MOST_ROWS: usize = 4;"));
        assert!(!is_old_constant("pub(crate) const MAX_ROWS: usize = MOST;"));
    }

    #[test]
    fn an_old_word_is_found_in_comments_and_names() {
        for (line, found) in [
            ("/// It is told.", true),
            ("    let mut told = 1;", true),
            ("fn told() {", true),
            ("let it = untold; // a toldness", false),
            ("say(\"it is told\");", false),
            ("let other = told;", false),
            ("get(\"http://told\"); // fine", false),
        ] {
            assert_eq!(has_old_word(line, "told"), found, "{line}");
        }
        let path = "crates/outrigger-js/src/lib.rs";
        let repo = Repo::of(&[(path, "\n// in a box\n"), ("docs/b.md", "// a box")]);
        assert_eq!(
            words(&repo),
            [format!("{path}:2 says box: sandbox (STYLE.md)")]
        );
    }
}
