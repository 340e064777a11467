//! While processes are frozen, nothing that was started runs, and nothing new starts.

use std::fs;
use std::path::Path;
use std::time::Duration;

use outrigger_protocol::diagnose::Diagnose as _;
use outrigger_sandbox::{Loopback, Policy, Spec, Stdio, process_time, run};
use outrigger_test_support::process::alive;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt as _;

use super::{PLENTY, eventually, helper, sh, spawner, text};

#[tokio::test]
async fn nothing_runs_and_nothing_starts_until_the_thaw() {
    let dir = tempfile::tempdir().unwrap();
    let (file, other) = (dir.path().join("grows"), dir.path().join("started"));
    let spawner = spawner();
    // Also what is left by its parent, in a session of its own.
    let loops = format!(
        "(while :; do echo x >> {0}; done) & setsid sh -c 'while :; do echo x >> {0}; done' & wait",
        file.display()
    );
    let _writer = spawner.spawn(sh(&loops)).await.unwrap();
    let size = || fs::metadata(&file).map_or(0, |it| it.len());
    eventually("it writes", || size() > 100).await;

    let freeze = spawner.freeze().await.unwrap();
    let before = size();
    let mut late = std::pin::pin!(spawner.spawn(sh(&format!("touch {}", other.display()))));
    let mut users = spawner.spawn(sh("sleep 0.3").never_frozen()).await.unwrap();
    tokio::select! {
        biased;
        _ = &mut late => panic!("it was started"),
        ended = users.wait() => assert!(ended.unwrap().success()),
    }
    assert_eq!((size(), other.exists()), (before, false));

    drop(freeze);
    let _late = late.await.unwrap();
    eventually("it runs again", || size() > before && other.exists()).await;
}

#[tokio::test]
async fn a_deadline_does_not_pass_while_frozen() {
    let (spawner, limit) = (spawner(), Duration::from_millis(5));
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let freeze = spawner.freeze().await.unwrap();
    let waits = tokio::spawn(process_time::timeout(limit, receiver));
    // Neither does that of a process which was to be started.
    let (shared, late) = (spawner.clone(), sh("echo late"));
    let started = tokio::spawn(async move { run(&shared, late, PLENTY / 2, 100).await });
    tokio::time::sleep(20 * limit).await;
    sender.send(()).unwrap();
    assert!(waits.await.unwrap().is_ok());
    drop(freeze);
    assert_eq!(started.await.unwrap().unwrap().stdout, b"late\n");
    let never = std::future::pending::<()>();
    assert!(process_time::timeout(limit, never).await.is_err());
}

/// What waits for the thaw is not started any more once nobody waits for it, and is in nobody's way.
#[tokio::test]
async fn a_start_that_waits_is_given_up_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("started");
    let touch = || sh(&format!("touch {}", file.display()));
    let spawner = spawner();
    let freeze = spawner.freeze().await.unwrap();
    let mut late = Box::pin(spawner.spawn(touch()));
    tokio::select! {
        biased;
        _ = &mut late => panic!("it was started"),
        () = std::future::ready(()) => drop(late),
    }
    drop(freeze);
    let done = run(&spawner, sh("true"), PLENTY, 100).await.unwrap();
    assert!(done.exit.success() && !file.exists());
    // The same for a second freeze that waits for the first.
    let freeze = spawner.freeze().await.unwrap();
    let mut second = Box::pin(spawner.freeze());
    tokio::select! {
        biased;
        _ = &mut second => panic!("two at once"),
        () = std::future::ready(()) => drop(second),
    }
    drop(freeze);
    let done = run(&spawner, touch(), PLENTY, 100).await.unwrap();
    assert!(done.exit.success() && file.exists());
}

fn flock(file: &Path, then: &str) -> Spec {
    let script = format!("exec 9>{0}; flock 9; echo held; {then}", file.display());
    sh(&script).stdout(Stdio::Pipe)
}

/// The locks of a command are those of git and of package managers: it is frozen without them if it releases them soon.
#[tokio::test]
async fn a_command_releases_its_lock_before_it_is_frozen() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("some.lock");
    let spawner = spawner();
    for is_command in [true, false] {
        let policy = Policy {
            loopback: is_command.then(|| Loopback::new(Vec::new())),
            ..Policy::open()
        };
        let spec = flock(&file, "sleep 0.5; exec 9>&-; sleep 1000").policy(policy);
        let mut holder = spawner.spawn(spec).await.unwrap();
        holder.stdout.as_mut().unwrap().read_u8().await.unwrap();
        let freeze = spawner.freeze().await.unwrap();
        let tried = sh(&format!("flock -n {} true", file.display()));
        let tried = run(&spawner, tried.never_frozen(), PLENTY, 100)
            .await
            .unwrap();
        assert_eq!(tried.exit.success(), is_command);
        assert_eq!(freeze.locks().is_empty(), is_command);
    }
}

