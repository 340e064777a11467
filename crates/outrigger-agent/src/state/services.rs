//! The services of a running agent, by what they serve. Functions take the group that they need, not the whole agent.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use outrigger_config::skills::Skill;
use outrigger_contributions::message_changes::MessageChanges;
use outrigger_lsp::Lsp;
use outrigger_mcp::McpServers;
use outrigger_mcp_tools::{ServerLauncher, SkillServers};
use outrigger_permissions::access::Access;
use outrigger_permissions::agents::AgentInfo;
use outrigger_permissions::callers::Callers;
use outrigger_permissions::command_sandbox::Temporary;
use outrigger_permissions::pinned_rules::UserRules;
use outrigger_permissions::questions::{Questions, UserQuestions};
use outrigger_permissions::workspace_trust::WorkspaceTrust;
use outrigger_plugins::{Plugins, Snapshot};
use outrigger_prompt::command::CommandInfo;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::MessagePath;
use outrigger_protocol::session::Project;
use outrigger_sandbox::{Anchor, Loopback, SandboxOverrides, Spawner};
use outrigger_session_state::deferred_events::DeferredEvents;
use outrigger_session_state::histories::Histories;
use outrigger_session_state::logins::{PendingLogin, WaitingLogins};
use outrigger_session_state::notifications::Notifications;
use outrigger_session_state::plugin_calls::PluginCalls;
use outrigger_session_state::prompt_queue::WaitingPrompts;
use outrigger_session_state::session_locks::SessionLocks;
use outrigger_session_state::turns::Turns;
use outrigger_tools::ToolRuntime;
use outrigger_tools::builtin::Options;
use outrigger_workspace::formatters::Formatters;
use outrigger_workspace::snapshot::Snapshots;
use outrigger_workspace::terminals::Ptys;
use outrigger_workspace::{Folders, ProjectLocation};

use crate::permission::answering::Answering;
use crate::plugin_api::sdk_service::SdkService;

/// The project that an agent works in.
pub(crate) struct ProjectContext {
    pub(crate) location: ProjectLocation,
    /// Project folder, held open; `None` if it did not exist.
    pub(crate) anchor: Option<Arc<Anchor>>,
    pub(crate) info: Project,
    /// Folders for configuration, data and caches.
    pub(crate) folders: Folders,
    /// Snapshots of the project's files, for undo.
    pub(crate) snapshots: Snapshots,
}

impl ProjectContext {
    /// Returns the project's folders as messages of the model name them.
    pub(crate) fn message_path(&self) -> MessagePath {
        MessagePath {
            cwd: self.location.directory.to_string_lossy().into_owned(),
            root: self.location.worktree.to_string_lossy().into_owned(),
        }
    }
}

/// What models and users can choose by name.
pub(crate) struct Catalog {
    pub(crate) agents: BTreeMap<String, AgentInfo>,
    pub(crate) commands: BTreeMap<String, CommandInfo>,
    pub(crate) skills: Vec<Skill>,
}

/// Plugins and what is exchanged with them.
pub(crate) struct PluginServices {
    pub(crate) host: Plugins,
    /// Decision on which plugins run, made before any was started (D2).
    pub(crate) admitted: Snapshot,
    /// Tool calls of plugins that are in progress.
    pub(crate) calls: Arc<PluginCalls>,
    /// Set when plugins have prepared their providers.
    pub(crate) providers_prepared: tokio::sync::OnceCell<()>,
    /// Sandboxes of what plugins contribute.
    pub(crate) sandboxes: SandboxOverrides,
    /// Changes by plugins to user messages while a turn runs.
    pub(crate) message_changes: MessageChanges,
    /// Notifications to plugins that are still to be sent.
    pub(crate) notifications: Notifications,
    /// Cleared at shutdown: the service holds the agent that holds it.
    pub(crate) sdk: Mutex<Option<Arc<dyn SdkService>>>,
}

impl PluginServices {
    pub(crate) fn new(
        host: Plugins,
        admitted: Snapshot,
        calls: Arc<PluginCalls>,
        sandboxes: SandboxOverrides,
    ) -> Self {
        Self {
            host,
            admitted,
            calls,
            providers_prepared: tokio::sync::OnceCell::new(),
            sandboxes,
            message_changes: MessageChanges::default(),
            notifications: Notifications::default(),
            sdk: Mutex::default(),
        }
    }
}

/// Tools, and the servers and terminals behind them.
pub(crate) struct ToolServices {
    pub(crate) runtime: ToolRuntime,
    /// Options of shell commands.
    pub(crate) options: Options,
    pub(crate) mcp: McpServers,
    /// Servers of `.mcp.json` that are not started, with what to do about each.
    pub(crate) unstarted_mcp: BTreeMap<String, String>,
    /// Decides in which sandbox MCP servers start.
    pub(crate) server_launcher: Arc<ServerLauncher>,
    pub(crate) skill_servers: SkillServers,
    pub(crate) lsp: Lsp,
    pub(crate) formatters: Formatters,
    /// Terminals of clients.
    pub(crate) terminals: Ptys,
}

/// What decides whether something may be done.
pub(crate) struct PermissionServices {
    /// Path and host rules: allowed, denied, or asked about.
    pub(crate) access: Access,
    /// Rules from the user's files, whatever plugins changed.
    pub(crate) user_rules: UserRules,
    /// Parent agents of the agents of sessions.
    pub(crate) callers: Callers,
    pub(crate) workspace_trust: Option<Arc<WorkspaceTrust>>,
    pub(crate) answering: Answering,
    pub(crate) questions: Questions,
    pub(crate) user_questions: UserQuestions,
}

/// How processes are started.
pub(crate) struct ProcessServices {
    pub(crate) spawner: Spawner,
    /// Like `spawner`, for commands, which may reach the hosts of `tools.hosts`.
    pub(crate) commands_spawner: Spawner,
    pub(crate) temporary: Arc<Temporary>,
    /// Services of this machine that commands can reach.
    pub(crate) loopback: Loopback,
}

/// Sessions in use and their turns.
#[derive(Default)]
pub(crate) struct SessionServices {
    /// Messages of the sessions in use.
    pub(crate) histories: Histories,
    /// Allow one turn of a session at a time.
    pub(crate) locks: SessionLocks,
    /// Turns in progress.
    pub(crate) turns: Turns,
    /// Prompts that wait for the turn before them.
    pub(crate) queue: WaitingPrompts,
    /// Events of subagents that are published after their calls.
    pub(crate) deferred: DeferredEvents,
    /// Instruction files of subfolders that a session has read already.
    pub(crate) shown_instructions: Mutex<HashSet<(SessionId, PathBuf)>>,
    /// Instruction files that are not read and were reported to the user.
    pub(crate) skipped_instructions: Mutex<HashSet<PathBuf>>,
}

/// Logins in progress.
#[derive(Default)]
pub(crate) struct LoginServices {
    /// Logins to model providers that wait for their user, by provider.
    pub(crate) pending: Mutex<BTreeMap<String, Arc<PendingLogin>>>,
    pub(crate) waiting: WaitingLogins,
}
