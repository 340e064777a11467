//! Forged questions, and more of them than can be answered.

use outrigger_executors::{Executor, Step, Task};

use super::fixtures::read;

fn asks(request: &str, command: &str) -> String {
    format!(
        r#"{{"type":"control_request","request_id":"{request}","request":{{"subtype":"hook_callback","tool_use_id":"t","input":{{"tool_name":"Bash","tool_input":{{"command":"{command}"}}}}}}}}"#
    )
}

/// A second question with the number of an open one would get the answer to the first.
#[test]
fn a_second_question_of_the_same_number_is_not_asked() {
    let codex = |command: &str| {
        format!(
            r#"{{"id":7,"method":"item/commandExecution/requestApproval","params":{{"itemId":"i","command":"{command}"}}}}"#
        )
    };
    let acp = |command: &str| {
        format!(
            r#"{{"id":7,"method":"session/request_permission","params":{{"toolCall":{{"toolCallId":"i","kind":"execute","rawInput":{{"command":"{command}"}}}},"options":[]}}}}"#
        )
    };
    for (executor, first, second) in [
        ("claude", asks("r", "ls"), asks("r", "rm x")),
        ("codex", codex("ls"), codex("rm x")),
        ("acp:x", acp("ls"), acp("rm x")),
    ] {
        let executor: Executor = executor.parse().unwrap();
        let mut protocol = executor.protocol(Task::default());
        let asked = |steps: Vec<Step>| steps.iter().any(|it| matches!(it, Step::Ask(_)));
        assert!(asked(protocol.line(&first, 1)), "{executor}");
        let steps = protocol.line(&second, 2);
        assert!(
            steps.iter().all(|it| matches!(it, Step::Say(_))),
            "{executor}: {steps:?}"
        );
    }
}

/// The question includes the folder that a command runs in.
#[test]
fn a_command_elsewhere_says_where() {
    let line = r#"{"id":7,"method":"item/commandExecution/requestApproval","params":{"itemId":"i","command":"/bin/bash -lc 'make'","cwd":"/elsewhere"}}"#;
    let shown = read("codex", line, "-").messages;
    assert!(
        shown.contains(r#"asks bash {"command":"make","workdir":"/elsewhere"}"#),
        "{shown}"
    );
}

/// A change that cannot be expressed as a patch is refused, and a changed change is asked about in
/// its new form.
#[test]
fn a_change_is_asked_about_whole_or_refused() {
    let change = |diff: &str| {
        format!(
            r#"[{{"path":"/project/a","kind":{{"type":"update","move_path":null}},"diff":"{diff}"}}]"#
        )
    };
    let started = |changes: &str| {
        format!(
            r#"{{"method":"item/started","params":{{"item":{{"type":"fileChange","id":"i","changes":{changes}}}}}}}"#
        )
    };
    let updated = |changes: &str| {
        format!(
            r#"{{"method":"item/fileChange/patchUpdated","params":{{"itemId":"i","changes":{changes}}}}}"#
        )
    };
    let ask =
        r#"{"id":7,"method":"item/fileChange/requestApproval","params":{"itemId":"i"}}"#.to_owned();
    let cut = started(&change(r"@@ -1 +1 @@\n *** End Patch\n-a\n+b\n"));
    let outcome = read("codex", &[cut, ask.clone()].join("\n"), "-");
    assert!(!outcome.messages.contains("asks"), "{}", outcome.messages);
    assert!(outcome.sent.join("\n").contains(r#""decision":"decline""#));
    let lines = [
        started(&change(r"@@ -1 +1 @@\n-a\n+b\n")),
        updated(&change(r"@@ -1 +1 @@\n-a\n+other\n")),
        ask,
    ];
    let shown = read("codex", &lines.join("\n"), "-").messages;
    assert!(shown.contains(r"@@\n-a\n+other\n*** End Patch"), "{shown}");
}

/// A result without a known call counts as not asked about.
#[test]
fn a_result_without_a_call_is_unasked() {
    let line = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}}"#;
    let executor: Executor = "claude".parse().unwrap();
    let mut steps = executor.protocol(Task::default()).line(line, 1);
    let Some(Step::Say(said)) = steps.pop() else {
        panic!("{steps:?}");
    };
    assert_eq!(said.facts["executor"]["unasked"], true);
}
