//! Landlock: what is allowed works, everything else is denied. Skipped with a note on a kernel without it.

use std::net::TcpListener;

use outrigger_sandbox::{Level, Limits, Policy, Stdio};
use tokio::io::AsyncWriteExt as _;

use super::{helper, output, sh, spawner, text};

/// Returns false and prints the reason if the kernel lacks what a test needs.
fn kernel_has(needed: Level) -> bool {
    let level = spawner().level();
    if level < needed {
        println!(
            "skipped: the kernel offers Landlock ABI {} ({level:?})",
            spawner().landlock_abi()
        );
    }
    level >= needed
}

#[tokio::test]
async fn files() {
    if !kernel_has(Level::Partial) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for folder in ["read", "write", "other"] {
        std::fs::create_dir(dir.path().join(folder)).unwrap();
        std::fs::write(dir.path().join(folder).join("file"), folder).unwrap();
    }
    std::os::unix::fs::symlink("../other/file", dir.path().join("write/link")).unwrap();
    let policy = Policy::system()
        .read(dir.path().join("read"))
        .read(dir.path().join("missing"))
        .write(dir.path().join("write"));
    let cases = [
        ("cat read/file", true),
        ("cat write/file", true),
        ("cat write/../read/file", true),
        ("ls read write", true),
        ("echo x > /dev/null", true),
        (
            "echo x > write/new && mkdir write/folder && mv write/new write/folder/moved && rm -r write/folder",
            true,
        ),
        ("cat other/file", false),
        ("cat write/link", false),
        ("cat write/../other/file", false),
        ("ls other", false),
        ("ls .", false),
        ("echo x > read/new", false),
        ("echo x > read/file", false),
        ("rm read/file", false),
        ("echo x > other/new", false),
        ("mv write/file other/", false),
        ("ln write/file other/hard", false),
        ("kill -0 $HOST", false),
        ("cat /proc/$HOST/environ", false),
    ];
    for (script, allowed) in cases {
        // The host is only sent signal 0, which checks the permission.
        let spec = sh(script)
            .cwd(dir.path())
            .var("HOST", std::process::id().to_string());
        if script.starts_with("kill") && spawner().landlock_abi() < 6 {
            continue;
        }
        let output = output(spec.policy(policy.clone())).await.unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.exit.success(), allowed, "{script}: {stderr}");
    }
    assert_eq!(
        std::fs::read_to_string(dir.path().join("read/file")).unwrap(),
        "read"
    );
    assert_eq!(
        std::fs::read_to_string(dir.path().join("other/file")).unwrap(),
        "other"
    );
}

/// Only listed programs run, whatever the way of starting them.
#[tokio::test]
async fn programs() {
    if !kernel_has(Level::Partial) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "text").unwrap();
    std::os::unix::fs::symlink("/bin/ls", dir.path().join("link")).unwrap();
    std::fs::copy("/bin/ls", dir.path().join("own")).unwrap();
    let loader = "/lib64/ld-linux-x86-64.so.2";
    let viewed = |execute: &[&str], alone: bool| Policy {
        execute: Some(execute.iter().map(std::path::PathBuf::from).collect()),
        calls: Some(outrigger_sandbox::Calls {
            alone,
            ..outrigger_sandbox::Calls::default()
        }),
        ..Policy::system().write(dir.path())
    };
    let listed: &[&str] = &["/bin/cat", "/bin/bash"];
    for (execute, alone, script, allowed) in [
        (listed, false, "cat file".to_owned(), true),
        (listed, false, "bash -c 'cat file'".to_owned(), true),
        (listed, false, "echo file".to_owned(), true),
        (listed, false, "ls".to_owned(), false),
        (listed, false, "/bin/ls".to_owned(), false),
        (listed, false, "./link".to_owned(), false),
        (listed, false, "./own".to_owned(), false),
        (listed, false, "cp /bin/ls ./copy".to_owned(), false),
        (listed, false, "cat /bin/ls > mine".to_owned(), false),
        (listed, false, "bash -c ls".to_owned(), false),
        (listed, false, "exec ls".to_owned(), false),
        (listed, false, format!("{loader} /bin/ls"), false),
        (listed, false, format!("{loader} /usr/bin/ls"), false),
        (&[], false, "echo file".to_owned(), true),
        (&[], false, "cat file".to_owned(), false),
        (&[], true, "echo file".to_owned(), true),
        (&[], true, format!("{loader} ./own"), false),
        (listed, true, "cat file; echo x".to_owned(), false),
        (listed, true, "(echo x)".to_owned(), false),
        (listed, true, "echo x & wait".to_owned(), false),
    ] {
        let spec = sh(&script).cwd(dir.path());
        let output = output(spec.policy(viewed(execute, alone))).await.unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        // A shell that cannot create a process reports it and exits with 2.
        let done = output.exit.success() && stderr.is_empty();
        assert_eq!(done, allowed, "{execute:?} {alone} {script}: {stderr}");
    }
}

