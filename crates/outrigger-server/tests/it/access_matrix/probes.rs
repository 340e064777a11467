//! Everything that may reveal a file: tools, routes, prompt parts, commands in the sandbox, git, and differences.

use serde_json::{Value, json};

use super::{Case, Faults, Location, Matrix, Victim, changes, processes};
use crate::harness::Harness;
use outrigger_test_support::model::call;

#[derive(Clone, Copy, Debug)]
pub(super) enum Probe {
    /// Tools that take the name of a file.
    Tools,
    /// Tools and routes that list names.
    Names,
    /// Routes that take a file, or search.
    Routes,
    /// Parts and mentions.
    Prompts,
    /// Commands in the sandbox.
    Commands,
    /// Commands that name it to git.
    Git,
    /// Patches of clients.
    Patches,
    /// The changes of a turn, git's view of them, and every route that answers then.
    Differences,
}

/// Tools that are tried here by the names of files, in commands, or that use no files.
const TOOLS: &[(&str, &str)] = &[
    ("apply_patch", "names"),
    ("bash", "commands"),
    ("edit", "names"),
    ("glob", "lists"),
    ("grep", "names"),
    ("invalid", "none"),
    ("lsp", "names"),
    ("python", "commands"),
    ("question", "none"),
    ("read", "names"),
    ("skill", "none"),
    ("table", "names"),
    ("task", "none"),
    ("todowrite", "none"),
    ("webfetch", "none"),
    ("websearch", "none"),
    ("write", "names"),
];

/// A new tool must be tried here.
pub(super) async fn every_tool_is_known(harness: &Harness) {
    let ids = harness
        .ok("GET", "/experimental/tool/ids", Value::Null)
        .await;
    for id in ids.as_array().unwrap() {
        let id = id.as_str().unwrap();
        let known = TOOLS.iter().any(|(name, _)| *name == id);
        assert!(known, "{id} is not tried: how does it come to files?");
    }
}

impl Probe {
    pub(super) async fn run(self, matrix: &Matrix, faults: &mut Faults) {
        match self {
            Self::Tools => tools(matrix, faults).await,
            Self::Names => names(matrix, faults).await,
            Self::Routes => routes(matrix, faults).await,
            Self::Prompts => prompts(matrix, faults).await,
            Self::Commands => processes::commands(matrix, faults).await,
            Self::Git => processes::of_git(matrix, faults).await,
            Self::Patches => changes::by_clients(matrix, faults).await,
            Self::Differences => processes::differences(matrix, faults).await,
        }
    }
}

pub(super) fn patch(lines: &str) -> Value {
    call(
        "apply_patch",
        json!({ "patchText": format!("*** Begin Patch\n{lines}\n*** End Patch") }),
    )
}

pub(super) fn bash(command: &str) -> Value {
    call("bash", json!({ "command": command, "description": "x" }))
}

/// Returns calls of every tool that takes this name, and whether each shows a readable file.
fn calls(victim: &Victim, kind: &str, name: &str) -> Vec<(Value, bool)> {
    let head = victim.head();
    let line = json!({ "filePath": name, "operation": "hover", "line": 1, "character": 1 });
    let mut calls = vec![
        (call("read", json!({ "filePath": name })), true),
        (call("grep", json!({ "pattern": head, "path": name })), true),
    ];
    if matches!(
        kind,
        "relative" | "dots" | "link" | "linked folder" | "hard link"
    ) {
        let edit = json!({ "filePath": name, "oldString": head, "newString": format!("{head}.") });
        calls.extend([
            (call("table", json!({ "path": name })), true),
            (call("lsp", line), false),
            (call("edit", edit), true),
        ]);
    }
    if victim.pattern.is_some() && matches!(kind, "relative" | "link" | "hard link") {
        let join = json!({ "path": name, "on": head.clone() });
        let moved = format!("*** Update File: {name}\n*** Move to: open.txt\n@@\n-{head}\n+x");
        calls.extend([
            (
                call(
                    "table",
                    json!({ "rows": [{ head.clone(): 1 }], "join": join }),
                ),
                false,
            ),
            (
                call(
                    "edit",
                    json!({ "filePath": name, "oldString": "nothing of it", "newString": "x" }),
                ),
                false,
            ),
            (
                patch(&format!("*** Update File: {name}\n@@\n-{head}\n+x")),
                false,
            ),
            (
                call("write", json!({ "filePath": name, "content": "x" })),
                false,
            ),
            (patch(&moved), false),
            (patch(&format!("*** Delete File: {name}")), false),
            (patch(&format!("*** Add File: {name}\n+x")), false),
        ]);
    }
    calls
}

