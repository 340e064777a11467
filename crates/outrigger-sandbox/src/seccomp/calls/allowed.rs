//! The system calls available in a sandbox: those used by ordinary programs, compilers, git, shells, Python, Bun, Node and browsers. All
//! others, including those of newer kernels, fail with `ENOSYS`, as on an older kernel. Calls on this list that would bypass the rules are
//! refused by their own rule with `EPERM`.
//!
//! `mq_notify` is missing: with it a stopped process would have the kernel wake it ([`crate::ProcessFreeze`]).

use libc::c_long;
use seccompiler::sock_filter;

use super::{ERRNO, JUMP_IF_AT_LEAST, RETURN, statement};

/// `BPF_JMP | BPF_JA`, and `BPF_JMP | BPF_JGT | BPF_K`.
const JUMP: u16 = 0x05;
const JUMP_IF_GREATER: u16 = 0x25;

/// On every architecture.
const ALLOWED: &[c_long] = &[
    // Files.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_fstat,
    libc::SYS_lseek,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_tee,
    libc::SYS_vmsplice,
    libc::SYS_copy_file_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync,
    libc::SYS_syncfs,
    libc::SYS_sync_file_range,
    libc::SYS_truncate,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fadvise64,
    libc::SYS_readahead,
    libc::SYS_openat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_chdir,
    libc::SYS_fchdir,
    libc::SYS_chroot,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_readlinkat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_umask,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_fgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_flistxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_name_to_handle_at,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_inotify_rm_watch,
    libc::SYS_ioctl,
    libc::SYS_pipe2,
    libc::SYS_memfd_create,
    // Waiting.
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_signalfd4,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    libc::SYS_io_setup,
    libc::SYS_io_destroy,
    libc::SYS_io_submit,
    libc::SYS_io_cancel,
    libc::SYS_io_getevents,
    // Memory.
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_mincore,
    libc::SYS_msync,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    libc::SYS_mlockall,
    libc::SYS_munlockall,
    libc::SYS_brk,
    libc::SYS_remap_file_pages,
    libc::SYS_mbind,
    libc::SYS_get_mempolicy,
    libc::SYS_set_mempolicy,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_pkey_alloc,
    libc::SYS_pkey_free,
    libc::SYS_pkey_mprotect,
    libc::SYS_membarrier,
    // Processes and threads.
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_unshare,
    libc::SYS_set_tid_address,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_rseq,
    libc::SYS_prctl,
    libc::SYS_personality,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_gettid,
    libc::SYS_getpgid,
    libc::SYS_setpgid,
    libc::SYS_getsid,
    libc::SYS_setsid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getgroups,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_capget,
    libc::SYS_capset,
    libc::SYS_getrlimit,
    libc::SYS_setrlimit,
    libc::SYS_prlimit64,
    libc::SYS_getrusage,
    libc::SYS_times,
    libc::SYS_getpriority,
    libc::SYS_setpriority,
    libc::SYS_ioprio_get,
    libc::SYS_ioprio_set,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_setparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_getattr,
    libc::SYS_sched_setattr,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_sched_rr_get_interval,
    libc::SYS_getcpu,
    libc::SYS_seccomp,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
    // Signals.
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    // Time.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getitimer,
    libc::SYS_setitimer,
    // Ruby needs it; a timer that would wake a stopped process is found when that is stopped.
    libc::SYS_timer_create,
    libc::SYS_timer_settime,
    libc::SYS_timer_gettime,
    libc::SYS_timer_getoverrun,
    libc::SYS_timer_delete,
    // Sockets.
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    // Memory, semaphores and queues of the namespace.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmdt,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_mq_timedsend,
    libc::SYS_mq_timedreceive,
    libc::SYS_mq_getsetattr,
    // The machine.
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrandom,
    // Newer than the table of names, with the same numbers everywhere: the home node of memory, cached pages, shadow stacks, futexes (450
    // to 456, without the mode of files), sealed memory, file attributes by folder.
    450,
    451,
    453,
    454,
    455,
    456,
    462,
    463,
    464,
    465,
    466,
    468,
    469,
];

