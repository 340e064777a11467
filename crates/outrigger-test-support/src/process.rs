//! Whether processes live, and waiting for conditions in another one.

use std::fs;
use std::time::{Duration, Instant};

/// How long a test waits for what must happen. No machine needs that, however busy; a test that reaches it fails.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(180);

/// Namespace numbers start here; process ids end far below.
const NAMESPACES: u32 = 0xf000_0000;

/// Returns whether a process with this number lives (a zombie does not), or one in the namespace of this number: sandboxed
/// processes have the same numbers in each sandbox, and report their namespace from `/proc/self/ns/pid`.
///
/// ```
/// use outrigger_test_support::process::alive;
///
/// assert!(alive(std::process::id()));
/// // No process has this number: the kernel's limit is 4194304.
/// assert!(!alive(4_194_305));
/// ```
#[must_use]
pub fn alive(pid: u32) -> bool {
    if pid >= NAMESPACES {
        return members(pid).into_iter().any(alive);
    }
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Waits until none of these lives; returns `false` if one still does after [`WAIT_TIMEOUT`]. A kill returns before the kernel
/// has ended the process.
pub fn gone(pids: &[u32]) -> bool {
    wait_until(WAIT_TIMEOUT, || !pids.iter().any(|pid| alive(*pid)))
}

/// Returns the processes in a namespace; for a process id, that process.
#[must_use]
pub fn members(namespace: u32) -> Vec<u32> {
    if namespace < NAMESPACES {
        return vec![namespace];
    }
    let name = format!("pid:[{namespace}]");
    let all = fs::read_dir("/proc").unwrap().flatten();
    let inside = all.filter(|entry| {
        fs::read_link(entry.path().join("ns/pid")).is_ok_and(|link| link.to_str() == Some(&name))
    });
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    inside.filter_map(number).collect()
}

/// Returns whether another process runs whose environment contains this text, such as a folder of the test.
#[must_use]
pub fn runs_with(text: &str) -> bool {
    let own = std::process::id().to_string();
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy() != own)
        .filter_map(|entry| fs::read(entry.path().join("environ")).ok())
        .any(|environ| String::from_utf8_lossy(&environ).contains(text))
}

/// Waits until a condition holds; returns `false` if it does not within the limit. A test waits for a condition, not for a time:
/// the limit is what no machine needs, however busy.
///
/// ```
/// use std::time::{Duration, Instant};
/// use outrigger_test_support::process::{WAIT_TIMEOUT, wait_until};
///
/// let began = Instant::now();
/// assert!(wait_until(WAIT_TIMEOUT, || began.elapsed().as_millis() > 20));
/// assert!(!wait_until(Duration::from_millis(20), || false));
/// ```
pub fn wait_until(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    while !holds() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}
