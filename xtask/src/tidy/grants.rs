//! Checks that the table of grants in docs/plugins-tried.md contains exactly what the tests grant published plugins under `test`, and what
//! follows from docs/plugin-matrix.csv.

use std::collections::BTreeSet;

use super::Repo;

const PAGE: &str = "docs/plugins-tried.md";
const HEAD: &str = "| Plugin | Grant | For | Known from |";
const MATRIX: &str = "docs/plugin-matrix.csv";
const TESTS: &str = "crates/outrigger-cli/tests/it/";
/// Features of plugins that need a grant, besides a login (`model`).
const FEATURES: [(&str, &[&str]); 3] = [
    ("rewrite", &["tool.execute.before", "shell.env"]),
    ("approve", &["permission.ask"]),
    ("prompt", &["session.prompt", "session.promptAsync"]),
];

/// A shared test setting that grants something, and its plugin.
const MAY_REWRITE: (&str, &str) = ("{MAY_REWRITE}", "oh-my-opencode");

/// A plugin and the name of a grant.
type Grant = (String, String);

pub(super) fn check(repo: &Repo) -> Vec<String> {
    let text = repo.text(PAGE).unwrap_or_default();
    let rows = rows(text);
    if rows.is_empty() {
        return vec![format!("{PAGE} has no table `{HEAD}`")];
    }
    let plugins = plugins(repo);
    let granted: BTreeSet<Grant> = repo
        .iter()
        .flat_map(|(path, text)| granted(path, text))
        .collect();
    let mut found = Vec::new();
    let of_tests: BTreeSet<Grant> = grants(&rows, "test");
    for (plugin, grant) in granted
        .iter()
        .filter(|(plugin, _)| plugins.contains(plugin.as_str()))
    {
        if !of_tests.contains(&(plugin.clone(), grant.clone())) {
            found.push(format!(
                "{PAGE}: a test grants {plugin} `{grant}`, and the table does not say so"
            ));
        }
    }
    for (plugin, grant) in of_tests.difference(&granted) {
        found.push(format!("{PAGE}: no test grants {plugin} `{grant}`"));
    }
    let matrix = repo.text(MATRIX).unwrap_or_default();
    for (plugin, grant) in grants(&rows, "matrix") {
        if !has_feature(matrix, &plugin, &grant) {
            found.push(format!(
                "{PAGE}: nothing of {plugin} in {MATRIX} needs `{grant}`"
            ));
        }
    }
    found
}

/// Returns the cells of the table.
fn rows(text: &str) -> Vec<[&str; 4]> {
    let after = text.split_once(HEAD).map_or("", |(_, after)| after);
    let lines = after.trim_start().lines().skip(1);
    lines
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            cells.try_into().ok()
        })
        .collect()
}

/// Returns the grants of rows with this source.
fn grants(rows: &[[&str; 4]], from: &str) -> BTreeSet<Grant> {
    rows.iter()
        .filter(|row| row[3] == from)
        .flat_map(|row| {
            let grants: Vec<&str> = quoted(row[1])
                .filter_map(|it| it.split(' ').next())
                .collect();
            let of_plugin = move |plugin: &str| {
                let plugin = plugin.to_owned();
                let named = |grant: &&str| (plugin.clone(), (*grant).to_owned());
                grants.iter().map(named).collect::<Vec<_>>()
            };
            quoted(row[0]).flat_map(of_plugin).collect::<Vec<_>>()
        })
        .collect()
}

fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Returns the plugins of the matrix.
fn plugins(repo: &Repo) -> BTreeSet<&str> {
    let matrix = repo.text(MATRIX).unwrap_or_default();
    matrix
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').next())
        .collect()
}

fn has_feature(matrix: &str, plugin: &str, grant: &str) -> bool {
    let names = FEATURES.iter().find(|(name, _)| *name == grant);
    let names = names.map_or(&[][..], |(_, names)| names);
    matrix.lines().any(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let is_login = grant == "model" && cells.get(2) == Some(&"auth");
        let is_named = cells.get(3).is_some_and(|it| names.contains(it));
        cells.first() == Some(&plugin) && (is_login || is_named)
    })
}

/// Returns what a test grants: `[plugins.NAME]` in its settings, and the lines below.
fn granted(path: &str, text: &str) -> Vec<Grant> {
    if !path.starts_with(TESTS) {
        return Vec::new();
    }
    let plain = text.replace("\\n", "\n").replace("\\\"", "\"");
    let mut found = Vec::new();
    let mut plugin: Option<String> = None;
    for line in plain.lines() {
        let line = line.trim();
        if let Some(at) = line.find("[plugins.") {
            let name = line.get(at + 9..).and_then(|it| it.split_once(']'));
            plugin = name.map(|(name, _)| name.trim_matches('"').to_owned());
            continue;
        }
        let (line, owner) = match line.split_once(MAY_REWRITE.0) {
            Some((_, rest)) => (rest, Some(MAY_REWRITE.1.to_owned())),
            None => (line, plugin.clone()),
        };
        let grant = line.split_once(" = ").filter(|(name, _)| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
        });
        match (grant, owner) {
            (Some((grant, _)), Some(plugin)) => found.push((plugin, grant.to_owned())),
            _ => plugin = None,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_tests_that_differ_are_found() {
        let page = format!(
            "# P\n\n{HEAD}\n|---|---|---|---|\n| `a` | `model` | x | test |\n| `a` | `prompt`, `rewrite` | x | matrix |\n| `b` | `ports = [1]` | x | by hand |\n"
        );
        let test = "fn x() { granting(&world, \"[plugins.a]\\nunix_sockets = true\\n\"); }\n";
        let matrix = "plugin,version,feature,name,declared,named\na,1,hook,shell.env,true,false\n";
        let repo = Repo::of(&[
            (PAGE, &page),
            ("crates/outrigger-cli/tests/it/npm.rs", test),
            (MATRIX, matrix),
        ]);
        assert_eq!(
            check(&repo),
            [
                "docs/plugins-tried.md: a test grants a `unix_sockets`, and the table does not say so",
                "docs/plugins-tried.md: no test grants a `model`",
                "docs/plugins-tried.md: nothing of a in docs/plugin-matrix.csv needs `prompt`",
            ]
        );
    }
}
