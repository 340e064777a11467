//! Runs the attempts of docs/bypass/attempts.toml on the plugin host again for a user without privileges, if the tests run as
//! root.

use outrigger_test_support::unprivileged::{Again, attempts};

#[test]
fn what_is_refused_is_refused_for_a_user_without_rights() {
    Again::of(attempts("crates/outrigger-plugins/tests/it/"))
        .with(outrigger_test_support::bun())
        .run();
}
