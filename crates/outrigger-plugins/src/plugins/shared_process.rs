//! Plugins that share a process. Each can speak in the name of any other there, so what the process says that one of them did is
//! recorded as done by one of several.

use outrigger_protocol::id::PluginId;
use outrigger_protocol::provenance::{Actor, Cause, Deed, Provenance};

use super::Plugins;

impl Plugins {
    /// Returns whether a plugin shares its process with another one, which can speak in its name there.
    #[must_use]
    pub fn shares_process(&self, id: &PluginId) -> bool {
        !self.sharing(id).is_empty()
    }

    /// Returns the name for the record of what a process says that this plugin did: its own, or those of all plugins of the process.
    #[must_use]
    pub fn recorded(&self, id: &PluginId) -> PluginId {
        let sharing = self.sharing(id);
        if sharing.is_empty() {
            return id.clone();
        }
        // A hosted plugin is named as in a cause.
        let names = sharing.join(", ").replace('>', "/");
        PluginId(format!("(one of several: {names})"))
    }

    /// Returns causes for a record: who sent a prompt or an answer is what its process says.
    #[must_use]
    pub fn recorded_causes(&self, causes: &Provenance) -> Provenance {
        let mut recorded = Provenance::default();
        for cause in causes.causes() {
            let is_claim = matches!(cause.did, Deed::Prompted | Deed::Answered);
            let plugin = cause.actor.plugin_id().filter(|_| is_claim);
            let actor = match plugin.map(|id| self.recorded(&id)) {
                Some(recorded) => Actor::plugin(&recorded),
                None => cause.actor.clone(),
            };
            recorded.push(Cause {
                actor,
                ..cause.clone()
            });
        }
        recorded
    }

    /// Returns the plugins of the process that a plugin shares; none if it has a process of its own.
    fn sharing(&self, id: &PluginId) -> Vec<String> {
        let all = self.0.registry.list();
        let own = all.iter().filter(|(_, status)| status.id == id.0);
        let mut processes = own.filter_map(|(process, _)| *process).map(|process| {
            all.iter()
                .filter(|(other, _)| *other == Some(process))
                .map(|(_, status)| status.id.clone())
                .collect::<Vec<_>>()
        });
        processes
            .find(|members| members.len() > 1)
            .unwrap_or_default()
    }
}
