//! A provider that a plugin implements with its own protocol (B8), from the list of models to the bill: the example of
//! `examples/plugin-provider` against an imitation of its service, and a plugin that does everything wrong.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::*;
use crate::user_grants::granting;

const KEY: &str = "acme-key-7f3b";

/// The service: it answers as its last message asks, and records its requests.
struct Parley {
    port: u16,
    asked: Arc<Mutex<Vec<Value>>>,
    /// Answers that a client left before their end.
    left: Arc<AtomicUsize>,
}

impl Parley {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
        let left: Arc<AtomicUsize> = Arc::default();
        let (seen, gone) = (Arc::clone(&asked), Arc::clone(&left));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, gone) = (Arc::clone(&seen), Arc::clone(&gone));
                std::thread::spawn(move || {
                    // A client that disconnects is part of the tests.
                    let _ = serve(stream, &seen, &gone);
                });
            }
        });
        Self { port, asked, left }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns its requests, except those for a title.
    fn asked(&self) -> Vec<Value> {
        let asked = self.asked.lock().unwrap();
        asked
            .iter()
            .filter(|it| !it["helpers"].as_array().unwrap().is_empty())
            .cloned()
            .collect()
    }
}

fn serve(stream: TcpStream, seen: &Mutex<Vec<Value>>, gone: &AtomicUsize) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut length, mut token) = (0, String::new());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let line = line.trim_end().to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
        if let Some(value) = line.strip_prefix("x-acme-token: ") {
            value.clone_into(&mut token);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let asked: Value = serde_json::from_slice(&body).unwrap();
    let last = asked["script"].as_array().unwrap().last().cloned().unwrap();
    let earlier = seen
        .lock()
        .unwrap()
        .iter()
        .filter(|it| it["script"] == asked["script"])
        .count();
    seen.lock().unwrap().push(asked.clone());
    if token != KEY {
        return refuse(
            stream,
            401,
            &json!({ "oops": format!("the token {token} is unknown") }),
        );
    }
    let bye = |input: u64, output: u64, why: &str| {
        vec![
            json!({"k": "bill", "in": input, "out": output, "reused": 100}),
            json!({"k": "bye", "why": why}),
        ]
    };
    let say = |text: &str| json!({"k": "say", "t": text});
    let said = last["says"].as_str().unwrap_or_default();
    if asked["helpers"].as_array().unwrap().is_empty() {
        return stream_lines(
            stream,
            [vec![say("A title")], bye(100, 2, "done")].concat(),
            false,
            gone,
        );
    }
    let lines = match (last["who"].as_str().unwrap(), said) {
        ("helper", found) => {
            let greeting = found
                .lines()
                .find(|line| line.contains("hi there"))
                .unwrap_or("nothing");
            [
                vec![
                    json!({"k": "think", "t": "hm"}),
                    say("It says"),
                    say(": "),
                    say(greeting),
                ],
                bye(1000, 20, "done"),
            ]
            .concat()
        }
        (_, "busy") if earlier == 0 => {
            return refuse(stream, 429, &json!({"oops": "slow down", "again_ms": 10}));
        }
        (_, "broken") => vec![
            say("so far"),
            json!({"k": "oops", "t": "the wire broke", "again": true}),
        ],
        (_, "cut") => vec![say("so far")],
        (_, "hang") => return stream_lines(stream, vec![say("so far")], true, gone),
        (_, "read") => {
            let ask =
                json!({"k": "ask", "ref": "r1", "fn": "read", "with": {"filePath": "hello.txt"}});
            [vec![say("I look."), ask], bye(500, 10, "asked")].concat()
        }
        _ => [vec![say("Hello.")], bye(400, 5, "done")].concat(),
    };
    stream_lines(stream, lines, false, gone)
}

fn refuse(mut stream: TcpStream, status: u16, body: &Value) -> std::io::Result<()> {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} No\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes())
}

fn stream_lines(
    mut stream: TcpStream,
    lines: Vec<Value>,
    hang: bool,
    gone: &AtomicUsize,
) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n")?;
    for line in lines {
        let line = format!("{line}\n");
        stream.write_all(format!("{:x}\r\n{line}\r\n", line.len()).as_bytes())?;
    }
    if hang {
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        // Closed, or cut off with its process.
        let _ = stream.read(&mut [0; 8]);
        gone.fetch_add(1, Ordering::SeqCst);
        return Ok(());
    }
    stream.write_all(b"0\r\n\r\n")
}

