//! `config` hooks: plugins change the configuration, within what the user leaves to them.

use std::collections::BTreeMap;

use outrigger_contributions::providers::speakers;
use outrigger_contributions::sandbox_contributions;
use outrigger_mcp::McpServers;
use outrigger_permissions::pinned_rules::UserRules;
use outrigger_plugins::{Grant, Plugins};
use outrigger_protocol::Object;
use outrigger_protocol::hook::HookRecord;
use outrigger_protocol::id::PluginId;
use serde_json::Value;

use super::bootstrap::Bootstrap;
use crate::plugin_api::plugin_admission;

/// The keys by which the configuration says what agents may do, and which of them answers.
const RULES: [&str; 5] = ["agent", "default_agent", "mode", "permission", "tools"];

/// What is known of the configuration beside what is in force.
pub(super) struct Configured {
    /// What the hooks did, for the audit.
    pub(super) records: Vec<HookRecord>,
    /// The rules that plugins cannot lift.
    pub(super) user_rules: UserRules,
    /// Providers as files have them, the user's and those of a trusted project.
    pub(super) file_providers: Object,
    /// Providers that a plugin answers for.
    pub(super) speakers: Vec<(String, PluginId)>,
    /// Plugins that gave rules without the grant for wider ones, with the names of their tables.
    pub(super) ungranted: Vec<(PluginId, String)>,
}

impl Bootstrap {
    /// Lets plugins change the configuration. They do not see the keys in it (invariant 10), what they contribute gets their
    /// sandboxes, and the user's rules hold whatever they do.
    pub(super) async fn run_config_hooks(&mut self, plugins: &Plugins) -> Configured {
        let user_rules = UserRules::of(&self.config.config);
        let file_providers = self.config.config.provider.clone();
        let given = self.config.redacted();
        let (mut value, records) = plugins.configure(given.clone()).await;
        sandbox_contributions(plugins, &given, &mut value, &self.place, &self.sandboxes).await;
        for pointer in self.config.restore(&mut value) {
            tracing::warn!(
                "[config] a plugin changed what uses {pointer}, or copied it: the secret is left out"
            );
        }
        let speakers = speakers(plugins, &given, &value);
        let givers = plugins.configured_keys(&RULES).into_iter();
        let ungranted = givers.filter_map(|plugin| {
            let name = plugins.grant_missing(&plugin, Grant::Approve)?;
            Some((plugin, name))
        });
        if value != self.config.value {
            self.apply(value, &user_rules);
        }
        Configured {
            ungranted: ungranted.collect(),
            records,
            user_rules,
            file_providers,
            speakers,
        }
    }

    fn apply(&mut self, value: Value, user_rules: &UserRules) {
        let (read, problems) = self.config.reread(value.clone());
        for problem in problems {
            tracing::warn!("[config] {problem}");
        }
        self.config.config = read;
        self.config.value = value;
        user_rules.hold(&mut self.config.config);
        plugin_admission::hold(&self.admitted, &mut self.config);
    }

    /// Starts the MCP servers that plugins added, and ends those that they took away. The answer is which servers of
    /// `.mcp.json` wait for the user, and why.
    pub(super) fn configure_mcp_servers(&self, mcp: &McpServers) -> BTreeMap<String, String> {
        let (servers, waiting) = outrigger_mcp_tools::with_claude(&self.config, &self.boot.folders);
        mcp.limit_calls(crate::tools::mcp::call_timeout(&self.config));
        mcp.configure(&servers);
        // One line says what is skipped of a folder that is not trusted.
        for (name, why) in waiting.iter().filter(|_| !self.config.left_out) {
            tracing::warn!("[mcp:{name}] is not started: {why}");
        }
        waiting
    }
}
