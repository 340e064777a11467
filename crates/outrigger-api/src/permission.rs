//! The display of a permission question: the whole call, who wants it, and all that an answer allows. Built only here, for the page,
//! the terminal, the command line and editors, which only lay it out. The texts are untrusted: each client must make control
//! characters and invisible ones visible.

use outrigger_protocol::permission::{CALL, HOOK_REASON, PermissionRequest};
use outrigger_protocol::permission_names::{DOOM_LOOP, EXTERNAL_DIRECTORY};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Our permissions and tools. Other names are text of a plugin or server.
const OURS: [&str; 19] = [
    "apply_patch",
    "bash",
    DOOM_LOOP,
    "edit",
    EXTERNAL_DIRECTORY,
    "glob",
    "grep",
    "list",
    "lsp",
    "python",
    "question",
    "read",
    "skill",
    "table",
    "task",
    "todowrite",
    "webfetch",
    "websearch",
    "write",
];
/// A command that runs outside its sandbox.
pub const OUTSIDE: &str = "sandbox";
/// Arguments of our tools that are not relevant to users, or that another fact contains.
const UNSHOWN: [&str; 2] = ["timeout", "description"];

/// A permission question as users see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownPermission {
    /// The question, in our own words; for a foreign permission its name.
    pub title: String,
    /// In the order in which they are read.
    pub facts: Vec<Fact>,
}

/// A text with a label of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// At most eight characters. `command` is a command line, `change` a unified diff.
    pub name: String,
    /// Untrusted text, of one or several lines.
    pub text: String,
}

impl ShownPermission {
    /// Builds the display of a request.
    #[must_use]
    pub fn of(request: &PermissionRequest) -> Self {
        let mut facts = Facts::default();
        call(request, &mut facts);
        facts.add("always", always(request));
        Self {
            title: title(&request.permission).to_owned(),
            facts: facts.0,
        }
    }
}

/// Returns whether a permission or tool is ours, so that its name may appear in our own sentence.
#[must_use]
pub fn is_ours(name: &str) -> bool {
    OURS.contains(&name) || name == OUTSIDE
}

fn title(permission: &str) -> &str {
    match permission {
        "apply_patch" => "Change files",
        "bash" => "Run a command",
        DOOM_LOOP => "Make the same call again",
        "edit" => "Change a file",
        EXTERNAL_DIRECTORY => "Leave the project folder",
        "glob" => "Find files by name",
        "grep" => "Search in files",
        "list" => "List a folder",
        "lsp" => "Ask a language server",
        "python" => "Run Python code",
        "question" => "Ask you a question",
        "read" => "Read a file",
        "skill" => "Load a skill",
        "table" => "Work with a table",
        "task" => "Start a subagent",
        "todowrite" => "Change the todo list",
        "webfetch" => "Fetch a page",
        "websearch" => "Search the web",
        "write" => "Write a file",
        OUTSIDE => "Run a command outside of the sandbox, with all your rights",
        other => other,
    }
}

#[derive(Default)]
struct Facts(Vec<Fact>);

impl Facts {
    /// Adds a text, unless it is empty.
    fn add(&mut self, name: &str, text: impl Into<String>) {
        let (name, text) = (name.to_owned(), text.into());
        if !text.trim_end_matches('\n').is_empty() {
            self.0.push(Fact { name, text });
        }
    }
}

/// Returns what "always" would allow.
fn always(request: &PermissionRequest) -> String {
    request
        .always
        .iter()
        .map(|pattern| match pattern.as_str() {
            "*" => "all calls of this kind",
            pattern => pattern,
        })
        .collect::<Vec<_>>()
        .join("\n")
}

/// Adds the whole call.
fn call(request: &PermissionRequest, facts: &mut Facts) {
    let text = |key: &str| request.metadata[key].as_str().unwrap_or_default();
    let called = request.metadata.get(CALL);
    let tool = called.and_then(|call| call["tool"].as_str());
    if !request.provenance.is_plain() {
        facts.add("by", request.provenance.to_string());
    }
    facts.add("because", text(HOOK_REASON));
    let is_outside = request.permission == OUTSIDE;
    if is_outside {
        facts.add("because", text("reason"));
    }
    if tool.is_some_and(|tool| tool != request.permission) || !is_ours(&request.permission) {
        facts.add("tool", tool.unwrap_or(&request.permission));
    }
    effect(request, called, facts);
    if is_outside {
        facts.add("printed", text("output"));
    }
}

