//! Modes with the setgid bit. On a folder it sets the group of new files. On a file it makes the program run as its group for everyone who
//! starts it, so other users of the machine could act as this one. So the host sets it on folders and on nothing else.

use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};

use rustix::fs::{CWD, FileType, Mode, chmodat, fchmod, fstat};

use super::notify::{Caller, Listener, PendingCall};
use super::{Errno, errno_of};
use crate::seccomp::calls::setuid::FCHMODAT2;

/// All mode bits.
const BITS: u32 = 0o7777;
/// A link is not a folder.
const NOFOLLOW: u32 = libc::AT_SYMLINK_NOFOLLOW.unsigned_abs();

/// Makes one of the calls that set a mode, for a folder of the caller.
pub(super) fn set_mode(
    call: libc::c_long,
    listener: &Listener,
    asked: &PendingCall,
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
        // For an open file without a path.
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
    // This process may have rights that the caller lacks.
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

/// A folder, as the caller named it. Both variants keep the caller's view of its mount.
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
    asked: &PendingCall,
) -> Result<Named, Errno> {
    let path = caller.path(path)?;
    let view = if path.is_absolute() {
        caller.view(listener, asked)?
    } else {
        caller.view_from(from, listener, asked)?
    };
    view.find(&path).map(Named::Found)
}
