//! Complete sequences of a turn that is cancelled, or whose process is killed and that another process resumes, in
//! each phase.

use insta::assert_snapshot;
use outrigger_kernel::turn::{Effect, step};
use outrigger_protocol::event::Event;
use outrigger_protocol::message::{PartKind, ToolState};
use outrigger_protocol::provenance::Provenance;
use outrigger_protocol::turn::{Begin, CommandCall, EffectId, Input, ModelSignal};
use serde_json::json;

use crate::drive::{Drive, begin, completed, failed};

#[test]
fn cancelled_while_a_command_is_with_the_hooks() {
    let command = Some(CommandCall {
        name: "review".into(),
        arguments: String::new(),
    });
    let mut drive = Drive::new(Begin { command, ..begin() });
    drive.cancel();
    drive.hook();
    assert!(drive.is_done());
    assert_snapshot!(drive.seen(), @r"
    < begin
    #1 hooks run.before_command
    < cancel
    abort
    < #1 done
    session.error MessageAbortedError: The turn was cancelled.
    idle
    session.idle
    finish: cancelled
    ");
}

#[test]
fn cancelled_while_the_prompt_is_with_the_hooks_it_is_still_kept() {
    let mut drive = Drive::new(begin());
    drive.cancel();
    drive.hook();
    assert!(drive.is_done());
    assert_snapshot!(drive.seen(), @r#"
    < begin
    session agent
    #1 hooks run.before_start
    < cancel
    abort
    < #1 done
    user
    part text "hi"
    session
    session.error MessageAbortedError: The turn was cancelled.
    idle
    session.idle
    finish: cancelled
    "#);
}

#[test]
fn cancelled_while_the_request_is_made() {
    let mut drive = Drive::new(begin());
    drive.hook();
    drive.cancel();
    drive.tools();
    assert!(drive.is_done());
    let tools = drive.seen();
    for point in [
        "llm.before_messages",
        "llm.before_system",
        "llm.before_params",
        "llm.before_headers",
    ] {
        let mut drive = Drive::new(begin());
        drive.prepare_until(point);
        drive.seen();
        drive.cancel();
        drive.hook();
        assert!(drive.is_done(), "{point}");
        let hooks = drive.seen();
        let tail = |text: &str| text.split_once(" done\n").map(|(_, tail)| tail.to_owned());
        assert_eq!(
            tail(&hooks),
            tools
                .split_once("#2 done\n")
                .map(|(_, tail)| tail.to_owned()),
            "{point}"
        );
    }
    assert_snapshot!(tools, @r#"
    < begin
    session agent
    #1 hooks run.before_start
    < #1 done
    user
    part text "hi"
    session
    busy
    assistant
    session
    #2 tools of step 1
    < cancel
    abort
    < #2 done
    session.error MessageAbortedError: The turn was cancelled.
    assistant error=MessageAbortedError completed
    idle
    session.idle
    finish: cancelled
    "#);
}

#[test]
fn cancelled_while_the_model_speaks() {
    let mut drive = Drive::asked(begin());
    drive.started();
    drive.model(ModelSignal::ReasoningStart { index: 0 });
    drive.model(ModelSignal::TextStart { index: 1 });
    drive.cancel();
    drive.cancel();
    // Received text is kept; hooks are no longer called, and no tool is started.
    drive.model(ModelSignal::TextEnd {
        index: 1,
        text: "so far".into(),
    });
    drive.call("c1", "bash", "{}");
    drive.model_failed();
    assert!(drive.is_done());
    assert_snapshot!(drive.seen(), @r#"
    < #7 started
    part step-start
    < #7 reasoning_start
    part reasoning ""
    < #7 text_start
    part text ""
    < cancel
    abort
    < cancel
    < #7 text_end
    part text "so far" end
    < #7 tool_start
    part tool bash c1 pending
    < #7 tool_end
    < #7 failed
    session.error MessageAbortedError: The turn was cancelled.
    part reasoning "" end
    part tool bash c1 error {} "Tool execution aborted"
    assistant error=MessageAbortedError completed
    idle
    session.idle
    session diff
    finish: cancelled
    "#);
}

#[test]
fn cancelled_while_a_text_is_with_the_hooks() {
    let mut drive = Drive::asked(begin());
    drive.started();
    drive.model(ModelSignal::TextStart { index: 0 });
    drive.model(ModelSignal::TextEnd {
        index: 0,
        text: "said".into(),
    });
    drive.cancel();
    drive.finished("stop");
    drive.hook();
    assert!(drive.is_done());
    assert_snapshot!(drive.seen(), @r#"
    < #7 started
    part step-start
    < #7 text_start
    part text ""
    < #7 text_end
    #8 hooks llm.after_text
    < cancel
    abort
    < #7 finished
    < #8 done
    part text "said" end
    session.error MessageAbortedError: The turn was cancelled.
    assistant error=MessageAbortedError completed
    idle
    session.idle
    session used=10+2 cost=0.000014 diff
    finish: cancelled
    "#);
}

#[test]
fn cancelled_while_tools_run() {
    let mut drive = Drive::asked(begin());
    drive.started();
    drive.call("c1", "bash", "{}");
    drive.call("c2", "read", "{}");
    drive.tool_started("bash");
    drive.finished("tool-calls");
    drive.cancel();
    drive.tool_failed("bash", "tool.cancelled", "stopped");
    drive.tool_completed("read", "done anyway");
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
    < #8 started
    part tool bash c1 running {}
    < #7 finished
    < cancel
    abort
    < #8 failed tool.cancelled
    part tool bash c1 error {} "stopped"
    < #9 completed
    part tool read c2 completed {} "done anyway"
    session.error MessageAbortedError: The turn was cancelled.
    assistant error=MessageAbortedError completed
    idle
    session.idle
    session used=10+2 cost=0.000014 diff
    finish: cancelled
    "#);
    // It is over: later inputs change nothing.
    drive.cancel();
    drive.take(Input::Resumed);
    drive.take(Input::Begin(Box::new(begin())));
    assert_snapshot!(drive.seen(), @r"
    < cancel
    < resumed
    < begin
    ");
}

#[test]
fn resumed_while_a_request_was_made_or_answered_it_is_made_again() {
    let mut drive = Drive::new(begin());
    drive.prepare_until("llm.before_params");
    drive.seen();
    drive.resume();
    drive.prepare();
    drive.started();
    drive.model(ModelSignal::TextStart { index: 0 });
    drive.model(ModelSignal::TextEnd {
        index: 0,
        text: "half".into(),
    });
    drive.model(ModelSignal::ToolStart {
        call_id: "c1".into(),
        tool: "bash".into(),
    });
    drive.resume();
    drive.prepare();
    drive.started();
    drive.text(0, "whole");
    drive.finished("stop");
    assert!(drive.is_done());
    assert_snapshot!(drive.seen(), @r#"
    < resumed
    #6 tools of step 1
    < #6 done
    #7 hooks llm.before_messages
    < #7 done
    session diff
    user summary
    busy
    #8 hooks llm.before_system
    < #8 done
    #9 hooks llm.before_params
    < #9 done
    #10 hooks llm.before_headers
    < #10 done
    #11 model, step 1
    < #11 started
    part step-start
    < #11 text_start
    part text ""
    < #11 text_end
    #12 hooks llm.after_text
    < #11 tool_start
    part tool bash c1 pending
    < resumed
    message.part.removed
    message.part.removed
    message.part.removed
    #13 tools of step 1
    < #13 done
    #14 hooks llm.before_messages
    < #14 done
    session diff
    user summary
    busy
    #15 hooks llm.before_system
    < #15 done
    #16 hooks llm.before_params
    < #16 done
    #17 hooks llm.before_headers
    < #17 done
    #18 model, step 1
    < #18 started
    part step-start
    < #18 text_start
    part text ""
    < #18 text_end
    #19 hooks llm.after_text
    < #19 done
    part text "whole" end
    < #18 finished
    part step-finish stop
    assistant finish=stop
    assistant finish=stop completed
    busy
    idle
    session.idle
    session used=10+2 cost=0.000014 diff
    finish: done
    "#);
}

#[test]
fn resumed_while_tools_ran_only_harmless_ones_run_again() {
    let mut drive = Drive::asked(begin());
    drive.started();
    drive.call("c1", "read", r#"{"filePath":"a"}"#);
    drive.call("c2", "bash", r#"{"command":"rm"}"#);
    drive.call("c3", "nosuch", "{}");
    drive.model(ModelSignal::ToolStart {
        call_id: "c4".into(),
        tool: "write".into(),
    });
    drive.tool_started("bash");
    // A hook has changed the path: the repeated call is the model's, since the hook sees it again.
    let input = json!({"filePath": "/p/a"});
    drive.take(Input::ToolStarted {
        effect: EffectId(8),
        input,
        provenance: outrigger_protocol::provenance::Provenance::default(),
    });
    drive.seen();
    drive.resume();
    drive.tool_completed("invalid", "no such tool");
    drive.tool_completed("read", "content");
    assert_snapshot!(drive.seen(), @r#"
    < resumed
    #8 run read c1 {"filePath":"a"}
    part tool bash c2 error {"command":"rm"} "interrupted, outcome unknown: the program that ran this call was killed. Check what it did before doing it again."
    #10 run invalid c3 {"tool":"nosuch","error":"Model tried to call unavailable tool 'nosuch'. Available tools: StructuredOutput, bash, glob, read, write."}
    < #10 completed
    part tool invalid c3 completed {"tool":"nosuch","error":"Model tried to call unavailable tool 'nosuch'. Available tools: StructuredOutput, bash, glob, read, write."} "no such tool"
    < #8 completed
    part tool read c1 completed {"filePath":"a"} "content"
    part tool write c4 error {} "Tool execution aborted"
    part step-finish unknown
    assistant finish=unknown
    assistant finish=unknown completed
    busy
    assistant
    session used=0+0 cost=0 diff
    #11 tools of step 2
    "#);
}

/// A7: a hook call is never repeated; the chain continues after it with its input.
#[test]
fn resumed_while_the_prompt_was_with_the_hooks() {
    let command = Some(CommandCall {
        name: "review".into(),
        arguments: String::new(),
    });
    let mut drive = Drive::new(Begin { command, ..begin() });
    drive.hook_with(json!({"parts": [{"type": "text", "text": "expanded"}]}));
    drive.seen();
    drive.resume();
    assert_snapshot!(drive.seen(), @r#"
    < resumed
    user
    part text "expanded"
    session
    busy
    assistant
    session
    #3 tools of step 1
    "#);
}

/// Returns the duration of a call from its part in these effects.
fn took(effects: &[Effect]) -> Option<u64> {
    effects.iter().find_map(|effect| {
        let Effect::Publish {
            event: Event::PartUpdated { part, .. },
        } = effect
        else {
            return None;
        };
        let PartKind::Tool(call) = &part.kind else {
            return None;
        };
        let time = match &call.state {
            ToolState::Error { time, .. } | ToolState::Completed { time, .. } => time,
            _ => return None,
        };
        Some(time.end? - time.start)
    })
}

/// The user thinks and then refuses: the call has a duration of zero.
#[test]
fn a_refused_call_takes_no_time() {
    for (code, time) in [("tool.rejected", 0), ("tool.failed", 4_000)] {
        let mut drive = Drive::asked(begin());
        drive.started();
        drive.call("c1", "bash", "{}");
        drive.tool_started("bash");
        let began = drive.at;
        let (effect, _) = drive.tool("bash");
        let outcome = failed(code, "no");
        let effects = step(
            &mut drive.turn,
            began + 4_000,
            Input::ToolDone { effect, outcome },
        );
        assert_eq!(took(&effects), Some(time), "{code}");
    }
}

/// The user thinks and then allows: the duration is counted from the approval.
#[test]
fn an_approved_call_takes_the_time_after_its_approval() {
    let mut drive = Drive::asked(begin());
    drive.started();
    drive.call("c1", "bash", "{}");
    // Clients see the call while the user is asked.
    drive.tool_started("bash");
    let began = drive.at;
    let (effect, input) = drive.tool("bash");
    let approved = Input::ToolStarted {
        effect,
        input: input.clone(),
        provenance: Provenance::default(),
    };
    step(&mut drive.turn, began + 4_000, approved);
    let outcome = completed(input, "done");
    let effects = step(
        &mut drive.turn,
        began + 4_100,
        Input::ToolDone { effect, outcome },
    );
    assert_eq!(took(&effects), Some(100));
}
