//! The document and the source say the same.

use std::fs;
use std::path::Path;

/// The string constants inside modules of a file, in the order of the file.
fn constants(text: &str) -> Vec<&str> {
    let lines = text
        .lines()
        .filter(|line| line.starts_with("    pub const ") && line.contains(": &str"));
    lines.filter_map(|line| line.split('"').nth(1)).collect()
}

#[test]
fn every_method_is_in_the_document_and_in_the_host_script() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let rpc =
        fs::read_to_string(root.join("crates/outrigger-protocol/src/plugin/rpc/mod.rs")).unwrap();
    let document = fs::read_to_string(root.join("docs/plugin-protocol.md")).unwrap();
    let files = [
        "auth", "enter", "file", "host", "load", "own", "run", "sdk", "wire",
    ];
    let script: String = files
        .map(|name| {
            fs::read_to_string(root.join(format!("crates/outrigger-js/host/{name}.mjs"))).unwrap()
        })
        .concat();
    let names = constants(&rpc);
    assert!(names.len() > 12, "{names:?}");
    for name in names {
        assert!(
            document.contains(&format!("`{name}`")),
            "docs/plugin-protocol.md does not name {name}"
        );
        assert!(
            script.contains(&format!("\"{name}\"")),
            "the host script does not name {name}"
        );
    }
}
