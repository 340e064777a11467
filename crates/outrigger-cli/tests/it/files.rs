//! `-f`: files sent with a message.

use serde_json::{Value, json};

use crate::support::*;

/// Returns the content of the request's last user message, as sent.
fn content(world: &World) -> Value {
    let messages = world.mock.last().body["messages"]
        .as_array()
        .cloned()
        .unwrap();
    messages.iter().rev().find(|m| m["role"] == "user").unwrap()["content"].clone()
}

#[test]
fn a_text_file_is_as_if_the_model_had_read_it() {
    let world = World::new([done()]);
    world.run(&["-f", "hello.txt", "--", "what is this?"]).ok();
    insta::assert_snapshot!(world.plain(&world.mock.last().texts("user").join("\n---\n")), @r#"
    Called the read tool with the following input: {"filePath":"PROJECT/hello.txt"}
    <path>PROJECT/hello.txt</path>
    <content>
    1: hi there
    </content>
    "what is this?"
    "#);
}

#[test]
fn a_folder_is_listed() {
    let world = World::new([done()]);
    world.file("src/a.rs", "fn a() {}\n");
    world.file("src/b.rs", "fn b() {}\n");
    world.run(&["-f", "src", "--", "look"]).ok();
    insta::assert_snapshot!(world.plain(&world.mock.last().texts("user").join("\n---\n")), @r#"
    Called the read tool with the following input: {"filePath":"PROJECT/src"}
    <path>PROJECT/src</path>
    <content>
    a.rs
    b.rs
    </content>
    look
    "#);
}

/// Only for models with image input, which the configured one declares.
#[test]
fn an_image_is_sent_as_an_image() {
    let world = World::new([done()]);
    let vision = json!({ "attachment": true, "modalities": { "input": ["text", "image"], "output": ["text"] } });
    world.config(json!({ "provider": { "mock": { "models": { "m1": vision } } } }));
    let png = [
        0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', 0, 0, 0, 13,
    ];
    std::fs::write(world.path("dot.png"), png).unwrap();
    world.run(&["-f", "dot.png", "--", "what is it?"]).ok();
    let sent = content(&world);
    let urls: Vec<&str> = sent
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|p| p["image_url"]["url"].as_str())
        .collect();
    assert_eq!(urls, ["data:image/png;base64,iVBORw0KGgoAAAAN"], "{sent}");
}

#[test]
fn several_files_with_one_message() {
    let world = World::new([done()]);
    world.file("b.txt", "the second\n");
    world
        .run(&["-f", "hello.txt", "-f", "b.txt", "--", "both"])
        .ok();
    let text = world.mock.last().texts("user").join("\n");
    assert!(
        text.contains("hi there") && text.contains("the second") && text.contains("both"),
        "{text}"
    );
}

#[test]
fn files_that_cannot_go_along() {
    let world = World::new([done()]);
    std::fs::write(world.path("large.txt"), "x".repeat(300 * 1024)).unwrap();
    std::fs::write(world.path("blob.bin"), [0xFF, 0xFE, 0x00, 0x80]).unwrap();
    let refused = |name: &str| world.plain(&world.run(&["-f", name, "--", "x"]).exited(1).stderr);
    insta::assert_snapshot!(refused("large.txt"), @r"
    error: cannot attach PROJECT/large.txt: it is longer than 256 KiB; let the agent read what it needs of it instead [agent.attachment]
    ");
    // Only its size is set; no data is written to the disk.
    let picture = std::fs::File::create(world.path("large.png")).unwrap();
    picture.set_len(10 * 1024 * 1024 + 1).unwrap();
    insta::assert_snapshot!(refused("large.png"), @r"
    error: cannot attach PROJECT/large.png: it is longer than 10240 KiB; let the agent read what it needs of it instead [agent.attachment]
    ");
    insta::assert_snapshot!(refused("blob.bin"), @"error: cannot attach PROJECT/blob.bin: it is neither text nor an image [agent.attachment]");
    insta::assert_snapshot!(refused("missing.txt"), @r"
    error: cannot attach PROJECT/missing.txt: No such file or directory (os error 2) [agent.attachment]
    ");
    assert_eq!(world.mock.all_requests().len(), 0);
    assert_eq!(
        world.cli(&["session", "list"]).ok().stdout,
        "",
        "no session for a message that was never said"
    );
}