#[tokio::test]
async fn a_command_that_waits_for_a_frozen_process_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("build");
    let spawner = spawner();
    let spec = flock(&file, "exec sleep 1000").label("plugin:holder");
    let mut holder = spawner.spawn(spec).await.unwrap();
    holder.stdout.as_mut().unwrap().read_u8().await.unwrap();
    let freeze = spawner.freeze().await.unwrap();
    let waits = sh(&format!("flock {} true; exit 1", file.display()));
    let waits = spawner.spawn(waits.never_frozen()).await.unwrap();
    let idle = spawner
        .spawn(sh("sleep 1000").never_frozen())
        .await
        .unwrap();
    let killers = (waits.killer(), idle.killer());
    let found = tokio::select! {
        _ = freeze.blocks(&killers.1) => panic!("it waits for nothing"),
        found = freeze.blocks(&killers.0) => found.to_string(),
    };
    let expected = format!(
        "(process {} of plugin:holder) holds {}",
        holder.own_pid(),
        file.display()
    );
    assert!(found.contains(&expected), "{found}: {expected}");
}

/// Without a PID namespace, what the processes of a host have started outlives it, and nothing else would wake it.
#[tokio::test]
async fn nothing_stays_stopped_after_a_killed_host() {
    let marker = format!("{}.625", 400_000 + std::process::id());
    let task = helper::spec(&format!("frozen {marker}"));
    let mut host = spawner().spawn(task.stdout(Stdio::Pipe)).await.unwrap();
    let mut stdout = host.stdout.take().unwrap();
    let mut said = String::new();
    while !said.contains("FROZEN") {
        said.push(char::from(stdout.read_u8().await.unwrap()));
    }
    let sleepers = || holding(&marker);
    assert!(sleepers().len() >= 4 && sleepers().iter().all(|pid| is_stopped(*pid)));
    let pid = Pid::from_raw(host.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    host.wait().await.unwrap();
    eventually("all run or have ended", || {
        !sleepers().iter().any(|pid| is_stopped(*pid))
    })
    .await;
    for pid in sleepers() {
        let pid = Pid::from_raw(pid.cast_signed()).unwrap();
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Runs the host of [`nothing_stays_stopped_after_a_killed_host`].
pub(crate) async fn host(marker: &str) {
    let spawner = spawner();
    let script = format!("sleep {marker} & (setsid sleep {marker} &) ; wait");
    let _plain = spawner.spawn(sh(&script)).await.unwrap();
    let _sandboxed = spawner
        .spawn(sh(&script).policy(Policy::open()))
        .await
        .unwrap();
    eventually("they run", || holding(marker).len() >= 4).await;
    let _freeze = spawner.freeze().await.unwrap();
    println!("\nFROZEN");
    std::future::pending::<()>().await;
}

fn holding(marker: &str) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let holds = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(b"sleep\0") && String::from_utf8_lossy(&line).contains(marker)
    };
    numbers.filter(|pid| holds(pid) && alive(*pid)).collect()
}

fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
}

/// A stopped process runs on when `SIGCONT` reaches it, which the kernel would send at a time or an event of its choice.
#[tokio::test]
async fn no_process_in_a_sandbox_can_have_the_kernel_wake_it() {
    let script = r#"
import ctypes, errno, fcntl, os, signal
libc = ctypes.CDLL(None, use_errno=True)
name = lambda failed: errno.errorcode[ctypes.get_errno()] if failed else "done"
print("death", name(libc.prctl(1, signal.SIGCONT) != 0), name(libc.prctl(1, signal.SIGTERM) != 0))
try: print("file", fcntl.fcntl(0, 10, signal.SIGCONT))
except OSError as error: print("file", errno.errorcode[error.errno])
"#;
    let mut spec = outrigger_sandbox::Spec::new("python3")
        .args(["-c", script])
        .var("PATH", "/usr/local/bin:/usr/bin:/bin");
    spec.policy = Some(Policy::open());
    let printed = tokio::time::timeout(PLENTY, text(spec)).await.unwrap();
    assert_eq!(printed, "death EPERM done\nfile EPERM\n");
}

/// Others may have timers; one that would wake its process does not let it be taken for stopped.
#[tokio::test]
async fn a_process_with_a_timer_that_wakes_it_cannot_be_frozen() {
    for (signal, frozen) in [("SIGVTALRM", true), ("SIGCONT", false)] {
        let script = format!(
            "import ctypes, signal, time
libc = ctypes.CDLL(None)
event = (ctypes.c_int * 16)(0, 0, signal.{signal}, 0)
assert libc.timer_create(1, event, ctypes.byref(ctypes.c_void_p())) == 0
open('ready', 'w')
time.sleep(60)"
        );
        let dir = tempfile::tempdir().unwrap();
        let spawner = spawner();
        let mut spec = outrigger_sandbox::Spec::new("python3")
            .args(["-c", &script])
            .cwd(dir.path())
            .var("PATH", "/usr/local/bin:/usr/bin:/bin");
        spec.policy = Some(Policy::open());
        let _running = spawner.spawn(spec.label("plugin:x")).await.unwrap();
        eventually("it has its timer", || dir.path().join("ready").exists()).await;
        let Err(error) = spawner.freeze().await else {
            assert!(frozen, "{signal}");
            continue;
        };
        // It says which, and what to do.
        let said = format!("{error}; {}", error.hint().unwrap());
        assert!(!frozen && said.contains("`python3` (process "), "{said}");
        assert!(said.contains(" of plugin:x): it has a timer"), "{said}");
        assert!(said.contains("end it (`kill -9 "), "{said}");
    }
}
