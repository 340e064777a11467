//! Requests to an authorization server: registration, exchanging a code for tokens, refreshing tokens.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use serde_json::{Value, json};

use super::discover::{Endpoints, LoginWay, host, post};
use super::store::{ClientInfo, Tokens};
use super::{OAuthConfig, jwt, now};

/// A refusal of the authorization server.
#[derive(Debug)]
pub(crate) struct Refused {
    /// OAuth's error code, if it was included.
    pub(crate) code: String,
    /// For the user.
    pub(crate) reason: String,
}

impl From<String> for Refused {
    fn from(reason: String) -> Self {
        Self {
            code: String::new(),
            reason,
        }
    }
}

/// Registers us as a client (RFC 7591).
pub(crate) async fn register(
    endpoint: &Url,
    config: &OAuthConfig,
    redirect: &str,
    way: &LoginWay,
) -> Result<ClientInfo, String> {
    let mut about = json!({
        "redirect_uris": [redirect],
        "client_name": "Outrigger",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    if let Some(scope) = &config.scope {
        about["scope"] = scope.as_str().into();
    }
    let (status, answer) = post(endpoint, way, "application/json", None, about.to_string()).await?;
    let id = answer["client_id"].as_str().filter(|id| !id.is_empty());
    let Some(id) = id.filter(|_| status.is_success()) else {
        return Err(format!(
            "{} did not register us: {}",
            host(endpoint),
            said(status, &answer)
        ));
    };
    Ok(ClientInfo {
        client_id: id.to_owned(),
        client_secret: answer["client_secret"].as_str().map(str::to_owned),
        client_id_issued_at: answer["client_id_issued_at"].as_f64(),
        // 0 means never.
        client_secret_expires_at: answer["client_secret_expires_at"]
            .as_f64()
            .filter(|at| *at > 0.0),
        issuer: None,
        token_endpoint: None,
    })
}

/// The client at a token endpoint.
pub(crate) struct Identity<'a> {
    pub(crate) client: &'a ClientInfo,
    /// The key that signs its identity.
    pub(crate) key: Option<&'a Path>,
}

/// Sends a request to the token endpoint.
pub(crate) async fn tokens(
    endpoints: &Endpoints,
    identity: &Identity<'_>,
    fields: &[(&str, &str)],
) -> Result<Tokens, Refused> {
    let client = identity.client;
    let mut form: Vec<(&str, &str)> = fields.to_vec();
    if let Some(resource) = &endpoints.resource {
        form.push(("resource", resource));
    }
    let has = |method: &str| endpoints.methods.iter().any(|known| known == method);
    let mut authorization = None;
    let assertion;
    match &client.client_secret {
        _ if identity.key.is_some() && (has("private_key_jwt") || endpoints.methods.is_empty()) => {
            let key = identity.key.unwrap_or(Path::new(""));
            assertion = jwt::assertion(key, &client.client_id, &endpoints.issuer)?;
            form.extend([
                ("client_id", client.client_id.as_str()),
                ("client_assertion_type", jwt::ASSERTION_TYPE),
                ("client_assertion", &assertion),
            ]);
        }
        Some(secret) if has("client_secret_basic") => {
            let both = format!("{}:{}", escape(&client.client_id), escape(secret));
            authorization = Some(format!("Basic {}", STANDARD.encode(both)));
        }
        Some(secret) if endpoints.methods.is_empty() || has("client_secret_post") => {
            form.extend([
                ("client_id", client.client_id.as_str()),
                ("client_secret", secret),
            ]);
        }
        _ => form.push(("client_id", &client.client_id)),
    }
    let (status, answer) = post(
        &endpoints.token,
        &endpoints.way,
        FORM,
        authorization,
        self::form(&form),
    )
    .await?;
    let token = answer["access_token"].as_str().filter(|t| !t.is_empty());
    let Some(token) = token.filter(|_| status.is_success()) else {
        return Err(Refused {
            code: answer["error"].as_str().unwrap_or_default().to_owned(),
            reason: format!("{}: {}", host(&endpoints.token), said(status, &answer)),
        });
    };
    Ok(Tokens {
        access_token: token.to_owned(),
        refresh_token: answer["refresh_token"].as_str().map(str::to_owned),
        expires_at: answer["expires_in"].as_f64().map(|seconds| now() + seconds),
        scope: answer["scope"].as_str().map(str::to_owned),
        issuer: Some(endpoints.issuer.clone()),
        token_endpoint: Some(endpoints.token.to_string()),
        asked_scope: None,
    })
}

/// The media type of [`form`].
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";

pub(crate) fn form(fields: &[(&str, &str)]) -> String {
    fields
        .iter()
        .map(|(key, value)| format!("{key}={}", escape(value)))
        .collect::<Vec<_>>()
        .join("&")
}

/// Returns an authorization server's error.
pub(crate) fn said(status: reqwest::StatusCode, answer: &Value) -> String {
    let text = |key: &str| answer[key].as_str().map(short);
    match (text("error"), text("error_description")) {
        (Some(code), Some(text)) => format!("{text} ({code})"),
        (Some(text), None) | (None, Some(text)) => text,
        (None, None) => format!("HTTP {status}"),
    }
}

/// Shortens an untrusted text to one line.
pub(crate) fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(300).collect()
}

/// Percent-encodes everything but unreserved characters.
pub(crate) fn escape(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_foreign_is_escaped() {
        assert_eq!(escape("a b&c=~\u{e4}"), "a%20b%26c%3D~%C3%A4");
    }
}
