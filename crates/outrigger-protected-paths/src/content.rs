//! Contents of files before a command, so that they can be restored.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Maximum size in bytes of a file that is restored.
const MAX_KEPT: u64 = 256 * 1024;
/// Maximum number of names in a message.
const MAX_NAMED: usize = 5;

/// Content of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Content {
    File {
        bytes: Vec<u8>,
        mode: u32,
    },
    Link(PathBuf),
    /// Large, or not a file: device, inode and time of its last change.
    Other(u64, u64, i64, i64),
}

impl Content {
    /// Reads the current content. Blocking.
    pub(crate) fn of(path: &Path, meta: &fs::Metadata) -> Self {
        if let Ok(target) = fs::read_link(path) {
            return Self::Link(target);
        }
        match outrigger_files::read(path, MAX_KEPT) {
            Ok(bytes) => Self::File {
                bytes,
                mode: meta.mode() & 0o777,
            },
            Err(_) => Self::Other(meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec()),
        }
    }
}

/// Returns the first of these paths, and how many more there are.
pub(crate) fn listed(mut paths: Vec<String>) -> String {
    let more = paths.len().saturating_sub(MAX_NAMED);
    paths.truncate(MAX_NAMED);
    if more > 0 {
        paths.push(format!("{more} more"));
    }
    paths.join(", ")
}

/// Contents by path.
pub(crate) type Before = BTreeMap<PathBuf, Content>;
