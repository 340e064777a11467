//! The records of all agents, and the comparison with them.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_config::{LoadOptions, Loaded, ProjectConfig};
use outrigger_workspace::ProjectLocation;
use outrigger_workspace::lock_file;

use super::note::{Changes, Kind, Note, State};
use crate::config_source::ConfigSource;
use crate::error::TrustError;

/// Maximum time that another agent may hold the records: it reads and writes a few small files meanwhile.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Variables that keep project files from being read: the records include those, for an agent that is started without them.
pub(super) const SWITCHES: [&str; 2] = [
    "OPENCODE_DISABLE_PROJECT_CONFIG",
    "OPENCODE_DISABLE_CLAUDE_CODE",
];

/// Extension of a record that is being written.
const PART: &str = "part";

/// All records, in the data folder, which no sandboxed process can write to. Project boundaries are not used: creating or moving
/// a `.git` changes them.
#[derive(Debug)]
pub(super) struct Notes {
    pub(super) folder: PathBuf,
    options: LoadOptions,
    pub(super) location: ProjectLocation,
    /// No variable keeps project files from being read here.
    reads_all: bool,
    /// The user has not seen the settings: files that take effect by content are compared with the records too.
    pub(super) unseen: bool,
}

impl Notes {
    pub(super) fn of(source: &dyn ConfigSource, location: &ProjectLocation) -> Self {
        let mut options = source.options(location);
        let off = SWITCHES.map(|name| options.env.remove(name).is_some());
        Self {
            folder: source.folders().data.join("settings"),
            unseen: options.project == ProjectConfig::All,
            reads_all: !off.contains(&true),
            options,
            location: location.clone(),
        }
    }

    /// Returns the current state, including folders below. Reads the disk.
    pub(super) fn now(&self, config: &Loaded) -> State {
        State::of(config, &self.location).with_below()
    }

    /// Removes differences that do not concern agents here, and those that the user is asked about by content.
    pub(super) fn here(&self, mut found: Changes) -> Changes {
        found.below.clear();
        if self.unseen {
            found.settings.extend(std::mem::take(&mut found.beside));
        }
        found.beside.clear();
        found
    }

    /// Keeps others from reading and writing notes meanwhile. What may take its time is done before.
    ///
    /// # Errors
    /// The folder cannot be used, or another agent has held them for [`LOCK_TIMEOUT`].
    pub(super) fn hold(&self) -> io::Result<File> {
        fs::create_dir_all(&self.folder)?;
        lock_file::hold(&self.folder.join("lock"), LOCK_TIMEOUT)
    }

    /// Returns all records, while they are locked.
    pub(super) fn all(&self) -> io::Result<Vec<PathBuf>> {
        let mut notes = Vec::new();
        for path in fs::read_dir(&self.folder)?.flatten().map(|it| it.path()) {
            match path.extension() {
                Some(it) if it == "json" => notes.push(path),
                // Its writer was killed.
                Some(it) if it == PART => drop(fs::remove_file(&path)),
                _ => {}
            }
        }
        Ok(notes)
    }

    pub(super) fn load(&self) -> Option<Loaded> {
        outrigger_config::load(&self.options).ok()
    }

    /// Compares the records with the current state. An identical one from here whose owner has exited is removed; with `count`
    /// all are set to the current state.
    fn compare(&self, now: &State, count: bool) -> io::Result<Changes> {
        let mut all = Changes::default();
        let mut below = BTreeSet::new();
        for path in self.all()? {
            // An unreadable record counts as empty.
            let mut note = read(&path).unwrap_or_else(|| Note {
                directory: self.location.directory.clone(),
                ..Note::default()
            });
            let found = note.against(now, &self.location.directory);
            // Plugins are trusted individually, elsewhere.
            let same = found.is_as_noted();
            // Files below are accepted by agents there; until then one record that knows of them is enough.
            let files: Vec<PathBuf> = found.below.keys().cloned().collect();
            let counts = count || found.settings.is_empty() && found.beside.is_empty();
            let says_nothing = counts && files.iter().all(|file| below.contains(file));
            all.extend(found);
            let here = note.directory == self.location.directory;
            if here && says_nothing && File::open(&path)?.try_lock().is_ok() {
                fs::remove_file(&path)?;
                continue;
            }
            below.extend(files);
            if count && !same {
                let Note {
                    directory, state, ..
                } = &mut note;
                state.count(now, [directory, &self.location.directory]);
                write(&path, &note)?;
            }
        }
        Ok(all)
    }

