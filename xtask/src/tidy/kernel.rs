//! Checks invariant 1: the permitted dependencies of the kernel.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Repo;
use crate::sh::{self, cargo};
use crate::{Result, failed};

const KERNEL: &str = "outrigger-kernel";
/// The kernel's direct dependencies.
const DIRECT: [&str; 3] = ["outrigger-protocol", "serde", "serde_json"];
/// Their dependencies: data structures, number formatting, and the macros with their parts (build time only).
const INDIRECT: [&str; 15] = [
    "allocator-api2",
    "equivalent",
    "foldhash",
    "hashbrown",
    "indexmap",
    "itoa",
    "memchr",
    "outrigger-tagged",
    "proc-macro2",
    "quote",
    "serde_core",
    "serde_derive",
    "syn",
    "unicode-ident",
    "zmij",
];

/// Checks that the kernel is `no_std`, so that it cannot use I/O, the clock or threads.
pub(super) fn no_std(repo: &Repo) -> Vec<String> {
    let root = repo
        .text("crates/outrigger-kernel/src/lib.rs")
        .unwrap_or_default();
    let there = root.lines().any(|line| line.trim() == "#![no_std]");
    let mut found = if there {
        Vec::new()
    } else {
        vec!["crates/outrigger-kernel/src/lib.rs has no #![no_std]".to_owned()]
    };
    for (path, text) in repo
        .iter()
        .filter(|(path, _)| path.starts_with("crates/outrigger-kernel/src/"))
    {
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines
            .iter()
            .enumerate()
            .filter(|(_, line)| line.trim() == "extern crate std;")
        {
            if index == 0 || lines[index - 1].trim() != "#[cfg(test)]" {
                found.push(format!(
                    "{path}:{} `{}` outside tests",
                    index + 1,
                    line.trim()
                ));
            }
        }
    }
    found
}

/// Checks the kernel's direct and indirect dependencies against the allow-list.
pub(super) fn dependencies() -> Result<Vec<String>> {
    let text = sh::output(&mut cargo(&["metadata", "--format-version", "1"]))?;
    let metadata: Value =
        serde_json::from_str(&text).or_else(|error| failed(format!("cargo metadata: {error}")))?;
    Ok(not_allowed(&metadata))
}

fn not_allowed(metadata: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names: BTreeMap<String, String> = list(&metadata["packages"])
        .iter()
        .map(|package| (text(&package["id"]), text(&package["name"])))
        .collect();
    // The normal dependencies of each package; those of tests and build scripts have another kind.
    let normal = |dependency: &Value| {
        list(&dependency["dep_kinds"])
            .iter()
            .any(|kind| kind["kind"].is_null())
    };
    let edges: BTreeMap<String, Vec<String>> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            (
                text(&node["id"]),
                list(&node["deps"])
                    .iter()
                    .filter(|dependency| normal(dependency))
                    .map(|dependency| text(&dependency["pkg"]))
                    .collect(),
            )
        })
        .collect();
    let Some((kernel, _)) = names.iter().find(|(_, name)| *name == KERNEL) else {
        return vec![format!("the workspace has no {KERNEL}")];
    };
    let (mut seen, mut open, mut found) = (
        BTreeSet::from([kernel.clone()]),
        vec![kernel.clone()],
        BTreeSet::new(),
    );
    while let Some(id) = open.pop() {
        for next in edges.get(&id).into_iter().flatten() {
            let name = names.get(next).map_or(next.as_str(), String::as_str);
            let allowed = DIRECT.contains(&name) || (id != *kernel && INDIRECT.contains(&name));
            if !allowed {
                let by = names.get(&id).map_or(id.as_str(), String::as_str);
                found.insert(format!("{by} brings {name} into the kernel, which is not on the allow-list of xtask/src/tidy/kernel.rs"));
            }
            if seen.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dependencies_are_followed_and_dev_dependencies_are_not() {
        let dependency =
            |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let packages: Vec<Value> = ["outrigger-kernel", "serde", "tokio", "libc", "proptest"]
            .iter()
            .map(|name| json!({ "id": name, "name": name }))
            .collect();
        let metadata = json!({ "packages": packages, "resolve": { "nodes": [
            { "id": "outrigger-kernel", "deps": [dependency("serde", Value::Null), dependency("proptest", json!("dev"))] },
            { "id": "serde", "deps": [dependency("tokio", Value::Null)] },
            { "id": "tokio", "deps": [dependency("libc", Value::Null)] },
            { "id": "proptest", "deps": [dependency("libc", Value::Null)] },
        ] } });
        let found = not_allowed(&metadata);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("serde brings tokio") && found[1].starts_with("tokio brings libc"),
            "{found:?}"
        );
    }

    #[test]
    fn std_is_allowed_in_tests_only() {
        let repo = Repo::of(&[(
            "crates/outrigger-kernel/src/lib.rs",
            "#![no_std]\n#[cfg(test)]\nextern crate std;\n",
        )]);
        assert!(no_std(&repo).is_empty());
        let repo = Repo::of(&[("crates/outrigger-kernel/src/lib.rs", "extern crate std;\n")]);
        assert_eq!(no_std(&repo).len(), 2);
    }
}
