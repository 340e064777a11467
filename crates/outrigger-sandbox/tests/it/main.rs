//! Real processes: what they can reach, what limits them, what ends them.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests are tests; clippy.toml only knows the functions"
)]

mod calls;
mod confine;
mod connects;
mod cross_process;
mod end;
mod freezer;
mod helper;
mod loopback;
mod moved;
mod namespace;
mod no_views;
mod reserved;
mod start;
mod terminal;
mod unprivileged;
mod view;

use std::time::Duration;

use outrigger_sandbox::{Output, SandboxError, Spawner, Spec, run, start_time};

/// Far longer than any test needs; a test that takes this long has failed.
const PLENTY: Duration = Duration::from_secs(60);

fn spawner() -> Spawner {
    Spawner::new().unwrap()
}

/// Returns a spec for `sh -c script` with the usual PATH and nothing else.
fn sh(script: &str) -> Spec {
    Spec::new("sh")
        .arg("-c")
        .arg(script)
        .var("PATH", "/usr/local/bin:/usr/bin:/bin")
}

async fn output(spec: Spec) -> Result<Output, SandboxError> {
    run(&spawner(), spec, PLENTY, 1 << 20).await
}

/// Returns the standard output of a process that must succeed.
async fn text(spec: Spec) -> String {
    let output = output(spec).await.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.exit.success(), "{}: {stderr}", output.exit);
    String::from_utf8(output.stdout).unwrap()
}

/// Waits until a condition holds, and fails the test if it never does.
async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let started = std::time::Instant::now();
    while !condition() {
        assert!(started.elapsed() < PLENTY, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until a process is neither running nor a zombie.
async fn vanishes(pid: u32) {
    eventually(&format!("process {pid} is reaped"), || {
        start_time(pid).is_none()
    })
    .await;
}
