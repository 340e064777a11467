//! Tools that a prompt switches on or off: rules of the session from then on, as in OpenCode.

use outrigger_protocol::Object;
use outrigger_protocol::permission::{Action, Rule};
use outrigger_protocol::session::Session;

use crate::error::AgentError;
use crate::state::Agent;

impl Agent {
    /// Puts the switches of a prompt in place of the rules that the session has. A prompt without any changes nothing.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn switch_tools(
        &self,
        session: &mut Session,
        switches: Option<&Object>,
    ) -> Result<(), AgentError> {
        let wanted = rules(switches);
        // A prompt that waited is here for the second time.
        if wanted.is_empty() || session.permission.as_ref() == Some(&wanted) {
            return Ok(());
        }
        let changed = self.update_session(&session.id, |session| session.permission = Some(wanted));
        *session = changed.await?;
        Ok(())
    }
}

/// One rule for each switch; what is neither on nor off is none.
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
}
