//! Calls with which a process reaches others, the host above all: their limits, their place in the queue for the processor and
//! the disk, signals.
//!
//! Process numbers from outside of the sandbox mean nothing in a pid namespace. Without one, a number does not say
//! whether its process may be reached, so these calls are allowed on the caller itself (0) and refused for every other
//! process.

use seccompiler::{
    BackendError, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition, SeccompRule,
};

use super::Rules;

/// `RLIMIT_LOCKS`, whose value tells whose a process is (`setup.rs`).
const TAG: u64 = 10;
/// Calls about a process, and which argument names it; 0 is the caller.
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
/// `PRIO_USER` and `IOPRIO_WHO_USER`: all processes of a user, the caller's own where that is 0.
const ALL_OF_A_USER: [(libc::c_long, u64); 2] =
    [(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];
/// Signals, and handles by which they are sent: the first argument names the process. Landlock decides about them from Linux
/// 6.12 on; before, the host at least is spared.
const SIGNALS: [libc::c_long; 5] = [
    libc::SYS_kill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
];
/// All processes that there are.
const EVERYBODY: u64 = u32::MAX as u64;

/// Rules of calls that are refused. `host`: the number of this process, where the caller sees it.
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
    // The limit by which the owner of a process can be recognised.
    let set = SeccompCondition::new(2, Len::Qword, Op::Ne, 0)?;
    let tag = SeccompRule::new(vec![is(1, Op::Eq, TAG)?, set])?;
    rules.entry(libc::SYS_prlimit64).or_default().push(tag);
    let old = SeccompRule::new(vec![is(0, Op::Eq, TAG)?])?;
    rules.insert(libc::SYS_setrlimit, vec![old]);
    Ok(rules)
}
