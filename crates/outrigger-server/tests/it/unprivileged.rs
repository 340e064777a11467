//! The attempts of docs/bypass/attempts.toml that reach the system through the router, repeated as an unprivileged user if the tests
//! run as root.

use outrigger_test_support::unprivileged::{Again, attempts};

use crate::access_matrix::FEW;

/// Attempts on the door and on rules alone, which do not depend on the system's user.
const OF_NO_USER: &[&str] = &[
    "question::always_lifts_no_deny",
    "strangers::a_client_does_not_wait_behind_slow_strangers",
    "strangers::a_stranger_does_not_stay_and_a_client_does",
    "strangers::a_stranger_sends_no_more_than_a_head",
    "subagents::a_subagent_has_no_more_than_the_agent_that_calls_it",
    "subagents::a_task_that_another_agent_goes_on_with_has_that_ones_limits",
];

#[test]
fn what_is_refused_is_refused_for_a_user_without_rights() {
    let mut tests = attempts("crates/outrigger-server/tests/it/");
    for test in OF_NO_USER {
        assert!(tests.remove(*test), "{test} is not an attempt");
    }
    // Every kind of rule, place and probe is tried; all forms, and the full number of rounds, are tried as root.
    Again::of(tests).var(FEW, "1").run();
}
