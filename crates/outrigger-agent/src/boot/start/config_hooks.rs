//! `config` hooks: plugins change the configuration within the user's limits.

use std::collections::BTreeMap;

use outrigger_contributions::providers::speakers;
use outrigger_contributions::{hold_settings, sandbox_contributions};
use outrigger_mcp::McpServers;
use outrigger_permissions::pinned_rules::UserRules;
use outrigger_plugins::{Grant, Plugins};
use outrigger_protocol::Object;
use outrigger_protocol::hook::HookRecord;
use outrigger_protocol::id::PluginId;
use serde_json::Value;

use super::bootstrap::Bootstrap;
use crate::plugin_api::plugin_admission;

/// Configuration keys that define the permissions of agents and the default agent.
const RULES: [&str; 5] = ["agent", "default_agent", "mode", "permission", "tools"];

/// Facts about the configuration besides the effective values.
pub(super) struct Configured {
    /// Results of the hooks, for the audit.
    pub(super) records: Vec<HookRecord>,
    /// The rules that plugins cannot lift.
    pub(super) user_rules: UserRules,
    /// Providers as defined in the files of the user and of a trusted project.
    pub(super) file_providers: Object,
    /// Providers for which a plugin sends the requests.
    pub(super) speakers: Vec<(String, PluginId)>,
    /// Plugins that set rules without the grant for wider ones, with the names of their tables.
    pub(super) ungranted: Vec<(PluginId, String)>,
}

impl Bootstrap {
    /// Lets plugins change the configuration. They do not see its keys (invariant 10), what they contribute gets their
    /// sandboxes, and the user's rules stay in force.
    pub(super) async fn run_config_hooks(&mut self, plugins: &Plugins) -> Configured {
        let user_rules = UserRules::of(&self.config.config);
        let file_providers = self.config.config.provider.clone();
        let given = self.config.redacted();
        let (mut value, records) = plugins.configure(given.clone()).await;
        hold_settings(plugins, &given, &mut value, || self.models_of_files());
        sandbox_contributions(plugins, &given, &mut value, &self.location, &self.sandboxes).await;
        for pointer in self.config.restore(&mut value) {
            tracing::warn!(
                "[config] a plugin changed what uses {pointer}, or copied it: the secret is omitted"
            );
        }
        let speakers = speakers(plugins, &given, &value);
        let givers = plugins.configured_keys(&RULES).into_iter();
        let ungranted = givers.filter_map(|plugin| {
            let name = plugins.grant_missing(&plugin, Grant::Approve)?;
            Some((plugin, name))
        });
        self.hold_models(plugins, &mut value, &speakers);
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

    /// Starts the MCP servers that plugins added and ends those that they removed. Returns the servers of `.mcp.json` that
    /// wait for the user, with the reasons.
    pub(super) fn configure_mcp_servers(&self, mcp: &McpServers) -> BTreeMap<String, String> {
        let (servers, waiting) = outrigger_mcp_tools::with_claude(&self.config, &self.boot.folders);
        mcp.limit_calls(crate::tools::mcp::call_timeout(&self.config));
        mcp.configure(&servers);
        // For an untrusted folder, one line lists everything that is skipped.
        for (name, why) in waiting.iter().filter(|_| !self.config.left_out) {
            tracing::warn!("[mcp:{name}] is not started: {why}");
        }
        waiting
    }
}
