//! `outrigger attach`: interrupts, and copies of a session.

use std::io::Write as _;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::*;

#[test]
fn ctrl_c_cancels_the_turn_and_the_conversation_goes_on() {
    let world = World::new([
        json!({ "text": "I begin and go on", "stall": 3 }),
        text("second answer"),
    ]);
    let server = world.serve(&["--no-auth"]);
    let mut events = server.events("/event");
    let mut command = world.command(&["attach", &server.url()]);
    command.stdin(Stdio::piped());
    let mut client = world.start(command);
    let mut input = client.stdin();
    writeln!(input, "go").unwrap();
    let sees = |client: &Running, words: &str| {
        let seen = wait_until(WAIT_TIMEOUT, || client.stdout().contains(words));
        assert!(seen, "{words}: {}{}", client.stdout(), client.stderr());
    };
    events.until("message.part.delta");
    client.signal(Signal::INT);
    // The same client continues in the same session.
    let busy = || server.get("/session/status").json(200) != json!({});
    assert!(wait_until(WAIT_TIMEOUT, || !busy()), "{}", client.stderr());
    writeln!(input, "and now?").unwrap();
    sees(&client, "second answer");
    let sessions = server.get("/session").json(200);
    assert_eq!(sessions.as_array().unwrap().len(), 1);
    let path = format!("/session/{}/message", sessions[0]["id"].as_str().unwrap());
    let messages = server.get(&path).json(200);
    assert_eq!(
        messages[1]["info"]["error"]["name"], "MessageAbortedError",
        "{messages}"
    );
    drop(input);
    client.end().ok();
}

#[test]
fn a_signal_at_the_prompt_leaves_before_and_behind_a_turn() {
    for (turns, signal, code) in [
        (0, Signal::INT, 130),
        (0, Signal::TERM, 143),
        (1, Signal::INT, 130),
        (1, Signal::TERM, 143),
        (2, Signal::INT, 130),
    ] {
        let world = World::new([text("an answer"), text("an answer")]);
        let server = world.serve(&["--no-auth"]);
        let mut command = world.command(&["attach", &server.url()]);
        command.stdin(Stdio::piped());
        let mut client = world.start(command);
        let mut input = client.stdin();
        assert!(wait_until(WAIT_TIMEOUT, || client
            .stderr()
            .contains("/help")));
        for n in 1..=turns {
            writeln!(input, "go").unwrap();
            let answered = || client.stdout().matches("an answer").count() == n;
            assert!(wait_until(WAIT_TIMEOUT, answered), "{}", client.stderr());
        }
        client.signal(signal);
        // The input is always open. Ctrl-C may still have been meant for the turn, which the program reports; then it
        // takes a second one.
        let over = wait_until(WAIT_TIMEOUT, || {
            let over = client.is_over();
            if !over && client.stderr().contains("Ctrl-C again leaves") {
                client.signal(signal);
            }
            over
        });
        assert!(over, "{turns} {signal:?}: {}", client.stderr());
        client.end().exited(code);
        drop(input);
    }
}

#[test]
fn sigterm_in_a_turn_ends_the_turn_and_the_client() {
    let world = World::new([json!({ "text": "I begin and go on", "stall": 3 })]);
    let server = world.serve(&["--no-auth"]);
    let mut events = server.events("/event");
    let mut command = world.command(&["attach", &server.url()]);
    command.stdin(Stdio::piped());
    let mut client = world.start(command);
    let mut input = client.stdin();
    writeln!(input, "go").unwrap();
    events.until("message.part.delta");
    client.signal(Signal::TERM);
    assert!(
        wait_until(WAIT_TIMEOUT, || client.is_over()),
        "{}",
        client.stderr()
    );
    client.end().exited(143);
    assert_eq!(server.get("/session/status").json(200), json!({}));
    drop(input);
}

#[test]
fn a_copy_is_worked_in_and_the_session_stays() {
    let world = World::new([text("one"), text("two")]);
    let server = world.serve(&["--no-auth"]);
    let talk = |args: &[&str], line: &str| {
        let mut command = world.command(&[&["attach", &server.url()], args].concat());
        command.stdin(Stdio::piped());
        let mut client = world.start(command);
        let mut input = client.stdin();
        writeln!(input, "{line}").unwrap();
        drop(input);
        client.end()
    };
    talk(&[], "first").ok();
    let count = |session: &Value| {
        let path = format!("/session/{}/message", session["id"].as_str().unwrap());
        server.get(&path).json(200).as_array().unwrap().len()
    };
    let first = server.get("/session").json(200)[0].clone();
    talk(&["-c", "--fork"], "second").ok();
    let sessions = server.get("/session").json(200);
    let copy = sessions
        .as_array()
        .unwrap()
        .iter()
        .find(|session| session["id"] != first["id"])
        .unwrap();
    assert_eq!((count(&first), count(copy)), (2, 4));
    let refused = talk(&["--fork"], "third").exited(2);
    assert!(refused.stderr.contains("-c or -s"), "{}", refused.stderr);
}
