//! Rules about single files, or about the list of files.

use super::{Repo, code};

/// Folders of development machines; composed here, so that this file passes its own rule.
const MACHINE_FOLDERS: [&str; 4] = [
    concat!("/wo", "rk/main"),
    concat!("/wo", "rk/shared"),
    concat!("/wo", "rk/.lib", "rary"),
    concat!("/tmp", "/ref/"),
];

/// Checks that every crate has a non-empty README.md.
pub(super) fn crate_readme(repo: &Repo) -> Vec<String> {
    let missing = |name: &&str| {
        repo.text(&format!("crates/{name}/README.md"))
            .is_none_or(|text| text.trim().is_empty())
    };
    repo.crates()
        .into_iter()
        .filter(missing)
        .map(|name| format!("crates/{name} has no README.md"))
        .collect()
}

/// Checks that crates/README.md lists every crate.
pub(super) fn crate_list(repo: &Repo) -> Vec<String> {
    let Some(list) = repo.text("crates/README.md") else {
        return vec!["crates/README.md is missing".into()];
    };
    let unlisted =
        |name: &&str| !list.contains(&format!("`{name}`")) && !list.contains(&format!("[{name}]"));
    repo.crates()
        .into_iter()
        .filter(unlisted)
        .map(|name| format!("crates/README.md does not list `{name}`"))
        .collect()
}

/// Checks that every crate uses the workspace's lints.
pub(super) fn crate_lints(repo: &Repo) -> Vec<String> {
    let without = |name: &&str| {
        let manifest = repo
            .text(&format!("crates/{name}/Cargo.toml"))
            .unwrap_or_default();
        let mut lines = manifest
            .lines()
            .map(str::trim)
            .skip_while(|line| *line != "[lints]")
            .skip(1);
        lines.find(|line| !line.is_empty()) != Some("workspace = true")
    };
    repo.crates()
        .into_iter()
        .filter(without)
        .map(|name| format!("crates/{name}/Cargo.toml does not take the workspace's lints"))
        .collect()
}

/// The crate of test helpers.
const TEST_SUPPORT: &str = "outrigger-test-support";

/// Checks that shared test code is a dependency of tests only, so that no released binary contains it.
pub(super) fn test_support(repo: &Repo) -> Vec<String> {
    let mut found = Vec::new();
    for name in repo.crates() {
        let path = format!("crates/{name}/Cargo.toml");
        let mut table = "";
        for line in repo.text(&path).unwrap_or_default().lines().map(str::trim) {
            if line.starts_with('[') {
                table = line;
            }
            if line.contains(TEST_SUPPORT)
                && !table.contains("dev-dependencies")
                && name != TEST_SUPPORT
            {
                found.push(format!(
                    "{path} depends on {TEST_SUPPORT} outside of its tests"
                ));
            }
        }
    }
    found
}

/// Returns whether a path is a source file of the product.
fn is_product(path: &str) -> bool {
    path.strip_prefix("crates/").is_some_and(|path| {
        path.contains("/src/") && path.ends_with(".rs") && !path.starts_with(TEST_SUPPORT)
    })
}

/// Checks that `std::process::Command` and `tokio::process` are used only in outrigger-sandbox and in tests.
pub(super) fn processes(repo: &Repo) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in repo.iter() {
        if !is_product(path)
            || path.starts_with("crates/outrigger-sandbox/")
            || path.ends_with("/tests.rs")
        {
            continue;
        }
        for (number, line) in before_tests(text) {
            let code = line.split("//").next().unwrap_or_default();
            let named = [
                "std::process::Command",
                "tokio::process",
                "process::Command::new",
            ]
            .iter()
            .any(|name| code.contains(name));
            if named && !code.contains("CommandExt") {
                found.push(format!(
                    "{path}:{number} starts a process; use outrigger-sandbox"
                ));
            }
        }
    }
    found
}

/// Crates that wait for processes.
const WAITING: [&str; 10] = [
    "browser",
    "claude-hooks",
    "executors",
    "js",
    "lsp",
    "mcp",
    "mcp-tools",
    "plugin-hooks",
    "plugin-supervisor",
    "plugins",
];

/// Checks that no limit for a process runs while it is frozen.
pub(super) fn process_time(repo: &Repo) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in repo.iter() {
        let name = path.strip_prefix("crates/outrigger-");
        let name = name.and_then(|it| it.split('/').next());
        let waits = name.is_some_and(|it| WAITING.contains(&it));
        if !waits || !is_product(path) || path.ends_with("tests.rs") {
            continue;
        }
        for (number, line) in before_tests(text) {
            let Some((_, named)) = line.split_once("tokio::time::") else {
                continue;
            };
            let limits = ["timeout", "sleep_until", "Instant"];
            if limits.iter().any(|it| named.contains(it)) {
                found.push(format!(
                    "{path}:{number} runs while processes are frozen; use outrigger_sandbox::process_time"
                ));
            }
        }
    }
    found
}

