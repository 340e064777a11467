//! Interpretation of commands' exit codes and answers, by table.

use outrigger_sandbox::Exit;
use serde_json::json;

use super::*;

fn output(code: i32, stdout: &str, stderr: &str) -> Output {
    Output {
        exit: Exit {
            code: Some(code),
            signal: None,
        },
        stdout: stdout.into(),
        stderr: stderr.into(),
        stdout_total: stdout.len() as u64,
        stderr_total: stderr.len() as u64,
        truncated: false,
        timed_out: false,
    }
}

fn of(event: HookEvent, code: i32, stdout: &str, stderr: &str) -> Answer {
    read(event, "c", &output(code, stdout, stderr), 60_000)
}

#[test]
fn exit_codes_by_event() {
    use HookEvent::{Notification, PostToolUse, PreToolUse, SessionStart, Stop, UserPromptSubmit};
    for (event, code, stdout, stderr, refuses, reason, context, failure) in [
        (PreToolUse, 0, "hello", "", false, None, "", ""),
        (PreToolUse, 2, "", "no", true, Some("no"), "", ""),
        (
            PreToolUse,
            2,
            "",
            "",
            true,
            Some("`c` refuses and does not say why"),
            "",
            "",
        ),
        (
            PreToolUse,
            1,
            "",
            "oops",
            false,
            None,
            "",
            "`c` ended with code 1: oops",
        ),
        (
            PreToolUse,
            127,
            "",
            "",
            false,
            None,
            "",
            "`c` ended with code 127: ",
        ),
        (PostToolUse, 2, "", "lint", true, Some("lint"), "", ""),
        (UserPromptSubmit, 0, " more \n", "", false, None, "more", ""),
        (UserPromptSubmit, 0, "[1]", "", false, None, "[1]", ""),
        (
            UserPromptSubmit,
            0,
            "{main} 3 files",
            "",
            false,
            None,
            "{main} 3 files",
            "",
        ),
        (
            UserPromptSubmit,
            1,
            r#"{"decision": "block", "reason": "r"}"#,
            "x",
            true,
            Some("r"),
            "",
            "",
        ),
        (
            UserPromptSubmit,
            2,
            r#"{"decision": "block", "reason": "r"}"#,
            "x",
            true,
            Some("r"),
            "",
            "",
        ),
        (
            UserPromptSubmit,
            2,
            r#"{"systemMessage": "m"}"#,
            "x",
            true,
            Some("x"),
            "",
            "",
        ),
        (
            UserPromptSubmit,
            1,
            r#"{"decision""#,
            "x",
            false,
            None,
            "",
            "`c` ended with code 1: x",
        ),
        (SessionStart, 0, "more", "", false, None, "more", ""),
        (
            SessionStart,
            2,
            "",
            "x",
            false,
            None,
            "",
            "`c` refuses, which SessionStart does not allow: x",
        ),
        (Notification, 0, "x", "", false, None, "", ""),
        (Stop, 2, "", "go on", true, Some("go on"), "", ""),
        (
            Stop,
            0,
            "{x",
            "",
            false,
            None,
            "",
            "`c` wrote what looks like JSON and is not: key must be a string at line 1 column 2",
        ),
    ] {
        let answer = of(event, code, stdout, stderr);
        let name = event.name();
        assert_eq!(answer.refuses, refuses, "{name} {code}");
        assert_eq!(answer.reason.as_deref(), reason, "{name} {code}");
        assert_eq!(answer.context.join("|"), context, "{name} {code}");
        assert_eq!(answer.failures.join("|"), failure, "{name} {code}");
    }
}

