//! The stored sessions of a program.

mod database;
mod entries;
mod exported;
mod lenient;
mod lines;
mod speech;
mod storage;
mod vendor;

use std::path::Path;

use crate::error::{ImportError, Problem};
use crate::program::{Program, StoredSession};
use crate::transcript::Transcript;

/// The stored sessions of a program.
pub struct Source {
    program: Program,
    found: Vec<StoredSession>,
    kind: Kind,
}

enum Kind {
    Lines,
    Database(Box<database::Database>),
    Storage(storage::Storage),
    Whole(Vec<Transcript>),
}

impl Source {
    /// Opens what a program stored at a path: its folder, or a file in it.
    ///
    /// # Errors
    /// [`ImportError`] if nothing exists or can be read.
    pub fn open(
        program: Program,
        path: &Path,
        problems: &mut Vec<Problem>,
    ) -> Result<Self, ImportError> {
        let nothing = || ImportError::Nothing {
            program: program.title(),
            path: path.to_owned(),
        };
        if !path.exists() {
            return Err(nothing());
        }
        let (kind, found) = match program {
            Program::Claude | Program::Codex => {
                let found = of_lines(program, path)?;
                // A file of one program that was named as the other's.
                let other = match program {
                    Program::Claude => Program::Codex,
                    _ => Program::Claude,
                };
                if found.is_empty() && !of_lines(other, path)?.is_empty() {
                    return Err(ImportError::Other {
                        program: program.title(),
                        other,
                        path: path.to_owned(),
                    });
                }
                (Kind::Lines, found)
            }
            Program::OpenCode if path.is_dir() => of_folder(path, problems)?.ok_or_else(nothing)?,
            Program::OpenCode if database::is_database(path) => of_database(path)?,
            Program::OpenCode | Program::Outrigger => {
                let transcripts = exported::read(path, problems)?;
                let found = transcripts
                    .iter()
                    .map(|it| exported::found(it, path))
                    .collect();
                (Kind::Whole(transcripts), found)
            }
        };
        Ok(Self {
            program,
            found,
            kind,
        })
    }

    /// Returns the program.
    #[must_use]
    pub fn program(&self) -> Program {
        self.program
    }

    /// Returns the sessions, latest first.
    #[must_use]
    pub fn found(&self) -> &[StoredSession] {
        &self.found
    }

    /// Reads one of them.
    ///
    /// # Errors
    /// It cannot be read at all.
    pub fn read(
        &self,
        found: &StoredSession,
        problems: &mut Vec<Problem>,
    ) -> Result<Transcript, ImportError> {
        match &self.kind {
            Kind::Lines => vendor::transcript(self.program, found, problems),
            Kind::Database(database) => database.transcript(&found.id, problems),
            Kind::Storage(storage) => storage.transcript(&found.id, problems),
            Kind::Whole(transcripts) => transcripts
                .iter()
                .find(|it| it.id == found.id)
                .cloned()
                .ok_or_else(|| ImportError::Form {
                    path: found.file.clone(),
                    message: format!("it has no session {}", found.id),
                }),
        }
    }
}

fn of_lines(program: Program, path: &Path) -> Result<Vec<StoredSession>, ImportError> {
    let files = vendor::files(program, path)?;
    let found = files
        .iter()
        .filter_map(|file| vendor::head(program, file))
        .flat_map(|one| {
            let below = vendor::subagents(program, &one);
            std::iter::once(one).chain(below)
        });
    Ok(found.collect())
}

fn of_database(path: &Path) -> Result<(Kind, Vec<StoredSession>), ImportError> {
    let database = database::Database::open(path)?;
    let found = database.found()?;
    Ok((Kind::Database(Box::new(database)), found))
}

/// Prefers the database; older versions have files.
fn of_folder(
    path: &Path,
    problems: &mut Vec<Problem>,
) -> Result<Option<(Kind, Vec<StoredSession>)>, ImportError> {
    let database = path.join("opencode.db");
    if database.is_file() {
        return of_database(&database).map(Some);
    }
    let storage = storage::Storage::at(path);
    let found = storage.found(problems);
    Ok((!found.is_empty()).then_some((Kind::Storage(storage), found)))
}
