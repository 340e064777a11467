//! While processes are frozen, nothing that was started runs, and nothing new starts.

use std::fs;
use std::time::Duration;

use outrigger_sandbox::Policy;

use super::{PLENTY, eventually, sh, spawner, text};

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
    let freezer = spawner.freezer().clone();
    let waits = tokio::spawn(async move { freezer.timeout(limit, receiver).await });
    tokio::time::sleep(20 * limit).await;
    sender.send(()).unwrap();
    assert!(waits.await.unwrap().is_ok());
    drop(freeze);
    let never = std::future::pending::<()>();
    assert!(spawner.freezer().timeout(limit, never).await.is_err());
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
        let _running = spawner.spawn(spec).await.unwrap();
        eventually("it has its timer", || dir.path().join("ready").exists()).await;
        assert_eq!(spawner.freeze().await.is_some(), frozen, "{signal}");
    }
}
