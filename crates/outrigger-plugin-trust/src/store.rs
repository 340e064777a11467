//! The trust store in the data folder, which neither a project nor a plugin can write to: one `outrigger.lock` for the user
//! and one for each project, the list of files of each plugin, and copies of its texts to show changes.
//!
//! A project may have its own `outrigger.lock` at its root ([`ProjectLock`]). It does not establish trust: it only refuses
//! plugins that differ from it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use outrigger_config::{PluginScope, PluginSpec};
use outrigger_plugin_package::lock::{hold, read_json};
use outrigger_protocol::Millis;
use outrigger_stdx::text::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::content::{Before, Content, open};
use crate::error::TrustError;

/// Name of the trust file.
pub const TRUST_FILE: &str = "outrigger.lock";

/// Maximum size in bytes of a stored text.
const MAX_TEXT: u64 = 256 * 1024;
/// Maximum size in bytes of the stored texts of one plugin.
const MAX_TEXTS: u64 = 4 << 20;

/// How a plugin came to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrustedBy {
    /// It was present when this user first used it here.
    FirstUse,
    /// The user was asked and agreed.
    Answer,
    /// `outrigger plugin review --accept`.
    Review,
    /// `trust.changes = "allow"`.
    Setting,
}

impl std::fmt::Display for TrustedBy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::FirstUse => "first use",
            Self::Answer => "an answer",
            Self::Review => "a review",
            Self::Setting => "the setting `trust.changes`",
        })
    }
}

/// The trust record of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trusted {
    /// Identity of the plugin: the URL of its file, else the name of its package.
    pub plugin: String,
    /// Hash over all its files.
    pub hash: String,
    /// Hash over its own files, without its dependencies.
    pub own: String,
    /// Number of files.
    pub files: usize,
    /// Bytes of all files.
    pub bytes: u64,
    /// How it came to be trusted.
    pub by: TrustedBy,
    /// Time in milliseconds since the Unix epoch.
    pub at: Millis,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct LockFile {
    #[serde(default)]
    version: u32,
    /// Owner, for readers of the file: `user`, or a project's folder.
    #[serde(default)]
    of: String,
    #[serde(default)]
    plugins: Vec<Trusted>,
}

/// The trust store of the user or of a project.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    of: String,
}

impl Store {
    /// Returns the store for a plugin: its project's, or the user's.
    #[must_use]
    pub fn of(data: &Path, project: &Path, plugin: &PluginSpec) -> Self {
        match plugin.scope {
            PluginScope::Global => Self::named(data, "user", "user".to_owned()),
            PluginScope::Local => Self::of_project(data, project),
        }
    }

    /// Returns the store of a project.
    pub(crate) fn of_project(data: &Path, project: &Path) -> Self {
        let name = short(project.as_os_str().as_encoded_bytes());
        Self::named(data, &name, project.display().to_string())
    }

    fn named(data: &Path, name: &str, of: String) -> Self {
        Self {
            folder: data.join("trust").join(name),
            of,
        }
    }

    /// Creates an empty store.
    pub(crate) fn begin(&self) -> Result<(), TrustError> {
        let lock = LockFile {
            version: 1,
            of: self.of.clone(),
            plugins: Vec::new(),
        };
        write(&self.folder.join(TRUST_FILE), &lock)
    }

    /// What a plugin was trusted as.
    ///
    /// # Errors
    /// `plugin.trust_file`.
    pub fn find(&self, plugin: &str) -> Result<Option<Trusted>, TrustError> {
        let plugins = self.read()?.plugins;
        Ok(plugins.into_iter().find(|trusted| trusted.plugin == plugin))
    }

    /// Returns whether nothing of this project was ever trusted or recorded.
    pub(crate) fn is_new(&self) -> Result<bool, TrustError> {
        self.read()?;
        Ok(!self.folder.join(TRUST_FILE).exists())
    }

    fn read(&self) -> Result<LockFile, TrustError> {
        let path = self.folder.join(TRUST_FILE);
        let read = read_json(&path).map_err(|error| broken(&path, error))?;
        Ok(read.unwrap_or_default())
    }