/// A rule that asks is about names; a rule that denies also covers another name of the same file (a hard link).
fn is_about(matrix: &Matrix, victim: &Victim, kind: &str) -> bool {
    let is_named = matches!(
        kind,
        "relative" | "absolute" | "dots" | "link" | "linked folder"
    );
    let is_other_name = victim.what == "hard link" || victim.what.ends_with("link to it");
    matrix.denies() || is_named && !is_other_name
}

/// As in OpenCode, a rule that asks before a file is read does not ask before it is changed.
fn is_asked(matrix: &Matrix, tool: &str) -> bool {
    let changes = ["edit", "write", "apply_patch"].contains(&tool);
    matrix.denies() || matrix.case.permission != "read" || !changes
}

async fn tools(matrix: &Matrix, faults: &mut Faults) {
    let mut made = Vec::new();
    let mut rows = Vec::new();
    for (at, victim) in matrix.victims.iter().enumerate() {
        for (kind, name) in &victim.names {
            if victim.pattern.is_some() && !is_about(matrix, victim, kind) {
                continue;
            }
            for (call, shows) in calls(victim, kind, name) {
                let tool = call["name"].as_str().unwrap().to_owned();
                if victim.pattern.is_none() || is_asked(matrix, &tool) {
                    rows.push((at, *kind, tool, shows));
                    made.push(call);
                }
            }
        }
    }
    let answers = matrix.call(made).await;
    for (n, (at, kind, tool, shows)) in rows.iter().enumerate() {
        let victim = &matrix.victims[*at];
        let is_kept = matrix.keeps(victim);
        if is_kept || *shows {
            faults.hold(victim, &format!("{tool}, {kind}"), is_kept, &answers[&n]);
        }
    }
    for victim in matrix.victims.iter().filter(|it| it.pattern.is_some()) {
        let text = std::fs::read_to_string(&victim.path).unwrap_or_default();
        if text != victim.text() {
            faults
                .0
                .push(format!("{} was changed by a tool: {text}", victim.what));
        }
    }
    // The difference shows what is overwritten or removed.
    let free: Vec<usize> = (0..matrix.victims.len())
        .filter(|at| matrix.victims[*at].pattern.is_none())
        .collect();
    let name = |at: &usize| matrix.victims[*at].name().to_owned();
    for by in ["write", "apply_patch"] {
        let over = |at: &usize| match by {
            "write" => call(
                by,
                json!({ "filePath": name(at), "content": matrix.victims[*at].text() }),
            ),
            _ => patch(&format!("*** Delete File: {}", name(at))),
        };
        let made = free.iter().map(over).collect();
        let answers = matrix.call(made).await;
        for (n, at) in free.iter().enumerate() {
            let victim = &matrix.victims[*at];
            faults.hold(victim, by, false, &answers[&n]);
            std::fs::write(&victim.path, victim.text()).unwrap();
        }
    }
    for victim in matrix.victims.iter().filter(|it| it.pattern.is_none()) {
        // Another file by now, which was removed and created again.
        let hard = matrix
            .harness
            .path(&format!("names/hard-{}.csv", victim.number()));
        std::fs::remove_file(&hard).unwrap();
        std::fs::hard_link(&victim.path, hard).unwrap();
    }
}

