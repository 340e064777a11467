//! docs/bypass.md: the table of attempts to get around the rules (issue 5) is whole, and each names the tests that make it.

use std::collections::BTreeSet;

use super::{Repo, invariants};

const FILE: &str = "docs/bypass.md";
/// The issue asks for so many at least.
const LEAST: usize = 60;
/// Kinds of attempts, each a section.
const KINDS: [&str; 17] = [
    "Symbolic links",
    "`..` and other spellings of a path",
    "`/proc/self/root` and its like",
    "Hard links",
    "Renaming, and what is exchanged in between",
    "Shell indirection",
    "Environment smuggling",
    "Child processes",
    "Loopback, private networks, and ways past the proxy",
    "Reverse requests",
    "Patches outside of a point's rights",
    "Failure to success",
    "A manifest that lies",
    "A shadowed required id",
    "A folder that everybody may write to",
    "A changed file after review",
    "Edits of the audit",
];

pub(super) fn check(repo: &Repo) -> Vec<String> {
    let Some(text) = repo.text(FILE) else {
        return vec![format!("{FILE} is missing")];
    };
    let mut found = Vec::new();
    let mut rows = 0;
    // A number is a row's name: others cite it, so it is never given again; sections grow side by side, so there are gaps.
    let mut numbers = BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        let place = format!("{FILE}:{}", index + 1);
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", number, .., tests, ""] = cells.as_slice() else {
            continue;
        };
        if *number == "No." || number.starts_with("---") {
            continue;
        }
        rows += 1;
        if !number
            .parse::<u32>()
            .is_ok_and(|number| numbers.insert(number))
        {
            found.push(format!("{place} has the number {number}, which is not new"));
        }
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            found.push(format!("{place} names no test"));
        }
        for name in names {
            if !name.contains("::") || !invariants::exists(repo, name) {
                found.push(format!(
                    "{place} names `{name}`, which is no test that exists"
                ));
            }
        }
    }
    if rows < LEAST {
        found.push(format!("{FILE} has {rows} attempts, not {LEAST}"));
    }
    for kind in KINDS {
        if !text
            .lines()
            .any(|line| line.strip_prefix("## ") == Some(kind))
        {
            found.push(format!("{FILE} has no section `{kind}`"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_a_test_and_a_missing_kind_are_found() {
        let own = "crates/a/src/b.rs::holds";
        let mut page = String::new();
        for kind in KINDS.iter().skip(1) {
            page += &format!("## {kind}\n");
        }
        for number in 1..LEAST - 2 {
            page += &format!("| {number} | a try | `{own}` |\n");
        }
        page += "| 57 | a try | `crates/a/src/b.rs::gone` |\n| 70 | a try | nothing |\n";
        let test = "#[test]\nfn holds() {}\n";
        let repo = Repo::of(&[(FILE, page.as_str()), ("crates/a/src/b.rs", test)]);
        let line = KINDS.len() - 1 + LEAST - 2;
        assert_eq!(
            check(&repo),
            [
                format!("{FILE}:{line} has the number 57, which is not new"),
                format!(
                    "{FILE}:{line} names `crates/a/src/b.rs::gone`, which is no test that exists"
                ),
                format!("{FILE}:{} names no test", line + 1),
                format!("{FILE} has 59 attempts, not 60"),
                format!("{FILE} has no section `Symbolic links`"),
            ]
        );
    }
}
