//! Project and user files that are not regular files, or far too large: the program starts without them and reports
//! it.

use std::fs::{self, File};
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use crate::support::*;

/// The memory limit of a run, in KiB; reading a file of 3 GiB takes far more.
const MAX_MEMORY: u64 = 400 << 10;

const OF_PROJECT: [&str; 27] = [
    ".mcp.json",
    "outrigger.toml",
    ".outrigger/outrigger.toml",
    "opencode.json",
    "opencode.jsonc",
    ".opencode/opencode.json",
    ".gitignore",
    ".ignore",
    "sub/.gitignore",
    "AGENTS.md",
    "CLAUDE.md",
    "sub/AGENTS.md",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/commands/c.md",
    ".claude/skills/s/SKILL.md",
    ".opencode/agent/a.md",
    ".opencode/command/c.md",
    ".opencode/skill/s/SKILL.md",
    ".opencode/plugin/p.js",
    ".opencode/tool/t.js",
    ".opencode/package.json",
    ".env",
    "package.json",
    "tsconfig.json",
    "outrigger.lock",
    "Cargo.toml",
];
const OF_USER: [&str; 5] = [
    ".local/share/opencode/auth.json",
    ".config/opencode/AGENTS.md",
    ".claude/CLAUDE.md",
    ".claude/settings.json",
    ".gitconfig",
];

/// Creates something that cannot be read as a file.
fn put(at: &Path, kind: &str) {
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    match kind {
        "a pipe" => mknodat(CWD, at, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap(),
        // The path exceeds the limit for socket addresses, so it is bound elsewhere and moved.
        "a socket" => {
            let short = tempfile::tempdir().unwrap();
            drop(UnixListener::bind(short.path().join("s")).unwrap());
            fs::rename(short.path().join("s"), at).unwrap();
        }
        "a folder" => fs::create_dir(at).unwrap(),
        "a device" => std::os::unix::fs::symlink("/dev/zero", at).unwrap(),
        "a loop" => std::os::unix::fs::symlink(at, at).unwrap(),
        _ => File::create(at).unwrap().set_len(3 << 30).unwrap(),
    }
}

/// Sets up a world with a model of the user's.
fn world() -> World {
    let world = World::new([
        turn([
            call("glob", json!({ "pattern": "**/*.txt" })),
            call("read", json!({ "filePath": "sub/file.txt" })),
        ]),
        text("all is well"),
    ]);
    let folder = world.home().join(".config/opencode");
    fs::create_dir_all(&folder).unwrap();
    fs::rename(world.path("opencode.json"), folder.join("opencode.json")).unwrap();
    world.file("sub/file.txt", "x");
    world
}

#[track_caller]
fn starts(world: &World, case: &str, is_trusted: bool) -> Done {
    let mut command = world.command(&["run", "do it"]);
    if !is_trusted {
        command.env_remove("OUTRIGGER_TRUST_PROJECT");
    }
    let running = world.start(command);
    let mut peak = 0;
    while !running.is_over() {
        peak = peak.max(running.peak_kib());
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let done = running.end();
    assert_eq!(done.code, 0, "{case}: {}", done.stderr);
    assert!(
        done.stdout.contains("all is well"),
        "{case}: {}",
        done.stderr
    );
    assert!(peak < MAX_MEMORY, "{case}: {peak} KiB");
    done
}

#[test]
fn starts_despite_non_regular_settings_files() {
    for kind in [
        "a pipe", "a socket", "a folder", "a device", "a loop", "3 GiB",
    ] {
        for is_trusted in [false, true] {
            let world = world();
            for name in OF_PROJECT {
                put(&world.path(name), kind);
            }
            for name in OF_USER {
                put(&world.home().join(name), kind);
            }
            put(&world.path(".git"), kind);
            let done = starts(&world, kind, is_trusted);
            for name in ["opencode.json", "outrigger.toml"] {
                let named = format!("{}: left out: ", world.path(name).display());
                assert!(done.stderr.contains(&named), "{kind}: {}", done.stderr);
            }
        }
    }
}

#[test]
fn starts_in_a_repository_with_non_regular_git_files() {
    for kind in ["a pipe", "a socket", "a folder", "a device", "3 GiB"] {
        let world = world();
        for name in [
            "HEAD",
            "config",
            "index",
            "packed-refs",
            "commondir",
            "info/exclude",
        ] {
            put(&world.path(".git").join(name), kind);
        }
        let done = starts(&world, kind, true);
        if kind == "a pipe" {
            let why = "git is not started for";
            assert!(done.stderr.contains(why), "{}", done.stderr);
        }
    }
}

/// git would wait for a writer.
#[test]
fn a_pipe_as_settings_of_git_is_reported_at_once() {
    for name in [
        ".git/config",
        ".git/objects/info/commit-graph",
        ".gitattributes",
        ".gitignore",
    ] {
        let world = world();
        world.file(".git/HEAD", "ref: refs/heads/main\n");
        put(&world.path(name), "a pipe");
        let begun = std::time::Instant::now();
        let done = world.run(&["run", "do it"]);
        let took = begun.elapsed();
        let says = format!("{name}: it is a named pipe");
        assert!(done.stderr.contains(&says), "{name}: {}", done.stderr);
        // The time that git may take.
        assert!(
            took < std::time::Duration::from_secs(30),
            "{name}: {took:?}"
        );
    }
}

/// The user's own files apply, or nothing starts: an unreadable one may contain a deny.
#[test]
fn the_users_own_settings_are_not_passed_over() {
    for kind in ["a pipe", "a socket", "a device", "3 GiB"] {
        for name in ["opencode/opencode.jsonc", "outrigger/outrigger.toml"] {
            let world = world();
            put(&world.home().join(".config").join(name), kind);
            let done = world.run(&["run", "do it"]);
            assert_eq!(done.code, 2, "{kind} {name}: {}", done.stderr);
            assert!(done.stderr.contains("[config.read]"), "{}", done.stderr);
        }
    }
}
