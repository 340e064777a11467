//! Mapping of tools and arguments to the names and keys that commands in Claude Code's form know.

use std::path::Path;

use serde_json::{Map, Value};

/// Outrigger's name and Claude Code's. Other tools keep their own names and keys.
const TOOLS: &[(&str, &str)] = &[
    ("bash", "Bash"),
    ("read", "Read"),
    ("write", "Write"),
    ("edit", "Edit"),
    ("multiedit", "MultiEdit"),
    ("glob", "Glob"),
    ("grep", "Grep"),
    ("list", "LS"),
    ("lsp", "LSP"),
    ("webfetch", "WebFetch"),
    ("websearch", "WebSearch"),
    ("task", "Task"),
    ("todowrite", "TodoWrite"),
    ("todoread", "TodoRead"),
    ("skill", "Skill"),
    ("question", "AskUserQuestion"),
];
/// Tools with the same effect as these, to which the guards of these apply too.
const MORE: &[(&str, &[&str])] = &[
    ("apply_patch", &["Edit", "Write", "MultiEdit"]),
    ("patch", &["Edit", "Write", "MultiEdit"]),
    ("table", &["Read", "Write"]),
    ("python", &["Bash"]),
    // Its newer name there.
    ("task", &["Agent"]),
];
/// Keys of arguments: Outrigger's and Claude Code's.
const KEYS: &[(&str, &str)] = &[
    ("filePath", "file_path"),
    ("oldString", "old_string"),
    ("newString", "new_string"),
    ("replaceAll", "replace_all"),
];

/// A call as a command in Claude Code's form knows it. A call with the effects of several tools there becomes several.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClaudeCall {
    /// Names of the tool, any of which a matcher may match. The first is shown.
    pub(crate) names: Vec<String>,
    pub(crate) input: Value,
    /// A key of `input` that the tool does not have, so changes to it have no effect.
    pub(crate) made: Option<&'static str>,
}

/// Information about tools besides their names.
pub(crate) struct ToolInfo<'a> {
    /// The MCP servers, as they prefix the names of their tools.
    pub(crate) servers: &'a [String],
    /// The working folder.
    pub(crate) cwd: &'a Path,
    pub(crate) patched: &'a dyn Fn(&str) -> Option<Files>,
}

/// The files of a patch, and whether each is created.
type Files = Vec<(String, bool)>;

/// Returns a call with the names and keys that guards look for: `python` becomes a command, and a patch or `table` each file
/// that it reads or writes.
pub(crate) fn known(tool: &str, args: &Value, around: &ToolInfo<'_>) -> Vec<ClaudeCall> {
    let call = Call {
        names: names(tool, around.servers),
        input: to_theirs(tool, args, around.cwd),
        cwd: around.cwd,
    };
    let all = match tool {
        "python" => {
            let script = text(args.get("script")).unwrap_or_default();
            let command = format!("python3 -c {}", quoted(&script));
            vec![call.shown_as("Bash", call.names.clone(), "command", command)]
        }
        "apply_patch" | "patch" => {
            let patch = text(args.get("patchText"));
            let files = patch.and_then(|patch| (around.patched)(&patch));
            call.patch(files.unwrap_or_default())
        }
        "table" => call.table(tool, args),
        _ => Vec::new(),
    };
    if !all.is_empty() {
        return all;
    }
    vec![ClaudeCall {
        names: call.names,
        input: call.input,
        made: None,
    }]
}

/// A call with the names and keys that commands know.
struct Call<'a> {
    names: Vec<String>,
    input: Value,
    cwd: &'a Path,
}

impl Call<'_> {
    /// Returns the call under a displayed name, with a key that its tool does not have.
    fn shown_as(
        &self,
        shown: &str,
        names: Vec<String>,
        key: &'static str,
        value: String,
    ) -> ClaudeCall {
        let mut input = self.input.clone();
        if let Some(fields) = input.as_object_mut() {
            fields.insert(key.to_owned(), Value::String(value));
        }
        let others = names.into_iter().filter(|name| name != shown);
        ClaudeCall {
            names: std::iter::once(shown.to_owned()).chain(others).collect(),
            input,
            made: Some(key),
        }
    }

    /// Returns the call as its effect on one file.
    fn file(&self, shown: &str, names: Vec<String>, path: &str) -> ClaudeCall {
        let path = self.cwd.join(path).to_string_lossy().into_owned();
        self.shown_as(shown, names, "file_path", path)
    }

    fn patch(&self, files: Files) -> Vec<ClaudeCall> {
        let shown = |is_new: bool| if is_new { "Write" } else { "Edit" };
        files
            .into_iter()
            .map(|(path, is_new)| self.file(shown(is_new), self.names.clone(), &path))
            .collect()
    }

    fn table(&self, tool: &str, args: &Value) -> Vec<ClaudeCall> {
        let joined = args.get("join").and_then(|join| join.get("path"));
        let files = [
            ("Read", text(args.get("path"))),
            ("Read", text(joined)),
            ("Write", text(args.get("to"))),
        ];
        // It does one thing to each file, so the guards of the other are not called.
        let names = |shown: &str| vec![shown.to_owned(), tool.to_owned()];
        files
            .into_iter()
            .filter_map(|(shown, path)| Some(self.file(shown, names(shown), &path?)))
            .collect()
    }
}

