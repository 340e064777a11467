//! The rules once more, for a user without rights: where the tests run as root, the rows of docs/bypass.md that the system
//! enforces are tried as both.

use super::{helper, output};

const TESTS: &[&str] = &[
    "calls::what_connects_in_another_way_is_refused_where_connections_are_ruled",
    "calls::what_gets_around_the_rules_is_refused",
    "confine::a_confined_process_cannot_gain_privileges",
    "confine::files",
    "confine::programs",
    "confine::tcp",
    "loopback::metadata_services_are_not_reached",
    "loopback::services_of_others_are_not_reached",
    "loopback::services_of_the_session_are_reached",
    "loopback::unix_sockets_of_the_session_are_reached_and_no_others",
    "namespace::a_sandboxed_process_sees_its_own_processes_only",
    "namespace::its_end_is_reported_as_it_was",
    "namespace::nothing_outlives_a_killed_host",
    "namespace::nothing_outlives_its_command",
    "cross_process::a_sandboxed_process_reaches_none_outside",
    "cross_process::a_sandboxed_process_rules_its_own",
    "view::marks_of_files_are_changed_where_files_may_be_written",
];

#[tokio::test]
async fn the_rules_hold_for_a_user_without_rights() {
    for test in TESTS {
        let Some(spec) = helper::as_plain_user(test) else {
            return println!(
                "skipped: this is a user without rights, or the tests' folder is root's alone"
            );
        };
        let output = output(spec).await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.exit.success(), "{test}: {said}{errors}");
        assert!(said.contains("1 passed"), "{test}: {said}");
    }
}
