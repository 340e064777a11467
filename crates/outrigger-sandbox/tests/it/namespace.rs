//! A sandboxed process has a PID namespace: it sees no other process, and everything it starts ends with it and with the
//! host.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outrigger_sandbox::absent::Clear;
use outrigger_sandbox::{Calls, Policy, Stdio};
use outrigger_test_support::process::alive;
use tokio::io::AsyncReadExt as _;

use super::{eventually, helper, output, sh, spawner, text};

fn policy() -> Policy {
    Policy {
        calls: Some(Calls::default()),
        ..Policy::system()
    }
}

fn is_possible() -> bool {
    let possible = spawner().has_namespaces();
    if !possible {
        println!("skipped: there are no namespaces of process numbers");
    }
    possible
}

/// Returns the processes whose command line contains a word.
fn holding(word: &str) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let holds = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(b"sleep\0") && String::from_utf8_lossy(&line).contains(word)
    };
    numbers.filter(|pid| holds(pid) && alive(*pid)).collect()
}

#[tokio::test]
async fn a_sandboxed_process_sees_its_own_processes_only() {
    if !is_possible() {
        return;
    }
    for policy in [policy(), Policy::open()] {
        let said = text(
            sh("echo $$; echo /proc/[0-9]*; cat /proc/1/comm; test -e /proc/$HOST/stat && echo seen; echo /proc/self/fd/*; \
                cat /proc/1/environ /proc/1/mem 2>/dev/null; readlink /proc/1/fd/* /proc/1/root /proc/1/exe; ls /proc/1/cwd/ 2>/dev/null; true")
                .var("HOST", std::process::id().to_string())
                .policy(policy),
        )
        .await;
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(
            lines[..3],
            ["2", "/proc/1 /proc/2", "outrigger-init"],
            "{said}"
        );
        assert_eq!(lines.len(), 4, "{said}");
    }
}

#[tokio::test]
async fn its_end_is_reported_as_it_was() {
    for (script, code, signal) in [
        ("exit 0", Some(0), None),
        ("exit 7", Some(7), None),
        ("kill -TERM $$", None, Some(15)),
        ("kill -KILL $$", None, Some(9)),
        ("kill -SEGV $$", None, Some(11)),
        ("trap 'exit 3' TERM; kill -TERM $$; sleep 1", Some(3), None),
        ("(exit 4) & wait $!; exit $?", Some(4), None),
        // A daemon that ends first does not matter.
        ("(sh -c 'exit 5' &) ; sleep 0.1; exit 6", Some(6), None),
        ("sleep 1000 & exit 8", Some(8), None),
    ] {
        for policy in [policy(), Policy::open()] {
            let exit = output(sh(script).policy(policy)).await.unwrap().exit;
            assert_eq!((exit.code, exit.signal), (code, signal), "{script}");
        }
    }
}

#[tokio::test]
async fn what_ended_is_reaped() {
    let script = "for i in 1 2 3 4 5; do (true &) ; done; sleep 0.2; cat /proc/[0-9]*/stat | grep -c ') Z '; true";
    assert_eq!(text(sh(script).policy(policy())).await.trim(), "0");
}

/// Daemons of every kind; they sleep for `$N`, by which they are found.
const DAEMONS: &str = "sleep $N & setsid sleep $N & (setsid sleep $N &) & (setsid sh -c 'trap \"\" TERM HUP; sleep $N; true' &) ; \
    (setsid sh -c '(setsid sleep $N &)' &) ; perl -e 'use POSIX; fork and exit; POSIX::setsid(); fork and exit; exec qw(sleep), $ENV{N}' &";

#[tokio::test]
async fn nothing_outlives_its_command() {
    let number = format!("{}.125", 200_000 + std::process::id());
    let script = format!("{DAEMONS} sleep 0.3; echo ready");
    let mut child = spawner()
        .spawn(sh(&script).var("N", &number).policy(policy()))
        .await
        .unwrap();
    assert!(child.wait().await.unwrap().success());
    assert!(holding(&number).len() >= 5, "{:?}", holding(&number));
    drop(child);
    eventually("they are gone", || holding(&number).is_empty()).await;
}

