//! A running server notices changes of the machine (D8), and plugins are signed (C7).

use std::fs;
use std::time::Duration;

use base64::Engine as _;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::json;

use crate::plugin_admission::put;
use crate::support::*;
use crate::user_grants::granting;

#[test]
fn a_server_sees_what_should_run_now() {
    let world = World::new([done(), done(), done()]);
    world.packages();
    granting(&world, "[discovery]\nrenew_seconds = 1\n");
    let server = world.serve(&["--no-auth"]);
    let session = server.post("/session", &json!({})).json(200);
    let path = format!("/session/{}/message", session["id"].as_str().unwrap());
    let body = json!({ "parts": [{ "type": "text", "text": "hi" }] });
    let heard = || {
        server.post(&path, &body).json(200);
        world.mock.last().texts("user").pop().unwrap()
    };
    assert_eq!(heard(), "hi");
    let mut events = server.events("/global/event");
    let user = world.home().join(".config/outrigger/plugins");
    put(&user.join("late"), "late", "");
    let event = events.until("outrigger.plugin.snapshot");
    assert_eq!(event["payload"]["properties"]["plugins"], json!(["late"]));
    assert_eq!(heard(), "hi late");
    world.cli(&["plugin", "disable", "core-command"]).ok();
    events.until("outrigger.plugin.snapshot");
    heard();
    assert!(!world.mock.last().tools().contains(&"bash".to_owned()));
}

/// A server's environment does not change, but the contents of the folders in its `PATH` do.
#[test]
fn a_server_sees_a_program_that_comes_and_goes() {
    let world = World::new([done(), done(), done()]);
    world.packages();
    granting(&world, "[discovery]\nrenew_seconds = 1\n");
    let user = world.home().join(".config/outrigger/plugins");
    put(
        &user.join("needs"),
        "needs",
        "[requirements]\nexternal_bins = [\"late-program\"]\n",
    );
    let bin = world.root().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let mut command = world.command(&["serve", "--no-auth", "--port", &free_port()]);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", bin.display()));
    let server = world.serve_with(command);
    let session = server.post("/session", &json!({})).json(200);
    let path = format!("/session/{}/message", session["id"].as_str().unwrap());
    let body = json!({ "parts": [{ "type": "text", "text": "hi" }] });
    let heard = || {
        server.post(&path, &body).json(200);
        world.mock.last().texts("user").pop().unwrap()
    };
    assert_eq!(heard(), "hi");
    let mut events = server.events("/global/event");
    let program = bin.join("late-program");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, mode).unwrap();
    events.until("outrigger.plugin.snapshot");
    assert_eq!(heard(), "hi needs");
    fs::remove_file(&program).unwrap();
    events.until("outrigger.plugin.snapshot");
    assert_eq!(heard(), "hi");
}

/// A cause outside of the plugin, such as a full disk, may go away. A plugin's own error would repeat.
#[test]
fn a_process_that_could_not_be_started_is_tried_again() {
    let world = World::new([done(), done(), done()]);
    world.packages();
    granting(&world, "[discovery]\nrenew_seconds = 1\n");
    let user = world.home().join(".config/outrigger/plugins");
    put(&user.join("late"), "late", "");
    world.plugin(
        "bad",
        "import fs from 'node:fs'
        export const Bad = async ({ directory }) => { fs.appendFileSync(directory + '/tried', 'x'); throw new Error('no') }",
    );
    world.run(&["hi"]).ok();
    assert_eq!(world.mock.last().texts("user").pop().unwrap(), "hi late");
    // A file is in place of its own folder.
    let homes = world.home().join(".local/share/outrigger/plugin-homes");
    let project = fs::read_dir(&homes).unwrap().next().unwrap().unwrap();
    let mut own = fs::read_dir(project.path())
        .unwrap()
        .flatten()
        .map(|it| it.path())
        .filter(|it| {
            let name = it.file_name().unwrap_or_default().to_string_lossy();
            it.is_dir() && name.starts_with("late-")
        });
    let own = own.next().unwrap();
    fs::remove_dir_all(&own).unwrap();
    fs::write(&own, "").unwrap();
    fs::remove_file(world.path("tried")).unwrap();
    let server = world.serve(&["--no-auth"]);
    let session = server.post("/session", &json!({})).json(200);
    let path = format!("/session/{}/message", session["id"].as_str().unwrap());
    let body = json!({ "parts": [{ "type": "text", "text": "hi" }] });
    let heard = || {
        server.post(&path, &body).json(200);
        world.mock.last().texts("user").pop().unwrap()
    };
    assert_eq!(heard(), "hi");
    let mut events = server.events("/global/event");
    fs::remove_file(&own).unwrap();
    loop {
        let event = events.until("outrigger.plugin.state");
        let change = &event["payload"]["properties"];
        if change["action"] == "reload" && change["state"] == "active" {
            break;
        }
    }
    assert_eq!(heard(), "hi late");
    assert_eq!(world.read("tried"), "x");
}