    /// Returns the records of a plugin's files at the last check; empty if they are lost.
    #[must_use]
    pub fn before(&self, plugin: &str) -> Before {
        let bytes =
            outrigger_files::read(&self.list(plugin), outrigger_files::DATA).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Returns the text of a file as it was trusted, if it was stored.
    pub(crate) fn text(&self, hash: &str) -> Option<String> {
        let text = outrigger_files::read_to_string(&self.texts().join(hash), MAX_TEXT).ok()?;
        (hex(&Sha256::digest(text.as_bytes())) == hash).then_some(text)
    }

    /// Records that a plugin is trusted in its current state, replacing its earlier record.
    pub(crate) async fn trust(&self, entry: Trusted, content: &Content) -> Result<(), TrustError> {
        let _held = hold(&self.folder, "trust").await?;
        let mut lock = self.read()?;
        lock.version = 1;
        lock.of.clone_from(&self.of);
        self.keep(content);
        self.look(&entry.plugin, content)?;
        lock.plugins.retain(|known| known.plugin != entry.plugin);
        lock.plugins.push(entry);
        lock.plugins.sort_by(|a, b| a.plugin.cmp(&b.plugin));
        write(&self.folder.join(TRUST_FILE), &lock)
    }

    /// Stores the metadata of the files, so that the next start need not read them.
    pub(crate) fn look(&self, plugin: &str, content: &Content) -> Result<(), TrustError> {
        let path = self.list(plugin);
        // Long, and read by no other program: not indented.
        let text = serde_json::to_vec(&content.before()).map_err(|error| broken(&path, error))?;
        put(&path, &text)
    }

    fn list(&self, plugin: &str) -> PathBuf {
        self.folder
            .join(format!("{}.json", short(plugin.as_bytes())))
    }

    fn texts(&self) -> PathBuf {
        self.folder.join("texts")
    }

    // Without a copy a change is shown by its size only.
    fn keep(&self, content: &Content) {
        let folder = self.texts();
        if fs::create_dir_all(&folder).is_err() {
            return;
        }
        let mut kept = 0;
        for (name, file) in &content.files {
            let place = folder.join(&file.hash);
            if !file.own
                || file.kind != "file"
                || file.size > MAX_TEXT
                || kept + file.size > MAX_TEXTS
            {
                continue;
            }
            kept += file.size;
            let Some(text) = content
                .places
                .get(name)
                .filter(|_| !place.exists())
                .and_then(|path| text_of(path))
            else {
                continue;
            };
            if hex(&Sha256::digest(text.as_bytes())) == file.hash {
                let _ = fs::write(place, text);
            }
        }
    }
}

/// Returns a text file that is not too large.
pub(crate) fn text_of(path: &Path) -> Option<String> {
    let mut text = String::new();
    open(path)
        .ok()?
        .take(MAX_TEXT + 1)
        .read_to_string(&mut text)
        .ok()?;
    (u64::try_from(text.len()).is_ok_and(|size| size <= MAX_TEXT) && !text.contains('\0'))
        .then_some(text)
}

/// `outrigger.lock` at the root of a project: the plugins that the project was made with, by name or path, and the hashes
/// of their own files.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProjectLock {
    /// Version of the format.
    #[serde(default)]
    pub version: u32,
    /// Hash of the own files of each plugin: by package name, or by path relative to the project root.
    #[serde(default)]
    pub plugins: BTreeMap<String, String>,
}

impl ProjectLock {
    /// Reads that of a project; `None` when it has none.
    ///
    /// # Errors
    /// `plugin.trust_file` when it cannot be read: what a project meant to pin is not started unpinned.
    pub fn read(project: &Path) -> Result<Option<Self>, TrustError> {
        let path = project.join(TRUST_FILE);
        read_json(&path).map_err(|error| broken(&path, error))
    }

    /// Writes it to a project.
    ///
    /// # Errors
    /// `plugin.trust_file`.
    pub fn write(&self, project: &Path) -> Result<(), TrustError> {
        write(&project.join(TRUST_FILE), self)
    }

    /// Returns a plugin's name in the file.
    #[must_use]
    pub fn name(project: &Path, plugin: &PluginSpec) -> String {
        let key = plugin.key();
        let source = outrigger_plugin_package::Source::parse(&key, &plugin.declared_in);
        match source {
            Ok(outrigger_plugin_package::Source::Path(path)) => match path.strip_prefix(project) {
                Ok(inside) => inside.display().to_string(),
                Err(_) => key,
            },
            _ => key,
        }
    }
}

// Written to a separate file and renamed, so that a reader never sees a partial file. Only its user needs to read it.
fn write(path: &Path, value: &impl Serialize) -> Result<(), TrustError> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| broken(path, error))?;
    text.push(b'\n');
    put(path, &text)
}

fn put(path: &Path, text: &[u8]) -> Result<(), TrustError> {
    let failed = |error: std::io::Error| broken(path, error);
    // A project's file is where others write as well.
    outrigger_files::replace_unlinked(path, text).map_err(failed)
}

fn broken(path: &Path, error: impl std::fmt::Display) -> TrustError {
    TrustError::TrustFile {
        path: path.to_owned(),
        message: error.to_string(),
    }
}

fn short(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes)).chars().take(16).collect()
}
