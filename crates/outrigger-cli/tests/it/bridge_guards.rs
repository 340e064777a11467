//! Guards of the bridge that hold whatever a controller tries (C9): the path guard in the sandbox of listed programs,
//! and the limit on the audit.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::bridge::{Controller, bridge};
use crate::support::*;

/// Returns everything below a folder with its contents.
fn tree(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            let kind = entry.file_type().unwrap();
            let what = match (kind.is_dir(), kind.is_symlink()) {
                (true, _) => "folder".to_owned(),
                (_, true) => format!("link to {}", fs::read_link(&path).unwrap().display()),
                _ => String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
            };
            if kind.is_dir() {
                open.push(path.clone());
            }
            found.insert(path.display().to_string(), what);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_listed_program_does_writes_into_git() {
    if outrigger_sandbox::Spawner::new().unwrap().landlock_abi() == 0 {
        return;
    }
    let world = World::new([]);
    fs::create_dir_all(world.path("sub")).unwrap();
    for folder in [".", "sub"] {
        let git = world.script("git", &["init", "-q", folder]).output();
        if !git.is_ok_and(|done| done.status.success()) {
            return;
        }
    }
    world.file("evil", "#!/bin/sh\ntouch ran\n");
    let tar = world.script("tar", &["-cf", "evil.tar", "evil"]).output();
    assert!(tar.unwrap().status.success());
    let programs = ["git", "cp", "mv", "tar", "ln", "mkdir", "rm"].map(|it| format!("{it} **"));
    let options = programs.iter().flat_map(|it| ["--command", it.as_str()]);
    let (running, url) = bridge(&world, &options.collect::<Vec<_>>());
    let mut controller = Controller::new(&url).await;
    let trees = || [".git", "sub/.git"].map(|git| tree(&world.path(git)));
    let before = trees();
    for command in [
        "git config core.pager ./evil",
        "git -C sub config core.pager ./evil",
        "git --git-dir .git config alias.x '!./evil'",
        "git config --file .git/config core.fsmonitor ./evil",
        "git init --template .",
        "git log --output=.git/hooks/post-checkout",
        "git -c user.name=a -c user.email=b commit --allow-empty -m x",
        "git worktree add other",
        "cp evil .git/hooks/post-checkout",
        "cp -r evil sub/.git/hooks/post-checkout",
        "mv evil .git/config",
        "mv .git old",
        "mv .git/hooks hooks",
        "tar -C .git/hooks -xf evil.tar",
        "tar -cf .git/config evil",
        "ln -sf ../../evil .git/hooks/pre-commit",
        "ln -f evil .git/config",
        "mkdir .git/modules",
        "rm -rf .git sub/.git",
    ] {
        let (code, said) = controller.ask("exec", json!({ "command": command })).await;
        assert!(
            code == "ok" || code.starts_with("tool."),
            "{command} {code}: {said}"
        );
        assert!(trees() == before, "{command}: {said}");
    }
    // Files that are not git's are written.
    let (code, said) = controller
        .ask("exec", json!({"command": "cp evil new.txt"}))
        .await;
    assert_eq!(code, "ok", "{said}");
    assert!(world.path("new.txt").exists(), "{said}");
    running.signal(rustix::process::Signal::TERM);
    running.end();
}

/// Covers a user's file passed with the options of a listed program, and the ways to pass it.
#[tokio::test(flavor = "multi_thread")]
async fn a_listed_program_reads_what_it_is_given() {
    if outrigger_sandbox::Spawner::new().unwrap().landlock_abi() == 0 {
        return;
    }
    // Any folder other than the one for temporary files, which commands share.
    let homes = std::env::home_dir().into_iter();
    let folders = homes.chain([Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()]);
    let Some(outside) = folders
        .filter(|it| !it.starts_with(std::env::temp_dir()) && !it.starts_with("/tmp"))
        .find_map(|it| tempfile::tempdir_in(it).ok())
    else {
        return skip("there is no folder outside of those for temporary files");
    };
    let world = World::new([]);
    let folder = outside.path().to_str().unwrap();
    let key = outside.path().join("Cargo.toml");
    fs::write(&key, "description = \"a file of the user's\"\n").unwrap();
    std::os::unix::fs::symlink(&key, world.path("link")).unwrap();
    world.file("own.txt", "OWN\n");
    let listed = ["--command", "git **", "--command", "grep **"];
    for (options, is_read) in [
        (listed.to_vec(), false),
        ([&listed[..], &["--read", folder]].concat(), true),
        (vec!["--shell"], true),
    ] {
        let (running, url) = bridge(&world, &options);
        let mut controller = Controller::new(&url).await;
        for command in [
            format!("git diff --no-index /dev/null {}", key.display()),
            format!("grep -r description --include=Cargo.toml {folder}"),
            "grep description link".to_owned(),
        ] {
            let (_, said) = controller.ask("exec", json!({ "command": command })).await;
            assert_eq!(
                said.contains("description = "),
                is_read,
                "{options:?} {command}: {said}"
            );
        }
        let (code, said) = controller
            .ask("exec", json!({"command": "grep OWN own.txt"}))
            .await;
        assert!(code == "ok" && said.contains("OWN"), "{said}");
        running.signal(rustix::process::Signal::TERM);
        running.end();
    }
}

/// Covers a client without a token, and a controller that sends only nonsense.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_does_not_fill_the_audit() {
    const MANY: usize = 500;
    let world = World::new([]);
    let (running, url) = bridge(&world, &[]);
    let address = url.trim_start_matches("ws://").to_owned();
    for knock in 0..MANY {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        let request = format!(
            "GET / HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer wrong-{knock}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    }
    let mut controller = Controller::new(&url).await;
    let long = "x".repeat(1024 * 1024);
    for number in 0..MANY {
        // Only some names have a megabyte, because it would take too long otherwise.
        let name = match number % 50 {
            0 => &long,
            _ => "nothing",
        };
        let id = format!("i{number}");
        for (frame, code) in [
            (
                json!({"type": "invoke", "id": id, "tool": name, "params": {}}),
                "bridge.contract",
            ),
            (json!({"type": name, "id": name}), "bridge.frame"),
        ] {
            controller.send(frame).await;
            let answer = controller.next().await;
            assert_eq!(answer["code"], code, "{number}");
        }
    }
    running.signal(rustix::process::Signal::TERM);
    running.end();
    let listed = world
        .cli(&["audit", "list", "--json", "-n", "10000", "--kind", "bridge"])
        .ok()
        .lines();
    for code in ["bridge.unauthorized", "bridge.contract", "bridge.frame"] {
        let of = listed.iter().filter(|it| it["decision"] == code);
        // Thirty a minute; this test takes less than a minute on any machine, or at most a few.
        let count = of.count();
        assert!((30..=150).contains(&count), "{code}: {count}");
        let rest = listed.iter().any(|it| {
            let detail = it["detail"].as_str().unwrap_or_default();
            it["decision"] == "not listed" && detail.contains(code)
        });
        assert!(rest, "{code}");
    }
    let longest = listed.iter().map(|it| it.to_string().len()).max();
    assert!(longest < Some(32 * 1024), "{longest:?}");
    world.cli(&["audit", "verify"]).ok();
}
