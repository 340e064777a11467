//! Invariant 1: the kernel has no I/O, no clock and no threads. It is `no_std`, so they cannot be named, and its
//! dependencies are few and known.

use std::path::Path;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Returns the keys of a table of the manifest, up to the next table.
fn keys<'a>(manifest: &'a str, table: &str) -> Vec<&'a str> {
    let body = manifest
        .split_once(&format!("[{table}]\n"))
        .map_or("", |(_, rest)| rest);
    let lines = body.lines().take_while(|line| !line.starts_with('['));
    let name = |line: &'a str| line.split(['.', '=', ' ']).next();
    lines
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .filter_map(name)
        .collect()
}

#[test]
fn it_depends_on_the_protocol_and_serde_only() {
    let manifest = read("Cargo.toml");
    assert_eq!(
        keys(&manifest, "dependencies"),
        ["outrigger-protocol", "serde", "serde_json"]
    );
    let tables: Vec<&str> = manifest
        .lines()
        .filter(|line| line.contains("dependencies") && line.starts_with('['))
        .collect();
    assert_eq!(
        tables,
        ["[dependencies]", "[dev-dependencies]"],
        "no other table brings dependencies in"
    );
}

#[test]
fn it_cannot_name_the_standard_library() {
    let root = read("src/lib.rs");
    let code: Vec<&str> = root
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("//"))
        .collect();
    assert!(code.contains(&"#![no_std]"));
    let extern_std = code
        .iter()
        .position(|line| *line == "extern crate std;")
        .unwrap();
    assert_eq!(
        code[extern_std - 1],
        "#[cfg(test)]",
        "std is for the unit tests alone"
    );
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let shipped = text
                .split("#[cfg(test)]\nmod tests")
                .next()
                .unwrap_or_default();
            assert!(!shipped.contains("std::"), "{} names std", path.display());
        }
    }
}
