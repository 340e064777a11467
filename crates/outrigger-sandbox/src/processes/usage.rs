//! Resource usage of a process and its descendants.

use std::fs;
use std::time::Duration;

use rustix::process::Pid;

use crate::processes::procfs;

/// Maximum number of processes of one tree, and of threads of one process, that are counted.
const MAX_TASKS: usize = 4096;
/// Maximum number of open files of one process that are counted.
const MAX_FILES: usize = 1 << 16;

/// Resource usage of a process tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time so far, user and system, of the running processes and of the children they have waited for.
    pub cpu: Duration,
    /// Resident bytes; pages shared by processes count in each.
    pub rss: u64,
    /// Running processes.
    pub processes: usize,
    /// Open files of the process that has most of them.
    pub files: usize,
}

/// Returns the usage of the tree below a process, including itself; `None` if it has ended. Follows children, so what
/// left the tree (a daemon) is not counted.
#[must_use]
pub fn usage(root: u32) -> Option<Usage> {
    let mut usage = Usage::default();
    let mut stack = vec![root];
    while let Some(pid) = stack.pop() {
        if usage.processes >= MAX_TASKS {
            break;
        }
        if pid == root && crate::namespaces::init::is_init(pid) {
            stack.extend(children(pid));
            continue;
        }
        let Some((ticks, rss)) = one(pid) else {
            continue;
        };
        usage.cpu += ticks;
        usage.rss += rss;
        usage.processes += 1;
        usage.files = usage.files.max(files(pid));
        stack.extend(children(pid));
    }
    (usage.processes > 0).then_some(usage)
}

fn one(pid: u32) -> Option<(Duration, u64)> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let ticks = ticks(&String::from_utf8_lossy(&stat))?;
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    let second = rustix::param::clock_ticks_per_second().max(1);
    let cpu = Duration::from_millis(ticks.saturating_mul(1000) / second);
    Some((cpu, pages.saturating_mul(page())))
}

/// Returns the user and system time of a process and of the children that it has waited for (fields 14 to 17); `None`
/// for a zombie.
fn ticks(line: &str) -> Option<u64> {
    let (_, rest) = line.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X" | "x") {
        return None;
    }
    // Ten other fields come between the state (field 3) and utime (field 14).
    fields
        .skip(10)
        .take(4)
        .map(|field| field.parse::<u64>())
        .sum::<Result<u64, _>>()
        .ok()
}

pub(crate) fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for thread in threads.flatten().take(MAX_TASKS) {
        let list = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        found.extend(
            list.split_ascii_whitespace()
                .filter_map(|n| n.parse::<u32>().ok()),
        );
    }
    found
}

/// Returns the number of open files; 0 if unknown.
fn files(pid: u32) -> usize {
    let all = fs::read_dir(format!("/proc/{pid}/fd"));
    all.map_or(0, |files| files.take(MAX_FILES).count())
}

fn page() -> u64 {
    u64::try_from(rustix::param::page_size()).unwrap_or(4096)
}

/// Lowers the priority of a process (`nice`), if it still has this start time. It cannot be undone without privileges.
pub fn lower_priority(pid: u32, start_time: u64, nice: i32) {
    if procfs::start_time(pid) != Some(start_time) {
        return;
    }
    // On Linux, priority is a property of each thread.
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    for thread in threads.into_iter().flatten().flatten().take(MAX_TASKS) {
        let number = thread
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let Some(thread) = number.and_then(Pid::from_raw) {
            // Fails when it has just ended.
            let _ = rustix::process::setpriority_process(Some(thread), nice);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_are_those_of_the_process_and_of_what_it_has_waited_for() {
        let line = |state: &str| {
            format!(
                "42 (a) b) {state} 10 42 7 0 -1 4194304 1 2 3 4 500 60 7 8 20 0 1 0 987654 1000 1"
            )
        };
        assert_eq!(ticks(&line("S")), Some(575));
        assert_eq!(ticks(&line("Z")), None);
        assert_eq!(ticks("42 (sh) S 10"), Some(0));
        assert_eq!(ticks(""), None);
    }

    #[test]
    fn of_itself() {
        let me = usage(std::process::id()).unwrap();
        assert!(
            me.rss > 100_000 && me.processes >= 1 && me.files >= 3,
            "{me:?}"
        );
        assert_eq!(usage(u32::MAX), None);
    }
}