/// The writers to the terminal: lines, and the screen of the interface, whose cells are checked before they are sent.
const SINKS: [&str; 2] = [
    "crates/outrigger-cli/src/terminal/output.rs",
    "crates/outrigger-tui/src/runtime/screen.rs",
];

/// Checks that nothing bypasses the writers to the terminal (invariant 13).
pub(super) fn terminal(repo: &Repo) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in repo.iter() {
        if !is_product(path) || SINKS.contains(&path) || path.ends_with("tests.rs") {
            continue;
        }
        for (number, line) in before_tests(text) {
            let code = line.split("//").next().unwrap_or_default();
            let prints = ["print!(", "println!(", "io::stdout", "io::stderr"];
            if prints.iter().any(|it| code.contains(it)) {
                found.push(format!(
                    "{path}:{number} prints; use crates/outrigger-cli/src/terminal/output.rs"
                ));
            }
        }
    }
    found
}

/// Files whose reads are checked elsewhere: they open /proc, our own database, or checked files with a limit.
const READERS: [&str; 15] = [
    "crates/outrigger-sandbox/src/processes/locks.rs",
    "crates/outrigger-sandbox/src/processes/procfs.rs",
    "crates/outrigger-sandbox/src/processes/usage.rs",
    "crates/outrigger-sandbox/src/processes/cgroup.rs",
    "crates/outrigger-sandbox/src/processes/memory.rs",
    "crates/outrigger-sandbox/src/processes/socket_owners.rs",
    "crates/outrigger-sandbox/src/seccomp/connects/notify.rs",
    "crates/outrigger-server/src/listen/port_registry.rs",
    "crates/outrigger-store/src/salvage/pages.rs",
    "crates/outrigger-store/src/audit/tamper_tests.rs",
    "crates/outrigger-store/src/writer/mod.rs",
    "crates/outrigger-claude-hooks/src/transcript.rs",
    "crates/outrigger-permissions/src/workspace_trust/mod.rs",
    "crates/outrigger-permissions/src/workspace_trust/notes.rs",
    "crates/outrigger-cli/src/commands/demo/project.rs",
];

/// Checks that whole files are read by `outrigger-files`, which does not block on pipes and has limits.
pub(super) fn file_reads(repo: &Repo) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in repo.iter() {
        let held = path.starts_with("crates/outrigger-files/") || READERS.contains(&path);
        if !is_product(path) || held || path.ends_with("tests.rs") {
            continue;
        }
        for (number, line) in before_tests(text) {
            let code = line.split("//").next().unwrap_or_default();
            let reads = [
                "fs::read(",
                "fs::read_to_string(",
                "File::open(",
                "fs::read)",
            ];
            // Files of the system, not of a project or a user.
            let system = ["\"/etc/", "\"/proc/", "\"/dev/"];
            let has = |words: &[&str]| words.iter().any(|word| code.contains(word));
            if has(&reads) && !has(&system) {
                found.push(format!("{path}:{number} reads a file; use outrigger-files"));
            }
        }
    }
    found
}

/// Returns the numbered lines before the tests module, which is last in a file.
fn before_tests(text: &str) -> impl Iterator<Item = (usize, &str)> {
    code::before_tests(text)
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
}

/// Checks that no npm lock file contains download URLs, which depend on the machine.
pub(super) fn lock_addresses(repo: &Repo) -> Vec<String> {
    repo.iter()
        .filter(|(path, _)| path.ends_with("package-lock.json"))
        .filter(|(_, text)| text.contains("\"resolved\""))
        .map(|(path, _)| {
            format!(
                "{path} has download addresses; make it with omit-lockfile-registry-resolved=true"
            )
        })
        .collect()
}

/// Checks that there is no build script: building runs only the compiler, starts no package manager and writes no file of
/// the tree.
pub(super) fn build_scripts(repo: &Repo) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in repo.iter() {
        let script = path.strip_suffix("build.rs").is_some_and(|folder| {
            folder.is_empty() || repo.text(&format!("{folder}Cargo.toml")).is_some()
        });
        if script {
            found.push(format!("{path} is a build script"));
        }
        let names_one = |line: &str| {
            let key = line.split('=').next().unwrap_or_default().trim();
            key == "build" || key == "[build-dependencies]"
        };
        if path.ends_with("Cargo.toml") && text.lines().any(names_one) {
            found.push(format!("{path} has something that runs when it is built"));
        }
    }
    found
}

