//! Rules that a plugin may set on a session.

use outrigger_contributions::tool_names;
use outrigger_permissions::pinned_rules;
use outrigger_plugins::Grant;
use outrigger_protocol::id::{PluginId, SessionId};
use outrigger_protocol::permission::{Action, Rule};
use outrigger_protocol::session::{PluginRule, Session};
use outrigger_store::StoreError;

use crate::state::{Agent, AgentState};

impl Agent {
    /// Returns why a plugin may not set these rules on a session: one of them would lift a deny or an approval from the user's
    /// files.
    #[must_use]
    pub fn would_lift(&self, rules: &[Rule]) -> Option<String> {
        let (kept, rule) = self.state.permissions.user_rules.lifted(rules)?;
        Some(format!(
            "{} would loosen {} of the user's configuration: a plugin can only restrict a session further",
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
        let session = session.and_then(|id| self.session(id).ok());
        let own = session.map(|session| rules_of_others(&session));
        self.state
            .lifted_default(plugin, &own.unwrap_or_default(), rules)
    }
}

impl AgentState {
    /// See [`Agent::would_lift_default`]; `own` are the rules that others gave to the session.
    fn lifted_default(
        &self,
        plugin: Option<&PluginId>,
        own: &[Rule],
        rules: &[Rule],
    ) -> Option<String> {
        let lacking = match plugin {
            Some(plugin) => {
                let what = "may not give a session wider rules";
                self.lacks(plugin, Grant::Approve, what)?.why
            }
            None => "a plugin may not give a session wider rules".to_owned(),
        };
        let is_own = |rule: &Rule| plugin.is_some_and(|plugin| self.is_own_tool(plugin, rule));
        let foreign = rules.iter().filter(|rule| !is_own(rule)).cloned();
        let rules = &foreign.collect::<Vec<Rule>>()[..];
        let agents = self.catalog.agents.values().filter(|agent| !agent.hidden);
        let mut agents = agents.map(|agent| (agent, [&agent.permission[..], own].concat()));
        agents.find_map(|(agent, held)| {
            let (kept, rule) = pinned_rules::would_lift(&held, rules)?;
            let (rule, kept) = (shown(rule), shown(kept));
            Some(format!(
                "{rule} would loosen {kept} of the agent {}: {lacking}",
                agent.name
            ))
        })
    }

    /// Returns whether a rule is about a tool of the plugin, and names it literally.
    fn is_own_tool(&self, plugin: &PluginId, rule: &Rule) -> bool {
        tool_names::is_foreign(&rule.permission) && self.owns_tool(plugin, &rule.permission)
    }

    /// Returns the rules that a session has besides those of its agent.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn session_rules(&self, id: &SessionId) -> Result<Vec<Rule>, StoreError> {
        let session = self.store.session(id)?;
        Ok(session.map_or_else(Vec::new, |session| self.effective_rules(&session)))
    }

    /// Returns the rules of a session without those of plugins that would lift what the user denies or asks about. Each was
    /// checked when it was set. The user's files and the plugin's grants may have changed since, and the folder may be another.
    pub(crate) fn effective_rules(&self, session: &Session) -> Vec<Rule> {
        let mut rules = session.permission.clone().unwrap_or_default();
        if session.plugin_rules.is_empty() {
            return rules;
        }
        let own = rules_of_others(session);
        for PluginRule { plugin, rule } in &session.plugin_rules {
            let rule = std::slice::from_ref(rule);
            let lifts = self.permissions.user_rules.lifted(rule).is_some()
                || self.lifted_default(Some(plugin), &own, rule).is_some();
            if lifts {
                remove_last(&mut rules, &rule[0]);
            }
        }
        rules
    }
}

/// Returns the rules of a session without those that plugins set.
fn rules_of_others(session: &Session) -> Vec<Rule> {
    let mut own = session.permission.clone().unwrap_or_default();
    for given in &session.plugin_rules {
        remove_last(&mut own, &given.rule);
    }
    own
}

/// Removes one such rule: an identical one may be the user's.
fn remove_last(rules: &mut Vec<Rule>, rule: &Rule) {
    if let Some(at) = rules.iter().rposition(|it| it == rule) {
        rules.remove(at);
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
