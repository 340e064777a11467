//! The life of plugins while a server runs (C7): suspend, resume, reload; no call in progress is lost.

use serde_json::{Value, json};

use crate::support::*;
use crate::user_grants::granting;

/// Its tool waits for a file; the tool and the hook both report their version.
fn version(number: u32) -> String {
    format!(
        r#"
import fs from "node:fs"
const wait = (ms) => new Promise((done) => setTimeout(done, ms))
export const P = async ({{ directory }}) => ({{
  "chat.message": async (i, o) => {{ o.parts[0].text += " v{number}" }},
  tool: {{
    slow: {{
      description: "Waits.", args: {{}},
      async execute() {{
        fs.writeFileSync(directory + "/begun-{number}", "")
        for (let i = 0; i < 2000 && !fs.existsSync(directory + "/go"); i++) await wait(10)
        return "from v{number}"
      }},
    }},
    only_{number}: {{ description: "Is there.", args: {{}}, async execute() {{ return "" }} }},
  }},
}})
"#
    )
}

struct Talk<'a> {
    server: &'a Server,
    session: String,
}

impl Talk<'_> {
    fn say(&self, text: &str) {
        let path = format!("/session/{}/message", self.session);
        let body = json!({ "parts": [{ "type": "text", "text": text }] });
        self.server.post(&path, &body).json(200);
    }

    fn say_and_leave(&self, text: &str) {
        let path = format!("/session/{}/prompt_async", self.session);
        let body = json!({ "parts": [{ "type": "text", "text": text }] });
        assert_eq!(self.server.post(&path, &body).status, 204);
    }
}

fn talk(server: &Server) -> Talk<'_> {
    let session = server.post("/session", &json!({})).json(200);
    Talk {
        server,
        session: session["id"].as_str().unwrap().to_owned(),
    }
}

/// Returns the user's last message, as the model received it.
fn heard(world: &World) -> String {
    world.mock.last().texts("user").pop().unwrap_or_default()
}

fn wait_for(world: &World, file: &str) {
    assert!(
        wait_until(WAIT_TIMEOUT, || world.path(file).exists()),
        "no {file}"
    );
}

fn serving(world: &World) -> Server {
    let mut command = world.command(&["serve", "--no-auth", "--port", &free_port()]);
    command.env("OUTRIGGER_TRUST_CHANGES", "allow");
    world.serve_with(command)
}

fn life(world: &World, server: &Server, action: &str) -> Done {
    world.cli(&["plugin", action, "p", "--url", &server.url()])
}

#[test]
fn a_reload_takes_over_and_what_is_in_flight_ends_where_it_began() {
    let world = World::new([
        turn([call("slow", json!({}))]),
        done(),
        done(),
        turn([call("slow", json!({}))]),
        done(),
    ]);
    world.plugin("p", &version(1));
    let server = serving(&world);
    let (one, two) = (talk(&server), talk(&server));
    one.say_and_leave("begin");
    wait_for(&world, "begun-1");
    world.plugin("p", &version(2));
    let reloaded = life(&world, &server, "reload").ok();
    assert!(
        reloaded.stdout.contains("p is active (generation 2)"),
        "{}",
        reloaded.stdout
    );
    // The old one's tool is still running; the new one already answers.
    two.say("new?");
    assert_eq!(heard(&world), "new? v2");
    let tools = world.mock.last().tools();
    assert!(
        tools.contains(&"only_2".to_owned()) && !tools.contains(&"only_1".to_owned()),
        "{tools:?}"
    );
    world.file("go", "");
    assert!(wait_until(WAIT_TIMEOUT, || {
        let path = format!("/session/{}/message", one.session);
        server.get(&path).json(200).to_string().contains("from v1")
    }));
    two.say("again");
    assert_eq!(world.read("begun-2"), "");
    wait_for(&world, "begun-2");
    server.stop();
    let audit = world
        .cli(&["audit", "list", "--plugin", "p", "--json"])
        .stdout;
    assert!(audit.contains("reload"), "{audit}");
}

