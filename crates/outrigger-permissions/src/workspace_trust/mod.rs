//! Whose word the settings of a project are (issue 5, items 4 and 5).
//!
//! What they name is started with the user's rights, as in OpenCode, and sandboxed processes may write to the project.
//! So an agent notes the settings that there are when it first starts a sandboxed process, and removes the note when it
//! ends and they are the same. Settings that differ from a note that is left were changed by a sandboxed process, or by
//! the user meanwhile, and not by our own tools: no agent starts with them before the user has let them count
//! (`outrigger config allow`). What is changed while nothing runs counts as the user's, and needs no approval.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use outrigger_config::Loaded;
use outrigger_config::settings::{Sandbox, TrustChanges};
use outrigger_sandbox::SandboxError;
use outrigger_workspace::Place;
use outrigger_workspace::sync::lock;

use crate::config_source::ConfigSource;
use crate::error::TrustError;

mod note;
mod notes;

pub use note::digest;
use note::{Note, State};
use notes::{Notes, read, write};

static COUNT: AtomicU64 = AtomicU64::new(0);

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
        let now = self.notes.load().map(|config| self.notes.now(&config));
        let _held = self.notes.hold()?;
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
        let now = self.notes.load().map(|config| self.notes.now(&config));
        let Ok(_held) = self.notes.hold() else { return };
        let note = read(&path).zip(now);
        let found = note.map(|(note, now)| note.against(&now, &self.notes.place.directory));
        let Some(found) = found else { return };
        let below = found.below.clone();
        if found.is_empty() {
            let _ = fs::remove_file(&path);
        }
        let mut here = self.notes.here(found);
        if self.notes.unseen {
            here.settings.extend(below);
        }
        for named in self.notes.named(&here) {
            tracing::warn!(
                "[config] {named} while Outrigger ran: it needs `outrigger config allow` before the next start"
            );
        }
        drop(file);
    }

    /// A tool of ours wrote this file, which had said what has the digest `before`. Blocking.
    pub fn count(&self, file: &Path, before: Option<&str>, after: Option<&str>) {
        if let Err(error) = self.notes.count(file, before, after) {
            tracing::warn!("[config] {}: {error}", self.notes.folder.display());
        }
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
    let before = change
        .before
        .as_ref()
        .and_then(|text| digest(file, text.as_bytes()));
    let after = digest(file, change.after.as_bytes());
    if let Err(error) = notes.count(file, before.as_deref(), after.as_deref()) {
        tracing::warn!("[config] {}: {error}", notes.folder.display());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use outrigger_config::LoadOptions;
    use outrigger_workspace::Folders;

    use super::notes::SWITCHES;
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
            let known = before.and_then(|text: &str| digest(&file, text.as_bytes()));
            let ours = digest(&file, OURS.as_bytes());
            settled.count(&file, known.as_deref(), ours.as_deref());
            let changed = settled.notes.changed().unwrap();
            let changed: Vec<String> = changed.into_iter().collect();
            assert_eq!(changed.join(", "), want, "{file:?} {before:?} {there}");
            settled.end().await;
            let refused = begun(&boot).await.err().map(|error| error.code());
            let wanted = (!want.is_empty()).then_some("config.changed");
            assert_eq!(refused, wanted, "{file:?} {before:?} {there}");
        }
    }

    /// What is trusted unseen counts as it was before something ran, whatever reads it. A person is asked about the same by its content.
    #[tokio::test]
    async fn what_else_takes_trust_counts_unseen_as_it_was() {
        const HOOKS: &str =
            r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}"#;
        const SERVER: &str = r#"{"mcpServers": {"e": {"command": "x"}}}"#;
        const SKILL: &str = "---\nname: s\ndescription: d\n---\n!`x`";
        let settings = "{}";
        for (left, text, at, want) in [
            (
                ".claude/settings.json",
                HOOKS,
                "",
                ".claude/settings.json (new)",
            ),
            (
                ".claude/settings.local.json",
                HOOKS,
                "sub",
                ".claude/settings.local.json (new)",
            ),
            (
                ".claude/settings.local.json",
                r#"{"permissions": {}}"#,
                "",
                "",
            ),
            (".mcp.json", SERVER, "", ".mcp.json (new)"),
            (
                ".claude/commands/c.md",
                "!`x`",
                "",
                ".claude/commands/c.md (new)",
            ),
            (".claude/commands/c.md", "text", "", ""),
            (
                ".agents/skills/s/SKILL.md",
                SKILL,
                "",
                ".agents/skills/s/SKILL.md (new)",
            ),
            ("sub/.mcp.json", SERVER, "sub", "sub/.mcp.json (new)"),
            ("sub/.mcp.json", SERVER, "", ""),
            (
                "sub/.claude/settings.json",
                HOOKS,
                "sub",
                "sub/.claude/settings.json (new)",
            ),
            (
                "sub/opencode.json",
                r#"{ "username": "x" }"#,
                "sub",
                "sub/opencode.json (new)",
            ),
            (
                "sub/known/.mcp.json",
                SERVER,
                "sub/known",
                "sub/known/.mcp.json (changed)",
            ),
            (
                "a/b/c/d/e/f/g/h/i/j/opencode.json",
                r#"{ "username": "x" }"#,
                "a/b/c/d/e/f/g/h/i/j",
                "a/b/c/d/e/f/g/h/i/j/opencode.json (new)",
            ),
            (
                "node_modules/x/.mcp.json",
                SERVER,
                "node_modules/x",
                "node_modules/x/.mcp.json (new)",
            ),
            // As in another folder: of another working tree.
            ("sub/opencode.json", settings, "sub", ""),
        ] {
            for (is_unseen, by_tool) in [(true, false), (true, true), (false, false)] {
                let (_dir, mut boot, _) = project().await;
                if is_unseen {
                    let trust = outrigger_config::TRUST_PROJECT.to_owned();
                    boot.env.insert(trust, "1".to_owned());
                }
                let root = boot.directory.clone();
                fs::create_dir_all(root.join("sub/known")).unwrap();
                fs::write(root.join("sub/known/.mcp.json"), "{}").unwrap();
                let settled = begun(&boot).await.unwrap();
                settled.runs().unwrap();
                let file = root.join(left);
                let before = fs::read(&file).ok();
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(&file, text).unwrap();
                if by_tool {
                    let before = before.and_then(|it| digest(&file, &it));
                    let after = digest(&file, text.as_bytes());
                    settled.count(&file, before.as_deref(), after.as_deref());
                }
                settled.end().await;
                boot.directory = root.join(at);
                let files = match begun(&boot).await {
                    Err(TrustError::SettingsChanged { files }) => files.join(", "),
                    other => {
                        other.unwrap();
                        String::new()
                    }
                };
                let is_refused = is_unseen && !by_tool;
                let want = if is_refused { want } else { "" };
                assert_eq!(files, want, "{left} {is_unseen} {by_tool}");
                // It counts once it was let.
                allow_settings(&boot).unwrap();
                begun(&boot).await.unwrap();
            }
        }
    }

    /// Who does not read the project's settings notes and keeps what there is of them, and starts whatever they say.
    #[tokio::test]
    async fn what_is_not_read_is_noted_all_the_same() {
        let (_dir, boot, _) = project().await;
        let without = project_without(&boot);
        for changes in ["the first", "another"] {
            let settled = begun(&without).await.unwrap();
            settled.runs().unwrap();
            let text = format!("{{ \"username\": \"{changes}\" }}");
            fs::write(boot.directory.join("opencode.json"), text).unwrap();
            settled.end().await;
            begun(&without).await.unwrap();
            let refused = begun(&boot).await.unwrap_err();
            assert_eq!(refused.code(), "config.changed", "{changes}");
            allow_settings(&boot).unwrap();
            begun(&boot).await.unwrap();
        }
        // A broken file neither keeps it from starting nor counts.
        begun(&without).await.unwrap().runs().unwrap();
        fs::write(boot.directory.join("opencode.json"), "{").unwrap();
        begun(&without).await.unwrap();
        fs::write(boot.directory.join("opencode.json"), "{ }").unwrap();
        assert!(begun(&boot).await.is_err());
    }

    fn project_without(boot: &Start) -> Start {
        let mut env = boot.env.clone();
        env.insert(SWITCHES[0].to_owned(), "1".to_owned());
        Start {
            directory: boot.directory.clone(),
            folders: boot.folders.clone(),
            env,
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