/// Adds the subject of the question: the command, the diff or the arguments.
fn effect(request: &PermissionRequest, called: Option<&Value>, facts: &mut Facts) {
    let text = |key: &str| request.metadata[key].as_str().unwrap_or_default();
    let tool = called.and_then(|call| call["tool"].as_str());
    let is_ours = is_ours(tool.unwrap_or(&request.permission));
    let input = called.map_or(&request.metadata["input"], |call| &call["input"]);
    let command = match tool {
        Some("bash") => input["command"].as_str(),
        // What a foreign question calls a command is not what runs.
        None if is_ours => Some(text("command")),
        _ => None,
    };
    let command = command.filter(|command| !command.is_empty());
    let patterns = request.patterns.join("\n");
    if command.is_none_or(|command| command != patterns) && patterns != "*" {
        facts.add(about(&request.permission), patterns);
    }
    if let Some(command) = command {
        facts.add("command", command);
        facts.add("folder", input["workdir"].as_str().unwrap_or_default());
        facts.add("program", programs(request.metadata.get("programs")));
    }
    // The metadata of a plugin's question are its own words.
    if !is_ours {
        facts.add("with", arguments(input, &[]));
        facts.add("says", said(&request.metadata, called.is_none()));
        return;
    }
    facts.add("unclear", text("unclear"));
    facts.add("moves", moves(&request.metadata));
    facts.add("change", without_index(text("diff")));
    if command.is_none() && text("diff").is_empty() {
        facts.add("with", arguments(input, &UNSHOWN));
    }
}

/// Returns a diff without its `Index: FILE` lines and the rules below them: the next line names the same file. No line of a
/// file's content starts like this.
fn without_index(diff: &str) -> String {
    let lines: Vec<&str> = diff.split_inclusive('\n').collect();
    let index = |n: usize| lines.get(n)?.strip_prefix("Index: ").map(str::trim_end);
    let is_rule = |n: usize| {
        let line = lines.get(n).map(|it| it.trim_end()).unwrap_or_default();
        !line.is_empty() && line.bytes().all(|it| it == b'=')
    };
    let names = |n: usize, file: &str| {
        let line = lines.get(n).and_then(|it| it.strip_prefix("--- "));
        line.is_some_and(|it| it.split('\t').next().map(str::trim_end) == Some(file))
    };
    let is_header = |n: usize| index(n).is_some_and(|file| is_rule(n + 1) && names(n + 2, file));
    let kept = lines
        .iter()
        .enumerate()
        .filter(|(n, _)| !is_header(*n) && !n.checked_sub(1).is_some_and(is_header));
    kept.map(|(_, line)| *line).collect()
}

/// Returns what the patterns of a permission are.
fn about(permission: &str) -> &'static str {
    match permission {
        "bash" => "runs",
        EXTERNAL_DIRECTORY => "outside",
        "edit" | "read" | "list" => "file",
        "webfetch" => "address",
        "websearch" => "query",
        "task" => "agent",
        _ => "about",
    }
}

