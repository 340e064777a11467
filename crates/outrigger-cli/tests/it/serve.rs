//! `outrigger serve`: several projects and clients on one port, event streams, shutdown.

use std::io::{ErrorKind, Read as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::*;

fn prompt(text: &str) -> Value {
    json!({ "parts": [{ "type": "text", "text": text }] })
}

#[test]
fn each_folder_has_an_agent_of_its_own() {
    let world = World::new([done()]);
    let other = world.root().join("other project");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("opencode.json"), world.read("opencode.json")).unwrap();
    world.trust(&other);
    let server = world.serve(&["--no-auth"]);
    let named = |answer: Answer| answer.json(200)["directory"].as_str().unwrap().to_owned();
    let (own, other) = (
        world.project().display().to_string(),
        other.display().to_string(),
    );
    let encoded = other.replace('/', "%2F").replace(' ', "%20");
    assert_eq!(named(server.get("/path")), own);
    assert_eq!(
        named(server.get(&format!("/path?directory={encoded}"))),
        other
    );
    let header = [("X-OpenCode-Directory", encoded.as_str())];
    assert_eq!(named(server.send("GET", "/path", &header, None)), other);
    assert_eq!(
        named(server.send("POST", "/session", &header, Some("{}"))),
        other
    );
    // The same folder, spelled in another way.
    let dotted = format!("/path?directory={encoded}%2F..%2Fproject%2F.");
    assert_eq!(named(server.get(&dotted)), own);

    let mut here = server.events("/event");
    let mut there = server.events(&format!("/event?directory={encoded}"));
    let mut all = server.events("/global/event");
    let session = server
        .send("POST", "/session", &header, Some("{}"))
        .json(200);
    let created = there.until("session.created");
    assert_eq!(created["properties"]["sessionID"], session["id"]);
    assert!(created["id"].as_str().unwrap().starts_with("evt_"));
    let announced = all.until("session.created");
    assert_eq!(announced["directory"], json!(other));
    assert_eq!(announced["project"], "global");
    assert_eq!(announced["payload"], created);
    let answer = server.post(
        &format!(
            "/session/{}/message?directory={encoded}",
            session["id"].as_str().unwrap()
        ),
        &prompt("go"),
    );
    assert_eq!(answer.json(200)["info"]["role"], "assistant");
    there.until("session.idle");
    // Nothing from the other folder has arrived here.
    server
        .post("/session", &json!({ "title": "mine" }))
        .json(200);
    assert_eq!(here.next().unwrap()["properties"]["info"]["title"], "mine");
}

#[test]
fn a_disposed_agent_ends_its_streams_and_a_new_one_comes() {
    let world = World::new([done()]);
    let server = world.serve(&["--no-auth"]);
    let (mut here, mut all) = (server.events("/event"), server.events("/global/event"));
    world.config(json!({ "username": "somebody else" }));
    assert_ne!(server.get("/config").json(200)["username"], "somebody else");
    assert_eq!(server.post("/instance/dispose", &json!({})).json(200), true);
    let gone = here.until("server.instance.disposed");
    assert_eq!(
        gone["properties"]["directory"],
        world.project().display().to_string()
    );
    assert_eq!(here.next(), None);
    assert_eq!(all.until("server.instance.disposed")["payload"], gone);
    assert_eq!(server.get("/config").json(200)["username"], "somebody else");
    assert_eq!(server.post("/global/dispose", &json!({})).json(200), true);
    all.until("server.instance.disposed");
    assert_eq!(all.until("global.disposed")["directory"], "global");
}

#[test]
fn a_bad_configuration_is_an_answer_and_can_be_mended() {
    let world = World::new([done()]);
    let good = world.read("opencode.json");
    world.file("opencode.json", "{ nonsense");
    let server = world.serve(&["--no-auth"]);
    let refused = server.get("/config").json(500);
    assert!(
        refused["data"]["message"]
            .as_str()
            .unwrap()
            .contains("opencode.json"),
        "{refused}"
    );
    let health = server.get("/global/health");
    assert_eq!(health.header("content-type"), Some("application/json"));
    assert_eq!(server.get("/global/health").json(200)["healthy"], true);
    world.file("opencode.json", &good);
    assert_eq!(server.get("/config").json(200)["model"], "mock/m1");
}

