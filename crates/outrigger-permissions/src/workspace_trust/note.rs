//! The settings of a project at one time, and the comparison of two times.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use outrigger_config::{Loaded, PluginScope, PluginSource, PluginSpec};
use outrigger_protected_paths::{is_settings, settings_below};
use outrigger_stdx::text::hex;
use outrigger_workspace::ProjectLocation;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Settings folders within a folder of the project.
const FOLDERS: [&str; 4] = [".opencode", ".outrigger", ".claude", ".agents"];

/// The settings of a project at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// Digests of the files that are read.
    pub(super) settings: BTreeMap<PathBuf, String>,
    /// Digests of further files that take effect by content if the user trusts the folder: command hooks, servers of `.mcp.json`,
    /// commands and skills that run something.
    #[serde(default)]
    pub(super) beside: BTreeMap<PathBuf, String>,
    /// Digests of both in folders below `root`, which agents here do not read. A file that is not among them is new, even if it
    /// was skipped because there was too much to check. `None` if they were not checked.
    #[serde(default)]
    pub(super) below: Option<BTreeMap<PathBuf, String>>,
    /// Root of the project.
    #[serde(default)]
    root: PathBuf,
    /// Plugins and tools in the project. Their content is checked by plugin trust.
    pub(super) plugins: BTreeSet<String>,
}

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Settings,
    Beside,
    /// Not read by agents here.
    Other,
}

/// State before something ran.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) directory: PathBuf,
    pub(super) state: State,
}

/// Differences from a record.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Files with their changes.
    pub(super) settings: BTreeMap<PathBuf, &'static str>,
    /// Files that take effect by content elsewhere ([`State::beside`]), and files known only to a record of a folder above.
    pub(super) beside: BTreeMap<PathBuf, &'static str>,
    /// Files that agents here do not read.
    pub(super) below: BTreeMap<PathBuf, &'static str>,
    /// There are new plugins.
    pub(super) plugins: bool,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.is_as_noted() && !self.plugins
    }

    /// Returns whether no file differs.
    pub(super) fn is_as_noted(&self) -> bool {
        self.settings.is_empty() && self.beside.is_empty() && self.below.is_empty()
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.settings.extend(other.settings);
        self.beside.extend(other.beside);
        self.below.extend(other.below);
        self.plugins |= other.plugins;
    }
}

/// Returns the digest of a settings file for the record; `None` if nothing of it takes effect. For Claude Code's settings only
/// hooks do: Claude Code stores its permissions there.
pub fn digest(file: &Path, bytes: &[u8]) -> Option<String> {
    let has = |name: &str| file.components().any(|it| it.as_os_str() == name);
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let of_claude = has(".claude") && name.starts_with("settings.") && name.ends_with(".json");
    if of_claude && let Ok(whole) = serde_json::from_slice::<Value>(bytes) {
        let hooks = whole.get("hooks")?;
        let is_off = whole.get("disableAllHooks") == Some(&Value::Bool(true));
        return Some(hash(format!("{is_off} {hooks}").as_bytes()));
    }
    let is_text = (has(".claude") || has("skills")) && name.ends_with(".md");
    let holds = |word: &[u8]| bytes.windows(word.len()).any(|it| it == word);
    // A command or a skill without lines that run something, and without servers.
    if is_text && !holds(b"!`") && !holds(b"mcp") {
        return None;
    }
    Some(hash(bytes))
}

fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn digest_of(path: &Path) -> Option<String> {
    match outrigger_files::read(path, outrigger_files::DATA) {
        Ok(bytes) => digest(path, &bytes),
        Err(error) => Some(error.kind().to_string()),
    }
}

/// Returns the project folder that a settings file applies to: agents in or below it read the file.
fn speaks_for(file: &Path) -> &Path {
    let is_settings = |dir: &&Path| {
        let name = dir.file_name();
        name.is_some_and(|name| FOLDERS.iter().any(|it| name == *it))
    };
    file.ancestors()
        .find(is_settings)
        .unwrap_or(file)
        .parent()
        .unwrap_or(file)
}

/// Returns the path of a file relative to the folder that it applies to.
fn in_its_folder(file: &Path) -> &Path {
    file.strip_prefix(speaks_for(file)).unwrap_or(file)
}

