//! Whose word the settings of a project are (issue 5, items 4 and 5).
//!
//! What they name is started with the user's rights, as in OpenCode, and sandboxed processes may write to the project.
//! So an agent notes the settings that there are when it first starts a sandboxed process, and removes the note when it
//! ends and they are the same. Settings that differ from a note that is left were changed by a sandboxed process, or by
//! the user meanwhile, and not by our own tools: no agent starts with them before the user has let them count
//! (`outrigger config allow`). What is changed while nothing runs counts as the user's, and needs no approval.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_config::settings::{Sandbox, TrustChanges};
use outrigger_config::{LoadOptions, Loaded};
use outrigger_sandbox::SandboxError;
use outrigger_workspace::Place;
use outrigger_workspace::lock_file;
use outrigger_workspace::sync::lock;

use crate::config_source::ConfigSource;
use crate::error::TrustError;

mod note;

pub use note::hash;
use note::{Found, Note, State, reads};

/// How long another agent may hold the notes: it reads and writes a few small files meanwhile.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Extension of a note that is being written.
const PART: &str = "part";

static COUNT: AtomicU64 = AtomicU64::new(0);

/// All notes, in our data folder, which no sandboxed process can write to. Where a project begins and ends is not
/// asked: a `.git` that is made or moved away changes that.
#[derive(Debug)]
struct Notes {
    folder: PathBuf,
    options: LoadOptions,
    place: Place,
}

impl Notes {
    fn of(source: &dyn ConfigSource, place: &Place) -> Self {
        Self {
            folder: source.folders().data.join("settings"),
            options: source.options(place),
            place: place.clone(),
        }
    }

    /// Keeps others from reading and writing notes meanwhile. What may take its time is done before.
    ///
    /// # Errors
    /// The folder cannot be used, or another agent has held them for [`LOCK_TIMEOUT`].
    fn hold(&self) -> io::Result<File> {
        fs::create_dir_all(&self.folder)?;
        lock_file::hold(&self.folder.join("lock"), LOCK_TIMEOUT)
    }

