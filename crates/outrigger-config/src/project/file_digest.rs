//! What a file that is run holds, as a digest.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::paths;

/// A larger file is known by its inode, size and times.
const MAX_HASHED: u64 = 16 << 20;
/// Databases change while they are used, and nothing runs them.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Bytes of a first line that a kernel reads.
const MAX_LINE: usize = 256;

/// A digest of what a file holds; `None` where it runs nothing.
pub(super) fn content_hash(path: &Path) -> Option<String> {
    held(path).map(|it| it.hash)
}

/// What a file holds.
pub(super) struct Held {
    /// A digest of it.
    pub(super) hash: String,
    /// How it is shown.
    pub(super) shown: String,
    /// What its first line says that runs it: the kernel starts that.
    pub(super) interpreter: Option<String>,
}

/// What a file holds; `None` where it runs nothing.
pub(super) fn held(path: &Path) -> Option<Held> {
    match outrigger_files::read(path, MAX_HASHED) {
        Ok(bytes) if bytes.starts_with(SQLITE) => None,
        Ok(bytes) => {
            let hash = crate::project::digest(&bytes);
            let short = hash.get(..12).unwrap_or_default();
            let what = format!("{} bytes, SHA-256 {short}", bytes.len());
            Some(Held {
                hash,
                shown: what,
                interpreter: interpreter(&bytes),
            })
        }
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => None,
        Err(error) => {
            let what = paths::reason(&error);
            let stamp = path.metadata().map(|it| {
                (
                    it.dev(),
                    it.ino(),
                    it.size(),
                    (it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec()),
                )
            });
            let hash = crate::project::digest(format!("{what} {:?}", stamp.ok()).as_bytes());
            Some(Held {
                hash,
                shown: what,
                interpreter: None,
            })
        }
    }
}

/// `#!./tools/interp -x`
fn interpreter(bytes: &[u8]) -> Option<String> {
    let line = bytes.strip_prefix(b"#!")?.split(|it| *it == b'\n').next()?;
    let line = line.get(..line.len().min(MAX_LINE))?;
    Some(String::from_utf8_lossy(line).into_owned())
}