impl State {
    pub(super) fn of(config: &Loaded, location: &ProjectLocation) -> Self {
        let is_here = |file: &&Path| file.starts_with(&location.worktree);
        let digested = |files: &mut dyn Iterator<Item = &Path>| {
            files
                .filter(is_here)
                .filter_map(|file| Some((file.to_owned(), digest_of(file)?)))
                .collect::<BTreeMap<PathBuf, String>>()
        };
        let settings = digested(&mut config.files.iter().map(PathBuf::as_path));
        let mut beside = digested(&mut config.files_beside());
        beside.retain(|file, _| !settings.contains_key(file));
        let skipped = config.skipped.iter().map(|skipped| &skipped.plugin);
        let plugins = config.plugins.iter().chain(&config.tool_files);
        let lies_here = plugins.chain(skipped).filter(|plugin| {
            plugin.scope == PluginScope::Local && plugin.source != PluginSource::Config
        });
        let roots = config.plugin_roots().workspace.into_iter();
        let manifests = roots
            .flat_map(|root| fs::read_dir(root).into_iter().flatten().flatten())
            .map(|entry| entry.path().display().to_string());
        Self {
            settings,
            beside,
            below: None,
            root: match location.worktree.parent() {
                Some(_) => location.worktree.clone(),
                None => location.directory.clone(),
            },
            plugins: lies_here.map(PluginSpec::key).chain(manifests).collect(),
        }
    }

    /// Adds the files in folders below, in the whole project. Walks them.
    pub(super) fn with_below(mut self) -> Self {
        let files = settings_below(&self.root);
        let digested = |file: PathBuf| digest_of(&file).map(|digest| (file, digest));
        self.below = Some(files.into_iter().filter_map(digested).collect());
        self
    }

    /// Accepts the current state of what is read in the second folder, as far as an agent in the first one reads or knows it.
    pub(super) fn count(&mut self, now: &Self, [noted, here]: [&Path; 2]) {
        self.settings
            .retain(|file, _| !reads(here, file) || now.settings.contains_key(file));
        self.beside
            .retain(|file, _| !reads(here, file) || now.beside.contains_key(file));
        for (of_now, of_note) in [
            (&now.settings, &mut self.settings),
            (&now.beside, &mut self.beside),
        ] {
            for (file, digest) in of_now {
                match &mut self.below {
                    Some(below) if !reads(noted, file) => {
                        below.insert(file.clone(), digest.clone());
                    }
                    _ if reads(noted, file) || of_note.contains_key(file) => {
                        of_note.insert(file.clone(), digest.clone());
                    }
                    _ => {}
                }
            }
        }
    }

    fn known(&self, file: &Path) -> Option<&String> {
        let below = || self.below.as_ref()?.get(file);
        self.settings
            .get(file)
            .or_else(|| self.beside.get(file))
            .or_else(below)
    }

    /// Returns the digest map that contains this file.
    fn noted(&mut self, file: &Path) -> Option<&mut BTreeMap<PathBuf, String>> {
        let mut all = [
            Some(&mut self.settings),
            Some(&mut self.beside),
            self.below.as_mut(),
        ]
        .into_iter()
        .flatten();
        all.find(|files| files.contains_key(file))
    }

    /// Returns whether a file would be known if it took effect: it is below.
    fn looked_at(&self, file: &Path) -> bool {
        let folder = speaks_for(file).strip_prefix(&self.root);
        self.below.is_some() && folder.is_ok_and(|it| !it.as_os_str().is_empty())
    }

    /// Returns whether a file equals an earlier one of that name: a working tree of the same repository has a copy.
    fn is_copy(&self, file: &Path, digest: &String) -> bool {
        let below = self.below.iter().flatten();
        let mut all = self.settings.iter().chain(&self.beside).chain(below);
        all.any(|(known, it)| it == digest && in_its_folder(known) == in_its_folder(file))
    }
}

impl Note {
    /// Accepts what was written to a file with the digest `before`; false if its content was different. `kind` is how it is read
    /// now.
    pub(super) fn wrote(&mut self, file: &Path, change: [Option<&str>; 2], kind: Kind) -> bool {
        let [before, after] = change;
        let reads = reads(&self.directory, file);
        let state = &mut self.state;
        let is_near = state.looked_at(file) && is_settings(in_its_folder(file));
        let files = match (state.noted(file), kind) {
            (Some(files), _) if files.get(file).map(String::as_str) == before => files,
            (Some(_), _) => return false,
            _ if before.is_some() => return false,
            (None, Kind::Settings) if reads => &mut state.settings,
            (None, Kind::Beside) if reads => &mut state.beside,
            (None, kind) if is_near || kind != Kind::Other => state.below.get_or_insert_default(),
            (None, _) => return false,
        };
        match after {
            Some(after) => files.insert(file.to_owned(), after.to_owned()),
            None => files.remove(file),
        };
        true
    }

