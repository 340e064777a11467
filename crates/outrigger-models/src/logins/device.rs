//! A login on another device: the user types a code there, and a server is polled until then (RFC 8628).

use std::time::Duration;

use http::StatusCode;
use outrigger_protocol::auth::Credential;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::credential::credential;
use crate::transport::token_endpoint::{Form, TokenResponse, post_form, post_json};

/// Default and maximum lifetime of a code.
const LIFETIME: Duration = Duration::from_secs(15 * 60);
/// Default polling interval in seconds (RFC 8628, 3.2).
const INTERVAL: f64 = 5.0;
/// Minimum polling interval.
const MIN_INTERVAL: f64 = 1.0;
/// Maximum polling interval.
const MAX_INTERVAL: f64 = 60.0;
/// The increase of the interval on `slow_down` (RFC 8628, 3.5).
const SLOWER: f64 = 5.0;

/// A login that waits for the user.
pub(super) struct Device {
    pub(super) wait: Wait,
    pub(super) ask: Ask,
    pub(super) gives: Gives,
}

/// The kind of tokens.
pub(super) enum Gives {
    /// They expire, and are renewed.
    Renewable,
    /// One that does not expire, of GitHub or a company's own one.
    Lasting { enterprise_url: Option<String> },
}

/// The request that is polled until the user has typed the code.
pub(super) enum Ask {
    /// The token endpoint, with this form.
    Token { url: String, form: Form },
    /// OpenAI's own: its response is exchanged for tokens.
    Exchange {
        url: String,
        body: Value,
        token: String,
        client: &'static str,
        redirect: String,
    },
}

/// The polling interval and the deadline.
pub(super) struct Wait {
    seconds: f64,
    until: Instant,
}

/// The result of a poll.
enum PollResult {
    Tokens(Box<TokenResponse>),
    Pending,
    SlowDown(Option<f64>),
    Over(String),
}

impl Wait {
    /// Reads the response that started the login. Some servers write numbers as strings.
    pub(super) fn of(answer: &TokenResponse) -> Self {
        let number = |key: &str| {
            let value = answer.body.get(key)?;
            value
                .as_f64()
                .or_else(|| value.as_str()?.trim().parse().ok())
                .filter(|it| it.is_finite() && *it > 0.0)
        };
        let lifetime = number("expires_in").map_or(LIFETIME, Duration::from_secs_f64);
        Self {
            seconds: interval(number("interval").unwrap_or(INTERVAL)),
            until: Instant::now() + lifetime.min(LIFETIME),
        }
    }
}

fn interval(seconds: f64) -> f64 {
    seconds.clamp(MIN_INTERVAL, MAX_INTERVAL)
}

/// Returns the new interval after `slow_down`: the server's, if that is longer.
fn slower(seconds: f64, said: Option<f64>) -> f64 {
    let said = said.filter(|it| it.is_finite() && *it > seconds);
    interval(said.unwrap_or(seconds + SLOWER))
}

impl Device {
    /// Polls until the user has logged in or refused, or the code has expired.
    pub(super) async fn finish(&self) -> Result<Credential, String> {
        let mut seconds = self.wait.seconds;
        loop {
            match self.ask().await {
                PollResult::Tokens(answer) => return self.credential(&answer),
                PollResult::Over(why) => return Err(why),
                PollResult::Pending => {}
                PollResult::SlowDown(said) => seconds = slower(seconds, said),
            }
            let next = Instant::now() + Duration::from_secs_f64(seconds);
            if next > self.wait.until {
                return Err("the code was not entered in time: start the login again".to_owned());
            }
            sleep(next - Instant::now()).await;
        }
    }

    async fn ask(&self) -> PollResult {
        match &self.ask {
            Ask::Token { url, form } => said(post_form(url, form).await),
            Ask::Exchange {
                url,
                body,
                token,
                client,
                redirect,
            } => {
                let answer = match post_json(url, body).await {
                    Ok(answer) => answer,
                    Err(_) => return PollResult::SlowDown(None),
                };
                match answer.status {
                    status if status.is_success() => {}
                    StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => return PollResult::Pending,
                    _ => return PollResult::Over(answer.refusal()),
                }
                let text = |key: &str| answer.text(key).unwrap_or_default().to_owned();
                let form = vec![
                    ("grant_type", "authorization_code".to_owned()),
                    ("code", text("authorization_code")),
                    ("redirect_uri", redirect.clone()),
                    ("client_id", (*client).to_owned()),
                    ("code_verifier", text("code_verifier")),
                ];
                match post_form(token, &form).await {
                    Ok(answer) => PollResult::Tokens(Box::new(answer)),
                    Err(why) => PollResult::Over(why),
                }
            }
        }
    }

    fn credential(&self, answer: &TokenResponse) -> Result<Credential, String> {
        let credential = credential(answer, None)?;
        Ok(match (&self.gives, credential) {
            (Gives::Lasting { enterprise_url }, Credential::Oauth { access, .. }) => {
                // OpenCode's stored form.
                Credential::Oauth {
                    refresh: access.clone(),
                    access,
                    expires: 0,
                    account_id: None,
                    enterprise_url: enterprise_url.clone(),
                }
            }
            (_, credential) => credential,
        })
    }
}

/// Interprets a response of the token endpoint (RFC 8628, 3.5). A temporary failure is retried, more slowly.
fn said(answer: Result<TokenResponse, String>) -> PollResult {
    let Ok(answer) = answer else {
        return PollResult::SlowDown(None);
    };
    // GitHub refuses with 200.
    if answer.text("access_token").is_some() {
        return PollResult::Tokens(Box::new(answer));
    }
    match answer.text("error") {
        Some("authorization_pending") => PollResult::Pending,
        Some("slow_down") => {
            PollResult::SlowDown(answer.body.get("interval").and_then(Value::as_f64))
        }
        Some("access_denied" | "authorization_denied") => {
            PollResult::Over("the login was refused".to_owned())
        }
        Some("expired_token") => {
            PollResult::Over("the code was not entered in time: start the login again".to_owned())
        }
        _ => PollResult::Over(answer.refusal()),
    }
}

/// Returns the form that requests a device's tokens.
pub(super) fn form(client: &str, device_code: &str) -> Form {
    let grant = "urn:ietf:params:oauth:grant-type:device_code";
    vec![
        ("grant_type", grant.to_owned()),
        ("client_id", client.to_owned()),
        ("device_code", device_code.to_owned()),
    ]
}

/// Returns the body of OpenAI's request.
pub(super) fn body(device: &str, code: &str) -> Value {
    json!({ "device_auth_id": device, "user_code": code })
}

/// Returns a field of the response that started a login.
///
/// # Errors
/// It is missing.
pub(super) fn needed<'a>(answer: &'a TokenResponse, key: &str) -> Result<&'a str, String> {
    if !answer.status.is_success() {
        return Err(answer.refusal());
    }
    let missing = || format!("{} (no `{key}`)", answer.refusal());
    answer.text(key).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_wants_fewer_questions_gets_fewer() {
        for (seconds, said, want) in [
            (5.0, None, 10.0),
            (5.0, Some(12.0), 12.0),
            // Never faster, whatever it requests.
            (5.0, Some(1.0), 10.0),
            (5.0, Some(f64::NAN), 10.0),
            (58.0, None, 60.0),
            (1.0, Some(1e9), 60.0),
        ] {
            assert!(
                (slower(seconds, said) - want).abs() < 1e-9,
                "{seconds} {said:?}"
            );
        }
        assert!((interval(0.0) - 1.0).abs() < 1e-9);
    }
}
