//! Gemini CLI: `gemini --output-format stream-json` (0.61.0). It asks no questions: it only gets the tools that rules allow entirely, and
//! its calls are marked as unasked. `acp:gemini --acp` asks.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use outrigger_protocol::Millis;
use serde_json::{Value, json};

use crate::access::{Access, Unasked, below};
use crate::calls::{Call, Calls, Ended, as_it_came, only, renamed, said, text};
use crate::step::{End, Protocol, Step, Task, Verdict};
use crate::used::Used;

pub(crate) fn command(task: &Task, unasked: Unasked) -> Vec<String> {
    let mode = match unasked {
        Unasked {
            commands: true,
            edits: true,
        } => "yolo",
        Unasked { edits: true, .. } => "auto_edit",
        Unasked { .. } => "default",
    };
    let mut words = vec!["--output-format", "stream-json", "--approval-mode", mode];
    let named = [("--resume", &task.resume), ("--model", &task.model)];
    for (option, value) in named {
        words.extend(value.iter().flat_map(|value| [option, value.as_str()]));
    }
    if task.is_trusted {
        words.push("--skip-trust");
    }
    words.into_iter().map(str::to_owned).collect()
}

pub(crate) fn access(home: &Path) -> Access {
    let folder = home.join(".gemini");
    let runs = [
        "settings.json",
        "GEMINI.md",
        ".env",
        "commands",
        "extensions",
        "agents",
        "hooks",
        "policies",
        "skills",
        "trustedFolders.json",
        "trusted_hooks.json",
        "acknowledgments",
        "antigravity",
        // Repositories of its checkpoints: git obeys their settings.
        "history",
        "tmp/bin",
    ];
    let mut keep = below(&folder, &runs);
    keep.extend(others(&folder));
    Access {
        keep,
        write: vec![folder],
        read: Vec::new(),
        variables: &["GEMINI_*", "GOOGLE_*"],
        ..Access::default()
    }
}

/// The parts of its folder that it writes in a turn. Everything else there stays read-only, known here or not.
const WRITTEN: [&str; 8] = [
    "google_accounts.json",
    "installation_id",
    "oauth_creds.json",
    "projects.json",
    "projects.json.lock",
    "state.json",
    "tmp",
    "user_id",
];

fn others(folder: &Path) -> Vec<PathBuf> {
    folder
        .read_dir()
        .into_iter()
        .flatten()
        .flatten()
        .filter(|it| !WRITTEN.iter().any(|name| it.file_name() == *name))
        .map(|it| it.path())
        .collect()
}

/// Creates a project's checkpoint folder, with the file that names its owner: Gemini CLI may not create it there, and does not start
/// without it.
///
/// # Errors
/// The folder or the file cannot be created.
pub(crate) fn claim(home: &Path, project: &Path) -> io::Result<()> {
    let folder = home.join(".gemini");
    let history = folder.join("history");
    let is_of = |place: &Path| {
        let owner = outrigger_files::read_to_string(&place.join(OWNER), MAX_OWNER);
        owner.is_ok_and(|owner| Path::new(owner.trim()) == project)
    };
    let entries = history.read_dir().into_iter().flatten().flatten();
    if entries.map(|it| it.path()).any(|it| is_of(&it)) {
        return Ok(());
    }
    let name = project.file_name().unwrap_or_default().to_string_lossy();
    let name = slug(&name);
    let numbered = (0..).map(|n| match n {
        0 => name.clone(),
        n => format!("{name}-{n}"),
    });
    let known = known(&folder, project).into_iter();
    let mut names = known.chain(numbered).map(|name| history.join(name));
    let place = names.find(|it| !it.exists()).unwrap_or_default();
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&place)?;
    let mut file = OpenOptions::new();
    let file = file.write(true).create_new(true).mode(0o600);
    let mut file = file.open(place.join(OWNER))?;
    file.write_all(project.as_os_str().as_bytes())
}

/// The file in a project's folder with its path.
const OWNER: &str = ".project_root";
/// Maximum bytes of such a file.
const MAX_OWNER: u64 = 1 << 16;
/// Maximum bytes of its list of projects.
const MAX_PROJECTS: u64 = 1 << 24;

/// Returns the name that it gave a project before. Commands can write to its list: a name that points elsewhere is ignored.
fn known(folder: &Path, project: &Path) -> Option<String> {
    let text = outrigger_files::read_to_string(&folder.join("projects.json"), MAX_PROJECTS);
    let list: Value = serde_json::from_str(&text.ok()?).ok()?;
    let name = list.get("projects")?.get(project.to_str()?)?.as_str()?;
    (slug(name) == name).then(|| name.to_owned())
}

/// Returns a folder name in Gemini's form.
fn slug(name: &str) -> String {
    let name = name.to_lowercase();
    let words: Vec<&str> = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|it| !it.is_empty())
        .collect();
    if words.is_empty() {
        "project".to_owned()
    } else {
        words.join("-")
    }
}

