//! `outrigger serve`: when a folder's agent starts and restarts, and the user's settings for the server.

use serde_json::json;

use crate::support::*;

#[test]
fn first_requests_at_the_same_time_share_one_agent() {
    let world = World::new([done()]);
    let other = world.root().join("new");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("opencode.json"), world.read("opencode.json")).unwrap();
    let server = world.serve(&["--no-auth"]);
    let path = format!("/session?directory={}", other.display());
    let made: Vec<String> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| server.post(&path, &json!({})).json(200)))
            .collect();
        all.into_iter()
            .map(|one| one.join().unwrap()["id"].as_str().unwrap().to_owned())
            .collect()
    });
    let listed = server.get(&path).json(200);
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 8);
    for session in listed {
        assert!(made.iter().any(|id| session["id"] == json!(id)));
    }
}

#[test]
fn a_folder_that_becomes_a_repository_gets_a_new_agent() {
    let world = World::new([done()]);
    let server = world.serve(&["--no-auth"]);
    let mut here = server.events("/event");
    assert_eq!(server.get("/project/current").json(200)["id"], "global");
    let made = server.post("/project/git/init", &json!({})).json(200);
    assert_eq!(made["vcs"], "git");
    here.until("server.instance.disposed");
    assert_eq!(server.get("/project/current").json(200)["vcs"], "git");
    // The same update again changes nothing, so nothing is ended.
    let mut here = server.events("/event");
    server.post("/project/git/init", &json!({})).json(200);
    server.post("/session", &json!({})).json(200);
    here.until("session.created");
}

#[test]
fn the_users_configuration_says_where_to_listen() {
    let world = World::new([done()]);
    let file = world.home().join(".config/opencode/opencode.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let port = free_port();
    let wanted = json!({ "server": {
        "port": port.parse::<u16>().unwrap(), "cors": ["https://pages.example"], "mdns": true
    } });
    std::fs::write(&file, wanted.to_string()).unwrap();
    // A project's server settings do not apply.
    world.config(json!({ "server": { "hostname": "0.0.0.0", "port": 1 } }));
    let server = world.serve_with(world.command(&["serve", "--no-auth"]));
    assert_eq!(server.url(), format!("http://127.0.0.1:{port}"));
    for (origin, status) in [
        ("https://pages.example", 200),
        ("https://other.example", 403),
    ] {
        let answer = server.send("GET", "/global/health", &[("Origin", origin)], None);
        assert_eq!(answer.status, status, "{origin}");
    }
    drop(server);
    // An unreadable file affects nothing else.
    std::fs::write(&file, "{ nonsense").unwrap();
    let server = world.serve(&["--no-auth"]);
    assert_eq!(server.get("/global/health").json(200)["healthy"], true);
}

/// `/move` of OpenCode's terminal interface. What is asked before a session begins in a folder is asked before one moves there:
/// nothing starts that the user did not trust.
#[test]
fn a_session_moves_to_another_folder_of_its_project() {
    let slow = json!({ "text": "at length", "stall": 1 });
    let world = World::new([done(), done(), slow]);
    let users = world.home().join(".config/opencode");
    std::fs::create_dir_all(&users).unwrap();
    std::fs::rename(world.path("opencode.json"), users.join("opencode.json")).unwrap();
    let starts = json!({ "mcp": { "x": { "type": "local", "command": ["touch", "started"] } } });
    for folder in [world.path("sub"), world.root().join("other")] {
        std::fs::create_dir_all(folder).unwrap();
    }
    world.file("sub/opencode.json", &starts.to_string());
    for (folder, message) in [
        (world.project(), "one"),
        (world.root().join("other"), "two"),
    ] {
        let script = format!(
            "cd {} && git init -q && git -c user.name=a -c user.email=a@b.example commit -q --allow-empty -m {message}",
            folder.display()
        );
        let made = world.script("sh", &["-c", &script]).output().unwrap();
        assert!(made.status.success(), "{made:?}");
    }
    let mut command = world.command(&["serve", "--no-auth"]);
    command.env_remove("OUTRIGGER_TRUST_PROJECT");
    let server = world.serve_with(command);
    let session = server.post("/session", &json!({})).json(200);
    let id = session["id"].as_str().unwrap();
    let path = format!("/session/{id}");
    let moves = |to: &std::path::Path| {
        let body = json!({ "sessionID": id, "destination": { "directory": to } });
        server.post("/experimental/control-plane/move-session", &body)
    };
    let prompt = json!({ "parts": [{ "type": "text", "text": "hello" }] });
    server.post(&format!("{path}/message"), &prompt).json(200);
    let mut events = server.events("/global/event");
    assert_eq!(moves(&world.path("sub")).status, 204);
    events.until("session.updated");
    let moved = server.get(&path).json(200);
    assert_eq!(
        (&moved["directory"], &moved["path"]),
        (&json!(world.path("sub")), &json!("sub"))
    );
    let sub = format!("directory={}", world.path("sub").display());
    server
        .post(&format!("{path}/message?{sub}"), &prompt)
        .json(200);
    assert!(world.mock.last().body.to_string().contains("/project/sub"));
    assert!(
        !world.path("sub/started").exists(),
        "nobody trusted the folder"
    );
    // To its own folder: nothing to do. Elsewhere, nowhere, another session: refused as in OpenCode.
    assert_eq!(moves(&world.path("sub")).status, 204);
    for (to, says) in [
        (world.root().join("other"), "another project"),
        (world.path("none"), "There is no folder"),
        ("sub".into(), "There is no folder"),
    ] {
        let error = moves(&to).json(400);
        assert_eq!(error["name"], "MoveSessionError", "{error}");
        assert!(
            error["data"]["message"].as_str().unwrap().contains(says),
            "{error}"
        );
    }
    assert_eq!(
        server.get(&path).json(200)["directory"],
        json!(world.path("sub"))
    );
    server.post(&format!("{path}/prompt_async?{sub}"), &prompt);
    // Its turn runs: the model was asked a third time, and does not end.
    let is_asked = || world.mock.requests().len() == 3;
    assert!(wait_until(WAIT_TIMEOUT, is_asked));
    let junk = json!({ "sessionID": id, "destination": { "directory": 7 } });
    let junk = server.post("/experimental/control-plane/move-session", &junk);
    assert_eq!(junk.status, 400);
    let busy = moves(&world.project());
    assert_eq!(busy.status, 409, "{}", busy.json(409));
}
