//! Digests of the content of executed files.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::paths;

/// Maximum size of a hashed file; a larger one is identified by its inode, size and times.
const MAX_HASHED: u64 = 16 << 20;
/// Databases change during use, and are not executed.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Maximum number of bytes that a kernel reads of a first line.
const MAX_LINE: usize = 256;

/// Returns a digest of a file's content; `None` if it runs nothing.
pub(super) fn content_hash(path: &Path) -> Option<String> {
    held(path).map(|it| it.hash)
}

/// Content of a file.
pub(super) struct Held {
    /// Digest of the content.
    pub(super) hash: String,
    /// Text for display.
    pub(super) shown: String,
    /// Interpreter in its first line, which the kernel starts.
    pub(super) interpreter: Option<String>,
}

/// Returns the content of a file; `None` if it runs nothing.
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

/// Parses `#!./tools/interp -x`.
fn interpreter(bytes: &[u8]) -> Option<String> {
    let line = bytes.strip_prefix(b"#!")?.split(|it| *it == b'\n').next()?;
    let line = line.get(..line.len().min(MAX_LINE))?;
    Some(String::from_utf8_lossy(line).into_owned())
}
