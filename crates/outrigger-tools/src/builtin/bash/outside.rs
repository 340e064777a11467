//! Guesses whether a command failed because of its sandbox. The only evidence is what a program prints, so this offers a retry too often
//! rather than too rarely; the user decides.

use outrigger_sandbox::{Exit, Policy};

/// Messages that programs print when the sandbox refuses something, and what was refused.
const SIGNS: [(&str, &str); 14] = [
    ("could not write config file", GIT),
    ("could not lock config file", GIT),
    ("Read-only file system", FILES),
    ("EROFS", FILES),
    ("Device or resource busy", FILES),
    ("EBUSY", FILES),
    ("Permission denied (publickey", KEYS),
    ("Host key verification failed", KEYS),
    ("Permission denied", ANYTHING),
    ("EACCES", ANYTHING),
    ("Operation not permitted", ANYTHING),
    ("EPERM", ANYTHING),
    ("Function not implemented", CALLS),
    ("ENOSYS", CALLS),
];
const GIT: &str = "commands do not change settings of git (`git config`, `remote add`, `push -u`), which say what git runs";
const FILES: &str = "commands change the project, caches and $TMPDIR only";
const KEYS: &str = "keys in the home folder are hidden from commands";
const ANYTHING: &str = "a file, a socket or a service of this machine may be kept from commands";
const CALLS: &str = "a system call is not there for commands";

/// Returns the likely reason; `None` if it succeeded, may do everything, or nothing indicates the sandbox.
pub(super) fn reason(
    policy: Option<&Policy>,
    exit: Option<Exit>,
    printed: &str,
) -> Option<&'static str> {
    let failed = exit.is_some_and(|exit| exit.code.is_some_and(|code| code != 0));
    let is_sandboxed = policy.is_some_and(|policy| !policy.is_open());
    SIGNS
        .iter()
        .find(|(sign, _)| printed.contains(sign))
        .filter(|_| failed && is_sandboxed)
        .map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_seems_to_be_the_sandboxs() {
        let code = |code| {
            Some(Exit {
                code: Some(code),
                signal: None,
            })
        };
        let (sandboxed, open) = (Policy::system(), Policy::open());
        for (policy, exit, printed, want) in [
            (
                &sandboxed,
                code(1),
                "touch: /x: Read-only file system",
                Some(FILES),
            ),
            (
                &sandboxed,
                code(128),
                "git@x: Permission denied (publickey).",
                Some(KEYS),
            ),
            (
                &sandboxed,
                code(4),
                "error: could not write config file .git/config: Device or resource busy",
                Some(GIT),
            ),
            (
                &sandboxed,
                code(1),
                "Error: EACCES, open 'x'",
                Some(ANYTHING),
            ),
            (&sandboxed, code(0), "Read-only file system", None),
            (&sandboxed, code(1), "no such file", None),
            (&sandboxed, None, "Read-only file system", None),
            (&open, code(1), "Read-only file system", None),
        ] {
            assert_eq!(reason(Some(policy), exit, printed), want, "{printed}");
        }
        assert_eq!(reason(None, code(1), "EROFS"), None);
    }
}
