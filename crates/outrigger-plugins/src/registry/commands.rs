//! Command hooks among the plugins: there is nothing to install and no process to start.

use outrigger_protocol::rpc::Instance;

use super::Registry;
use crate::status::Stage;

impl Registry {
    /// The commands of a file are called from now on.
    pub(crate) fn adopt_commands(&self, index: usize, group: u64, instance: Instance) {
        self.change(index, |plugin| {
            plugin.group = Some(group);
            plugin.instances = vec![instance];
            plugin.stage = Stage::Active;
        });
    }
}
