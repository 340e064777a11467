//! Whose word the settings of a project are (issue 5, items 4 and 5).
//!
//! What they name is started with the user's rights, as in the reference, and what runs in a box may write to the project. So
//! an agent notes the settings that there are when it first runs something in a box, and takes the note away when it ends and
//! they are the same. Settings that differ from a note that is left were changed by what ran, or by the user meanwhile, and not
//! by our own tools: no agent starts with them before the user has let them count (`outrigger config allow`). Plugins alone
//! cannot change what is there, only make what is not. What is changed while nothing runs is nobody's but the user's, and not
//! asked about.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use outrigger_config::settings::{Sandbox, TrustChanges};
use outrigger_config::{LoadOptions, Loaded};

use crate::boot::Boot;
use crate::error::AgentError;
use crate::inner::{Agent, lock};
use crate::lock_file;
use crate::project::Place;

mod note;

pub(crate) use note::Writers;
use note::{Found, Note, State, digest, reads};

static COUNT: AtomicU64 = AtomicU64::new(0);

/// All notes, in our data folder, which nothing in a box can write to. Where a project begins and ends is not asked: a `.git`
/// that is made or moved away changes that.
#[derive(Debug)]
struct Notes {
    folder: PathBuf,
    options: LoadOptions,
    place: Place,
}

impl Notes {
    fn of(boot: &Boot, place: &Place) -> Self {
        Self {
            folder: boot.folders.data.join("settings"),
            options: boot.config_options(place),
            place: place.clone(),
        }
    }

    /// Keeps others from reading and writing notes meanwhile.
    fn hold(&self) -> io::Result<File> {
        fs::create_dir_all(&self.folder)?;
        let held = lock_file::open(&self.folder.join("lock"))?;
        held.lock()?;
        Ok(held)
    }

    fn all(&self) -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(&self.folder)?
            .flatten()
            .map(|entry| entry.path());
        let notes = entries.filter(|path| path.extension().is_some_and(|it| it == "json"));
        Ok(notes.collect())
    }

    fn now(&self) -> Option<State> {
        let config = outrigger_config::load(&self.options).ok()?;
        Some(State::of(&config, &self.place))
    }

    /// Holds the notes against how it is now. One from here that says nothing else is taken away with its owner gone; with
    /// `count` all say from here on what is now.
    fn compare(&self, now: &State, count: bool) -> io::Result<Found> {
        let mut all = Found::default();
        for path in self.all()? {
            // One that cannot be read knew of nothing.
            let mut note = read(&path).unwrap_or_else(|| Note {
                directory: self.place.directory.clone(),
                ..Note::default()
            });
            let found = note.against(now, &self.place.directory);
            // Plugins are trusted one by one, elsewhere.
            let same = found.settings.is_empty();
            all.settings.extend(found.settings);
            all.plugins |= found.plugins;
            if !same && !count {
                continue;
            }
            let here = note.directory == self.place.directory;
            if here && File::open(&path)?.try_lock().is_ok() {
                fs::remove_file(&path)?;
            } else if !same {
                let Note {
                    directory, state, ..
                } = &mut note;
                let gone = |file: &PathBuf| {
                    reads(&self.place.directory, file) && !now.settings.contains_key(file)
                };
                state.settings.retain(|file, _| !gone(file));
                let known = now
                    .settings
                    .iter()
                    .filter(|(file, _)| reads(directory, file));
                let known = known.map(|(file, digest)| (file.clone(), digest.clone()));
                state.settings.extend(known);
                write(&path, &note)?;
            }
        }
        Ok(all)
    }

    /// Files that are not as they were noted; `None` where that cannot be known.
    fn changed(&self) -> Option<BTreeSet<PathBuf>> {
        let _held = self.hold().ok()?;
        let now = self.now()?;
        let notes = self.all().ok()?;
        let found = notes.iter().map(|path| {
            let note = read(path)?;
            Some(note.against(&now, &self.place.directory).settings)
        });
        let found: Option<Vec<_>> = found.collect();
        Some(found?.into_iter().flatten().map(|(file, _)| file).collect())
    }

    /// A file counts as it is now.
    fn count(&self, file: &Path) -> io::Result<()> {
        let _held = self.hold()?;
        let read_now = self.now();
        for path in self.all()? {
            let Some(mut note) = read(&path).filter(|note| reads(&note.directory, file)) else {
                continue;
            };
            let settings = &mut note.state.settings;
            let is_read = match &read_now {
                Some(now) => now.settings.contains_key(file),
                // It is broken now, perhaps.
                None => settings.contains_key(file),
            };
            match is_read {
                true => drop(settings.insert(file.to_owned(), digest(file))),
                false => drop(settings.remove(file)),
            }
            write(&path, &note)?;
        }
        Ok(())
    }
}

