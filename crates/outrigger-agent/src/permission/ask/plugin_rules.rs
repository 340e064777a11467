//! Rules of plugins that are wider than those that apply without plugins; they apply if the user grants it.

use outrigger_permissions::approval::UngrantedAction;
use outrigger_plugins::Grant;
use outrigger_protocol::permission::{Action, Rule};
use outrigger_tools::PermissionAsk;

use super::Asker;
use crate::state::AgentState;

impl AgentState {
    /// Returns the rules of a question if the user has granted, since the start, that the rules of plugins apply.
    pub(super) fn rules_of_granted<'a>(&self, asker: &Asker<'a>) -> Option<Vec<&'a [Rule]>> {
        let wanted = asker.wanted?;
        self.givers_of_rules()
            .is_empty()
            .then(|| with(wanted, asker))
    }

    /// Returns the plugin whose rules would have allowed the action if exactly one plugin lacks the grant: with several, it is
    /// not known which one gave the rule.
    pub(super) fn wider_rules_of(
        &self,
        asker: &Asker<'_>,
        ask: &PermissionAsk,
    ) -> Option<UngrantedAction> {
        let rules = with(asker.wanted?, asker);
        let mut givers = self.givers_of_rules();
        let is_one = givers.len() == 1;
        let would_allow = is_one && self.permissions.access.action(ask, &rules) == Action::Allow;
        would_allow.then(|| givers.pop()).flatten()
    }

    /// Returns the plugins that set rules for agents and lack the grant for wider ones.
    fn givers_of_rules(&self) -> Vec<UngrantedAction> {
        let what = "gives agents rules that would allow it";
        let givers = self.permissions.questions.rule_givers.iter();
        let lacking = givers.filter_map(|plugin| self.lacks(plugin, Grant::Approve, what));
        lacking.collect()
    }
}

/// Returns the rules of a question with the agent's rules replaced.
fn with<'a>(wanted: &'a [Rule], asker: &Asker<'a>) -> Vec<&'a [Rule]> {
    let others = asker.rules.iter().skip(1).copied();
    std::iter::once(wanted).chain(others).collect()
}