/// Sets up the example in a project, with its key granted.
fn world(parley: &Parley, options: Value) -> World {
    let world = World::new([done()]);
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugin-provider");
    for name in ["main.js", "package.json", "outrigger.plugin.toml"] {
        let text = fs::read_to_string(from.join(name)).unwrap();
        // The imitation's address.
        let text = text.replace(
            "hosts = [\"parley.acme.example\"]",
            "hosts = [\"127.0.0.1\"]",
        );
        world.file(&format!("tools/acme/{name}"), &text);
    }
    world.packages();
    let mut all = json!({ "baseURL": parley.url() });
    all.as_object_mut()
        .unwrap()
        .extend(options.as_object().unwrap().clone());
    world.config(json!({
        "plugin": ["./tools/acme"],
        "model": "acme/acme-large",
        "small_model": "acme/acme-small",
        "provider": { "acme": { "npm": "plugin", "options": all } },
    }));
    grant(&world);
    world
}

fn grant(world: &World) {
    let path = world.path("tools/acme");
    granting(
        world,
        &format!(
            "[plugins.\"{}\"]\nenv = [\"ACME_API_KEY\"]\nhosts = [\"127.0.0.1\"]\nmodel = true\n",
            path.display()
        ),
    );
}

const WITH_KEY: &[(&str, &str)] = &[("ACME_API_KEY", KEY)];