fn read(path: &Path) -> Option<Note> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn write(path: &Path, note: &Note) -> io::Result<()> {
    fs::write(path, serde_json::to_vec(note)?)
}

/// The note of one agent.
#[derive(Debug)]
pub(crate) struct Settled {
    notes: Notes,
    /// As it began.
    began: State,
    /// The note, locked as long as its agent lives. None before something runs.
    own: Mutex<Option<(PathBuf, File)>>,
    /// All may write already.
    widened: AtomicBool,
}

impl Settled {
    /// Looks whether an agent may begin with the settings that there are. `None`: nothing is in a box here.
    ///
    /// # Errors
    /// [`AgentError::SettingsChanged`]; a data folder that cannot be used.
    pub(crate) fn begin(
        boot: &Boot,
        config: &Loaded,
        place: &Place,
    ) -> Result<Option<Arc<Self>>, AgentError> {
        if config.settings.sandbox == Sandbox::Off {
            return Ok(None);
        }
        let notes = Notes::of(boot, place);
        let began = State::of(config, place);
        let allow = config.settings.trust.changes == TrustChanges::Allow;
        let found = notes.look(boot, config, &began, allow)?;
        if !allow && !found.is_empty() {
            return Err(AgentError::SettingsChanged { files: found });
        }
        Ok(Some(Arc::new(Self {
            notes,
            began,
            own: Mutex::default(),
            widened: AtomicBool::new(false),
        })))
    }

    /// Something is about to run that may write to the project.
    pub(crate) fn runs(&self, writers: Writers) {
        if self.widened.load(Ordering::Acquire) {
            return;
        }
        let mut own = lock(&self.own);
        match self.note(&mut own, writers) {
            Ok(()) => self
                .widened
                .store(writers == Writers::All, Ordering::Release),
            Err(error) => tracing::warn!("[config] {}: {error}", self.notes.folder.display()),
        }
    }

    fn note(&self, own: &mut Option<(PathBuf, File)>, writers: Writers) -> io::Result<()> {
        let _held = self.notes.hold()?;
        let now = self.notes.now().unwrap_or_else(|| self.began.clone());
        if let Some((path, _)) = own {
            let mut note = read(path).ok_or(io::ErrorKind::InvalidData)?;
            if writers == Writers::All {
                note.widen(&now);
            }
            return write(path, &note);
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}.json", std::process::id());
        let path = self.notes.folder.join(name);
        let note = Note {
            directory: self.notes.place.directory.clone(),
            writers,
            state: now,
        };
        write(&path, &note)?;
        let file = File::open(&path)?;
        file.lock()?;
        *own = Some((path, file));
        Ok(())
    }

    /// Everything that ran has ended: takes the note away, unless something changed.
    pub(crate) fn end(&self) {
        let Some((path, file)) = lock(&self.own).take() else {
            return;
        };
        let Ok(_held) = self.notes.hold() else { return };
        let note = read(&path).zip(self.notes.now());
        let found = note.map(|(note, now)| note.against(&now, &self.notes.place.directory));
        let Some(found) = found else { return };
        if found.is_empty() {
            let _ = fs::remove_file(&path);
        }
        for (name, what) in found.settings {
            tracing::warn!(
                "[config] {} ({what}) while Outrigger ran: it needs `outrigger config allow` before the next start",
                self.notes.name(&name)
            );
        }
        drop(file);
    }

