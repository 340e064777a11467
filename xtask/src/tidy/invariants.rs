//! ARCHITECTURE.md: every numbered invariant names what enforces it, and that exists.
//!
//! In the section whose heading has the word "invariants", an item is a list item `N. text` or a table row `| N | text |`.
//! After the word "Check" (in a table: in the last cell) stand the names, in backticks:
//! - `tidy:RULE`: a rule of `cargo xtask tidy`;
//! - `clippy:LINT` or `rustc:LINT`: a lint that a Cargo.toml or a crate's attributes set;
//! - `PATH::TEST`: a test function (or a function of a script) in a file of this repository.

use super::{RULES, Repo};

const FILE: &str = "ARCHITECTURE.md";
/// The file with the names of the tasks of `cargo xtask`.
pub(super) const TASKS: &str = "xtask/src/main.rs";

pub(super) fn check(repo: &Repo) -> Vec<String> {
    let Some(text) = repo.text(FILE) else {
        return vec![format!("{FILE} is missing")];
    };
    let items = items(text);
    if items.is_empty() {
        return vec![format!("{FILE} has no section with numbered invariants")];
    }
    let mut found = Vec::new();
    for (index, (number, item)) in items.iter().enumerate() {
        if *number != index + 1 {
            found.push(format!(
                "{FILE}: invariant {number} stands where {} is due",
                index + 1
            ));
        }
        let names = names(item);
        if names.is_empty() {
            found.push(format!(
                "{FILE}: invariant {number} names no check (\"Check: `NAME`\")"
            ));
        }
        let unknown = names.iter().filter(|name| !exists(repo, name));
        found.extend(unknown.map(|name| {
            format!("{FILE}: invariant {number} names `{name}`, which does not exist")
        }));
    }
    found
}

/// Returns the numbered items of the section, each with its further lines.
fn items(text: &str) -> Vec<(usize, String)> {
    let mut items: Vec<(usize, String)> = Vec::new();
    let mut level = None;
    for line in text.lines() {
        let depth = line.chars().take_while(|c| *c == '#').count();
        if depth > 0 && line.chars().nth(depth) == Some(' ') {
            match level {
                None if line.to_lowercase().contains("invariant") => level = Some(depth),
                Some(open) if depth <= open => break,
                _ => {}
            }
        } else if level.is_some() {
            match (number(line), items.last_mut()) {
                (Some(number), _) => items.push((number, line.to_owned())),
                (None, Some((_, item))) => *item = format!("{item}\n{line}"),
                (None, None) => {}
            }
        }
    }
    items
}

fn number(line: &str) -> Option<usize> {
    let (digits, _) = match line.strip_prefix('|') {
        Some(row) => row.trim_start().split_once(' ')?,
        None => line.split_once(". ")?,
    };
    digits.parse().ok()
}

/// Returns the names in backticks after "Check" (the last one in the item), or in the last cell of a row.
fn names(item: &str) -> Vec<&str> {
    let row = item.lines().next().filter(|line| line.starts_with('|'));
    let part = match row {
        Some(row) => row.trim_end().trim_end_matches('|').rsplit('|').next(),
        None => item.rfind("Check").and_then(|at| item.get(at..)),
    };
    part.unwrap_or_default()
        .split('`')
        .skip(1)
        .step_by(2)
        .collect()
}

/// Returns whether the named check exists.
pub(super) fn exists(repo: &Repo, name: &str) -> bool {
    if let Some(rule) = name.strip_prefix("tidy:") {
        return RULES.iter().any(|(known, _)| *known == rule);
    }
    if let Some(lint) = name
        .strip_prefix("clippy:")
        .or_else(|| name.strip_prefix("rustc:"))
    {
        let manifest = |text: &str| {
            text.lines()
                .any(|line| line.split('=').next().is_some_and(|key| key.trim() == lint))
        };
        let attribute = |text: &str| {
            text.lines()
                .any(|line| line.starts_with("#![") && line.contains(lint))
        };
        return repo.iter().any(|(path, text)| {
            (path.ends_with("Cargo.toml") && manifest(text))
                || (path.ends_with("lib.rs") && attribute(text))
        });
    }
    let Some((path, test)) = name.split_once("::") else {
        return false;
    };
    let function = test.rsplit("::").next().unwrap_or(test);
    let text = repo.text(path).unwrap_or_default();
    ["fn", "def", "function"]
        .iter()
        .any(|word| text.contains(&format!("{word} {function}(")))
}

/// Returns whether a name is a test, a rule of tidy, or a task with its options.
pub(super) fn shows(repo: &Repo, name: &str) -> bool {
    if let Some(task) = name.strip_prefix("cargo xtask ") {
        let task = task.split(' ').next().unwrap_or_default();
        let tasks = repo.text(TASKS).unwrap_or_default();
        return tasks.contains(&format!("        \"{task}\" "));
    }
    if name.starts_with("tidy:") {
        return exists(repo, name);
    }
    is_test(repo, name)
}

/// Returns whether `PATH::TEST` is a test, not just any function.
fn is_test(repo: &Repo, name: &str) -> bool {
    let Some((path, test)) = name.split_once("::") else {
        return false;
    };
    let function = test.rsplit("::").next().unwrap_or(test);
    let text = repo.text(path).unwrap_or_default();
    let Some((before, _)) = text.split_once(&format!("fn {function}(")) else {
        return false;
    };
    // Its attributes: the lines above it, up to the end of the previous item.
    let above = before.rsplit_once('\n').map_or("", |(above, _)| above);
    above
        .lines()
        .rev()
        .take_while(|line| !matches!(line.trim(), "" | "}" | "{"))
        .any(|line| line.contains("#[test]") || line.contains("#[tokio::test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invariant_without_an_existing_check_is_found() {
        let page = "# A\n1. not one of them\n## Invariants\nText.\n\n\
            1. Pure. Check: `tidy:kernel-no-std`, `crates/a/tests/it/main.rs::turn::order`.\n\
            2. One way\n   in two lines.\n   Check: `clippy:disallowed_methods`.\n\
            3. Nothing named, though `code` is.\n\
            4. Gone. Check: `tidy:nothing`, `crates/a/tests/it/main.rs::gone`, `clippy:gone`, `main.rs`.\n\
            ## After\n7. not one either\n";
        let repo = Repo::of(&[
            (FILE, page),
            (
                "Cargo.toml",
                "[workspace.lints.clippy]\ndisallowed_methods = \"deny\"\n",
            ),
            ("crates/a/tests/it/main.rs", "#[test]\nfn order() {}\n"),
        ]);
        let found = check(&repo);
        assert_eq!(found.len(), 5, "{found:#?}");
        assert!(found[0].contains("invariant 3 names no check"));
        assert!(found[1..].iter().all(|line| line.contains("invariant 4")));
    }

    #[test]
    fn tables_and_numbering() {
        let repo = Repo::of(&[(
            FILE,
            "## Invariants\n| No. | What | Check |\n|---|---|---|\n| 1 | `x` | `tidy:invariants` |\n| 3 | y | `tidy:processes` |\n",
        )]);
        assert_eq!(
            check(&repo),
            ["ARCHITECTURE.md: invariant 3 stands where 2 is due"]
        );
        assert_eq!(check(&Repo::of(&[])), ["ARCHITECTURE.md is missing"]);
        assert_eq!(check(&Repo::of(&[(FILE, "# A\n")])).len(), 1);
    }
}
