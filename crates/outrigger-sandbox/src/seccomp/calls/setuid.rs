//! Programs that run as their owner or group, not as their caller: every other user of the machine could act as this one. A file
//! is made one by its mode, when it is created or later; other bits of the mode stay allowed. The bit of the group means something else
//! on a folder, which a filter does not tell from a file: where the host is asked about calls, it makes that one
//! ([`crate::seccomp::connects`]), and elsewhere it is refused.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition, SeccompRule,
};

/// `fchmodat2`, newer than the table of numbers, which are the same everywhere.
pub(in crate::seccomp) const FCHMODAT2: libc::c_long = 452;
/// Calls that give a file or folder a mode, and which argument that is.
const MODES: &[(libc::c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
];
/// Calls that make a file with a mode, and which argument that is.
const MAKES: &[(libc::c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
];
/// Calls that open files, and which argument the flags are; the mode of a new one comes next. `openat2` has them in memory, where no
/// filter looks, and is not on the list of calls that are there.
const OPENS: &[(libc::c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];

/// Rules of calls that are refused. `asked`: the host is asked about modes with the bit of the group.
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
        // Where no file is made the mode is whatever was in its place. A nameless file is made by a flag of its own.
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