#[test]
fn sigterm_ends_turns_and_streams() {
    let stalled = json!({ "text": "I begin", "stall": 2 });
    let world = World::new([stalled]);
    let server = world.serve(&["--no-auth"]);
    let mut events = server.events("/event");
    let session = server.post("/session", &json!({})).json(200);
    let path = format!("/session/{}/prompt_async", session["id"].as_str().unwrap());
    assert_eq!(server.post(&path, &prompt("go")).status, 204);
    events.until("message.part.delta");
    let done = server.stop();
    assert_eq!(done.code, 143, "{}", done.stderr);
    // The text so far stays, and the turn has ended.
    let message = &world.export()["messages"][1];
    assert_eq!(
        message["info"]["error"]["name"], "MessageAbortedError",
        "{message}"
    );
    world.verify();
}

#[test]
fn configuration_files_are_changed_and_read_again() {
    let world = World::new([done()]);
    let server = world.serve(&["--no-auth"]);
    let patch = |path: &str, body: Value| server.send("PATCH", path, &[], Some(&body.to_string()));
    let mut here = server.events("/event");
    let answer = patch("/config", json!({ "username": "bob" })).json(200);
    assert_eq!(answer, json!({ "username": "bob" }));
    here.until("server.instance.disposed");
    assert_eq!(server.get("/config").json(200)["username"], "bob");
    assert_eq!(server.get("/config").json(200)["model"], "mock/m1");
    let wrong = patch("/config", json!({ "username": 5 })).json(400);
    assert!(
        wrong["data"]["message"]
            .as_str()
            .unwrap()
            .contains("username"),
        "{wrong}"
    );
    assert_eq!(
        patch("/config?directory=/nowhere/at/all", json!({})).status,
        400
    );

    // Another author's link names its target: a file of the user's, or a new one.
    let (file, theirs) = (world.path("opencode.json"), world.path("../theirs.json"));
    std::fs::rename(&file, &theirs).unwrap();
    for to in [&theirs, &world.path("../new.json")] {
        std::os::unix::fs::symlink(to, &file).unwrap();
        let refused = patch("/config", json!({ "username": "eve" })).json(400);
        let message = refused["data"]["message"].as_str().unwrap();
        assert!(message.contains("symbolic link"), "{message}");
        std::fs::remove_file(&file).unwrap();
    }
    assert!(!std::fs::read_to_string(&theirs).unwrap().contains("eve"));
    assert!(!world.path("../new.json").exists());
    std::fs::rename(&theirs, &file).unwrap();

    let file = world.home().join(".config/opencode/opencode.jsonc");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let text = "{\n  // mine\n  \"share\": \"disabled\",\n}\n";
    std::fs::write(&file, text).unwrap();
    assert_eq!(
        server.get("/global/config").json(200),
        json!({ "share": "disabled" })
    );
    let mut all = server.events("/global/event");
    let answer = patch("/global/config", json!({ "share": "manual" })).json(200);
    assert_eq!(answer, json!({ "share": "manual" }));
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        text.replace("disabled", "manual")
    );
    all.until("global.disposed");
    // An update without changes disposes of nothing.
    patch("/global/config", json!({ "share": "manual" })).json(200);
    let refused = server.post("/global/upgrade", &json!({})).json(400);
    assert_eq!(refused["success"], false);
}

/// C9, 3: silent connections have a limited number of slots, and lose them. Later ones are answered when a slot is
/// free.
#[test]
fn strangers_at_the_port_do_not_stay() {
    let world = World::new([]);
    let server = world.serve(&["--no-auth"]);
    let strangers: Vec<TcpStream> = (0..outrigger_bridge::Acceptor::MAX_PENDING)
        .map(|_| TcpStream::connect(&server.address).unwrap())
        .collect();
    server.get("/global/health").json(200);
    let has_gone = |mut stranger: &TcpStream| {
        stranger.set_nonblocking(true).unwrap();
        !matches!(stranger.read(&mut [0; 1]), Err(error) if error.kind() == ErrorKind::WouldBlock)
    };
    assert!(strangers.iter().any(has_gone));
}
