//! A seccomp filter of the system calls that a process may make: those on a list ([`allowed`]), less what rules refuse.
//!
//! Landlock restricts files and TCP. What bypasses it is refused here: UNIX sockets by path (`docker.sock`, an SSH agent), raw sockets, UDP
//! if the network is restricted, inspecting other processes, io_uring (whose operations no filter sees), mounts, file handles.
//! [`cross_process`] lists what is refused to every process with a policy, whatever else it may do.

mod allowed;
mod cross_process;
pub(in crate::seccomp) mod setuid;
mod sockets;

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op,
    SeccompCondition, SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

/// Refused calls, each with the rules of which one must match; a call without rules is always refused.
type Rules = BTreeMap<libc::c_long, Vec<SeccompRule>>;

/// Exceptions from the filter of [`crate::Policy::calls`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Calls {
    /// UNIX sockets may be created, so every service of this user that listens on a path can be connected to. If connections are
    /// restricted, the host makes them, and the service sees the host as its peer.
    pub unix_sockets: bool,
    /// No process may be created; threads may. The process can still execute another program, if it is executable.
    pub alone: bool,
    /// UDP sockets may be created. A program that resolves names on its own needs them.
    pub udp: bool,
}

/// Always refused. Many of these also need a privilege; a user namespace would give it.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    OPEN_TREE_ATTR,
];

/// `open_tree` with attributes: newer than the table of numbers; the number is the same on all architectures.
const OPEN_TREE_ATTR: libc::c_long = 467;

/// Calls of the x32 ABI have this bit; the filter's numbers would not match them.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// What decides about calls beside the filter, and what the process can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FilterOptions {
    /// Exceptions for the process. Without them the filter refuses only what affects other processes.
    pub(crate) calls: Option<Calls>,
    /// Landlock restricts the ports to connect to, so connections that it does not see are refused (multipath TCP, SCTP, fast open).
    pub(crate) landlock_rules_tcp: bool,
    /// The host decides which UNIX sockets are connected to, so stream sockets may be created.
    pub(crate) host_rules_unix_sockets: bool,
    /// The host decides about the calls that [`crate::seccomp::connects`] hands over.
    pub(crate) notifies_connects: bool,
    /// The number of this process, if the sandboxed one sees it.
    pub(crate) host_pid: Option<u32>,
}

/// Builds the filter for the child to install.
///
/// # Errors
/// A message of the compiler; only on an unknown architecture.
pub(crate) fn filter(options: FilterOptions) -> io::Result<BpfProgram> {
    let compile = || -> Result<BpfProgram, BackendError> {
        let arch = TargetArch::try_from(std::env::consts::ARCH)?;
        let mut all = cross_process::rules(options.host_pid)?;
        if let Some(calls) = options.calls {
            all.extend(rules(calls, options)?);
            all.extend(setuid::rules(options.notifies_connects)?);
        }
        SeccompFilter::new(
            all,
            SeccompAction::Allow,
            SeccompAction::Errno(libc::EPERM.unsigned_abs()),
            arch,
        )?
        .try_into()
    };
    let compiled = compile().map_err(|error| io::Error::new(io::ErrorKind::Unsupported, error))?;
    Ok(with_prelude(
        compiled,
        options.calls.is_some_and(|it| it.alone),
    ))
}

/// Returns what is refused by its arguments, or always.
fn rules(calls: Calls, options: FilterOptions) -> Result<Rules, BackendError> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    rules.extend(sockets::rules(calls, options)?);
    if calls.alone {
        rules.extend(no_processes()?);
    }
    rules.insert(libc::SYS_ioctl, typing()?);
    Ok(rules)
}

/// Refuses to create a process, but not a thread.
fn no_processes() -> Result<Rules, BackendError> {
    let thread = u64::from(libc::CLONE_THREAD.unsigned_abs());
    let process = SeccompCondition::new(0, Len::Qword, Op::MaskedEq(thread), 0)?;
    let mut rules = Rules::from([(libc::SYS_clone, vec![SeccompRule::new(vec![process])?])]);
    #[cfg(target_arch = "x86_64")]
    for call in [libc::SYS_fork, libc::SYS_vfork] {
        rules.insert(call, Vec::new());
    }
    Ok(rules)
}

/// Refuses to type into the controlling terminal. Only the low half of the command is significant, for the kernel too.
fn typing() -> Result<Vec<SeccompRule>, BackendError> {
    [libc::TIOCSTI, libc::TIOCLINUX]
        .into_iter()
        .map(|command| {
            let command = SeccompCondition::new(1, Len::Dword, Op::Eq, command)?;
            SeccompRule::new(vec![command])
        })
        .collect()
}

/// Opcodes of the kernel's filter language.
const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
const ERRNO: u32 = 0x0005_0000;

fn statement(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// Refuses what is not on the list ([`allowed`]), the x32 form of every call, and `clone3` if no process may be created: its flags are in
/// memory, which no filter can read, and C libraries fall back to `clone` if `clone3` is missing. Jumps are relative, so a program can be
/// put in front of another.
fn with_prelude(program: BpfProgram, alone: bool) -> BpfProgram {
    let refuse = || statement(RETURN, 0, 0, ERRNO | libc::ENOSYS.unsigned_abs());
    // The system call number is the first word of the filter's input.
    let mut whole = vec![statement(LOAD, 0, 0, 0)];
    #[cfg(target_arch = "x86_64")]
    {
        whole.push(statement(JUMP_IF_AT_LEAST, 0, 1, X32));
        whole.push(refuse());
    }
    if let (true, Ok(clone)) = (alone, u32::try_from(libc::SYS_clone3)) {
        whole.push(statement(JUMP_IF_EQUAL, 0, 1, clone));
        whole.push(refuse());
    }
    whole.extend(allowed::prelude(REFUSED));
    whole.extend(program);
    whole
}

/// Returns whether the kernel has seccomp.
#[expect(unsafe_code, reason = "prctl has no wrapper for this question")]
pub(crate) fn is_possible() -> bool {
    // SAFETY: a question without a pointer.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) >= 0 }
}

/// Runs in the child, last: only exec follows.
#[expect(
    unsafe_code,
    reason = "system calls between fork and exec, where only raw calls are allowed"
)]
pub(crate) fn install(program: &BpfProgram) -> io::Result<()> {
    let Ok(len) = u16::try_from(program.len()) else {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    };
    let program = libc::sock_fprog {
        len,
        filter: program.as_ptr().cast_mut().cast(),
    };
    // SAFETY: the program is a local that points to `len` instructions of the kernel's own layout; the kernel copies it.
    let answer = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::c_ulong::from(libc::SECCOMP_MODE_FILTER),
            &raw const program,
            0,
            0,
        )
    };
    if answer == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
