//! Rules of plugins that are wider than what holds without them, and count where the user grants that.

use outrigger_permissions::approval::UngrantedAction;
use outrigger_plugins::Grant;
use outrigger_protocol::permission::{Action, Rule};
use outrigger_tools::PermissionAsk;

use super::Asker;
use crate::state::AgentState;

impl AgentState {
    /// The rules of a question where the user has granted, since the start, that those of plugins count.
    pub(super) fn rules_of_granted<'a>(&self, asker: &Asker<'a>) -> Option<Vec<&'a [Rule]>> {
        let wanted = asker.wanted?;
        self.givers_of_rules()
            .is_empty()
            .then(|| with(wanted, asker))
    }

    /// The plugin whose rules would have allowed what is asked about, where one alone lacks the grant for that: which of several gave
    /// the rule is not known.
    pub(super) fn wider_rules_of(
        &self,
        asker: &Asker<'_>,
        ask: &PermissionAsk,
    ) -> Option<UngrantedAction> {
        let rules = with(asker.wanted?, asker);
        let mut givers = self.givers_of_rules();
        let is_one = givers.len() == 1;
        let would_allow = is_one && self.access.action(ask, &rules) == Action::Allow;
        would_allow.then(|| givers.pop()).flatten()
    }

    /// Plugins that gave agents rules and lack the grant for wider ones.
    fn givers_of_rules(&self) -> Vec<UngrantedAction> {
        let what = "gives agents rules that would allow it";
        let givers = self.questions.rule_givers.iter();
        let lacking = givers.filter_map(|plugin| self.lacks(plugin, Grant::Approve, what));
        lacking.collect()
    }
}

/// The rules of a question with others in the place of those of the agent.
fn with<'a>(wanted: &'a [Rule], asker: &Asker<'a>) -> Vec<&'a [Rule]> {
    let others = asker.rules.iter().skip(1).copied();
    std::iter::once(wanted).chain(others).collect()
}
