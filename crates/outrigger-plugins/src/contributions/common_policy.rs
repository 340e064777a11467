//! What two sandboxes both allow.

use std::path::{Path, PathBuf};

use outrigger_sandbox::{Calls, Policy};

/// Returns the policy that allows what both allow, for sandboxes with one private folder and one way out. Reads the disk.
pub(super) fn common(one: Policy, other: Policy) -> Policy {
    let read = |policy: &Policy| [policy.read.clone(), policy.write.clone()].concat();
    Policy {
        read: paths(&read(&one), &read(&other)),
        write: paths(&one.write, &other.write),
        list: paths(&one.list, &other.list),
        execute: of_both(one.execute, other.execute, |a, b| paths(&a, &b)),
        bind_tcp: of_both(one.bind_tcp, other.bind_tcp, ports),
        connect_tcp: of_both(one.connect_tcp, other.connect_tcp, ports),
        loopback: one.loopback.or(other.loopback),
        hide: [one.hide, other.hide].concat(),
        read_only: [one.read_only, other.read_only].concat(),
        restored: [one.restored, other.restored].concat(),
        held: [one.held, other.held].concat(),
        absent: [one.absent, other.absent].concat(),
        reserved: [one.reserved, other.reserved].concat(),
        own_memory: one.own_memory || other.own_memory,
        ends_uncovered: one.ends_uncovered || other.ends_uncovered,
        own_terminals: one.own_terminals || other.own_terminals,
        calls: of_both(one.calls, other.calls, |a, b| Calls {
            unix_sockets: a.unix_sockets && b.unix_sockets,
            alone: a.alone || b.alone,
            udp: a.udp && b.udp,
        }),
        reach_out: one.reach_out && other.reach_out,
        clear: one.clear,
        kept: one.kept,
        temporary: one.temporary,
        variables: one.variables,
    }
}

/// Joins two limits; without one of them the other counts.
fn of_both<T>(one: Option<T>, other: Option<T>, both: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(both(one, other)),
        (one, other) => one.or(other),
    }
}

fn ports(mut one: Vec<u16>, other: Vec<u16>) -> Vec<u16> {
    one.retain(|port| other.contains(port));
    one
}

/// Returns the paths below which both lists reach. A rule is about the target of a path, so links are resolved where the lists differ: a
/// link in a folder of one of them may lead to what is only in the other.
fn paths(one: &[PathBuf], other: &[PathBuf]) -> Vec<PathBuf> {
    let mut both: Vec<PathBuf> = one
        .iter()
        .filter(|it| other.contains(it))
        .cloned()
        .collect();
    let real = |paths: &[PathBuf]| -> Vec<PathBuf> {
        paths
            .iter()
            .filter_map(|it| it.canonicalize().ok())
            .collect()
    };
    let (one, other) = (real(one), real(other));
    let below = |path: &PathBuf, of: &[PathBuf]| of.iter().any(|it| Path::starts_with(path, it));
    both.extend(one.iter().filter(|it| below(it, &other)).cloned());
    both.extend(other.iter().filter(|it| below(it, &one)).cloned());
    both.sort();
    both.dedup();
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sandboxes_allow_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        for folder in ["p/sub", "granted/deep", "secret"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::os::unix::fs::symlink(at("secret"), at("p/link")).unwrap();
        let calls = |unix_sockets: bool, alone: bool| {
            Some(Calls {
                unix_sockets,
                alone,
                udp: false,
            })
        };
        let one = Policy {
            read: vec!["/usr".into(), at("granted"), at("p/sub")],
            write: vec![at("p"), at("missing")],
            execute: None,
            bind_tcp: Some(vec![0, 4000]),
            read_only: vec![at("p/.git")],
            calls: calls(true, false),
            ..Policy::default()
        };
        let other = Policy {
            read: vec!["/usr".into(), at("granted/deep"), at("p/link"), at("p")],
            write: vec![at("p/sub")],
            execute: Some(vec!["/bin/sh".into()]),
            bind_tcp: Some(vec![0]),
            hide: vec![at("p/.env")],
            calls: calls(false, true),
            ..Policy::default()
        };
        for (one, other) in [(one.clone(), other.clone()), (other, one)] {
            let both = common(one, other);
            assert_eq!(
                both.read,
                [at("granted/deep"), at("p"), at("p/sub"), "/usr".into()]
            );
            assert_eq!(both.write, [at("p/sub")]);
            assert_eq!(both.execute, Some(vec!["/bin/sh".into()]));
            assert_eq!(both.bind_tcp, Some(vec![0]));
            assert_eq!(both.calls, calls(false, true));
            assert_eq!(
                (both.hide, both.read_only),
                (vec![at("p/.env")], vec![at("p/.git")])
            );
        }
    }
}
