//! Other vendors' agents, the real programs, do one task through the server: they read a file, change it, run a test and are refused a command.
//! Their models are an imitation of four HTTP APIs on loopback (`tests/agents`).

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use outrigger_test_support::Running;
use serde_json::{Value, json};

use super::conversations::Client;
use crate::support::*;

/// Where `cargo xtask setup` installs the programs.
const INSTALLED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.work/agents");
/// The versions of the programs, and the imitation of their models.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/agents");

/// An agent at the task.
struct Agent {
    executor: &'static str,
    /// Its program in `node_modules`, by the kind of machine.
    programs: &'static [&'static str],
    /// The next prompt, too.
    resumes: bool,
    /// Rules of the user. One that cannot ask is allowed changes, and no commands.
    rules: fn() -> Value,
}

/// A person is asked about each change and each command.
fn asking() -> Value {
    json!({ "edit": "ask", "bash": "ask" })
}

const CLAUDE: Agent = Agent {
    executor: "claude",
    programs: &[
        "@anthropic-ai/claude-code-linux-x64/claude",
        "@anthropic-ai/claude-code-linux-arm64/claude",
    ],
    resumes: true,
    rules: asking,
};
const CODEX: Agent = Agent {
    executor: "codex",
    programs: &["@openai/codex/bin/codex.js"],
    resumes: true,
    rules: asking,
};
const GEMINI: Agent = Agent {
    executor: "gemini",
    programs: &["@google/gemini-cli/bundle/gemini.js"],
    resumes: true,
    rules: || json!({ "edit": "allow", "bash": "ask" }),
};
const ACP_GEMINI: Agent = Agent {
    executor: "acp:gemini --acp",
    resumes: false,
    rules: asking,
    ..GEMINI
};
const ACP_OPENCODE: Agent = Agent {
    executor: "acp:opencode acp",
    programs: &["opencode-linux-x64-baseline/bin/opencode"],
    resumes: false,
    rules: asking,
};

impl Agent {
    fn name(&self) -> &str {
        let words = self.executor.trim_start_matches("acp:");
        words.split(' ').next().unwrap()
    }

    /// The program; `None` where it is not installed, which is said.
    fn program(&self) -> Option<PathBuf> {
        // An install that was given up half-way leaves no stamp.
        let read = |path: PathBuf| std::fs::read_to_string(path).ok();
        let lock = read(Path::new(SOURCES).join("package-lock.json"));
        let is_installed = lock.is_some() && lock == read(Path::new(INSTALLED).join(".installed"));
        let modules = Path::new(INSTALLED).join("node_modules");
        let mut paths = self.programs.iter().map(|it| modules.join(it));
        let found = paths.find(|it| is_installed && it.is_file());
        if found.is_none() {
            skip(&format!(
                "{} is not installed (cargo xtask setup installs it)",
                self.name()
            ));
        }
        found
    }
}

/// A project with the task, its agent on `PATH`, and the imitation of its model.
struct Task {
    world: World,
    /// Ends with the test.
    _model: Running,
    url: String,
}