    /// All notes, while they are held.
    fn all(&self) -> io::Result<Vec<PathBuf>> {
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

    fn load(&self) -> Option<Loaded> {
        outrigger_config::load(&self.options).ok()
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

    /// Files that are not as they were noted, by name; none where that cannot be known.
    fn changed(&self) -> io::Result<BTreeSet<String>> {
        let Some(config) = self.load() else {
            return Ok(BTreeSet::new());
        };
        let _held = self.hold()?;
        let now = State::of(&config, &self.place);
        let mut all = BTreeSet::new();
        for note in self.all()?.iter().filter_map(|path| read(path)) {
            let found = note.against(&now, &self.place.directory);
            all.extend(self.named(&found));
        }
        Ok(all)
    }

    /// What a file says was changed by the user's word, from what has this digest (`None`: it was not there). It counts in the
    /// notes that have it so, and with the digest of what was written: others may have changed it before and since.
    fn count(&self, file: &Path, before: Option<&str>, after: &str) -> io::Result<()> {
        let is_read = |config: Loaded| config.files.iter().any(|it| it == file);
        let is_new = before.is_none() && self.load().is_some_and(is_read);
        let _held = self.hold()?;
        for path in self.all()? {
            let Some(mut note) = read(&path).filter(|note| reads(&note.directory, file)) else {
                continue;
            };
            let known = note.state.settings.get(file).map(String::as_str);
            if known == before && (known.is_some() || is_new) {
                let settings = &mut note.state.settings;
                settings.insert(file.to_owned(), after.to_owned());
                write(&path, &note)?;
            }
        }
        Ok(())
    }
}

fn read(path: &Path) -> Option<Note> {
    serde_json::from_slice(&outrigger_files::read(path, outrigger_files::DATA).ok()?).ok()
}

/// Writes a note that is whole also where we are killed meanwhile: one that cannot be read would keep everybody from starting.
fn write(path: &Path, note: &Note) -> io::Result<()> {
    let mut text = serde_json::to_vec(note)?;
    match OpenOptions::new().write(true).open(path) {
        // Its agent has it locked, so it has to stay the same file. Blanks behind JSON mean nothing.
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

/// The note of one agent.
#[derive(Debug)]
pub struct WorkspaceTrust {
    notes: Notes,
    /// As it began.
    began: State,
    /// The note, locked as long as its agent lives. None before something runs.
    own: Mutex<Option<(PathBuf, File)>>,
}

impl WorkspaceTrust {
    /// Checks whether an agent may begin with the current settings. `None`: nothing is sandboxed here.
    ///
    /// # Errors
    /// [`TrustError::SettingsChanged`]; a data folder that cannot be used.
    pub async fn begin(
        source: &dyn ConfigSource,
        config: &Loaded,
        place: &Place,
    ) -> Result<Option<Arc<Self>>, TrustError> {
        if config.settings.sandbox == Sandbox::Off {
            return Ok(None);
        }
        let notes = Notes::of(source, place);
        let allow = config.settings.trust.changes == TrustChanges::Allow;
        let (config, data) = (config.clone(), source.folders().data.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let (began, found) = notes.look(&data, &config, allow)?;
            Ok::<_, TrustError>((notes, began, found))
        });
        let looked = looked.await.map_err(|_| SandboxError::Stopped)?;
        let (notes, began, found) = looked?;
        if !allow && !found.is_empty() {
            return Err(TrustError::SettingsChanged { files: found });
        }
        Ok(Some(Arc::new(Self {
            notes,
            began,
            own: Mutex::default(),
        })))
    }

    /// Something is about to run that may write to the project. Blocking, the first time.
    ///
    /// # Errors
    /// The settings cannot be noted. It must not run then: what it changed would count.
    pub fn runs(&self) -> Result<(), SandboxError> {
        let mut own = lock(&self.own);
        if own.is_none() {
            let path = self.notes.folder.clone();
            let noted = self.note();
            *own = Some(noted.map_err(|source| SandboxError::Note { path, source })?);
        }
        Ok(())
    }

    /// The same, beside the caller's thread.
    ///
    /// # Errors
    /// As for [`WorkspaceTrust::runs`].
    pub async fn will_run(self: &Arc<Self>) -> Result<(), SandboxError> {
        let settled = Arc::clone(self);
        let noted = tokio::task::spawn_blocking(move || settled.runs()).await;
        noted.map_err(|_| SandboxError::Stopped)?
    }

    fn note(&self) -> io::Result<(PathBuf, File)> {
        let config = self.notes.load();
        let _held = self.notes.hold()?;
        let now = config.map(|config| State::of(&config, &self.notes.place));
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}.json", std::process::id());
        let path = self.notes.folder.join(name);
        let note = Note {
            directory: self.notes.place.directory.clone(),
            state: now.unwrap_or_else(|| self.began.clone()),
        };
        write(&path, &note)?;
        let file = File::open(&path)?;
        file.lock()?;
        Ok((path, file))
    }

    /// Everything that ran has ended: takes the note away, unless something changed.
    pub async fn end(self: &Arc<Self>) {
        let settled = Arc::clone(self);
        if let Err(error) = tokio::task::spawn_blocking(move || settled.take_away()).await {
            tracing::warn!("[config] {error}");
        }
    }

    /// Settings of the project that changed since this began, and not by our tools.
    pub async fn changed(self: &Arc<Self>) -> Vec<String> {
        let settled = Arc::clone(self);
        let changed = tokio::task::spawn_blocking(move || settled.notes.changed()).await;
        let changed = changed.ok().and_then(Result::ok);
        changed.into_iter().flatten().collect()
    }

    fn take_away(&self) {
        let Some((path, file)) = lock(&self.own).take() else {
            return;
        };
        let config = self.notes.load();
        let Ok(_held) = self.notes.hold() else { return };
        let note = read(&path).zip(config);
        let found = note.map(|(note, config)| {
            let now = State::of(&config, &self.notes.place);
            note.against(&now, &self.notes.place.directory)
        });
        let Some(found) = found else { return };
        if found.is_empty() {
            let _ = fs::remove_file(&path);
        }
        for named in self.notes.named(&found) {
            tracing::warn!(
                "[config] {named} while Outrigger ran: it needs `outrigger config allow` before the next start"
            );
        }
        drop(file);
    }

    /// A tool of ours wrote this file, which had said what has the digest `before`. Blocking.
    pub fn count(&self, file: &Path, before: Option<&str>, after: &str) {
        if let Err(error) = self.notes.count(file, before, after) {
            tracing::warn!("[config] {}: {error}", self.notes.folder.display());
        }
    }
}

impl Notes {
    /// How it is now, and what is not as it was noted, by name; with `count` it is from now on.
    fn look(
        &self,
        data: &Path,
        config: &Loaded,
        count: bool,
    ) -> Result<(State, Vec<String>), TrustError> {
        let compare = || {
            let _held = self.hold()?;
            let now = State::of(config, &self.place);
            let found = self.compare(&now, count)?;
            Ok((now, found))
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

    fn named(&self, found: &Found) -> Vec<String> {
        let files = found.settings.iter();
        let named = files.map(|(file, what)| {
            let name = file.strip_prefix(&self.place.worktree).unwrap_or(file);
            format!("{} ({what})", name.display())
        });
        named.collect()
    }
}

/// Settings of the folder's project that changed while something in a sandbox ran, and have to be allowed.
///
/// # Errors
/// A data folder that cannot be used.
pub async fn changed(
    source: &dyn ConfigSource,
    place: &Place,
    config: &Loaded,
) -> Result<Vec<String>, TrustError> {
    let settings = &config.settings;
    if settings.sandbox == Sandbox::Off || settings.trust.changes == TrustChanges::Allow {
        return Ok(Vec::new());
    }
    let (notes, config) = (Notes::of(source, place), config.clone());
    let data = source.folders().data.clone();
    let looked = tokio::task::spawn_blocking(move || notes.look(&data, &config, false)).await;
    Ok(looked.map_err(|_| SandboxError::Stopped)??.1)
}

/// Lets the settings of the folder's project count as they are, and says which were not as they had been.
///
/// # Errors
/// Those of the configuration and of the data folder.
pub fn allow_settings(source: &dyn ConfigSource) -> Result<Vec<String>, TrustError> {
    let place = Place::find(source.directory());
    let config = source.load_config(&place)?;
    let looked = Notes::of(source, &place).look(&source.folders().data, &config, true)?;
    Ok(looked.1)
}

/// What was made of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// What it had said; `None` where it was not there.
    pub before: Option<String>,
    /// What was written.
    pub after: String,
}

/// A settings file was written by the user's word: it counts as it was written, if it counted before. Blocking.
pub fn count_settings(source: &dyn ConfigSource, file: &Path, change: &Rewritten) {
    let notes = Notes::of(source, &Place::find(source.directory()));
    let before = change.before.as_ref().map(|text| hash(text.as_bytes()));
    let after = hash(change.after.as_bytes());
    if let Err(error) = notes.count(file, before.as_deref(), &after) {
        tracing::warn!("[config] {}: {error}", notes.folder.display());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use outrigger_workspace::Folders;

    use super::*;

    /// A project with one settings file, and the agent's side of it.
    struct Start {
        directory: PathBuf,
        folders: Folders,
        env: BTreeMap<String, String>,
    }

    impl ConfigSource for Start {
        fn directory(&self) -> &Path {
            &self.directory
        }

        fn folders(&self) -> &Folders {
            &self.folders
        }

        fn options(&self, place: &Place) -> LoadOptions {
            let (directory, worktree) = (place.directory.clone(), place.worktree.clone());
            let home = self.folders.home.clone();
            let mut options = LoadOptions::new(directory, worktree, home, self.env.clone());
            options.xdg_config.clone_from(&self.folders.config);
            options.hooks = outrigger_plugins::refusing_hooks();
            options.project =
                crate::folder_trust::extent(&self.env, &self.folders, place, &options);
            options
        }
    }

    async fn project() -> (tempfile::TempDir, Start, Arc<WorkspaceTrust>) {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().canonicalize().unwrap().join("project");
        // It ends here, whatever is in the folders above.
        fs::create_dir_all(project.join(".git")).unwrap();
        fs::write(project.join("opencode.json"), "{}").unwrap();
        let home = dir.path().display().to_string();
        let env = BTreeMap::from([("HOME".to_owned(), home)]);
        let boot = Start {
            directory: project,
            folders: Folders::from_env(&env),
            env,
        };
        let settled = begun(&boot).await.unwrap();
        (dir, boot, settled)
    }

    async fn begun(boot: &Start) -> Result<Arc<WorkspaceTrust>, TrustError> {
        let place = Place::find(&boot.directory);
        let config = boot.load_config(&place).unwrap();
        let settled = WorkspaceTrust::begin(boot, &config, &place).await?;
        Ok(settled.unwrap())
    }

    /// The first start of a sandboxed process notes the settings, which reads the configuration; no later one does.
    #[tokio::test]
    async fn they_are_read_once_however_much_runs() {
        let (_dir, boot, settled) = project().await;
        settled.runs().unwrap();
        let notes = settled.notes.all().unwrap();
        assert_eq!(notes.len(), 1, "{notes:?}");
        // Whatever looks at the notes makes their folder, and whatever reads the configuration fails.
        fs::remove_dir_all(&settled.notes.folder).unwrap();
        fs::write(boot.directory.join("opencode.json"), "{").unwrap();
        for _ in 0..3 {
            settled.runs().unwrap();
        }
        assert!(!settled.notes.folder.exists());
    }

    /// Nothing runs of which no note can be made.
    #[tokio::test]
    async fn without_a_note_nothing_runs() {
        let (_dir, _boot, settled) = project().await;
        fs::remove_dir_all(&settled.notes.folder).unwrap();
        fs::write(&settled.notes.folder, "").unwrap();
        let error = settled.will_run().await.unwrap_err();
        assert_eq!(error.code(), "spawn.note");
        assert!(error.to_string().contains("settings"), "{error}");
        // It can be again.
        fs::remove_file(&settled.notes.folder).unwrap();
        settled.will_run().await.unwrap();
        assert_eq!(settled.notes.all().unwrap().len(), 1);
    }

    /// What counts is what was written by the user's word, on top of what counted; not what is there by the time it is looked at.
    #[tokio::test]
    async fn what_was_written_counts_and_not_what_is_there() {
        const OURS: &str = r#"{ "username": "ours" }"#;
        const THEIRS: &str = r#"{ "username": "theirs" }"#;
        let (known, new) = ("opencode.json", "opencode.jsonc");
        for (file, before, there, want) in [
            (known, Some("{}"), OURS, ""),
            (known, Some("{}"), THEIRS, "opencode.json (changed)"),
            (known, Some(THEIRS), OURS, "opencode.json (changed)"),
            (new, None, OURS, ""),
            (new, None, THEIRS, "opencode.jsonc (changed)"),
            (new, Some(THEIRS), OURS, "opencode.jsonc (new)"),
        ] {
            let (_dir, boot, settled) = project().await;
            settled.runs().unwrap();
            let file = boot.directory.join(file);
            fs::write(&file, there).unwrap();
            let digest = before.map(|text: &str| hash(text.as_bytes()));
            settled.count(&file, digest.as_deref(), &hash(OURS.as_bytes()));
            let changed = settled.notes.changed().unwrap();
            let changed: Vec<String> = changed.into_iter().collect();
            assert_eq!(changed.join(", "), want, "{file:?} {before:?} {there}");
            settled.end().await;
            let refused = begun(&boot).await.err().map(|error| error.code());
            let wanted = (!want.is_empty()).then_some("config.changed");
            assert_eq!(refused, wanted, "{file:?} {before:?} {there}");
        }
    }

    /// A process that is killed while it writes a note leaves none, and one that is rewritten stays its agent's and
    /// whole.
    #[tokio::test]
    async fn a_note_is_whole_or_not_there() {
        let (_dir, boot, settled) = project().await;
        let folder = settled.notes.folder.clone();
        let part = folder.join("1-0.part");
        fs::write(&part, "{\"direct").unwrap();
        let next = begun(&boot).await.unwrap();
        assert!(!part.exists());
        next.runs().unwrap();
        let [path] = &next.notes.all().unwrap()[..] else {
            panic!("one note");
        };
        let long = read(path).unwrap();
        let mut short = long.clone();
        short.state.settings.clear();
        write(path, &short).unwrap();
        assert!(read(path).unwrap().state.settings.is_empty());
        write(path, &long).unwrap();
        assert_eq!(read(path).unwrap().state, long.state);
        assert!(
            File::open(path).unwrap().try_lock().is_err(),
            "it is locked still"
        );
    }

    /// Another agent that holds the notes and does not go on keeps nobody waiting for ever.
    #[tokio::test]
    async fn notes_that_another_holds_are_not_waited_for_for_ever() {
        let (_dir, _boot, settled) = project().await;
        let _held = settled.notes.hold().unwrap();
        let error = settled.will_run().await.unwrap_err();
        assert_eq!(error.code(), "spawn.note");
        assert!(error.to_string().contains("another Outrigger"), "{error}");
    }
}
