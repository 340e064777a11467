//! Assembles the agent from its parts and connects the sources of its reports.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use outrigger_config::skills::Skill;
use outrigger_mcp::McpServers;
use outrigger_mcp_tools::SkillServers;
use outrigger_models::Models;
use outrigger_permissions::access::{Access, startup};
use outrigger_permissions::command_sandbox;
use outrigger_permissions::pinned_rules::UserRules;
use outrigger_permissions::sandbox_policy::Withheld;
use outrigger_plugins::{Notice, Plugins};
use outrigger_protocol::id::PluginId;
use outrigger_sandbox::Anchor;
use outrigger_workspace::snapshot::{Snapshots, WithheldFn};
use outrigger_workspace::terminals::Ptys;
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;

use super::bootstrap::Bootstrap;
use super::catalog::{Tools, all_commands};
use crate::boot::notices;
use crate::plugin_api::{capability_grants, contract_routes, plugin_tools};
use crate::state::AgentState;
use crate::state::histories::Histories;
use crate::tools::{lsp, mcp};
use outrigger_contributions::message_changes::MessageChanges;
use outrigger_permissions::questions::{Questions, UserQuestions};
use outrigger_session_state::background::Background;
use outrigger_session_state::bus::Bus;
use outrigger_session_state::deferred_events::DeferredEvents;
use outrigger_session_state::logins::WaitingLogins;
use outrigger_session_state::notifications::Notifications;
use outrigger_session_state::prompt_queue::WaitingPrompts;
use outrigger_session_state::session_locks::SessionLocks;
use outrigger_session_state::turns::Turns;

/// Results of the start steps.
pub(super) struct Parts {
    pub(super) plugins: Plugins,
    pub(super) mcp: McpServers,
    pub(super) mcp_waiting: BTreeMap<String, String>,
    pub(super) models: Models,
    pub(super) skills: Vec<Skill>,
    pub(super) tools: Tools,
    pub(super) user_rules: UserRules,
    pub(super) ungranted: Vec<(PluginId, String)>,
}

impl Bootstrap {
    /// Creates the agent; plugin processes can reach it from now on.
    pub(super) fn assemble(mut self, parts: Parts) -> Arc<AgentState> {
        let bridge = Arc::clone(&self.bridge);
        let env = lsp::environment(&self.boot);
        let state = Arc::new_cyclic(|this| AgentState {
            this: this.clone(),
            access: self.access(),
            agents: self.agents(&parts),
            anchor: Anchor::hold(&self.place.directory).ok().map(Arc::new),
            answering: self.boot.answering,
            background: Background::default(),
            bus: Bus::new(self.boot.sink.take()),
            commands: all_commands(&self.config, &parts.skills, &self.boot.folders),
            callers: outrigger_permissions::callers::Callers::default(),
            deferred: DeferredEvents::default(),
            formatters: self.helpers.formatters(&self.owner(), env.clone()),
            skipped_instructions: Mutex::default(),
            logins: Mutex::default(),
            loopback: self.helpers.loopback.clone(),
            lsp: self.helpers.language_servers(&self.owner(), env),
            mcp: parts.mcp,
            mcp_waiting: parts.mcp_waiting,
            message_changes: MessageChanges::default(),
            models: parts.models,
            notifications: Notifications::default(),
            plugin_calls: bridge.calls(),
            plugins: parts.plugins,
            providers: tokio::sync::OnceCell::new(),
            ptys: Ptys::default(),
            questions: Questions::new(parts.ungranted),
            runtime: parts.tools.runtime,
            sdk: Mutex::default(),
            session_locks: SessionLocks::default(),
            histories: Histories::default(),
            shell: parts.tools.options,
            server_launcher: Arc::clone(&self.helpers.launcher),
            skill_servers: SkillServers::default(),
            skills: parts.skills,
            snapshots: self.snapshots(),
            publish_order: tokio::sync::Mutex::new(()),
            temporary: Arc::clone(&self.helpers.temporary),
            shown_instructions: Mutex::default(),
            turns: Turns::default(),
            user_questions: UserQuestions::default(),
            user_rules: parts.user_rules,
            waiting: WaitingPrompts::default(),
            waiting_logins: WaitingLogins::default(),
            admitted: self.admitted,
            sandboxes: self.sandboxes,
            commands_spawner: self.commands_spawner,
            config: self.config,
            folders: self.boot.folders,
            place: self.place,
            project: self.project,
            spawner: self.spawner,
            store: self.store,
            workspace_trust: self.workspace_trust,
        });
        bridge.connect(&state);
        state
    }

    fn access(&self) -> Access {
        let folders = &self.boot.folders;
        let programs = command_sandbox::programs(&self.config);
        let outside = startup::Outside::new(folders, programs);
        let outside = outside.with_projects(self.kept_programs.clone());
        Access::new(&self.place, &folders.home).with_startup(outside)
    }

    /// Returns snapshots of the project's files, without those that the model may not read.
    fn snapshots(&self) -> Snapshots {
        let folders = &self.boot.folders;
        let withheld = Withheld::of(&self.config, &self.place, folders);
        Snapshots::new(
            &self.place,
            &self.project.id,
            &folders.data,
            &self.spawner,
            self.config.value.get("snapshot") != Some(&json!(false)),
            withheld.map(|it| -> WithheldFn { Arc::new(move |path| it.holds(path)) }),
        )
    }
}

impl AgentState {
    /// Connects the sources that report to the agent: tools of plugins and MCP servers, contracts, language servers, notices.
    /// Records in the audit what plugins may do.
    pub(super) async fn bind(self: &Arc<Self>, notices: UnboundedReceiver<Notice>) {
        plugin_tools::register(self);
        mcp::bind(self).await;
        let places = (|| self.temporary.folder(), &*self.folders.data);
        let (settings, runtime) = (&self.config.settings.browser, &self.runtime);
        let by = (&self.spawner, &self.store);
        outrigger_browser::offer(settings, places, by, runtime, self.bus.listen());
        capability_grants::narrow(self);
        contract_routes::bind(self, self.config.env());
        lsp::bind(self);
        notices::bind(self, notices);
        notices::failed(self);
        let hide = outrigger_audit::credential_watcher(&self.store);
        self.models.credentials().watch(hide);
        self.notify_left_completions();
        outrigger_audit::grants(&self.store, &self.plugins.list());
    }
}
