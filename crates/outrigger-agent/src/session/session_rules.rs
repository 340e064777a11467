//! Rules that a plugin may set on a session.

use outrigger_permissions::pinned_rules;
use outrigger_plugins::Grant;
use outrigger_protocol::id::{PluginId, SessionId};
use outrigger_protocol::permission::{Action, Rule};
use outrigger_tools::builtin;

use outrigger_workspace::sync::lock;

use crate::state::Agent;

impl Agent {
    /// Returns why a plugin may not set these rules on a session: one of them would lift a deny or an approval from the user's
    /// files.
    #[must_use]
    pub fn would_lift(&self, rules: &[Rule]) -> Option<String> {
        let (kept, rule) = self.inner.user_rules.lifted(rules)?;
        Some(format!(
            "{} would lift {} of the user's configuration: a plugin gives a session narrower rules only",
            shown(&rule),
            shown(&kept)
        ))
    }

    /// Like [`Self::would_lift`], for the defaults of agents and the rules of the session. The user chooses which agent answers
    /// next, so the rules of no agent may be widened. A plugin with the grant may widen them, and so may one that permits its own
    /// tools, which run in its sandbox.
    #[must_use]
    pub fn would_lift_default(
        &self,
        plugin: Option<&PluginId>,
        session: Option<&SessionId>,
        rules: &[Rule],
    ) -> Option<String> {
        let lacking = match plugin {
            Some(plugin) => {
                let what = "may not give a session wider rules";
                self.inner.lacks(plugin, Grant::Approve, what)?.why
            }
            None => "a plugin may not give a session wider rules".to_owned(),
        };
        let is_own = |rule: &Rule| plugin.is_some_and(|plugin| self.is_own_tool(plugin, rule));
        let foreign = rules.iter().filter(|rule| !is_own(rule)).cloned();
        let rules = &foreign.collect::<Vec<Rule>>()[..];
        let own = session
            .map(|id| self.rules_of_others(id))
            .unwrap_or_default();
        let agents = self.inner.agents.values().filter(|agent| !agent.hidden);
        let mut agents = agents.map(|agent| (agent, [&agent.permission[..], &own].concat()));
        agents.find_map(|(agent, held)| {
            let (kept, rule) = pinned_rules::would_lift(&held, rules)?;
            let (rule, kept) = (shown(rule), shown(kept));
            Some(format!(
                "{rule} would lift {kept} of the agent {}: {lacking}",
                agent.name
            ))
        })
    }

    /// Returns whether a rule is about a tool of the plugin that does not replace a bundled tool.
    fn is_own_tool(&self, plugin: &PluginId, rule: &Rule) -> bool {
        let tool = rule.permission.as_str();
        !builtin::is_bundled(tool) && self.inner.owns_tool(plugin, tool)
    }

    /// Remembers rules that a plugin sets on a session: plugins may undo their own restrictions.
    pub fn given_by_plugin(&self, session: &SessionId, rules: &[Rule]) {
        let mut given = lock(&self.inner.questions.given_rules);
        let given = given.entry(session.clone()).or_default();
        given.extend(rules.iter().cloned());
    }

    /// Returns the rules of a session without those that plugins set.
    fn rules_of_others(&self, session: &SessionId) -> Vec<Rule> {
        let own = self.session(session).ok().and_then(|it| it.permission);
        let mut own = own.unwrap_or_default();
        let given = lock(&self.inner.questions.given_rules);
        for rule in given.get(session).into_iter().flatten() {
            // An identical rule may be the user's.
            if let Some(at) = own.iter().rposition(|it| it == rule) {
                own.remove(at);
            }
        }
        own
    }
}

fn shown(rule: &Rule) -> String {
    let word = match rule.action {
        Action::Allow => "allow",
        Action::Ask => "ask",
        Action::Deny => "deny",
    };
    format!("{word} {} {}", rule.permission, rule.pattern)
}
