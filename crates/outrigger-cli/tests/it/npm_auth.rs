//! Published authentication plugins, unmodified: a login, a turn and a tool call against imitations of their services,
//! which they reach under the real names through a proxy on loopback (`services/services.mjs`).

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::npm::{installed, world as world_with};
use crate::support::*;
use crate::user_grants::granting;

const CODEX: &str = "opencode-openai-codex-auth@4.4.0";
const GEMINI: &str = "opencode-gemini-auth@1.3.8";

/// The imitations, which end when this is dropped.
pub(crate) struct Services {
    child: Child,
    port: String,
}

impl Services {
    /// Returns `None` and prints a note if there is no Bun to run them.
    #[expect(
        clippy::disallowed_methods,
        reason = "a third party's service is not started by our program"
    )]
    pub(crate) fn start(world: &World) -> Option<Self> {
        let bun = bun_or_skip()?;
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/services");
        // Plugins may read the project's folder.
        fs::copy(folder.join("ca.pem"), world.path("ca.pem")).unwrap();
        let mut child = Command::new(bun)
            .arg(folder.join("services.mjs"))
            .arg(&folder)
            .arg(world.root().join("services.log"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut port)
            .unwrap();
        let port = port.trim().to_owned();
        Some(Self { child, port })
    }

    /// Returns the binary with its connection to the imitations.
    pub(crate) fn command(&self, world: &World, args: &[&str]) -> Command {
        let mut command = world.command(args);
        crate::npm::without_npm(&mut command);
        let proxy = format!("http://127.0.0.1:{}", self.port);
        for name in ["HTTPS_PROXY", "https_proxy"] {
            command.env(name, &proxy);
        }
        command.env("NODE_EXTRA_CA_CERTS", world.path("ca.pem"));
        command.env("OPENCODE_HEADLESS", "1");
        command
    }

    pub(crate) fn run(&self, world: &World, args: &[&str], typed: &str) -> Done {
        let mut command = self.command(world, args);
        let path = world.root().join("typed");
        fs::write(&path, typed).unwrap();
        command.stdin(Stdio::from(fs::File::open(path).unwrap()));
        world.start(command).end()
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the requests that a service received.
pub(crate) fn got(world: &World, name: &str) -> Vec<Value> {
    let log = fs::read_to_string(world.root().join("services.log")).unwrap_or_default();
    log.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|request| request["name"].as_str().unwrap().starts_with(name))
        .collect()
}

#[test]
fn codex_auth_logs_in_and_speaks_to_its_service() {
    let world = world_with(CODEX, []);
    if installed(&world, |_| ()).is_none() {
        return;
    }
    let Some(services) = Services::start(&world) else {
        return;
    };
    granting(
        &world,
        "[plugins.opencode-openai-codex-auth]\nmodel = true\n",
    );
    world.config(json!({ "model": "openai/gpt-5.1", "small_model": "openai/gpt-5.1" }));
    let methods = [
        "auth",
        "login",
        "-p",
        "openai",
        "-m",
        "ChatGPT Plus/Pro (Manual URL Paste)",
    ];
    let login = services.run(&world, &methods, "the-code\n").ok();
    assert!(
        login
            .stderr
            .contains("go to: https://auth.openai.com/oauth/authorize?"),
        "{}",
        login.stderr
    );
    let token = got(&world, "auth.openai.com/oauth/token").remove(0);
    assert!(
        token["body"].as_str().unwrap().contains("code=the-code"),
        "{token}"
    );

    let run = services
        .run(&world, &["run", "what does hello.txt say"], "")
        .ok();
    assert!(
        run.stdout.contains("Codex says hello."),
        "{}\n{}",
        run.stdout,
        run.stderr
    );
    let requests = got(&world, "chatgpt.com/backend-api/codex/responses");
    let turns: Vec<&Value> = requests
        .iter()
        .filter(|r| r["body"]["tools"].is_array())
        .collect();
    assert_eq!(turns.len(), 2, "{requests:#?}");
    let headers = &turns[0]["headers"];
    assert_eq!(headers["chatgpt-account-id"], "acc-1");
    assert!(
        headers["authorization"]
            .as_str()
            .unwrap()
            .starts_with("Bearer e30."),
        "{headers}"
    );
    assert_eq!(turns[0]["body"]["store"], false);
    assert_eq!(turns[0]["body"]["instructions"], "Instructions of Codex.");
    // The reasoning comes back encrypted, the tool's result after the call.
    let kinds: Vec<&str> = turns[1]["body"]["input"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["type"].as_str())
        .filter(|kind| *kind != "message")
        .collect();
    assert_eq!(
        kinds,
        ["reasoning", "function_call", "function_call_output"]
    );
    let tool = world.parts("tool").remove(0);
    assert!(
        tool["state"]["output"]
            .as_str()
            .unwrap()
            .contains("hi there"),
        "{tool}"
    );
}

#[test]
fn gemini_auth_logs_in_and_speaks_to_its_service() {
    let world = world_with(GEMINI, []);
    if installed(&world, |_| ()).is_none() {
        return;
    }
    let Some(services) = Services::start(&world) else {
        return;
    };
    granting(&world, "[plugins.opencode-gemini-auth]\nmodel = true\n");
    world.config(
        json!({ "model": "google/gemini-2.5-pro", "small_model": "google/gemini-2.5-flash" }),
    );
    let login = services
        .run(
            &world,
            &[
                "auth",
                "login",
                "-p",
                "google",
                "-m",
                "OAuth with Google (Gemini CLI)",
            ],
            "the-code\n",
        )
        .ok();
    assert!(
        login
            .stderr
            .contains("go to: https://accounts.google.com/o/oauth2/v2/auth?"),
        "{}",
        login.stderr
    );
    assert_eq!(got(&world, "oauth2.googleapis.com/token").len(), 1);

    let run = services
        .run(&world, &["run", "what does hello.txt say"], "")
        .ok();
    assert!(
        run.stdout.contains("Gemini says hello."),
        "{}\n{}",
        run.stdout,
        run.stderr
    );
    let requests = got(
        &world,
        "cloudcode-pa.googleapis.com/v1internal:streamGenerateContent",
    );
    let turns: Vec<&Value> = requests
        .iter()
        .filter(|r| r["body"]["request"]["tools"].is_array())
        .collect();
    assert_eq!(turns.len(), 2, "{requests:#?}");
    assert_eq!(
        turns[0]["headers"]["authorization"],
        "Bearer google-access-1"
    );
    assert_eq!(turns[0]["body"]["project"], "project-1");
    let contents = turns[1]["body"]["request"]["contents"].as_array().unwrap();
    let call = &contents[contents.len() - 2]["parts"][0];
    assert_eq!(
        (&call["functionCall"]["name"], &call["thoughtSignature"]),
        (&json!("read"), &json!("sig-1"))
    );
    let answer = &contents[contents.len() - 1]["parts"][0]["functionResponse"];
    assert!(
        answer["response"]["content"]
            .as_str()
            .unwrap()
            .contains("hi there"),
        "{answer}"
    );
}