#[test]
fn a_turn_is_not_disturbed_by_what_should_run_next() {
    let world = World::new([
        turn([call(
            "bash",
            json!({ "command": "touch begun; while [ ! -e go ]; do sleep 0.05; done; echo over", "description": "waits" }),
        )]),
        done(),
    ]);
    world.packages();
    world.config(json!({ "permission": "allow" }));
    granting(&world, "[discovery]\nrenew_seconds = 1\n");
    let server = world.serve(&["--no-auth"]);
    let session = server.post("/session", &json!({})).json(200);
    let id = session["id"].as_str().unwrap();
    let body = json!({ "parts": [{ "type": "text", "text": "hi" }] });
    let mut events = server.events("/global/event");
    assert_eq!(
        server
            .post(&format!("/session/{id}/prompt_async"), &body)
            .status,
        204
    );
    assert!(wait_until(WAIT_TIMEOUT, || world.path("begun").exists()));
    put(
        &world.home().join(".config/outrigger/plugins/late"),
        "late",
        "",
    );
    std::thread::sleep(Duration::from_millis(2500));
    world.file("go", "");
    events.until("outrigger.plugin.snapshot");
    let messages = server
        .get(&format!("/session/{id}/message"))
        .json(200)
        .to_string();
    assert!(
        messages.contains("over") && messages.contains("All done."),
        "{messages}"
    );
}

/// A running turn delays the new agent but no longer calls a plugin that is switched off, and does call one that is
/// switched on again (C7).
#[test]
fn a_plugin_that_is_disabled_is_suspended_at_once() {
    let wait = |n: u32| {
        let command =
            format!("touch begun{n}; while [ ! -e go{n} ]; do sleep 0.05; done; echo over");
        turn([call(
            "bash",
            json!({ "command": command, "description": "waits" }),
        )])
    };
    let world = World::new([wait(1), wait(2), done()]);
    world.packages();
    world.config(json!({ "permission": "allow" }));
    // A change found by its own check, then, and not by the interval.
    granting(&world, "[discovery]\nrenew_seconds = 600\n");
    let folder = world.home().join(".config/outrigger/plugins/watch");
    fs::create_dir_all(&folder).unwrap();
    // C3 lets it change headers without naming the hook.
    fs::write(
        folder.join("outrigger.plugin.toml"),
        "id = \"watch\"\nversion = \"1.0.0\"\nkind = \"hook\"\nentry = \"main.js\"\n",
    )
    .unwrap();
    fs::write(
        folder.join("main.js"),
        "export const P = async () => ({ 'chat.headers': async (i, o) => { if (i.agent === 'build') o.headers['x-watch'] = 'was here' } })\n",
    )
    .unwrap();
    let server = world.serve(&["--no-auth"]);
    let session = server.post("/session", &json!({})).json(200);
    let id = session["id"].as_str().unwrap();
    let body = json!({ "parts": [{ "type": "text", "text": "hi" }] });
    let mut events = server.events("/global/event");
    let path = format!("/session/{id}/prompt_async");
    assert_eq!(server.post(&path, &body).status, 204);
    let mut seen = Vec::new();
    for (n, switch, state) in [(1, "disable", "suspended"), (2, "enable", "active")] {
        let begun = format!("begun{n}");
        assert!(wait_until(WAIT_TIMEOUT, || world.path(&begun).exists()));
        seen.push(world.mock.last().header("x-watch").is_some());
        world.cli(&["plugin", switch, "watch"]).ok();
        let event = events.until("outrigger.plugin.state");
        assert_eq!(event["payload"]["properties"]["state"], state, "{event}");
        world.file(&format!("go{n}"), "");
    }
    events.until("session.idle");
    seen.push(world.mock.last().header("x-watch").is_some());
    assert_eq!(seen, [true, false, true]);
}