const FCHMODAT2: c_long = 452;

/// Older forms.
#[cfg(target_arch = "x86_64")]
const OF_THIS_MACHINE: &[c_long] = &[
    libc::SYS_open,
    libc::SYS_creat,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_pipe,
    libc::SYS_dup2,
    libc::SYS_pause,
    libc::SYS_alarm,
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_getdents,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_link,
    libc::SYS_unlink,
    libc::SYS_symlink,
    libc::SYS_readlink,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_mknod,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_getpgrp,
    libc::SYS_time,
    libc::SYS_arch_prctl,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_signalfd,
    libc::SYS_inotify_init,
    // Used by the kernel's own probes.
    335,
    336,
];
#[cfg(target_arch = "aarch64")]
const OF_THIS_MACHINE: &[c_long] = &[libc::SYS_renameat];
/// Instruction cache flushes and processor capabilities.
#[cfg(target_arch = "riscv64")]
const OF_THIS_MACHINE: &[c_long] = &[258, 259];
#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64"
)))]
const OF_THIS_MACHINE: &[c_long] = &[];

/// Returns the steps before a filter: a call that is neither on the list nor in `ruled`, for which the filter has rules, fails as unknown.
/// The system call number has been loaded.
pub(super) fn prelude(ruled: &[c_long]) -> Vec<sock_filter> {
    let lists = [ALLOWED, OF_THIS_MACHINE, ruled].concat();
    let ranges = ranges(lists);
    let mut steps = Vec::with_capacity(3 * ranges.len() + 1);
    for (behind, (first, last)) in (0_u32..).zip(ranges.iter().rev()) {
        // Jump past the remaining ranges and the end.
        steps.push(statement(JUMP, 0, 0, 3 * behind + 1));
        steps.push(statement(JUMP_IF_GREATER, 1, 0, *last));
        steps.push(statement(JUMP_IF_AT_LEAST, 0, 2, *first));
    }
    steps.reverse();
    steps.push(statement(RETURN, 0, 0, ERRNO | libc::ENOSYS.unsigned_abs()));
    steps
}

/// Returns the numbers as ranges, in order.
fn ranges(numbers: Vec<c_long>) -> Vec<(u32, u32)> {
    let numbers: std::collections::BTreeSet<u32> = numbers
        .into_iter()
        .filter_map(|it| u32::try_from(it).ok())
        .collect();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether the steps pass a number on to the filter.
    fn passes(steps: &[sock_filter], number: u32) -> bool {
        let mut at = 0;
        loop {
            let Some(step) = steps.get(at) else {
                return at == steps.len();
            };
            let jump = |is: bool| usize::from(if is { step.jt } else { step.jf });
            at += 1 + match step.code {
                JUMP => step.k as usize,
                JUMP_IF_GREATER => jump(number > step.k),
                JUMP_IF_AT_LEAST => jump(number >= step.k),
                _ => return false,
            };
        }
    }

    #[test]
    fn what_is_on_the_list_and_nothing_else_is_there() {
        let steps = prelude(&[10_000]);
        let listed: Vec<u32> = [ALLOWED, OF_THIS_MACHINE, &[10_000]]
            .concat()
            .into_iter()
            .map(|it| it.try_into().unwrap())
            .collect();
        for number in (0..1200).chain([9_999, 10_000, 10_001, u32::MAX]) {
            assert_eq!(passes(&steps, number), listed.contains(&number), "{number}");
        }
        for gone in [
            libc::SYS_kexec_load,
            libc::SYS_init_module,
            libc::SYS_reboot,
            libc::SYS_fanotify_init,
        ] {
            assert!(!passes(&steps, gone.try_into().unwrap()), "{gone}");
        }
    }
}
