//! Detects settings changed by sandboxed processes.
//!
//! Programs named in a project's settings are started with the user's rights, as in OpenCode, and sandboxed processes
//! may write to the project. So an agent records the current settings when it first starts a sandboxed process, and
//! removes the record at its end if they are unchanged. Settings that differ from a remaining record were changed by a
//! sandboxed process, or by the user meanwhile, and not by Outrigger's tools: no agent starts with them before the user
//! has accepted them (`outrigger config allow`). Changes while nothing runs count as the user's, and need no approval.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use outrigger_config::Loaded;
use outrigger_config::settings::{Sandbox, TrustChanges};
use outrigger_sandbox::SandboxError;
use outrigger_stdx::sync::lock;
use outrigger_workspace::ProjectLocation;

use crate::config_source::ConfigSource;
use crate::error::TrustError;

mod note;
mod notes;
#[cfg(test)]
mod tests;

pub use note::digest;
use note::{Note, State};
use notes::{Notes, read, write};

static COUNT: AtomicU64 = AtomicU64::new(0);

/// The record of one agent.
#[derive(Debug)]
pub struct WorkspaceTrust {
    notes: Notes,
    /// State at the start.
    began: State,
    /// The record's file, locked as long as its agent lives. `None` before something runs.
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
        location: &ProjectLocation,
    ) -> Result<Option<Arc<Self>>, TrustError> {
        if config.settings.sandbox == Sandbox::Off {
            return Ok(None);
        }
        let notes = Notes::of(source, location);
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

    /// Records the settings before a process starts that may write to the project. Blocking, the first time.
    ///
    /// # Errors
    /// The settings cannot be recorded. The process must not start then: its changes would take effect.
    pub fn before_process(&self) -> Result<(), SandboxError> {
        let mut own = lock(&self.own);
        if own.is_none() {
            let path = self.notes.folder.clone();
            let noted = self.note();
            *own = Some(noted.map_err(|source| SandboxError::Note { path, source })?);
        }
        Ok(())
    }

    /// Like [`Self::before_process`], on another thread.
    ///
    /// # Errors
    /// As for [`WorkspaceTrust::runs`].
    pub async fn will_run(self: &Arc<Self>) -> Result<(), SandboxError> {
        let settled = Arc::clone(self);
        let noted = tokio::task::spawn_blocking(move || settled.before_process()).await;
        noted.map_err(|_| SandboxError::Stopped)?
    }

    fn note(&self) -> io::Result<(PathBuf, File)> {
        let now = self.notes.load().map(|config| self.notes.now(&config));
        let _held = self.notes.hold()?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}.json", std::process::id());
        let path = self.notes.folder.join(name);
        let note = Note {
            directory: self.notes.location.directory.clone(),
            state: now.unwrap_or_else(|| self.began.clone()),
        };
        write(&path, &note)?;
        let file = File::open(&path)?;
        file.lock()?;
        Ok((path, file))
    }

    /// Called when everything that ran has ended: removes the record, unless something changed.
    pub async fn end(self: &Arc<Self>) {
        let settled = Arc::clone(self);
        if let Err(error) = tokio::task::spawn_blocking(move || settled.take_away()).await {
            tracing::warn!("[config] {error}");
        }
    }

    /// Returns project settings that changed since the start and not through Outrigger's tools.
    pub async fn changed(self: &Arc<Self>) -> Vec<String> {
        let settled = Arc::clone(self);
        let changed = tokio::task::spawn_blocking(move || settled.notes.changed()).await;
        changed
            .ok()
            .and_then(Result::ok)
            .into_iter()
            .flatten()
            .collect()
    }

    fn take_away(&self) {
        let Some((path, file)) = lock(&self.own).take() else {
            return;
        };
        let now = self.notes.load().map(|config| self.notes.now(&config));
        let Ok(_held) = self.notes.hold() else { return };
        let note = read(&path).zip(now);
        let found = note.map(|(note, now)| note.against(&now, &self.notes.location.directory));
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

    /// Accepts a file that one of Outrigger's tools wrote, and whose previous content had the digest `before`.
    /// Blocking.
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
    location: &ProjectLocation,
    config: &Loaded,
) -> Result<Vec<String>, TrustError> {
    let settings = &config.settings;
    if settings.sandbox == Sandbox::Off || settings.trust.changes == TrustChanges::Allow {
        return Ok(Vec::new());
    }
    let (notes, config) = (Notes::of(source, location), config.clone());
    let data = source.folders().data.clone();
    let looked = tokio::task::spawn_blocking(move || notes.look(&data, &config, false)).await;
    Ok(looked.map_err(|_| SandboxError::Stopped)??.1)
}

/// Lets the settings of the folder's project count as they are, and says which were not as they had been.
///
/// # Errors
/// Those of the configuration and of the data folder.
pub fn allow_settings(source: &dyn ConfigSource) -> Result<Vec<String>, TrustError> {
    let location = ProjectLocation::find(source.directory());
    let config = source.load_config(&location)?;
    let looked = Notes::of(source, &location).look(&source.folders().data, &config, true)?;
    Ok(looked.1)
}

/// A change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// Previous content; `None` if it did not exist.
    pub before: Option<String>,
    /// New content.
    pub after: String,
}

/// Accepts a settings file as written on the user's behalf, if it was accepted before. Blocking.
pub fn accept_rewritten_settings(source: &dyn ConfigSource, file: &Path, change: &Rewritten) {
    let notes = Notes::of(source, &ProjectLocation::find(source.directory()));
    let before = change
        .before
        .as_ref()
        .and_then(|text| digest(file, text.as_bytes()));
    let after = digest(file, change.after.as_bytes());
    if let Err(error) = notes.count(file, before.as_deref(), after.as_deref()) {
        tracing::warn!("[config] {}: {error}", notes.folder.display());
    }
}
