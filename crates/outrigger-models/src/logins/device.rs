//! A login on another device: a code that the user types there, and a server that is asked until they have (RFC 8628).

use std::time::Duration;

use http::StatusCode;
use outrigger_protocol::auth::Credential;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::credential::credential;
use crate::transport::token_endpoint::{Answer, Form, post_form, post_json};

/// How long a code holds where the server does not say, and at most.
const LIFETIME: Duration = Duration::from_secs(15 * 60);
/// Seconds between two questions where the server does not say (RFC 8628, 3.2).
const INTERVAL: f64 = 5.0;
/// No server is asked more often, whatever it says.
const MIN_INTERVAL: f64 = 1.0;
/// Nor more seldom.
const MAX_INTERVAL: f64 = 60.0;
/// What `slow_down` adds to the interval (RFC 8628, 3.5).
const SLOWER: f64 = 5.0;

/// A login that waits for the user.
pub(super) struct Device {
    pub(super) wait: Wait,
    pub(super) ask: Ask,
    pub(super) gives: Gives,
}

/// What the tokens are.
pub(super) enum Gives {
    /// They end, and are renewed.
    Renewable,
    /// One that does not end, of GitHub or a company's own one.
    Lasting { enterprise_url: Option<String> },
}

/// What is asked until the user has typed the code.
pub(super) enum Ask {
    /// The token endpoint, with this form.
    Token { url: String, form: Form },
    /// OpenAI's own: what it answers is exchanged for tokens.
    Exchange {
        url: String,
        body: Value,
        token: String,
        client: &'static str,
        redirect: String,
    },
}

/// How often, and until when.
pub(super) struct Wait {
    seconds: f64,
    until: Instant,
}

/// What a question came to.
enum Said {
    Tokens(Box<Answer>),
    Pending,
    SlowDown(Option<f64>),
    Over(String),
}

impl Wait {
    /// As the answer that began the login says. Some write numbers as texts.
    pub(super) fn of(answer: &Answer) -> Self {
        let number = |key: &str| {
            let value = answer.body.get(key)?;
            let number = value
                .as_f64()
                .or_else(|| value.as_str()?.trim().parse().ok());
            number.filter(|it| it.is_finite() && *it > 0.0)
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

/// The interval from now on, after `slow_down`: what the server says, where that is longer.
fn slower(seconds: f64, said: Option<f64>) -> f64 {
    let said = said.filter(|it| it.is_finite() && *it > seconds);
    interval(said.unwrap_or(seconds + SLOWER))
}

impl Device {
    /// Asks until the user has logged in, has refused, or the code has ended.
    pub(super) async fn finish(&self) -> Result<Credential, String> {
        let mut seconds = self.wait.seconds;
        loop {
            match self.ask().await {
                Said::Tokens(answer) => return self.credential(&answer),
                Said::Over(why) => return Err(why),
                Said::Pending => {}
                Said::SlowDown(said) => seconds = slower(seconds, said),
            }
            let next = Instant::now() + Duration::from_secs_f64(seconds);
            if next > self.wait.until {
                return Err("nobody entered the code in time: begin the login anew".to_owned());
            }
            sleep(next - Instant::now()).await;
        }
    }

    async fn ask(&self) -> Said {
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
                    Err(_) => return Said::SlowDown(None),
                };
                match answer.status {
                    status if status.is_success() => {}
                    StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => return Said::Pending,
                    _ => return Said::Over(answer.refusal()),
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
                    Ok(answer) => Said::Tokens(Box::new(answer)),
                    Err(why) => Said::Over(why),
                }
            }
        }
    }

    fn credential(&self, answer: &Answer) -> Result<Credential, String> {
        let credential = credential(answer, None)?;
        Ok(match (&self.gives, credential) {
            (Gives::Lasting { enterprise_url }, Credential::Oauth { access, .. }) => {
                // The form that OpenCode stores it in.
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

/// What a token endpoint said (RFC 8628, 3.5). One that cannot be reached just now is asked again, more slowly.
fn said(answer: Result<Answer, String>) -> Said {
    let Ok(answer) = answer else {
        return Said::SlowDown(None);
    };
    // GitHub refuses with 200.
    if answer.text("access_token").is_some() {
        return Said::Tokens(Box::new(answer));
    }
    match answer.text("error") {
        Some("authorization_pending") => Said::Pending,
        Some("slow_down") => Said::SlowDown(answer.body.get("interval").and_then(Value::as_f64)),
        Some("access_denied" | "authorization_denied") => {
            Said::Over("the login was refused".to_owned())
        }
        Some("expired_token") => {
            Said::Over("nobody entered the code in time: begin the login anew".to_owned())
        }
        _ => Said::Over(answer.refusal()),
    }
}

/// The form by which a token endpoint is asked for a device's tokens.
pub(super) fn form(client: &str, device_code: &str) -> Form {
    let grant = "urn:ietf:params:oauth:grant-type:device_code";
    vec![
        ("grant_type", grant.to_owned()),
        ("client_id", client.to_owned()),
        ("device_code", device_code.to_owned()),
    ]
}

/// The body by which OpenAI is asked.
pub(super) fn body(device: &str, code: &str) -> Value {
    json!({ "device_auth_id": device, "user_code": code })
}

/// A field of the answer that began a login.
///
/// # Errors
/// It is not there.
pub(super) fn needed<'a>(answer: &'a Answer, key: &str) -> Result<&'a str, String> {
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
            // Not faster, whatever it says.
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
