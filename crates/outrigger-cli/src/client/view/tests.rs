use std::sync::{Arc, Mutex};

use outrigger_protocol::message::NamedError;

use super::printer::To;
use super::*;

/// A view whose output can be looked at; `> ` stands before what goes to standard output.
fn view(show: Show) -> (View, Arc<Mutex<String>>) {
    let shown = Arc::new(Mutex::new(String::new()));
    let mut view = View::new(SessionId("ses_1".into()), show, "/p".into());
    let kept = Arc::clone(&shown);
    view.paint = Paint::off();
    view.printer = Printer::with(Box::new(move |to, text| {
        let mark = if to == To::Out { "> " } else { "" };
        kept.lock().unwrap().push_str(&format!("{mark}{text}"));
    }));
    (view, shown)
}

fn event(id: &str, kind: &str, properties: Value) -> BusEvent {
    serde_json::from_value(json!({ "id": id, "type": kind, "properties": properties })).unwrap()
}

fn part(id: &str, mut part: Value) -> BusEvent {
    part["sessionID"] = json!("ses_1");
    part["messageID"] = json!("msg_1");
    event(
        id,
        "message.part.updated",
        json!({ "sessionID": "ses_1", "part": part, "time": 5 }),
    )
}

fn running(id: &str, began: u64) -> BusEvent {
    let state =
        json!({ "status": "running", "input": { "command": "ls" }, "time": { "start": began } });
    part(
        id,
        json!({ "id": "prt_1", "type": "tool", "callID": "c1", "tool": "bash", "state": state }),
    )
}

fn completed(id: &str, began: u64) -> BusEvent {
    let state = json!({ "status": "completed", "input": { "command": "ls" }, "output": "a\n", "title": "ls",
        "metadata": { "output": "a\n", "exit": 0 }, "time": { "start": began, "end": began + 7 } });
    part(
        id,
        json!({ "id": "prt_1", "type": "tool", "callID": "c1", "tool": "bash", "state": state }),
    )
}

fn said(id: &str, text: &str) -> BusEvent {
    part(
        id,
        json!({ "id": "prt_2", "type": "text", "text": text, "time": { "start": 1, "end": 2 } }),
    )
}

fn over(id: Option<&str>) -> TurnOutcome {
    TurnOutcome::Done {
        message_id: id.map(|id| MessageId(id.into())),
    }
}

fn shown(show: Show, events: &[BusEvent], outcome: &TurnOutcome) -> String {
    let (mut view, shown) = view(show);
    for event in events {
        view.on(event);
    }
    view.finish(outcome);
    std::mem::take(&mut *shown.lock().unwrap())
}

