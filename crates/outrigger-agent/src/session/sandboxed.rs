//! Runs a command in the sandbox of the `bash` tool, so that the user can see what it blocks (`outrigger sandbox`).

use std::ffi::OsString;

use outrigger_sandbox::{Child, Spec, Stdio};

use crate::error::AgentError;
use crate::state::Agent;

impl Agent {
    /// Starts a command as the default agent's `bash` tool would: the same sandbox, the same variables without those of plugins,
    /// no standard input. Both streams are pipes of the child; dropping it ends all that it started.
    ///
    /// # Errors
    /// [`AgentError::Tools`] where its sandbox cannot be set up, or the program cannot be started.
    pub async fn start_sandboxed(&self, words: &[OsString]) -> Result<Child, AgentError> {
        let failed = |error: String| AgentError::Tools(error);
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| failed("there is no command to run".to_owned()))?;
        let info = self.choose_agent(None)?;
        let policy = self.state.confine(None, info.permission.clone()).await;
        let mut spec = Spec::new(program)
            .args(arguments)
            .cwd(&self.state.project.location.directory)
            .vars(outrigger_tools::builtin::shell_environment(
                &self.state.tools.options.shell_env,
                None,
            ))
            .stdout(Stdio::Pipe)
            .stderr(Stdio::Pipe)
            .allow_new_privs()
            .label("sandbox");
        spec.policy = policy.map_err(|error| failed(format!("{error}\n{}", error.hint())))?;
        let child = self.state.processes.commands_spawner.spawn(spec).await;
        child.map_err(|error| {
            failed(format!(
                "cannot start {}: {error}",
                program.to_string_lossy()
            ))
        })
    }
}
