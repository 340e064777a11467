//! The tag that identifies a process tree, whatever becomes of its parents, groups and sessions.

/// The resource limit that carries the tag. `RLIMIT_LOCKS` has had no meaning since Linux 2.4.25, is inherited by
/// every child, can be read from outside, and can be lowered but not raised. So a daemon that left its group, session
/// and parent is still recognised as ours.
pub(crate) const RESOURCE: libc::__rlimit_resource_t = libc::RLIMIT_LOCKS;
/// The range of tags; no real lock limit has such a size.
pub(crate) const RANGE: std::ops::Range<u64> = (1 << 40)..(1 << 62);

/// The bit of a tag that says that the tree is a command's: nothing that the user's settings name is expected there.
const COMMAND: u64 = 1;

/// Returns a new tag for a process tree, below the host's own limit (which is also a tag if we run inside ourselves);
/// `None` if there is no room below.
pub(crate) fn fresh(is_command: bool) -> Option<u64> {
    use std::hash::{BuildHasher as _, RandomState};
    let top = limit(0)?.min(RANGE.end);
    let span = top
        .checked_sub(RANGE.start)
        .filter(|span| *span > 1 << 20)?;
    // Each RandomState has its own keys, seeded by the system: the tag must be unique, not secret.
    let random = RandomState::new().hash_one(std::process::id());
    // Below the limit with the bit, too.
    let tag = (RANGE.start + random % (span - 1)) & !COMMAND;
    Some(tag | u64::from(is_command))
}

/// Returns whether a process belongs to a command of an Outrigger of this user that is not ours: one that we run in is not.
pub(crate) fn is_of_command(pid: u32) -> bool {
    let own = limit(0).unwrap_or(0);
    of(pid).is_some_and(|tag| tag & COMMAND != 0 && tag < own)
}

/// Returns the tag of a process, if it has one.
pub(crate) fn of(pid: u32) -> Option<u64> {
    limit(pid).filter(|tag| RANGE.contains(tag))
}

/// Returns the hard limit of the tag's resource; 0 means the host itself.
#[expect(
    unsafe_code,
    reason = "reading another process's limit has no safe wrapper"
)]
fn limit(pid: u32) -> Option<u64> {
    let pid = libc::pid_t::try_from(pid).ok()?;
    let mut now = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: a null new limit only reads; the old one is a local.
    let answer = unsafe { libc::prlimit(pid, RESOURCE, std::ptr::null(), &raw mut now) };
    (answer == 0).then_some(now.rlim_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_differ_and_lie_below_the_own_limit() {
        let own = limit(0).unwrap();
        let tags: Vec<u64> = (0..100).filter_map(|n| fresh(n % 2 == 1)).collect();
        // If nested too deeply, there is no tag, which is also correct.
        assert!(tags.len() == 100 || tags.is_empty());
        assert!(tags.iter().all(|tag| RANGE.contains(tag) && *tag < own));
        let marked = |(n, tag): (usize, &u64)| (tag & COMMAND == 1) == (n % 2 == 1);
        assert!(tags.iter().enumerate().all(marked));
        assert_eq!(
            tags.iter().collect::<std::collections::HashSet<_>>().len(),
            tags.len()
        );
    }
}
