//! Modes with the bit of the group. On a folder it says which group new files belong to, on a file that it runs as its group for
//! everybody who starts it: every other user of the machine could act for this one's. So the host gives them to folders, and to nothing else.

use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};

use rustix::fs::{CWD, FileType, Mode, chmodat, fchmod, fstat};

use super::notify::{Asked, Caller, Listener};
use super::{Errno, errno_of};
use crate::seccomp::calls::setuid::FCHMODAT2;

/// All that a mode says.
const BITS: u32 = 0o7777;
/// A link is not a folder.
const NOFOLLOW: u32 = libc::AT_SYMLINK_NOFOLLOW.unsigned_abs();

/// Makes one of the calls that give a mode, for a folder of the caller's.
pub(super) fn set_mode(
    call: libc::c_long,
    listener: &Listener,
    asked: &Asked,
) -> Result<(), Errno> {
    let caller = Caller::of(listener, asked)?;
    let [first, second, third, fourth, ..] = asked.args;
    let (folder, mode) = match call {
        libc::SYS_fchmod => {
            let folder = caller.open_file(first as RawFd)?;
            (Named::Open(folder), second)
        }
        libc::SYS_fchmodat => {
            let from = first as RawFd;
            (found(&caller, from, second, listener, asked)?, third)
        }
        // Of what is open without a name.
        FCHMODAT2 if fourth as u32 & !NOFOLLOW != 0 => return Err(libc::EPERM),
        FCHMODAT2 => {
            let from = first as RawFd;
            (found(&caller, from, second, listener, asked)?, third)
        }
        _ => {
            let from = libc::AT_FDCWD;
            (found(&caller, from, first, listener, asked)?, second)
        }
    };
    let stat = fstat(folder.as_fd()).map_err(errno_of)?;
    let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    // This process may have rights that the caller has not.
    if !is_folder || stat.st_uid != caller.user {
        return Err(libc::EPERM);
    }
    let mode = Mode::from_raw_mode(mode as u32 & BITS);
    match &folder {
        Named::Open(folder) => fchmod(folder, mode),
        Named::Found(folder) => {
            let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
            chmodat(CWD, path, mode, rustix::fs::AtFlags::empty())
        }
    }
    .map_err(errno_of)
}

/// A folder, as the caller named it. Both keep what it is mounted as for the caller.
enum Named {
    /// By the number of an open file.
    Open(OwnedFd),
    /// By a path: it is not open.
    Found(OwnedFd),
}

impl Named {
    fn as_fd(&self) -> &OwnedFd {
        match self {
            Self::Open(folder) | Self::Found(folder) => folder,
        }
    }
}

fn found(
    caller: &Caller,
    from: RawFd,
    path: u64,
    listener: &Listener,
    asked: &Asked,
) -> Result<Named, Errno> {
    let path = caller.path(path)?;
    let view = match path.is_absolute() {
        true => caller.view(listener, asked)?,
        false => caller.view_from(from, listener, asked)?,
    };
    view.find(&path).map(Named::Found)
}