pub(crate) struct Gemini {
    calls: Calls,
    /// Text that may continue in the next line.
    text: String,
}

impl Gemini {
    pub(crate) fn new() -> Self {
        Self {
            calls: Calls::new("gemini"),
            text: String::new(),
        }
    }

    fn understood(&mut self, value: &Value, at: Millis) -> Option<Vec<Step>> {
        let of = |pointer: &str| text(value, pointer);
        Some(match of("/type")? {
            "init" => {
                let id = of("/session_id")?.to_owned();
                vec![Step::Session(id)]
            }
            "message" if of("/role")? == "user" => Vec::new(),
            "tool_use" => {
                let (id, name) = (of("/tool_id")?, of("/tool_name")?);
                let call = ours(name, value.get("parameters").unwrap_or(&Value::Null));
                vec![self.calls.starts(id, call, name, at)]
            }
            "tool_result" => {
                let (id, output) = (of("/tool_id")?, of("/output"));
                let ended = Ended {
                    text: output
                        .or(of("/error/message"))
                        .unwrap_or_default()
                        .to_owned(),
                    is_error: of("/status")? == "error",
                    ..Ended::default()
                };
                vec![self.calls.ends(id, ended, at)]
            }
            "error" => {
                let severity = of("/severity").unwrap_or("error");
                vec![as_it_came(&format!("{severity}: {}", of("/message")?), at)]
            }
            "result" => {
                let end = match of("/status")? {
                    "success" => End::Done,
                    status => End::Failed(of("/error/message").unwrap_or(status).to_owned()),
                };
                vec![Step::Used(Used::of_gemini(value)), Step::End(end)]
            }
            _ => return None,
        })
    }
}

impl Protocol for Gemini {
    fn begin(&mut self) -> Vec<Step> {
        Vec::new()
    }

    fn line(&mut self, line: &str, at: Millis) -> Vec<Step> {
        let value = serde_json::from_str::<Value>(line).unwrap_or_default();
        if text(&value, "/type") == Some("message")
            && text(&value, "/role") == Some("assistant")
            && let Some(more) = text(&value, "/content")
        {
            self.text.push_str(more);
            return if value.get("delta") == Some(&Value::Bool(true)) {
                Step::piece(false, more).into_iter().collect()
            } else {
                self.finish(at)
            };
        }
        let mut steps = self.finish(at);
        let understood = self.understood(&value, at);
        steps.extend(understood.unwrap_or_else(|| vec![as_it_came(line, at)]));
        steps
    }

    fn answer(&mut self, _: u64, _: &Verdict) -> Vec<Step> {
        Vec::new()
    }

    fn cancel(&mut self) -> Vec<Step> {
        Vec::new()
    }

    fn finish(&mut self, at: Millis) -> Vec<Step> {
        let text = std::mem::take(&mut self.text);
        said(&text, at).into_iter().collect()
    }
}

fn ours(name: &str, input: &Value) -> Call {
    let path = ("file_path", "filePath");
    match name {
        "run_shell_command" => Call::new("bash", only(input, &["command", "description"])),
        "read_file" => {
            let input = renamed(input, &[path]);
            Call::new("read", only(&input, &["filePath", "offset", "limit"]))
        }
        "write_file" => Call::new(
            "write",
            only(&renamed(input, &[path]), &["filePath", "content"]),
        ),
        "replace" => {
            let names = [
                path,
                ("old_string", "oldString"),
                ("new_string", "newString"),
                ("allow_multiple", "replaceAll"),
            ];
            let keys = ["filePath", "oldString", "newString", "replaceAll"];
            Call::new("edit", only(&renamed(input, &names), &keys))
        }
        "grep_search" | "search_file_content" => {
            Call::new("grep", only(input, &["pattern", "path", "include"]))
        }
        "write_todos" => Call::new("todowrite", json!({ "todos": input.get("todos") })),
        _ => Call::new(name, input.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_has_one_folder_of_checkpoints_whatever_its_list_says() {
        let home = tempfile::tempdir().unwrap();
        let history = home.path().join(".gemini/history");
        let owner = |name: &str| std::fs::read_to_string(history.join(name).join(OWNER)).unwrap();
        for _ in 0..2 {
            claim(home.path(), Path::new("/a/My Project")).unwrap();
        }
        claim(home.path(), Path::new("/b/my_project")).unwrap();
        let list = json!({ "projects": { "/c/x": "known-name", "/d/x": "../../.bashrc.d" } });
        std::fs::write(home.path().join(".gemini/projects.json"), list.to_string()).unwrap();
        claim(home.path(), Path::new("/c/x")).unwrap();
        claim(home.path(), Path::new("/d/x")).unwrap();
        assert_eq!(owner("my-project"), "/a/My Project");
        assert_eq!(owner("my-project-1"), "/b/my_project");
        assert_eq!(owner("known-name"), "/c/x");
        assert_eq!(owner("x"), "/d/x");
        assert_eq!(history.read_dir().unwrap().count(), 4);
    }
}