    /// Returns files that differ from the records, by name; empty if that cannot be determined.
    pub(super) fn changed(&self) -> io::Result<BTreeSet<String>> {
        let Some(config) = self.load() else {
            return Ok(BTreeSet::new());
        };
        let now = State::of(&config, &self.location);
        let _held = self.hold()?;
        let mut all = BTreeSet::new();
        for note in self.all()?.iter().filter_map(|path| read(path)) {
            let found = note.against(&now, &self.location.directory);
            all.extend(self.named(&self.here(found)));
        }
        Ok(all)
    }

    /// Accepts a change of a file on the user's behalf, from the state with this digest (`None`: it did not exist). It is
    /// accepted in the records with that digest, and in those with the digest of the new content: others may have changed it
    /// before and since.
    pub(super) fn count(
        &self,
        file: &Path,
        before: Option<&str>,
        after: Option<&str>,
    ) -> io::Result<()> {
        let config = if before.is_none() { self.load() } else { None };
        let kind = config.map_or(Kind::Other, |config| {
            match config.files.iter().any(|it| it == file) {
                true => Kind::Settings,
                false if config.files_beside().any(|it| it == file) => Kind::Beside,
                false => Kind::Other,
            }
        });
        let _held = self.hold()?;
        for path in self.all()? {
            let Some(mut note) = read(&path) else {
                continue;
            };
            if note.wrote(file, [before, after], kind) {
                write(&path, &note)?;
            }
        }
        Ok(())
    }

    /// Returns the current state and the differences, by name; with `count` the state is accepted.
    pub(super) fn look(
        &self,
        data: &Path,
        config: &Loaded,
        count: bool,
    ) -> Result<(State, Vec<String>), TrustError> {
        let whole = if self.reads_all { None } else { self.load() };
        let compare = || {
            let mut now = State::of(whole.as_ref().unwrap_or(config), &self.location);
            if !self.reads_all && whole.is_none() {
                return Ok((now, Changes::default()));
            }
            // Without records there is nothing to compare and no reason to walk. Others wait no longer than necessary.
            let has_notes = self.all().is_ok_and(|it| !it.is_empty());
            if has_notes {
                now = now.with_below();
            }
            let _held = self.hold()?;
            if !has_notes && !self.all()?.is_empty() {
                now = now.with_below();
            }
            let mut found = self.compare(&now, count)?;
            found
                .settings
                .retain(|file, _| self.reads_all || config.files.contains(file));
            found
                .beside
                .retain(|file, _| self.reads_all || config.files_beside().any(|it| it == file));
            Ok((now, self.here(found)))
        };
        let (now, found) = compare().map_err(|error: io::Error| TrustError::Folder {
            path: self.folder.display().to_string(),
            reason: error.to_string(),
        })?;
        if found.plugins {
            outrigger_plugin_trust::trust_no_newcomers(data, &config.project_folder())?;
        }
        Ok((now, self.named(&found)))
    }

    pub(super) fn named(&self, found: &Changes) -> Vec<String> {
        found
            .settings
            .iter()
            .map(|(file, what)| {
                let name = file.strip_prefix(&self.location.worktree).unwrap_or(file);
                format!("{} ({what})", name.display())
            })
            .collect()
    }
}

pub(super) fn read(path: &Path) -> Option<Note> {
    serde_json::from_slice(&outrigger_files::read(path, outrigger_files::DATA).ok()?).ok()
}

/// Writes a record that is complete even if the process is killed meanwhile: an unreadable one would keep every agent from
/// starting.
pub(super) fn write(path: &Path, note: &Note) -> io::Result<()> {
    let mut text = serde_json::to_vec(note)?;
    match OpenOptions::new().write(true).open(path) {
        // Its agent holds a lock on it, so it must stay the same file. Trailing blanks in JSON are insignificant.
        Ok(file) => {
            let size = text.len();
            let before = usize::try_from(file.metadata()?.len()).unwrap_or(size);
            text.resize(size.max(before), b' ');
            file.write_all_at(&text, 0)?;
            file.set_len(size as u64)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let part = path.with_extension(PART);
            fs::write(&part, &text)?;
            fs::rename(&part, path)
        }
        Err(error) => Err(error),
    }
}
