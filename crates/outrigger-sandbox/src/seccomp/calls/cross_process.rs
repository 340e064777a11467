//! Calls with which a process affects others, above all the host: their limits, their scheduling and I/O priority, signals.
//!
//! Process ids from outside the sandbox mean nothing in a PID namespace. Without one, a number does not show whether its
//! process may be affected, so these calls are allowed on the caller itself (0) and refused for every other process.

use seccompiler::{
    BackendError, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition, SeccompRule,
};

use super::Rules;

/// `RLIMIT_LOCKS`, whose value identifies the process tree (`setup.rs`).
const TAG: u64 = 10;
/// Calls about a process, and the argument that names it; 0 is the caller.
const ABOUT: [(libc::c_long, u8); 8] = [
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_migrate_pages, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
];
/// `PRIO_USER` and `IOPRIO_WHO_USER`: all processes of a user; 0 is the caller's user.
const ALL_OF_A_USER: [(libc::c_long, u64); 2] =
    [(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];
/// Signals, and handles to send them: the first argument names the process. Landlock decides about them from Linux 6.12 on; on
/// older kernels, at least the host is protected.
const SIGNALS: [libc::c_long; 5] = [
    libc::SYS_kill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
];
/// Calls that have the kernel send a signal of the caller's choice later, with the argument and value that say so: `F_SETSIG`, and
/// `PR_SET_PDEATHSIG` with [`CONTINUE`]. By them a stopped process would wake itself ([`crate::ProcessFreeze`]).
const WAKES: [(libc::c_long, u8, u64); 2] = [(libc::SYS_fcntl, 1, 10), (libc::SYS_prctl, 0, 1)];
/// `SIGCONT`.
const CONTINUE: u64 = 18;
/// All processes.
const EVERYBODY: u64 = u32::MAX as u64;

/// Returns the rules of refused calls. `host`: the number of this process, if the caller sees it.
pub(super) fn rules(host: Option<u32>) -> Result<Rules, BackendError> {
    let is = |argument, op, value| SeccompCondition::new(argument, Len::Dword, op, value);
    let mut rules = Rules::new();
    for (call, argument) in ABOUT {
        let others = SeccompRule::new(vec![is(argument, Op::Ne, 0)?])?;
        rules.entry(call).or_default().push(others);
    }
    for (call, kind) in ALL_OF_A_USER {
        let all = SeccompRule::new(vec![is(0, Op::Eq, kind)?])?;
        rules.entry(call).or_default().push(all);
    }
    for (call, host) in SIGNALS
        .into_iter()
        .flat_map(|call| host.map(|it| (call, it)))
    {
        let to_us = SeccompRule::new(vec![is(0, Op::Eq, host.into())?])?;
        rules.entry(call).or_default().push(to_us);
    }
    let to_all = SeccompRule::new(vec![is(0, Op::Eq, EVERYBODY)?])?;
    rules.entry(libc::SYS_kill).or_default().push(to_all);
    // The limit that identifies the owner of a process.
    let set = SeccompCondition::new(2, Len::Qword, Op::Ne, 0)?;
    let tag = SeccompRule::new(vec![is(1, Op::Eq, TAG)?, set])?;
    rules.entry(libc::SYS_prlimit64).or_default().push(tag);
    let old = SeccompRule::new(vec![is(0, Op::Eq, TAG)?])?;
    rules.insert(libc::SYS_setrlimit, vec![old]);
    for (call, argument, value) in WAKES {
        let named = is(argument, Op::Eq, value)?;
        let signal = is(argument + 1, Op::Eq, CONTINUE)?;
        let of_signal = match call {
            libc::SYS_prctl => vec![named, signal],
            _ => vec![named],
        };
        rules
            .entry(call)
            .or_default()
            .push(SeccompRule::new(of_signal)?);
    }
    Ok(rules)
}
