//! What a file that is run holds, as a digest.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::paths;

/// A larger file is known by its inode, size and times.
const MAX_HASHED: u64 = 16 << 20;
/// Databases change while they are used, and nothing runs them.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// A digest of what a file holds; `None` where it runs nothing.
pub(super) fn content_hash(path: &Path) -> Option<String> {
    held(path).map(|(hash, _)| hash)
}

/// What a file holds, and how it is shown; `None` where it runs nothing.
pub(super) fn held(path: &Path) -> Option<(String, String)> {
    match outrigger_files::read(path, MAX_HASHED) {
        Ok(bytes) if bytes.starts_with(SQLITE) => None,
        Ok(bytes) => {
            let hash = crate::project::digest(&bytes);
            let short = hash.get(..12).unwrap_or_default();
            let what = format!("{} bytes, SHA-256 {short}", bytes.len());
            Some((hash, what))
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
            Some((hash, what))
        }
    }
}
