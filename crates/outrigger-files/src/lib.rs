//! Reads whole files within limits, replaces them, removes folders however deep, and limits patterns of names.
//!
//! A name in a project does not show what is behind it. A pipe has no end and may have no writer, opening a device may
//! have an effect, and a sparse file of 3 GiB costs nothing to create. So a file is checked before it is opened, opened
//! without blocking, checked again, and read up to its limit.

mod pattern;
mod remove;
mod replace;

pub use pattern::{MAX_BRACES, MAX_PATTERN, PatternError, check_pattern};
pub use remove::remove_tree;
pub use replace::{Lock, Readers, lock, refuse_link, replace, replace_unlinked};

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Maximum size of files that users write: settings, instructions, ignore lists, agents, skills.
pub const SETTINGS: u64 = 4 << 20;
/// Maximum size of files that programs write: package lists, catalogs, credentials, sources.
pub const DATA: u64 = 64 << 20;

/// Why an existing file is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// A pipe, a socket, a device, or a cyclic link.
    #[error("it is {0}, not a regular file; replace it with one, or remove it")]
    NotRegular(&'static str),
    /// A link whose target is not the user's choice.
    #[error(
        "it is a symbolic link, which leads where the project says; change the file that it leads to, or put a regular file in its place"
    )]
    Link,
    /// Exceeds the limit of its kind.
    #[error("it is larger than {} MiB; make it smaller, or remove it", .limit >> 20)]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
}

impl FileError {
    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotRegular(_) => "file.not_regular",
            Self::Link => "file.link",
            Self::TooLarge { .. } => "file.too_large",
        }
    }

    /// Returns the reason in an error of this crate, if it is one of these.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        let kind = match error {
            FileError::NotRegular(_) | FileError::Link => io::ErrorKind::InvalidInput,
            FileError::TooLarge { .. } => io::ErrorKind::FileTooLarge,
        };
        Self::new(kind, error)
    }
}

/// Opens a regular file for reading; links are followed.
///
/// # Errors
/// [`FileError::NotRegular`] in an [`io::Error`]; `IsADirectory` for a folder; the system's error.
pub fn open(path: &Path) -> io::Result<File> {
    // Opening a device may already have an effect, and a socket's error is unclear.
    regular(&path.metadata().map_err(of_a_loop)?)?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    regular(&file.metadata()?)?;
    Ok(file)
}

/// Reads a file of at most `limit` bytes.
///
/// # Errors
/// As [`open`], and [`FileError::TooLarge`].
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_open(open(path)?, limit)
}

/// Reads a text of at most `limit` bytes.
///
/// # Errors
/// As [`read`], and `InvalidData` where it is not UTF-8.
pub fn read_to_string(path: &Path, limit: u64) -> io::Result<String> {
    text(read(path, limit)?)
}

/// Reads the rest of an open file, if it is a regular one of at most `limit` bytes.
///
/// # Errors
/// As [`read`].
pub fn read_open(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let meta = file.metadata()?;
    regular(&meta)?;
    if meta.len() > limit {
        return Err(FileError::TooLarge { limit }.into());
    }
    // Not limited to its size: a log grows, and files in /proc have none.
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or_default());
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limit {
        return Err(FileError::TooLarge { limit }.into());
    }
    Ok(bytes)
}

/// Like [`read_open`], as text.
///
/// # Errors
/// As [`read_to_string`].
pub fn read_open_to_string(file: File, limit: u64) -> io::Result<String> {
    text(read_open(file, limit)?)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text");
    String::from_utf8(bytes).map_err(not_text)
}

/// A cyclic link is not a file either.
fn of_a_loop(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ELOOP) => FileError::NotRegular("a link that leads back to itself").into(),
        _ => error,
    }
}

fn regular(meta: &Metadata) -> io::Result<()> {
    let kind = meta.file_type();
    let what = match kind {
        _ if kind.is_file() => return Ok(()),
        _ if kind.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        _ if kind.is_fifo() => "a named pipe",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(FileError::NotRegular(what).into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_regular_files_within_the_limit_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        std::fs::write(at("bytes"), [0xff]).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let sparse = File::create(at("sparse")).unwrap();
        sparse.set_len(3 << 30).unwrap();
        for name in ["file", "pipe", "sparse"] {
            std::os::unix::fs::symlink(name, at(&format!("link-{name}"))).unwrap();
        }
        std::os::unix::fs::symlink("/dev/zero", at("device")).unwrap();
        for (name, want) in [
            ("file", Ok("text")),
            ("link-file", Ok("text")),
            ("none", Err("No such file or directory (os error 2)")),
            ("folder", Err("is a directory")),
            ("bytes", Err("it is not UTF-8 text")),
            (
                "pipe",
                Err("it is a named pipe, not a regular file; replace it with one, or remove it"),
            ),
            (
                "link-pipe",
                Err("it is a named pipe, not a regular file; replace it with one, or remove it"),
            ),
            (
                "socket",
                Err("it is a socket, not a regular file; replace it with one, or remove it"),
            ),
            (
                "device",
                Err("it is a device, not a regular file; replace it with one, or remove it"),
            ),
            (
                "sparse",
                Err("it is larger than 4 MiB; make it smaller, or remove it"),
            ),
            (
                "link-sparse",
                Err("it is larger than 4 MiB; make it smaller, or remove it"),
            ),
        ] {
            let got = read_to_string(&at(name), SETTINGS).map_err(|error| error.to_string());
            assert_eq!(got.as_deref().map_err(String::as_str), want, "{name}");
        }
        assert_eq!(read(&at("file"), 4).unwrap(), b"text");
        let error = read(&at("file"), 3).unwrap_err();
        assert_eq!(FileError::of(&error).unwrap().code(), "file.too_large");
    }

    #[test]
    fn a_file_without_a_size_is_read_to_its_limit() {
        assert!(read_to_string(Path::new("/proc/self/status"), DATA).is_ok());
        let error = read(Path::new("/proc/self/status"), 10).unwrap_err();
        assert_eq!(
            FileError::of(&error),
            Some(&FileError::TooLarge { limit: 10 })
        );
    }
}
