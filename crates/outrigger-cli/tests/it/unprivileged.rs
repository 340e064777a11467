//! The attempts of docs/bypass/attempts.toml that need the whole program, repeated as an unprivileged user if the tests run as root.

use outrigger_test_support::unprivileged::{Again, attempts};

use crate::support::*;

/// Files whose attempts are about rules, grants and texts alone. The system's user decides nothing there, and each attempt starts
/// the program and its plugins.
const OF_NO_USER: &[&str] = &[
    "acp",
    "budget",
    "compact_asked",
    "contracts",
    "custom_points",
    "executors",
    "fail_closed",
    "guard_absent",
    "hooks",
    "keys",
    "login",
    "login_built_in",
    "mcp",
    "mcp_sampling",
    "mcp_serve",
    "model_settings",
    "permission",
    "pinned_rules",
    "plugin_prompts",
    "plugin_provider",
    "plugin_rules",
    "plugin_storage",
    "plugin_subtasks",
    "provenance",
    "question",
    "question_display",
    "replaced_tools",
    "rewrite_grant",
    "serve_folders",
    "subplugins",
    "telegram",
    "terminal",
    "tools_declared",
];

/// Attempts in these files that the system decides all the same.
const OF_THE_SYSTEM: &[&str] = &["executors::its_streams_are_not_opened_by_what_it_starts"];

#[test]
fn what_is_refused_is_refused_for_a_user_without_rights() {
    let all = attempts("crates/outrigger-cli/tests/it/");
    let file = |test: &str| test.split("::").next().unwrap_or_default().to_owned();
    for name in OF_NO_USER {
        assert!(
            all.iter().any(|test| file(test) == *name),
            "no attempt is in {name}.rs"
        );
    }
    for test in OF_THE_SYSTEM {
        assert!(all.contains(*test), "{test} is not an attempt");
    }
    let tests = all.into_iter().filter(|test| {
        !OF_NO_USER.contains(&&*file(test)) || OF_THE_SYSTEM.contains(&test.as_str())
    });
    // In a new clone no other test has created it yet, and that user may not.
    crate::npm::kept("xdg");
    let program = outrigger().into();
    Again::of(tests.collect())
        .together()
        .with([program].into_iter().chain(bun()))
        .run();
}
