//! Converts the response of a token endpoint to a credential in the form of OpenCode's `auth.json`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outrigger_protocol::auth::Credential;
use outrigger_stdx::clock::now_ms;
use serde_json::Value;

use crate::transport::token_endpoint::TokenResponse;

/// Default lifetime of a token in seconds.
const LIFETIME: u64 = 3600;
/// The largest number that is exact in JavaScript.
const NO_END: u64 = (1 << 53) - 1;

/// Returns the tokens of a response. `before` is the renewed credential: its values are kept if the response omits them.
///
/// # Errors
/// It is a refusal, or has no token.
pub(super) fn credential(
    answer: &TokenResponse,
    before: Option<&Credential>,
) -> Result<Credential, String> {
    if !answer.status.is_success() {
        return Err(answer.refusal());
    }
    let access = answer
        .text("access_token")
        .ok_or_else(|| answer.lacks_token())?;
    let seconds = answer.body.get("expires_in").and_then(Value::as_u64);
    let lifetime = seconds.unwrap_or(LIFETIME).saturating_mul(1000);
    let (old_refresh, old_account, enterprise_url) = match before {
        Some(Credential::Oauth {
            refresh,
            account_id,
            enterprise_url,
            ..
        }) => (refresh.as_str(), account_id.clone(), enterprise_url.clone()),
        _ => ("", None, None),
    };
    let account = answer.text("id_token").and_then(account_of);
    Ok(Credential::Oauth {
        refresh: answer
            .text("refresh_token")
            .unwrap_or(old_refresh)
            .to_owned(),
        access: access.to_owned(),
        expires: now_ms().saturating_add(lifetime),
        account_id: account.or_else(|| account_of(access)).or(old_account),
        enterprise_url,
    })
}

/// Returns the key of an answer as OpenCode stores it. One that does not expire gets an expiry after any date.
///
/// # Errors
/// It refuses, or has no key.
pub(super) fn key_credential(answer: &TokenResponse) -> Result<Credential, String> {
    if !answer.status.is_success() {
        return Err(answer.refusal());
    }
    let key = answer.text("api_key").ok_or_else(|| answer.lacks_token())?;
    let seconds = answer.body.get("api_key_expires_in");
    let ends = seconds
        .and_then(Value::as_u64)
        .map(|it| now_ms().saturating_add(it.saturating_mul(1000)));
    Ok(Credential::Oauth {
        refresh: key.to_owned(),
        access: key.to_owned(),
        expires: ends.unwrap_or(NO_END).min(NO_END),
        account_id: None,
        enterprise_url: None,
    })
}

/// Returns when a token expires, in milliseconds since the Unix epoch, if it contains that.
pub(super) fn ends_at(token: &str) -> Option<u64> {
    claims(token)?.get("exp")?.as_u64()?.checked_mul(1000)
}

/// Returns the account of an OpenAI token.
fn account_of(token: &str) -> Option<String> {
    let claims = claims(token)?;
    let places = [
        "/chatgpt_account_id",
        "/https:~1~1api.openai.com~1auth/chatgpt_account_id",
        "/organizations/0/id",
    ];
    let mut found = places.into_iter();
    found
        .find_map(|place| claims.pointer(place)?.as_str())
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
}

/// Returns a token's claims (RFC 7519). The signature is not checked: it came from its server, and nothing is allowed by it.
fn claims(token: &str) -> Option<Value> {
    let mut parts = token.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    let text = URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_token_says_whose_it_is_and_when_it_ends() {
        let token = |claims: Value| format!("h.{}.s", URL_SAFE_NO_PAD.encode(claims.to_string()));
        for (claims, want) in [
            (json!({ "chatgpt_account_id": "a" }), Some("a")),
            (
                json!({ "https://api.openai.com/auth": { "chatgpt_account_id": "b" } }),
                Some("b"),
            ),
            (json!({ "organizations": [{ "id": "c" }] }), Some("c")),
            (json!({ "organizations": [] }), None),
            (json!([]), None),
        ] {
            let account = account_of(&token(claims.clone()));
            assert_eq!(account.as_deref(), want, "{claims}");
        }
        assert_eq!(ends_at(&token(json!({ "exp": 12 }))), Some(12_000));
        for opaque in ["", "a", "a.b.c", "a.!.c"] {
            assert_eq!((ends_at(opaque), account_of(opaque)), (None, None));
        }
    }
}
