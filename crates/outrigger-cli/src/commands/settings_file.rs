//! An `opencode.json` that a command changes. Comments, order and layout of unchanged parts are kept.

use std::io;
use std::path::PathBuf;

use outrigger_agent::{Boot, ProjectLocation, Rewritten, accept_rewritten_settings};
use outrigger_config::{edited, global_file, project_file, with_item, without, without_items};
use outrigger_files::Readers;
use outrigger_protocol::diagnose::Diagnose;
use serde_json::Value;

use crate::failure::Failure;

/// The file and its text, changed but not yet written.
pub(super) struct SettingsFile {
    path: PathBuf,
    /// As it was read; `None` if it did not exist.
    before: Option<String>,
    text: String,
    of_user: bool,
}

impl SettingsFile {
    /// Loads the file of the project, or the user's own. A missing one is empty.
    ///
    /// # Errors
    /// The file cannot be read, or the project's is a link, whose target the project chooses.
    pub(super) fn load(boot: &Boot, of_user: bool) -> Result<Self, Failure> {
        let path = if of_user {
            global_file(&boot.folders.config.join("opencode"))
        } else {
            project_file(&ProjectLocation::find(&boot.directory).worktree)
        };
        if !of_user {
            outrigger_files::refuse_link(&path)
                .map_err(|error| failed(&path.display().to_string(), &error.to_string()))?;
        }
        let before = match outrigger_files::read_to_string(&path, outrigger_files::SETTINGS) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(&path.display().to_string(), &error.to_string())),
        };
        Ok(Self {
            path,
            text: before.clone().unwrap_or_default(),
            before,
            of_user,
        })
    }

    /// Returns its path, for display.
    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Returns whether it has a member.
    pub(super) fn has(&self, path: &[&str]) -> Result<bool, Failure> {
        Ok(!self.text.trim().is_empty()
            && self
                .change(without(&self.text, &self.name(), path))?
                .is_some())
    }

    /// Merges `changes` into it.
    pub(super) fn merge(&mut self, changes: &Value) -> Result<(), Failure> {
        self.text = self.change(edited(&self.text, &self.name(), changes))?;
        Ok(())
    }

    /// Removes a member; returns `false` if there is none.
    pub(super) fn remove(&mut self, path: &[&str]) -> Result<bool, Failure> {
        if self.text.trim().is_empty() {
            return Ok(false);
        }
        let changed = self.change(without(&self.text, &self.name(), path))?;
        Ok(self.take(changed))
    }

    /// Adds an item to a list; returns `false` if it is already there.
    pub(super) fn add_item(&mut self, key: &str, item: &Value) -> Result<bool, Failure> {
        let changed = self.change(with_item(&self.text, &self.name(), key, item))?;
        Ok(self.take(changed))
    }

    /// Removes the items of a list that `fits` selects; returns `false` if there are none.
    pub(super) fn remove_items(
        &mut self,
        key: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> Result<bool, Failure> {
        if self.text.trim().is_empty() {
            return Ok(false);
        }
        let changed = self.change(without_items(&self.text, &self.name(), key, fits))?;
        Ok(self.take(changed))
    }

    /// Writes it atomically. Agents that run in the folder know the change as one of Outrigger's own; what others changed before
    /// stays theirs.
    pub(super) fn write(&self, boot: &Boot) -> Result<(), Failure> {
        let text = self.text.as_bytes();
        let written = if self.of_user {
            outrigger_files::replace(&self.path, text, Readers::AsBefore)
        } else {
            outrigger_files::replace_unlinked(&self.path, text)
        };
        written.map_err(|error| failed(&self.name(), &error.to_string()))?;
        if !self.of_user {
            let change = Rewritten {
                before: self.before.clone(),
                after: self.text.clone(),
            };
            accept_rewritten_settings(boot, &self.path, &change);
        }
        Ok(())
    }

    fn take(&mut self, changed: Option<String>) -> bool {
        match changed {
            Some(text) => {
                self.text = text;
                true
            }
            None => false,
        }
    }

    fn change<T>(&self, changed: Result<T, outrigger_config::ConfigError>) -> Result<T, Failure> {
        changed.map_err(|error| Failure::new(error.code(), error.to_string(), error.hint()))
    }
}

fn failed(file: &str, why: &str) -> Failure {
    Failure::new("config.write", format!("{file}: {why}"), None)
}
