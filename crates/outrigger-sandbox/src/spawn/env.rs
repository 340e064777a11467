//! The environment of plugin and tool server processes.

use std::ffi::{OsStr, OsString};

use outrigger_kernel::guard::runs_other_code;

use crate::fs::host_path;

/// Variables that are passed on. A trailing `*` matches any rest.
const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TZ",
    "TMPDIR",
    "XDG_*",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Returns the variables of the host's environment that a process may get, sorted by name.
///
/// These are the harmless ones (path, home, user, locale, terminal, time zone, XDG folders, certificate stores) and
/// those named in `extra`, where a trailing `*` matches any rest. Proxies are not included, since they carry
/// passwords: name `HTTPS_PROXY` in `extra` if a plugin was granted them. Variables that make a program load other
/// code (`NODE_OPTIONS`, `BUN_OPTIONS`, `LD_PRELOAD` and the like) are omitted even if `extra` names them.
#[must_use]
pub fn allow_list(extra: &[&str]) -> Vec<(OsString, OsString)> {
    allow_list_of(std::env::vars_os(), extra)
}

/// Like [`allow_list`], for what the host starts for itself: `PATH` excludes the folders that sandboxed processes
/// write to ([`host_path`]). Reads the disk.
#[must_use]
pub fn of_host(extra: &[&str]) -> Vec<(OsString, OsString)> {
    let mut kept = allow_list(extra);
    for (_, value) in kept.iter_mut().filter(|(name, _)| name == "PATH") {
        *value = host_path::without(value);
    }
    kept
}

/// Like [`allow_list`], from a given environment instead of the host's.
pub fn allow_list_of(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    extra: &[&str],
) -> Vec<(OsString, OsString)> {
    let mut kept: Vec<_> = environment
        .into_iter()
        .filter(|(name, _)| is_any(name, ALLOWED) || is_any(name, extra))
        .filter(|(name, _)| !is_forbidden(name))
        .collect();
    kept.sort();
    kept
}

/// Returns whether a variable of this name is never passed to a plugin's process.
#[must_use]
pub fn is_forbidden(name: impl AsRef<OsStr>) -> bool {
    runs_other_code(&name.as_ref().to_string_lossy())
}

/// Returns whether a name matches one of the patterns, in which a trailing `*` matches any rest.
#[must_use]
pub fn is_any(name: &OsStr, patterns: &[&str]) -> bool {
    let name = name.as_encoded_bytes();
    patterns
        .iter()
        .any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start.as_bytes()),
            None => name == pattern.as_bytes(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_harmless_and_the_named_never_the_code_loaders() {
        let names = [
            "PATH",
            "HOME",
            "LC_ALL",
            "LC_CTYPE",
            "XDG_RUNTIME_DIR",
            "TZ",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "NODE_OPTIONS",
            "BUN_OPTIONS",
            "BASH_ENV",
            "ZDOTDIR",
            "ANTHROPIC_API_KEY",
            "HTTPS_PROXY",
            "MY_ONE",
            "MY_TWO",
            "LCX",
        ];
        let environment = || {
            names
                .iter()
                .map(|name| (OsString::from(name), OsString::from("x")))
        };
        let kept = |extra: &[&str]| {
            let names: Vec<_> = allow_list_of(environment(), extra)
                .into_iter()
                .map(|(n, _)| n.into_string().unwrap())
                .collect();
            names.join(" ")
        };
        let cases: [(&[&str], &str); 4] = [
            (&[], "HOME LC_ALL LC_CTYPE PATH TZ XDG_RUNTIME_DIR"),
            (
                &["MY_ONE", "HTTPS_PROXY"],
                "HOME HTTPS_PROXY LC_ALL LC_CTYPE MY_ONE PATH TZ XDG_RUNTIME_DIR",
            ),
            (
                &["MY_*", "NODE_OPTIONS"],
                "HOME LC_ALL LC_CTYPE MY_ONE MY_TWO PATH TZ XDG_RUNTIME_DIR",
            ),
            (
                &["*"],
                "ANTHROPIC_API_KEY HOME HTTPS_PROXY LCX LC_ALL LC_CTYPE MY_ONE MY_TWO PATH TZ XDG_RUNTIME_DIR",
            ),
        ];
        for (extra, expected) in cases {
            assert_eq!(kept(extra), expected, "{extra:?}");
        }
    }
}
