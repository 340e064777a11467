//! Digests of the content of executed files.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::paths;

/// Maximum size of a hashed file; a larger one is identified by its inode, size and times.
const MAX_HASHED: u64 = 16 << 20;
/// Databases change during use; what else they can be is in [`is_database`].
const SQLITE: &[u8] = b"SQLite format 3\0";
/// Start of the record at the end of a ZIP archive, which Python runs whatever stands before it.
const END_OF_ZIP: &[u8] = b"PK\x05\x06";

/// Maximum number of bytes that a kernel reads of a first line.
const MAX_LINE: usize = 256;

/// Returns a digest of a file's content; `None` for a folder.
pub(super) fn content_hash(path: &Path) -> Option<String> {
    held(path, Databases::AreCode).map(|it| it.hash)
}

/// How a file is judged that begins like an SQLite database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Databases {
    /// By its content: nothing that is named with it runs a file of any content.
    AreData,
    /// As any other file: a shell skips a first line that it does not understand.
    AreCode,
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

/// Returns the content of a file; `None` for a folder and for a database that nothing runs.
pub(super) fn held(path: &Path, databases: Databases) -> Option<Held> {
    match outrigger_files::read(path, MAX_HASHED) {
        Ok(bytes) if databases == Databases::AreData && is_database(path, &bytes) => None,
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

/// Returns whether a file is a database and nothing else: not a program, and not an archive that Python runs.
fn is_database(path: &Path, bytes: &[u8]) -> bool {
    let is_program = path.metadata().is_ok_and(|it| it.mode() & 0o111 != 0);
    bytes.starts_with(SQLITE)
        && !is_program
        && !bytes.windows(END_OF_ZIP.len()).any(|it| it == END_OF_ZIP)
}

/// Parses `#!./tools/interp -x`.
fn interpreter(bytes: &[u8]) -> Option<String> {
    let line = bytes.strip_prefix(b"#!")?.split(|it| *it == b'\n').next()?;
    let line = line.get(..line.len().min(MAX_LINE))?;
    Some(String::from_utf8_lossy(line).into_owned())
}
