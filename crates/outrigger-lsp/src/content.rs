//! The content of project files for servers, which run in a sandbox and may put links to other files into the project.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_sandbox::paths;

/// Maximum bytes of a file sent to servers.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Returns whether the rules allow servers to see a file. It is called with a path without links and may block.
pub type MaySeeFn = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// The files that servers may see: those of the project that the rules allow.
#[derive(Clone)]
pub(crate) struct Content {
    folders: [PathBuf; 2],
    may_see: MaySeeFn,
}

impl Content {
    pub(crate) fn new(directory: &Path, worktree: &Path, may_see: &MaySeeFn) -> Self {
        Self {
            folders: [directory.to_owned(), worktree.to_owned()],
            may_see: Arc::clone(may_see),
        }
    }

    /// Reads a file. Links are resolved first and none is followed when it is opened, so a link that is put there in
    /// between has no effect. Blocking.
    ///
    /// # Errors
    /// The system's error; `PermissionDenied` for a file that servers may not see.
    pub(crate) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let real = paths::follow(path).map_err(io::Error::other)?;
        if !self.is_inside(&real) || !(self.may_see)(&real) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let file = paths::open_resolved(&real, false, false)?;
        outrigger_files::read_open(file, MAX_FILE_BYTES)
    }

    fn is_inside(&self, real: &Path) -> bool {
        self.folders.iter().any(|folder| {
            // `/` as project means that there is none.
            folder.parent().is_some()
                && paths::follow(folder).is_ok_and(|folder| real.starts_with(folder))
        })
    }
}
