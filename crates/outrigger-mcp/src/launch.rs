//! Where and how a local server is started. Who has the servers decides, before each start.

use std::any::Any;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use outrigger_sandbox::Spawner;
use serde::Serialize;
use serde_json::Value;

/// What an entry of the configuration wants to be started.
#[derive(Clone)]
pub struct LaunchRequest {
    /// The server's name.
    pub server: String,
    /// Its entry.
    pub entry: Value,
    /// Program and arguments.
    pub command: Vec<String>,
    /// The working folder that the entry names.
    pub cwd: Option<String>,
    /// The whole environment. A later entry of the same name wins.
    pub env: Vec<(OsString, OsString)>,
}

/// The environment holds keys (invariant 10).
impl fmt::Debug for LaunchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchRequest")
            .field("server", &self.server)
            .field("command", &self.command)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// What is started for it.
#[derive(Clone)]
pub struct Launch {
    /// Starts the process.
    pub spawner: Spawner,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Working folder.
    pub cwd: PathBuf,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// What lasts as long as the process.
    pub held: Option<Arc<dyn Any + Send + Sync>>,
}

/// Why a server is not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchRefusal {
    /// As the rest of a sentence.
    pub reason: String,
    /// What a person can do about it.
    pub hint: String,
}

/// Where a server is started and in what, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// The working folder.
    pub folder: String,
    /// What its process may do: `full` is what the user may.
    pub sandbox: String,
    /// Why so.
    pub reason: String,
    /// What to try where it fails.
    #[serde(skip)]
    pub remedy: Option<String>,
}

/// Decides how servers are started.
pub trait Launcher: Send + Sync + fmt::Debug {
    /// What is started. Called before each start, restarts too. Reads the disk: blocking.
    ///
    /// # Errors
    /// Why it must not be started.
    fn launch(&self, request: &LaunchRequest) -> Result<Launch, LaunchRefusal>;
    /// The same for people, as it was at the last start; before one, after a look at the disk.
    fn placement(&self, request: &LaunchRequest) -> Option<Placement>;
}