#[test]
fn a_model_of_a_plugins_provider_is_listed_asked_and_billed() {
    let parley = Parley::new();
    let world = world(&parley, json!({}));
    let listed = |variables: &[(&str, &str)]| {
        let mut command = world.command(&["models", "acme"]);
        command.envs(variables.iter().copied());
        world.start(command).end()
    };
    assert_eq!(
        listed(WITH_KEY).ok().stdout,
        "acme/acme-large\nacme/acme-small\n"
    );
    // The test request of its manifest, which the service answers or not.
    let tested = |key: &str| {
        let mut command = world.command(&["plugin", "test", "acme"]);
        command.env("ACME_API_KEY", key);
        world.start(command).end()
    };
    assert_eq!(
        tested(KEY).ok().stdout,
        "ok      acme: 1 of 1 examples are answered\n"
    );
    let said = parley.asked.lock().unwrap()[0]["script"].to_string();
    assert!(said.contains("Say hello."), "{said}");
    let refused = tested("acme-key-wrong").exited(1).stdout;
    assert!(
        refused.starts_with("failed  acme: example 1 of 1 is not answered: ")
            && refused.contains("is unknown"),
        "{refused}"
    );
    let run = world.run_with(WITH_KEY, &["read"]).ok();
    assert!(run.stdout.contains("It says: "), "{}", run.stdout);
    let asked = parley.asked();
    assert_eq!(asked.len(), 2);
    // The tool's schema in the service's form, and the tool's result in its script.
    let helpers = asked[0]["helpers"].as_array().unwrap();
    let read = helpers.iter().find(|it| it["fn"] == "read").unwrap();
    let path = read["takes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["n"] == "filePath")
        .unwrap();
    assert_eq!((&path["t"], &path["must"]), (&json!("text"), &json!(true)));
    assert_eq!(asked[0]["voice"], "acme-large");
    assert_eq!(asked[0]["cap"], 8000);
    let script = asked[1]["script"].as_array().unwrap();
    assert_eq!(script.last().unwrap()["who"], "helper");
    assert_eq!(script[script.len() - 2]["asks"][0]["ref"], "r1");
    // Streamed in pieces, stored as blocks.
    let texts: Vec<Value> = world
        .parts("text")
        .iter()
        .map(|part| part["text"].clone())
        .collect();
    assert!(
        texts
            .iter()
            .any(|text| text.as_str().unwrap().starts_with("It says: ")),
        "{texts:?}"
    );
    assert_eq!(world.parts("reasoning")[0]["text"], "hm");
    // The bill: 500 + 1000 in, of which 2 * 100 reused, and 10 + 20 out, at the plugin's prices.
    let want = (1300.0 * 3.0 + 200.0 * 0.3 + 30.0 * 15.0) / 1e6;
    let costs: f64 = world
        .parts("step-finish")
        .iter()
        .map(|part| part["cost"].as_f64().unwrap())
        .sum();
    assert!((costs - want).abs() < 1e-12, "{costs} {want}");
    world.verify();
}

#[test]
fn provider_key_reaches_only_the_granted_plugin() {
    let parley = Parley::new();
    let world = world(&parley, json!({}));
    // Not set.
    let none = world.run(&["hi"]);
    assert_ne!(none.code, 0);
    assert!(none.stderr.contains("ACME_API_KEY"), "{}", none.stderr);
    // Set and not granted: naming it as its key does not give the plugin access.
    granting(&world, "");
    let run = world.run_with(WITH_KEY, &["hi"]);
    assert_ne!(run.code, 0);
    assert_eq!(parley.asked.lock().unwrap().len(), 0);
    grant(&world);
    // Refused by the service: reported as such, without the key.
    let run = world.run_with(&[("ACME_API_KEY", "acme-key-wrong")], &["hi"]);
    let output = format!("{}{}", run.stdout, run.stderr);
    assert!(output.contains("is unknown"), "{output}");
    assert!(!output.contains("acme-key-wrong"), "{output}");
    assert_eq!(parley.asked().len(), 1, "a refused key is not tried again");
}

#[test]
fn failures_of_the_service_are_what_they_are() {
    let parley = Parley::new();
    let world = world(&parley, json!({ "chunkTimeout": 4000 }));
    // Busy before the first piece: the request is retried.
    let run = world.run_with(WITH_KEY, &["busy"]).ok();
    assert!(
        run.stdout.contains("Hello."),
        "{}{}",
        run.stdout,
        run.stderr
    );
    assert_eq!(parley.asked().len(), 2);
    for (said, tells) in [
        ("broken", "the wire broke"),
        ("cut", "before the answer was complete"),
        (
            "hang",
            "plugin `acme`, which sends the requests of provider `acme`, was silent for 4 s",
        ),
    ] {
        let run = world.run_with(WITH_KEY, &[said]);
        let output = format!("{}{}", run.stdout, run.stderr);
        assert!(output.contains(tells), "{said}: {output}");
        assert_ne!(run.code, 0, "{said}");
    }
    // The request that hung was dropped.
    assert!(wait_until(WAIT_TIMEOUT, || parley
        .left
        .load(Ordering::SeqCst)
        == 1));
}

fn session(server: &Server) -> String {
    let made = server.post("/session", &json!({ "title": "t" })).json(200);
    made["id"].as_str().unwrap().to_owned()
}

fn ask(server: &Server, session: &str, text: &str) -> Value {
    let body = json!({ "parts": [{ "type": "text", "text": text }] });
    server
        .post(&format!("/session/{session}/message"), &body)
        .json(200)
}

#[test]
fn an_abort_reaches_the_service() {
    let parley = Parley::new();
    let world = world(&parley, json!({}));
    let mut command = world.command(&["serve", "--port", &free_port()]);
    command.envs(WITH_KEY.iter().copied());
    command.env("OPENCODE_SERVER_PASSWORD", "mine");
    let mut server = world.serve_with(command);
    server.auth = Some(basic("opencode:mine"));
    let listed = server.get("/provider").json(200);
    let own = listed["all"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["id"] == "acme")
        .unwrap();
    assert_eq!(own["name"], "Acme Parley");
    assert_eq!(own["models"]["acme-large"]["limit"]["context"], 200_000);
    assert!(
        listed["connected"]
            .as_array()
            .unwrap()
            .contains(&json!("acme"))
    );
    assert!(!listed.to_string().contains(KEY));
    let id = session(&server);
    let mut events = server.events("/event");
    let body = json!({ "parts": [{ "type": "text", "text": "hang" }] }).to_string();
    server.leave(
        "POST",
        &format!("/session/{id}/prompt_async"),
        &body,
        || {
            events.until("message.part.delta");
            server
                .post(&format!("/session/{id}/abort"), &json!({}))
                .json(200);
            events.until("session.idle");
        },
    );
    assert!(wait_until(WAIT_TIMEOUT, || parley
        .left
        .load(Ordering::SeqCst)
        == 1));
    let answer = ask(&server, &id, "hi");
    assert_eq!(answer["info"]["error"], Value::Null, "{answer}");
    server.stop();
}

/// Answers as the last message says.
const ODD: &str = r#"
export const Odd = async () => ({ provider: {
  id: "odd",
  async models() { return { m: { name: "M", limit: { context: 100000, output: 1000 }, capabilities: { toolcall: true } } } },
  async *stream({ messages, tools }) {
    const { content } = messages.at(-1)
    const said = Array.isArray(content) ? content.at(-1).text : content
    if (tools.length > 0 && said === "throws") throw new Error("I do not feel like it")
    yield { type: "text", text: "so far" }
    if (tools.length > 0) {
      if (said === "crash") process.exit(3)
      if (said === "spin") for (;;) {}
      if (said === "silent") await new Promise(() => {})
      if (said === "nonsense") yield { type: "sound", of: "music" }
      if (said === "late") throw new Error("changed my mind")
      if (said === "ends") return
    }
    yield { type: "finish", usage: { input: 10, output: 1 } }
  },
}})
"#;

fn odd(world: &World, manifest: &str) {
    world.file("tools/odd/main.js", ODD);
    world.file(
        "tools/odd/package.json",
        r#"{"name":"odd","type":"module","main":"main.js"}"#,
    );
    if !manifest.is_empty() {
        let head = "id = \"odd\"\nversion = \"1.0.0\"\nkind = \"provider\"\n";
        world.file(
            "tools/odd/outrigger.plugin.toml",
            &format!("{head}{manifest}"),
        );
    }
    world.packages();
}

#[test]
fn a_plugin_that_fails_in_an_answer_is_named_and_the_next_works() {
    let world = World::new([done()]);
    odd(&world, "[provides]\nproviders = [\"odd\"]\n");
    let options = json!({ "chunkTimeout": 4000, "headerTimeout": 30_000 });
    world.config(json!({ "plugin": ["./tools/odd"], "model": "odd/m", "provider": { "odd": { "options": options } } }));
    // Its manifest has no test of the provider: an untested declaration fails.
    let tested = world.cli(&["plugin", "test"]).exited(1).stdout;
    assert_eq!(
        tested,
        "failed  odd: its manifest has no description of it (`[[providers]]`)\n"
    );
    let mut command = world.command(&["serve", "--port", &free_port()]);
    command.env("OPENCODE_SERVER_PASSWORD", "mine");
    let mut server = world.serve_with(command);
    server.auth = Some(basic("opencode:mine"));
    for (said, tells) in [
        (
            "throws",
            "plugin `odd`, which sends the requests of provider `odd`, failed: I do not feel like it",
        ),
        (
            "silent",
            "plugin `odd`, which sends the requests of provider `odd`, was silent for 4 s",
        ),
        ("nonsense", "yielded an invalid chunk"),
        ("late", "changed my mind"),
        ("ends", "before the answer was complete"),
        ("crash", "odd"),
        (
            "spin",
            "plugin `odd`, which sends the requests of provider `odd`, was silent for 4 s",
        ),
    ] {
        let id = session(&server);
        let mut answer = ask(&server, &id, said);
        let error = |answer: &Value| answer["info"]["error"]["data"]["message"].to_string();
        // A process that still holds the previous answer is ended after some time, along with its current answer.
        if error(&answer).contains("did not stop") {
            answer = ask(&server, &id, said);
        }
        assert!(error(&answer).contains(tells), "{said}: {answer}");
        // The next request is answered, by a restarted process if necessary.
        let works = || ask(&server, &id, "hi")["info"]["error"].is_null();
        assert!(wait_until(WAIT_TIMEOUT, works), "{said}");
    }
    server.stop();
}

#[test]
fn nobody_speaks_for_what_he_did_not_declare_or_what_is_known() {
    for (name, manifest, provider, says) in [
        ("no manifest", "", json!({}), "no outrigger.plugin.toml"),
        (
            "not in the manifest",
            "[provides]\nproviders = [\"other\"]\n",
            json!({}),
            "`provides.providers` of its manifest does not name it",
        ),
        (
            "configured for somebody else",
            "[provides]\nproviders = [\"odd\"]\n",
            json!({ "odd": { "options": { "baseURL": "http://127.0.0.1:1/v1", "apiKey": "k" } } }),
            "it is configured (`provider.odd`)",
        ),
    ] {
        let world = World::new([done()]);
        odd(&world, manifest);
        let mut all = json!({ "plugin": ["./tools/odd"] });
        if provider != json!({}) {
            all["provider"] = provider;
        }
        world.config(all);
        // Its `models`, as in OpenCode, may belong to a provider that another plugin serves.
        let listed = world.cli(&["models", "odd"]).stdout;
        let theirs = name == "configured for somebody else";
        assert!(theirs || !listed.contains("odd/m"), "{name}: {listed}");
        let mut run = world.command(&["run", "hi"]);
        run.env("OUTRIGGER_LOG", "warn");
        let run = world.start(run).end().ok();
        assert!(run.stderr.contains(says), "{name}: {}", run.stderr);
    }
    // A well-known name with a stored key.
    let world = World::new([done()]);
    odd(&world, "[provides]\nproviders = [\"openai\"]\n");
    world.file(
        "tools/odd/main.js",
        &ODD.replace("id: \"odd\"", "id: \"openai\""),
    );
    world.config(json!({ "plugin": ["./tools/odd"] }));
    let mut run = world.command(&["run", "hi"]);
    run.env("OUTRIGGER_LOG", "warn")
        .env("OPENAI_API_KEY", "sk-1234567890");
    let run = world.start(run).end().ok();
    assert!(
        run.stderr
            .contains("its provider openai is not offered: the provider is already known"),
        "{}",
        run.stderr
    );
}

/// Adds a provider with its login, and reports the key it received in its answers.
const OWNER: &str = r#"
export const Own = async () => ({
  provider: {
    id: "own", env: ["OWN_KEY"],
    async models() { return { m: { name: "M", limit: { context: 100000, output: 1000 }, capabilities: { toolcall: true } } } },
    async *stream(request, { key }) {
      yield { type: "text", text: `NAME was given ${[...key].reverse().join("")}` }
      yield { type: "finish", usage: { input: 10, output: 1 } }
    },
  },
  auth: { provider: "own", methods: [{ type: "oauth", label: "By NAME", async authorize() {
    return { url: "https://own.test", instructions: "", method: "auto",
      callback: async () => ({ type: "success", refresh: "r-NAME", access: "access-NAME", expires: Date.now() + 3600_000 }) }
  } }] },
})
"#;

/// Creates one as NAME in the world.
fn owner(world: &World, name: &str) -> std::path::PathBuf {
    let folder = world.root().join(name);
    fs::create_dir_all(&folder).unwrap();
    for (file, text) in [
        ("main.js", OWNER.replace("NAME", name)),
        (
            "package.json",
            format!(r#"{{"name":"{name}","type":"module","main":"main.js"}}"#),
        ),
        (
            "outrigger.plugin.toml",
            format!(
                "id = \"{name}\"\nversion = \"1.0.0\"\nkind = \"provider\"\n[provides]\nproviders = [\"own\"]\n"
            ),
        ),
    ] {
        fs::write(folder.join(file), text).unwrap();
    }
    folder
}

/// B8 with a login and its owner: no project's plugin takes the name of a user's plugin, and what was stored for one is not given to the
/// other.
#[test]
fn a_login_is_for_the_plugin_that_made_it() {
    let world = World::new([done()]);
    world.packages();
    let (mine, theirs) = (owner(&world, "mine"), owner(&world, "project/theirs"));
    fs::write(theirs.join("main.js"), OWNER.replace("NAME", "theirs")).unwrap();
    let manifest = fs::read_to_string(theirs.join("outrigger.plugin.toml")).unwrap();
    fs::write(
        theirs.join("outrigger.plugin.toml"),
        manifest.replace("project/", ""),
    )
    .unwrap();
    fs::write(
        theirs.join("package.json"),
        r#"{"name":"theirs","type":"module","main":"main.js"}"#,
    )
    .unwrap();
    world.config(json!({ "plugin": ["./theirs"], "model": "own/m", "small_model": "own/m" }));
    let of_user = world.home().join(".config/opencode/opencode.json");
    fs::create_dir_all(of_user.parent().unwrap()).unwrap();
    let users =
        |plugins: Value| fs::write(&of_user, json!({ "plugin": plugins }).to_string()).unwrap();
    let says = |name: &str, key: &str| {
        format!("{name} was given {}", key.chars().rev().collect::<String>())
    };
    let login = |label: &str| world.cli(&["auth", "login", "-p", "own", "-m", label]);

    // Only a project's: its login works and the result goes to it.
    login("By theirs").ok();
    let run = world.run(&["hi"]).ok();
    assert!(
        run.stdout.contains(&says("theirs", "access-theirs")),
        "{}{}",
        run.stdout,
        run.stderr
    );

    // The user's wins, and does not get what the other's login stored.
    users(json!([mine]));
    assert!(!login("By theirs").stderr.contains("logged in"));
    let run = world.run(&["hi"]);
    assert!(!run.stdout.contains("was given"), "{}", run.stdout);
    login("By mine").ok();
    let run = world.run(&["hi"]).ok();
    assert!(
        run.stdout.contains(&says("mine", "access-mine")),
        "{}{}",
        run.stdout,
        run.stderr
    );

    // Without it, the project's plugin serves the provider again, and gets neither the other's login nor a key stored for no plugin.
    users(json!([]));
    let file = world.store().with_file_name("auth.json");
    let by_hand = json!({ "own": { "type": "api", "key": "stored-by-hand" } }).to_string();
    for stored in [None, Some(by_hand)] {
        if let Some(stored) = &stored {
            fs::write(&file, stored).unwrap();
        }
        let run = world.run(&["hi"]);
        assert!(!run.stdout.contains("was given"), "{}", run.stdout);
        assert!(run.stderr.contains("model = true"), "{}", run.stderr);
    }
    granting(&world, &format!("[plugins.{theirs:?}]\nmodel = true\n"));
    let run = world.run(&["hi"]).ok();
    assert!(
        run.stdout.contains(&says("theirs", "stored-by-hand")),
        "{}{}",
        run.stdout,
        run.stderr
    );
}

/// Serves a provider that takes a key, and logs in to another provider.
const TAKER: &str = r#"
export const Taker = async () => ({
  provider: {
    id: "taker", env: ["TAKER_KEY"],
    async models() { return { m: { name: "M", limit: { context: 100000, output: 1000 }, capabilities: { toolcall: true } } } },
    async *stream(request, { key }) {
      yield { type: "text", text: `was given ${[...key].reverse().join("")}` }
      yield { type: "finish", usage: { input: 10, output: 1 } }
    },
  },
  auth: { provider: "elsewhere", methods: [{ type: "oauth", label: "Log in", async authorize() {
    return { url: "https://elsewhere.test", instructions: "", method: "auto", callback: async () => ({ type: "success", key: "theirs", provider: "openai" }) }
  } }] },
})
"#;

/// A key entered for a provider that only a project's plugin has, at the terminal or by a client, goes to that plugin if the user chose
/// it by name or granted it. Its login is for its own provider only.
#[test]
fn a_key_goes_to_a_projects_plugin_by_name_alone() {
    let world = World::new([done()]);
    world.packages();
    let folder = world.path("taker");
    let manifest = "id = \"taker\"\nversion = \"1.0.0\"\nkind = \"provider\"\n[provides]\nproviders = [\"taker\"]\n";
    world.file("taker/main.js", TAKER);
    world.file(
        "taker/package.json",
        r#"{"name":"taker","type":"module","main":"main.js"}"#,
    );
    world.file("taker/outrigger.plugin.toml", manifest);
    world.config(json!({ "plugin": ["./taker"], "model": "taker/m", "small_model": "taker/m" }));
    let stored = || {
        let text =
            fs::read_to_string(world.store().with_file_name("auth.json")).unwrap_or_default();
        serde_json::from_str::<Value>(&text).unwrap_or_default()
    };
    let typed = |lines: &str| {
        let mut command = world.command(&["auth", "login", "-p", "taker"]);
        let path = world.root().join("typed");
        fs::write(&path, lines).unwrap();
        command.stdin(Stdio::from(fs::File::open(path).unwrap()));
        world.start(command).end().ok().stderr
    };
    let given = || world.run(&["hi"]).stdout.contains("was given yek");
    let list = typed("2\nkey\n");
    assert!(
        list.contains("API key (by taker, a plugin of this project, which gets it)"),
        "{list}"
    );
    assert_eq!(stored()["taker"], json!({ "type": "api", "key": "key" }));
    assert!(!given());
    let server = world.serve(&["--no-auth"]);
    let put = server.send(
        "PUT",
        "/auth/taker",
        &[],
        Some(r#"{"type":"api","key":"key"}"#),
    );
    assert_eq!(put.status, 200);
    server.stop();
    assert_eq!(stored()["taker"], json!({ "type": "api", "key": "key" }));
    assert!(!given());
    assert!(typed("1\nkey\n").contains("the plugin taker gets this login"));
    assert!(given());
    // For another provider.
    let login = || world.cli(&["auth", "login", "-p", "elsewhere", "-m", "Log in"]);
    let refused = login();
    assert!(
        refused
            .stderr
            .contains("tried to store a credential for `openai`"),
        "{}",
        refused.stderr
    );
    assert!(stored()["openai"].is_null());
    granting(&world, &format!("[plugins.{folder:?}]\nmodel = true\n"));
    login().ok();
    assert_eq!(stored()["openai"]["key"], "theirs");
}
