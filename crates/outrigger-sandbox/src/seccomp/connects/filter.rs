//! The filters that hand calls over to the host.

use crate::seccomp::calls::setuid::FCHMODAT2;

const fn step(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}
const LOAD: u16 = 0x20;
const JUMP: u16 = 0x05;
const EQUAL: u16 = 0x15;
const HAS_BITS: u16 = 0x45;
#[cfg(target_arch = "x86_64")]
const AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const NOTIFY: u32 = 0x7fc0_0000;
/// Flags of a call that opens a file to write, or makes it.
const WRITES: u32 = (libc::O_CREAT | libc::O_WRONLY | libc::O_RDWR).unsigned_abs();
/// `SECCOMP_RET_ERRNO` with `ENOSYS`.
const MISSING: u32 = 0x0005_0000 | libc::ENOSYS.unsigned_abs();
/// `AUDIT_ARCH_X86_64`, and that of 64-bit ARM and RISC-V.
#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xc000_00b7;
#[cfg(target_arch = "riscv64")]
const ARCH: u32 = 0xc000_00f3;
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of calls are small"
)]
const fn number(call: libc::c_long) -> u32 {
    call as u32
}

/// Builds a filter that hands `connect`, `bind` and `listen` to the host, and modes with the setgid bit ([`super::setgid`]), after the
/// given steps. Calls of a foreign ABI, and rings of calls, which no filter can inspect, fail as unknown.
macro_rules! filter {
    ($($more:tt)*) => {
        &[
            step(LOAD, 0, 0, 4),
            step(EQUAL, 1, 0, ARCH),
            step(RETURN, 0, 0, MISSING),
            step(LOAD, 0, 0, 0),
            #[cfg(target_arch = "x86_64")]
            step(AT_LEAST, 0, 1, 0x4000_0000),
            #[cfg(target_arch = "x86_64")]
            step(RETURN, 0, 0, MISSING),
            step(EQUAL, 0, 1, number(libc::SYS_io_uring_setup)),
            step(RETURN, 0, 0, MISSING),
            step(EQUAL, 2, 0, number(libc::SYS_connect)),
            step(EQUAL, 1, 0, number(libc::SYS_bind)),
            step(EQUAL, 0, 1, number(libc::SYS_listen)),
            step(RETURN, 0, 0, NOTIFY),
            $($more)*
            #[cfg(target_arch = "x86_64")]
            step(EQUAL, 4, 0, number(libc::SYS_chmod)),
            step(EQUAL, 3, 0, number(libc::SYS_fchmod)),
            step(EQUAL, 4, 0, number(libc::SYS_fchmodat)),
            step(EQUAL, 3, 0, number(FCHMODAT2)),
            step(RETURN, 0, 0, ALLOW),
            // The mode is the second argument, or the third one.
            step(LOAD, 0, 0, 24),
            step(JUMP, 0, 0, 1),
            step(LOAD, 0, 0, 32),
            step(HAS_BITS, 0, 1, libc::S_ISGID),
            step(RETURN, 0, 0, NOTIFY),
            step(RETURN, 0, 0, ALLOW),
        ]
    };
}

pub(super) const FILTER: &[libc::sock_filter] = filter!();

/// Like [`FILTER`], and hands over the calls that give a file a name or open one to write ([`super::reserved`]).
pub(super) const NAMES: &[libc::sock_filter] = filter! {
    #[cfg(target_arch = "x86_64")]
    step(EQUAL, 0, 4, number(libc::SYS_open)),
    #[cfg(target_arch = "x86_64")]
    step(LOAD, 0, 0, 24),
    #[cfg(target_arch = "x86_64")]
    step(HAS_BITS, 0, 1, WRITES),
    #[cfg(target_arch = "x86_64")]
    step(RETURN, 0, 0, NOTIFY),
    #[cfg(target_arch = "x86_64")]
    step(RETURN, 0, 0, ALLOW),
    step(EQUAL, 0, 4, number(libc::SYS_openat)),
    step(LOAD, 0, 0, 32),
    step(HAS_BITS, 0, 1, WRITES),
    step(RETURN, 0, 0, NOTIFY),
    step(RETURN, 0, 0, ALLOW),
    #[cfg(target_arch = "x86_64")]
    step(EQUAL, 10, 0, number(libc::SYS_creat)),
    #[cfg(target_arch = "x86_64")]
    step(EQUAL, 9, 0, number(libc::SYS_mknod)),
    #[cfg(target_arch = "x86_64")]
    step(EQUAL, 8, 0, number(libc::SYS_rename)),
    #[cfg(target_arch = "x86_64")]
    step(EQUAL, 7, 0, number(libc::SYS_link)),
    #[cfg(target_arch = "x86_64")]
    step(EQUAL, 6, 0, number(libc::SYS_symlink)),
    #[cfg(not(target_arch = "riscv64"))]
    step(EQUAL, 5, 0, number(libc::SYS_renameat)),
    step(EQUAL, 4, 0, number(libc::SYS_renameat2)),
    step(EQUAL, 3, 0, number(libc::SYS_linkat)),
    step(EQUAL, 2, 0, number(libc::SYS_symlinkat)),
    step(EQUAL, 1, 0, number(libc::SYS_mknodat)),
    step(JUMP, 0, 0, 1),
    step(RETURN, 0, 0, NOTIFY),
};
