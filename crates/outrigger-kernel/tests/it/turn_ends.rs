//! Complete sequences of a turn that is refused, fails, is cancelled or reaches its limit.

use insta::assert_snapshot;
use outrigger_protocol::turn::{Begin, ModelSignal};

use crate::drive::{Drive, begin};

#[test]
fn a_hook_refuses_the_prompt() {
    let mut drive = Drive::new(begin());
    drive.block("not today");
    assert!(drive.is_done());
    assert_snapshot!(drive.seen(), @r"
    < begin
    session agent
    #1 hooks run.before_start
    < #1 blocks
    session.error HookBlockedError: not today
    idle
    session.idle
    finish: failed HookBlockedError: not today
    ");
}

/// C2: a block before the request is final, and nothing repeats it.
#[test]
fn a_hook_refuses_the_request() {
    for point in [
        "llm.before_messages",
        "llm.before_system",
        "llm.before_params",
        "llm.before_headers",
    ] {
        let mut drive = Drive::new(begin());
        drive.prepare_until(point);
        drive.seen();
        drive.block("not this");
        assert!(drive.is_done(), "{point}");
        let seen = drive.seen();
        let (_, then) = seen.split_once(" blocks\n").unwrap();
        insta::allow_duplicates! {
            assert_snapshot!(then, @r"
            session.error HookBlockedError: not this
            assistant error=HookBlockedError completed
            idle
            session.idle
            finish: failed HookBlockedError: not this
            ");
        }
    }
}

/// C5: a security-critical handler that fails at the text closes the turn, and the unchecked text is not stored.
#[test]
fn a_text_that_could_not_be_checked_is_not_stored() {
    let mut drive = Drive::asked(begin());
    drive.started();
    drive.model(ModelSignal::TextStart { index: 0 });
    drive.model(ModelSignal::TextEnd {
        index: 0,
        text: "secret".into(),
    });
    drive.block("the checker is down");
    drive.model_failed();
    assert!(drive.is_done());
    assert_snapshot!(drive.seen(), @r#"
    < #7 started
    part step-start
    < #7 text_start
    part text ""
    < #7 text_end
    #8 hooks llm.after_text
    < #8 blocks
    abort
    part text "" end
    < #7 failed
    session.error HookBlockedError: the checker is down
    assistant error=HookBlockedError completed
    idle
    session.idle
    finish: failed HookBlockedError: the checker is down
    "#);
}

#[test]
fn the_model_fails_before_it_says_anything() {
    let mut drive = Drive::asked(begin());
    drive.model_failed();
    assert!(drive.is_done());
    assert_snapshot!(drive.seen(), @r"
    < #7 failed
    session.error APIError: 500
    assistant error=APIError completed
    idle
    session.idle
    finish: failed APIError: 500
    ");
}

#[test]
fn the_model_fails_in_the_middle() {
    let mut drive = Drive::asked(begin());
    drive.started();
    drive.text(0, "Let me see.");
    drive.model(ModelSignal::TextStart { index: 1 });
    drive.call("c1", "bash", "{}");
    drive.tool_started("bash");
    drive.model(ModelSignal::ToolStart {
        call_id: "c2".into(),
        tool: "write".into(),
    });
    drive.model_failed();
    drive.tool_failed("bash", "tool.cancelled", "stopped");
    assert!(drive.is_done());
    assert_snapshot!(drive.seen(), @r#"
    < #7 started
    part step-start
    < #7 text_start
    part text ""
    < #7 text_end
    #8 hooks llm.after_text
    < #8 done
    part text "Let me see." end
    < #7 text_start
    part text ""
    < #7 tool_start
    part tool bash c1 pending
    < #7 tool_end
    #9 run bash c1 {}
    < #9 started
    part tool bash c1 running {}
    < #7 tool_start
    part tool write c2 pending
    < #7 failed
    abort
    < #9 failed tool.cancelled
    part tool bash c1 error {} "stopped"
    session.error APIError: 500
    part text "" end
    part tool write c2 error {} "Tool execution aborted"
    assistant error=APIError completed
    idle
    session.idle
    session diff
    finish: failed APIError: 500
    "#);
}

#[test]
fn the_user_refuses_a_permission() {
    let mut drive = Drive::asked(begin());
    drive.started();
    drive.call("c1", "bash", "{}");
    drive.call("c2", "read", "{}");
    drive.tool_failed("bash", "tool.rejected", "The user rejected this.");
    drive.finished("tool-calls");
    drive.tool_completed("read", "r");
    assert!(drive.is_done());
    assert_snapshot!(drive.seen(), @r#"
    < #7 started
    part step-start
    < #7 tool_start
    part tool bash c1 pending
    < #7 tool_end
    #8 run bash c1 {}
    < #7 tool_start
    part tool read c2 pending
    < #7 tool_end
    #9 run read c2 {}
    < #8 failed tool.rejected
    part tool bash c1 error {} "The user rejected this."
    < #7 finished
    < #9 completed
    part tool read c2 completed {} "r"
    part step-finish tool-calls
    assistant finish=tool-calls
    assistant finish=tool-calls completed
    idle
    session.idle
    session used=10+2 cost=0.000014 diff
    finish: done
    "#);
}

#[test]
fn the_limit_of_steps() {
    let mut drive = Drive::asked(Begin {
        max_steps: 1,
        ..begin()
    });
    drive.started();
    drive.call("c1", "read", "{}");
    drive.finished("tool-calls");
    drive.tool_completed("read", "r");
    assert!(drive.is_done());
    assert_snapshot!(drive.seen(), @r#"
    < #7 started
    part step-start
    < #7 tool_start
    part tool read c1 pending
    < #7 tool_end
    #8 run read c1 {}
    < #7 finished
    < #8 completed
    part tool read c1 completed {} "r"
    part step-finish tool-calls
    assistant finish=tool-calls
    assistant finish=tool-calls completed
    busy
    session.error StepLimitError: stopped after 1 model requests, the limit of this turn (agent steps, or max_steps in outrigger.toml)
    idle
    session.idle
    session used=10+2 cost=0.000014 diff
    finish: failed StepLimitError: stopped after 1 model requests, the limit of this turn (agent steps, or max_steps in outrigger.toml)
    "#);
}
