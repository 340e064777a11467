//! OpenCode's folder of JSON files, used by versions before 1.2: `storage/{session,message,part}`.

use std::path::{Path, PathBuf};

use outrigger_protocol::message::MessageWithParts;
use outrigger_protocol::session::Session;
use serde_json::Value;

use crate::error::{ImportError, Problem};
use crate::program::{Program, StoredSession};
use crate::source::lenient;
use crate::transcript::{MAX_MESSAGES, Transcript};

/// Maximum bytes of a file.
const MAX_FILE: u64 = 64 << 20;
/// Maximum number of sessions, and of project folders.
const MAX_ENTRIES: usize = 20_000;

/// The folder.
pub(crate) struct Storage {
    root: PathBuf,
}

impl Storage {
    /// Opens it in OpenCode's data folder, or the folder itself.
    pub(crate) fn at(path: &Path) -> Self {
        let inside = path.join("storage");
        let root = if inside.is_dir() {
            inside
        } else {
            path.to_owned()
        };
        Self { root }
    }

    /// Returns its sessions, latest first.
    pub(crate) fn found(&self, problems: &mut Vec<Problem>) -> Vec<StoredSession> {
        let mut found = Vec::new();
        for project in entries(&self.root.join("session")) {
            for file in entries(&project) {
                let Some(session) = value(&file, problems, lenient::session) else {
                    continue;
                };
                found.push(StoredSession {
                    id: session.id.0,
                    title: session.title,
                    directory: session.directory,
                    updated: session.time.updated,
                    parent: session.parent_id.map(|it| it.0),
                    file,
                });
            }
        }
        found.sort_by_key(|one| std::cmp::Reverse(one.updated));
        found.truncate(MAX_ENTRIES);
        found
    }

    pub(crate) fn transcript(
        &self,
        id: &str,
        problems: &mut Vec<Problem>,
    ) -> Result<Transcript, ImportError> {
        let file = entries(&self.root.join("session"))
            .into_iter()
            .map(|project| project.join(format!("{id}.json")));
        let file = file.into_iter().find(|file| is_name(id) && file.is_file());
        let missing = || ImportError::read(&self.root, format!("it has no session {id}"));
        let file = file.ok_or_else(missing)?;
        let session = value(&file, problems, lenient::session).ok_or_else(missing)?;
        let mut transcript = of_session(session);
        let mut files = entries(&self.root.join("message").join(id));
        files.truncate(MAX_MESSAGES);
        for file in files {
            let Some(info) = value(&file, problems, lenient::info) else {
                continue;
            };
            let name = info.id().to_string();
            let parts = if is_name(&name) {
                entries(&self.root.join("part").join(name))
            } else {
                Vec::new()
            };
            let parts = parts
                .iter()
                .filter_map(|file| value(file, problems, lenient::part))
                .collect();
            transcript.messages.push(MessageWithParts { info, parts });
        }
        Ok(transcript)
    }
}

/// Creates the head of a transcript from a session in OpenCode's form.
pub(crate) fn of_session(session: Session) -> Transcript {
    Transcript {
        program: Program::OpenCode,
        id: session.id.0,
        parent: session.parent_id.map(|it| it.0),
        title: session.title,
        directory: session.directory,
        version: session.version,
        created: session.time.created,
        updated: session.time.updated,
        ..Transcript::default()
    }
}

/// Returns whether a name stays in its folder.
fn is_name(id: &str) -> bool {
    !id.is_empty()
        && id
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Lists a folder by name, without links, which point elsewhere.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = folder
        .read_dir()
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .take(MAX_MESSAGES)
        .collect();
    paths.sort();
    paths
}

/// Parses a file; an invalid value is a problem.
fn value<T>(
    file: &Path,
    problems: &mut Vec<Problem>,
    read: impl Fn(Value) -> Result<T, serde_json::Error>,
) -> Option<T> {
    let text = outrigger_files::read_to_string(file, MAX_FILE);
    text.map_err(|error| error.to_string())
        .and_then(|text| {
            serde_json::from_str(&text)
                .and_then(&read)
                .map_err(|error| error.to_string())
        })
        .inspect_err(|error| problems.push(Problem::new(file, "", error)))
        .ok()
}
