//! Finds and kills everything that a process has started.

use std::collections::HashSet;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use crate::processes::procfs;
use crate::processes::procfs::Stat;
use crate::processes::tag;

/// A tree that still grows after this many scans is killed as far as it is known.
const MAX_ROUNDS: usize = 16;

/// The root of a tree, and the marks that identify its members.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Root {
    pub(crate) pid: u32,
    /// The number surely still belongs to our process (it runs, or it is a zombie that we have not reaped), so its
    /// children and its process group are ours too.
    pub(crate) is_ours: bool,
    /// The tag that everything in the tree inherits.
    pub(crate) tag: Option<u64>,
}

/// Kills the tree and returns how many processes were alive.
///
/// All members are stopped first, until no new one appears: a stopped process starts no more, and the links from
/// child to parent stay in place. Members are those with the tag, those in the process group, and all descendants and
/// sessions of them. Every signal goes to a process whose start time was checked, never to a bare number.
pub(crate) fn kill(root: Root) -> usize {
    let mut known: HashSet<(u32, u64)> = HashSet::new();
    let mut found: Vec<Stat> = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let before = found.len();
        for member in members(root, &procfs::all(), tag::of) {
            if member.is_running() && known.insert((member.pid, member.start)) {
                signal(&member, Signal::STOP);
                found.push(member);
            }
        }
        if found.len() == before {
            break;
        }
    }
    if root.is_ours {
        kill_group(root.pid);
    }
    for member in &found {
        signal(member, Signal::KILL);
    }
    found.len()
}

/// Kills a process group. Only for a number that is surely ours: see [`Root::is_ours`].
pub(crate) fn kill_group(pid: u32) {
    if let Some(pid) = raw(pid) {
        // Fails if the group is empty, which is fine.
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// Sends a signal to exactly this process: the pidfd pins it, then its start time is compared.
pub(crate) fn signal(target: &Stat, signal: Signal) {
    let Some(pid) = raw(target.pid) else { return };
    if let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty())
        && procfs::start_time(target.pid) == Some(target.start)
    {
        // Fails if it has just ended or belongs to another user: nothing more can be done.
        let _ = pidfd_send_signal(&pidfd, signal);
    }
}

fn raw(pid: u32) -> Option<Pid> {
    // 0 and 1 would address our own group and init.
    i32::try_from(pid)
        .ok()
        .filter(|pid| *pid > 1)
        .and_then(Pid::from_raw)
}

/// Returns the members of the tree among `all`, never the host itself.
pub(crate) fn members(root: Root, all: &[Stat], tag: impl Fn(u32) -> Option<u64>) -> Vec<Stat> {
    let host = std::process::id();
    let tagged = |pid| root.tag.is_some() && tag(pid) == root.tag;
    let mut numbers: HashSet<u32> = HashSet::new();
    if root.is_ours {
        numbers.insert(root.pid);
    }
    let mut chosen = vec![false; all.len()];
    loop {
        let before = numbers.len();
        for (stat, chosen) in all.iter().zip(&mut chosen) {
            let is_kin = numbers.contains(&stat.pid)
                || numbers.contains(&stat.parent)
                || numbers.contains(&stat.session)
                || (root.is_ours && stat.group == root.pid)
                || tagged(stat.pid);
            if !*chosen && stat.pid != host && is_kin {
                *chosen = true;
                numbers.insert(stat.pid);
            }
        }
        if numbers.len() == before {
            break;
        }
    }
    all.iter()
        .zip(chosen)
        .filter_map(|(stat, chosen)| chosen.then_some(*stat))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: u32, parent: u32, group: u32, session: u32) -> Stat {
        Stat {
            pid,
            state: b'S',
            parent,
            group,
            session,
            start: u64::from(pid),
        }
    }

    /// The host (our own number) has child 900100; everything else is below it or elsewhere.
    fn picture() -> Vec<Stat> {
        let host = std::process::id();
        vec![
            stat(900_104, 900_103, 900_103, 900_103), // child of the one that left, listed before its parent
            stat(900_100, host, 900_100, 1),          // the root
            stat(900_101, 900_100, 900_100, 1),       // child in the group
            stat(900_102, 1, 900_100, 1),             // orphan in the group
            stat(900_103, 900_101, 900_103, 900_103), // made its own session
            stat(900_105, 1, 900_105, 900_103),       // orphan in that session
            stat(900_106, 1, 900_106, 900_106),       // daemon: only the tag is left
            stat(900_200, host, 900_200, 1),          // another child of the host
            stat(host, 1, host, 1),
        ]
    }

    #[test]
    fn membership() {
        let tag = |pid| (pid == 900_106 || pid == std::process::id()).then_some(7);
        let cases: [(bool, Option<u64>, &[u32]); 4] = [
            (
                true,
                Some(7),
                &[
                    900_104, 900_100, 900_101, 900_102, 900_103, 900_105, 900_106,
                ],
            ),
            (
                true,
                None,
                &[900_104, 900_100, 900_101, 900_102, 900_103, 900_105],
            ),
            (false, Some(7), &[900_106]),
            (false, None, &[]),
        ];
        for (is_ours, wanted, expected) in cases {
            let root = Root {
                pid: 900_100,
                is_ours,
                tag: wanted,
            };
            let found: Vec<u32> = members(root, &picture(), tag)
                .iter()
                .map(|stat| stat.pid)
                .collect();
            assert_eq!(found, expected, "{root:?}");
        }
    }
}
