//! `outrigger serve`: when a folder's agent starts and starts anew, and what the user's configuration says of the server.

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
    // Once more changes nothing, so nothing is ended.
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
    // What a project says of it does not count.
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
    // A file that cannot be read costs only that.
    std::fs::write(&file, "{ nonsense").unwrap();
    let server = world.serve(&["--no-auth"]);
    assert_eq!(server.get("/global/health").json(200)["healthy"], true);
}
