//! Checks the structure of a crate: no cycle of more than three modules, no folder of more than fifteen source files.
//!
//! A module imports another if its code, except tests, names it by a path that starts with `crate` or `super`. Existing larger
//! ones are in a list that may only shrink.

use std::collections::{BTreeMap, BTreeSet};

use super::{Repo, code};

/// Maximum size of an import cycle.
const MAX_CYCLE: usize = 3;
/// Maximum number of source files in one folder.
const MAX_SIBLINGS: usize = 15;

/// Existing larger cycles by crate: the size of the largest.
const OLD_CYCLES: &[(&str, usize)] = &[];

/// Existing folders with more files, by path.
const OLD_FOLDERS: &[(&str, usize)] = &[];

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Returns the largest cycle of each crate.
pub(super) fn cycles(repo: &Repo) -> Vec<String> {
    let mut found = Vec::new();
    for name in repo.packages() {
        let largest = components(&graph(repo, name))
            .into_iter()
            .max_by_key(Vec::len);
        let Some(largest) = largest.filter(|it| it.len() > MAX_CYCLE) else {
            continue;
        };
        let known = OLD_CYCLES.iter().find(|(old, _)| *old == name);
        if known.is_none_or(|(_, count)| largest.len() > *count) {
            found.push(format!(
                "{name}: {} modules import each other, at most {} may: {}",
                largest.len(),
                known.map_or(MAX_CYCLE, |(_, count)| *count),
                largest.join(", ")
            ));
        }
    }
    found
}

/// Returns folders with too many source files.
pub(super) fn siblings(repo: &Repo) -> Vec<String> {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, _) in repo.iter() {
        let is_source = path.starts_with("crates/") && path.contains("/src/");
        if (is_source || path.starts_with("xtask/src/")) && path.ends_with(".rs") {
            let folder = path.rsplit_once('/').map_or(path, |(folder, _)| folder);
            *folders.entry(folder).or_default() += 1;
        }
    }
    let allowed = |folder: &str| {
        OLD_FOLDERS
            .iter()
            .find(|(old, _)| *old == folder)
            .map_or(MAX_SIBLINGS, |(_, count)| *count)
    };
    folders
        .into_iter()
        .filter(|(folder, count)| *count > allowed(folder))
        .map(|(folder, count)| {
            format!(
                "{folder}: {count} source files, at most {} may be there: make folders",
                allowed(folder)
            )
        })
        .collect()
}

/// Returns crates that depend on a later layer, by the headings of `crates/README.md`.
pub(super) fn layers(repo: &Repo) -> Vec<String> {
    let page = repo.text("crates/README.md").unwrap_or_default();
    let mut layer = 0;
    let mut layers: BTreeMap<&str, usize> = BTreeMap::new();
    for line in page.lines() {
        if line.starts_with("## ") {
            layer += 1;
        } else if let Some((name, _)) = line.strip_prefix("| [").and_then(|it| it.split_once(']')) {
            layers.insert(name, layer);
        }
    }
    let mut found = Vec::new();
    for name in repo.crates() {
        let Some(own) = layers.get(name) else {
            found.push(format!(
                "crates/README.md: `{name}` is in no layer: add its row below the heading of one"
            ));
            continue;
        };
        let manifest = repo.text(&format!("crates/{name}/Cargo.toml"));
        let mut sections = manifest.unwrap_or_default().split("\n[");
        let needed = sections.find(|it| it.starts_with("dependencies]"));
        let names = needed.unwrap_or_default().lines().filter_map(|line| {
            let end = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '-')?;
            line.get(..end)
        });
        let later = names.filter(|it| layers.get(it).is_some_and(|layer| layer > own));
        found.extend(later.map(|it| format!("{name} depends on {it}, which is in a later layer")));
    }
    found
}

/// Returns the modules of a crate, with their imports. The root imports all, and is not counted.
fn graph(repo: &Repo, name: &str) -> Graph {
    let base = super::source_folder(name);
    let modules: Vec<(String, &str)> = repo
        .iter()
        .filter_map(|(path, text)| {
            let module = path.strip_prefix(&base)?.strip_suffix(".rs")?;
            let module = module.strip_suffix("/mod").unwrap_or(module);
            (!["lib", "main"].contains(&module)).then(|| (module.replace('/', "::"), text))
        })
        .collect();
    let names: BTreeSet<&str> = modules.iter().map(|(module, _)| module.as_str()).collect();
    let mut graph = Graph::new();
    for (module, text) in &modules {
        let imports = paths(text)
            .into_iter()
            .filter_map(|path| target(&names, module, &path))
            .filter(|it| it != module)
            .collect();
        graph.insert(module.clone(), imports);
    }
    graph
}

/// Returns paths that start with `crate` or `super`, in the code before the tests.
fn paths(text: &str) -> Vec<String> {
    let code: Vec<&str> = code::before_tests(text)
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect();
    let code = code.join(" ");
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let before = code.get(..at).and_then(|it| it.chars().next_back());
            // The second `super` of `super::super` was handled with the first.
            if before.is_some_and(|it| it.is_alphanumeric() || "_:$".contains(it)) {
                continue;
            }
            expand("", code.get(at..).unwrap_or_default(), &mut found);
        }
    }
    found
}