#[test]
fn a_generation_that_is_of_no_use_never_takes_over() {
    let world = World::new([done(), done(), done(), done()]);
    world.plugin("p", &version(1));
    let server = serving(&world);
    let talk = talk(&server);
    talk.say("one");
    for bad in [
        "this is not JavaScript",
        "export const P = async () => { throw new Error('not today') }",
        "process.exit(3)",
    ] {
        world.plugin("p", bad);
        let failed = life(&world, &server, "reload").exited(1);
        assert!(
            failed.stderr.contains("PluginError") || failed.stderr.contains("plugin"),
            "{}",
            failed.stderr
        );
        talk.say("still");
        assert_eq!(heard(&world), "still v1", "{bad}");
    }
    let plugins = server.get("/outrigger/plugin").json(200);
    assert_eq!(plugins["plugins"][0]["state"], "active");
    assert_eq!(plugins["plugins"][0]["generation"], 1);
}

#[test]
fn a_suspended_plugin_is_not_called_and_keeps_its_process() {
    let world = World::new([done(), done(), done()]);
    world.plugin("p", &version(1));
    let server = serving(&world);
    let talk = talk(&server);
    let mut events = server.events("/event");
    let pid = |server: &Server| -> Value {
        server.get("/outrigger/plugin").json(200)["plugins"][0]["pid"].clone()
    };
    talk.say("one");
    assert_eq!(heard(&world), "one v1");
    let before = pid(&server);
    let done = life(&world, &server, "suspend").ok();
    assert!(done.stdout.contains("p is suspended"), "{}", done.stdout);
    let event = events.until("outrigger.plugin.state");
    assert_eq!(event["properties"]["state"], "suspended");
    talk.say("two");
    assert_eq!(heard(&world), "two");
    assert!(!world.mock.last().tools().contains(&"slow".to_owned()));
    life(&world, &server, "suspend").exited(1);
    life(&world, &server, "resume").ok();
    talk.say("three");
    assert_eq!(heard(&world), "three v1");
    assert!(world.mock.last().tools().contains(&"slow".to_owned()));
    assert_eq!(pid(&server), before);
    world
        .cli(&["plugin", "reload", "nobody", "--url", &server.url()])
        .exited(1);
}

#[test]
fn a_plugin_cannot_switch_off_another() {
    let world = World::new([done()]);
    world.plugin(
        "bad",
        r#"
import fs from "node:fs"
export const P = async ({ directory, serverUrl }) => ({
  "chat.message": async () => {
    const answers = []
    for (const what of ["suspend", "resume", "reload"]) {
      const body = JSON.stringify({ id: "p" })
      const answer = await fetch(new URL("outrigger/plugin/" + what, serverUrl), { method: "POST", body, headers: { "content-type": "application/json" } })
      answers.push(answer.status)
    }
    fs.writeFileSync(directory + "/answers", answers.join(" "))
  },
})
"#,
    );
    world.plugin("p", &version(1));
    world.run(&["hi"]).ok();
    assert_eq!(world.read("answers"), "403 403 403");
}

#[test]
fn a_process_that_does_not_answer_a_health_check_is_started_again() {
    let world = World::new([done(), done()]);
    world.plugin("p", &version(1));
    granting(
        &world,
        "[limits]\nplugin_health_seconds = 1\n[deadlines]\nnormal_ms = 3000\n",
    );
    let server = serving(&world);
    let talk = talk(&server);
    talk.say("one");
    let plugin = || server.get("/outrigger/plugin").json(200)["plugins"][0].clone();
    let pid = i32::try_from(plugin()["pid"].as_i64().unwrap()).unwrap();
    // In a sandbox the plugin is a child of that sandbox's init.
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let children = children
        .split_whitespace()
        .map(|it| it.parse::<i32>().unwrap());
    for pid in children.chain([pid]) {
        let process = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
    }
    assert!(wait_until(WAIT_TIMEOUT, || {
        let now = plugin();
        now["generation"] == 2 && now["state"] == "active"
    }));
    talk.say("two");
    assert_eq!(heard(&world), "two v1");
    server.stop();
    let audit = world.cli(&["audit", "export", "--plugin", "p"]).stdout;
    assert!(audit.contains("health checks in a row"), "{audit}");
}
