//! Shell lines in the templates of commands. They are judged as calls of `bash`, and run on this machine alone.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use serde_json::json;

use super::ToolRuntime;
use super::stages::granted;
use crate::builtin::bash;
use crate::error::ToolError;
use crate::host::{PermissionAsk, ToolContext};

impl ToolRuntime {
    /// Returns the questions of a line that `shell` runs in the session's folder.
    ///
    /// # Errors
    /// Why it must not run: the agent has no grant for commands, `[[routes]]` send commands elsewhere, or the machine's policy
    /// forbids a program or file of it.
    pub fn line_questions(
        &self,
        line: &str,
        shell: &Path,
        ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        let entry = self.find_bundled(bash::NAME);
        let entry = entry.ok_or_else(|| ToolError::failed("there is no tool for commands"))?;
        granted(&entry, ctx)?;
        let input = json!({ "command": line });
        let routes = self.routes.read();
        let routes = Arc::clone(&routes.unwrap_or_else(PoisonError::into_inner));
        let bound = routes.bind(entry.descriptor.declared.contract, &input, ctx);
        if bound.remote().is_some() {
            return Err(ToolError::failed(format!(
                "`[[routes]]` let {} run commands, and a line of a template runs on this machine only",
                bound.name()
            )));
        }
        bash::asks(&input, shell, ctx)
    }
}
