//! Rules that a plugin gives to a session: none that lifts what the user's configuration denies or asks about (issue 5,
//! item 6).

use outrigger_agent::Agent;
use outrigger_protocol::permission::{Action, Rule};
use outrigger_protocol::rpc::SdkRequest;
use serde_json::Value;

use crate::error::ApiError;

/// Most rules that a plugin may give at once, and most bytes of their texts together: each is held against each of the
/// user's, and the price of that is the product of their lengths.
const RULES: usize = 256;
const BYTES: usize = 16 * 1024;

/// 403 for a request whose body would lift a deny or an ask: by `permission` of a session, or by `tools` of a prompt, which is a rule
/// for each tool; and for more rules than can be looked at.
pub(crate) fn refuse_wider(agent: &Agent, request: &SdkRequest) -> Result<(), ApiError> {
    // Nothing but a session takes rules.
    if !request.path.contains("session") {
        return Ok(());
    }
    let body = request.body.as_deref().unwrap_or_default();
    let rules = rules(body);
    if !can_be_looked_at(&rules) {
        return Err(ApiError::forbidden(format!(
            "a plugin gives a session at most {RULES} rules of {BYTES} bytes together: give fewer or shorter ones"
        )));
    }
    match agent.would_lift(&rules) {
        Some(why) => Err(ApiError::forbidden(why)),
        None => Ok(()),
    }
}

fn can_be_looked_at(rules: &[Rule]) -> bool {
    let bytes = rules
        .iter()
        .map(|rule| rule.permission.len() + rule.pattern.len());
    rules.len() <= RULES && bytes.sum::<usize>() <= BYTES
}

fn rules(body: &str) -> Vec<Rule> {
    let Ok(Value::Object(fields)) = serde_json::from_str(body) else {
        return Vec::new();
    };
    let given = fields.get("permission").and_then(Value::as_array);
    let given = given
        .into_iter()
        .flatten()
        .filter_map(|rule| serde_json::from_value(rule.clone()).ok());
    let tools = fields.get("tools").and_then(Value::as_object);
    let on = tools
        .into_iter()
        .flatten()
        .filter(|(_, on)| **on == Value::Bool(true));
    let on = on.map(|(tool, _)| Rule {
        permission: tool.clone(),
        pattern: "*".to_owned(),
        action: Action::Allow,
    });
    given.chain(on).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_found_in_bodies() {
        for (body, count) in [
            (
                r#"{"permission":[{"permission":"read","pattern":"*","action":"allow"}]}"#,
                1,
            ),
            (r#"{"tools":{"bash":true,"edit":false}}"#, 1),
            (r#"{"permission":{"read":"allow"},"tools":["bash"]}"#, 0),
            ("no JSON", 0),
        ] {
            assert_eq!(rules(body).len(), count, "{body}");
        }
    }

    #[test]
    fn more_rules_than_can_be_looked_at() {
        let rule = |length: usize| Rule {
            permission: "read".to_owned(),
            pattern: "*".repeat(length),
            action: Action::Allow,
        };
        for (count, length, want) in [
            (RULES, 1, true),
            (RULES + 1, 1, false),
            (1, BYTES - 4, true),
            (1, BYTES, false),
            (2, BYTES / 2, false),
        ] {
            let rules = vec![rule(length); count];
            assert_eq!(can_be_looked_at(&rules), want, "{count} {length}");
        }
    }
}
