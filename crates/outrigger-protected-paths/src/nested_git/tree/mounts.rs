//! Mounts within a project: a mount shows another folder at a path, and is not reported as a change.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};

const LIST: &str = "/proc/self/mountinfo";
/// Field of the mount point in a line.
const POINT: usize = 4;

/// The known mounts below a root.
pub(super) struct Mounts {
    list: File,
    root: PathBuf,
    below: Vec<Vec<u8>>,
}

impl Mounts {
    /// # Errors
    /// The system's.
    pub(super) fn below(root: &Path) -> io::Result<Self> {
        let mut mounts = Self {
            list: File::from(open(LIST, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?),
            root: root.to_owned(),
            below: Vec::new(),
        };
        mounts.below = mounts.read()?;
        Ok(mounts)
    }

    /// Returns whether the mounts below the root changed since the start.
    pub(super) fn have_changed(&mut self) -> bool {
        let mut list = [PollFd::new(&self.list, PollFlags::PRI | PollFlags::ERR)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // Some mount changed.
        let is_reported = poll(&mut list, Some(&now)).is_ok_and(|changed| changed > 0);
        is_reported && !self.read().is_ok_and(|below| below == self.below)
    }

    fn read(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut text = Vec::new();
        self.list.rewind()?;
        self.list.read_to_end(&mut text)?;
        let lines = text.split(|byte| *byte == b'\n');
        let below = lines.filter(|line| point(line).is_some_and(|it| it.starts_with(&self.root)));
        Ok(below.map(<[u8]>::to_vec).collect())
    }
}

/// Returns the path of a listed mount.
fn point(line: &[u8]) -> Option<PathBuf> {
    let escaped = line.split(|byte| *byte == b' ').nth(POINT)?;
    let mut name = Vec::with_capacity(escaped.len());
    let mut rest = escaped;
    while let [first, after @ ..] = rest {
        // Spaces and similar characters are three octal digits.
        let code = (*first == b'\\').then(|| after.get(..3)).flatten();
        let code = code.and_then(|code| u8::from_str_radix(str::from_utf8(code).ok()?, 8).ok());
        name.push(code.unwrap_or(*first));
        rest = match code {
            Some(_) => after.get(3..).unwrap_or_default(),
            None => after,
        };
    }
    Some(PathBuf::from(OsString::from_vec(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_read_with_their_odd_names() {
        for (line, want) in [
            ("36 35 98:0 / /mnt rw - ext3 /dev/root rw", Some("/mnt")),
            (
                "36 35 98:0 / /a\\040b\\134c rw - ext3 x rw",
                Some("/a b\\c"),
            ),
            ("36 35 98:0 / /a\\9 rw - ext3 x rw", Some("/a\\9")),
            ("36 35", None),
        ] {
            assert_eq!(point(line.as_bytes()), want.map(PathBuf::from), "{line}");
        }
        let mut mounts = Mounts::below(Path::new("/")).unwrap();
        assert!(!mounts.below.is_empty() && !mounts.have_changed());
    }
}
