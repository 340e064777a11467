//! Names that a process must give to nothing, because a program of the user's acts on what lies there (`.vscode/tasks.json`).
//!
//! A name that does not exist cannot be masked by a mount, and what appears there later may be the user's own: an editor makes
//! its settings while a plugin runs. So the calls that give a file a name, or open one to write, are handed to the host, which
//! refuses the reserved names. The rest the process makes itself, with the name in its memory: one that exchanges the name at that moment gets past.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use outrigger_stdx::sync::lock;
use rustix::fs::readlinkat;

use super::Errno;
use super::notify::{Caller, Listener, PendingCall, Reply, View};

/// Maximum number of links that lead from a name to the file that is made.
const MAX_LINKS: usize = 40;
/// Maximum number of refused names in the program's log.
const MAX_SAID: usize = 100;
/// Refused names that were logged.
static SAID: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A name in a call: the folder it starts at, and the address of its text.
type Name = (RawFd, u64);

/// Decides about a call that gives a file a name.
pub(super) fn answer(
    reserved: &[PathBuf],
    call: libc::c_long,
    listener: &Listener,
    asked: &PendingCall,
) -> Result<Reply, Errno> {
    let caller = Caller::of(listener, asked)?;
    let opens = opens(call);
    for (from, at) in names(call, asked) {
        let path = caller.path(at)?;
        let view = if path.is_absolute() {
            caller.view(listener, asked)?
        } else {
            caller.view_from(from, listener, asked)?
        };
        let entry = if opens {
            Entry::led_to(view, path)?
        } else {
            Entry::of(&view, &path)?
        };
        // Without a name the call makes nothing.
        let Some(entry) = entry else {
            continue;
        };
        let path = entry.path();
        // A folder that is moved, or a link to one, brings what is in it.
        let is_reserved = |it: &PathBuf| path.starts_with(it) || !opens && it.starts_with(&path);
        if reserved.iter().any(is_reserved) {
            say(path);
            return Err(libc::EROFS);
        }
    }
    Ok(Reply::Unruled)
}

/// Returns whether a call opens the file that a name leads to; others make or move the name itself.
fn opens(call: libc::c_long) -> bool {
    #[cfg(target_arch = "x86_64")]
    if call == libc::SYS_open || call == libc::SYS_creat {
        return true;
    }
    call == libc::SYS_openat
}

/// Returns the names that a call gives.
fn names(call: libc::c_long, asked: &PendingCall) -> Vec<Name> {
    let [first, second, third, fourth, fifth, _] = asked.args;
    let at = |folder: u64, path: u64| (folder as RawFd, path);
    let here = |path: u64| (libc::AT_FDCWD, path);
    match call {
        libc::SYS_openat | libc::SYS_mknodat => vec![at(first, second)],
        libc::SYS_symlinkat => vec![at(second, third)],
        libc::SYS_linkat => vec![at(third, fourth)],
        libc::SYS_renameat2 if fifth as u32 & libc::RENAME_EXCHANGE != 0 => {
            vec![at(first, second), at(third, fourth)]
        }
        #[cfg(not(target_arch = "riscv64"))]
        libc::SYS_renameat => vec![at(third, fourth)],
        libc::SYS_renameat2 => vec![at(third, fourth)],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open | libc::SYS_creat | libc::SYS_mknod => vec![here(first)],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename | libc::SYS_link | libc::SYS_symlink => vec![here(second)],
        _ => {
            let _ = here;
            Vec::new()
        }
    }
}

/// A name in a folder, as the caller sees it.
struct Entry {
    folder: OwnedFd,
    /// The path of the folder, without links.
    above: PathBuf,
    name: OsString,
}

impl Entry {
    /// Returns `None` for a path that ends in no name.
    ///
    /// # Errors
    /// The folder is not found: the call fails as well, also where another thread makes that folder just now.
    fn of(view: &View, path: &Path) -> Result<Option<Self>, Errno> {
        let Some(name) = path.file_name() else {
            return Ok(None);
        };
        let folder = view.find(path.parent().unwrap_or(Path::new("")))?;
        let above = fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()));
        Ok(Some(Self {
            folder,
            above: above.map_err(|_| libc::EACCES)?,
            name: name.to_owned(),
        }))
    }

    /// Follows links to the file that opening the path makes or changes.
    fn led_to(mut view: View, mut path: PathBuf) -> Result<Option<Self>, Errno> {
        for _ in 0..MAX_LINKS {
            let Some(entry) = Self::of(&view, &path)? else {
                return Ok(None);
            };
            let Ok(target) = readlinkat(&entry.folder, &entry.name, Vec::new()) else {
                return Ok(Some(entry));
            };
            view.folder = entry.above;
            path = PathBuf::from(OsString::from_vec(target.into_bytes()));
        }
        Err(libc::ELOOP)
    }

    fn path(&self) -> PathBuf {
        self.above.join(&self.name)
    }
}

fn say(path: PathBuf) {
    let mut said = lock(&SAID);
    if said.len() < MAX_SAID && !said.contains(&path) {
        tracing::warn!(
            "[sandbox] a plugin or server must not make {}, which makes something run later; `write` under [plugins.NAME] lets a plugin",
            path.display()
        );
        said.insert(path);
    }
}
