//! Words that STYLE.md gives up. Its table is the only list: what is written there is checked, in the places that the row names.

use super::{Repo, code};

const STYLE: &str = "STYLE.md";
/// The head of the table in STYLE.md.
const HEAD: &str = "| Not | But | Checked in |";

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
struct Row<'a> {
    /// Words, or beginnings of constants (`MOST_*`).
    old: Vec<&'a str>,
    new: &'a str,
    scopes: Vec<Scope>,
}

/// Where a word is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Comments of sources and tests.
    Comments,
    /// Names that `let` and `fn` introduce, and constants for rows such as `MOST_*`.
    Names,
    /// String literals of sources, outside of tests.
    Strings,
    /// README.md and what is below docs/.
    Pages,
}

/// Comments, names, strings and pages use the words of STYLE.md.
pub(super) fn check(repo: &Repo) -> Vec<String> {
    let rows = match rows(repo.text(STYLE).unwrap_or_default()) {
        Ok(rows) => rows,
        Err(offence) => return vec![offence],
    };
    let mut found = Vec::new();
    for (path, text) in repo.iter() {
        for (scope, text) in scopes(path, text) {
            for (index, line) in text.lines().enumerate() {
                for row in rows.iter().filter(|row| row.scopes.contains(&scope)) {
                    if let Some(old) = row.old.iter().find(|old| scope.has(line, old)) {
                        let number = index + 1;
                        found.push(format!("{path}:{number} says {old}: {} ({STYLE})", row.new));
                    }
                }
            }
        }
    }
    found
}

/// The rows of the table; an offence if the table is missing or a row cannot be read.
fn rows(style: &str) -> Result<Vec<Row<'_>>, String> {
    let mut lines = style.lines().skip_while(|line| *line != HEAD).skip(2);
    let mut rows = Vec::new();
    for line in lines.by_ref().take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [old, new, scopes] = cells.as_slice() else {
            return Err(format!("{STYLE}: a row of words has three cells: {line}"));
        };
        let old = old.split(", ").map(|word| word.trim_matches('`')).collect();
        let scopes: Option<Vec<Scope>> = match *scopes {
            "reviews" => Some(Vec::new()),
            names => names.split(", ").map(Scope::of).collect(),
        };
        let scopes = scopes.ok_or_else(|| {
            format!("{STYLE}: `comments`, `names`, `strings`, `pages` or `reviews`: {line}")
        })?;
        rows.push(Row { old, new, scopes });
    }
    if rows.is_empty() {
        return Err(format!("{STYLE} has no table `{HEAD}`"));
    }
    Ok(rows)
}

impl Scope {
    fn of(name: &str) -> Option<Self> {
        match name {
            "comments" => Some(Self::Comments),
            "names" => Some(Self::Names),
            "strings" => Some(Self::Strings),
            "pages" => Some(Self::Pages),
            _ => None,
        }
    }

    /// Whether a line of this scope has a word. The first letter of a word in prose may be a capital.
    fn has(self, line: &str, word: &str) -> bool {
        match (self, word.strip_suffix("_*")) {
            (Self::Names, Some(start)) => is_constant(line, start),
            (_, Some(_)) => false,
            (Self::Names, None) => is_introduced(line, word),
            (_, None) => has_word(line, word) || has_word(line, &capital(word)),
        }
    }
}

/// The texts of a file in which words are looked for; lines stay where they are.
fn scopes(path: &str, text: &str) -> Vec<(Scope, String)> {
    let is_crate = path.starts_with("crates/");
    let is_rust = path.ends_with(".rs");
    let is_page = path.ends_with(".md") && (path.starts_with("docs/") || path == "README.md");
    let mut scopes = Vec::new();
    if is_crate && (is_rust || path.contains("/host/")) {
        scopes.push((Scope::Comments, comments(text)));
        scopes.push((Scope::Names, text.to_owned()));
    }
    if is_crate && is_rust && is_product(path) {
        scopes.push((Scope::Strings, code::strings(code::before_tests(text))));
    }
    if is_page {
        scopes.push((Scope::Pages, text.to_owned()));
    }
    scopes
}

