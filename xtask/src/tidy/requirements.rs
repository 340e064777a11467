//! Checks docs/requirements/rows.toml: every requirement has a row whose files and tests exist, and every number cited in a
//! comment of the source is a requirement.

use std::collections::BTreeSet;

use super::{Repo, invariants};
use crate::generate::requirements::{self, FILE, Row};

/// The letters of the requirements, with the last number of each.
const NUMBERS: [(char, u8); 5] = [('A', 16), ('B', 13), ('C', 17), ('D', 9), ('E', 6)];

pub(super) fn check(repo: &Repo) -> Vec<String> {
    let Some(text) = repo.text(FILE) else {
        return vec![format!("{FILE} is missing")];
    };
    let requirements = match requirements::parse(text) {
        Ok(requirements) => requirements,
        Err(error) => return vec![error],
    };
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    for row in requirements.rows() {
        if !known.insert(row.number.as_str()) {
            found.push(format!("{FILE}: {} is there twice", row.number));
        }
        found.extend(offences(repo, row));
    }
    let numbers = NUMBERS
        .iter()
        .flat_map(|(letter, last)| (1..=*last).map(move |number| format!("{letter}{number}")));
    let missing = numbers.filter(|number| !known.contains(number.as_str()));
    found.extend(missing.map(|number| format!("{FILE} has no row {number}")));
    found.extend(citations(repo, &known));
    found
}

/// Returns the violations of one row.
fn offences(repo: &Repo, row: &Row) -> Vec<String> {
    let number = &row.number;
    let mut found = Vec::new();
    if row.shown_by.is_empty() && row.left_out.is_empty() {
        found.push(format!(
            "{FILE}: {number} has no test and does not say what is left out"
        ));
    }
    if !row.shown_by.is_empty() && row.built_in.is_empty() {
        found.push(format!("{FILE}: {number} does not say where it is built"));
    }
    let gone = row.built_in.iter().filter(|path| !is_there(repo, path));
    found.extend(gone.map(|path| format!("{FILE}: {number} names {path}, which does not exist")));
    let unknown = row
        .shown_by
        .iter()
        .filter(|name| !invariants::shows(repo, name));
    found.extend(
        unknown.map(|name| {
            format!("{FILE}: {number} names `{name}`, which is not a test that exists")
        }),
    );
    found
}

/// Returns whether a path is a file or a folder with files.
fn is_there(repo: &Repo, path: &str) -> bool {
    let folder = format!("{}/", path.trim_end_matches('/'));
    repo.iter()
        .any(|(file, _)| file == path || file.starts_with(&folder))
}

/// Returns numbers cited in comments of the source that have no row.
fn citations(repo: &Repo, known: &BTreeSet<&str>) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in sources(repo) {
        for (index, line) in text.lines().enumerate() {
            let comment = line.split_once("//").map_or("", |(_, comment)| comment);
            let unknown = cited(comment).filter(|number| !known.contains(number));
            found.extend(unknown.map(|number| {
                format!(
                    "{path}:{} cites {number}, which {FILE} does not have",
                    index + 1
                )
            }));
        }
    }
    found
}

fn sources(repo: &Repo) -> impl Iterator<Item = (&str, &str)> {
    repo.iter().filter(|(path, _)| {
        path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs")
    })
}

/// Returns words like `A7` or `C13` that are cited as requirements: in brackets, or after "requirement".
fn cited(comment: &str) -> impl Iterator<Item = &str> {
    let brackets = comment.split('(').skip(1).filter_map(|rest| {
        let (inside, _) = rest.split_once(')')?;
        inside
            .split([',', ' '])
            .filter(|word| !word.is_empty())
            .all(is_number)
            .then_some(inside)
    });
    let named = comment
        .split("requirement ")
        .skip(1)
        .filter_map(|rest| rest.split([' ', ',', ')', '.', ':', ';']).next());
    brackets
        .flat_map(|inside| inside.split([',', ' ']))
        .chain(named)
        .filter(|word| is_number(word))
}

fn is_number(word: &str) -> bool {
    let Some(digits) = word.strip_prefix(|letter| ('A'..='E').contains(&letter)) else {
        return false;
    };
    (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn numbers_are_found_where_they_are_cited() {
        let cited = |text| cited(text).collect::<Vec<_>>();
        assert_eq!(cited("does it (A7, C13). U+00B5"), ["A7", "C13"]);
        assert_eq!(cited("requirement B7, `x`"), ["B7"]);
        assert_eq!(cited("(see A7) C3 D"), [""; 0]);
    }

    #[test]
    fn a_row_without_a_test_and_a_number_without_a_row_are_found() {
        let mut text = "[[section]]\ntitle = \"All\"\n".to_owned();
        let mut row = |number: &str, rest: &str| {
            let _ = write!(
                text,
                "[[section.row]]\nnumber = \"{number}\"\nin_short = \"x\"\n{rest}\n"
            );
        };
        let test = "\"crates/a/src/b.rs::holds\"";
        for (letter, last) in NUMBERS {
            for number in 1..=last {
                let rest = match (letter, number) {
                    ('A', 1) => continue,
                    ('A', 2) => String::new(),
                    ('A', 3) => format!("shown_by = [{test}]"),
                    ('A', 4) => format!("built_in = [\"crates/a\", \"crates/gone\"]\nshown_by = [{test}, \"crates/a/src/b.rs::helps\"]"),
                    ('A', 5) => "built_in = [\"crates/a/src/b.rs\"]\nshown_by = [\"cargo xtask parity --only text\", \"cargo xtask fly\", \"tidy:gone\"]".to_owned(),
                    _ => "left_out = \"all of it\"".to_owned(),
                };
                row(&format!("{letter}{number}"), &rest);
            }
        }
        row("E6", "left_out = \"all of it\"");
        let repo = Repo::of(&[
            (FILE, text.as_str()),
            (invariants::TASKS, "        \"parity\" => it,\n"),
            (
                "crates/a/src/b.rs",
                "// as said (A2, A1)\nfn helps() {}\n\n#[test]\nfn holds() {}\n",
            ),
        ]);
        assert_eq!(
            check(&repo),
            [
                format!("{FILE}: A2 has no test and does not say what is left out"),
                format!("{FILE}: A3 does not say where it is built"),
                format!("{FILE}: A4 names crates/gone, which does not exist"),
                format!(
                    "{FILE}: A4 names `crates/a/src/b.rs::helps`, which is not a test that exists"
                ),
                format!("{FILE}: A5 names `cargo xtask fly`, which is not a test that exists"),
                format!("{FILE}: A5 names `tidy:gone`, which is not a test that exists"),
                format!("{FILE}: E6 is there twice"),
                format!("{FILE} has no row A1"),
                format!("crates/a/src/b.rs:1 cites A1, which {FILE} does not have"),
            ]
        );
        assert_eq!(check(&Repo::of(&[])), [format!("{FILE} is missing")]);
    }
}