/// Returns the resolved programs of the command that do not belong to the system.
fn programs(found: Option<&Value>) -> String {
    found
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns the files that a patch moves, each as `SOURCE → DESTINATION`. The diff names the source only.
fn moves(metadata: &Value) -> String {
    metadata["files"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|file| {
            let from = file["filePath"].as_str()?.replace('\n', "␊");
            let to = file["movePath"].as_str()?.replace('\n', "␊");
            Some(format!("{from} → {to}"))
        })
        .collect::<Vec<_>>()
        .join("\n")
}

/// Lists arguments by name. A text of several lines is indented below its name, so that it cannot pass for another argument.
fn arguments(input: &Value, unshown: &[&str]) -> String {
    let fields = input
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| !unshown.contains(&key.as_str()));
    fields
        .map(|(key, value)| {
            let key = key.replace('\n', "␊");
            match value.as_str() {
                Some(text) if text.contains('\n') => {
                    let lines: String = text.lines().map(|line| format!("\n    {line}")).collect();
                    format!("{key}:{lines}")
                }
                Some(text) => format!("{key}: {text}"),
                None => format!("{key}: {value}"),
            }
        })
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns a plugin's own text about its question. Without a call, its input is a separate fact.
fn said(metadata: &Value, has_input: bool) -> String {
    let mut metadata = metadata.clone();
    if let Some(fields) = metadata.as_object_mut() {
        fields.remove(CALL);
        fields.remove(HOOK_REASON);
        if has_input {
            fields.remove("input");
        }
    }
    arguments(&metadata, &[])
}

#[cfg(test)]
mod tests {
    use outrigger_protocol::id::{PermissionId, SessionId};
    use outrigger_protocol::provenance::{Actor, Deed, Provenance};
    use serde_json::json;

    use super::*;

    fn request(permission: &str, patterns: &[&str], metadata: Value) -> PermissionRequest {
        PermissionRequest {
            id: PermissionId("per_1".into()),
            session_id: SessionId("ses_1".into()),
            permission: permission.into(),
            patterns: patterns.iter().map(|it| (*it).to_owned()).collect(),
            always: Vec::new(),
            metadata,
            tool: None,
            provenance: Provenance::default(),
            missing_grant: None,
        }
    }

    #[track_caller]
    fn shows(request: &PermissionRequest, want: &[(&str, &str)]) {
        let shown = ShownPermission::of(request);
        let facts: Vec<_> = (shown.facts.iter())
            .map(|fact| (fact.name.as_str(), fact.text.as_str()))
            .collect();
        assert_eq!(facts, want);
    }

    #[test]
    fn who_wants_a_call_and_who_changed_it_stands_beside_what_runs() {
        let input = json!({ "command": "npm test; rm -r x", "workdir": "sub", "timeout": 5 });
        let metadata = json!({
            HOOK_REASON: "it needs a look",
            CALL: { "tool": "bash", "input": input },
            "programs": ["npm is /home/me/bin/npm"],
        });
        let mut request = request("bash", &["npm test", "rm -r x"], metadata);
        request.always = vec!["npm *".into(), "*".into()];
        request.provenance = Provenance::prompted(Actor::User).with(
            Actor::plugin(&"acme".into()),
            Deed::Changed,
            None,
        );
        assert_eq!(ShownPermission::of(&request).title, "Run a command");
        shows(
            &request,
            &[
                ("by", "user prompted, plugin acme changed"),
                ("because", "it needs a look"),
                ("runs", "npm test\nrm -r x"),
                ("command", "npm test; rm -r x"),
                ("folder", "sub"),
                ("program", "npm is /home/me/bin/npm"),
                ("always", "npm *\nall calls of this kind"),
            ],
        );
    }

    /// With a call or without one.
    #[test]
    fn what_a_plugin_says_of_its_question_is_not_what_runs() {
        let own = json!({ "command": "ls", "diff": "+harmless", "programs": ["/bin/ls"] });
        let said = "command: ls\ndiff: +harmless\nprograms: [\"/bin/ls\"]";
        let mut called = own.clone();
        called[CALL] = json!({ "tool": "mine", "input": { "url": "http://x" } });
        let mut input = own;
        input["input"] = json!({ "url": "http://x" });
        for (permission, tool, metadata) in [("bash", "mine", called), ("deploy", "deploy", input)]
        {
            let about = if permission == "bash" {
                "runs"
            } else {
                "about"
            };
            shows(
                &request(permission, &["rm -rf ."], metadata),
                &[
                    ("tool", tool),
                    (about, "rm -rf ."),
                    ("with", "url: http://x"),
                    ("says", said),
                ],
            );
        }
    }

    /// Every question about a tool of ours is in words, not in the tool's name.
    #[test]
    fn the_title_of_our_own_questions_says_what_happens() {
        for name in OURS.iter().copied().chain([OUTSIDE]) {
            assert_ne!(title(name), name);
        }
        assert_eq!(title("shell_run"), "shell_run");
    }

    #[test]
    fn a_diff_is_shown_without_the_lines_that_repeat_its_file() {
        let whole = "Index: /p/a\n===\n--- /p/a\t(old)\n+++ /p/a\n@@ -1 +1 @@\n-x\n+y\n";
        let short = "--- /p/a\t(old)\n+++ /p/a\n@@ -1 +1 @@\n-x\n+y\n";
        assert_eq!(without_index(&whole.repeat(2)), short.repeat(2));
        // Nothing else is left out.
        for other in [
            "Index: /p/a\n===\n--- /p/b\n",
            "Index: /p/a\n--- /p/a\n",
            "===\n",
            "+Index: x\n",
        ] {
            assert_eq!(without_index(other), other);
        }
    }

    /// The diff of a move names its source only.
    #[test]
    fn a_patch_that_moves_a_file_says_where_to() {
        let files = json!([
            { "filePath": "/p/notes.md", "movePath": "/p/Makefile", "type": "move" },
            { "filePath": "/p/a", "type": "update" },
            { "filePath": "/p/b\nc", "movePath": "/p/d", "type": "move" },
        ]);
        let metadata = json!({ "files": files, "diff": "+x", CALL: { "tool": "apply_patch" } });
        let mut asked = request("edit", &["notes.md", "Makefile"], metadata);
        let moves = "/p/notes.md → /p/Makefile\n/p/b␊c → /p/d";
        let (tool, file) = (("tool", "apply_patch"), ("file", "notes.md\nMakefile"));
        shows(&asked, &[tool, file, ("moves", moves), ("change", "+x")]);
        // A plugin's tool cannot say so.
        asked.metadata[CALL] = json!({ "tool": "mine", "input": {} });
        let shown = ShownPermission::of(&asked);
        assert!(shown.facts.iter().all(|fact| fact.name != "moves"));
    }

    #[test]
    fn no_argument_of_anothers_tool_is_left_out_and_none_passes_for_two() {
        let input =
            json!({ "a: 1\nurl": "http://x", "description": "rm", "timeout": 1, "z": "1\nurl: y" });
        let metadata = json!({ CALL: { "tool": "shell_run", "input": input } });
        let asked = request("shell_run", &["*"], metadata);
        let with = "a: 1␊url: http://x\ndescription: rm\ntimeout: 1\nz:\n    1\n    url: y";
        shows(&asked, &[("tool", "shell_run"), ("with", with)]);
        assert_eq!(ShownPermission::of(&asked).title, "shell_run");
    }
}
