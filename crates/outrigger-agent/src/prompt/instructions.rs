//! What instruction files say, as far as they may be read.

use std::path::Path;

use outrigger_sandbox::paths::open_resolved;
use outrigger_workspace::sync::lock;

use crate::state::Inner;

impl Inner {
    /// What an instruction file says. A process that may make such a file could make a link in its place, and what our process may read
    /// is not theirs to see: what lies in the project has to be there really, and nothing that is kept from processes is
    /// read. One that is skipped is reported once.
    pub(crate) fn instruction(&self, path: &Path) -> Option<String> {
        let real = path.canonicalize().ok()?;
        let project = &self.place.worktree;
        let led_out = path.starts_with(&self.place.worktree) && !real.starts_with(project);
        if led_out || self.is_kept_from_processes(path, &real) {
            if lock(&self.skipped_instructions).insert(path.to_owned()) {
                tracing::warn!(
                    "[instructions] {} is left out: it leads out of the project, or to what is kept from processes",
                    path.display()
                );
            }
            return None;
        }
        // What was looked at is what is read: no link is followed any more.
        let file = open_resolved(&real, false, false);
        match file
            .and_then(|file| outrigger_files::read_open_to_string(file, outrigger_files::SETTINGS))
        {
            Ok(text) => Some(text),
            Err(error) => {
                if lock(&self.skipped_instructions).insert(path.to_owned()) {
                    tracing::warn!("[instructions] {} is left out: {error}", path.display());
                }
                None
            }
        }
    }
}
