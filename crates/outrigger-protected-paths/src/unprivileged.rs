//! The attempts of docs/bypass/attempts.toml on these files once more for a user without rights, where the tests run as root.

use outrigger_test_support::unprivileged::{Again, attempts};

#[test]
fn what_is_refused_is_refused_for_a_user_without_rights() {
    Again::of(attempts("crates/outrigger-protected-paths/src/")).run();
}
