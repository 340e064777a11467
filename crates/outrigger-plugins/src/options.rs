//! What plugins are loaded from and with.

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

use outrigger_plugin_registry::access::settings::PluginSettings;
use outrigger_plugin_registry::error::PluginError;

/// `serverUrl` of the plugin input when no TCP server runs: the host script answers this origin over the channel.
pub const SERVER_URL: &str = "http://outrigger.localhost/";

/// Whether a plugin of the list should run as everything is now, or why not.
pub type AdmitFn = Arc<dyn Fn(&PluginSpec) -> Result<(), PluginError> + Send + Sync>;

/// What plugins are loaded from and with.
pub struct LoadOptions {
    /// The plugins in load order, from the configuration; tool files before them, since their tools come first (facts 3.3).
    pub plugins: Vec<PluginSpec>,
    /// Entries that are not loaded; they are listed with their reason, after the others.
    pub skipped: Vec<SkippedPlugin>,
    /// Asked before a plugin is loaded again: whether the layers of the snapshot (D3) still have it. It may block.
    pub admits: Option<AdmitFn>,
    /// Bundled plugins that run, by id: others may need them.
    pub bundled: Vec<String>,
    /// How they are run.
    pub settings: PluginSettings,
    /// Project folder.
    pub directory: PathBuf,
    /// Root of the working tree; `/` outside version control, as in OpenCode.
    pub worktree: PathBuf,
    /// `project` of the plugin input.
    pub project: Value,
    /// `serverUrl` of the plugin input, usually [`SERVER_URL`].
    pub server_url: String,
    /// What the user's rules keep from processes; asked at each start of one.
    pub covers: CoversFn,
    /// Starts processes.
    pub spawner: Spawner,
    /// The same for what installs packages: what it reaches, and what is kept from it.
    pub installers: Spawner,
    /// Where a JavaScript runtime is looked for.
    pub runtimes: Lookup,
    /// Our data folder.
    pub data: PathBuf,
    /// Our cache folder.
    pub cache: PathBuf,
    /// The user's OpenCode configuration folder; plugin processes get copies of its files.
    pub user_config: Option<PathBuf>,
    /// Install `@opencode-ai/sdk` and its like when they are not there yet. Without them plugins run, and `client` says
    /// that it is missing when it is used.
    pub install_modules: bool,
    /// Command hooks in Claude Code's form, called after the plugins; `None` where they are switched off.
    pub commands: Option<CommandHooks>,
    /// Asks before Bun is fetched, where the setting is to ask; `None`: nobody is there who could answer.
    pub consent: Option<ConsentFn>,
    /// Asks whether a plugin that is new or changed is to be trusted; `None`: nobody is there who could answer.
    pub trust: Option<TrustFn>,
    /// What of the project a person let count, with its settings.
    pub let_count: Option<LetCount>,
    /// Answers what plugins ask.
    pub handler: Arc<dyn HostHandler>,
    /// Notified of every step of every plugin.
    pub progress: ProgressFn,
    /// Notified of what becomes of plugins while they run.
    pub notice: NoticeFn,
    /// The clock of the records, in milliseconds since the Unix epoch.
    pub now: fn() -> Millis,
}

/// Asks whether a program may be fetched from npm; what it is goes in, as `bun@1.4.5`.
pub type ConsentFn = Arc<dyn Fn(&str) -> BoxFuture<'static, bool> + Send + Sync>;
