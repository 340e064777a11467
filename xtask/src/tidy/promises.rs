//! Checks that promises on pages have a test: a paragraph (a list, a table) with a number and its unit, or with "never", "always" or
//! "every", must name its tests in a comment at its end.
//!
//!     <!-- shown by: crates/a/tests/it/b.rs::it_does_not, crates/a/src/b.rs::MAX_FILES = 100 -->
//!
//! The second form compares a number on the page with a constant (or a field) of the source that a test uses by name; it accompanies a
//! test and does not replace it. Each row of a table with a promise has a test of its own, after words that are in that row and in no
//! other, or the table has one that covers all of its rows:
//!
//!     <!-- shown by: (`--file`) crates/a/tests/it/b.rs::files_are_read, (each row) crates/a/tests/it/b.rs::all -->
//!
//! If these words promise nothing, the block says so: `<!-- no promise: WHY -->`.

use super::{Repo, invariants};

/// Exempt pages (and folders), with the reason.
const EXCEPTIONS: [(&str, &str); 4] = [
    (
        "docs/bypass/",
        "made of rows that name their tests (tidy:bypass)",
    ),
    ("docs/decisions/", "what was decided and why, at the time"),
    ("docs/peers.md", "its rows name their tests (tidy:peers)"),
    (
        "docs/requirements.md",
        "made of rows that name their tests (tidy:requirements)",
    ),
];

const WORDS: [&str; 3] = ["never", "always", "every"];

/// Numbers in words; "a" and "an" count only before a unit of time, since prose is full of them.
const NUMBERS: [&str; 17] = [
    "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve", "fifteen",
    "sixteen", "twenty", "thirty", "sixty", "hundred", "thousand",
];

/// Times that "a" promises as well.
const TIMES: [&str; 2] = ["minute", "hour"];

/// Units, in the plural: the singular of each also counts.
const UNITS: [&str; 54] = [
    "%",
    "addresses",
    "attempts",
    "B",
    "bits",
    "bytes",
    "calls",
    "cells",
    "characters",
    "columns",
    "connections",
    "cores",
    "days",
    "entries",
    "events",
    "files",
    "folders",
    "GB",
    "GiB",
    "gigabytes",
    "hosts",
    "hours",
    "KB",
    "KiB",
    "levels",
    "lines",
    "MB",
    "megabytes",
    "messages",
    "MiB",
    "milliseconds",
    "min",
    "minutes",
    "ms",
    "names",
    "processes",
    "records",
    "requests",
    "restarts",
    "retries",
    "rounds",
    "rules",
    "s",
    "seconds",
    "sessions",
    "steps",
    "threads",
    "times",
    "tokens",
    "tries",
    "turns",
    "us",
    "weeks",
    "years",
];

const SHOWN: &str = "<!-- shown by:";
const NONE: &str = "<!-- no promise:";
/// In the place of a row's words: for all rows.
const EACH_ROW: &str = "each row";
/// Characters of a row in a message.
const MAX_SHOWN: usize = 60;

pub(super) fn check(repo: &Repo) -> Vec<String> {
    repo.iter()
        .filter(|(path, _)| is_held(path))
        .flat_map(|(page, text)| offences(repo, page, text))
        .collect()
}

/// Returns whether a file is a page for users.
fn is_held(path: &str) -> bool {
    let is_page = path == "README.md" || (path.starts_with("docs/") && path.ends_with(".md"));
    is_page && !EXCEPTIONS.iter().any(|(place, _)| path.starts_with(place))
}

/// An entry of a comment: a test or a value, and the words of the row that it is for.
struct Shown<'a> {
    row: Option<&'a str>,
    name: &'a str,
}

impl<'a> Shown<'a> {
    fn of(entry: &'a str) -> Self {
        let labelled = entry.strip_prefix('(').and_then(|it| it.split_once(") "));
        match labelled {
            Some((row, name)) => Self {
                row: Some(row),
                name: name.trim(),
            },
            None => Self {
                row: None,
                name: entry,
            },
        }
    }

    fn is_value(&self) -> bool {
        self.name.contains(" = ")
    }
}

fn offences(repo: &Repo, page: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (line, block) in blocks(text) {
        let shown: Vec<Shown<'_>> = shown_by(&block).into_iter().map(Shown::of).collect();
        let (values, tests): (Vec<_>, Vec<_>) = shown.iter().partition(|it| it.is_value());
        let changed = values.iter().filter(|it| !is_value(repo, it.name));
        found
            .extend(changed.map(|it| format!("{page}:{line}: `{}` is not so (any more)", it.name)));
        let unknown = tests.iter().filter(|it| !invariants::shows(repo, it.name));
        found.extend(
            unknown.map(|it| format!("{page}:{line} names `{}`, which is not a test", it.name)),
        );
        if tests.is_empty()
            && !block.contains(NONE)
            && let Some(promise) = promise(&block)
        {
            found.push(format!(
                "{page}:{line} says \"{promise}\", and no test is named for it (`{SHOWN} PATH::TEST -->` at its end)"
            ));
        }
        let untied = untied(&block, &shown);
        found.extend(
            untied
                .into_iter()
                .map(|what| format!("{page}:{line}: {what}")),
        );
    }
    found
}

