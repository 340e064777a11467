//! The JSON lines files of Claude Code and of Codex: where they are, and their content.

use std::path::{Path, PathBuf};

use outrigger_executors::{Stored, StoredClaude, StoredCodex};
use outrigger_protocol::Millis;

use crate::error::{ImportError, Problem};
use crate::program::{Program, StoredSession};
use crate::source::lines::{Lines, at};
use crate::source::speech::{Speech, first_line};
use crate::transcript::Transcript;

/// Maximum number of files of a program.
const MAX_FILES: usize = 20_000;
/// Maximum depth of folders.
const MAX_DEPTH: usize = 5;
/// A line of a subagent has this.
const INLINE: &str = r#""isSidechain":true"#;
/// Number of lines read to list a file.
const HEAD: usize = 60;

/// Returns the session files at a path: itself, or those below it, latest first.
pub(crate) fn files(program: Program, path: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let meta = path
        .metadata()
        .map_err(|error| ImportError::read(path, error))?;
    if !meta.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    walk(program, path, 0, &mut found);
    found.sort_by_key(|file: &PathBuf| std::cmp::Reverse(modified(file)));
    Ok(found)
}

fn walk(program: Program, folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = folder.read_dir() else {
        return;
    };
    for entry in entries.flatten() {
        if found.len() >= MAX_FILES {
            return;
        }
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // Links point elsewhere.
        if kind.is_dir() && depth < MAX_DEPTH {
            walk(program, &path, depth + 1, found);
        } else if kind.is_file() && name.ends_with(".jsonl") && is_session(program, &name) {
            found.push(path);
        }
    }
}

fn is_session(program: Program, name: &str) -> bool {
    program != Program::Codex || name.starts_with("rollout-")
}

/// Returns whether the file is a subagent's: Claude Code has a file for each.
fn is_subagent(program: Program, file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    program == Program::Claude && name.starts_with("agent-")
}

/// Returns the session whose agent started this one.
fn parent(program: Program, id: &str) -> Option<String> {
    let (session, _) = id.rsplit_once('/')?;
    (program == Program::Claude).then(|| session.to_owned())
}

/// Returns the subagent whose lines are in the file of its session.
fn inline(file: &Path, id: &str) -> Option<String> {
    let (_, agent) = id.rsplit_once('/')?;
    (!is_subagent(Program::Claude, file)).then(|| agent.to_owned())
}

fn modified(file: &Path) -> Millis {
    let time = file.metadata().and_then(|meta| meta.modified());
    time.ok()
        .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |at| u64::try_from(at.as_millis()).unwrap_or(0))
}

/// Returns the subagents whose lines are in the file of their session.
pub(crate) fn subagents(program: Program, session: &StoredSession) -> Vec<StoredSession> {
    if program != Program::Claude || is_subagent(program, &session.file) {
        return Vec::new();
    }
    let Ok(lines) = Lines::open(&session.file) else {
        return Vec::new();
    };
    // Few files have any, and reading all lines as JSON takes ten times as long.
    let lines = lines
        .texts()
        .filter(|it| it.contains(INLINE))
        .filter_map(|it| serde_json::from_str(&it).ok());
    let one = |line: serde_json::Value| {
        let agent = StoredClaude::subagent(&line)?;
        let id = format!("{}/{agent}", session.id);
        let mut speech = Speech::new(blank(program), "");
        for said in StoredClaude::inline(agent).line(&line, 0) {
            speech.say(said, 0);
        }
        Some(StoredSession {
            parent: Some(session.id.clone()),
            title: speech.finish().title,
            id,
            ..session.clone()
        })
    };
    lines.filter_map(one).collect()
}

/// Reads the first lines of a file. `None` if it contains no session.
pub(crate) fn head(program: Program, file: &Path) -> Option<StoredSession> {
    let mut reader = Reader::new(program, file, true);
    let mut speech = Speech::new(blank(program), "");
    for line in Lines::open(file).ok()?.take(HEAD).flatten() {
        let time = at(&line).unwrap_or_default();
        for said in reader.line(&line, time) {
            speech.say(said, time);
        }
    }
    // Before its first item, prompts in a file have another form.
    let mut read = speech.finish();
    if read.title.is_empty() {
        let mut reader = Reader::new(program, file, false);
        for line in Lines::open(file).ok()?.take(HEAD).flatten() {
            for said in reader.line(&line, 0) {
                if let (Stored::Prompt(pieces), true) = (said, read.title.is_empty()) {
                    let texts = pieces.into_iter().filter_map(|piece| match piece {
                        outrigger_executors::Piece::Text(text) => Some(text),
                        outrigger_executors::Piece::Picture { .. } => None,
                    });
                    read.title = first_line(&texts.collect::<Vec<_>>().join("\n"));
                }
            }
        }
    }
    let is_session = !read.id.is_empty();
    is_session.then(|| StoredSession {
        parent: parent(program, &read.id),
        id: read.id,
        title: read.title,
        directory: read.directory,
        updated: modified(file),
        file: file.to_owned(),
    })
}

/// Reads a whole session.
pub(crate) fn transcript(
    program: Program,
    found: &StoredSession,
    problems: &mut Vec<Problem>,
) -> Result<Transcript, ImportError> {
    let file = found.file.as_path();
    let has_items = program == Program::Codex
        && Lines::open(file)?
            .texts()
            .any(|it| StoredCodex::is_item(&it));
    let mut reader = match inline(file, &found.id) {
        Some(agent) => Reader::Claude(Box::new(StoredClaude::inline(&agent))),
        None => Reader::new(program, file, has_items),
    };
    let provider = match program {
        Program::Codex => "openai",
        _ => "anthropic",
    };
    let mut speech = Speech::new(blank(program), provider);
    let mut last = 0;
    'file: for line in Lines::open(file)? {
        let line = match line {
            Ok(line) => line,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        last = at(&line).unwrap_or(last);
        for said in reader.line(&line, last) {
            if !speech.say(said, last) {
                let message = "the session has more than 100,000 messages; the rest is skipped";
                problems.push(Problem::new(file, "", message));
                break 'file;
            }
        }
    }
    let mut transcript = speech.finish();
    transcript.parent = parent(program, &transcript.id);
    if transcript.id.is_empty() {
        Err(ImportError::Form {
            path: file.to_owned(),
            message: format!("no line of it is one of {}", program.title()),
        })
    } else {
        Ok(transcript)
    }
}

fn blank(program: Program) -> Transcript {
    Transcript {
        program,
        ..Transcript::default()
    }
}

enum Reader {
    Claude(Box<StoredClaude>),
    Codex(Box<StoredCodex>),
}

impl Reader {
    fn new(program: Program, file: &Path, has_items: bool) -> Self {
        match program {
            Program::Codex => Self::Codex(Box::new(StoredCodex::new(has_items))),
            _ => Self::Claude(Box::new(StoredClaude::new(is_subagent(program, file)))),
        }
    }

    fn line(&mut self, line: &serde_json::Value, at: Millis) -> Vec<Stored> {
        match self {
            Self::Claude(reader) => reader.line(line, at),
            Self::Codex(reader) => reader.line(line, at),
        }
    }
}
