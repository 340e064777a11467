//! Process information from `/proc`. A process is identified by its number *and* its start time, since numbers are
//! reused.

use std::fs;

use rustix::process::Signal;

/// Maximum number of processes in a scan, so that it ends.
const MAX_SCAN: usize = 65_536;

/// The needed fields of one line of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: u32,
    /// The state letter: `Z` is a zombie, `X` is dead.
    pub(crate) state: u8,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    /// Clock ticks since boot.
    pub(crate) start: u64,
}

impl Stat {
    /// Returns `false` for a zombie, which keeps its number but no longer runs.
    pub(crate) fn is_running(&self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x')
    }
}

/// Returns the start time of a process in clock ticks since boot (field 22 of `/proc/PID/stat`), or `None` if there is
/// no such process. Together with the number it identifies a process for as long as the machine runs.
#[must_use]
pub fn start_time(pid: u32) -> Option<u64> {
    stat(pid).map(|stat| stat.start)
}

/// Returns whether any thread of a process is neither stopped nor ended: the first one may have ended before the others. With
/// `in_kernel` one that waits in the kernel (`D`) counts as stopped: it runs no code of its own before the signal reaches it.
pub(crate) fn runs(pid: u32, in_kernel: bool) -> bool {
    fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
        .any(|task| {
            let text = fs::read(task.path().join("stat")).unwrap_or_default();
            let stat = parse(pid, &String::from_utf8_lossy(&text));
            stat.is_some_and(|it| match it.state {
                b'T' | b't' | b'Z' | b'X' | b'x' => false,
                b'D' => !in_kernel,
                _ => true,
            })
        })
}

/// Returns whether a process has a timer that sends this signal.
pub(crate) fn has_timer(pid: u32, signal: Signal) -> bool {
    let wanted = format!("signal: {}/", signal.as_raw());
    fs::read_to_string(format!("/proc/{pid}/timers"))
        .is_ok_and(|text| text.lines().any(|line| line.starts_with(&wanted)))
}

/// Returns the name of a process (`comm`), without control characters: the process chooses it.
pub(crate) fn name(pid: u32) -> String {
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name = String::from_utf8_lossy(&name);
    name.trim_end()
        .chars()
        .filter(|it| !it.is_control())
        .collect()
}

pub(crate) fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &String::from_utf8_lossy(&text))
}

/// Returns all visible processes.
pub(crate) fn all() -> Vec<Stat> {
    pids().filter_map(stat).collect()
}

/// Returns the numbers of all visible processes.
pub(crate) fn pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .take(MAX_SCAN)
}

/// Parses a line. The name in the second field may contain spaces and parentheses, so the fields are counted from its
/// end.
fn parse(pid: u32, line: &str) -> Option<Stat> {
    let (_, rest) = line.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    Some(Stat {
        pid,
        state: *fields.next()?.as_bytes().first()?,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
        session: fields.next()?.parse().ok()?,
        // 15 other fields come between the session (field 6) and the start time (field 22).
        start: fields.nth(15)?.parse().ok()?,
    })
}

/// Returns the id of this boot: start times are only comparable within one.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| "-".to_owned(), |id| id.trim().to_owned())
}

/// Returns the PID namespace: process ids are only comparable within one.
pub(crate) fn pid_namespace() -> String {
    fs::read_link("/proc/self/ns/pid")
        .map_or_else(|_| "-".to_owned(), |id| id.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_does_not_shift_the_fields() {
        let tail = "S 10 42 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 1";
        for name in ["sh", "a b", "x) S 1 1 1", "((", ""] {
            let stat = parse(42, &format!("42 ({name}) {tail}")).unwrap();
            let expected = Stat {
                pid: 42,
                state: b'S',
                parent: 10,
                group: 42,
                session: 7,
                start: 987_654,
            };
            assert_eq!(stat, expected, "{name}");
        }
        assert_eq!(parse(42, "42 (sh) S 10"), None);
        assert_eq!(parse(42, ""), None);
    }

    #[test]
    fn sees_itself() {
        let me = std::process::id();
        let stat = stat(me).unwrap();
        assert!(stat.is_running());
        assert!(
            all()
                .iter()
                .any(|other| other.pid == me && other.start == stat.start)
        );
    }
}
