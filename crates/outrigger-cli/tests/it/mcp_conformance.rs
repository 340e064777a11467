//! The MCP project's own conformance suite against the client: each client scenario starts a server and has [`the_client`] use it with
//! `outrigger mcp auth` and `outrigger run`, as a user would.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::support::*;

/// The suite, if `cargo xtask setup` has installed it.
const SUITE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../.work/conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js"
);
/// The number of scenarios that run at the same time.
const AT_ONCE: usize = 3;
/// It measures when a stream is reopened with its own clock, which a busy machine delays.
const TIMED: &str = "sse-retry";
const TRIES: usize = 3;

/// Every client scenario of version 0.1.16.
const SCENARIOS: [&str; 26] = [
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    TIMED,
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
    "auth/2025-03-26-oauth-metadata-backcompat",
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
    "auth/client-credentials-jwt",
    "auth/client-credentials-basic",
    "auth/cross-app-access-complete-flow",
];

/// Runs the suite with these arguments. Returns `None` if it is not installed, or if there is no Bun to run it.
#[expect(
    clippy::disallowed_methods,
    reason = "a test starts another project's program"
)]
pub(crate) fn suite() -> Option<Command> {
    if !PathBuf::from(SUITE).is_file() {
        skip_npm("the MCP conformance suite is not installed (cargo xtask setup installs it)");
        return None;
    }
    let mut command = Command::new(bun_or_skip()?);
    command.arg(SUITE);
    Some(command)
}

fn scenario(name: &str) -> Option<Output> {
    let exe = std::env::current_exe().unwrap();
    let client = format!(
        "{} mcp_conformance::the_client --exact --ignored --nocapture",
        exe.display()
    );
    let mut command = suite()?;
    command.args(["client", "--timeout", "120000", "--scenario", name]);
    Some(command.args(["--command", &client]).output().unwrap())
}

#[test]
fn every_client_scenario_passes() {
    if suite().is_none() {
        return;
    }
    let listed = suite().unwrap().args(["list", "--client"]).output();
    let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
    for line in listed
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- "))
    {
        let name = line.split(' ').next().unwrap();
        assert!(
            SCENARIOS.contains(&name),
            "a scenario that is not run: {name}"
        );
    }
    let waiting = Mutex::new(SCENARIOS.to_vec());
    let failed = Mutex::new(Vec::new());
    let next = || waiting.lock().unwrap().pop();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(name) = next() {
                    let tries = if name == TIMED { TRIES } else { 1 };
                    let run = || scenario(name).unwrap();
                    let mut output = run();
                    for _ in 1..tries {
                        if !output.status.success() {
                            output = run();
                        }
                    }
                    if !output.status.success() {
                        let said = String::from_utf8_lossy(&output.stderr).into_owned();
                        failed.lock().unwrap().push(format!("== {name}\n{said}"));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Not a test: the client that the suite starts, with the address of its server as the last argument.
#[test]
#[ignore = "the suite starts it"]
fn the_client() {
    let Ok(scenario) = std::env::var("MCP_CONFORMANCE_SCENARIO") else {
        return;
    };
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "{}".to_owned());
    let context: Value = serde_json::from_str(&context).unwrap();
    let url = std::env::args().next_back().unwrap();
    let client = Client::new(&url, &scenario, &context);
    match scenario.as_str() {
        "initialize" => client.is_connected(),
        "elicitation-sep1034-client-defaults" => client.fills_in_forms(),
        name if name.starts_with("auth/") => client.logs_in(&context),
        _ => drop(client.calls()),
    }
}

struct Client {
    world: World,
}

impl Client {
    fn new(url: &str, scenario: &str, context: &Value) -> Self {
        let (tool, arguments) = match scenario {
            "tools_call" => ("m_add_numbers", json!({"a": 5, "b": 3})),
            "elicitation-sep1034-client-defaults" => {
                ("m_test_client_elicitation_defaults", json!({}))
            }
            TIMED => ("m_test_reconnection", json!({})),
            _ => ("m_test-tool", json!({})),
        };
        // Each run is a separate session, and calls the tool.
        let turns = [turn([call(tool, arguments)]), done()];
        let world = World::with(Mock::new(turns).by_results());
        let mut oauth = json!({"callbackPort": free_port().parse::<u16>().unwrap()});
        for (key, name) in [("clientId", "client_id"), ("clientSecret", "client_secret")] {
            if context[name].is_string() {
                oauth[key] = context[name].clone();
            }
        }
        let entry = json!({"type": "remote", "url": url, "oauth": oauth, "timeout": 30_000});
        world.config(json!({"mcp": {"m": entry}}));
        let client = Self { world };
        client.set_up(url, scenario, context);
        client
    }

    /// Writes the user's login settings to `outrigger.toml`.
    fn set_up(&self, url: &str, scenario: &str, context: &Value) {
        let file = |name: &str, text: &Value| {
            let path = self.world.home().join(name);
            std::fs::write(&path, text.as_str().unwrap()).unwrap();
            path.display().to_string()
        };
        let text = match scenario {
            "auth/basic-cimd" => {
                "client_metadata_url = \"https://conformance-test.local/client-metadata.json\""
                    .to_owned()
            }
            "auth/client-credentials-jwt" => format!(
                "url = {url:?}\nclient_credentials = true\nprivate_key_file = {:?}",
                file("key.pem", &context["private_key_pem"])
            ),
            "auth/client-credentials-basic" => {
                format!("url = {url:?}\nclient_credentials = true")
            }
            "auth/cross-app-access-complete-flow" => format!(
                "url = {url:?}\n[mcp.m.identity_provider]\ntoken_endpoint = {}\nclient_id = {}\nid_token_file = {:?}",
                context["idp_token_endpoint"],
                context["idp_client_id"],
                file("id_token", &context["idp_id_token"])
            ),
            _ => return,
        };
        let folder = self.world.home().join(".config/outrigger");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("outrigger.toml"), format!("[mcp.m]\n{text}\n")).unwrap();
    }

    fn is_connected(&self) {
        let list = self.world.cli(&["mcp", "list", "--json"]).ok().json();
        assert_eq!(list[0]["state"], "connected", "{list}");
    }

    /// Calls the tool and returns its answer.
    fn calls(&self) -> String {
        let done = self.world.run(&["go"]);
        let results = self.world.mock.last().texts("tool");
        results
            .last()
            .cloned()
            .unwrap_or_else(|| format!("{}{}", done.stdout, done.stderr))
    }

    /// Logs in if the user must, and again as long as the client says that it helps.
    fn logs_in(&self, context: &Value) {
        let by_itself = context["private_key_pem"].is_string()
            || context["idp_id_token"].is_string()
            || std::env::var("MCP_CONFORMANCE_SCENARIO")
                .is_ok_and(|name| name.contains("client-credentials"));
        if !by_itself {
            self.opens_browser();
        }
        for _ in 0..5 {
            let answer = self.calls();
            if !answer.contains("wants a login with more rights") {
                assert_eq!(answer, "test");
                return;
            }
            self.opens_browser();
        }
    }

    /// Runs `outrigger mcp auth`, with a browser in which the user agrees.
    fn opens_browser(&self) {
        let command = self.world.command(&["mcp", "auth", "m"]);
        let running = self.world.start(command);
        let mut address = None;
        wait_until(WAIT_TIMEOUT, || {
            let stdout = running.stdout();
            let mut lines = stdout.lines().map(str::trim);
            address = lines
                .find(|line| line.starts_with("http"))
                .map(str::to_owned);
            address.is_some() || running.is_over()
        });
        if let Some(address) = address {
            let back = located(&address);
            located(&back);
        }
        running.end().ok();
    }

    /// The user answers a form with its defaults, over a server as used by clients with a screen.
    fn fills_in_forms(&self) {
        let server = self.world.serve(&["--no-auth"]);
        let session = server.post("/session", &json!({})).json(200);
        let id = session["id"].as_str().unwrap();
        let prompt = json!({"parts": [{"type": "text", "text": "go"}]});
        server.post(&format!("/session/{id}/prompt_async"), &prompt);
        let mut asked = Value::Null;
        wait_until(WAIT_TIMEOUT, || {
            asked = server.get("/question").json(200);
            asked[0].is_object()
        });
        let fields = asked[0]["questions"].as_array().unwrap().len();
        let answers = vec![Vec::<String>::new(); fields];
        let path = format!("/question/{}/reply", asked[0]["id"].as_str().unwrap());
        server.post(&path, &json!({"answers": answers})).json(200);
        wait_until(WAIT_TIMEOUT, || {
            let results = self.world.mock.last().texts("tool");
            results
                .iter()
                .any(|text| text.contains("Elicitation completed"))
        });
    }
}

/// Returns the redirect target of a page.
fn located(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, target) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host.replace("localhost", "127.0.0.1"))
        .or_else(|_| TcpStream::connect(host))
        .unwrap();
    write!(
        stream,
        "GET /{target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let mut lines = answer.lines();
    lines
        .find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("location")
                .then(|| value.trim().to_owned())
        })
        .unwrap_or_default()
}

