//! Setuid and setgid programs, which run as their owner or group instead of their caller: every other user of the machine could act as
//! this one. A file gets these bits with its mode, at creation or later; other mode bits stay allowed. On a folder the setgid bit means
//! something else, and a filter cannot tell a folder from a file. If the host decides about calls, it sets that bit
//! ([`crate::seccomp::connects`]); otherwise it is refused.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition, SeccompRule,
};

/// `fchmodat2`, newer than the table of numbers; the number is the same on all architectures.
pub(in crate::seccomp) const FCHMODAT2: libc::c_long = 452;
/// Calls that set the mode of a file or folder, and the index of that argument.
const MODES: &[(libc::c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
];
/// Calls that create a file with a mode, and the index of that argument.
const MAKES: &[(libc::c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
];
/// Calls that open files, and the index of the flags; the mode of a new file comes next. `openat2` has them in memory, which no filter
/// can read, and is not on the list of allowed calls.
const OPENS: &[(libc::c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];

/// Returns the rules of refused calls. `asked`: the host decides about modes with the setgid bit.
pub(super) fn rules(asked: bool) -> Result<BTreeMap<libc::c_long, Vec<SeccompRule>>, BackendError> {
    let has = |argument, bit: u32| {
        let bit = u64::from(bit);
        SeccompCondition::new(argument, Len::Dword, Op::MaskedEq(bit), bit)
    };
    let mut rules: BTreeMap<_, Vec<SeccompRule>> = BTreeMap::new();
    for bit in [libc::S_ISUID, libc::S_ISGID] {
        let changes = MODES.iter().filter(|_| bit == libc::S_ISUID || !asked);
        for (call, mode) in changes.chain(MAKES) {
            let rule = SeccompRule::new(vec![has(*mode, bit)?])?;
            rules.entry(*call).or_default().push(rule);
        }
        // If no file is created, the mode argument is arbitrary. A nameless file is created by its own flag.
        let nameless = libc::O_TMPFILE & !libc::O_DIRECTORY;
        for (call, flags) in OPENS {
            for flag in [libc::O_CREAT, nameless] {
                let made = has(*flags, flag.cast_unsigned())?;
                let rule = SeccompRule::new(vec![made, has(flags + 1, bit)?])?;
                rules.entry(*call).or_default().push(rule);
            }
        }
    }
    Ok(rules)
}
