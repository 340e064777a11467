//! Command hooks among the plugins: there is nothing to install and no process to start.

use outrigger_plugin_status::Stage;
use outrigger_protocol::rpc::Instance;

use super::Registry;

/// Process key of command handlers in a chain: no process has it, and neighbours are called together.
pub const COMMAND_GROUP: u64 = u64::MAX;

impl Registry {
    /// Activates the commands of a file.
    pub fn adopt_commands(&self, index: usize, instance: Instance) {
        self.change(index, |plugin| {
            plugin.group = Some(COMMAND_GROUP);
            plugin.instances = vec![instance];
            plugin.stage = Stage::Active;
        });
    }
}