/// Features of the suite's own test server that a coding agent lacks: tools that answer with certain bytes, resources, prompts with
/// named arguments, its own requests.
const NOT_OFFERED: [&str; 17] = [
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-with-logging",
    "tools-call-with-progress",
    "tools-call-sampling",
    "tools-call-elicitation",
    "json-schema-2020-12",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "resources-subscribe",
    "resources-unsubscribe",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
];

/// Provides tools and a prompt with the names that the suite uses, from a plugin and a command.
fn with_fixtures() -> World {
    let world = World::new([done()]);
    world.plugin(
        "fixtures",
        "const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='
         const file = (mime, data) => ({ output: '', attachments: [{ type: 'file', mime, url: `data:${mime};base64,${data}` }] })
         export const P = async () => ({
           tool: {
             test_simple_text: { description: 'Text', args: {}, execute: async () => 'This is a simple text response for testing.' },
             test_image_content: { description: 'Image', args: {}, execute: async () => file('image/png', PNG) },
             test_audio_content: { description: 'Audio', args: {}, execute: async () => file('audio/wav', 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=') },
             test_error_handling: { description: 'Fails', args: {}, execute: async () => { throw new Error('This tool intentionally returns an error for testing') } },
           },
         })",
    );
    let prompt =
        json!({"template": "This is a simple prompt for testing.", "description": "Simple"});
    world.config(json!({"command": {"test_simple_prompt": prompt}}));
    world
}

#[test]
fn server_scenarios_pass_for_what_is_served() {
    let Some(mut suite) = suite() else { return };
    let world = with_fixtures();
    let port = free_port();
    let args = ["mcp", "serve", "--port", &port, "--no-auth"];
    let running = world.start(world.command(&args));
    let listens = wait_until(WAIT_TIMEOUT, || {
        running.stdout().contains("listening") || running.is_over()
    });
    assert!(listens && !running.is_over(), "{}", running.stderr());
    let expected: String = NOT_OFFERED.iter().map(|it| format!("  - {it}\n")).collect();
    let expected = world.file("expected.yml", &format!("server:\n{expected}"));
    let url = format!("http://127.0.0.1:{port}/mcp");
    suite.args([
        "server",
        "--suite",
        "all",
        "--url",
        &url,
        "--expected-failures",
    ]);
    let output = suite.arg(expected).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let more = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{more}");
}
