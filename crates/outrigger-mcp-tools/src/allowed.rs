//! Servers of a project's `.mcp.json` (requirement B13). The author of the project chose what they run, so each starts
//! only after the user has approved it, alone or with the rest of the folder, and again after its entry or a script that
//! it names has changed.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use outrigger_config::Loaded;
use outrigger_config::claude::ClaudeServer;
use outrigger_permissions::allow_lists::{self, digest, key};
use outrigger_workspace::Folders;
use serde_json::{Map, Value, json};

/// The user's approvals, in `mcp-allowed.json` of our data folder: a digest of the entry by file and name.
#[derive(Clone, Debug)]
pub struct AllowedServers {
    path: PathBuf,
    home: PathBuf,
}

type Table = BTreeMap<String, BTreeMap<String, String>>;

impl AllowedServers {
    /// Opens the approvals of this user.
    #[must_use]
    pub fn new(folders: &Folders) -> Self {
        Self {
            path: folders.data.join("mcp-allowed.json"),
            home: folders.home.clone(),
        }
    }

    /// Returns whether this exact entry was approved.
    #[must_use]
    pub fn holds(&self, server: &ClaudeServer) -> bool {
        let table: Table = allow_lists::read(&self.path);
        let file = table.get(&key(&server.file));
        let known = file.and_then(|servers| servers.get(&server.name));
        known.is_some() && known == self.digest(server).as_ref()
    }

    fn digest(&self, server: &ClaudeServer) -> Option<String> {
        let folder = server.file.parent().unwrap_or(&server.file);
        digest(&server.written, folder, &self.home)
    }

    /// Approves the current entry.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn allow(&self, server: &ClaudeServer) -> io::Result<()> {
        let digest = self.digest(server).ok_or_else(allow_lists::too_many)?;
        let mut table: Table = allow_lists::read(&self.path);
        table
            .entry(key(&server.file))
            .or_default()
            .insert(server.name.clone(), digest);
        allow_lists::write(&self.path, &table)
    }

    /// Revokes an approval; returns `false` if there was none.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn revoke(&self, server: &ClaudeServer) -> io::Result<bool> {
        let mut table: Table = allow_lists::read(&self.path);
        let there = table
            .get_mut(&key(&server.file))
            .is_some_and(|servers| servers.remove(&server.name).is_some());
        allow_lists::write(&self.path, &table)?;
        Ok(there)
    }
}

/// Returns the servers to start: those of the configuration, and approved ones of `.mcp.json`. The others are listed as
/// disabled; the second result says by name what to do about each.
#[must_use]
pub fn with_claude(
    config: &Loaded,
    folders: &Folders,
) -> (Map<String, Value>, BTreeMap<String, String>) {
    let mut entries = config.config.mcp.clone();
    let mut waiting = BTreeMap::new();
    let allowed = AllowedServers::new(folders);
    let (servers, problems) = config.claude_servers();
    for problem in problems {
        tracing::warn!("[mcp] {problem}");
    }
    for server in servers {
        // OpenCode's own configuration takes precedence.
        if entries.contains_key(&server.name) {
            continue;
        }
        let (name, file) = (&server.name, server.file.display());
        let entry = match &server.entry {
            Err(wrong) => Err(format!("{file}: {wrong}")),
            Ok(_) if !allowed.holds(&server) && !config.lets_server(&server) => Err(format!(
                "{file} requests it; review it, then run `outrigger mcp allow {name}`"
            )),
            Ok(entry) => Ok(entry.clone()),
        };
        let entry = entry.unwrap_or_else(|why| {
            waiting.insert(name.clone(), why);
            // Without a type, so that it cannot be enabled either.
            json!({"enabled": false})
        });
        entries.insert(name.clone(), entry);
    }
    (entries, waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_allowed_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let allowed = AllowedServers {
            path: dir.path().join("sub/allowed.json"),
            home: dir.path().to_owned(),
        };
        let server = |file: &str, written: Value| ClaudeServer {
            name: "m".into(),
            file: file.into(),
            written,
            entry: Ok(json!({})),
        };
        let one = server("/p/.mcp.json", json!({"command": "a"}));
        assert!(!allowed.holds(&one));
        allowed.allow(&one).unwrap();
        assert!(allowed.holds(&one));
        assert!(!allowed.holds(&server("/p/.mcp.json", json!({"command": "b"}))));
        assert!(!allowed.holds(&server("/q/.mcp.json", json!({"command": "a"}))));
        assert!(allowed.revoke(&one).unwrap() && !allowed.holds(&one));
        assert!(!allowed.revoke(&one).unwrap());
    }
}
