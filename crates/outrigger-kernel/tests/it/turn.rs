//! Complete sequences of a successful turn: the machine's inputs (`<`) and its effects.

use insta::assert_snapshot;
use outrigger_protocol::turn::{Begin, CommandCall, Input, ModelSignal};
use serde_json::json;

use crate::drive::{Drive, begin, text_input};

#[test]
fn text_only() {
    let mut drive = Drive::new(Begin {
        wants_title: true,
        ..begin()
    });
    drive.prepare();
    drive.started();
    drive.text(0, "Hello.  \n");
    drive.finished("stop");
    assert!(drive.is_done());
    assert_snapshot!(drive.seen(), @r#"
    < begin
    session agent
    #1 hooks run.before_start
    < #1 done
    user
    part text "hi"
    session
    busy
    assistant
    title
    session
    #2 tools of step 1
    < #2 done
    #3 hooks llm.before_messages
    < #3 done
    session diff
    user summary
    busy
    #4 hooks llm.before_system
    < #4 done
    #5 hooks llm.before_params
    < #5 done
    #6 hooks llm.before_headers
    < #6 done
    #7 model, step 1
    < #7 started
    part step-start
    < #7 text_start
    part text ""
    < #7 text_end
    #8 hooks llm.after_text
    < #8 done
    part text "Hello." end
    < #7 finished
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
fn one_tool() {
    let mut drive = Drive::asked(begin());
    drive.started();
    drive.text(0, "Looking.");
    drive.call("c1", "read", r#"{"filePath":"a"}"#);
    drive.tool_started("read");
    drive.finished("tool-calls");
    drive.tool_completed("read", "content");
    drive.prepare();
    drive.started();
    drive.text(0, "Done.");
    drive.finished("stop");
    assert!(drive.is_done());
    assert_snapshot!(drive.seen(), @r#"
    < #7 started
    part step-start
    < #7 text_start
    part text ""
    < #7 text_end
    #8 hooks llm.after_text
    < #8 done
    part text "Looking." end
    < #7 tool_start
    part tool read c1 pending
    < #7 tool_end
    #9 run read c1 {"filePath":"a"}
    < #9 started
    part tool read c1 running {"filePath":"a"}
    < #7 finished
    < #9 completed
    part tool read c1 completed {"filePath":"a"} "content"
    part step-finish tool-calls
    assistant finish=tool-calls
    assistant finish=tool-calls completed
    busy
    assistant
    session used=10+2 cost=0.000014 diff
    #10 tools of step 2
    < #10 done
    #11 hooks llm.before_messages
    < #11 done
    busy
    #12 hooks llm.before_system
    < #12 done
    #13 hooks llm.before_params
    < #13 done
    #14 hooks llm.before_headers
    < #14 done
    #15 model, step 2
    < #15 started
    part step-start
    < #15 text_start
    part text ""
    < #15 text_end
    #16 hooks llm.after_text
    < #16 done
    part text "Done." end
    < #15 finished
    user summary
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
fn parallel_tools_answer_in_any_order() {
    let mut drive = Drive::asked(begin());
    drive.started();
    drive.call("c1", "read", r#"{"n":1}"#);
    drive.call("c2", "bash", r#"{"n":2}"#);
    drive.tool_started("bash");
    drive.tool_progress("bash", None, json!({"output": "1"}));
    drive.tool_progress("bash", Some("counting"), json!({"output": "12"}));
    drive.tool_progress("bash", None, json!(null));
    drive.tool_started("read");
    drive.tool_completed("bash", "12");
    drive.finished("tool-calls");
    drive.tool_failed("read", "tool.failed", "no such file");
    assert_snapshot!(drive.seen(), @r#"
    < #7 started
    part step-start
    < #7 tool_start
    part tool read c1 pending
    < #7 tool_end
    #8 run read c1 {"n":1}
    < #7 tool_start
    part tool bash c2 pending
    < #7 tool_end
    #9 run bash c2 {"n":2}
    < #9 started
    part tool bash c2 running {"n":2}
    < #9 progress
    part tool bash c2 running {"n":2} {"output":"1"}
    < #9 progress
    part tool bash c2 running {"n":2} counting {"output":"12"}
    < #9 progress
    part tool bash c2 running {"n":2} counting
    < #8 started
    part tool read c1 running {"n":1}
    < #9 completed
    part tool bash c2 completed {"n":2} "12"
    < #7 finished
    < #8 failed tool.failed
    part tool read c1 error {} "no such file"
    part step-finish tool-calls
    assistant finish=tool-calls
    assistant finish=tool-calls completed
    busy
    assistant
    session used=10+2 cost=0.000014 diff
    #10 tools of step 2
    "#);
}

#[test]
fn reasoning_keeps_what_the_provider_wants_back() {
    let mut drive = Drive::asked(begin());
    drive.started();
    drive.model(ModelSignal::ReasoningStart { index: 0 });
    drive.model(ModelSignal::TextStart { index: 1 });
    let metadata = Some(json!({"signature": "s"}));
    drive.model(ModelSignal::ReasoningEnd {
        index: 0,
        text: "Hmm. ".into(),
        metadata,
    });
    drive.model(ModelSignal::TextEnd {
        index: 1,
        text: "Yes.".into(),
    });
    drive.hook_with(json!({"text": "Yes, indeed."}));
    drive.finished("stop");
    assert_snapshot!(drive.seen(), @r#"
    < #7 started
    part step-start
    < #7 reasoning_start
    part reasoning ""
    < #7 text_start
    part text ""
    < #7 reasoning_end
    part reasoning "Hmm." end {"signature":"s"}
    < #7 text_end
    #8 hooks llm.after_text
    < #8 done
    part text "Yes, indeed." end
    < #7 finished
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
fn no_reply_stores_the_message_and_is_over() {
    let mut drive = Drive::new(Begin {
        no_reply: true,
        ..begin()
    });
    drive.prepare();
    assert!(drive.is_done());
    assert_snapshot!(drive.seen(), @r#"
    < begin
    session agent
    #1 hooks run.before_start
    < #1 done
    user
    part text "hi"
    session
    finish: done
    "#);
}

#[test]
fn a_command_is_offered_to_the_hooks_before_its_message_is() {
    let command = Some(CommandCall {
        name: "review".into(),
        arguments: "all".into(),
    });
    let mut drive = Drive::new(Begin { command, ..begin() });
    drive.hook_with(json!({"parts": [text_input("expanded"), text_input("more")]}));
    drive.prepare();
    drive.started();
    drive.finished("stop");
    assert!(drive.is_done());
    assert_snapshot!(drive.seen(), @r#"
    < begin
    #1 hooks run.before_command
    < #1 done
    session agent
    #2 hooks run.before_start
    < #2 done
    user
    part text "expanded"
    part text "more"
    session
    busy
    assistant
    session
    #3 tools of step 1
    < #3 done
    #4 hooks llm.before_messages
    < #4 done
    session diff
    user summary
    busy
    #5 hooks llm.before_system
    < #5 done
    #6 hooks llm.before_params
    < #6 done
    #7 hooks llm.before_headers
    < #7 done
    #8 model, step 1
    < #8 started
    part step-start
    < #8 finished
    part step-finish stop
    assistant finish=stop
    assistant finish=stop completed
    busy
    idle
    session.idle
    command.executed review all
    session used=10+2 cost=0.000014 diff
    finish: done
    "#);
}

#[test]
fn an_unknown_tool_and_broken_arguments_are_answered_by_invalid() {
    let mut drive = Drive::asked(begin());
    drive.call("c1", "nosuch", "{}");
    drive.call("c2", "read", "{not json");
    // Case is ignored, absent arguments are valid, and the schema refuses what is not an object.
    drive.call("c3", "Read", "  ");
    drive.call("c4", "GLOB", "[1]");
    assert_snapshot!(drive.seen(), @r#"
    < #7 tool_start
    part tool nosuch c1 pending
    < #7 tool_end
    #8 run invalid c1 {"tool":"nosuch","error":"Model tried to call unavailable tool 'nosuch'. Available tools: StructuredOutput, bash, glob, read, write."}
    < #7 tool_start
    part tool read c2 pending
    < #7 tool_end
    #9 run invalid c2 {"tool":"read","error":"Invalid input for tool read: JSON parsing failed: key must be a string at line 1 column 2. Text: {not json"}
    < #7 tool_start
    part tool read c3 pending
    < #7 tool_end
    #10 run read c3 {}
    < #7 tool_start
    part tool glob c4 pending
    < #7 tool_end
    #11 run glob c4 [1]
    "#);
}

#[test]
fn call_ids_that_are_empty_or_taken_are_replaced() {
    // Of a record that lists all of them, and said when it is named.
    let mut drive = Drive::asked(Begin {
        used_calls: vec!["listed".into()],
        ..begin()
    });
    drive.take(Input::CallsUsed {
        ids: vec!["old".into()],
    });
    for id in ["listed", "old", "c1", "c1", "", ""] {
        drive.call(id, "read", "{}");
    }
    // Two calls written at once under one id are kept separate.
    drive.model(ModelSignal::ToolStart {
        call_id: "c2".into(),
        tool: "read".into(),
    });
    drive.model(ModelSignal::ToolStart {
        call_id: "c2".into(),
        tool: "bash".into(),
    });
    drive.model(ModelSignal::ToolEnd {
        call_id: "c2".into(),
        tool: "read".into(),
        raw: "{}".into(),
        metadata: None,
    });
    drive.model(ModelSignal::ToolEnd {
        call_id: "c2".into(),
        tool: "bash".into(),
        raw: "{}".into(),
        metadata: None,
    });
    // A call without a reported start is a call.
    drive.model(ModelSignal::ToolEnd {
        call_id: "c3".into(),
        tool: "glob".into(),
        raw: "{}".into(),
        metadata: None,
    });
    assert_snapshot!(drive.seen(), @r"
    < used old
    < #7 tool_start
    part tool read (made) pending
    < #7 tool_end
    #8 run read (made) {}
    < #7 tool_start
    part tool read (made) pending
    < #7 tool_end
    #9 run read (made) {}
    < #7 tool_start
    part tool read c1 pending
    < #7 tool_end
    #10 run read c1 {}
    < #7 tool_start
    part tool read (made) pending
    < #7 tool_end
    #11 run read (made) {}
    < #7 tool_start
    part tool read (made) pending
    < #7 tool_end
    #12 run read (made) {}
    < #7 tool_start
    part tool read (made) pending
    < #7 tool_end
    #13 run read (made) {}
    < #7 tool_start
    part tool read c2 pending
    < #7 tool_start
    part tool bash (made) pending
    < #7 tool_end
    #14 run read c2 {}
    < #7 tool_end
    #15 run bash (made) {}
    < #7 tool_end
    part tool glob c3 pending
    #16 run glob c3 {}
    ");
}

#[test]
fn what_hooks_make_of_the_user_message_is_what_is_stored() {
    let mut drive = Drive::new(begin());
    drive.hook_with(json!({
        "message": {"role": "user", "id": "msg_other", "sessionID": "ses_other", "time": {"created": 1}, "agent": "plan",
            "model": {"providerID": "p", "modelID": "m"}, "mark": true},
        "parts": [
            {"type": "text", "text": "first"},
            {"type": "text", "text": "second", "id": "prt_x", "sessionID": "ses_other", "messageID": "msg_other"},
            {"type": "text", "text": "again", "id": "prt_x"},
            {"type": "nonsense"},
        ],
    }));
    assert_snapshot!(drive.seen(), @r#"
    < begin
    session agent
    #1 hooks run.before_start
    < #1 done
    user
    part text "first"
    part text "second"
    part text "again"
    session
    busy
    assistant
    session
    #2 tools of step 1
    "#);
    let user = drive.turn.as_ref().unwrap().user();
    assert_eq!(
        (user.session_id.as_str(), user.agent.as_str()),
        ("ses_1", "plan")
    );
    assert_ne!(user.id.as_str(), "msg_other");
    assert_eq!(user.extra["mark"], true);
}

/// Whatever hooks do to it, what the user typed is not lost.
#[test]
fn a_user_message_that_hooks_made_unreadable_is_as_it_was() {
    for spoil in ["/parts/0/text", "/parts/0/type", "/parts", "/message/time"] {
        let mut drive = Drive::new(begin());
        let mut output = drive.effects.iter().find_map(|effect| match effect {
            outrigger_kernel::turn::Effect::Hooks { payload, .. } => {
                payload.as_ref().map(|p| p.output.clone())
            }
            _ => None,
        });
        *output.as_mut().unwrap().pointer_mut(spoil).unwrap() = json!(7);
        drive.seen();
        drive.hook_with(output.unwrap());
        assert!(drive.seen().contains("user\npart text \"hi\"\n"), "{spoil}");
    }
}
