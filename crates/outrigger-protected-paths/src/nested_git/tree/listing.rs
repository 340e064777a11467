//! Content of one folder: the names that a walk looks for.

use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, RawDir, Stat, fstat, fstatfs, statat};

use super::Reach;
use crate::nested_startup::{is_candidate, is_workspace};

/// Buffer size for names in bytes.
const BUFFER: usize = 32 * 1024;

/// Local file systems, whose changes the kernel reports, and whose change times it sets: ext, XFS, btrfs, tmpfs, overlay, F2FS,
/// ZFS, bcachefs.
const LOCAL: [u64; 8] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0x794c_7630,
    0xf2f5_2010,
    0x2fc1_2fc1,
    0xca45_1a4e,
];

/// A folder's content.
#[derive(Default)]
pub(super) struct Listing {
    device: u64,
    inode: u64,
    /// Time of its last change, in seconds and nanoseconds.
    changed: (i64, u64),
    /// Number of names.
    pub(super) names: usize,
    /// Subfolders to read.
    pub(super) folders: Vec<OsString>,
    /// Names that make something run later.
    pub(super) startup: Vec<OsString>,
    /// It may be a repository.
    pub(super) is_marked: bool,
}

impl Listing {
    /// Of an open folder.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn of(open: &OwnedFd, reach: Reach) -> io::Result<Self> {
        let stat = fstat(open)?;
        let mut found = Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            changed: changed(&stat),
            ..Self::default()
        };
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut entries = RawDir::new(open, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => statat(open, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |it| FileType::from_raw_mode(it.st_mode)),
                known => known,
            };
            found.take(name, kind, reach);
        }
        Ok(found)
    }

    fn take(&mut self, name: &OsStr, kind: FileType, reach: Reach) {
        self.names += 1;
        self.is_marked |= name == ".git" || name == "HEAD";
        if reach == Reach::Marks {
            return;
        }
        // The root's own files are checked elsewhere, except names that cannot be listed and links in place of folders.
        let is_listed = reach != Reach::Root || kind == FileType::Symlink || is_workspace(name);
        if is_listed && is_candidate(name) {
            self.startup.push(name.to_owned());
        }
        if kind == FileType::Directory && name != ".git" {
            self.folders.push(name.to_owned());
        }
    }

    /// Returns whether it contains something that a walk finds.
    pub(super) fn is_notable(&self) -> bool {
        self.is_marked || !self.startup.is_empty()
    }

    pub(super) fn device(&self) -> u64 {
        self.device
    }

    /// Returns whether it is this folder.
    pub(super) fn is_of(&self, device: u64, inode: u64) -> bool {
        (self.device, self.inode) == (device, inode)
    }

    /// Returns whether it is this folder, unchanged.
    pub(super) fn is_as_in(&self, now: &Stat) -> bool {
        self.is_of(now.st_dev, now.st_ino) && self.changed == changed(now)
    }

    /// Returns whether its last change was earlier.
    pub(super) fn is_older_than(&self, time: SystemTime) -> bool {
        let time = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(time.as_secs()).unwrap_or_default();
        self.changed < (seconds, u64::from(time.subsec_nanos()))
    }
}

fn changed(stat: &Stat) -> (i64, u64) {
    (stat.st_ctime, stat.st_ctime_nsec)
}

/// Returns whether all changes in the file system of a folder are made on this machine, as far as a sandboxed process can make
/// them.
pub(super) fn is_local(open: &OwnedFd) -> bool {
    let kind = fstatfs(open).map(|it| u64::try_from(it.f_type));
    matches!(kind, Ok(Ok(kind)) if LOCAL.contains(&kind))
}
