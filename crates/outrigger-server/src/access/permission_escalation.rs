//! Permission rules that a plugin sets for a session: none may lift what the user's configuration, or the defaults of the program and
//! its agents, deny or ask about.

use outrigger_agent::Agent;
use outrigger_protocol::id::{PluginId, SessionId};
use outrigger_protocol::permission::{Action, Rule};
use outrigger_protocol::rpc::SdkRequest;
use serde_json::{Map, Value};

use crate::error::ApiError;

/// Maximum number of rules that a plugin may set at once, and maximum bytes of their texts: each is compared with each of the user's,
/// at a cost of the product of their lengths.
const RULES: usize = 256;
const BYTES: usize = 16 * 1024;

/// Returns 403 for a request whose body would lift a deny or an ask: by `permission` of a session, or by `tools` of a prompt, which is
/// a rule for each tool; and for more rules than the limit. A tool that a prompt enables against an agent's default is removed from the
/// prompt instead: plugins list all tools there, most of which are enabled.
pub(crate) fn refuse_wider(agent: &Agent, request: &mut SdkRequest) -> Result<(), ApiError> {
    // Only sessions take rules.
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
    if let Some(why) = agent.would_lift(&rules) {
        return Err(ApiError::forbidden(why));
    }
    let plugin = request.plugin.clone().map(PluginId);
    let session = session_of(&request.path);
    let lifts = |rules: &[Rule]| agent.would_lift_default(plugin.as_ref(), session.as_ref(), rules);
    let Ok(Value::Object(mut fields)) = serde_json::from_str(body) else {
        return Ok(());
    };
    if let Some(why) = lifts(&given(&fields)) {
        return Err(ApiError::forbidden(why));
    }
    let Some(Value::Object(tools)) = fields.get_mut("tools") else {
        return Ok(());
    };
    let named = tools.len();
    tools.retain(|tool, on| *on != Value::Bool(true) || lifts(&[switched_on(tool)]).is_none());
    if tools.len() < named {
        request.body = Some(Value::Object(fields).to_string());
    }
    Ok(())
}

/// Returns the session of a request, if it exists already.
fn session_of(path: &str) -> Option<SessionId> {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let mut parts = path.split('/').skip_while(|part| *part != "session");
    let id = parts.nth(1).filter(|id| !id.is_empty())?;
    Some(SessionId(id.to_owned()))
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
    let tools = fields.get("tools").and_then(Value::as_object);
    let on = tools
        .into_iter()
        .flatten()
        .filter(|(_, on)| **on == Value::Bool(true))
        .map(|(tool, _)| switched_on(tool));
    given(&fields).into_iter().chain(on).collect()
}

fn given(fields: &Map<String, Value>) -> Vec<Rule> {
    fields
        .get("permission")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|rule| serde_json::from_value(rule.clone()).ok())
        .collect()
}

fn switched_on(tool: &str) -> Rule {
    Rule {
        permission: tool.to_owned(),
        pattern: "*".to_owned(),
        action: Action::Allow,
    }
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
    fn the_session_of_a_request() {
        for (path, want) in [
            ("/session/ses_1?directory=/p", Some("ses_1")),
            ("/session/ses_1/message", Some("ses_1")),
            ("/session", None),
            ("/session?x=/y", None),
            ("/session/", None),
        ] {
            let got = session_of(path);
            assert_eq!(got.as_ref().map(|id| id.0.as_str()), want, "{path}");
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
