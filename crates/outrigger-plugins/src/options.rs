//! Options for loading plugins.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use outrigger_claude_hooks::CommandHooks;
use outrigger_config::{PluginSpec, SkippedPlugin};
use outrigger_js::{HostHandler, Lookup};
use outrigger_plugin_status::{NoticeFn, ProgressFn};
use outrigger_plugin_trust::{LetCount, TrustFn};
use outrigger_protocol::Millis;
use outrigger_sandbox::{CoversFn, Spawner};
use serde_json::Value;

use outrigger_plugin_hooks::RedactFn;
use outrigger_plugin_registry::access::settings::PluginSettings;
use outrigger_plugin_registry::error::PluginError;

/// `serverUrl` of the plugin input when no TCP server runs: the host script answers this origin over the channel.
pub const SERVER_URL: &str = "http://outrigger.localhost/";

/// Checks whether a plugin of the list should still run, or why not.
pub type AdmitFn = Arc<dyn Fn(&PluginSpec) -> Result<(), PluginError> + Send + Sync>;

/// Options for loading plugins.
pub struct LoadOptions {
    /// Configured plugins in load order; tool files come before them, since their tools come first.
    pub plugins: Vec<PluginSpec>,
    /// Entries that are not loaded; they are listed with their reason, after the others.
    pub skipped: Vec<SkippedPlugin>,
    /// Called before a plugin is reloaded: checks that the layers of the snapshot (D3) still admit it. May block.
    pub admits: Option<AdmitFn>,
    /// Ids of the running bundled plugins: others may depend on them.
    pub bundled: Vec<String>,
    /// Settings for running plugins.
    pub settings: PluginSettings,
    /// Project folder.
    pub directory: PathBuf,
    /// Root of the working tree; `/` outside version control, as in OpenCode.
    pub worktree: PathBuf,
    /// `project` of the plugin input.
    pub project: Value,
    /// `serverUrl` of the plugin input, usually [`SERVER_URL`].
    pub server_url: String,
    /// Returns what the user's rules hide from processes; called at each start of one.
    pub covers: CoversFn,
    /// Starts processes.
    pub spawner: Spawner,
    /// Starts installers, with their network access and hidden paths.
    pub installers: Spawner,
    /// Where to look for a JavaScript runtime.
    pub runtimes: Lookup,
    /// Outrigger's data folder.
    pub data: PathBuf,
    /// Outrigger's cache folder.
    pub cache: PathBuf,
    /// The user's OpenCode configuration folder; plugin processes get copies of its files.
    pub user_config: Option<PathBuf>,
    /// Install `@opencode-ai/sdk` and related packages if they are missing. Plugins run without them, and using `client`
    /// then reports that it is missing.
    pub install_modules: bool,
    /// Command hooks in Claude Code's form, called after the plugins; `None` if disabled.
    pub commands: Option<CommandHooks>,
    /// Asks before Bun is fetched, if the setting is to ask; `None`: there is no user to ask.
    pub consent: Option<ConsentFn>,
    /// Asks whether to trust a new or changed plugin; `None`: there is no user to ask.
    pub trust: Option<TrustFn>,
    /// What the user accepted of the project, with its settings.
    pub let_count: Option<LetCount>,
    /// Answers requests of plugins.
    pub handler: Arc<dyn HostHandler>,
    /// Receives every step of every plugin.
    pub progress: ProgressFn,
    /// Receives state changes of running plugins.
    pub notice: NoticeFn,
    /// Removes secrets from what records keep of hooks' answers; `None`: they keep no values.
    pub redact: Option<RedactFn>,
    /// Clock of the records, in milliseconds since the Unix epoch.
    pub now: fn() -> Millis,
}

/// Asks whether a program may be fetched from npm; the argument is its spec, such as `bun@1.4.5`.
pub type ConsentFn = Arc<dyn Fn(&str) -> BoxFuture<'static, bool> + Send + Sync>;
