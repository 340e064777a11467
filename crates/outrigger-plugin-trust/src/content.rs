//! Content of a plugin's files: one hash over their names, whether they are executable, and their contents.
//!
//! A file with an unchanged inode, size and times is not read again. Only root can set the time of an inode's last
//! change, so a file that was written since cannot look unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_plugin_package::ResolvedPlugin;
use outrigger_stdx::text::hex;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::tree::{Found, Tree, TreeError, What};

/// Maximum size in bytes of all files of a plugin.
const MAX_BYTES: u64 = 4 << 30;
/// A file that changed within this time before it was hashed may have changed again within one tick of the file system's
/// clock.
const TICK: Duration = Duration::from_secs(3);

/// A file or link of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// `file`, `link`, `text` (derived from another file) or `other`.
    pub(crate) kind: String,
    /// SHA-256 of its content in hexadecimal digits; for a link, of its target.
    pub(crate) hash: String,
    /// Size in bytes.
    pub(crate) size: u64,
    /// Its owner may execute it, or it has set-user-ID.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) exec: bool,
    /// Part of the plugin itself, not of its dependencies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) own: bool,
    /// Its metadata when it was hashed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stamp: Option<Stamp>,
}

/// Metadata of a file: device, inode, then modification and change of the inode in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp(u64, u64, i128, i128);

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        let nanos =
            |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        Self(
            meta.dev(),
            meta.ino(),
            nanos(meta.mtime(), meta.mtime_nsec()),
            nanos(meta.ctime(), meta.ctime_nsec()),
        )
    }

    /// Returns whether a write after the moment of hashing must have changed it.
    fn settled(&self, at: i128) -> bool {
        let tick = i128::try_from(TICK.as_nanos()).unwrap_or(i128::MAX);
        self.2.max(self.3) + tick < at
    }
}

/// The files of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// By name.
    pub(crate) files: BTreeMap<String, FileRecord>,
    /// Paths of its own files, for display.
    pub(crate) places: BTreeMap<String, PathBuf>,
    /// Paths of its code, without links, and whether each file is the plugin's own.
    pub(crate) sources: BTreeMap<PathBuf, Source>,
    /// Paths that its sources name and that did not resolve to that file.
    pub(crate) unresolved: BTreeSet<PathBuf>,
    /// Time of the check, in nanoseconds since the Unix epoch.
    pub(crate) at: i128,
}

/// A file of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// SHA-256 in hexadecimal digits.
    pub(crate) hash: String,
    /// Part of the plugin itself, not of its dependencies.
    pub(crate) own: bool,
}

/// Records of an earlier check.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Before {
    /// Time of that check.
    pub(crate) at: i128,
    /// By name.
    pub(crate) files: BTreeMap<String, FileRecord>,
}

impl Content {
    /// Looks at all files of a plugin. Blocks.
    ///
    /// # Errors
    /// There are too many, or they cannot be read, or everybody may change them.
    pub fn of(
        plugin: &ResolvedPlugin,
        allow_world_writable: bool,
        before: &Before,
    ) -> Result<Self, TreeError> {
        let at = now();
        let tree = Tree::of(plugin, allow_world_writable)?;
        let mut content = Self {
            at,
            unresolved: tree.unresolved,
            ..Self::default()
        };
        let mut bytes = 0_u64;
        for (name, found) in tree.found {
            if found.own {
                content.places.insert(name.clone(), found.path.clone());
            }
            let source = found.is_code().then(|| (found.path.clone(), found.own));
            let record = record(found, before.files.get(&name), before.at)?;
            if let Some((path, own)) = source {
                let hash = record.hash.clone();
                content.sources.insert(path, Source { hash, own });
            }
            bytes = bytes.saturating_add(record.size);
            if bytes > MAX_BYTES {
                let most = MAX_BYTES >> 30;
                return Err(TreeError::TooLarge(format!("more than {most} GiB")));
            }
            content.files.insert(name, record);
        }
        Ok(content)
    }

    /// Returns the hash over all files.
    #[must_use]
    pub fn hash(&self) -> String {
        digest(self.files.iter())
    }

    /// Returns the hash over the plugin's own files, which is the same on every machine.
    #[must_use]
    pub fn own(&self) -> String {
        digest(self.files.iter().filter(|(_, file)| file.own))
    }

