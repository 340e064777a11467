//! The runtime of the project's test: the JavaScript runtime of plugins.

use std::path::Path;
use std::time::{Duration, Instant};

use outrigger_agent::AgentError;
use outrigger_js::{JsRuntime, Lookup, RuntimeKind};
use outrigger_sandbox::{Spawner, Spec, env};

use super::project::Ground;
use crate::failure::Failure;

/// Far more than the test needs.
const DEADLINE: Duration = Duration::from_secs(60);
/// Far more than the test prints, in bytes.
const MAX_OUTPUT: usize = 64 * 1024;

/// A working runtime.
pub(super) struct Program {
    runtime: JsRuntime,
    /// Its name, version and path.
    pub(super) title: String,
}

/// One run of the test.
pub(super) struct TestRun {
    /// Its output.
    pub(super) output: String,
    /// How it ended.
    pub(super) end: String,
    /// The test passed.
    pub(super) passed: bool,
    /// Its duration.
    pub(super) took: Duration,
}

impl Program {
    /// Searches where plugin runtimes are searched; returns a one-line reason if there is none.
    pub(super) async fn find(spawner: &Spawner) -> Result<Self, String> {
        let named = Lookup::from_env(None, Some(super::user_data()));
        let unnamed = Lookup {
            bun: None,
            node: None,
            ..named.clone()
        };
        // A variable that names no program is a mistake in the user's settings, which the demo ignores.
        let runtime = JsRuntime::find(&named)
            .ok()
            .or_else(|| JsRuntime::find(&unnamed).ok())
            .ok_or("neither Bun nor Node found")?;
        let version = runtime
            .version(spawner)
            .await
            .map_err(|error| error.to_string())?;
        let name = match runtime.kind {
            RuntimeKind::Bun => "Bun",
            RuntimeKind::Node => "Node",
        };
        Ok(Self {
            title: format!("{name} {version} ({})", runtime.path.display()),
            runtime,
        })
    }

    /// Returns its program file.
    pub(super) fn path(&self) -> &Path {
        &self.runtime.path
    }

    /// Returns its command name.
    pub(super) fn name(&self) -> &'static str {
        self.runtime.kind.name()
    }

    /// Returns the variable that names it to the agent.
    pub(super) fn variable(&self) -> &'static str {
        match self.runtime.kind {
            RuntimeKind::Bun => "OUTRIGGER_BUN",
            RuntimeKind::Node => "OUTRIGGER_NODE",
        }
    }

    /// Runs the project's test.
    pub(super) async fn test(
        &self,
        spawner: &Spawner,
        ground: &Ground,
    ) -> Result<TestRun, Failure> {
        let spec = Spec::new(self.path())
            .arg("test.js")
            .cwd(ground.project())
            .vars(env::of_host(&[]))
            .var("HOME", ground.folder("state/home"));
        let begun = Instant::now();
        let output = outrigger_sandbox::run(spawner, spec, DEADLINE, MAX_OUTPUT)
            .await
            .map_err(AgentError::from)?;
        let text = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .concat();
        Ok(TestRun {
            output: text,
            end: output.exit.to_string(),
            passed: output.exit.success(),
            took: begun.elapsed(),
        })
    }
}
