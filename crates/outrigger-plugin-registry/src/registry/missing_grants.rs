//! Missing user grants of a listed plugin.

use outrigger_plugin_package::Source;

use super::{COMMAND_GROUP, Plugin, Registry};

/// Identifier of the command hooks in the user's own settings, without the number of a further file.
const USERS_HOOKS: &str = "claude:user";
use crate::access::user_grants::{Grant, grant_key};

impl Registry {
    /// Implements `Plugins::grant_missing` of the plugin host.
    pub fn grant_missing(&self, id: &str, grant: Grant) -> Option<String> {
        let table = self.read();
        let mut named = table.plugins.iter().filter(|it| it.id == id).peekable();
        if named.peek().is_none() {
            return Some(id.to_owned());
        }
        let is_command_hook = |plugin: &Plugin| plugin.group == Some(COMMAND_GROUP);
        named
            .find(|plugin| !plugin.rules.grants(grant) && !is_command_hook(plugin))
            .map(Plugin::grant_key)
    }

    /// Implements `Plugins::is_foreign_hook` of the plugin host.
    pub fn is_foreign_hook(&self, id: &str) -> bool {
        let table = self.read();
        let mut named = table.plugins.iter().filter(|it| it.id == id);
        named.any(|it| {
            // Further files of a kind have a number behind `#`.
            let kind = it.id.split('#').next();
            it.group == Some(COMMAND_GROUP) && kind != Some(USERS_HOOKS)
        })
    }

    /// Implements `Plugins::is_of_project` of the plugin host.
    pub fn is_of_project(&self, id: &str) -> bool {
        let table = self.read();
        let mut named = table.plugins.iter().filter(|it| it.id == id).peekable();
        named.peek().is_none() || named.any(|it| it.local)
    }

    /// Implements `Plugins::grant_name` of the plugin host.
    pub fn grant_name(&self, id: &str) -> Option<String> {
        let table = self.read();
        let mut named = table.plugins.iter().filter(|it| it.id == id);
        let (first, second) = (named.next()?, named.next());
        let source = Source::parse(&first.spec, &first.declared_in).ok();
        grant_key(source.as_ref())
            .filter(|_| second.is_none())
            .map(str::to_owned)
    }
}
