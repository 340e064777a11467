//! Prompts that arrive while a turn runs.

use insta::assert_snapshot;
use outrigger_protocol::id::MessageId;
use outrigger_protocol::message::PartKind;
use outrigger_protocol::session::PartInput;
use outrigger_protocol::turn::{Begin, CommandCall, Input};
use serde_json::json;

use crate::drive::{Drive, begin};
use crate::script::joined;

fn join(drive: &mut Drive, id: &str) {
    join_with(drive, joined(&begin(), id));
}

fn join_with(drive: &mut Drive, begin: Begin) {
    let begin = Box::new(begin);
    drive.take(Input::Joined { begin });
}

/// Returns the message that the current step answers.
fn parent(drive: &Drive) -> String {
    drive
        .turn
        .as_ref()
        .and_then(|turn| turn.message())
        .map(|m| m.parent_id.to_string())
        .unwrap_or_default()
}

#[test]
fn the_next_step_answers_it_with_its_agent() {
    let mut drive = Drive::asked(begin());
    drive.started();
    drive.call("c1", "read", "{}");
    let mut other = joined(&begin(), "msg_2");
    other.agent = "plan".into();
    other.message.agent = "plan".into();
    join_with(&mut drive, other);
    drive.finished("tool-calls");
    drive.tool_completed("read", "r");
    assert_eq!(parent(&drive), "msg_2");
    let turn = drive.turn.as_ref().unwrap();
    assert_eq!(
        (turn.begin().agent.as_str(), turn.begin().turn.as_str()),
        ("plan", "trn_1")
    );
    assert_eq!(turn.message().unwrap().agent, "plan");
}

