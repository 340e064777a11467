//! Questions to the user.

use crossterm::event::KeyCode;
use serde_json::json;

use super::*;

/// Who types a prompt without a look at the question answers nothing with its second letter.
#[test]
fn a_word_typed_at_a_question_is_for_the_prompt() {
    let mut app = talking(60, 20);
    app.update(permission("rm -rf ."), 0);
    for (n, letter) in (0..).zip("say".chars()) {
        let effects = key(&mut app, KeyCode::Char(letter), 10 * GRACE + n);
        assert_eq!(effects, [], "{letter}");
    }
    assert_eq!(app.editor.text(), "say");
    assert!(app.asking.shown().is_some());
    let effects = key(&mut app, KeyCode::Char('n'), 20 * GRACE);
    assert_eq!(effects.len(), 1, "after a rest it is an answer");
}

/// A no ends the turn, which says so.
#[test]
fn a_turn_that_ends_at_a_no_says_so() {
    let mut app = talking(60, 20);
    user(&mut app, 1, "clean up");
    assistant(&mut app, 2, false);
    tool(
        &mut app,
        2,
        "call_1",
        "bash",
        json!({ "status": "error", "input": { "command": "rm x" }, "error": "rejected", "time": { "start": 1, "end": 2 } }),
    );
    app.update(permission("rm x"), 0);
    key(&mut app, KeyCode::Char('n'), 10 * GRACE);
    let over = || Input::Reply(Then::Over("ses_1".into()), Ok(json!({ "outcome": "done" })));
    app.update(over(), 20 * GRACE);
    let shown = screen(&mut app);
    assert!(shown.contains("~ stopped at your no"), "{shown}");
    app.update(over(), 20 * GRACE);
    assert_eq!(screen(&mut app).matches("stopped at").count(), 1);
}

/// A no from elsewhere, such as another terminal, ends it as well.
#[test]
fn a_turn_that_ends_at_another_clients_no_says_so() {
    let mut app = talking(60, 20);
    user(&mut app, 1, "clean up");
    assistant(&mut app, 2, false);
    let error = "The user rejected permission for this tool call: bash (rm x).";
    tool(
        &mut app,
        2,
        "call_1",
        "bash",
        json!({ "status": "error", "input": { "command": "rm x" }, "error": error, "time": { "start": 1, "end": 2 } }),
    );
    let over = || Input::Reply(Then::Over("ses_1".into()), Ok(json!({ "outcome": "done" })));
    app.update(over(), 20 * GRACE);
    let shown = screen(&mut app);
    assert!(shown.contains("~ stopped: a call was refused"), "{shown}");
    app.update(over(), 20 * GRACE);
    assert_eq!(screen(&mut app).matches("~ stopped").count(), 1);
}

/// What led to a question can be read while it is shown.
#[test]
fn the_conversation_scrolls_behind_a_question() {
    let mut app = talking(80, 24);
    many(&mut app, 100);
    app.update(permission("ls"), 0);
    assert!(screen(&mut app).contains("answer 100"));
    key(&mut app, KeyCode::PageUp, 10 * GRACE);
    let shown = screen(&mut app);
    assert!(
        !shown.contains("answer 100") && shown.contains("? run a command?"),
        "{shown}"
    );
    key(&mut app, KeyCode::End, 10 * GRACE);
    assert!(screen(&mut app).contains("answer 100"));
    // A question that is longer than its place is scrolled itself.
    let mut app = talking(80, 24);
    many(&mut app, 100);
    let script: String = (0..60).map(|n| format!("line {n}\n")).collect();
    app.update(permission(&script), 0);
    key(&mut app, KeyCode::PageDown, 10 * GRACE);
    let shown = screen(&mut app);
    assert!(
        shown.contains("answer 100")
            && shown.contains("│ line 10")
            && !shown.contains("│ line 1\n"),
        "{shown}"
    );
}

/// A turn that ends leaves no question open.
#[test]
fn questions_end_with_their_turn() {
    let mut app = talking(60, 20);
    app.update(permission("ls"), 0);
    let over = Input::Reply(
        Then::Over("ses_1".into()),
        Ok(json!({ "outcome": "cancelled" })),
    );
    let effects = app.update(over, 1);
    assert!(effects.iter().any(|it| matches!(
        it,
        Effect::Call {
            then: Then::Permissions,
            ..
        }
    )));
    assert!(app.asking.shown().is_some(), "it may be another turn's");
    app.update(Input::Reply(Then::Permissions, Ok(json!([]))), 2);
    assert!(app.asking.shown().is_none());
}

#[test]
fn a_no_can_say_what_to_do_instead() {
    let mut app = talking(60, 20);
    app.update(permission("rm -rf ."), 0);
    key(&mut app, KeyCode::Char('i'), GRACE);
    type_in(&mut app, "use git clean", GRACE);
    let effects = key(&mut app, KeyCode::Enter, GRACE);
    let [Effect::Call { body, .. }] = effects.as_slice() else {
        panic!("{effects:?}");
    };
    assert_eq!(
        body,
        &Some(json!({ "reply": "reject", "message": "use git clean" }))
    );
}

/// Which of several questions is shown, and what each is about.
#[test]
fn several_questions_are_counted() {
    let mut app = talking(60, 16);
    let option = |label: &str| json!({ "label": label, "description": "" });
    let questions = json!([
        { "question": "Which colour?", "header": "Colour", "options": [option("red"), option("blue")] },
        { "question": "Which size?", "header": "Size", "options": [option("small")] },
        { "question": "Anything else?", "header": "More", "options": [option("no")] },
    ]);
    let asked = json!({ "id": "que_1", "sessionID": "ses_1", "questions": questions });
    app.update(event("question.asked", asked), 0);
    app.update(permission("ls"), 0);
    key(&mut app, KeyCode::Enter, 10 * GRACE);
    insta::assert_snapshot!(screen(&mut app), @r"

     Outrigger

        /  commands
        @  files
        !  a line for the shell
       f1  the keys

    ─ ▸ waits for your answer ──────────────────────────────────
    ? the model asks  1 of 2
    question 2 of 3  ✓ Colour  ▸ Size  More
    │ Which size?
    ▸ 1. small
    ↑↓ choose  enter answers  [i] in your own words  esc: no
    answer
     build                             $0.01 · /home/me/project
    ");
    key(&mut app, KeyCode::Enter, 20 * GRACE);
    key(&mut app, KeyCode::Enter, 30 * GRACE);
    let shown = screen(&mut app);
    assert!(shown.contains("? run a command?  2 of 2"), "{shown}");
    key(&mut app, KeyCode::Char('y'), 50 * GRACE);
    app.update(permission("ls"), 60 * GRACE);
    assert!(!screen(&mut app).contains(" of "), "counted anew");
}
