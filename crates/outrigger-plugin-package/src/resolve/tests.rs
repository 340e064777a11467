use super::*;
use std::fs;

use outrigger_protocol::diagnose::Diagnose;

// `files` is `name=contents`, separated by blanks; contents are not read by the resolver.
fn package(manifest: &str, files: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    if !manifest.is_empty() {
        fs::write(dir.path().join("package.json"), manifest).unwrap();
    }
    for file in files {
        let path = dir.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "export default async () => ({})").unwrap();
    }
    dir
}

fn outcome(dir: &Path, from_path: bool) -> String {
    match resolve_package("demo", "demo", dir, from_path) {
        Ok(found) => {
            let dir = dir.canonicalize().unwrap();
            assert_eq!(found.entry, file_url(&found.file));
            found.file.strip_prefix(dir).unwrap().display().to_string()
        }
        Err(error) => error.code().to_owned(),
    }
}

#[test]
fn entries_by_table() {
    let all: &[&str] = &[
        "server.js",
        "main.js",
        "index.ts",
        "lib/index.js",
        "dist/plain.mjs",
        "m.ts",
    ];
    // manifest, files, from npm, from a path
    for (manifest, files, npm, path) in [
        (
            r#"{"exports":{"./server":"./server.js",".":"./main.js"},"main":"main.js"}"#,
            all,
            "server.js",
            "server.js",
        ),
        (
            r#"{"exports":{"./server":{"types":"x.d.ts","import":"./server.js"}}}"#,
            all,
            "server.js",
            "server.js",
        ),
        (
            r#"{"exports":{"./server":{"default":"./server.js"}}}"#,
            all,
            "server.js",
            "server.js",
        ),
        (
            r#"{"exports":{"./server":{"node":{},"import":{"default":"./server.js"}}}}"#,
            all,
            "server.js",
            "server.js",
        ),
        (
            r#"{"exports":{".":"./server.js"},"main":"./main.js"}"#,
            all,
            "main.js",
            "main.js",
        ),
        (r#"{"main":"main"}"#, all, "main.js", "main.js"),
        (r#"{"main":"lib"}"#, all, "lib/index.js", "lib/index.js"),
        (
            r#"{"main":"dist/plain"}"#,
            all,
            "dist/plain.mjs",
            "dist/plain.mjs",
        ),
        (
            r#"{"exports":{".":"./main.js"}}"#,
            all,
            "plugin.no_server_entry",
            "index.ts",
        ),
        (
            r#"{"exports":{".":"./main.js"},"module":"m.ts"}"#,
            all,
            "plugin.no_server_entry",
            "index.ts",
        ),
        (r#"{"exports":"./main.js"}"#, all, "index.ts", "index.ts"),
        (r#"{"module":"m.ts"}"#, all, "m.ts", "m.ts"),
        (r#"{"main":""}"#, all, "index.ts", "index.ts"),
        (r#"{}"#, all, "index.ts", "index.ts"),
        (
            r#"{}"#,
            &["index.cjs", "index.mjs"],
            "index.mjs",
            "index.mjs",
        ),
        (r#"{}"#, &["other.js"], "plugin.no_entry", "plugin.no_entry"),
        ("", all, "plugin.manifest", "index.ts"),
        ("", &["other.js"], "plugin.manifest", "plugin.no_entry"),
        ("{", all, "plugin.manifest", "plugin.manifest"),
        (
            r#"{"main":"gone.js"}"#,
            all,
            "plugin.entry_missing",
            "plugin.entry_missing",
        ),
        (
            r#"{"main":"../out.js"}"#,
            all,
            "plugin.entry_outside",
            "plugin.entry_outside",
        ),
        (
            r#"{"main":"/etc/passwd"}"#,
            all,
            "plugin.entry_outside",
            "plugin.entry_outside",
        ),
        (
            r#"{"exports":{"./server":"./a/../../../x.js"}}"#,
            all,
            "plugin.entry_outside",
            "plugin.entry_outside",
        ),
        (
            r#"{"main":"main.js","engines":{"opencode":">=1.18"}}"#,
            all,
            "main.js",
            "main.js",
        ),
        (
            r#"{"main":"main.js","engines":{"opencode":"^2"}}"#,
            all,
            "plugin.incompatible",
            "main.js",
        ),
        (
            r#"{"main":"main.js","engines":{"node":">=99"}}"#,
            all,
            "main.js",
            "main.js",
        ),
    ] {
        let dir = package(manifest, files);
        assert_eq!(outcome(dir.path(), false), npm, "npm {manifest}");
        assert_eq!(outcome(dir.path(), true), path, "path {manifest}");
    }
}

#[test]
fn a_link_out_of_the_package_is_refused() {
    let dir = package(r#"{"main":"main.js"}"#, &[]);
    std::os::unix::fs::symlink("/etc/hostname", dir.path().join("main.js")).unwrap();
    assert_eq!(outcome(dir.path(), true), "plugin.entry_outside");
}

#[test]
fn paths_to_files_and_folders() {
    let dir = package(
        r#"{"name":"own-name","version":"3.2.1","main":"main.js"}"#,
        &["main.js", "x/guard.ts"],
    );
    let by_folder = resolve_path("./p", "p", dir.path()).unwrap();
    assert_eq!(
        (by_folder.id.as_str(), by_folder.version.as_deref()),
        ("own-name", Some("3.2.1"))
    );
    let file = dir.path().join("x/guard.ts");
    let by_file = resolve_path("./x/guard.ts", "guard", &file).unwrap();
    assert_eq!(
        (by_file.id.as_str(), by_file.version, by_file.dir),
        ("guard", None, dir.path().join("x"))
    );
    assert!(by_file.from_path);
    let error = resolve_path("./gone", "gone", &dir.path().join("gone")).unwrap_err();
    assert_eq!(error.code(), "plugin.not_found");
}
