//! What the host sets for its own process.

/// Keeps other processes of this user from inspecting the host: its memory, environment and open files contain keys, and `/proc` must stay
/// readable in a sandbox (Bun does not start without it). It also prevents core dumps and debuggers.
pub fn hide_host() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "other processes of this user can look into this one");
    }
}

/// A host that was itself started with SIGCHLD ignored would lose its children's exit codes: the kernel reaps them.
#[expect(
    unsafe_code,
    reason = "reading and setting a signal's disposition has no safe wrapper"
)]
pub(crate) fn restore_child_signal() {
    // SAFETY: a null new action only reads into a local, for which zero is a valid value; SIG_DFL runs no handler.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGCHLD, std::ptr::null(), &raw mut now) == 0
            && now.sa_sigaction == libc::SIG_IGN
        {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}
