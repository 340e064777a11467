//! The default of OpenCode's `username`.

use std::collections::BTreeMap;

/// Returns the user of this process by the system's list of users, else `USER` or `LOGNAME`, else `user`.
pub(crate) fn of_process(env: &BTreeMap<String, String>) -> String {
    let from_env = || {
        ["USER", "LOGNAME"]
            .iter()
            .find_map(|name| env.get(*name).filter(|value| !value.is_empty()).cloned())
    };
    from_passwd()
        .or_else(from_env)
        .unwrap_or_else(|| "user".into())
}

#[cfg(target_os = "linux")]
fn from_passwd() -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    // The owner of our own /proc entry is our user, without a call that would need unsafe code.
    let uid = std::fs::metadata("/proc/self").ok()?.uid();
    by_uid(&std::fs::read_to_string("/etc/passwd").ok()?, uid)
}

#[cfg(not(target_os = "linux"))]
fn from_passwd() -> Option<String> {
    None
}

/// Parses `name:password:uid:…`.
#[cfg(any(target_os = "linux", test))]
fn by_uid(passwd: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    passwd
        .lines()
        .map(|line| line.split(':'))
        .find_map(|mut fields| {
            let name = fields.next().filter(|name| !name.is_empty())?;
            (fields.nth(1)? == uid).then(|| name.to_owned())
        })
}

#[cfg(test)]
mod tests {
    #[test]
    fn finds_the_user() {
        let passwd = "root:x:0:0::/root:/bin/sh\n:x:7:\nbad\na:x:1000:1000::/home/a:/bin/sh\n";
        assert_eq!(super::by_uid(passwd, 1000).as_deref(), Some("a"));
        assert_eq!(super::by_uid(passwd, 0).as_deref(), Some("root"));
        assert_eq!(super::by_uid(passwd, 7), None);
    }
}