    /// Files that are not as they were noted, for a tool that is about to write; `None` where that cannot be known.
    pub(crate) fn changed(&self) -> Option<BTreeSet<PathBuf>> {
        self.notes.changed()
    }

    /// A tool of ours wrote this file.
    pub(crate) fn count(&self, file: &Path) {
        if let Err(error) = self.notes.count(file) {
            tracing::warn!("[config] {}: {error}", self.notes.folder.display());
        }
    }
}

impl Notes {
    /// What is not as it was noted, by name; with `count` it is from now on.
    fn look(
        &self,
        boot: &Boot,
        config: &Loaded,
        now: &State,
        count: bool,
    ) -> Result<Vec<String>, AgentError> {
        let compare = || {
            let _held = self.hold()?;
            self.compare(now, count)
        };
        let found = compare().map_err(|error| AgentError::Folder {
            path: self.folder.display().to_string(),
            reason: error.to_string(),
        })?;
        if found.plugins {
            outrigger_plugins::trust_no_newcomers(&boot.folders.data, &config.project_folder())?;
        }
        let files = found.settings.iter();
        let named = files.map(|(file, what)| format!("{} ({what})", self.name(file)));
        Ok(named.collect())
    }

    fn name(&self, file: &Path) -> String {
        let name = file.strip_prefix(&self.place.worktree).unwrap_or(file);
        name.display().to_string()
    }
}

impl Agent {
    /// Settings of the project changed since this began, and not by our tools. None with them can be started.
    #[must_use]
    pub fn has_changed_settings(&self) -> bool {
        let settled = self.inner.settled.as_ref();
        let changed = settled.and_then(|settled| settled.changed());
        changed.is_some_and(|files| !files.is_empty())
    }
}

/// Lets the settings of the folder's project count as they are, and says which were not as they had been.
///
/// # Errors
/// Those of the configuration and of the data folder.
pub fn allow_settings(boot: &Boot) -> Result<Vec<String>, AgentError> {
    let place = Place::find(&boot.directory);
    let config = boot.load(&place)?;
    Notes::of(boot, &place).look(boot, &config, &State::of(&config, &place), true)
}

/// Writes a settings file by the user's word: it counts as it is then, if it counted before.
pub fn write_settings<T>(boot: &Boot, file: &Path, write: impl FnOnce() -> T) -> T {
    let notes = Notes::of(boot, &Place::find(&boot.directory));
    let counted = notes
        .changed()
        .is_some_and(|changed| !changed.contains(file));
    let written = write();
    if counted && let Err(error) = notes.count(file) {
        tracing::warn!("[config] {}: {error}", notes.folder.display());
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first start of a box notes the settings, which reads the configuration; no later one does.
    #[test]
    fn they_are_read_once_however_much_runs() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("project");
        fs::create_dir(&project).unwrap();
        fs::write(project.join("opencode.json"), "{}").unwrap();
        let home = dir.path().display().to_string();
        let boot = Boot::new(project, [("HOME".to_owned(), home)].into());
        let place = Place::find(&boot.directory);
        let config = boot.load(&place).unwrap();
        let settled = Settled::begin(&boot, &config, &place).unwrap().unwrap();
        settled.runs(Writers::Plugins);
        settled.runs(Writers::All);
        let notes = settled.notes.all().unwrap();
        assert_eq!(notes.len(), 1, "{notes:?}");
        // Whatever looks at the notes makes their folder, and whatever reads the configuration fails.
        fs::remove_dir_all(&settled.notes.folder).unwrap();
        fs::write(boot.directory.join("opencode.json"), "{").unwrap();
        for _ in 0..3 {
            settled.runs(Writers::All);
        }
        assert!(!settled.notes.folder.exists());
    }
}
