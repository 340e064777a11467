//! Credentials: `outrigger auth`, the files that hold them, and the routes.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::*;
use crate::user_grants::granting;

/// Creates a provider at the mock model with no key in the configuration.
fn world(turns: impl IntoIterator<Item = Value>) -> World {
    let world = World::new(turns);
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible", "name": "Acme", "options": { "baseURL": world.mock.url() },
        "models": { "a1": { "limit": { "context": 100_000, "output": 4000 } } },
    });
    world.config(json!({ "provider": { "acme": provider }, "model": "acme/a1" }));
    world
}

/// Runs the command with these lines on standard input.
fn typed(world: &World, input: &str, args: &[&str]) -> Done {
    let mut command = world.command(args);
    let path = world.root().join("typed");
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(input.as_bytes()).unwrap();
    command.stdin(Stdio::from(fs::File::open(path).unwrap()));
    world.start(command).end()
}

fn sent_key(world: &World) -> String {
    let request = world.mock.last();
    request
        .header("authorization")
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn a_key_is_stored_for_this_user_used_listed_and_forgotten() {
    let world = world([done()]);
    let login = typed(
        &world,
        "sk-first-0123456789\n",
        &["auth", "login", "-p", "acme"],
    )
    .ok();
    assert!(
        login.stderr.contains("logged in to Acme"),
        "{}",
        login.stderr
    );
    assert!(!login.stderr.contains("sk-first"), "{}", login.stderr);
    let file = world.store().with_file_name("auth.json");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    world.run(&["hi"]).ok();
    assert_eq!(sent_key(&world), "Bearer sk-first-0123456789");

    // OpenCode's own file is read, and shown as such.
    let theirs = world.home().join(".local/share/opencode/auth.json");
    fs::create_dir_all(theirs.parent().unwrap()).unwrap();
    let text = r#"{"groq":{"type":"api","key":"gsk_theirs"},"acme":{"type":"api","key":"theirs"}}"#;
    fs::write(&theirs, text).unwrap();
    let mut list = world.command(&["auth", "list"]);
    list.env("MISTRAL_API_KEY", "m-key");
    let list = world.start(list).end().ok();
    insta::assert_snapshot!(list.stdout, @r"
    Acme                      api  ~/.local/share/outrigger/auth.json
    Groq                      api  ~/.local/share/opencode/auth.json
    Mistral                   env  MISTRAL_API_KEY
    ");
    let as_json = world.cli(&["providers", "ls", "--json"]).ok().json();
    assert_eq!(as_json["credentials"][0]["provider"], "acme");
    assert!(!as_json.to_string().contains("sk-first"));

    world.cli(&["auth", "logout", "Acme"]).ok();
    let out = world.cli(&["auth", "logout", "groq"]).ok();
    assert!(
        out.stderr.contains("OpenCode's own file still has"),
        "{}",
        out.stderr
    );
    assert_eq!(fs::read_to_string(&theirs).unwrap(), text);
    assert_eq!(
        world.cli(&["auth", "list"]).ok().stdout,
        "no credentials (`outrigger auth login` stores one)\n"
    );
    let again = world.cli(&["auth", "logout", "groq"]).exited(1);
    assert!(again.stderr.contains("[auth.none]"), "{}", again.stderr);
}

#[test]
fn a_stored_key_goes_before_the_environments_and_behind_the_configured_one() {
    let world = world([done()]);
    world.config(json!({ "provider": { "acme": { "env": ["ACME_KEY"] } } }));
    let with_variable = |content: &str| {
        world
            .run_with(
                &[("ACME_KEY", "from-env"), ("OPENCODE_AUTH_CONTENT", content)],
                &["hi"],
            )
            .ok();
        sent_key(&world)
    };
    assert_eq!(with_variable(""), "Bearer from-env");
    let content = r#"{"acme":{"type":"api","key":"from-content"}}"#;
    assert_eq!(with_variable(content), "Bearer from-content");
    world.config(json!({ "provider": { "acme": { "options": { "apiKey": "configured" } } } }));
    assert_eq!(with_variable(content), "Bearer configured");
}

#[test]
fn a_login_that_cannot_be_made_says_why() {
    let world = world([]);
    let cases: &[(&[&str], &str, i32, &str)] = &[
        (
            &["auth", "login", "-p", "nobody"],
            "k\n",
            2,
            "there is no provider `nobody`",
        ),
        (
            &["auth", "login", "-p", "acme"],
            "",
            2,
            "standard input ended before",
        ),
        (
            &["auth", "login", "-p", "acme"],
            "\n\n\n\n\n\n",
            2,
            "no answer was acceptable",
        ),
        (&["auth", "logout"], "1\n", 1, "no credentials are stored"),
        (
            &["models", "nobody"],
            "",
            1,
            "provider `nobody` cannot be used here",
        ),
    ];
    for (args, input, code, says) in cases {
        let done = typed(&world, input, args).exited(*code);
        assert!(done.stderr.contains(says), "{args:?}: {}", done.stderr);
    }
    fs::write(world.store().with_file_name("auth.json"), "{ nonsense").unwrap();
    let done = typed(&world, "k\n", &["auth", "login", "-p", "acme"]).exited(1);
    assert!(done.stderr.contains("[auth.format]"), "{}", done.stderr);
}

#[test]
fn a_provider_is_chosen_from_a_list_whose_last_entry_takes_any_name() {
    let world = world([]);
    let done = typed(
        &world,
        "Other\nBad Name\nmy-own\nsome-key\n",
        &["auth", "login"],
    )
    .ok();
    assert!(
        done.stderr.contains("describe it under `provider.my-own`"),
        "{}",
        done.stderr
    );
    let list = world.cli(&["auth", "list"]).ok().stdout;
    assert!(list.starts_with("my-own"), "{list}");
    let models = world.cli(&["models"]).ok().stdout;
    assert_eq!(models, "acme/a1\nmock/m1\n");
    let verbose = world.cli(&["models", "acme", "--verbose"]).ok().stdout;
    assert!(
        verbose.starts_with("acme/a1\n{\n  \"id\": \"a1\""),
        "{verbose}"
    );
    world.config(json!({ "enabled_providers": ["nobody"] }));
    let none = world.cli(&["models"]).ok();
    let says_why = none.stderr.contains("`outrigger auth login`");
    assert!(none.stdout.is_empty() && says_why, "{}", none.stderr);
}

/// Serves a catalog on this machine for one request.
fn published(text: &'static str) -> (String, std::thread::JoinHandle<String>) {
    use std::io::Read as _;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut head = [0; 4096];
        let length = socket.read(&mut head).unwrap();
        write!(
            socket,
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}",
            text.len()
        )
        .unwrap();
        String::from_utf8_lossy(&head[..length]).into_owned()
    });
    (url, asked)
}