/// The rows of a table that promise something and have no test that is named for them: a later row would have that of an earlier one.
/// And what is named for a row that is not there, or for several.
fn untied(block: &str, shown: &[Shown<'_>]) -> Vec<String> {
    let rows = rows(block);
    let labels = shown
        .iter()
        .filter_map(|it| it.row.filter(|row| *row != EACH_ROW));
    let of_one = |label: &&str| rows.iter().filter(|row| row.contains(label)).count() != 1;
    let mut found: Vec<String> = labels
        .filter(of_one)
        .map(|label| format!("`({label})` stands in no row of the table, or in several"))
        .collect();
    let holds = |row: &str| {
        let mut tests = shown.iter().filter(|it| !it.is_value());
        tests.any(|it| it.row.is_some_and(|of| of == EACH_ROW || row.contains(of)))
    };
    let has_test = shown.iter().any(|it| !it.is_value());
    for row in rows.iter().filter(|row| has_test && !holds(row)) {
        if let Some(promise) = promise(row) {
            let start: String = row.chars().take(MAX_SHOWN).collect();
            found.push(format!(
                "the row \"{start}\" says \"{promise}\", and no test is named for it (`(WORDS OF THE ROW) PATH::TEST`, or `({EACH_ROW}) PATH::TEST` \
                 for a test of all of them)"
            ));
        }
    }
    found
}

/// Returns the rows of a table, without its head.
fn rows(block: &str) -> Vec<&str> {
    let is_rule = |row: &str| row.chars().all(|it| matches!(it, '|' | '-' | ':' | ' '));
    let rows: Vec<&str> = block.lines().filter(|line| line.starts_with('|')).collect();
    let head = rows
        .iter()
        .position(|row| is_rule(row))
        .map_or(0, |at| at + 1);
    rows.into_iter().skip(head).collect()
}

/// Returns paragraphs, lists and tables with their first line; code and headings are excluded.
fn blocks(text: &str) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let (mut is_open, mut is_code) = (false, false);
    for (index, line) in text.lines().enumerate() {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        let is_text = !line.trim().is_empty() && !line.starts_with('#');
        if !is_text || is_fence || is_code || (!is_open && line.starts_with("    ")) {
            is_open = false;
            continue;
        }
        match all.last_mut().filter(|_| is_open) {
            Some((_, block)) => {
                block.push('\n');
                block.push_str(line);
            }
            None => all.push((index + 1, line.to_owned())),
        }
        is_open = true;
    }
    all
}