/// Returns a text that is not empty.
fn text(value: Option<&Value>) -> Option<String> {
    let text = value.and_then(Value::as_str);
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Returns Claude Code's name of a bundled tool; others keep theirs.
#[must_use]
pub fn known_as(tool: &str) -> &str {
    let theirs = TOOLS.iter().find(|(ours, _)| *ours == tool);
    theirs.map_or(tool, |(_, theirs)| theirs)
}

/// Returns the tools of Claude Code whose guards apply to a bundled tool.
#[must_use]
pub fn guarded_as(tool: &str) -> Vec<&'static str> {
    let same = TOOLS.iter().filter(|(ours, _)| *ours == tool);
    let more = MORE.iter().filter(|(ours, _)| *ours == tool);
    same.map(|(_, theirs)| *theirs)
        .chain(more.flat_map(|(_, more)| more.iter().copied()))
        .collect()
}

/// Returns the names of a tool; `servers` are the prefixes of the MCP servers' tools.
pub(crate) fn names(tool: &str, servers: &[String]) -> Vec<String> {
    let shown = match known_as(tool) {
        known if known != tool => known.to_owned(),
        _ => mcp(tool, servers).unwrap_or_else(|| tool.to_owned()),
    };
    let mut all = vec![shown];
    let more = std::iter::once(tool).chain(guarded_as(tool));
    for name in more {
        if !all.iter().any(|known| known == name) {
            all.push(name.to_owned());
        }
    }
    all
}

/// Returns `mcp__server__tool` for `server_tool`. Of two matching servers, the one with the longer name is used.
fn mcp(tool: &str, servers: &[String]) -> Option<String> {
    let fits = servers.iter().filter_map(|server| {
        let rest = tool.strip_prefix(server.as_str())?.strip_prefix('_')?;
        (!rest.is_empty()).then_some((server, rest))
    });
    let (server, rest) = fits.max_by_key(|(server, _)| server.len())?;
    Some(format!("mcp__{server}__{rest}"))
}

fn is_bundled(tool: &str) -> bool {
    TOOLS.iter().any(|(ours, _)| *ours == tool)
}

/// Converts arguments to Claude Code's form. Paths are absolute there.
fn to_theirs(tool: &str, args: &Value, cwd: &Path) -> Value {
    let mut renamed = rename(tool, args, |key| {
        KEYS.iter()
            .find(|(ours, _)| *ours == key)
            .map(|(_, theirs)| *theirs)
            .or((tool == "grep" && key == "include").then_some("glob"))
    });
    if is_bundled(tool)
        && let Some(path @ Value::String(_)) = renamed.get_mut("file_path")
        && let Some(absolute) = path.as_str().map(|path| cwd.join(path))
    {
        *path = Value::String(absolute.to_string_lossy().into_owned());
    }
    renamed
}

/// Quotes a text as a shell word.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Converts arguments that a command has written to the tool's form.
pub(crate) fn to_ours(tool: &str, args: &Value) -> Value {
    rename(tool, args, |key| {
        KEYS.iter()
            .find(|(_, theirs)| *theirs == key)
            .map(|(ours, _)| *ours)
            .or((tool == "grep" && key == "glob").then_some("include"))
    })
}