#[test]
fn objects_by_event() {
    use HookEvent::{
        PermissionRequest, PostToolUse, PreToolUse, SessionStart, Stop, UserPromptSubmit,
    };
    let specific = |value: Value| json!({"hookSpecificOutput": value});
    let with = |change: &dyn Fn(&mut Answer)| {
        let mut answer = Answer::default();
        change(&mut answer);
        answer
    };
    for (event, object, want) in [
        (
            PreToolUse,
            specific(json!({"permissionDecision": "allow", "updatedInput": {"command": "ls"}})),
            with(&|a| {
                a.permission = Some(Permission::Allow);
                a.updated = Some(json!({"command": "ls"}));
            }),
        ),
        (
            PreToolUse,
            specific(json!({"permissionDecision": "allow", "updatedInput": "ls"})),
            with(&|a| {
                a.failures.push(
                    "`c` answers with an `updatedInput` that is not an object: the call stays as it is, and is not allowed by it"
                        .into(),
                );
            }),
        ),
        (
            PreToolUse,
            specific(json!({"permissionDecision": "deny", "permissionDecisionReason": "r"})),
            with(&|a| {
                a.permission = Some(Permission::Deny);
                a.refuses = true;
                a.reason = Some("r".into());
            }),
        ),
        (
            PreToolUse,
            json!({"decision": "block"}),
            with(&|a| {
                a.permission = Some(Permission::Deny);
                a.refuses = true;
                a.reason = Some("a hook denies this call".into());
            }),
        ),
        (
            PreToolUse,
            json!({"decision": "approve", "reason": "fine"}),
            with(&|a| {
                a.permission = Some(Permission::Allow);
                a.reason = Some("fine".into());
            }),
        ),
        (
            PreToolUse,
            specific(json!({"permissionDecision": "ask"})),
            with(&|a| a.permission = Some(Permission::Ask)),
        ),
        (
            PostToolUse,
            json!({"decision": "block", "reason": "r", "hookSpecificOutput": {"additionalContext": "c"}}),
            with(&|a| {
                a.refuses = true;
                a.reason = Some("r".into());
                a.context = vec!["c".into()];
            }),
        ),
        (
            UserPromptSubmit,
            json!({"continue": false, "stopReason": "s", "systemMessage": "m"}),
            with(&|a| {
                a.stop = Some("s".into());
                a.messages = vec!["m".into()];
            }),
        ),
        (
            Stop,
            json!({"decision": "block", "reason": "more"}),
            with(&|a| {
                a.refuses = true;
                a.reason = Some("more".into());
            }),
        ),
        (
            Stop,
            json!({"decision": "approve", "suppressOutput": true}),
            Answer::default(),
        ),
        (
            PostToolUse,
            json!({"hookSpecificOutput": {"updatedToolOutput": {"stdout": "x"}}}),
            with(&|a| a.replaced = Some(json!({"stdout": "x"}))),
        ),
        (
            PostToolUse,
            json!({"hookSpecificOutput": {"updatedMCPToolOutput": "x"}}),
            with(&|a| a.replaced = Some(json!("x"))),
        ),
        (
            Stop,
            json!({"hookSpecificOutput": {"additionalContext": "more"}}),
            with(&|a| a.context = vec!["more".into()]),
        ),
        (
            PermissionRequest,
            json!({"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "no", "interrupt": true}}}),
            with(&|a| {
                a.permission = Some(Permission::Deny);
                a.refuses = true;
                a.reason = Some("no".into());
                a.stop = Some("no".into());
                a.messages = vec!["no".into()];
            }),
        ),
        (
            PermissionRequest,
            json!({"hookSpecificOutput": {"decision": {"behavior": "allow", "updatedInput": {}}}}),
            with(&|a| {
                a.failures = vec![
                    "`c` allows the call with another input, which PermissionRequest cannot change here: the question stays"
                        .into(),
                ];
                a.ignored = vec![
                    "`c` answers with `updatedInput`, which has no effect at PermissionRequest"
                        .into(),
                ];
            }),
        ),
        (
            SessionStart,
            json!({"decision": "block", "hookSpecificOutput": {"sessionTitle": "t"}}),
            with(&|a| {
                a.ignored = ["decision", "sessionTitle"]
                    .map(|key| {
                        format!("`c` answers with `{key}`, which has no effect at SessionStart")
                    })
                    .to_vec();
            }),
        ),
    ] {
        assert_eq!(of(event, 0, &object.to_string(), ""), want, "{object}");
    }
}

#[test]
fn too_much_output_is_reported() {
    // It may be a denial that repeats what it denies: where it could refuse, that is refused.
    for (code, event, refuses) in [
        (0, HookEvent::PreToolUse, true),
        (1, HookEvent::PreToolUse, true),
        (0, HookEvent::PermissionRequest, true),
        (0, HookEvent::PostToolUse, false),
    ] {
        let mut long = output(
            code,
            &format!("{{\"a\":\"{}", "x".repeat(MAX_OUTPUT - 6)),
            "",
        );
        long.stdout_total = 1 << 30;
        let answer = read(event, "c", &long, 1);
        assert!(answer.failures[0].contains("262144 is the limit"));
        assert_eq!(answer.refuses, refuses, "{code}");
    }
    let text = "\u{e9}".repeat(MAX_CONTEXT);
    let answer = of(HookEvent::SessionStart, 0, &text, "");
    assert!(answer.context[0].ends_with("(cut at 32768 bytes)"));
    assert!(answer.failures[0].contains("32768 is the limit"));
}

#[test]
fn the_stronger_answer_wins_whatever_the_order() {
    let with = |permission, reason: &str| Answer {
        permission: Some(permission),
        refuses: permission == Permission::Deny,
        reason: Some(reason.into()),
        ..Answer::default()
    };
    let all = [
        with(Permission::Allow, "a"),
        with(Permission::Deny, "d"),
        with(Permission::Ask, "q"),
    ];
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let mut merged = Answer::default();
        for index in order {
            merged.merge(all[index].clone());
        }
        assert_eq!(merged.permission, Some(Permission::Deny), "{order:?}");
        assert_eq!(merged.reason.as_deref(), Some("d"), "{order:?}");
    }
}

/// A guard that denies in another form than the one that is read is not passed over: it may have meant a denial.
#[test]
fn values_that_mean_nothing() {
    use HookEvent::{PermissionRequest, PreCompact, PreToolUse, Stop, UserPromptSubmit};
    let specific = |value: Value| json!({ "hookSpecificOutput": value });
    let call = "one of allow, approve, ask, defer, deny, block";
    let objection = "one of block, approve, allow";
    for (event, object, refuses, why) in [
        (
            PreToolUse,
            specific(json!({"permissionDecision": "DENY"})),
            true,
            format!(r#""DENY" as `permissionDecision`, which has to be {call}"#),
        ),
        (
            PreToolUse,
            json!({"decision": "Block", "reason": "no"}),
            true,
            format!(r#""Block" as `decision`, which has to be {call}"#),
        ),
        (
            PreToolUse,
            json!({"decision": {"behavior": "deny"}}),
            true,
            format!(r#"{{"behavior":"deny"}} as `decision`, which has to be {call}"#),
        ),
        (
            PreToolUse,
            specific(json!("deny")),
            true,
            r#""deny" as `hookSpecificOutput`, which has to be an object"#.to_owned(),
        ),
        (
            PreToolUse,
            specific(json!([])),
            true,
            "[] as `hookSpecificOutput`, which has to be an object".to_owned(),
        ),
        (
            PreToolUse,
            json!({"continue": "false"}),
            true,
            r#""false" as `continue`, which has to be true or false"#.to_owned(),
        ),
        (
            UserPromptSubmit,
            json!({"decision": "deny"}),
            true,
            format!(r#""deny" as `decision`, which has to be {objection}"#),
        ),
        (
            PreCompact,
            json!({"decision": true}),
            true,
            format!("true as `decision`, which has to be {objection}"),
        ),
        (
            PermissionRequest,
            specific(json!({"decision": {"behavior": "DENY"}})),
            false,
            r#""DENY" as `behavior`, which has to be one of allow, deny, ask"#.to_owned(),
        ),
        (
            PermissionRequest,
            specific(json!({"decision": "deny"})),
            false,
            r#""deny" as `decision`, which has to be an object"#.to_owned(),
        ),
        (
            Stop,
            json!({"decision": "Block"}),
            false,
            format!(r#""Block" as `decision`, which has to be {objection}"#),
        ),
    ] {
        let answer = of(event, 0, &object.to_string(), "");
        let name = event.name();
        assert_eq!(answer.refuses, refuses, "{name} {object}");
        assert_eq!(
            answer.failures,
            [format!("`c` answers with {why}")],
            "{name}"
        );
        let of_call = event == PreToolUse;
        let denied = of_call.then_some(Permission::Deny);
        assert_eq!(answer.permission, denied, "{name} {object}");
    }
    // The mark in front of what PowerShell writes is not part of it, and null says nothing.
    let denial = specific(json!({"permissionDecision": "deny", "permissionDecisionReason": "r"}));
    for code in [0, 1, 2] {
        let answer = of(PreToolUse, code, &format!("\u{feff}{denial}\r\n"), "");
        assert_eq!(answer.reason.as_deref(), Some("r"), "{code}");
        assert_eq!(answer.permission, Some(Permission::Deny), "{code}");
    }
    let nothing = json!({"decision": null, "continue": null, "hookSpecificOutput": null});
    assert_eq!(
        of(PreToolUse, 0, &nothing.to_string(), ""),
        Answer::default()
    );
}
