//! Which plugin contributed a skill. Servers of a plugin's skill need the user's approval and run in the plugin's sandbox,
//! wherever the skill's folder is.

use outrigger_config::claude::ClaudeServer;
use outrigger_config::skills::Skill;
use outrigger_mcp_tools::{servers_of_skills, users_skill_folders};
use outrigger_protocol::id::PluginId;
use outrigger_sandbox::SandboxOverride;
use outrigger_skills::sandbox_of_named;

use crate::state::{Agent, AgentState};

impl AgentState {
    /// Returns the plugin whose folder contains a skill. Folders with skills of the user or the project belong to no plugin.
    fn plugin_around(&self, skill: &Skill) -> Option<PluginId> {
        let project = &self.project;
        let mut others = Vec::from(users_skill_folders(&project.folders));
        others.extend([
            project.location.directory.clone(),
            project.location.worktree.clone(),
        ]);
        self.plugins.host.plugin_around(&skill.dir, &others)
    }

    pub(super) fn is_skill_of_plugin(&self, skill: &Skill) -> bool {
        sandbox_of_named(&skill.dir, &self.plugins.sandboxes).is_some()
            || self.plugin_around(skill).is_some()
    }

    pub(super) async fn plugin_sandbox_of_skill(
        &self,
        skill: &Skill,
    ) -> Result<Option<SandboxOverride>, String> {
        // Who names a folder of another plugin gets no sandbox of that one.
        if let Some(own) = sandbox_of_named(&skill.dir, &self.plugins.sandboxes) {
            return Ok(Some(own));
        }
        match self.plugin_around(skill) {
            Some(plugin) => self.plugins.host.sandbox_of_plugin(&plugin).await,
            None => Ok(None),
        }
    }
}

impl Agent {
    /// Returns the MCP servers of skills that need the user's approval, by `SKILL:SERVER`.
    #[must_use]
    pub fn skill_servers_to_allow(&self) -> Vec<(String, ClaudeServer)> {
        let state = &self.state;
        let is_of_plugin = |skill: &Skill| state.is_skill_of_plugin(skill);
        servers_of_skills(self.skills(), self.config(), self.folders(), is_of_plugin)
    }
}