/// Sources of the product, not of its tests and benches.
fn is_product(path: &str) -> bool {
    path.contains("/src/")
        && !path.starts_with("crates/outrigger-test-support/")
        && !path.contains("/tests/")
        && !path.ends_with("tests.rs")
}

/// What follows `//` in each line. `https://` begins no comment.
fn comments(text: &str) -> String {
    let comment = |line: &str| {
        let mut starts = line.match_indices("//").map(|(at, _)| at);
        starts
            .find(|at| !line.get(..*at).is_some_and(|it| it.ends_with(':')))
            .and_then(|at| line.get(at..))
            .unwrap_or_default()
            .to_owned()
    };
    let lines: Vec<String> = text.lines().map(comment).collect();
    lines.join("\n")
}

fn is_part(it: char) -> bool {
    it.is_alphanumeric() || it == '_'
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|it| it.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// Whether a line has a word, or several in a row, that are not part of longer ones.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|it| it.chars().next_back());
        let after = line.get(at + word.len()..).and_then(|it| it.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// Whether a line makes a variable or a function of this name.
fn is_introduced(line: &str, word: &str) -> bool {
    ["let ", "let mut ", "fn "].iter().any(|start| {
        let rest = line.split_once(start).map_or("", |(_, rest)| rest);
        rest.split(|it| !is_part(it)).next() == Some(word)
    })
}

/// Whether a line makes a constant with `part` between its underscores.
fn is_constant(line: &str, part: &str) -> bool {
    let name = line
        .split_once("const ")
        .and_then(|(_, rest)| rest.split_once([':', '=']));
    name.is_some_and(|(name, _)| name.trim().split('_').any(|it| it == part))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# Style\n\n| Not | But | Checked in |\n|---|---|---|\n\
        | told, box | shown | comments, names |\n| left out | skipped | strings, pages |\n\
        | `MOST_*` | `MAX_*` | names |\n| whims | plans | reviews |\n\ntext\n";

    #[test]
    fn a_word_is_found_where_its_row_says() {
        let path = "crates/outrigger-js/src/lib.rs";
        let source = "\n// Told by whims.\nlet box = 1; // a box: left out\nlet other = \"told\";\n\
            const MOST_ROWS: u8 = 1;\nlet x = \"a \\\n  line left out\"; // untold\nget(\"http://told\");\n\
            #[cfg(test)]\nmod tests {\n    const X: &str = \"left out\";\n}\n";
        let repo = Repo::of(&[
            (STYLE, TABLE),
            (path, source),
            ("crates/a/tests/it/x.rs", "\"left out\"; // box"),
            ("docs/a.md", "Left out, boxed, told.\n"),
            ("CHANGELOG.md", "left out\n"),
        ]);
        let found = [
            format!("{path}:2 says told: shown (STYLE.md)"),
            format!("{path}:3 says box: shown (STYLE.md)"),
            format!("{path}:3 says box: shown (STYLE.md)"),
            format!("{path}:5 says MOST_*: `MAX_*` (STYLE.md)"),
            format!("{path}:7 says left out: skipped (STYLE.md)"),
            "crates/a/tests/it/x.rs:1 says box: shown (STYLE.md)".to_owned(),
            "docs/a.md:1 says left out: skipped (STYLE.md)".to_owned(),
        ];
        assert_eq!(check(&repo), found);
    }

    #[test]
    fn a_table_that_cannot_be_read_is_an_offence() {
        for (style, offence) in [
            ("# Style\n", "STYLE.md has no table"),
            (
                "| Not | But | Checked in |\n|---|---|---|\n| a | b |\n",
                "STYLE.md: a row of words has three cells",
            ),
            (
                "| Not | But | Checked in |\n|---|---|---|\n| a | b | prose |\n",
                "STYLE.md: `comments`",
            ),
        ] {
            let found = check(&Repo::of(&[(STYLE, style)]));
            assert!(
                found.len() == 1 && found[0].starts_with(offence),
                "{found:?}"
            );
        }
    }
}
