//! The settings of a project at one time, and what of them another time finds otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use outrigger_config::{Loaded, PluginScope, PluginSource};
use outrigger_protocol::text::hex;
use outrigger_workspace::Place;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Folders of settings within a folder of the project.
const FOLDERS: [&str; 3] = [".opencode", ".outrigger", ".claude"];

/// The settings of a project at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// Digests of the files that are read.
    pub(super) settings: BTreeMap<PathBuf, String>,
    /// Plugins and tools that lie in the project. What is in them is looked at where plugins are trusted.
    pub(super) plugins: BTreeSet<String>,
}

/// What there was before something ran.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) directory: PathBuf,
    pub(super) state: State,
}

/// What is not as it was noted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Files, with what became of them.
    pub(super) settings: BTreeMap<PathBuf, &'static str>,
    /// There are plugins that were not there.
    pub(super) plugins: bool,
}

impl Found {
    pub(super) fn is_empty(&self) -> bool {
        self.settings.is_empty() && !self.plugins
    }
}

fn digest(path: &Path) -> String {
    outrigger_files::read(path, outrigger_files::DATA)
        .map_or_else(|error| error.kind().to_string(), |bytes| hash(&bytes))
}

/// The digest of what a settings file says, as it is noted.
pub fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The folder of a project that a settings file speaks for: those who work in it, or below it, read the file.
fn speaks_for(file: &Path) -> &Path {
    let is_settings = |dir: &&Path| {
        let name = dir.file_name();
        name.is_some_and(|name| FOLDERS.iter().any(|it| name == *it))
    };
    let within = file.ancestors().find(is_settings);
    within.unwrap_or(file).parent().unwrap_or(file)
}

impl State {
    pub(super) fn of(config: &Loaded, place: &Place) -> Self {
        let own = config.files.iter();
        let own = own.filter(|file| file.starts_with(&place.worktree));
        let skipped = config.skipped.iter().map(|skipped| &skipped.plugin);
        let plugins = config.plugins.iter().chain(&config.tool_files);
        let lies_here = plugins.chain(skipped).filter(|plugin| {
            plugin.scope == PluginScope::Local && plugin.source != PluginSource::Config
        });
        let roots = config.plugin_roots().workspace.into_iter();
        let manifests = roots.flat_map(|root| fs::read_dir(root).into_iter().flatten().flatten());
        let manifests = manifests.map(|entry| entry.path().display().to_string());
        Self {
            settings: own.map(|file| (file.clone(), digest(file))).collect(),
            plugins: lies_here
                .map(outrigger_config::PluginSpec::key)
                .chain(manifests)
                .collect(),
        }
    }
}

impl Note {
    /// What another one, who works in `directory`, finds otherwise. What only one of the two reads is not compared.
    pub(super) fn against(&self, now: &State, directory: &Path) -> Found {
        let was = &self.state;
        let mut found = Found::default();
        for (file, digest) in &now.settings {
            match was.settings.get(file) {
                Some(known) if known != digest => {
                    found.settings.insert(file.clone(), "changed");
                }
                None if reads(&self.directory, file) => {
                    found.settings.insert(file.clone(), "new");
                }
                _ => {}
            }
        }
        for file in was.settings.keys() {
            // One that is there and not read is another project's: where that begins is not asked.
            if reads(directory, file) && !now.settings.contains_key(file) && !file.exists() {
                found.settings.insert(file.clone(), "removed");
            }
        }
        found.plugins =
            self.directory.starts_with(directory) && !now.plugins.is_subset(&was.plugins);
        found
    }
}

/// Whether who works in `directory` reads this file.
pub(super) fn reads(directory: &Path, file: &Path) -> bool {
    directory.starts_with(speaks_for(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_a_file() {
        for (file, folder) in [
            ("/p/opencode.json", "/p"),
            ("/p/.opencode/opencode.json", "/p"),
            ("/p/a/.opencode/agent/x/y.md", "/p/a"),
            ("/p/.outrigger/outrigger.toml", "/p"),
        ] {
            assert_eq!(speaks_for(Path::new(file)), Path::new(folder), "{file}");
        }
    }

    #[test]
    fn what_differs_from_a_note() {
        let state = |files: &[(&str, &str)], plugins: &[&str]| State {
            settings: files
                .iter()
                .map(|(file, text)| (PathBuf::from(file), (*text).to_owned()))
                .collect(),
            plugins: plugins.iter().map(|name| (*name).to_owned()).collect(),
        };
        let note = |directory: &str, state: State| Note {
            directory: directory.into(),
            state,
        };
        let both = [("/p/opencode.json", "1"), ("/p/a/opencode.json", "2")];
        for (was, directory, now, want, plugins) in [
            ("/p/a", "/p/a", state(&both, &["x"]), vec![], false),
            ("/p/a", "/p", state(&both[..1], &["x"]), vec![], false),
            (
                "/p/a",
                "/p/a",
                state(&both[..1], &[]),
                vec!["/p/a/opencode.json removed"],
                false,
            ),
            ("/p/a", "/p/a", state(&both, &["x", "y"]), vec![], true),
            (
                "/p/a",
                "/p",
                state(
                    &[("/p/opencode.json", "3"), ("/p/.opencode/agent/a.md", "4")],
                    &[],
                ),
                vec!["/p/.opencode/agent/a.md new", "/p/opencode.json changed"],
                false,
            ),
            // Another folder's own file is not known of.
            (
                "/p/a",
                "/p/b",
                state(&[both[0], ("/p/b/opencode.json", "5")], &["z"]),
                vec![],
                false,
            ),
        ] {
            let found = note(was, state(&both, &["x"])).against(&now, Path::new(directory));
            let lines = found.settings.iter();
            let lines: Vec<String> = lines
                .map(|(file, what)| format!("{} {what}", file.display()))
                .collect();
            assert_eq!(
                (lines, found.plugins),
                (want.iter().map(|it| (*it).to_owned()).collect(), plugins),
                "{directory}"
            );
        }
    }
}
