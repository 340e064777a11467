//! Secrets of added MCP servers: each in its own file that only the user can read, so that `opencode.json`, which is often
//! shared, only contains a `{file:...}` reference. The folder is in the data folder, which no sandboxed process can access.

use std::io;
use std::path::{Path, PathBuf};

use outrigger_files::Readers;
use serde_json::{Map, Value};

/// The secrets of one server of one `opencode.json`.
pub(super) struct Secrets {
    folder: PathBuf,
}

impl Secrets {
    /// Creates the secrets of the server `name` in `settings`; `data` is our data folder.
    pub(super) fn of(data: &Path, settings: &str, name: &str) -> Self {
        let hash = outrigger_plugins::hash(&(settings, name));
        let folder: String = hash.chars().rev().take(16).collect();
        Self {
            folder: data.join("mcp-secrets").join(folder),
        }
    }

    /// Moves likely secrets of these pairs to files, and replaces them with references. Returns their names.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn take(&self, pairs: &mut Map<String, Value>) -> io::Result<Vec<String>> {
        let mut taken = Vec::new();
        for (name, value) in pairs {
            let Some(text) = value.as_str().filter(|text| is_secret(name, text)) else {
                continue;
            };
            let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
            let file = self
                .folder
                .join(name.chars().map(plain).collect::<String>());
            outrigger_files::replace(&file, text.as_bytes(), Readers::Owner)?;
            *value = format!("{{file:{}}}", file.display()).into();
            taken.push(name.clone());
        }
        Ok(taken)
    }

    /// Returns their folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Removes them.
    ///
    /// # Errors
    /// A folder cannot be removed.
    pub(super) fn remove(&self) -> io::Result<()> {
        match std::fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Returns whether a value is likely to be a secret itself, not a reference to one.
fn is_secret(name: &str, value: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let words = ["auth", "key", "token", "secret", "password", "cookie"];
    words.iter().any(|word| lower.contains(word))
        && !value.contains("{env:")
        && !value.contains("{file:")
}
