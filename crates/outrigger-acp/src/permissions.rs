//! Permission questions in the editor.

use std::path::Path;

use outrigger_client::{Asker, Display};
use outrigger_jsonrpc::Peer;
use outrigger_protocol::permission::{CALL, HOOK_REASON, PermissionRequest, Reply};
use serde_json::{Value, json};

use crate::updates::calls;
use crate::updates::patches;

/// Columns of a question's text.
const COLUMNS: usize = 100;
/// Maximum characters of the patterns in the name of an answer.
const MAX_PATTERNS: usize = 80;

/// Creates the request for a question. `session` is the editor's: the question may come from a subagent.
pub(crate) fn question(session: &str, request: &PermissionRequest, folder: &Path) -> Value {
    let called = request.metadata.get(CALL);
    let tool = called.and_then(|call| call["tool"].as_str());
    let input = input_of(request, called);
    let id = request.tool.as_ref();
    let id = id.map_or(request.id.as_str(), |it| it.call_id.as_str());
    let kind = tool.unwrap_or(&request.permission);
    let display = Display::of(request, false);
    let files = patches::files(request, tool);
    let mut content = diffs(request, tool, &files, folder);
    // In full, and in our frame, so that untrusted text cannot imitate ours. A change without another party's text is shown as a
    // diff alone; one that moves files is not, since editors differ in what they show of a file without a change.
    let is_said = !content.is_empty()
        && files.iter().all(|file| file.to.is_none())
        && request.provenance.is_plain()
        && request.metadata.get(HOOK_REASON).is_none();
    content.extend((!is_said).then(|| frame(&display)));
    let mut call = json!({
        "toolCallId": id, "status": "pending", "kind": calls::kind(kind),
        "title": match patches::title(&files, folder) {
            Some(title) => title,
            None => title(request, tool, &input, &display, folder),
        },
        "content": content,
    });
    let locations = if files.is_empty() {
        calls::locations(kind, &input, folder)
    } else {
        patches::locations(&files, folder)
    };
    if !locations.is_empty() {
        call["locations"] = json!(locations);
    }
    if let Some(input) = calls::input_of(&input).filter(|it| it.is_object()) {
        call["rawInput"] = input;
    }
    json!({ "sessionId": session, "toolCall": call, "options": answers(request) })
}

/// Returns the arguments of the call. For a change only the file, since the diff shows the rest.
fn input_of(request: &PermissionRequest, called: Option<&Value>) -> Value {
    let input = called.map_or(&Value::Null, |call| &call["input"]);
    match (&input, request.metadata["filepath"].as_str()) {
        (Value::Null, Some(path)) => json!({ "filePath": path }),
        _ => input.clone(),
    }
}

/// Renders the question as in the terminal.
fn frame(display: &Display) -> Value {
    calls::text_block(&calls::fenced(&display.frame().whole(COLUMNS)))
}

/// Returns the call if it asks for itself, otherwise what it asks for.
fn title(
    request: &PermissionRequest,
    tool: Option<&str>,
    input: &Value,
    display: &Display,
    folder: &Path,
) -> String {
    match tool.filter(|tool| *tool == request.permission || calls::kind(tool) == "edit") {
        Some(tool) => calls::title(tool, input, None, folder),
        None => {
            let what = display.what();
            let mut letters = what.chars();
            let first = letters.next().map(|it| it.to_uppercase().to_string());
            format!("{}{}?", first.unwrap_or_default(), letters.as_str())
        }
    }
}

/// Returns the proposed changes, as reported by our own tools. A moved file is a removed one and a new one.
fn diffs(
    request: &PermissionRequest,
    tool: Option<&str>,
    files: &[patches::File<'_>],
    folder: &Path,
) -> Vec<Value> {
    if !patches::is_ours(request, tool) {
        return Vec::new();
    }
    let diff = request.metadata["diff"].as_str().unwrap_or_default();
    let whole = [(diff, None)];
    let patches: Vec<(&str, Option<&str>)> =
        files.iter().map(|file| (file.patch, file.to)).collect();
    let patches = if files.is_empty() {
        whole.as_slice()
    } else {
        patches.as_slice()
    };
    let mut blocks = Vec::new();
    for (diff, to) in patches {
        for it in patches::changes(diff) {
            let path = folder.join(it.path);
            match to {
                Some(to) => {
                    blocks.push(calls::diff_block(&path, it.before.as_deref(), ""));
                    blocks.push(calls::diff_block(&folder.join(to), None, &it.after));
                }
                None => blocks.push(calls::diff_block(&path, it.before.as_deref(), &it.after)),
            }
        }
    }
    blocks
}

/// Returns the possible answers, under OpenCode's names.
fn answers(request: &PermissionRequest) -> Vec<Value> {
    let answer =
        |id: &str, name: &str, kind: &str| json!({ "optionId": id, "name": name, "kind": kind });
    let mut all = vec![answer("once", "Allow once", "allow_once")];
    if !request.always.is_empty() {
        let patterns = request.always.join(", ");
        let name = match (&request.missing_grant, patterns.as_str()) {
            (Some(lacks), _) => {
                let plugin = outrigger_terminal::brief(&lacks.name, MAX_PATTERNS);
                format!(
                    "Allow, and grant {plugin} `{}` until Outrigger ends",
                    lacks.grant
                )
            }
            (None, "*") => "Always allow".to_owned(),
            (None, patterns) => {
                let patterns = outrigger_terminal::brief(patterns, MAX_PATTERNS);
                format!("Always allow {patterns}")
            }
        };
        all.push(answer("always", &name, "allow_always"));
    }
    all.push(answer("reject", "Reject", "reject_once"));
    all
}

/// Interprets an answer. Anything but an offered yes is a no.
pub(crate) fn reply(request: &PermissionRequest, answer: &Value) -> Reply {
    match answer["outcome"]["optionId"].as_str() {
        Some("once") => Reply::Once,
        Some("always") if !request.always.is_empty() => Reply::Always,
        _ => Reply::Reject,
    }
}

/// Asks a question, and passes the answer on.
pub(crate) async fn ask(peer: Peer, asker: Asker, question: Value, request: PermissionRequest) {
    let reply = match peer.request("session/request_permission", &question).await {
        Ok(answer) => reply(&request, &answer),
        Err(error) => {
            tracing::warn!("[acp] a permission question was not answered: {error}");
            Reply::Reject
        }
    };
    asker.answer(&request.id, reply).await;
}