/// Checks that no committed file names a folder of one machine.
pub(super) fn machine_paths(repo: &Repo) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in repo.iter() {
        for (index, line) in text.lines().enumerate() {
            if let Some(folder) = MACHINE_FOLDERS.iter().find(|folder| names(line, folder)) {
                found.push(format!("{path}:{} names {folder}", index + 1));
            }
        }
    }
    found
}

/// Returns whether the line contains the folder as an absolute path, not as the end of another one (as in
/// `{root}/work/sub`).
fn names(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        line.get(..at)
            .and_then(|text| text.chars().next_back())
            .is_none_or(|c| !(c.is_alphanumeric() || "._-/}])>*~".contains(c)))
    })
}

/// Checks that hook chains are created in one place (invariant 3).
pub(super) fn chains(repo: &Repo) -> Vec<String> {
    const HOME: &str = "crates/outrigger-plugin-hooks/src/pipeline.rs";
    /// The same place for the extension, whose pipeline is not Rust.
    const DOOR: &str = "crates/outrigger-kernel-wasm/src/chains.rs";
    let made = |(path, text): (&str, &str)| {
        (is_product(path)
            && path != HOME
            && path != DOOR
            && !path.starts_with("crates/outrigger-kernel/")
            && text.contains("Chain::new("))
        .then(|| format!("{path} makes a chain of hooks; only {HOME} does"))
    };
    repo.iter().filter_map(made).collect()
}

