//! Rules that a plugin gives to a session: none that lifts what the user's configuration denies (issue 5, item 6).

use outrigger_agent::Agent;
use outrigger_protocol::permission::{Action, Rule};
use outrigger_protocol::rpc::SdkRequest;
use serde_json::Value;

use crate::error::ApiError;

/// 403 for a request whose body would lift a deny: by `permission` of a session, or by `tools` of a prompt, which is a rule
/// for each tool.
pub(crate) fn refuse_wider(agent: &Agent, request: &SdkRequest) -> Result<(), ApiError> {
    let body = request.body.as_deref().unwrap_or_default();
    let rules = rules(body);
    match agent.would_lift(&rules) {
        Some(why) => Err(ApiError::forbidden(why)),
        None => Ok(()),
    }
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
}