async fn names(matrix: &Matrix, faults: &mut Faults) {
    let mut made = Vec::new();
    for victim in &matrix.victims {
        let dir = victim.path.parent().unwrap().display().to_string();
        let mut miss = victim.name().to_owned();
        miss.pop();
        made.extend([
            call("read", json!({ "filePath": dir })),
            call("glob", json!({ "pattern": "*", "path": dir })),
            call("glob", json!({ "pattern": format!("{dir}/*") })),
            call("glob", json!({ "pattern": "**/*", "path": victim.folder })),
            call("read", json!({ "filePath": miss })),
        ]);
    }
    let answers = matrix.call(made).await;
    let by = [
        "read",
        "glob",
        "glob, absolute",
        "glob, above",
        "a name near it",
    ];
    for (at, victim) in matrix.victims.iter().enumerate() {
        for (n, by) in by.iter().enumerate() {
            if *by == "a name near it" && victim.place != Location::Project && !matrix.keeps(victim)
            {
                continue;
            }
            let answer = &answers[&(at * by_len() + n)];
            faults.hold_name(victim, by, matrix.keeps(victim), answer);
        }
    }
    // git sees another file in place of a denied one, so it did not change.
    for path in ["/vcs/status", "/vcs/diff?mode=git"] {
        let answer = matrix.harness.text("GET", path).await;
        for victim in &matrix.victims {
            faults.hold_absent(victim, path, matrix.keeps(victim), true, &answer);
        }
    }
    let (mut parts, mut mentioned) = (Vec::new(), String::new());
    for victim in matrix
        .victims
        .iter()
        .filter(|it| it.place == Location::Project)
    {
        let folder = victim.path.parent().unwrap();
        let from_project = folder.strip_prefix(matrix.harness.path("")).unwrap();
        let query = encode(&victim.file, false);
        for path in [
            format!(
                "/file?path={}",
                encode(from_project.to_str().unwrap(), false)
            ),
            format!("/file?path={}", encode(folder.to_str().unwrap(), false)),
            format!("/find/file?query={query}&limit=200"),
            format!("/find/file?query={query}&dirs=false&type=file"),
            format!("/api/fs/find?query={query}&limit=200"),
        ] {
            let (_, answer) = matrix.harness.call("GET", &path, Value::Null).await;
            faults.hold_name(victim, &path, matrix.keeps(victim), &answer.to_string());
        }
        let url = format!("file://{}", folder.display());
        parts.push(json!({ "type": "file", "mime": "application/x-directory", "filename": "x", "url": url }));
        mentioned.push_str(&format!(" @{}", from_project.display()));
    }
    let published = said_with(&matrix.harness, &parts).await;
    let command = json!({ "command": "look", "arguments": mentioned });
    let session = matrix.harness.session().await;
    matrix
        .harness
        .ok("POST", &format!("/session/{session}/command"), command)
        .await;
    let by_command = matrix.harness.mock.last().texts("user").join("\n");
    for victim in matrix
        .victims
        .iter()
        .filter(|it| it.place == Location::Project)
    {
        let is_kept = matrix.keeps(victim);
        faults.hold_name(victim, "a folder as a part", is_kept, &published);
        faults.hold_name(victim, "a folder that is mentioned", is_kept, &by_command);
    }
}

/// The number of answers that [`names`] gets for each file.
const fn by_len() -> usize {
    5
}

/// Sends a prompt with these parts, and returns what the model received.
async fn said_with(harness: &Harness, parts: &[Value]) -> String {
    let session = harness.session().await;
    let mut all = vec![json!({ "type": "text", "text": "see" })];
    all.extend(parts.iter().cloned());
    let path = format!("/session/{session}/message");
    harness.call("POST", &path, json!({ "parts": all })).await;
    harness.mock.last().texts("user").join("\n")
}

/// Does the same with a prompt without waiting, with a turn of our own client, and with a part that replaces another one.
async fn said_otherwise(harness: &Harness, parts: &[Value]) -> [String; 3] {
    let mut all = vec![json!({ "type": "text", "text": "see once more" })];
    all.extend(parts.iter().cloned());
    let prompt = json!({ "parts": all });
    let sent = || harness.mock.last().texts("user").join("\n");
    let session = harness.session().await;
    let idle = harness.published("session.idle").len();
    let path = format!("/session/{session}/prompt_async");
    harness.ok("POST", &path, prompt.clone()).await;
    harness.sees("session.idle", idle + 1).await;
    let by_nobody = sent();
    let session = harness.session().await;
    let path = format!("/outrigger/session/{session}/turn");
    harness.ok("POST", &path, json!({ "prompt": prompt })).await;
    let by_turn = sent();
    // Every third of them, so that each way of naming a file is included.
    let parts: Vec<&Value> = parts.iter().step_by(3).collect();
    let session = harness.session().await;
    let texts: Vec<Value> = parts
        .iter()
        .map(|_| json!({ "type": "text", "text": "to be rewritten" }))
        .collect();
    let path = format!("/session/{session}/message");
    harness.ok("POST", &path, json!({ "parts": texts })).await;
    let mut by_rewriting = String::new();
    let stored = harness.messages(&session).await[0]["parts"].clone();
    for (n, (part, stored)) in parts.iter().zip(stored.as_array().unwrap()).enumerate() {
        let mut rewritten = stored.clone();
        for key in ["type", "filename", "url"] {
            rewritten[key] = part[key].clone();
        }
        rewritten["mime"] = json!(["text/plain", "image/png"][n % 2]);
        let id = |key: &str| stored[key].as_str().unwrap();
        let (message, id) = (id("messageID"), id("id"));
        let path = format!("/session/{session}/message/{message}/part/{id}");
        let answer = harness.ok("PATCH", &path, rewritten).await;
        by_rewriting.push_str(&answer.to_string());
    }
    harness.prompt(&session, "what is it?").await;
    by_rewriting.push_str(&sent());
    [by_nobody, by_turn, by_rewriting]
}

