//! Landlock rules for folders of a process's view that exist only after the rest of the ruleset is built.

/// A folder of the child's view whose file system is mounted after the ruleset is built, so that no rule covers it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ViewRule {
    folder: &'static std::ffi::CStr,
    /// The allowed access, in bits of `linux/landlock.h`; if the kernel does not know the first set, the next is tried.
    access: &'static [u64],
}

impl ViewRule {
    /// Write, read, list: bits 1 to 3; and `ioctl` on devices, bit 15.
    pub(crate) const TERMINALS: Self = Self {
        folder: c"/dev/pts",
        access: &[0b1110 | 1 << 15, 0b1110],
    };
    /// Everything that exists in Linux 6.10, 6.2, 5.19 and 5.13.
    pub(crate) const MEMORY: Self = Self {
        folder: c"/dev/shm",
        access: &[(1 << 16) - 1, (1 << 15) - 1, (1 << 14) - 1, (1 << 13) - 1],
    };

    /// Execute, read, list: bits 0, 2 and 3.
    pub(crate) const NUMBERS: Self = Self {
        folder: c"/proc",
        access: &[0b1101, 0b1100],
    };

    /// Allows it in a ruleset that is not in force yet. Runs in the child.
    #[expect(
        unsafe_code,
        reason = "system calls between fork and exec, where only raw calls are allowed"
    )]
    pub(crate) fn allow(self, ruleset: libc::c_int) -> std::io::Result<()> {
        /// `struct landlock_path_beneath_attr` of `linux/landlock.h`.
        #[repr(C, packed)]
        struct Beneath {
            access: u64,
            folder: libc::c_int,
        }
        /// `LANDLOCK_RULE_PATH_BENEATH`.
        const BENEATH: libc::c_int = 1;
        let flags = libc::O_PATH | libc::O_CLOEXEC;
        // SAFETY: raw calls on literals and on a local of the size that the kernel reads.
        unsafe {
            let folder = libc::open(self.folder.as_ptr(), flags);
            if folder == -1 {
                return Err(std::io::Error::last_os_error());
            }
            for access in self.access {
                let access = *access;
                let rule = Beneath { access, folder };
                let answer = libc::syscall(
                    libc::SYS_landlock_add_rule,
                    ruleset,
                    BENEATH,
                    &raw const rule,
                    0_u32,
                );
                if answer == 0 {
                    libc::close(folder);
                    return Ok(());
                }
            }
            Err(std::io::Error::last_os_error())
        }
    }
}
