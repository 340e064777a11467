//! Causes of a call for guards: they run last, so changes by earlier plugins are included. If only the user and the model caused
//! the call, nothing is added.

use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::hook::Decision;
use outrigger_protocol::id::PluginId;
use outrigger_protocol::provenance::{Actor, Deed, Provenance};
use outrigger_protocol::turn::HookPayload;
use serde_json::{Value, json};

use super::Drive;
use outrigger_plugin_registry::Bound;

/// Points at which a call, or a question about one, is checked, with the deed that a changed output is there.
const POINTS: [(HookPoint, Deed); 2] = [
    (HookPoint::ToolBeforeCall, Deed::Changed),
    (HookPoint::ToolBeforePermission, Deed::Answered),
];

impl Drive<'_> {
    /// Returns the items with `provenance` in their input, for a guard or a command hook; `None` if the handler gets them
    /// unchanged.
    pub(super) fn with_causes(&self, bound: &Bound) -> Option<Vec<HookPayload>> {
        let is_point = POINTS.iter().any(|(point, _)| *point == self.point);
        (is_point && bound.guards()).then(|| self.informed())
    }

    /// Returns the items with the plugins that changed them so far.
    pub(super) fn informed(&self) -> Vec<HookPayload> {
        let did = POINTS.iter().find(|(point, _)| *point == self.point);
        let did = did.map_or(Deed::Changed, |(_, did)| *did);
        let mut items = self.items().to_vec();
        for item in &mut items {
            let known = item
                .input
                .get("provenance")
                .cloned()
                .and_then(|it| serde_json::from_value(it).ok());
            let mut causes: Provenance = known.unwrap_or_default();
            let runs = self.chain.iter().flat_map(|chain| chain.runs());
            for run in runs.filter(|run| run.decision == Decision::Patch) {
                if let Some(by) = self.bound.get(run.handler) {
                    let plugin = Actor::plugin(&PluginId(by.id.clone()));
                    causes = causes.with(plugin, did, None);
                }
            }
            if let (false, Value::Object(fields)) = (causes.is_empty(), &mut item.input) {
                fields.insert("provenance".to_owned(), json!(causes));
            }
        }
        items
    }
}
