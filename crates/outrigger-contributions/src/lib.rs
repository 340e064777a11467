//! Contributions of plugins besides their hooks: configuration entries that this program starts or requests, model providers,
//! tools and their declarations, changes of messages; and the answers to a plugin's client before there is an agent.

mod entries;
pub mod grants;
mod hold_settings;
mod lists;
pub mod message_changes;
pub mod model_settings;
mod provider_files;
pub mod providers;
pub mod startup_api;
pub mod tool_names;

pub use entries::sandbox_contributions;
pub use hold_settings::{hold_settings, lacking_for_key};
pub use lists::may_be_read;

/// Why a plugin's URL is not requested.
pub const NOTHING: &str = "the plugin may not connect to any host, so its addresses are not used; grant the plugin its host \
    (`hosts` under `[plugins.\"ID\"]` in outrigger.toml), or put the entry into your own opencode.json";

/// Returns the label for the shell lines of a command template.
#[must_use]
pub fn command_label(name: &str) -> String {
    format!("command:{name}")
}
