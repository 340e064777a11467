//! Tools by the names, and their arguments by the keys, that commands in Claude Code's form know.

use std::path::Path;

use serde_json::{Map, Value};

/// Ours, theirs. A tool that is not in here goes by its own name and keys.
const TOOLS: &[(&str, &str)] = &[
    ("bash", "Bash"),
    ("read", "Read"),
    ("write", "Write"),
    ("edit", "Edit"),
    ("multiedit", "MultiEdit"),
    ("glob", "Glob"),
    ("grep", "Grep"),
    ("list", "LS"),
    ("webfetch", "WebFetch"),
    ("websearch", "WebSearch"),
    ("task", "Task"),
    ("todowrite", "TodoWrite"),
    ("todoread", "TodoRead"),
    ("skill", "Skill"),
    ("question", "AskUserQuestion"),
];
/// Tools of ours that they have not, and whose guards they would be let through by.
const MORE: &[(&str, &[&str])] = &[
    ("apply_patch", &["Edit", "Write", "MultiEdit"]),
    ("patch", &["Edit", "Write", "MultiEdit"]),
    // With `to` it writes a file.
    ("table", &["Write"]),
    ("python", &["Bash"]),
    // Its newer name there.
    ("task", &["Agent"]),
];
/// Keys of arguments: ours, theirs.
const KEYS: &[(&str, &str)] = &[
    ("filePath", "file_path"),
    ("oldString", "old_string"),
    ("newString", "new_string"),
    ("replaceAll", "replace_all"),
];

/// What a tool is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// Told to the command.
    pub(crate) told: String,
    /// A matcher may mean it by any of these.
    pub(crate) all: Vec<String>,
}

/// A bundled tool of ours by the name that commands in Claude Code's form know; others keep theirs.
#[must_use]
pub fn known_as(tool: &str) -> &str {
    let theirs = TOOLS.iter().find(|(ours, _)| *ours == tool);
    theirs.map_or(tool, |(_, theirs)| theirs)
}

/// The names of a tool; `servers` are those of the MCP servers, as they stand in front of their tools' names.
pub(crate) fn names(tool: &str, servers: &[String]) -> Names {
    let theirs = TOOLS.iter().find(|(ours, _)| *ours == tool);
    let told = match theirs {
        Some((_, theirs)) => (*theirs).to_owned(),
        None => mcp(tool, servers).unwrap_or_else(|| tool.to_owned()),
    };
    let mut all = vec![told.clone()];
    if told != tool {
        all.push(tool.to_owned());
    }
    let more = MORE.iter().find(|(ours, _)| *ours == tool);
    all.extend(
        more.iter()
            .flat_map(|(_, more)| more.iter().map(|&name| name.to_owned())),
    );
    Names { told, all }
}

/// `mcp__server__tool` of `server_tool`. Of two servers that fit, the one with the longer name.
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

/// Arguments as commands know them. Paths are absolute there.
pub(crate) fn to_theirs(tool: &str, args: &Value, cwd: &Path) -> Value {
    let renamed = rename(tool, args, |key| {
        let pair = KEYS.iter().find(|(ours, _)| *ours == key);
        pair.map(|(_, theirs)| *theirs)
            .or((tool == "grep" && key == "include").then_some("glob"))
    });
    let mut renamed = renamed;
    if let Value::Object(fields) = &mut renamed {
        match tool {
            // Guards look at the command, and at the file.
            "python" => {
                let script = fields.get("script").and_then(Value::as_str);
                let command = format!("python3 -c {}", quoted(script.unwrap_or_default()));
                fields.insert("command".to_owned(), Value::String(command));
            }
            "table" => {
                let to = fields.get("to").and_then(Value::as_str);
                if let Some(path) = to.map(|to| cwd.join(to).to_string_lossy().into_owned()) {
                    fields.insert("file_path".to_owned(), Value::String(path));
                }
            }
            _ => {}
        }
    }
    if is_bundled(tool)
        && let Some(path @ Value::String(_)) = renamed.get_mut("file_path")
        && let Some(absolute) = path.as_str().map(|path| cwd.join(path))
    {
        *path = Value::String(absolute.to_string_lossy().into_owned());
    }
    renamed
}

/// As a word of a shell's.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Arguments that a command has written, as the tool knows them.
pub(crate) fn to_ours(tool: &str, args: &Value) -> Value {
    rename(tool, args, |key| {
        let pair = KEYS.iter().find(|(_, theirs)| *theirs == key);
        pair.map(|(ours, _)| *ours)
            .or((tool == "grep" && key == "glob").then_some("include"))
    })
}

/// In the object, and in those of a list `edits`.
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
            ("git_hub_list", vec!["mcp__git_hub__list", "git_hub_list"]),
            ("git_log", vec!["mcp__git__log", "git_log"]),
            ("git_", vec!["git_"]),
            ("mine", vec!["mine"]),
            (
                "apply_patch",
                vec!["apply_patch", "Edit", "Write", "MultiEdit"],
            ),
        ] {
            assert_eq!(names(tool, &servers).all, all);
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