#[test]
fn the_published_catalog_is_fetched_from_where_the_settings_say() {
    let world = world([]);
    world.settings("[models]\ncatalog_url = \"http://127.0.0.1:1/of-the-project\"\n");
    granting(
        &world,
        "[models]\ncatalog_url = \"http://127.0.0.1:1/elsewhere\"\n",
    );
    let (url, asked) = published(
        r#"{"beta":{"env":["BETA_KEY"],"npm":"@ai-sdk/openai-compatible","api":"http://127.0.0.1:1","models":{"b1":{}}}}"#,
    );
    let off = world.cli(&["models", "--refresh"]);
    assert!(off.stderr.contains("catalog.off"), "{}", off.stderr);
    let refresh = |variables: &[(&str, &str)]| {
        let mut command = world.command(&["models", "--refresh"]);
        command.env_remove("OPENCODE_DISABLE_MODELS_FETCH");
        command
            .envs(variables.iter().copied())
            .env("BETA_KEY", "x-0123456789");
        world.start(command).end()
    };
    let set = refresh(&[]);
    assert!(
        set.stderr.contains("http://127.0.0.1:1/elsewhere/api.json"),
        "{}",
        set.stderr
    );
    let done = refresh(&[("OPENCODE_MODELS_URL", &url)]).ok();
    assert!(asked.join().unwrap().starts_with("GET /api.json "));
    assert_eq!(done.stdout, "acme/a1\nbeta/b1\nmock/m1\n");
    granting(&world, "[models]\nfetch_catalog = false\n");
    let off = refresh(&[("OPENCODE_MODELS_URL", &url)]);
    assert!(off.stderr.contains("catalog.off"), "{}", off.stderr);
    let copy = world.home().join(".cache/outrigger/models.json");
    assert!(
        done.stderr.contains(&copy.display().to_string()),
        "{}",
        done.stderr
    );
}

/// Plugins see the routes as every client does.
#[test]
fn clients_store_credentials_and_see_every_provider_without_keys() {
    let world = world([]);
    let server = world.serve(&["--no-auth"]);
    let key = r#"{"type":"api","key":"sk-route-0123456789"}"#;
    let calls = json!([
        ["GET", "/provider"],
        ["PUT", "/auth/openai", key],
        ["GET", "/provider"],
        ["GET", "/config/providers"],
        [
            "PUT",
            "/auth/openai",
            "{\"type\":\"api\",\"secret\":\"sk-route-0123456789\"}"
        ],
        ["DELETE", "/auth/openai"],
        ["GET", "/config/providers"],
    ]);
    let answers = calls.as_array().unwrap().iter().map(|call| {
        let text = |at: usize| call[at].as_str().unwrap_or_default();
        let body = call[2].as_str();
        let answer = server.send(text(0), text(1), &[], body);
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        json!({ "status": answer.status, "body": body })
    });
    let answers = Value::Array(answers.collect());
    assert!(!answers.to_string().contains("sk-route"), "{answers}");
    let ids = |at: usize, key: &str| -> Vec<String> {
        let list = answers[at]["body"][key].as_array().unwrap();
        list.iter()
            .map(|p| p["id"].as_str().or(p.as_str()).unwrap().to_owned())
            .collect()
    };
    assert!(ids(0, "all").contains(&"openai".to_owned()));
    assert_eq!(ids(0, "connected"), ["mock", "acme"]);
    assert_eq!(answers[0]["body"]["default"]["openai"], "gpt-5.6-terra");
    assert_eq!(answers[1], json!({ "status": 200, "body": true }));
    assert_eq!(ids(2, "connected"), ["mock", "acme", "openai"]);
    assert_eq!(ids(3, "providers"), ["mock", "acme", "openai"]);
    assert_eq!(answers[3]["body"]["providers"][2]["source"], "api");
    assert_eq!(answers[4]["status"], 400);
    assert_eq!(answers[4]["body"]["name"], "BadRequest");
    assert_eq!(answers[5], json!({ "status": 200, "body": true }));
    assert_eq!(ids(6, "providers"), ["mock", "acme"]);
}