/// Collects the paths of a use tree: `a::{b, c::d}` is `a::b` and `a::c::d`. Returns what follows the tree.
fn expand<'t>(prefix: &str, text: &'t str, found: &mut Vec<String>) -> &'t str {
    let is_part = |it: char| it.is_alphanumeric() || it == '_' || it == ':';
    let end = text.find(|it| !is_part(it)).unwrap_or(text.len());
    let (part, rest) = text.split_at(end);
    let path = format!("{prefix}{part}");
    if !(path.ends_with("::") && rest.starts_with('{')) {
        found.push(path.trim_end_matches(':').to_owned());
        return rest;
    }
    let mut rest = rest.get(1..).unwrap_or_default();
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        if rest.is_empty() || rest.starts_with('}') {
            return rest.get(1..).unwrap_or_default();
        }
        let after = expand(&path, rest, found);
        // `as name`, a star: neither is a path.
        rest = after.trim_start_matches(|it: char| !",}{".contains(it));
        if rest.starts_with('{') {
            return rest;
        }
    }
}

/// Returns the module of a path.
fn target(names: &BTreeSet<&str>, from: &str, path: &str) -> Option<String> {
    let mut base: Vec<&str> = from.split("::").collect();
    let mut parts = path.split("::").peekable();
    if parts.next_if_eq(&"crate").is_some() {
        base.clear();
    } else {
        while parts.next_if_eq(&"super").is_some() {
            base.pop();
        }
    }
    base.extend(parts);
    while !base.is_empty() {
        let name = base.join("::");
        if names.contains(name.as_str()) {
            return Some(name);
        }
        base.pop();
    }
    None
}

/// Groups modules that reach each other.
fn components(graph: &Graph) -> Vec<Vec<String>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = graph
        .keys()
        .map(|start| (start.as_str(), reached(graph, start)))
        .collect();
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for (start, there) in &reach {
        if !seen.contains(start) {
            let group: Vec<&str> = there
                .iter()
                .copied()
                .filter(|it| reach.get(it).is_some_and(|back| back.contains(start)))
                .collect();
            seen.extend(group.iter().copied());
            all.push(group.into_iter().map(str::to_owned).collect());
        }
    }
    all
}

fn reached<'g>(graph: &'g Graph, start: &'g str) -> BTreeSet<&'g str> {
    let mut there = BTreeSet::new();
    let mut open = vec![start];
    while let Some(module) = open.pop() {
        for next in graph.get(module).into_iter().flatten() {
            if there.insert(next.as_str()) {
                open.push(next);
            }
        }
    }
    there
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_needs_a_later_layer_is_found() {
        let page = "# A\n\n## Low\n| [a](a) | x |\n\n## High\n| [b](b) | x |\n";
        let needs = |name: &str| format!("[package]\n\n[dependencies]\n{name}.workspace = true\n");
        let (up, down) = (needs("b"), needs("a"));
        let repo = Repo::of(&[
            ("crates/README.md", page),
            ("crates/a/Cargo.toml", &up),
            ("crates/b/Cargo.toml", &down),
            ("crates/c/Cargo.toml", ""),
        ]);
        assert_eq!(
            layers(&repo),
            [
                "a depends on b, which is in a later layer",
                "crates/README.md: `c` is in no layer: add its row below the heading of one"
            ]
        );
    }

    #[test]
    fn a_cycle_of_four_is_found_and_one_of_three_is_left() {
        let manifest = ("crates/a/Cargo.toml", "");
        let three = [
            manifest,
            (
                "crates/a/src/one.rs",
                "use crate::{lib_item, two::{self, X}};\n",
            ),
            ("crates/a/src/two/mod.rs", "use super::three::Y as Z;\n"),
            ("crates/a/src/three.rs", "fn f() { crate::one::g() }\n"),
        ];
        assert!(cycles(&Repo::of(&three)).is_empty());
        let mut four = three.to_vec();
        // Tests are not counted; code after another item that is only for tests is.
        four[3].1 = "#[cfg(test)]\nmod at;\nuse crate::two::four;\n#[cfg(test)]\nmod tests {\n    use crate::one;\n}\n";
        four.push(("crates/a/src/two/four.rs", "use super::super::one;\n"));
        let found = cycles(&Repo::of(&four));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("one, three, two, two::four"), "{found:?}");
    }

    #[test]
    fn a_folder_of_sixteen_files_is_found() {
        let names: Vec<String> = (0..16).map(|n| format!("crates/a/src/f/{n}.rs")).collect();
        let files: Vec<(&str, &str)> = names.iter().map(|it| (it.as_str(), "")).collect();
        assert_eq!(siblings(&Repo::of(&files)).len(), 1);
        assert!(siblings(&Repo::of(&files[1..])).is_empty());
    }
}
