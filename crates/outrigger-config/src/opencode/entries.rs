//! Agents, commands and modes from Markdown files of a config folder.

use std::path::Path;

use outrigger_schema::child;
use serde_json::{Map, Value, json};

use crate::load::links::{LEADS_OUT, Links};
use crate::opencode::check;
use crate::opencode::markdown::{self, Markdown};
use crate::opencode::normalize;
use crate::origin::{Position, Positions, last_key};
use crate::{ConfigError, ConfigProblem, paths};

/// One file's entry, as a layer of the configuration.
pub(crate) struct Entry {
    /// `{"agent": {name: {…}}}` or `{"command": {name: {…}}}`.
    pub(crate) value: Value,
    /// Positions in the file.
    pub(crate) positions: Positions,
    /// The file.
    pub(crate) path: std::path::PathBuf,
}

/// Kind of file.
struct Kind {
    folders: [&'static str; 2],
    recursive: bool,
    section: &'static str,
    body: &'static str,
    /// Agents from `mode` folders are primary ones, and an invalid one is skipped instead of being an error.
    mode: bool,
}

const KINDS: &[Kind] = &[
    Kind {
        folders: ["command", "commands"],
        recursive: true,
        section: "command",
        body: "template",
        mode: false,
    },
    Kind {
        folders: ["agent", "agents"],
        recursive: true,
        section: "agent",
        body: "prompt",
        mode: false,
    },
    Kind {
        folders: ["mode", "modes"],
        recursive: false,
        section: "agent",
        body: "prompt",
        mode: true,
    },
];

/// All entries of a config folder, in the order in which OpenCode merges them: commands, agents, modes.
///
/// # Errors
/// `config.type` for an agent or command with a key of the wrong type, `config.read`. A file whose YAML cannot be read
/// is skipped and reported in `problems`, as in OpenCode; so is a link of the project that leads out of it.
pub(crate) fn read(
    folder: &Path,
    links: &Links,
    problems: &mut Vec<ConfigProblem>,
) -> Result<Vec<Entry>, ConfigError> {
    let mut out = Vec::new();
    for kind in KINDS {
        for name in kind.folders {
            let root = folder.join(name);
            for path in paths::files_below(&root, kind.recursive, &|path| {
                paths::has_extension(path, &["md"])
            }) {
                if links.lead_out(&path) {
                    problems.push(ConfigProblem {
                        file: path.display().to_string(),
                        pointer: None,
                        message: format!("{LEADS_OUT}; skipped"),
                    });
                    continue;
                }
                out.extend(entry(kind, &root, &path, problems)?);
            }
        }
    }
    Ok(out)
}

fn entry(
    kind: &Kind,
    root: &Path,
    path: &Path,
    problems: &mut Vec<ConfigProblem>,
) -> Result<Option<Entry>, ConfigError> {
    let file = path.display().to_string();
    let Some(text) = paths::read_if_fit(path, problems)? else {
        return Ok(None);
    };
    let Markdown {
        mut data,
        positions: keys,
        body,
    } = match markdown::parse(&text) {
        Ok(markdown) => markdown,
        Err(message) => {
            problems.push(ConfigProblem {
                file,
                pointer: None,
                message: format!("{message}; skipped"),
            });
            return Ok(None);
        }
    };
    let name = match data.shift_remove("name") {
        Some(Value::String(name)) => name,
        _ => name_of(root, path),
    };
    let pointer = child(&child("", kind.section), &name);
    let mut value = kind.document(name, data, &body);
    let mut positions: Positions = keys
        .iter()
        .map(|(key, at)| (child(&pointer, &last_key(key)), *at))
        .collect();
    positions.insert(String::new(), Position { line: 1, column: 1 });
    if let Some(wrong) = check::document(&value).into_iter().next() {
        if kind.mode {
            let wrong = wrong.problem(&file);
            let message = format!("{}, and the mode with it", wrong.message);
            problems.push(ConfigProblem { message, ..wrong });
            return Ok(None);
        }
        return Err(wrong.error(&file, &positions));
    }
    problems.extend(check::unknown::keys(&value, &file, &positions)?);
    normalize::file(&mut value, &mut positions);
    Ok(Some(Entry {
        value,
        positions,
        path: path.into(),
    }))
}

impl Kind {
    /// Returns the form of such a file in `opencode.json`.
    fn document(&self, name: String, data: Map<String, Value>, body: &str) -> Value {
        let mut members = Map::new();
        if self.section == "agent" {
            members.insert("name".into(), name.clone().into());
        }
        members.extend(data);
        members.insert(self.body.into(), body.trim().into());
        if self.mode {
            members.insert("mode".into(), "primary".into());
        }
        json!({ self.section: { name: members } })
    }
}

/// Returns the name of a file: `agent/a/b.md` is `a/b`.
fn name_of(root: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(root).unwrap_or(path).with_extension("");
    let parts: Vec<String> = relative
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn names_and_bodies() {
        let dir = folder(&[
            (
                "agent/nested/one.md",
                "---\ndescription: d\nmode: subagent\ntools:\n  bash: false\nfoo: 3\n---\n\nBody here\n",
            ),
            ("agents/v1.2.md", "no front matter"),
            (
                "command/a/b.md",
                "---\ndescription: cmd\nagent: build\n---\nDo $ARGUMENTS\n",
            ),
            ("commands/.hidden/c.md", "---\nname: renamed\n---\nx"),
            ("modes/m.md", "---\ndescription: m\n---\nmode prompt"),
            ("modes/deep/not.md", "x"),
            ("agent/readme.txt", "x"),
        ]);
        let mut problems = Vec::new();
        let seen: Vec<String> = read(dir.path(), &Links::default(), &mut problems)
            .unwrap()
            .iter()
            .map(|entry| entry.value.to_string())
            .collect();
        assert!(problems.is_empty());
        insta::assert_snapshot!(seen.join("\n"), @r#"
        {"command":{"a/b":{"description":"cmd","agent":"build","template":"Do $ARGUMENTS"}}}
        {"command":{"renamed":{"template":"x"}}}
        {"agent":{"nested/one":{"name":"nested/one","description":"d","mode":"subagent","tools":{"bash":false},"foo":3,"prompt":"Body here","options":{"foo":3},"permission":{"bash":"deny"}}}}
        {"agent":{"v1.2":{"name":"v1.2","prompt":"no front matter","options":{},"permission":{}}}}
        {"agent":{"m":{"name":"m","description":"m","prompt":"mode prompt","mode":"primary","options":{},"permission":{}}}}
        "#);
    }

    #[test]
    fn bad_files() {
        let dir = folder(&[
            ("agent/a.md", "---\na: [1\n---\nx"),
            ("mode/m.md", "---\ntools: all\n---\n"),
        ]);
        let mut problems = Vec::new();
        assert!(
            read(dir.path(), &Links::default(), &mut problems)
                .unwrap()
                .is_empty()
        );
        let root = dir.path().display().to_string();
        let seen: Vec<String> = problems
            .iter()
            .map(|problem| problem.to_string().replace(&root, ""))
            .collect();
        insta::assert_snapshot!(seen.join("\n"), @r#"
        /agent/a.md: not valid YAML between the `---` lines: did not find expected ',' or ']' at line 3 column 1, while parsing a flow sequence at line 2 column 4; skipped
        /mode/m.md: /agent/m/tools: expected an object, found "all"; skipped, and the mode with it
        "#);

        let dir = folder(&[(
            "command/a/c.md",
            "---\ndescription: d\nsubtask: maybe\n---\nx",
        )]);
        let error = read(dir.path(), &Links::default(), &mut problems)
            .err()
            .unwrap()
            .to_string();
        insta::assert_snapshot!(error.replace(&dir.path().display().to_string(), ""), @r#"/command/a/c.md:3:1: /command/a~1c/subtask: expected true or false, found "maybe""#);
    }
}