#[test]
fn start_and_result_are_one_or_apart() {
    let now = outrigger_stdx::clock::now_ms();
    let events = [running("e1", now), completed("e2", now), said("e3", "done")];
    insta::assert_snapshot!(shown(Show::default(), &events, &over(Some("msg_1"))), @"
    $ ls  7 ms
    a
    > done
    ");
    let apart = Show {
        apart: true,
        ..Show::default()
    };
    insta::assert_snapshot!(shown(apart, &events, &over(Some("msg_1"))), @r#"
    ▸ bash {"command":"ls"}
    ◂ bash
    a
    > done
    "#);
}

/// A command that prints for a while is not silent until it ends, and nothing is printed twice.
#[test]
fn a_command_is_shown_while_it_prints() {
    let now = outrigger_stdx::clock::now_ms();
    let printing = |id: &str, output: &str| {
        let state = json!({ "status": "running", "input": { "command": "ls" }, "metadata": { "output": output },
            "time": { "start": 0 } });
        let mut event = part(
            id,
            json!({ "id": "prt_1", "type": "tool", "callID": "c1", "tool": "bash", "state": state }),
        );
        if let Event::PartUpdated { time, .. } = &mut event.event {
            *time = 2_000;
        }
        event
    };
    let (mut view, text) = view(Show::default());
    view.on(&running("e1", now));
    view.on(&printing("e2", "a\nb"));
    assert_eq!(*text.lock().unwrap(), "$ ls\na\n");
    // Not below a question.
    assert!(!view.on_beside_question(&printing("e3", "a\nb\n")));
    view.on(&printing("e4", "a\nb\nc\n"));
    view.on(&completed("e5", now));
    view.finish(&TurnOutcome::Cancelled);
    assert_eq!(
        *text.lock().unwrap(),
        "$ ls\na\nb\nc\n… and more lines\n  7 ms\n"
    );
}

/// The wait is shown, and the reason once.
#[test]
fn a_request_that_is_sent_again_says_when() {
    let retry = |id: &str, attempt: u32, message: &str, after: u64| {
        let next = outrigger_stdx::clock::now_ms() + after;
        let status =
            json!({ "type": "retry", "attempt": attempt, "message": message, "next": next });
        let properties = json!({ "sessionID": "ses_1", "status": status });
        event(id, "session.status", properties)
    };
    let (mut view, text) = view(Show::default());
    for event in [
        retry("e1", 1, "busy", 3_000),
        retry("e2", 2, "busy", 8_000),
        retry("e3", 3, "no connection", 0),
    ] {
        view.on(&event);
    }
    assert_eq!(
        *text.lock().unwrap(),
        "~ try 1: busy; again in 3 s (ctrl+c stops)\n~ try 2: the same; again in 8 s\n~ try 3: no connection\n"
    );
}

#[test]
fn nothing_stays_unseen() {
    let now = outrigger_stdx::clock::now_ms();
    // The turn ends with a call under way.
    let left = shown(
        Show::default(),
        &[running("e1", now)],
        &TurnOutcome::Cancelled,
    );
    assert_eq!(left, "▸ bash {\"command\":\"ls\"}\n");
    // A call that takes hours is one message, as it is from the store.
    let (mut view, text) = view(Show::default());
    view.on(&running("e1", now - 3_600_000));
    view.on(&said("e2", "still at it"));
    assert_eq!(*text.lock().unwrap(), "> still at it\n");
    view.on(&completed("e3", now - 3_600_000));
    let text = std::mem::take(&mut *text.lock().unwrap());
    assert_eq!(text, "> still at it\n$ ls  7 ms\na\n");
}

#[test]
fn a_stored_event_is_shown_once_however_often_it_comes() {
    for format in [Format::Default, Format::Json] {
        let args = Show {
            format,
            ..Show::default()
        };
        let once = [said("e1", "one"), said("e2", "two")];
        let again = [
            said("e1", "one"),
            said("e1", "one"),
            said("e2", "two"),
            said("e1", "one"),
        ];
        let text = |events: &[BusEvent]| {
            shown(args, events, &over(Some("msg_1")))
                .matches("two")
                .count()
        };
        assert_eq!(text(&once), 1);
        assert_eq!(
            shown(args, &again, &over(None)).lines().count(),
            2,
            "{format:?}"
        );
    }
}

#[test]
fn an_empty_answer_is_no_riddle() {
    let no_answer = "! the model gave no answer\n";
    for (events, outcome, want) in [
        (vec![], over(Some("msg_1")), no_answer),
        (vec![said("e1", " \n")], over(Some("msg_1")), no_answer),
        (vec![said("e1", "yes")], over(Some("msg_1")), "> yes\n"),
        // The text belongs to an earlier step.
        (
            vec![said("e1", "yes")],
            over(Some("msg_2")),
            "> yes\n! the model gave no answer\n",
        ),
        (vec![], over(None), ""),
        (vec![], TurnOutcome::Cancelled, ""),
        (
            vec![],
            TurnOutcome::Failed {
                error: NamedError::new("E", "it broke"),
            },
            "Error: it broke\n",
        ),
    ] {
        assert_eq!(shown(Show::default(), &events, &outcome), want);
    }
}

#[test]
fn what_is_printed_beside_a_question_begins_a_new_line() {
    let (mut view, text) = view(Show::default());
    assert!(!view.on_beside_question(&part(
        "e1",
        json!({ "id": "prt_3", "type": "text", "text": "begun" })
    )));
    assert!(view.on_beside_question(&said("e2", "done")));
    assert_eq!(*text.lock().unwrap(), "\n> done\n");
}
