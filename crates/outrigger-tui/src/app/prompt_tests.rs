//! The contents of a prompt, and when it is sent.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use outrigger_client::ClientError;
use serde_json::{Value, json};

use super::tests::*;
use super::*;
use crate::state::attachments::Image;

/// Returns the body of the request that sends a prompt.
fn sent(effects: &[Effect]) -> &Value {
    let mut bodies = effects.iter().filter_map(|it| match it {
        Effect::Call { path, body, .. } if path.ends_with("/turn") => body.as_ref(),
        _ => None,
    });
    bodies.next_back().unwrap_or(&Value::Null)
}

fn leader(app: &mut App, code: KeyCode) -> Vec<Effect> {
    control(app, 'x', 0);
    key(app, code, 0)
}

#[test]
fn a_long_pasted_text_is_one_mark_and_is_sent_whole() {
    let mut app = talking(60, 14);
    type_in(&mut app, "see ", 0);
    app.update(Input::Paste("a line\r\n".repeat(120)), 0);
    app.update(Input::Paste("x\n".repeat(7)), 0);
    insta::assert_snapshot!(screen(&mut app), @r"

     Outrigger

        /  commands
        @  files
        !  a line for the shell
       f1  the keys




    ────────────────────────────────────────────────────────────
    ❯ see [pasted 120 lines][pasted 7 lines]
     build                             $0.01 · /home/me/project
    ");
    key(&mut app, KeyCode::Backspace, 0);
    assert_eq!(
        app.editor.text(),
        "see [pasted 120 lines]",
        "a mark goes as a whole"
    );
    let effects = key(&mut app, KeyCode::Enter, 0);
    let text = sent(&effects)["prompt"]["parts"][0]["text"]
        .as_str()
        .unwrap();
    assert_eq!(text, format!("see {}", "a line\n".repeat(120)));
    assert!(effects.contains(&Effect::Remember(text.to_owned())));
}

#[test]
fn the_path_of_an_image_becomes_the_image() {
    let mut app = talking(60, 14);
    let pasted = "'/tmp/a shot.png'".to_owned();
    let effects = app.update(Input::Paste(pasted.clone()), 0);
    assert_eq!(
        effects,
        [Effect::Image("/tmp/a shot.png".into(), pasted.clone())]
    );
    app.update(
        Input::Image(
            pasted.clone(),
            Image::of("/tmp/a shot.png", b"\x89PNG....".to_vec()),
        ),
        0,
    );
    type_in(&mut app, "what is this?", 0);
    assert_eq!(app.editor.text(), "[image a shot.png] what is this?");
    let effects = key(&mut app, KeyCode::Enter, 0);
    let parts = &sent(&effects)["prompt"]["parts"];
    assert_eq!(parts[1]["mime"], "image/png");
    assert_eq!(parts[1]["filename"], "a shot.png");
    assert_eq!(parts[1]["url"], "data:image/png;base64,iVBORy4uLi4=");
    // Pasted data that is not an image stays text.
    app.update(
        Input::Image(pasted.clone(), Image::of("/tmp/a.png", b"text".to_vec())),
        0,
    );
    assert_eq!(app.editor.text(), pasted);
}

#[test]
fn a_prompt_can_wait_until_the_turn_is_over() {
    let mut app = talking(60, 14);
    type_in(&mut app, "first", 0);
    key(&mut app, KeyCode::Enter, 0);
    type_in(&mut app, "then this", 0);
    assert!(sent(&leader(&mut app, KeyCode::Enter)).is_null());
    assert!(screen(&mut app).contains("esc interrupts · 1 queued: then this"));
    type_in(&mut app, "steer", 0);
    let effects = key(&mut app, KeyCode::Enter, 0);
    assert_eq!(
        sent(&effects)["prompt"]["parts"][0]["text"],
        "steer",
        "the model reads it at its next step"
    );
    let over = |outcome: &str| {
        Input::Reply(
            Then::Over("ses_1".into()),
            Ok(json!({ "outcome": outcome })),
        )
    };
    assert!(sent(&app.update(over("completed"), 0)).is_null());
    let effects = app.update(over("completed"), 0);
    assert_eq!(sent(&effects)["prompt"]["parts"][0]["text"], "then this");
    // After an interrupted turn the user can edit it again.
    type_in(&mut app, "and that", 0);
    leader(&mut app, KeyCode::Enter);
    type_in(&mut app, "draft", 0);
    assert!(sent(&app.update(over("cancelled"), 0)).is_null());
    assert_eq!(app.editor.text(), "and that\n\ndraft");
}

/// A prompt that the agent refuses is not lost, and who has no model reads it before the first prompt.
#[test]
fn a_prompt_that_is_refused_comes_back() {
    let mut app = talking(60, 14);
    app.update(
        Input::Reply(Then::Models, Ok(json!({ "providers": [] }))),
        0,
    );
    assert!(screen(&mut app).contains("No model can be used yet"));
    let refused = |app: &mut App| {
        let error = ClientError::new("model.key", "no key is stored", None);
        app.update(Input::Reply(Then::Over("ses_1".into()), Err(error)), 0);
    };
    type_in(&mut app, "fix it", 0);
    key(&mut app, KeyCode::Enter, 0);
    assert_eq!(app.editor.text(), "");
    refused(&mut app);
    assert_eq!(app.editor.text(), "fix it");
    assert!(screen(&mut app).contains("no key is stored [model.key]"));
    // What is written meanwhile stays, and what is stored is not given back.
    key(&mut app, KeyCode::Enter, 0);
    type_in(&mut app, "next", 0);
    refused(&mut app);
    assert_eq!(app.editor.text(), "next");
    key(&mut app, KeyCode::Enter, 0);
    user(&mut app, 1, "next");
    refused(&mut app);
    assert_eq!(app.editor.text(), "");
}

#[test]
fn the_users_editor_gets_the_prompt_and_gives_it_back() {
    let mut app = talking(60, 14);
    type_in(&mut app, "a ", 0);
    app.update(Input::Paste("x\n".repeat(7)), 0);
    let whole = format!("a {}", "x\n".repeat(7));
    assert_eq!(leader(&mut app, KeyCode::Char('e')), [Effect::Edit(whole)]);
    app.update(Input::Edited(Ok("new\n".into())), 0);
    assert_eq!(app.editor.text(), "new");
    app.update(Input::Edited(Err("vi ended with 1".into())), 0);
    assert_eq!(app.editor.text(), "new");
    assert!(screen(&mut app).contains("vi ended with 1"));
}

#[test]
fn keys_as_they_are_set_and_vi() {
    let options = Options {
        theme: Theme::new("dark", crate::render::theme::Depth::None),
        keys: [("session_list".to_owned(), "f5".to_owned())].into(),
        vi: true,
        folder: "~".to_owned(),
        is_local: true,
        agent: None,
        model: None,
        history: Vec::new(),
        clock: || 0,
    };
    let mut app = App::new(options, (60, 14));
    app.update(Input::Ready(Start::default()), 0);
    assert!(!key(&mut app, KeyCode::F(5), 0).is_empty());
    key(&mut app, KeyCode::Esc, 0);
    type_in(&mut app, "one two", 0);
    key(&mut app, KeyCode::Esc, 0);
    type_in(&mut app, "db", 0);
    assert_eq!(app.editor.text(), "one o");
    assert!(screen(&mut app).contains("-- NORMAL --"));
    key(&mut app, KeyCode::Enter, 0);
    assert_eq!(app.history, ["one o"]);
    assert!(screen(&mut app).contains("-- INSERT --"));
}

/// Each OpenCode function has the same key.
#[test]
fn the_page_names_every_key() {
    let page = include_str!("../../../../docs/terminal.md");
    for (name, keys, ..) in crate::state::actions::TABLE {
        let row = page
            .lines()
            .find(|it| it.starts_with(&format!("| `{name}` |")))
            .unwrap_or_else(|| panic!("`{name}` is not in docs/terminal.md"));
        assert!(row.contains(&format!("`{keys}`")), "{row}: {keys}");
    }
}

/// A prompt of many rows shows those around the cursor, and leaves room for the conversation.
#[test]
fn a_long_prompt_scrolls_in_its_third() {
    let mut app = talking(40, 15);
    a_turn(&mut app);
    for n in 0..30 {
        type_in(&mut app, &format!("line {n} 日本語 e\u{301}"), 0);
        app.update(
            Input::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::SHIFT)),
            0,
        );
    }
    type_in(&mut app, &"word ".repeat(20), 0);
    insta::assert_snapshot!(screen(&mut app), @r"
          1   one
          2 - two
          2 + 2
     ✗ bash cargo test  2.3 s
       ok␛[2J
       exit 1

     ▣ build · m · 1.5 s
    ────────────────────────────────────────
    ⋮ line 28 日 本 語  é
      line 29 日 本 語  é
      word word word word word word word
      word word word word word word word
      word word word word word word
     build              1.0k tokens · $0.01
    ");
}
