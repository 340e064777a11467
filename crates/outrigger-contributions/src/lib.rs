//! What plugins contribute beside their hooks: entries of the configuration that this program starts or asks, model
//! providers, tools and what these declare, changes of messages; and what a plugin's client is answered before there is an agent.

mod entries;
pub mod grants;
pub mod message_changes;
mod provider_files;
pub mod providers;
pub mod startup_api;

pub use entries::sandbox_contributions;

/// Why a plugin's address is not asked.
pub const NOTHING: &str = "the plugin may connect to nothing, and the address would be asked for it; grant the plugin its host \
    (`hosts` under `[plugins.\"ID\"]` in outrigger.toml), or put the entry into your own opencode.json";

/// The label of what the template of a command runs.
#[must_use]
pub fn command_label(name: &str) -> String {
    format!("command:{name}")
}
