//! The attempts of docs/bypass/attempts.toml that need the whole program, repeated as an unprivileged user if the tests run as root.

use outrigger_test_support::unprivileged::{Again, attempts};

use crate::support::*;

#[test]
fn what_is_refused_is_refused_for_a_user_without_rights() {
    // In a new clone no other test has created it yet, and that user may not.
    crate::npm::kept("xdg");
    let program = outrigger().into();
    Again::of(attempts("crates/outrigger-cli/tests/it/"))
        .together()
        .with([program].into_iter().chain(bun()))
        .run();
}