/// A terminal is somebody's work.
#[test]
fn a_terminal_is_not_closed_by_what_should_run_next() {
    let world = World::new([]);
    world.packages();
    granting(&world, "[discovery]\nrenew_seconds = 1\n");
    let server = world.serve(&["--no-auth"]);
    let pty = server
        .post("/pty", &json!({ "command": "/bin/cat" }))
        .json(200);
    let mut events = server.events("/global/event");
    let user = world.home().join(".config/outrigger/plugins");
    put(&user.join("late"), "late", "");
    std::thread::sleep(Duration::from_millis(2500));
    let path = format!("/pty/{}", pty["id"].as_str().unwrap());
    assert_eq!(server.get(&path).json(200)["status"], "running");
    server.send("DELETE", &path, &[], None).json(200);
    events.until("outrigger.plugin.snapshot");
}

/// A request that arrives while the agent is replaced is answered by the old or by the new one.
#[test]
fn no_request_is_lost_between_two_agents_and_suspended_plugins_stay_so() {
    let world = World::new([done()]);
    world.packages();
    granting(&world, "[discovery]\nrenew_seconds = 1\n");
    let user = world.home().join(".config/outrigger/plugins");
    put(&user.join("quiet"), "quiet", "");
    let server = world.serve(&["--no-auth"]);
    let session = server.post("/session", &json!({})).json(200);
    let id = session["id"].as_str().unwrap();
    let named = json!({ "id": "quiet" });
    server.post("/outrigger/plugin/suspend", &named).json(200);
    for n in 0..2 {
        let mut events = server.events("/global/event");
        put(&user.join(format!("late{n}")), &format!("late{n}"), "");
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    let body = json!({ "agent": "build", "command": "true" });
                    let answer = server.post(&format!("/session/{id}/shell"), &body);
                    assert_eq!(answer.status, 200, "{}", answer.text());
                }
            });
            events.until("outrigger.plugin.snapshot");
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            asking.join().unwrap();
        });
    }
    let body = json!({ "parts": [{ "type": "text", "text": "hi" }] });
    server
        .post(&format!("/session/{id}/message"), &body)
        .json(200);
    assert_eq!(
        world.mock.last().texts("user").pop().unwrap(),
        "hi late0 late1"
    );
}

/// Returns a key or a signature in minisign's form.
fn minisign(bytes: &[u8]) -> String {
    let bytes = [b"Ed".as_slice(), b"outriggr", bytes].concat();
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[test]
fn the_policy_requires_signatures() {
    let world = World::new([done(), done(), done()]);
    world.packages();
    let folder = world.home().join(".config/outrigger/plugins/acme");
    put(&folder, "acme", "");
    let pair = Ed25519KeyPair::from_seed_unchecked(&[3; 32]).unwrap();
    let policy = world.root().join("policy.toml");
    let key = minisign(pair.public_key().as_ref());
    fs::write(
        &policy,
        format!("[signatures]\nkeys = [\"{key}\"]\nrequire = true\n"),
    )
    .unwrap();
    let outrigger = |args: &[&str]| {
        let mut command = world.command(args);
        command
            .env("OUTRIGGER_POLICY", &policy)
            .env("OUTRIGGER_TRUST_CHANGES", "allow");
        world.start(command).end()
    };
    let heard = || {
        let run = outrigger(&["run", "hi"]).ok();
        (world.mock.last().texts("user").pop().unwrap(), run.stderr)
    };
    assert_eq!(heard().0, "hi");
    let stdout = outrigger(&["plugin", "snapshot", "--explain", "acme"])
        .ok()
        .stdout;
    assert!(stdout.contains("it has no signature"), "{stdout}");
    outrigger(&["plugin", "verify"]).exited(3);
    let digest = outrigger(&["plugin", "verify", "acme", "--digest"])
        .ok()
        .stdout;
    let signature = minisign(pair.sign(digest.as_bytes()).as_ref());
    fs::write(
        folder.join("outrigger.plugin.sig"),
        format!("untrusted comment: x\n{signature}\n"),
    )
    .unwrap();
    let stdout = outrigger(&["plugin", "verify"]).ok().stdout;
    assert!(stdout.contains("signed by 72676769"), "{stdout}");
    assert_eq!(heard().0, "hi acme");
    // The content differs from what was signed.
    let changed = fs::read_to_string(folder.join("main.js")).unwrap() + "// more\n";
    fs::write(folder.join("main.js"), changed).unwrap();
    assert_eq!(heard().0, "hi");
    let stdout = outrigger(&["plugin", "verify", "acme"]).exited(3).stdout;
    assert!(stdout.contains("not that of these files"), "{stdout}");
    outrigger(&["plugin", "verify", "nobody"]).exited(2);
}