/// Names of permissions that are not names of tools are constants: a typing error in one would allow what a rule denies.
pub(super) fn permission_names(repo: &Repo) -> Vec<String> {
    const HOME: &str = "crates/outrigger-protocol/src/tools/permission_names.rs";
    let mut found = Vec::new();
    for (path, text) in repo.iter() {
        if !is_product(path) || path == HOME || path.ends_with("tests.rs") {
            continue;
        }
        for (number, line) in before_tests(text) {
            let code = line.split("//").next().unwrap_or_default();
            let names = ["\"external_directory\"", "\"doom_loop\""];
            if let Some(name) = names.iter().find(|name| code.contains(**name)) {
                found.push(format!(
                    "{path}:{number} has {name}; {HOME} has the constant"
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permission_names_are_constants() {
        let line = "let name = \"doom_loop\"; // \"external_directory\"\n";
        let repo = Repo::of(&[
            (
                "crates/outrigger-protocol/src/tools/permission_names.rs",
                line,
            ),
            ("crates/outrigger-agent/src/lib.rs", line),
            ("crates/outrigger-agent/tests/it/main.rs", line),
        ]);
        let found = permission_names(&repo);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/outrigger-agent/src/lib.rs:1 has \"doom_loop\""));
    }

    #[test]
    fn what_tests_share_is_for_tests() {
        let named = "outrigger-test-support.workspace = true\n";
        let shared = (
            "crates/outrigger-test-support/Cargo.toml",
            "name = \"outrigger-test-support\"\n",
        );
        let right = format!("[dependencies]\na = \"1\"\n\n[dev-dependencies]\n{named}");
        assert!(test_support(&Repo::of(&[shared, ("crates/a/Cargo.toml", &right)])).is_empty());
        let wrong = format!("[dev-dependencies]\n\n[dependencies]\n{named}");
        assert_eq!(
            test_support(&Repo::of(&[shared, ("crates/a/Cargo.toml", &wrong)])),
            ["crates/a/Cargo.toml depends on outrigger-test-support outside of its tests"]
        );
    }

    #[test]
    fn a_build_that_runs_programs_is_found() {
        let repo = Repo::of(&[
            ("crates/a/Cargo.toml", "[package]\nname = \"a\"\n"),
            ("crates/a/src/build.rs", "// a module of that name\n"),
            ("crates/b/Cargo.toml", "[package]\nbuild = \"make.rs\"\n"),
            ("crates/c/Cargo.toml", "[package]\n"),
            ("crates/c/build.rs", "fn main() {}\n"),
        ]);
        assert_eq!(
            build_scripts(&repo),
            [
                "crates/b/Cargo.toml has something that runs when it is built",
                "crates/c/build.rs is a build script",
            ]
        );
    }

    #[test]
    fn crates_need_readme_list_and_lints() {
        let repo = Repo::of(&[
            ("crates/README.md", "| `a` | first |"),
            ("crates/a/Cargo.toml", "[lints]\nworkspace = true\n"),
            ("crates/a/README.md", "What it is for."),
            ("crates/b/Cargo.toml", "[package]\n"),
            ("crates/b/fixtures/c/Cargo.toml", "[package]\n"),
        ]);
        assert_eq!(crate_readme(&repo), ["crates/b has no README.md"]);
        assert_eq!(crate_list(&repo), ["crates/README.md does not list `b`"]);
        assert_eq!(
            crate_lints(&repo),
            ["crates/b/Cargo.toml does not take the workspace's lints"]
        );
        assert_eq!(crate_list(&Repo::of(&[])), ["crates/README.md is missing"]);
    }

    #[test]
    fn what_is_printed_past_the_sink_is_found() {
        let repo = Repo::of(&[
            (
                "crates/outrigger-cli/src/a.rs",
                "// println!(1)\neprintln!(1);\nlet out = std::io::stdout();\n#[cfg(test)]\nmod tests {\n    println!(1)\n}\n",
            ),
            (
                "crates/outrigger-cli/src/terminal/output.rs",
                "io::stderr()\n",
            ),
        ]);
        let at = |line| {
            let rest = "prints; use crates/outrigger-cli/src/terminal/output.rs";
            format!("crates/outrigger-cli/src/a.rs:{line} {rest}")
        };
        assert_eq!(terminal(&repo), [at(2), at(3)]);
    }

    #[test]
    fn file_reads_without_a_limit_are_found() {
        let repo = Repo::of(&[
            (
                "crates/a/src/lib.rs",
                "fs::read(\"/proc/x\")\nstd::fs::read_to_string(path)\n// fs::read(x)\n#[cfg(test)]\nmod tests {\n    fs::read(x)\n}\n",
            ),
            ("crates/outrigger-files/src/lib.rs", "File::open(x)\n"),
            ("crates/a/tests/it/main.rs", "File::open(x)\n"),
        ]);
        assert_eq!(
            file_reads(&repo),
            ["crates/a/src/lib.rs:2 reads a file; use outrigger-files"]
        );
    }

    #[test]
    fn processes_outside_the_sandbox_are_found() {
        for (path, text, offences) in [
            (
                "crates/a/src/lib.rs",
                "fn f() { std::process::Command::new(\"x\"); }",
                1,
            ),
            ("crates/a/src/lib.rs", "use tokio::process::Command;", 1),
            ("crates/a/src/lib.rs", "// never std::process::Command", 0),
            (
                "crates/a/src/lib.rs",
                "use clap::Command;\nCommand::new(\"x\");",
                0,
            ),
            ("crates/a/src/lib.rs", "std::process::id();", 0),
            (
                "crates/a/src/lib.rs",
                "#[cfg(test)]\nmod tests {\n    use std::process::Command;\n}\n",
                0,
            ),
            ("crates/a/tests/it/main.rs", "use std::process::Command;", 0),
            (
                "crates/outrigger-sandbox/src/lib.rs",
                "use std::process::Command;",
                0,
            ),
        ] {
            assert_eq!(
                processes(&Repo::of(&[(path, text)])).len(),
                offences,
                "{path}: {text}"
            );
        }
    }

    #[test]
    fn limits_that_run_while_processes_are_frozen_are_found() {
        let text = "use tokio::time::{Instant, sleep};\ntokio::time::sleep(x).await;\n";
        let repo = Repo::of(&[
            ("crates/outrigger-mcp/src/x.rs", text),
            ("crates/outrigger-net/src/x.rs", text),
        ]);
        let found = process_time(&repo);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/outrigger-mcp/src/x.rs:1 runs"));
    }

    #[test]
    fn machine_folders_are_recognised() {
        let folder = MACHINE_FOLDERS[0];
        for (line, named) in [
            (format!("cd {folder}/x"), true),
            (format!("\"{folder}\""), true),
            (folder.to_owned(), true),
            (format!("<repo>{folder}"), false),
            (format!("home{folder}"), false),
            ("/work/a.txt".to_owned(), false),
        ] {
            assert_eq!(names(&line, folder), named, "{line}");
        }
        let repo = Repo::of(&[("a.md", &format!("x\n{folder}\n"))]);
        assert_eq!(machine_paths(&repo), [format!("a.md:2 names {folder}")]);
    }

    #[test]
    fn lock_files_with_addresses_are_found() {
        let repo = Repo::of(&[
            ("web/package-lock.json", "{\"resolved\": \"x\"}"),
            ("tests/tools/package-lock.json", "{}"),
        ]);
        assert_eq!(lock_addresses(&repo).len(), 1);
    }

    #[test]
    fn chains_are_made_in_the_pipeline_only() {
        let make = "let chain = Chain::new(point, handlers, items);";
        let repo = Repo::of(&[
            ("crates/outrigger-plugin-hooks/src/pipeline.rs", make),
            ("crates/outrigger-kernel/src/hooks/chain.rs", make),
            ("crates/outrigger-agent/src/tools/tool_catalog.rs", make),
            ("crates/outrigger-agent/src/turn/drive.rs", "nothing"),
        ]);
        assert_eq!(
            chains(&repo),
            [
                "crates/outrigger-agent/src/tools/tool_catalog.rs makes a chain of hooks; only crates/outrigger-plugin-hooks/src/pipeline.rs does"
            ]
        );
    }
}
