//! Rules that a plugin may give to a session.

use outrigger_protocol::permission::{Action, Rule};

use crate::state::Agent;

impl Agent {
    /// Why a plugin may not give these rules to a session: one of them would lift what the user's files deny or ask about.
    #[must_use]
    pub fn would_lift(&self, rules: &[Rule]) -> Option<String> {
        let (kept, rule) = self.inner.user_rules.lifted(rules)?;
        let shown = |rule: &Rule| {
            let word = match rule.action {
                Action::Allow => "allow",
                Action::Ask => "ask",
                Action::Deny => "deny",
            };
            format!("{word} {} {}", rule.permission, rule.pattern)
        };
        Some(format!(
            "{} would lift {} of the user's configuration: a plugin gives a session narrower rules only",
            shown(rule),
            shown(kept)
        ))
    }
}
