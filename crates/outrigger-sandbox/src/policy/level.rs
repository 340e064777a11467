//! How much of a policy the running kernel enforces.

use super::Policy;
use crate::namespaces::support;
use crate::seccomp::{calls, connects};

/// The first version that restricts `truncate`, so that "no write" is true.
const FILES_ABI: u32 = 3;
/// The first version with TCP rules.
const TCP_ABI: u32 = 4;

/// How much of a [`Policy`] is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing: the kernel has no Landlock, or it is switched off.
    None,
    /// Some rules: the system lacks what the policy needs for the rest.
    Partial,
    /// Every rule.
    Full,
}

impl Level {
    /// Returns the level as a word. A sandbox that allows everything (`tools.sandbox = "full"`) is
    /// a different matter.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Partial => "partial",
            Self::Full => "enforced",
        }
    }
}

impl Policy {
    /// Returns how much of this policy the running kernel enforces.
    #[must_use]
    pub fn level(&self) -> Level {
        let views = support::has_views();
        let filters = calls::is_possible();
        let addresses = !self.is_asked_about() || connects::is_possible();
        match self.level_for(kernel_abi()) {
            Level::None if self.rules_tcp() && addresses => Level::Partial,
            Level::Full if !(views && filters && addresses) => Level::Partial,
            level => level,
        }
    }

    /// Returns how much of its Landlock rules a kernel with this version (0: none) enforces.
    pub(crate) fn level_for(&self, abi: u32) -> Level {
        let needed = if self.rules_tcp() { TCP_ABI } else { FILES_ABI };
        match abi {
            0 => Level::None,
            abi if abi < needed => Level::Partial,
            _ => Level::Full,
        }
    }
}

/// Returns the Landlock version of the running kernel, 0 if it has none.
#[expect(
    unsafe_code,
    reason = "landlock_create_ruleset has no wrapper that answers the version"
)]
pub(crate) fn kernel_abi() -> u32 {
    const CREATE_RULESET_VERSION: libc::c_uint = 1;
    // SAFETY: with this flag and a null attribute of size 0 the call only answers a number.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            CREATE_RULESET_VERSION,
        )
    };
    u32::try_from(answer).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_by_kernel_and_rules() {
        let files = Policy::system();
        let tcp = Policy {
            bind_tcp: Some(vec![0]),
            ..Policy::default()
        };
        let cases = [
            (&files, 0, Level::None),
            (&files, 2, Level::Partial),
            (&files, 3, Level::Full),
            (&tcp, 0, Level::None),
            (&tcp, 3, Level::Partial),
            (&tcp, 4, Level::Full),
        ];
        for (policy, abi, expected) in cases {
            assert_eq!(policy.level_for(abi), expected, "{policy:?} at {abi}");
        }
    }
}