    /// Returns the differences that another agent, in `directory`, finds. Files that only one of the two reads are not compared,
    /// except in folders below this one.
    pub(super) fn against(&self, now: &State, directory: &Path) -> Changes {
        let was = &self.state;
        let mut found = Changes::default();
        for (file, digest) in &now.settings {
            if let Some(known) = was.settings.get(file) {
                if known != digest {
                    found.settings.insert(file.clone(), "changed");
                }
            } else if reads(&self.directory, file) {
                found.settings.insert(file.clone(), "new");
            } else if let Some(what) = self.otherwise(file, digest) {
                found.beside.insert(file.clone(), what);
            }
        }
        for (file, digest) in &now.beside {
            if let Some(what) = self.otherwise(file, digest) {
                found.beside.insert(file.clone(), what);
            }
        }
        for (file, digest) in now.below.iter().flatten() {
            let is_read = now.settings.contains_key(file) || now.beside.contains_key(file);
            if !is_read && let Some(what) = self.otherwise(file, digest) {
                found.below.insert(file.clone(), what);
            }
        }
        for file in was.settings.keys() {
            // An existing file that is not read belongs to another project: the boundary is not determined.
            if reads(directory, file) && !now.settings.contains_key(file) && !file.exists() {
                found.settings.insert(file.clone(), "removed");
            }
        }
        found.plugins = if self.directory.starts_with(directory) {
            !now.plugins.is_subset(&was.plugins)
        } else {
            directory.starts_with(&self.directory) && self.has_new_plugins(now)
        };
        found
    }

    /// Returns the change of a file that the recording agent did not read.
    fn otherwise(&self, file: &Path, digest: &String) -> Option<&'static str> {
        let was = &self.state;
        match was.known(file) {
            Some(known) => (known != digest).then_some("changed"),
            None => {
                let is_new = reads(&self.directory, file) || was.looked_at(file);
                (is_new && !was.is_copy(file, digest)).then_some("new")
            }
        }
    }

    /// Returns whether there are new plugins in folders below.
    fn has_new_plugins(&self, now: &State) -> bool {
        let Some(below) = &self.state.below else {
            return false;
        };
        let known: BTreeSet<String> = below.keys().map(|it| PluginSpec::key_of_file(it)).collect();
        let is_known = |key: &String| known.contains(key) || self.state.plugins.contains(key);
        let is_near = |key: &&String| {
            let path = key.strip_prefix("file://").unwrap_or_default();
            self.state.looked_at(Path::new(path))
        };
        now.plugins.iter().filter(is_near).any(|key| !is_known(key))
    }
}

/// Returns whether an agent in `directory` reads this file.
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
            ("/p/a/.agents/skills/x/SKILL.md", "/p/a"),
        ] {
            assert_eq!(speaks_for(Path::new(file)), Path::new(folder), "{file}");
        }
    }

    #[test]
    fn what_says_nothing_that_counts_has_no_digest() {
        for (file, text, counts) in [
            (
                "/p/.claude/settings.local.json",
                r#"{"permissions": {}}"#,
                false,
            ),
            (
                "/p/.claude/settings.json",
                r#"{"hooks": {"Stop": []}}"#,
                true,
            ),
            ("/p/.claude/settings.json", "not JSON", true),
            ("/p/.claude/commands/a.md", "text", false),
            ("/p/.claude/commands/a.md", "!`x`", true),
            ("/p/.agents/skills/a/SKILL.md", "mcp: {}", true),
            ("/p/.opencode/agent/a.md", "text", true),
            ("/p/.mcp.json", "{}", true),
        ] {
            let digest = digest(Path::new(file), text.as_bytes());
            assert_eq!(digest.is_some(), counts, "{file} {text}");
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
            ..State::default()
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
            // The file of another folder is unknown.
            (
                "/p/a",
                "/p/b",
                state(&[both[0], ("/p/b/opencode.json", "5")], &["z"]),
                vec![],
                false,
            ),
        ] {
            let found = note(was, state(&both, &["x"])).against(&now, Path::new(directory));
            let lines: Vec<String> = found
                .settings
                .iter()
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