impl Task {
    #[expect(
        clippy::disallowed_methods,
        reason = "a test starts a program as a user would"
    )]
    fn of(agent: &Agent, program: &Path) -> Self {
        let world = World::new([]);
        world.file("calc.txt", "one\n");
        world.file("test.sh", "grep -q two calc.txt && echo passed\n");
        world.file("keep/kept.txt", "kept\n");
        let log = world.root().join("requests.jsonl");
        let imitation = format!("{SOURCES}/model.mjs");
        let words = [
            imitation.as_str(),
            world.project().to_str().unwrap(),
            log.to_str().unwrap(),
        ]
        .map(str::to_owned);
        let words = words.each_ref().map(String::as_str);
        let model = world.start(world.prepare(Command::new("node"), &words));
        let port = || {
            model
                .stdout()
                .trim()
                .strip_prefix("model on ")
                .map(str::to_owned)
        };
        assert!(
            wait_until(WAIT_TIMEOUT, || port().is_some()),
            "{}",
            model.stderr()
        );
        let url = format!("http://127.0.0.1:{}", port().unwrap());
        let options = json!({ "baseURL": format!("{url}/v1") });
        world.config(json!({ "permission": (agent.rules)(), "provider": { "mock": { "options": options } } }));
        let task = Self {
            world,
            _model: model,
            url,
        };
        task.install(agent.name(), program);
        task.sign_in();
        task
    }

    /// Puts the program on `PATH`.
    fn install(&self, name: &str, program: &Path) {
        let bin = self.world.root().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        let program = program.canonicalize().unwrap();
        let node = if program.extension().is_some() {
            "node "
        } else {
            ""
        };
        let script = format!("#!/bin/sh\nexec {node}'{}' \"$@\"\n", program.display());
        std::fs::write(bin.join(name), script).unwrap();
        std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// What each reads of its home folder to find its model, or has there once it was started by itself. OpenCode reads the project's
    /// `opencode.json`, as we do.
    fn sign_in(&self) {
        let codex = format!(
            "model = \"gpt-5.5\"\nmodel_provider = \"imitation\"\n[model_providers.imitation]\nname = \"Imitation\"\nbase_url = \"{}/v1\"\nenv_key = \"OPENAI_API_KEY\"\nwire_api = \"responses\"\n",
            self.url
        );
        let gemini = json!({
            "security": { "auth": { "selectedType": "gemini-api-key" } }, "privacy": { "usageStatisticsEnabled": false },
            "general": { "enableAutoUpdate": false },
        });
        // What runs in the sandbox of commands reaches no service of this machine that its user does not name.
        let port = self.url.rsplit(':').next().unwrap();
        let ours = format!("[tools]\nports = [{port}]\n");
        for (name, text) in [
            (".codex/config.toml", codex),
            (".gemini/settings.json", gemini.to_string()),
            (".config/outrigger/outrigger.toml", ours),
            (".config/opencode/.gitignore", "node_modules\n".to_owned()),
            (".config/opencode/opencode.jsonc", "{}\n".to_owned()),
            (".local/share/opencode/repos/.keep", String::new()),
            (".cache/opencode/bin/.keep", String::new()),
        ] {
            let file = self.world.home().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
    }

    fn serve(&self) -> Server {
        let mut command = self
            .world
            .command(&["serve", "--port", &free_port(), "--no-auth"]);
        let path = std::env::var("PATH").unwrap();
        let bin = self.world.root().join("bin");
        command.env("PATH", format!("{}:{path}", bin.display()));
        for (name, value) in [
            ("ANTHROPIC_API_KEY", "sk-ant-imitation"),
            ("ANTHROPIC_BASE_URL", &self.url),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("OPENAI_API_KEY", "sk-imitation"),
            ("GEMINI_API_KEY", "imitation"),
            ("GOOGLE_GEMINI_BASE_URL", &self.url),
        ] {
            command.env(name, value);
        }
        self.world.serve_with(command)
    }

    fn requests(&self) -> Vec<Value> {
        let text =
            std::fs::read_to_string(self.world.root().join("requests.jsonl")).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// Sends a prompt and answers what is asked until the turn is over: nothing may be removed. What was asked.
fn prompt(server: &Server, session: &str, agent: &Agent, text: &str) -> Vec<String> {
    let mut events = server.follow("/outrigger/v1/stream", &[]);
    events.until("connected");
    let parts = json!([{ "type": "text", "text": text }]);
    let body = json!({ "parts": parts, "executor": agent.executor });
    server.post(&format!("/session/{session}/prompt_async"), &body);
    let mut asked = Vec::new();
    let mut is_busy = false;
    loop {
        let event = events.next().unwrap();
        match kind(&event) {
            "asked" => {
                let request = &event["waiting"]["request"];
                let text = request.to_string();
                let reply = if text.contains("rm -r") {
                    "reject"
                } else {
                    "once"
                };
                asked.push(format!(
                    "{} {reply}",
                    request["permission"].as_str().unwrap()
                ));
                let id = request["id"].as_str().unwrap();
                let path = format!("/outrigger/v1/permission/{id}/reply");
                server.post(&path, &json!({ "reply": reply })).json(200);
            }
            "status" if event["status"] == "busy" => is_busy = true,
            "status" if is_busy && event["status"] == "idle" => return asked,
            _ => {}
        }
    }
}

/// The one form: what a conversation has for each line that the agent printed.
fn shown(world: &World, entries: &[Value]) -> String {
    let mut shown = String::new();
    for entry in entries {
        let message = &entry["message"];
        let words = |value: &Value| world.plain(&value.to_string());
        let kind = message["messageType"].as_str().unwrap();
        let content = words(&message["content"]);
        shown += &match kind {
            "tool_execution" => {
                let metadata = &message["metadata"];
                let of = |key: &str| words(&metadata[key]);
                let failed = if metadata["is_error"] == true {
                    ", failed"
                } else {
                    ""
                };
                let unasked = if metadata["executor"]["unasked"] == true {
                    ", unasked"
                } else {
                    ""
                };
                let details = words(&metadata["details"]);
                format!(
                    "{kind} {}{failed}{unasked}: {content}\n  {}\n  {details}\n",
                    of("tool_name"),
                    of("input")
                )
            }
            "step" => "step\n".to_owned(),
            _ => format!("{kind} {}: {content}\n", message["role"].as_str().unwrap()),
        };
    }
    shown
}

/// Reads a file, changes it, runs a test, is refused a command, and goes on with its session.
fn does_the_task(agent: &Agent) {
    let Some(program) = agent.program() else {
        return;
    };
    let task = Task::of(agent, &program);
    let world = &task.world;
    let server = task.serve();
    let session = server
        .post("/session", &json!({ "title": "The task" }))
        .json(200)["id"]
        .clone();
    let session = session.as_str().unwrap();
    let mut clients = [Client::new(true), Client::new(false)];
    let mut streams = clients.each_ref().map(|it| it.open(&server, session));
    let asked = prompt(&server, session, agent, "Change one to two");
    let mut stored = Vec::new();
    for (client, stream) in clients.iter_mut().zip(&mut streams) {
        stored.push(client.stored(&server, session));
        let stored = stored.last().unwrap();
        // E5: the difference between live and stored is empty.
        client.until(stream, |client| client.entries.values().eq(stored));
        assert!(stored.iter().all(|it| it["state"] == "done"), "{stored:?}");
    }
    let name = agent.executor.trim_start_matches("acp:").replace(' ', "_");
    let seen = shown(world, &stored[0]);
    let seen = format!("asked: {}\n{seen}", asked.join(", "));
    insta::assert_snapshot!(name, seen);
    assert_eq!(world.read("calc.txt"), "two\n");
    assert!(world.path("keep/kept.txt").exists());
    came_in_pieces(&clients[0]);

    if !agent.resumes {
        return;
    }
    // The next prompt goes on with the vendor's session: its model reads the first one again.
    let before = task.requests().len();
    prompt(&server, session, agent, "And now?");
    let requests = task.requests();
    let new = requests.iter().skip(before).map(Value::to_string);
    let mut answered = new.filter(|it| it.contains("And now?"));
    let goes_on = answered.any(|it| it.contains("Change one to two"));
    let last = client_end(&server, session);
    assert!(goes_on, "{last}");
    drop(server);
    world.verify();
}

/// What was written as it came is what is stored. How many words come at once is a matter of time; that some came one by one is none.
fn came_in_pieces(client: &Client) {
    let mut most = 0;
    for (key, pieces) in &client.pieces {
        let entry = &client.entries[key]["message"];
        assert!(
            entry["content"]
                .as_str()
                .unwrap()
                .starts_with(&pieces.concat()),
            "{pieces:?} {entry}"
        );
        most = most.max(pieces.len());
    }
    assert!(most > 1, "{:?}", client.pieces);
}

/// The last thing that was said, for the message of a test that fails.
fn client_end(server: &Server, session: &str) -> String {
    let stored = Client::new(true).stored(server, session);
    stored.last().map(Value::to_string).unwrap_or_default()
}

#[test]
fn claude_code_does_the_task() {
    does_the_task(&CLAUDE);
}

#[test]
fn codex_does_the_task() {
    does_the_task(&CODEX);
}

#[test]
fn gemini_cli_does_the_task() {
    does_the_task(&GEMINI);
}

#[test]
fn gemini_cli_does_the_task_over_acp() {
    does_the_task(&ACP_GEMINI);
}

#[test]
fn opencode_does_the_task_over_acp() {
    does_the_task(&ACP_OPENCODE);
}
