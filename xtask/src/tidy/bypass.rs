//! docs/bypass/attempts.toml: the attempts to get around the rules are all there, and each names the tests that make it.

use std::collections::BTreeSet;

use super::{Repo, invariants};
use crate::generate::attempts::{self, FILE};

/// Minimum number of attempts.
const MIN_ATTEMPTS: usize = 60;
/// Kinds of attempts, each with a section.
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
    let attempts = match attempts::parse(text) {
        Ok(attempts) => attempts,
        Err(error) => return vec![error],
    };
    let mut found = Vec::new();
    let mut ids = BTreeSet::new();
    let mut count = 0;
    let mut titles = BTreeSet::new();
    for section in attempts.page.iter().flat_map(|page| &page.section) {
        titles.insert(section.title.as_str());
        count += section.attempt.len();
        for attempt in &section.attempt {
            let place = format!("{FILE}: attempt {}", attempt.id);
            if !ids.insert(attempt.id) {
                found.push(format!("{place} is there twice"));
            }
            if attempt.tests.is_empty() {
                found.push(format!("{place} names no test"));
            }
            let unknown = attempt
                .tests
                .iter()
                .filter(|name| !invariants::shows(repo, name));
            found
                .extend(unknown.map(|name| {
                    format!("{place} names `{name}`, which is not a test that exists")
                }));
        }
    }
    found.extend(unknown_citations(repo, &ids));
    if count < MIN_ATTEMPTS {
        found.push(format!("{FILE} has {count} attempts, not {MIN_ATTEMPTS}"));
    }
    let missing = KINDS.iter().filter(|kind| !titles.contains(*kind));
    found.extend(missing.map(|kind| format!("{FILE} has no section `{kind}`")));
    found
}

/// Comments of the crates that cite an attempt which does not exist (`Attempts 1 and 2 of docs/bypass/attempts.toml`).
fn unknown_citations(repo: &Repo, ids: &BTreeSet<u32>) -> Vec<String> {
    let sources = repo.iter();
    let sources = sources.filter(|(path, _)| path.starts_with("crates/") && path.ends_with(".rs"));
    let mut found = Vec::new();
    for (path, text) in sources {
        let cited = text.lines().filter_map(|line| {
            let (before, _) = line.split_once(" of docs/bypass/attempts.toml")?;
            before.rsplit_once("Attempt").map(|(_, numbers)| numbers)
        });
        let numbers = cited.flat_map(|it| it.split(|c: char| !c.is_ascii_digit()));
        let unknown = numbers
            .filter_map(|it| it.parse().ok())
            .filter(|id| !ids.contains(id));
        found.extend(
            unknown.map(|id: u32| format!("{path} cites attempt {id}, which {FILE} does not have")),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn row(id: usize, tests: &str) -> String {
        format!("[[page.section.attempt]]\nid = {id}\nattempt = \"a try\"\ntests = [{tests}]\n")
    }

    #[test]
    fn a_row_without_a_test_and_a_missing_kind_are_found() {
        let own = "\"crates/a/src/b.rs::holds\"";
        let mut text = "[[page]]\nname = \"all\"\ntitle = \"All\"\n".to_owned();
        for kind in KINDS.iter().skip(2) {
            let _ = write!(text, "[[page.section]]\ntitle = \"{kind}\"\nattempt = []\n");
        }
        let _ = write!(text, "[[page.section]]\ntitle = \"{}\"\n", KINDS[1]);
        for id in 1..MIN_ATTEMPTS - 2 {
            text += &row(id, own);
        }
        text += &row(57, "\"crates/a/src/b.rs::gone\"");
        text += &row(70, "");
        let test =
            "/// Attempts 1, 2 and 999 of docs/bypass/attempts.toml.\n#[test]\nfn holds() {}\n";
        let repo = Repo::of(&[(FILE, text.as_str()), ("crates/a/src/b.rs", test)]);
        assert_eq!(
            check(&repo),
            [
                format!("{FILE}: attempt 57 is there twice"),
                format!(
                    "{FILE}: attempt 57 names `crates/a/src/b.rs::gone`, which is not a test that exists"
                ),
                format!("{FILE}: attempt 70 names no test"),
                format!("crates/a/src/b.rs cites attempt 999, which {FILE} does not have"),
                format!("{FILE} has 59 attempts, not 60"),
                format!("{FILE} has no section `Symbolic links`"),
            ]
        );
        assert_eq!(check(&Repo::of(&[])), [format!("{FILE} is missing")]);
    }
}