    /// Returns the bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.size).sum()
    }

    /// Returns whether no file was touched between the two checks, not even to restore it.
    pub(crate) fn untouched(&self, later: &Self) -> bool {
        self.files == later.files
    }

    /// Returns whether every changed file is one of `seen`, with this SHA-256.
    pub(crate) fn only_differs_in(
        &self,
        before: &Before,
        seen: &BTreeMap<PathBuf, String>,
    ) -> bool {
        let is_same = |name: &String, file: &FileRecord| {
            let old = before.files.get(name);
            old.is_some_and(|old| {
                (&old.hash, old.exec, &old.kind) == (&file.hash, file.exec, &file.kind)
            })
        };
        let was_seen = |name: &String, file: &FileRecord| {
            let place = self.places.get(name).and_then(|path| seen.get(path));
            file.kind == "file" && place == Some(&file.hash)
        };
        before
            .files
            .keys()
            .all(|name| self.files.contains_key(name))
            && self
                .files
                .iter()
                .all(|(name, file)| is_same(name, file) || was_seen(name, file))
    }

    /// Returns the time since the check.
    pub(crate) fn age(&self) -> Duration {
        let nanos = u64::try_from(now() - self.at).unwrap_or(u64::MAX);
        Duration::from_nanos(nanos)
    }

    pub(crate) fn before(&self) -> Before {
        Before {
            at: self.at,
            files: self.files.clone(),
        }
    }
}

/// Returns nanoseconds since the Unix epoch.
fn now() -> i128 {
    i128::try_from(outrigger_stdx::clock::since_epoch().as_nanos()).unwrap_or_default()
}

fn digest<'a>(files: impl Iterator<Item = (&'a String, &'a FileRecord)>) -> String {
    let mut sum = Sha256::new();
    for (name, file) in files {
        // A name contains no NUL.
        let exec = if file.exec { "x" } else { "-" };
        sum.update(format!(
            "{}\0{exec}\0{}\0{}\0{name}\0",
            file.kind, file.size, file.hash
        ));
    }
    format!("sha256:{}", hex(&sum.finalize()))
}

fn record(found: Found, before: Option<&FileRecord>, at: i128) -> Result<FileRecord, TreeError> {
    let plain = |kind: &str, hash: String, size: usize| FileRecord {
        kind: kind.to_owned(),
        hash,
        size: u64::try_from(size).unwrap_or(u64::MAX),
        exec: false,
        own: found.own,
        stamp: None,
    };
    match &found.what {
        What::Digest(digest) => Ok(plain("text", digest.clone(), 0)),
        What::Other => Ok(plain("other", String::new(), 0)),
        What::Link(target) => {
            let bytes = target.as_os_str().as_encoded_bytes();
            Ok(plain("link", hex(&Sha256::digest(bytes)), bytes.len()))
        }
        What::File(listed) => {
            let same = before.filter(|known| {
                let stamp = Stamp::of(listed);
                known.kind == "file"
                    && known.size == listed.len()
                    && known.stamp.as_ref() == Some(&stamp)
                    && stamp.settled(at)
            });
            let (hash, meta) = match same {
                Some(known) => (known.hash.clone(), (**listed).clone()),
                None => read(&found.path).map_err(|error| TreeError::io(&found.path, &error))?,
            };
            Ok(FileRecord {
                kind: "file".to_owned(),
                hash,
                size: meta.len(),
                exec: meta.mode() & 0o6100 != 0,
                own: found.own,
                stamp: Some(Stamp::of(&meta)),
            })
        }
    }
}

/// Hashes a file that was regular a moment ago; a link or a pipe that replaced it is not opened.
fn read(path: &Path) -> std::io::Result<(String, Metadata)> {
    let mut file = open(path)?;
    let before = file.metadata()?;
    if !before.is_file() {
        return Err(std::io::Error::other("it is not a regular file any more"));
    }
    let mut sum = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut size = 0_u64;
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        size += u64::try_from(count).unwrap_or_default();
        if size > MAX_BYTES {
            return Err(std::io::Error::other("it is too large"));
        }
        sum.update(buffer.get(..count).unwrap_or_default());
    }
    let meta = file.metadata()?;
    if Stamp::of(&meta) != Stamp::of(&before) || meta.len() != size {
        return Err(std::io::Error::other("it was written to while it was read"));
    }
    Ok((hex(&sum.finalize()), meta))
}

/// Opens a regular file without following a link and without waiting for the other end of a pipe.
pub(crate) fn open(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}
