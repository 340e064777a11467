//! Finds what a foreign call names: commands, files and URLs, wherever they are in its arguments.

use serde_json::{Map, Value};

/// Maximum depth of arguments that is searched.
const MAX_DEPTH: usize = 16;
/// Maximum number of names of a call that are asked about.
const MAX_NAMES: usize = 64;
/// Maximum bytes of a text that may be a path.
const MAX_PATH: usize = 4096;

/// The names in a call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) commands: Vec<String>,
    pub(super) files: Vec<String>,
    pub(super) addresses: Vec<String>,
    /// There is more than is searched.
    pub(super) is_too_much: bool,
}

impl Named {
    /// Collects the names in these arguments.
    pub(super) fn of(input: &Value) -> Self {
        let mut named = Self::default();
        named.look("", input, 0);
        named
    }

    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.files.is_empty() && self.addresses.is_empty()
    }

    fn look(&mut self, key: &str, value: &Value, depth: usize) {
        if depth > MAX_DEPTH {
            self.is_too_much = true;
            return;
        }
        match value {
            Value::Object(fields) => self.object(fields, depth),
            Value::Array(list) if is_command(key) && list.iter().all(Value::is_string) => {
                let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
                self.put(Kind::Command, words.join(" "));
            }
            Value::Array(list) => {
                for value in list {
                    self.look(key, value, depth + 1);
                }
            }
            Value::String(text) => {
                if let Some(kind) = kind_of(key, text) {
                    self.put(kind, text.clone());
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn object(&mut self, fields: &Map<String, Value>, depth: usize) {
        // A program and its arguments are one command.
        let words = fields.iter().find_map(|(key, value)| {
            let list = value.as_array().filter(|_| is_arguments(&plain(key)))?;
            Some(list.iter().filter_map(Value::as_str).collect::<Vec<_>>())
        });
        for (key, value) in fields {
            let key = plain(key);
            match (value, &words) {
                (Value::String(program), Some(words)) if is_command(&key) => {
                    let line = [&[program.as_str()], words.as_slice()].concat();
                    self.put(Kind::Command, line.join(" "));
                }
                _ => self.look(&key, value, depth + 1),
            }
        }
    }

    fn put(&mut self, kind: Kind, text: String) {
        let list = match kind {
            Kind::Command => &mut self.commands,
            Kind::File => &mut self.files,
            Kind::Address => &mut self.addresses,
        };
        if list.len() >= MAX_NAMES {
            self.is_too_much = true;
        } else if !list.contains(&text) {
            list.push(text);
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Command,
    File,
    Address,
}

/// Treats `notebook_path`, `notebookPath` and `Notebook-Path` as one name.
fn plain(key: &str) -> String {
    key.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

fn is_command(key: &str) -> bool {
    const KEYS: [&str; 8] = [
        "command", "commands", "cmd", "script", "code", "shell", "exec", "argv",
    ];
    KEYS.contains(&key) || key.ends_with("command") || key.ends_with("commandline")
}

fn is_arguments(key: &str) -> bool {
    ["args", "arguments", "argv", "parameters"].contains(&key)
}

fn kind_of(key: &str, text: &str) -> Option<Kind> {
    let ends = |ends: &[&str]| ends.iter().any(|end| key.ends_with(end));
    let begins = |begins: &[&str]| begins.iter().any(|it| text.starts_with(it));
    if text.is_empty() {
        return None;
    }
    if is_command(key) {
        return Some(Kind::Command);
    }
    if begins(&["http://", "https://", "ws://", "wss://", "ftp://"])
        || (ends(&["url", "urls", "uri", "uris", "address", "href", "endpoint"])
            && !text.starts_with("file:"))
    {
        return Some(Kind::Address);
    }
    let is_line = text.len() <= MAX_PATH && !text.contains('\n');
    let is_path = is_line && begins(&["/", "~", "./", "../", "file:"]);
    let of_files = [
        "path",
        "paths",
        "file",
        "files",
        "filename",
        "dir",
        "directory",
        "folder",
        "cwd",
        "workdir",
        "uri",
    ];
    (is_path || ends(&of_files)).then_some(Kind::File)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_call_names_is_found_wherever_it_stands() {
        let of = |input: Value| {
            let Named {
                commands,
                files,
                addresses,
                ..
            } = Named::of(&input);
            [commands, files, addresses].map(|it| it.join(", "))
        };
        for (input, commands, files, addresses) in [
            (json!({ "command": "ls" }), "ls", "", ""),
            (
                json!({ "job": { "steps": [{ "run_command": "rm -r x" }] } }),
                "rm -r x",
                "",
                "",
            ),
            (json!({ "cmd": ["git", "push"] }), "git push", "", ""),
            (
                json!({ "command": "git", "args": ["push", "-f"] }),
                "git push -f",
                "",
                "",
            ),
            (
                json!({ "edits": [{ "notebookPath": "a.ipynb" }, { "file": "b" }] }),
                "",
                "a.ipynb, b",
                "",
            ),
            (json!({ "files": ["a", "b"] }), "", "a, b", ""),
            (
                json!({ "x": { "y": "/etc/passwd" } }),
                "",
                "/etc/passwd",
                "",
            ),
            (
                json!({ "x": "file:///etc/passwd" }),
                "",
                "file:///etc/passwd",
                "",
            ),
            (
                json!({ "to": [{ "what": "https://x.test/" }, { "base_url": "x" }] }),
                "",
                "",
                "https://x.test/, x",
            ),
            (json!({ "plan": "first", "n": 1, "ok": true }), "", "", ""),
        ] {
            assert_eq!(of(input.clone()), [commands, files, addresses], "{input}");
        }
    }

    #[test]
    fn more_than_is_looked_at_is_said() {
        let mut deep = json!({ "command": "rm" });
        for _ in 0..40 {
            deep = json!([deep]);
        }
        let many: Vec<String> = (0..100).map(|n| format!("/f{n}")).collect();
        assert!(Named::of(&deep).is_too_much);
        assert!(Named::of(&json!({ "files": many })).is_too_much);
        assert!(!Named::of(&json!({ "file": "a" })).is_too_much);
    }
}
