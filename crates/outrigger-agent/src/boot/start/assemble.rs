//! Assembles the agent from its parts and connects the sources of its reports.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use outrigger_config::skills::Skill;
use outrigger_lsp::Lsp;
use outrigger_mcp::McpServers;
use outrigger_mcp_tools::SkillServers;
use outrigger_models::Models;
use outrigger_permissions::access::{Access, SearchRules, startup};
use outrigger_permissions::agents;
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
use crate::state::{
    AgentState, Catalog, LoginServices, PermissionServices, PluginServices, ProcessServices,
    ProjectContext, SessionServices, ToolServices,
};
use crate::tools::{lsp, mcp};
use outrigger_permissions::callers::Callers;
use outrigger_permissions::questions::{Questions, UserQuestions};
use outrigger_session_state::background::Background;
use outrigger_session_state::bus::Bus;

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
        let project = self.project_context();
        let catalog = Catalog {
            agents: self.agents(&parts),
            commands: all_commands(&self.config, &parts.skills, &self.boot.folders),
            skills: parts.skills,
        };
        let tools = ToolServices {
            runtime: parts.tools.runtime,
            options: parts.tools.options,
            mcp: parts.mcp,
            unstarted_mcp: parts.mcp_waiting,
            server_launcher: Arc::clone(&self.helpers.launcher),
            skill_servers: SkillServers::default(),
            formatters: self.helpers.formatters(&self.owner(), env.clone()),
            lsp: self.language_servers(&catalog, env),
            terminals: Ptys::default(),
        };
        let permissions = PermissionServices {
            access: self.access(),
            user_rules: parts.user_rules,
            callers: Callers::default(),
            workspace_trust: self.workspace_trust,
            answering: self.boot.answering,
            questions: Questions::new(parts.ungranted),
            user_questions: UserQuestions::default(),
        };
        let plugins =
            PluginServices::new(parts.plugins, self.admitted, bridge.calls(), self.sandboxes);
        let processes = ProcessServices {
            spawner: self.spawner,
            commands_spawner: self.commands_spawner,
            temporary: Arc::clone(&self.helpers.temporary),
            loopback: self.helpers.loopback.clone(),
        };
        let state = Arc::new_cyclic(|this| AgentState {
            this: this.clone(),
            config: self.config,
            store: self.store,
            bus: Bus::new(self.boot.sink.take()),
            models: parts.models,
            project,
            catalog,
            plugins,
            tools,
            permissions,
            processes,
            sessions: SessionServices::default(),
            logins: LoginServices::default(),
            background: Background::default(),
            publish_order: tokio::sync::Mutex::new(()),
        });
        bridge.connect(&state);
        state
    }

    /// Returns the language servers, which see the files that the default agent reads without being asked.
    fn language_servers(&self, catalog: &Catalog, env: lsp::Environment) -> Lsp {
        let default =
            agents::default_name(&catalog.agents, self.config.config.default_agent.as_deref());
        let agent = default.and_then(|name| catalog.agents.get(&name));
        let rules = agent.map_or(Vec::new(), |agent| agent.permission.clone());
        let (access, spawner) = (self.access(), self.spawner.clone());
        let may_see =
            Arc::new(move |file: &Path| SearchRules::allow(&access, &rules, &spawner, file));
        let helpers = &self.helpers;
        helpers.language_servers(&self.owner(), env, may_see)
    }

    fn access(&self) -> Access {
        let folders = &self.boot.folders;
        let programs = command_sandbox::programs(&self.config);
        let outside = startup::Outside::new(folders, programs);
        let outside = outside.with_projects(self.kept_programs.clone());
        Access::new(&self.location, &folders.home).with_startup(outside)
    }

    /// Returns the project, with snapshots of the files that the model may read.
    fn project_context(&self) -> ProjectContext {
        let folders = &self.boot.folders;
        let withheld = Withheld::of(&self.config, &self.location, folders);
        let snapshots = Snapshots::new(
            &self.location,
            &self.project.id,
            &folders.data,
            &self.spawner,
            self.config.value.get("snapshot") != Some(&json!(false)),
            withheld.map(|it| -> WithheldFn { Arc::new(move |path| it.holds(path)) }),
        );
        ProjectContext {
            location: self.location.clone(),
            anchor: Anchor::hold(&self.location.directory).ok().map(Arc::new),
            info: self.project.clone(),
            folders: folders.clone(),
            snapshots,
        }
    }
}

impl AgentState {
    /// Connects the sources that report to the agent: tools of plugins and MCP servers, contracts, language servers, notices.
    /// Records in the audit what plugins may do.
    pub(super) async fn bind(self: &Arc<Self>, notices: UnboundedReceiver<Notice>) {
        plugin_tools::register(self);
        mcp::bind(self).await;
        outrigger_browser::offer(
            &self.config.settings.browser,
            || self.processes.temporary.folder(),
            &self.project.folders.data,
            &self.processes.spawner,
            &self.store,
            &self.tools.runtime,
            self.bus.listen(),
        );
        capability_grants::narrow(self);
        contract_routes::bind(self, self.config.env());
        lsp::bind(self);
        notices::bind(self, notices);
        notices::failed(self);
        let hide = outrigger_audit::credential_watcher(&self.store);
        self.models.credentials().watch(hide);
        self.notify_left_completions();
        outrigger_audit::grants(&self.store, &self.plugins.host.list());
    }
}
