//! Files with command hooks that the user has allowed.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use outrigger_config::claude_hooks::{HookFile, HookScope};
use outrigger_workspace::Folders;

use crate::allow_lists::{self, digest, key};

/// Files whose hooks the user has allowed, stored in `hooks-allowed.json` in the data folder: for each file a digest of its
/// `hooks` and of the scripts that they name.
#[derive(Clone, Debug)]
pub struct AllowedHooks {
    path: PathBuf,
    home: PathBuf,
}

type Table = BTreeMap<String, String>;

impl AllowedHooks {
    /// Returns those of this user.
    #[must_use]
    pub fn new(folders: &Folders) -> Self {
        Self {
            path: folders.data.join("hooks-allowed.json"),
            home: folders.home.clone(),
        }
    }

    /// Returns whether the current hooks of the file may run: always for the user's own file.
    #[must_use]
    pub fn holds(&self, file: &HookFile) -> bool {
        if file.scope == HookScope::User {
            return true;
        }
        let table: Table = allow_lists::read(&self.path);
        let known = table.get(&key(&file.file));
        known.is_some() && known == self.digest(file).as_ref()
    }

    /// Returns whether the user has allowed an earlier or the current state of the file's hooks.
    #[must_use]
    pub fn knows(&self, file: &Path) -> bool {
        let table: Table = allow_lists::read(&self.path);
        table.contains_key(&key(file))
    }

    fn digest(&self, file: &HookFile) -> Option<String> {
        digest(&file.written, &file.folder, &self.home)
    }

    /// Allows the hooks of a file as they are now.
    ///
    /// # Errors
    /// The list cannot be written.
    pub fn allow(&self, file: &HookFile) -> io::Result<()> {
        let digest = self.digest(file).ok_or_else(allow_lists::too_many)?;
        let mut table: Table = allow_lists::read(&self.path);
        table.insert(key(&file.file), digest);
        allow_lists::write(&self.path, &table)
    }

    /// Takes that back; false when they were not allowed.
    ///
    /// # Errors
    /// The list cannot be written.
    pub fn revoke(&self, file: &HookFile) -> io::Result<bool> {
        let mut table: Table = allow_lists::read(&self.path);
        let there = table.remove(&key(&file.file)).is_some();
        allow_lists::write(&self.path, &table)?;
        Ok(there)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn hooks_are_allowed_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let allowed = AllowedHooks {
            path: dir.path().join("sub/allowed.json"),
            home: dir.path().to_owned(),
        };
        let file = |path: &str, scope, written: Value| HookFile {
            file: path.into(),
            scope,
            folder: "/p".into(),
            written,
            ..HookFile::default()
        };
        let project = |path: &str, written| file(path, HookScope::Project, written);
        let one = project("/p/.claude/settings.json", json!({"Stop": []}));
        assert!(!allowed.holds(&one));
        allowed.allow(&one).unwrap();
        assert!(allowed.holds(&one));
        assert!(!allowed.holds(&project("/p/.claude/settings.json", json!({"Stop": [1]}))));
        assert!(!allowed.holds(&project("/q/.claude/settings.json", json!({"Stop": []}))));
        assert!(allowed.revoke(&one).unwrap() && !allowed.holds(&one));
        assert!(!allowed.revoke(&one).unwrap());
        assert!(allowed.holds(&file("/home", HookScope::User, json!({}))));
    }
}