#[tokio::test]
async fn a_confined_process_keeps_its_streams_and_says_how_far_it_is_confined() {
    let policy = Policy::system();
    let spec = sh("read -r x; echo \"$x\" >&3; read -r y <&3; [ \"$y\" = back ]")
        .channel()
        .stdin(Stdio::Pipe);
    let mut child = spawner().spawn(spec.policy(policy)).await.unwrap();
    let expected = match spawner().landlock_abi() {
        0 => Level::None,
        1 | 2 => Level::Partial,
        _ => Level::Full,
    };
    assert_eq!(child.level(), Some(expected));
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"word\n")
        .await
        .unwrap();
    child
        .channel
        .as_mut()
        .unwrap()
        .write_all(b"back\n")
        .await
        .unwrap();
    assert!(child.wait().await.unwrap().success());
    assert_eq!(spawner().spawn(sh(":")).await.unwrap().level(), None);
}

#[tokio::test]
async fn a_confined_process_cannot_gain_privileges() {
    let spec = sh("grep NoNewPrivs /proc/self/status")
        .allow_new_privs()
        .policy(Policy::system());
    if kernel_has(Level::Partial) {
        assert_eq!(text(spec).await, "NoNewPrivs:\t1\n");
    }
}

/// Otherwise root could raise the hard limits and read the host's environment with its keys.
#[tokio::test]
async fn a_confined_root_cannot_get_around_it() {
    let script = "ulimit -Hn 200 2>/dev/null; ulimit -Hn; grep CapBnd /proc/self/status";
    let spec = sh(script).limits(Limits {
        data: None,
        nofile: Some(100),
    });
    let said = text(spec.policy(Policy::system())).await;
    let (limit, bounding) = said.trim_end().split_once("\nCapBnd:\t").unwrap();
    assert_eq!(limit, "100");
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    if own.contains("CapEff:\t0000000000000000") {
        println!("skipped: this user has no capabilities to lose");
        return;
    }
    let bounding = u64::from_str_radix(bounding, 16).unwrap();
    for (name, number) in [
        ("SYS_PTRACE", 19),
        ("SYS_ADMIN", 21),
        ("SYS_RESOURCE", 24),
        ("PERFMON", 38),
    ] {
        assert_eq!(bounding >> number & 1, 0, "{name}");
    }
}

#[tokio::test]
async fn tcp() {
    if !kernel_has(Level::Full) {
        return;
    }
    let open = TcpListener::bind("127.0.0.1:0").unwrap();
    let shut = TcpListener::bind("127.0.0.1:0").unwrap();
    let (open, shut) = (
        open.local_addr().unwrap().port(),
        shut.local_addr().unwrap().port(),
    );
    let free = outrigger_test_support::free_port();
    let policy = |bind_tcp, connect_tcp| Policy {
        bind_tcp,
        connect_tcp,
        ..Policy::system()
    };
    let cases = [
        (
            policy(None, Some(vec![open])),
            format!("connect {open}"),
            "ok",
        ),
        (
            policy(None, Some(vec![open])),
            format!("connect {shut}"),
            "PermissionDenied",
        ),
        (
            policy(None, Some(vec![])),
            format!("connect {open}"),
            "PermissionDenied",
        ),
        (policy(Some(vec![]), None), format!("connect {shut}"), "ok"),
        (policy(Some(vec![0]), None), "bind 0".to_owned(), "ok"),
        (
            policy(Some(vec![0]), None),
            format!("bind {free}"),
            "PermissionDenied",
        ),
        (
            policy(Some(vec![]), None),
            "bind 0".to_owned(),
            "PermissionDenied",
        ),
        (policy(None, None), "bind 0".to_owned(), "ok"),
    ];
    for (policy, task, expected) in cases {
        let said = text(helper::spec(&task).policy(policy.clone())).await;
        let answer = said
            .lines()
            .find_map(|line| line.strip_prefix("ANSWER "))
            .unwrap();
        assert_eq!(
            answer, expected,
            "{task} under {:?} {:?}",
            policy.bind_tcp, policy.connect_tcp
        );
    }
}