/// Returns the names in the comments of a block.
fn shown_by(block: &str) -> Vec<&str> {
    let comments = block.split(SHOWN).skip(1);
    let lists = comments.filter_map(|rest| rest.split("-->").next());
    let names = lists.flat_map(|list| {
        // Values may contain commas.
        let mut depth = 0_usize;
        list.split(move |it| {
            match it {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            it == ',' && depth == 0
        })
    });
    names.map(str::trim).filter(|it| !it.is_empty()).collect()
}

/// Returns whether the source defines a constant or a field as in `PATH::NAME = VALUE`.
fn is_value(repo: &Repo, name: &str) -> bool {
    let Some((place, value)) = name.split_once(" = ") else {
        return false;
    };
    let Some((path, name)) = place.split_once("::") else {
        return false;
    };
    let lines = repo.text(path).unwrap_or_default().lines().map(str::trim);
    let constant = format!("const {name}");
    let mut said = lines.filter_map(|line| match line.split_once(&constant) {
        // Rust has the type before the value, JavaScript has none.
        Some((_, rest)) if rest.starts_with([':', ' ']) => {
            rest.split_once(" = ")?.1.strip_suffix(';')
        }
        Some(_) => None,
        None => line
            .strip_prefix(name)?
            .strip_prefix(": ")?
            .strip_suffix(','),
    });
    said.any(|said| said.replace('_', "") == value.replace('_', ""))
}

/// Returns the first words of a promise in a block.
fn promise(block: &str) -> Option<String> {
    let words: Vec<&str> = block.split_whitespace().map(plain).collect();
    let word = words
        .iter()
        .find(|word| WORDS.contains(&word.to_lowercase().as_str()));
    let number = || {
        let mut pairs = words.windows(2);
        pairs.find_map(|pair| match pair {
            [number, unit] if is_number(number, unit) && is_unit(unit) => {
                Some(format!("{number} {unit}"))
            }
            _ => None,
        })
    };
    word.map(|word| (*word).to_owned()).or_else(number)
}

/// Returns a word without surrounding punctuation.
fn plain(word: &str) -> &str {
    word.trim_matches(|it: char| !it.is_alphanumeric() && it != '%')
}

fn is_number(word: &str, unit: &str) -> bool {
    let is_part = |it: char| it.is_ascii_digit() || it == ',' || it == '.';
    let is_digits = word.starts_with(|it: char| it.is_ascii_digit()) && word.chars().all(is_part);
    let is_one = ["a", "an"].contains(&word) && TIMES.contains(&unit);
    is_digits || is_one || NUMBERS.contains(&word.to_lowercase().as_str())
}

fn is_unit(word: &str) -> bool {
    UNITS
        .iter()
        .any(|unit| word == *unit || word == singular(unit))
}

/// The singular of a unit of [`UNITS`]; `%` and abbreviations have none of their own.
fn singular(unit: &str) -> String {
    let stem = unit.strip_suffix("ies").map(|stem| format!("{stem}y"));
    stem.or_else(|| {
        let stem = unit.strip_suffix("es")?;
        stem.ends_with("ss").then(|| stem.to_owned())
    })
    .unwrap_or_else(|| match unit {
        "ms" | "us" | "s" => unit.to_owned(),
        _ => unit.strip_suffix('s').unwrap_or(unit).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_their_singular() {
        for (word, is) in [
            ("entry", true),
            ("address", true),
            ("process", true),
            ("retry", true),
            ("try", true),
            ("minute", true),
            ("ms", true),
            ("m", false),
            ("entrie", false),
            ("addresse", false),
        ] {
            assert_eq!(is_unit(word), is, "{word}");
        }
    }

    #[test]
    fn a_promise_without_an_existing_test_is_found() {
        let page = "# Every page\n\nIt is fine.\n\nIt waits 5 s,\nor so.\n\n```\nnever\n```\n\n    always\n\n\
            - It never\n  fails. <!-- shown by: crates/a/src/b.rs::it, crates/a/src/b.rs::gone -->\n\n\
            Its \"Every\" is a word. <!-- no promise: a name -->\n\n|---|---|\n| a | 1,000 files |\n<!-- shown by: (1,000 files) tidy:words -->\n\n\
            At most 10 files. <!-- shown by: crates/a/src/b.rs::MAX = 1000 * 10, crates/a/src/b.rs::most = (20, f(2)), tidy:words -->\n\n\
            At most 11 files. <!-- shown by: crates/a/src/b.rs::MAX = 11 -->\n\n\
            | Every | files |\n|---|---|\n| `a` | 2 files |\n| `b` | never |\n| c | fine |\n<!-- shown by: (`a`) tidy:words, (`b`) crates/a/src/b.rs::MAX = 1000 * 10, \
            (never) crates/a/src/b.rs::it, (x) tidy:words, (`) tidy:words -->\n\n| `a` | 2 files |\n| `b` | never |\n<!-- shown by: (`a`) tidy:words, (`b`) crates/a/src/b.rs::MAX = 1000 * 10 -->\n\n\
            | a | 2 files |\n| b | never |\n<!-- shown by: (each row) tidy:words -->\n";
        let repo = Repo::of(&[
            ("docs/a.md", page),
            ("docs/peers.md", "Every row.\n"),
            ("crates/README.md", "Every crate.\n"),
            (
                "crates/a/src/b.rs",
                "pub(crate) const MAX: usize = 1_000 * 10;\n    most: (20, f(2)),\n#[test]\nfn it() {}\n",
            ),
        ]);
        assert_eq!(
            check(&repo),
            [
                "docs/a.md:5 says \"5 s\", and no test is named for it (`<!-- shown by: PATH::TEST -->` at its end)",
                "docs/a.md:14 names `crates/a/src/b.rs::gone`, which is not a test",
                "docs/a.md:25: `crates/a/src/b.rs::MAX = 11` is not so (any more)",
                "docs/a.md:25 says \"11 files\", and no test is named for it (`<!-- shown by: PATH::TEST -->` at its end)",
                "docs/a.md:27: `(x)` stands in no row of the table, or in several",
                "docs/a.md:27: `(`)` stands in no row of the table, or in several",
                "docs/a.md:34: the row \"| `b` | never |\" says \"never\", and no test is named for it (`(WORDS OF THE ROW) PATH::TEST`, or `(each row) PATH::TEST` for a test of all of them)",
            ]
        );
    }

    #[test]
    fn numbers_with_units_and_words_that_promise() {
        for (text, want) in [
            ("It takes 5 seconds.", Some("5 seconds")),
            ("It takes 1 minute.", Some("1 minute")),
            ("At most 1,000,000 files", Some("1,000,000 files")),
            ("Every time", Some("Every")),
            ("everything is `nevermore`", None),
            ("It waits ten minutes.", Some("ten minutes")),
            ("Once a minute", Some("a minute")),
            ("A file of two kinds", None),
            ("HTTP 403 is an answer", None),
            ("Linux 5.13 with user namespaces", None),
        ] {
            assert_eq!(promise(text).as_deref(), want, "{text}");
        }
    }
}
