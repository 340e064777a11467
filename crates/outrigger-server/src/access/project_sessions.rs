//! The sessions that a plugin's client may access: those of its own project (C9).
//!
//! All projects of a user share one store, and an identifier is enough to find a session in it. A plugin of one project
//! could otherwise read the sessions of another and prompt in them as the user.

use outrigger_agent::Agent;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::rpc::SdkRequest;
use serde_json::Value;

use crate::access::scope::Scope;
use crate::error::ApiError;
use crate::request::decoded;

/// Prefix of session identifiers.
const BEGIN: &str = "ses_";

/// Returns 403 for a request that names a session of another project in its path, query or body. Routes reject sessions
/// that do not exist.
pub(crate) fn refuse_foreign(
    agent: &Agent,
    scope: &Scope,
    request: &SdkRequest,
) -> Result<(), ApiError> {
    for id in named(request) {
        let session = agent.session(&SessionId(id));
        if let Ok(session) = session
            && !scope.holds(session.directory.as_ref())
        {
            return Err(ApiError::forbidden(format!(
                "{} is a session of another project: a plugin's client reaches those of its own project only",
                session.id
            )));
        }
    }
    Ok(())
}

/// Returns all texts that may be a session's identifier. The router decodes percent-encoding, so it is decoded here.
fn named(request: &SdkRequest) -> Vec<String> {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let values = query
        .split('&')
        .filter_map(|pair| pair.split_once('=').map(|(_, value)| value));
    let mut found: Vec<String> = path
        .split('/')
        .chain(values)
        .map(decoded)
        .filter(|text| text.starts_with(BEGIN))
        .collect();
    if let Some(body) = &request.body
        && let Ok(Value::Object(fields)) = serde_json::from_str(body)
    {
        let mut waiting: Vec<(bool, Value)> = fields.into_iter().map(|it| (true, it.1)).collect();
        while let Some((is_named, value)) = waiting.pop() {
            match value {
                Value::String(text) if is_named && text.starts_with(BEGIN) && text.len() < 100 => {
                    found.push(text);
                }
                Value::Array(values) => waiting.extend(values.into_iter().map(|it| (is_named, it))),
                // Of what lies deeper, a text of a message may begin so as well.
                Value::Object(fields) => waiting.extend(fields.into_iter().map(|(name, value)| {
                    let name = name.to_ascii_lowercase();
                    let is_named = ["session", "parent"].iter().any(|it| name.contains(it));
                    (is_named, value)
                })),
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_found_wherever_they_are_named() {
        for (path, body, want) in [
            ("/session/ses_a/message", None, vec!["ses_a"]),
            ("/session/%73es_a", None, vec!["ses_a"]),
            ("/session/ses%5Fa", None, vec!["ses_a"]),
            ("/event?sessionID=ses_b&x=1", None, vec!["ses_b"]),
            ("/x?id=%73es_b", None, vec!["ses_b"]),
            ("/session", Some(r#"{"parentID":"ses_c"}"#), vec!["ses_c"]),
            (
                "/session",
                Some(r#"{"parentID":"\u0073es_c"}"#),
                vec!["ses_c"],
            ),
            (
                "/tui/publish",
                Some(r#"{"properties":{"sessionID":"ses_d"}}"#),
                vec!["ses_d"],
            ),
            (
                "/x",
                Some(r#"{"a":[{"parentID":["ses_d"]}]}"#),
                vec!["ses_d"],
            ),
            ("/x", Some(r#"{"parts":[{"text":"ses_d"}]}"#), vec![]),
            ("/session", Some(r#"{"title":"about ses_c"}"#), vec![]),
            ("/session", Some("no JSON ses_c"), vec![]),
            ("/config", None, vec![]),
        ] {
            let request = SdkRequest {
                plugin: None,
                method: "POST".into(),
                path: path.to_owned(),
                headers: Vec::new(),
                body: body.map(str::to_owned),
            };
            assert_eq!(named(&request), want, "{path} {body:?}");
        }
    }
}