/// Renames keys in the object, and in those of a list `edits`.
fn rename(tool: &str, args: &Value, name: impl Fn(&str) -> Option<&'static str> + Copy) -> Value {
    let Value::Object(fields) = args else {
        return args.clone();
    };
    if !is_bundled(tool) {
        return args.clone();
    }
    let renamed = fields.iter().map(|(key, value)| {
        let value = match (key.as_str(), value) {
            ("edits", Value::Array(edits)) => {
                Value::Array(edits.iter().map(|edit| rename(tool, edit, name)).collect())
            }
            _ => value.clone(),
        };
        (name(key).unwrap_or(key).to_owned(), value)
    });
    Value::Object(renamed.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tools_go_by_both_names() {
        let servers = ["git".to_owned(), "git_hub".to_owned()];
        for (tool, all) in [
            ("bash", vec!["Bash", "bash"]),
            ("todowrite", vec!["TodoWrite", "todowrite"]),
            ("task", vec!["Task", "task", "Agent"]),
            ("python", vec!["python", "Bash"]),
            ("table", vec!["table", "Read", "Write"]),
            ("git_hub_list", vec!["mcp__git_hub__list", "git_hub_list"]),
            ("git_log", vec!["mcp__git__log", "git_log"]),
            ("git_", vec!["git_"]),
            ("mine", vec!["mine"]),
            (
                "apply_patch",
                vec!["apply_patch", "Edit", "Write", "MultiEdit"],
            ),
        ] {
            assert_eq!(names(tool, &servers), all);
        }
    }

    /// Tools with the same effect are shown under Claude Code's names, once for each file.
    #[test]
    fn other_tools_are_shown_as_theirs() {
        let patched = |patch: &str| {
            let files = patch
                .split(' ')
                .map(|path| (path.to_owned(), path == "new"));
            (patch != "unreadable").then(|| files.collect())
        };
        let around = ToolInfo {
            servers: &[],
            cwd: Path::new("/p"),
            patched: &patched,
        };
        let patch = |text: &str| ("apply_patch", json!({ "patchText": text }));
        for ((tool, args), want) in [
            (
                ("python", json!({"script": "print('a')"})),
                vec![("Bash python", r"command: python3 -c 'print('\''a'\'')'")],
            ),
            (
                (
                    "table",
                    json!({"path": "a.csv", "join": {"path": "/b.csv"}, "to": "c.csv"}),
                ),
                vec![
                    ("Read table", "file_path: /p/a.csv"),
                    ("Read table", "file_path: /b.csv"),
                    ("Write table", "file_path: /p/c.csv"),
                ],
            ),
            (
                ("table", json!({"rows": [], "to": "c.csv"})),
                vec![("Write table", "file_path: /p/c.csv")],
            ),
            (
                ("table", json!({"rows": []})),
                vec![("table Read Write", "")],
            ),
            (
                patch("old new"),
                vec![
                    ("Edit apply_patch Write MultiEdit", "file_path: /p/old"),
                    ("Write apply_patch Edit MultiEdit", "file_path: /p/new"),
                ],
            ),
            (
                patch("unreadable"),
                vec![("apply_patch Edit Write MultiEdit", "")],
            ),
            (("bash", json!({"command": "ls"})), vec![("Bash bash", "")]),
        ] {
            let all = known(tool, &args, &around);
            let all = all.iter().map(|one| {
                let made = one
                    .made
                    .map(|key| format!("{key}: {}", one.input[key].as_str().unwrap()));
                // The input is included.
                for (key, value) in args.as_object().unwrap() {
                    assert_eq!(one.input[key], *value);
                }
                (one.names.join(" "), made.unwrap_or_default())
            });
            let all: Vec<_> = all.collect();
            let want: Vec<_> = want
                .into_iter()
                .map(|(names, made)| (names.to_owned(), made.to_owned()))
                .collect();
            assert_eq!(all, want, "{args}");
        }
    }

    #[test]
    fn arguments_there_and_back() {
        let cwd = Path::new("/p");
        for (tool, ours, theirs, back) in [
            (
                "edit",
                json!({"filePath": "a", "oldString": "x", "newString": "y", "replaceAll": true}),
                json!({"file_path": "/p/a", "old_string": "x", "new_string": "y", "replace_all": true}),
                json!({"filePath": "/p/a", "oldString": "x", "newString": "y", "replaceAll": true}),
            ),
            (
                "grep",
                json!({"pattern": "x", "include": "*.rs"}),
                json!({"pattern": "x", "glob": "*.rs"}),
                json!({"pattern": "x", "include": "*.rs"}),
            ),
            (
                "multiedit",
                json!({"filePath": "/a", "edits": [{"oldString": "x"}]}),
                json!({"file_path": "/a", "edits": [{"old_string": "x"}]}),
                json!({"filePath": "/a", "edits": [{"oldString": "x"}]}),
            ),
            // A plugin's tool has its own keys.
            (
                "mine",
                json!({"filePath": "a", "file_path": "b"}),
                json!({"filePath": "a", "file_path": "b"}),
                json!({"filePath": "a", "file_path": "b"}),
            ),
        ] {
            assert_eq!(to_theirs(tool, &ours, cwd), theirs);
            assert_eq!(to_ours(tool, &theirs), back);
        }
    }
}
