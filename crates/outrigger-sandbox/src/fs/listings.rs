//! Checks which of many names exist in few folders: each folder is listed once, instead of a lookup of each name. Building a sandbox checks
//! hundreds of names, few of which exist.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags, RawDir, fstatfs, open};

/// Local file systems, whose listings contain every name that can be looked up: ext, XFS, btrfs, tmpfs, overlay, F2FS, ZFS, bcachefs.
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
/// Maximum number of names in a folder; in a larger one each name is looked up.
const MAX_NAMES: usize = 2000;
/// Buffer size for names in bytes.
const BUFFER: usize = 16 * 1024;

/// Folders as they were when they were first listed. Valid while one sandbox is built: what appears later is not in it.
#[derive(Debug, Default)]
pub struct Listings(HashMap<OsString, Listing>);

#[derive(Debug)]
enum Listing {
    /// The folder does not exist.
    Missing,
    /// Its names, sorted without case: a folder may ignore case.
    Names(Vec<OsString>),
    /// Names must be looked up.
    Unknown,
}

impl Listing {
    fn of(folder: &Path) -> Self {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match open(folder, flags, Mode::empty()).map_err(io::Error::from) {
            Ok(folder) => Self::read(&folder).unwrap_or(Self::Unknown),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Missing,
                _ => Self::Unknown,
            },
        }
    }

    /// Returns the names; `None` if they do not answer which others can be looked up: on other file systems, in large folders, and if
    /// names that are not ASCII could be the same as others for a folder that ignores case.
    fn read(folder: &std::os::fd::OwnedFd) -> Option<Self> {
        let kind = u64::try_from(fstatfs(folder).ok()?.f_type).ok()?;
        if !LOCAL.contains(&kind) {
            return None;
        }
        let mut names = Vec::new();
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut entries = RawDir::new(folder, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry.ok()?;
            let name = entry.file_name().to_bytes();
            if !name.is_ascii() || names.len() >= MAX_NAMES {
                return None;
            }
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name.to_vec()));
            }
        }
        names.sort_unstable_by(|a, b| compared(a, b));
        Some(Self::Names(names))
    }

    /// Returns whether something may have this name, which is ASCII.
    fn may_hold(&self, name: &OsStr) -> bool {
        match self {
            Self::Missing => false,
            Self::Names(names) => names.binary_search_by(|it| compared(it, name)).is_ok(),
            Self::Unknown => true,
        }
    }
}

/// Compares names without case.
fn compared(a: &OsStr, b: &OsStr) -> Ordering {
    let [a, b] = [a, b].map(|it| it.as_encoded_bytes().iter().map(u8::to_ascii_lowercase));
    a.cmp(b)
}

impl Listings {
    /// Returns whether something may exist at a path; if not, nothing did when its folder was listed.
    pub fn may_exist(&mut self, path: &Path) -> bool {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return true;
        };
        if !path.is_absolute() || !name.is_ascii() {
            return true;
        }
        self.folder(above).may_hold(name)
    }

    /// Returns whether a listed folder shows that nothing is at a path; lists no other folder for that.
    #[must_use]
    pub fn lacks(&self, path: &Path) -> bool {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return false;
        };
        if !path.is_absolute() || !name.is_ascii() {
            return false;
        }
        match self.0.get(above.as_os_str()) {
            Some(listing) => !listing.may_hold(name),
            None => self.lacks(above),
        }
    }

    /// Returns the names in a folder; `None` if its listing does not tell all of them.
    pub fn names(&mut self, folder: &Path) -> Option<&[OsString]> {
        match self.folder(folder) {
            Listing::Missing => Some(&[]),
            Listing::Names(names) => Some(names),
            Listing::Unknown => None,
        }
    }

    /// Works like [`Path::exists`].
    pub fn exists(&mut self, path: &Path) -> bool {
        self.may_exist(path) && path.exists()
    }

    /// Returns whether there is something at a path, even a dangling link.
    pub fn is_there(&mut self, path: &Path) -> bool {
        self.may_exist(path) && fs::symlink_metadata(path).is_ok()
    }

    fn folder(&mut self, folder: &Path) -> &Listing {
        let key = folder.as_os_str();
        if !self.0.contains_key(key) {
            // Below a listed folder its listing tells, without opening this one.
            let mut above = folder.ancestors().skip(1);
            let is_below = above.any(|it| self.0.contains_key(it.as_os_str()));
            let listing = if is_below && !self.may_exist(folder) {
                Listing::Missing
            } else {
                Listing::of(folder)
            };
            self.0.insert(key.to_owned(), listing);
        }
        self.0.get(key).unwrap_or(&Listing::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn they_answer_as_the_system_does() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/b/file"), "").unwrap();
        symlink("a", at("link")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        let mut listings = Listings::default();
        for name in [
            "a",
            "A",
            "a/b",
            "a/b/file",
            "a/b/other",
            "a/c",
            "a/c/d",
            "a/b/file/x",
            "link",
            "link/b/file",
            "link/c",
            "dangling",
            "dangling/x",
            "none",
            "none/x/y",
            "a/../a/b",
            "a/../c",
            "a/..",
            "",
        ] {
            let path = at(name);
            assert_eq!(listings.exists(&path), path.exists(), "{name}");
            let is_there = fs::symlink_metadata(&path).is_ok();
            assert_eq!(listings.is_there(&path), is_there, "{name}");
        }
        assert!(listings.exists(Path::new("/")) && listings.may_exist(Path::new("relative")));
    }

    /// A folder that ignores case has a name in every spelling.
    #[test]
    fn names_in_another_spelling_are_looked_up() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(".ENV"), "").unwrap();
        let mut listings = Listings::default();
        assert!(listings.may_exist(&dir.path().join(".env")));
        assert!(!listings.may_exist(&dir.path().join(".envrc")));
        let other = tempfile::tempdir().unwrap();
        // The sign of Kelvin is a `k` in lower case.
        fs::write(other.path().join("\u{212a}ey"), "").unwrap();
        assert!(listings.may_exist(&other.path().join("key")));
    }

    #[test]
    fn only_listed_folders_show_that_something_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("a/B")).unwrap();
        let mut listings = Listings::default();
        assert!(!listings.lacks(&at("none/x")));
        assert_eq!(listings.names(&at("a")), Some(&["B".into()][..]));
        assert_eq!(listings.names(&at("none")), Some(&[][..]));
        for (name, lacks) in [
            ("a", false),
            ("a/b", false),
            ("a/b/x", false),
            ("a/c", true),
            ("a/c/x/y", true),
            ("a/..", false),
            ("none/x", true),
        ] {
            assert_eq!(listings.lacks(&at(name)), lacks, "{name}");
        }
    }

    #[test]
    fn what_appears_is_in_the_next_ones() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/.env");
        assert!(!Listings::default().exists(&path));
        fs::create_dir(dir.path().join("new")).unwrap();
        fs::write(&path, "").unwrap();
        assert!(Listings::default().exists(&path));
    }

    #[test]
    fn names_of_a_large_folder_are_looked_up() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..=MAX_NAMES {
            fs::write(dir.path().join(number.to_string()), "").unwrap();
        }
        assert!(Listings::default().may_exist(&dir.path().join("none")));
        assert!(!Listings::default().exists(&dir.path().join("none")));
    }
}
