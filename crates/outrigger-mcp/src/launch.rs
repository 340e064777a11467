//! Where and how a local server is started. The owner of the servers decides before each start.

use std::any::Any;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use outrigger_sandbox::Spawner;
use serde::Serialize;
use serde_json::Value;

/// The start that a configuration entry requests.
#[derive(Clone)]
pub struct LaunchRequest {
    /// The server's name.
    pub server: String,
    /// Its entry.
    pub entry: Value,
    /// Program and arguments.
    pub command: Vec<String>,
    /// The working directory in the entry.
    pub cwd: Option<String>,
    /// The complete environment. A later entry of the same name wins.
    pub env: Vec<(OsString, OsString)>,
}

/// The environment contains keys (invariant 10).
impl fmt::Debug for LaunchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchRequest")
            .field("server", &self.server)
            .field("command", &self.command)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// The start that is performed.
#[derive(Clone)]
pub struct Launch {
    /// Starts the process.
    pub spawner: Spawner,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Working directory.
    pub cwd: PathBuf,
    /// The complete environment.
    pub env: Vec<(OsString, OsString)>,
    /// Values that live as long as the process.
    pub held: Option<Arc<dyn Any + Send + Sync>>,
}

/// Why a server is not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchRefusal {
    /// The reason, as the rest of a sentence.
    pub reason: String,
    /// What the user can do about it.
    pub hint: String,
}

/// Where and in which sandbox a server is started, for display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// The working directory.
    pub folder: String,
    /// What its process may do: `full` is what the user may.
    pub sandbox: String,
    /// The reason.
    pub reason: String,
    /// What to try if it fails.
    #[serde(skip)]
    pub remedy: Option<String>,
}

/// Decides how servers are started.
pub trait Launcher: Send + Sync + fmt::Debug {
    /// Returns the start to perform. Called before each start, including restarts. Reads the disk:
    /// blocking.
    ///
    /// # Errors
    /// Why it must not be started.
    fn launch(&self, request: &LaunchRequest) -> Result<Launch, LaunchRefusal>;
    /// Returns the placement for display: that of the last start or, before the first, computed
    /// from the disk.
    fn placement(&self, request: &LaunchRequest) -> Option<Placement>;
}