#[test]
fn a_turn_that_would_end_goes_on_with_it_and_is_idle_once() {
    let mut drive = Drive::asked(Begin {
        command: Some(CommandCall {
            name: "first".into(),
            arguments: "now".into(),
        }),
        ..begin()
    });
    drive.started();
    drive.text(0, "one");
    join(&mut drive, "msg_2");
    join(&mut drive, "msg_3");
    drive.finished("stop");
    assert!(!drive.is_done());
    assert_eq!(parent(&drive), "msg_3", "the newest");
    drive.prepare();
    drive.started();
    drive.seen();
    drive.text(0, "two");
    drive.finished("stop");
    assert!(drive.is_done());
    assert_snapshot!(drive.seen(), @r#"
    < #15 text_start
    part text ""
    < #15 text_end
    #16 hooks llm.after_text
    < #16 done
    part text "two" end
    < #15 finished
    user
    part step-finish stop
    assistant finish=stop
    assistant finish=stop completed
    busy
    idle
    session.idle
    command.executed first now
    session used=10+2 cost=0.000014 diff
    finish: done
    "#);
}

#[test]
fn one_that_is_taken_back_is_not_answered() {
    let mut drive = Drive::asked(begin());
    drive.started();
    join(&mut drive, "msg_2");
    let message_id = MessageId::from("msg_2");
    drive.take(Input::Left { message_id });
    drive.finished("stop");
    assert!(drive.is_done());
}

#[test]
fn where_the_turn_ends_otherwise_it_is_left() {
    type Way = (&'static str, u32, fn(&mut Drive));
    let ways: [Way; 4] = [
        ("cancelled", 20, |drive| {
            drive.cancel();
            drive.model_failed();
        }),
        ("failed", 20, Drive::model_failed),
        ("refused", 20, |drive| {
            drive.call("c1", "bash", "{}");
            drive.finished("tool-calls");
            drive.tool_failed("bash", "tool.rejected", "no");
        }),
        ("no step left", 1, |drive| drive.finished("stop")),
    ];
    for (name, max_steps, end) in ways {
        let mut drive = Drive::asked(Begin {
            max_steps,
            ..begin()
        });
        drive.started();
        join(&mut drive, "msg_2");
        end(&mut drive);
        assert!(drive.is_done(), "{name}");
        let left = drive.turn.as_ref().unwrap().joined();
        assert_eq!(left, [&MessageId::from("msg_2")], "{name}");
    }
}

#[test]
fn a_subtask_among_them_comes_first_and_the_rest_behind_it() {
    let mut drive = Drive::asked(begin());
    drive.started();
    let task = json!({ "agent": "general", "description": "d", "prompt": "p" });
    let mut second = joined(&begin(), "msg_2");
    second.parts = vec![PartInput {
        id: None,
        kind: PartKind::Subtask(task.as_object().unwrap().clone()),
    }];
    join_with(&mut drive, second);
    join(&mut drive, "msg_3");
    drive.finished("stop");
    assert_eq!(parent(&drive), "msg_2");
    drive.tool_started("task");
    drive.tool_completed("task", "done");
    assert_eq!(parent(&drive), "msg_3");
}

/// It is not lost in a requested compaction, and comes before one that a full history needs.
#[test]
fn with_a_compaction() {
    let mut drive = Drive::asked(begin());
    drive.started();
    drive.take(Input::Compact {
        auto: false,
        model: None,
        instructions: None,
    });
    join(&mut drive, "msg_2");
    drive.finished("stop");
    drive.planned(Default::default());
    drive.prepare();
    drive.started();
    drive.text(0, "summary");
    drive.finished("stop");
    assert_eq!(parent(&drive), "msg_2");
}

/// Handlers are asked once the turn is done, and their request has joined it by the time they have answered.
#[test]
fn a_turn_that_handlers_keep_from_ending_goes_on_and_asks_again() {
    let mut drive = Drive::asked(Begin {
        asks_before_stop: true,
        ..begin()
    });
    drive.started();
    drive.text(0, "one");
    drive.finished("stop");
    assert!(!drive.is_done(), "the handlers are asked");
    let mut more = joined(&begin(), "msg_2");
    more.asks_before_stop = true;
    join_with(&mut drive, more);
    assert!(drive.hook());
    assert!(!drive.is_done());
    assert_eq!(parent(&drive), "msg_2");
    drive.prepare();
    drive.started();
    drive.text(0, "two");
    drive.finished("stop");
    assert!(!drive.is_done(), "and asked again");
    assert!(drive.hook());
    assert!(drive.is_done());
}

#[test]
fn a_turn_is_cancelled_while_handlers_are_asked_whether_it_may_end() {
    let mut drive = Drive::asked(Begin {
        asks_before_stop: true,
        ..begin()
    });
    drive.started();
    drive.text(0, "one");
    drive.finished("stop");
    drive.take(Input::Cancel);
    assert!(drive.hook());
    assert!(drive.is_done());
}

#[test]
fn a_turn_that_a_hook_ends_asks_the_model_no_more() {
    let mut drive = Drive::asked(begin());
    drive.started();
    drive.call("c1", "read", "{}");
    drive.finished("tool-calls");
    drive.take(Input::EndAfterStep);
    drive.tool_completed("read", "r");
    assert!(drive.is_done());
}

/// Handlers are asked once for each step, after its calls and before it is complete; a cancelled turn ends there.
#[test]
fn handlers_are_asked_when_a_step_is_over() {
    let asks = || Begin {
        asks_after_step: true,
        ..begin()
    };
    let mut drive = Drive::asked(asks());
    drive.started();
    drive.call("c1", "read", "{}");
    drive.finished("tool-calls");
    drive.tool_completed("read", "r");
    assert!(drive.hook(), "asked");
    assert!(!drive.is_done());
    drive.prepare();
    drive.started();
    drive.text(0, "two");
    drive.finished("stop");
    assert!(!drive.is_done(), "asked again");
    assert!(drive.hook());
    assert!(drive.is_done());

    let mut drive = Drive::asked(asks());
    drive.started();
    drive.text(0, "one");
    drive.finished("stop");
    drive.take(Input::Cancel);
    assert!(drive.hook());
    assert!(drive.is_done());
}
