//! The system prompt: the agent's identity, its environment, and the instructions of the project.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use outrigger_workspace::ProjectLocation;

/// General prompt of every primary agent without its own.
const BASE: &str = "\
You are Outrigger, a coding agent that works in the user's project from a terminal.

Work on the task until it is done or you need something that only the user can give. Read before you change: look at the
files involved and follow the conventions that you find there. Make the smallest change that solves the problem, and check
it with the project's own tests or build when there are any. Never claim that something works unless you have seen it.

Use the tools rather than guessing. Calls that do not depend on each other can be made at the same time. Prefer the tools for
reading, searching and editing over shell commands that do the same. Do not commit, push or install anything unless asked to.
If a tool call is refused, do not try the same thing by other means; say what you wanted to do and why.

Answer briefly and in plain text. Name files as path:line so that they can be opened. Do not repeat file contents that the
user can see.";

/// Instruction files, in the order in which they are looked for; the first kind that is found is used.
const INSTRUCTION_FILES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "CONTEXT.md"];

/// Text of an instruction file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Where it stands.
    pub path: PathBuf,
    /// The text.
    pub text: String,
}

/// Finds instruction files: the project's, from the working directory up to its root, the user's own, and those that the
/// configuration lists (paths relative to the working directory; patterns with `*`). `read` returns the content of a file;
/// if there is none, the file is skipped.
#[must_use]
pub fn instructions(
    location: &ProjectLocation,
    home: &Path,
    config_home: &Path,
    listed: &[String],
    read: impl Fn(&Path) -> Option<String>,
) -> Vec<Instruction> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for name in INSTRUCTION_FILES {
        let found: Vec<PathBuf> = location
            .directory
            .ancestors()
            .take_while(|dir| dir.starts_with(&location.worktree))
            .map(|dir| dir.join(name))
            .filter(|path| path.is_file())
            .collect();
        if !found.is_empty() {
            paths.extend(found);
            break;
        }
    }
    let own = [
        config_home.join("opencode/AGENTS.md"),
        home.join(".claude/CLAUDE.md"),
    ];
    paths.extend(own.into_iter().find(|path| path.is_file()));
    for entry in listed {
        paths.extend(listed_files(location, home, entry));
    }
    let mut seen = std::collections::BTreeSet::new();
    paths
        .into_iter()
        .filter(|path| seen.insert(path.clone()))
        .filter_map(|path| {
            let text = read(&path)?;
            Some(Instruction { path, text })
        })
        .collect()
}

fn listed_files(location: &ProjectLocation, home: &Path, entry: &str) -> Vec<PathBuf> {
    // URLs need the network; they are fetched at the session's start, not in every request.
    if entry.starts_with("http://") || entry.starts_with("https://") {
        return Vec::new();
    }
    let path = match entry.strip_prefix("~/") {
        Some(rest) => home.join(rest),
        None => location.directory.join(entry),
    };
    let text = path.to_string_lossy();
    if !text.contains(['*', '?', '[']) {
        return if path.is_file() {
            vec![path]
        } else {
            Vec::new()
        };
    }
    // Only the last component may contain a pattern: one folder is read, however large the tree.
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Vec::new();
    };
    let pattern = name.to_string_lossy().into_owned();
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|file| {
            outrigger_kernel::permission::matches(&pattern, &file.file_name().to_string_lossy())
        })
        .map(|file| file.path())
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    found
}

/// Input of the system prompt.
pub struct SystemPrompt<'a> {
    /// The agent's own prompt, replacing the general one.
    pub agent_prompt: Option<&'a str>,
    /// Provider's name of the model.
    pub model: &'a str,
    /// Provider and model.
    pub model_ref: &'a str,
    /// Location of the project.
    pub location: &'a ProjectLocation,
    /// The date for display.
    pub today: &'a str,
    /// Instruction files.
    pub instructions: &'a [Instruction],
    /// Skills as `(name, description)`, if the agent may use them.
    pub skills: &'a [(String, String)],
    /// Additional texts for this prompt.
    pub extra: &'a [&'a str],
}

impl SystemPrompt<'_> {
    /// Returns the whole prompt as one text, as hooks get it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = self.agent_prompt.unwrap_or(BASE).trim().to_owned();
        let location = self.location;
        let _ = write!(
            out,
            "\n\nModel: {} ({}).\n<env>\n  Working directory: {}\n  Workspace root folder: {}\n  Is directory a git repo: {}\n  Platform: {}\n  Today's date: {}\n</env>",
            self.model,
            self.model_ref,
            location.directory.display(),
            location.worktree.display(),
            if location.git { "yes" } else { "no" },
            std::env::consts::OS,
            self.today,
        );
        for instruction in self.instructions {
            let _ = write!(
                out,
                "\n\nInstructions from: {}\n{}",
                instruction.path.display(),
                instruction.text.trim_end()
            );
        }
        if !self.skills.is_empty() {
            out.push_str("\n\nSkills are instructions for particular tasks. When a task fits one, load it with the skill tool first.\n<available_skills>");
            for (name, description) in self.skills {
                let _ = write!(out, "\n  {name}: {description}");
            }
            out.push_str("\n</available_skills>");
        }
        for extra in self.extra {
            let _ = write!(out, "\n\n{extra}");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instruction_files_are_found_upwards_and_by_list() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::create_dir_all(root.join("rules")).unwrap();
        for (file, text) in [
            ("AGENTS.md", "root rule"),
            ("sub/AGENTS.md", "sub rule"),
            ("CLAUDE.md", "not read"),
            ("rules/b.md", "b"),
            ("rules/a.md", "a"),
        ] {
            std::fs::write(root.join(file), text).unwrap();
        }
        let location = ProjectLocation {
            directory: root.join("sub"),
            worktree: root.clone(),
            git: true,
        };
        let nowhere = root.join("none");
        let found = instructions(
            &location,
            &nowhere,
            &nowhere,
            &[
                "../rules/*.md".into(),
                "missing.md".into(),
                "https://example.invalid/x".into(),
            ],
            |path| std::fs::read_to_string(path).ok(),
        );
        let texts: Vec<&str> = found.iter().map(|i| i.text.as_str()).collect();
        assert_eq!(texts, ["sub rule", "root rule", "a", "b"]);
    }

    #[test]
    fn the_prompt_names_place_rules_and_skills() {
        let location = ProjectLocation {
            directory: "/p/sub".into(),
            worktree: "/p".into(),
            git: true,
        };
        let instructions = [Instruction {
            path: "/p/AGENTS.md".into(),
            text: "Be brief.\n".into(),
        }];
        let prompt = SystemPrompt {
            agent_prompt: Some("You are REVIEWER."),
            model: "m1",
            model_ref: "mock/m1",
            location: &location,
            today: "Sat Nov 21 2026",
            instructions: &instructions,
            skills: &[("tidy".into(), "tidies".into())],
            extra: &["Only today."],
        };
        insta::assert_snapshot!(prompt.text(), @r"
        You are REVIEWER.

        Model: m1 (mock/m1).
        <env>
          Working directory: /p/sub
          Workspace root folder: /p
          Is directory a git repo: yes
          Platform: linux
          Today's date: Sat Nov 21 2026
        </env>

        Instructions from: /p/AGENTS.md
        Be brief.

        Skills are instructions for particular tasks. When a task fits one, load it with the skill tool first.
        <available_skills>
          tidy: tidies
        </available_skills>

        Only today.
        ");
    }
}
