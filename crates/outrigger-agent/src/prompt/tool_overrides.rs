//! Tool switches of a prompt: they become rules of the session, as in OpenCode.

use outrigger_protocol::Object;
use outrigger_protocol::permission::{Action, Rule};
use outrigger_protocol::provenance::{Deed, Provenance};
use outrigger_protocol::session::{PluginRule, Session};

use crate::error::AgentError;
use crate::state::Agent;

impl Agent {
    /// Puts the switches of a prompt in place of the rules that the session has. A prompt without any changes nothing; those of a
    /// plugin go behind the rules that are there, as does what is switched in a subagent's session, which has the limits of its caller.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn switch_tools(
        &self,
        session: &mut Session,
        switches: Option<&Object>,
        causes: &Provenance,
    ) -> Result<(), AgentError> {
        let plugins = causes.plugins_that(Deed::Prompted);
        let is_replaced = plugins.is_empty() && session.parent_id.is_none();
        let wanted = if is_replaced {
            rules(switches)
        } else {
            added(session.permission.as_deref(), rules(switches))
        };
        // A queued prompt passes here twice.
        if wanted.is_empty() || session.permission.as_ref() == Some(&wanted) {
            return Ok(());
        }
        let changed = self.update_session(&session.id, |session| {
            let before = session.permission.as_ref().map_or(0, Vec::len);
            match plugins.first() {
                Some(plugin) => {
                    let given = wanted.get(before..).unwrap_or_default();
                    session.plugin_rules.extend(PluginRule::each(plugin, given));
                }
                None if is_replaced => session.plugin_rules.clear(),
                None => {}
            }
            session.permission = Some(wanted);
        });
        *session = changed.await?;
        Ok(())
    }
}

/// Returns the rules of a session with further ones appended; `None` if nothing changes.
fn added(own: Option<&[Rule]>, rules: Vec<Rule>) -> Vec<Rule> {
    let mut all = own.unwrap_or_default().to_vec();
    let before = all.len();
    for rule in rules {
        let is_about = |it: &&Rule| it.permission == rule.permission || it.permission == "*";
        if all.iter().rev().find(is_about) != Some(&rule) {
            all.push(rule);
        }
    }
    if all.len() == before {
        all.clear();
    }
    all
}

/// Returns one rule for each switch; values that are neither on nor off are ignored.
fn rules(switches: Option<&Object>) -> Vec<Rule> {
    let switches = switches.into_iter().flatten();
    switches
        .filter_map(|(tool, on)| {
            Some(Rule {
                permission: tool.clone(),
                pattern: "*".to_owned(),
                action: if on.as_bool()? {
                    Action::Allow
                } else {
                    Action::Deny
                },
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn each_switch_is_a_rule() {
        let Value::Object(switches) = json!({"bash": false, "read": true, "odd": "yes"}) else {
            unreachable!()
        };
        assert_eq!(
            json!(rules(Some(&switches))),
            json!([
                {"permission": "bash", "pattern": "*", "action": "deny"},
                {"permission": "read", "pattern": "*", "action": "allow"},
            ])
        );
        assert!(rules(None).is_empty());
    }

    #[test]
    fn what_a_plugin_switches_goes_behind_what_is_there() {
        let rule = |permission: &str, action| Rule {
            permission: permission.into(),
            pattern: "*".into(),
            action,
        };
        let own = [rule("bash", Action::Deny), rule("edit", Action::Deny)];
        let read = rule("read", Action::Deny);
        let more = added(Some(&own), vec![own[1].clone(), read.clone()]);
        assert_eq!(more, [own[0].clone(), own[1].clone(), read]);
        assert!(added(Some(&own), vec![own[0].clone()]).is_empty());
    }
}