/// Changes are undone only when no process is left that could repeat them.
#[tokio::test]
async fn nothing_is_undone_while_something_runs() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    let script = "setsid sh -c 'while :; do echo evil > file; done' >/dev/null 2>&1 & while ! test -e file; do :; done";
    let clear = file.clone();
    let policy = Policy {
        clear: Clear::new(Arc::new(move |has_ended| {
            if has_ended {
                std::fs::write(&clear, "mine").unwrap();
            }
            Vec::new()
        })),
        ..Policy::system().write(dir.path())
    };
    for _ in 0..5 {
        let spec = sh(script).cwd(dir.path()).policy(policy.clone());
        let mut child = spawner().spawn(spec).await.unwrap();
        assert!(child.wait().await.unwrap().success());
        let _ = tokio::task::spawn_blocking(move || child.finish())
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
        std::fs::remove_file(&file).unwrap();
    }
}

#[tokio::test]
async fn nothing_outlives_a_killed_host() {
    if !is_possible() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join(".env");
    std::fs::write(&secret, "old").unwrap();
    let number = format!("{}.375", 300_000 + std::process::id());
    let task = format!("boxed {number} {}", dir.path().display());
    let mut host = spawner()
        .spawn(helper::spec(&task).stdout(Stdio::Pipe))
        .await
        .unwrap();
    let mut stdout = host.stdout.take().unwrap();
    let mut said = String::new();
    while !said.contains("READY") {
        said.push(char::from(stdout.read_u8().await.unwrap()));
    }
    assert!(holding(&number).len() >= 5);
    let pid = rustix::process::Pid::from_raw(host.pid().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    host.wait().await.unwrap();
    eventually("they are gone", || holding(&number).is_empty()).await;
    // No process is left to read what is saved then.
    std::fs::write(dir.path().join("new"), "not-for-you").unwrap();
    std::fs::rename(dir.path().join("new"), &secret).unwrap();
    tokio::time::sleep(Duration::from_millis(700)).await;
    let stolen = std::fs::read_to_string(dir.path().join("stolen")).unwrap_or_default();
    assert!(!stolen.contains("not-for-you"), "{stolen}");
}

/// Runs the host of [`nothing_outlives_a_killed_host`].
pub(crate) async fn host(argument: &str) {
    let (number, dir) = argument.split_once(' ').unwrap();
    let spies = "(setsid sh -c 'while sleep 0.1; do cat .env >> stolen; done' &)";
    let script = format!("{DAEMONS} {spies}; sleep 0.3; touch ready; exec sleep $N");
    let policy = Policy {
        hide: vec![std::path::Path::new(dir).join(".env")],
        ..policy().write(dir)
    };
    let spec = sh(&script).cwd(dir).var("N", number).policy(policy);
    let _child = spawner().spawn(spec).await.unwrap();
    let ready = std::path::Path::new(dir).join("ready");
    eventually("it is ready", || ready.exists()).await;
    println!("\nREADY");
    std::future::pending::<()>().await;
}

/// From its first instruction on, a command cannot look into the first process of its namespace, which is a copy of the
/// host.
#[tokio::test]
async fn the_first_process_is_closed_before_the_command_begins() {
    if !is_possible() {
        return;
    }
    for _ in 0..300 {
        let script = "read -r name </proc/1/comm; echo $name; cat /proc/1/environ /proc/1/mem /proc/1/maps 2>/dev/null; true";
        let said = text(sh(script).policy(Policy::open())).await;
        assert_eq!(said.trim_end(), "outrigger-init");
    }
}

/// Measures the start of a command; not a test of a limit, since machines differ. Two cores next to other builds, not
/// optimised, 2026-11-26: without a policy 1.0 ms, open 2.0 to 2.4 ms, confined 2.6 ms.
#[tokio::test]
#[ignore = "a measurement"]
async fn starts() {
    for (name, policy) in [
        ("open", Some(Policy::open())),
        ("confined", Some(policy())),
        ("none", None),
    ] {
        let mut all = Vec::new();
        for _ in 0..200 {
            let mut spec = sh("true");
            spec.policy = policy.clone();
            let begun = Instant::now();
            let mut child = spawner().spawn(spec).await.unwrap();
            let started = begun.elapsed();
            child.wait().await.unwrap();
            all.push((started, begun.elapsed()));
        }
        all.sort();
        println!(
            "{name}: start {:?}, to its end {:?}",
            all[100].0, all[100].1
        );
    }
}