/// Encodes for a query what must be encoded, or everything.
pub(super) fn encode(text: &str, everything: bool) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    text.bytes()
        .map(|byte| {
            if !everything && plain(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

async fn routes(matrix: &Matrix, faults: &mut Faults) {
    for victim in &matrix.victims {
        let is_kept = matrix.keeps(victim);
        let is_inside = victim.place == Location::Project;
        for (kind, name) in &victim.names {
            let hidden = name.replace("secret", "%73ecret").replace('/', "%2F");
            for (path, shows) in [
                (format!("/file/content?path={}", encode(name, false)), true),
                (format!("/file/content?path={}", encode(name, true)), true),
                (
                    format!("/file/content?path={}%00", encode(name, false)),
                    false,
                ),
                (
                    format!("/file/content?path={}", encode(&hidden, false)),
                    false,
                ),
                (
                    format!("/file/content?path={}", encode(&format!("/{name}"), false)),
                    false,
                ),
            ] {
                // Files outside are shown to no client.
                if is_kept || shows && is_inside {
                    let (_, answer) = matrix.harness.call("GET", &path, Value::Null).await;
                    faults.hold(
                        victim,
                        &format!("{path}, {kind}"),
                        is_kept,
                        &answer.to_string(),
                    );
                }
            }
        }
        if is_kept || is_inside {
            for path in [
                format!("/find?pattern={}", victim.head()),
                format!("/find?pattern={}.*", victim.head()),
            ] {
                let (_, answer) = matrix.harness.call("GET", &path, Value::Null).await;
                faults.hold(victim, &path, is_kept, &answer.to_string());
            }
        }
        let path = format!("/find/symbol?query={}", victim.head());
        let (_, answer) = matrix.harness.call("GET", &path, Value::Null).await;
        faults.hold(victim, &path, true, &answer.to_string());
    }
}

async fn prompts(matrix: &Matrix, faults: &mut Faults) {
    let (mut parts, mut mentioned) = (Vec::new(), String::new());
    for victim in &matrix.victims {
        for (kind, name) in &victim.names {
            if victim.pattern.is_some() && !is_about(matrix, victim, kind) {
                continue;
            }
            let url = if name.starts_with('/') {
                format!("file://{name}")
            } else {
                format!("file://{}/{name}", matrix.harness.path("").display())
            };
            parts
                .push(json!({ "type": "file", "mime": "text/plain", "filename": "x", "url": url }));
            if !name.contains(' ') {
                mentioned.push_str(&format!(" @{name}"));
            }
        }
    }
    let answer = said_with(&matrix.harness, &parts).await;
    let otherwise = said_otherwise(&matrix.harness, &parts).await;
    let session = matrix.harness.session().await;
    let command = json!({ "command": "look", "arguments": mentioned });
    matrix
        .harness
        .ok("POST", &format!("/session/{session}/command"), command)
        .await;
    let by_command = matrix.harness.mock.last().texts("user").join("\n");
    for victim in &matrix.victims {
        let is_kept = matrix.keeps(victim);
        if is_kept || victim.place == Location::Project {
            faults.hold(victim, "a part of a prompt", is_kept, &answer);
            faults.hold(victim, "a part of another prompt", is_kept, &otherwise[0]);
            faults.hold(victim, "a part of a turn", is_kept, &otherwise[1]);
            faults.hold_absent(
                victim,
                "a part that is rewritten",
                is_kept,
                false,
                &otherwise[2],
            );
            faults.hold(victim, "a mention", is_kept, &by_command);
        }
    }
}

/// Checks what the model reads of files that the settings name as instructions.
pub(super) async fn instructions(case: Case, faults: &mut Faults) {
    let matrix = Matrix::with_instructions(case).await;
    said_with(&matrix.harness, &[]).await;
    let system = matrix.harness.mock.last().texts("system").join("\n");
    for victim in &matrix.victims {
        let is_kept = matrix.keeps(victim);
        // The user's own settings name what they ask about.
        if matrix.denies() || !is_kept {
            faults.hold(victim, "instructions", is_kept, &system);
        }
    }
}
