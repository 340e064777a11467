//! Content of instruction files, as far as they may be read.

use std::path::Path;

use outrigger_contributions::may_be_read;
use outrigger_permissions::access::Operation;
use outrigger_protocol::permission::Action;
use outrigger_sandbox::paths::open_resolved;
use outrigger_stdx::sync::lock;

use crate::state::AgentState;

/// File extensions of texts.
const TEXTS: [&str; 4] = ["markdown", "md", "mdc", "txt"];

impl AgentState {
    /// Reads an instruction file. A process that may create such a file could create a link instead to a file that it must not
    /// see but Outrigger can read. A project path must therefore be free of links, and nothing hidden from processes is read. A
    /// skipped file is reported once.
    pub(crate) fn instruction(&self, path: &Path) -> Option<String> {
        let real = path.canonicalize().ok()?;
        let project = &self.project.location.worktree;
        let is_projects = path.starts_with(project);
        let is_renamed = real.file_name() != path.file_name();
        let is_text = real
            .extension()
            .is_some_and(|it| TEXTS.iter().any(|text| it == *text));
        // A link in the project may point to the user's `.env`, or to a file for which rules need approval.
        let rules = self
            .permissions
            .access
            .rules(&[&self.config.config.permission]);
        let refused = if is_projects && !real.starts_with(project) {
            Some("it leads out of the project")
        } else if is_projects && is_renamed && !is_text {
            Some("it leads to a file that is not text")
        } else if is_projects
            && real != path
            && rules.decide(Operation::Read, &real).action != Action::Allow
        {
            Some("it leads to a file that needs approval")
        } else if !may_be_read(path, &real, &self.plugins.sandboxes)
            || self.is_hidden_from_processes(path, &real)
        {
            Some("processes or the plugin that named it may not read it")
        } else {
            None
        };
        if let Some(why) = refused {
            if lock(&self.sessions.skipped_instructions).insert(path.to_owned()) {
                tracing::warn!("[instructions] {} is skipped: {why}", path.display());
            }
            return None;
        }
        // Read the file that was checked: follow no links from here.
        let file = open_resolved(&real, false, false);
        match file
            .and_then(|file| outrigger_files::read_open_to_string(file, outrigger_files::SETTINGS))
        {
            Ok(text) => Some(text),
            Err(error) => {
                if lock(&self.sessions.skipped_instructions).insert(path.to_owned()) {
                    tracing::warn!("[instructions] {} is skipped: {error}", path.display());
                }
                None
            }
        }
    }
}
