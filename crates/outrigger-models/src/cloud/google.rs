//! Google access tokens: for a service account with an assertion signed by its key (RFC 7523), for a user with the login of
//! `gcloud auth application-default login`. The file is `GOOGLE_APPLICATION_CREDENTIALS`, or gcloud's.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::Settings;
use crate::transport::token_endpoint::{Form, post_form};

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";
/// Seconds before its expiry from which a token is renewed.
const SLACK: u64 = 60;
/// Lifetime of an assertion in seconds.
const LIFETIME: u64 = 3600;

/// The content of the credentials file.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Account {
    ServiceAccount {
        client_email: String,
        private_key: String,
        token_uri: Option<String>,
    },
    AuthorizedUser {
        client_id: String,
        client_secret: String,
        refresh_token: String,
        token_uri: Option<String>,
    },
}

impl Account {
    /// Returns the URL and form of a token request.
    fn request(self) -> Result<(String, Form), String> {
        let url = |given: Option<String>| given.unwrap_or_else(|| TOKEN_URL.to_owned());
        Ok(match self {
            Self::ServiceAccount {
                client_email,
                private_key,
                token_uri,
            } => {
                let url = url(token_uri);
                let assertion = assertion(&client_email, &private_key, &url)?;
                let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer".to_owned();
                (url, vec![("grant_type", grant), ("assertion", assertion)])
            }
            Self::AuthorizedUser {
                client_id,
                client_secret,
                refresh_token,
                token_uri,
            } => {
                let form = vec![
                    ("grant_type", "refresh_token".to_owned()),
                    ("client_id", client_id),
                    ("client_secret", client_secret),
                    ("refresh_token", refresh_token),
                ];
                (url(token_uri), form)
            }
        })
    }
}

struct Token {
    header: HeaderValue,
    /// Seconds since the Unix epoch.
    until: u64,
}

/// The tokens of one provider.
pub(crate) struct Tokens {
    settings: Settings,
    // One renewal at a time.
    token: Mutex<Option<Token>>,
}

impl Tokens {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            token: Mutex::default(),
        }
    }

    /// Adds a valid token to the headers.
    ///
    /// A token gives access to a whole project, so it is sent only to Google, or to this machine and its network, whatever
    /// URL a folder's configuration names.
    pub(super) async fn put(&self, url: &str, headers: &mut HeaderMap) -> Result<(), String> {
        if !may_have_tokens(url) {
            return Err(format!("a Google token is not sent to {url}"));
        }
        let mut token = self.token.lock().await;
        let current = match token.take().filter(|it| it.until > now() + SLACK) {
            Some(current) => current,
            None => self.get().await?,
        };
        headers.insert(http::header::AUTHORIZATION, current.header.clone());
        *token = Some(current);
        Ok(())
    }

    fn file(&self) -> Option<PathBuf> {
        let variable = |name: &str| self.settings.variable(&[name]);
        if let Some(named) = variable("GOOGLE_APPLICATION_CREDENTIALS") {
            return Some(named.into());
        }
        let folder = variable("CLOUDSDK_CONFIG")
            .map(PathBuf::from)
            .or_else(|| self.settings.home_file(".config/gcloud"))?;
        Some(folder.join("application_default_credentials.json"))
    }

    async fn get(&self) -> Result<Token, String> {
        let file = self.file().ok_or(
            "no Google credentials: GOOGLE_APPLICATION_CREDENTIALS is not set, and there is no home folder",
        )?;
        let wrong = |reason: String| {
            format!(
                "cannot use the Google credentials in {}: {reason} (a key of a service account, named by \
                 GOOGLE_APPLICATION_CREDENTIALS, or `gcloud auth application-default login`)",
                file.display()
            )
        };
        let text = outrigger_files::read(&file, outrigger_files::SETTINGS)
            .map_err(|error| wrong(error.to_string()))?;
        // Its content is not shown.
        let account: Account = serde_json::from_slice(&text).map_err(|_| {
            wrong("their type is neither `service_account` nor `authorized_user`".into())
        })?;
        let (url, form) = account.request().map_err(wrong)?;
        let answer = post_form(&url, &form).await?;
        if !answer.status.is_success() {
            return Err(answer.refusal());
        }
        token(&answer.body).ok_or_else(|| answer.lacks_token())
    }
}

fn may_have_tokens(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| {
        let host = url.host_str().unwrap_or_default();
        let is_google = host.ends_with(".googleapis.com") && url.scheme() == "https";
        is_google || outrigger_net::is_local(&url)
    })
}

fn token(answer: &Value) -> Option<Token> {
    let access = answer.get("access_token")?.as_str()?;
    let seconds = answer.get("expires_in").and_then(Value::as_u64);
    let mut header = HeaderValue::from_str(&format!("Bearer {access}")).ok()?;
    header.set_sensitive(true);
    Some(Token {
        header,
        until: now() + seconds.unwrap_or(LIFETIME),
    })
}

/// Creates an assertion of the account, signed with its key. The error does not contain it.
fn assertion(email: &str, pem: &str, audience: &str) -> Result<String, String> {
    let begun = now();
    let claims = json!({
        "iss": email, "scope": SCOPE, "aud": audience, "iat": begun, "exp": begun + LIFETIME,
    });
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let head = part(&json!({"alg": "RS256", "typ": "JWT"}));
    let text = format!("{head}.{}", part(&claims));
    let der = der(pem).ok_or("`private_key` is not a key in PEM (`BEGIN PRIVATE KEY`)")?;
    let key = RsaKeyPair::from_pkcs8(&der).map_err(|_| "`private_key` is not an RSA key")?;
    let mut signature = vec![0; key.public().modulus_len()];
    let random = SystemRandom::new();
    key.sign(&RSA_PKCS1_SHA256, &random, text.as_bytes(), &mut signature)
        .map_err(|_| "its key does not sign")?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

fn der(pem: &str) -> Option<Vec<u8>> {
    let (_, rest) = pem.split_once("-----BEGIN PRIVATE KEY-----")?;
    let (body, _) = rest.split_once("-----END PRIVATE KEY-----")?;
    let body: String = body.split_whitespace().collect();
    STANDARD.decode(body).ok()
}

fn now() -> u64 {
    outrigger_stdx::clock::since_epoch().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a plugin leaves in the project is not a credential; a plugin's own provider gets no variables of the user.
    #[test]
    fn without_a_home_folder_there_are_no_credentials() {
        for (env, want) in [
            (vec![], None),
            (vec![("HOME", ".")], None),
            (
                vec![("HOME", "/home/me")],
                Some("/home/me/.config/gcloud/application_default_credentials.json"),
            ),
            (
                vec![("GOOGLE_APPLICATION_CREDENTIALS", "key.json")],
                Some("key.json"),
            ),
        ] {
            let env = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            let settings = Settings::new(&serde_json::Map::default(), &env.collect());
            assert_eq!(Tokens::new(settings).file(), want.map(PathBuf::from));
        }
    }

    #[test]
    fn a_token_goes_to_google_alone() {
        for (url, want) in [
            ("https://us-central1-aiplatform.googleapis.com/v1", true),
            ("http://127.0.0.1:1/v1", true),
            ("http://aiplatform.googleapis.com/v1", false),
            ("https://googleapis.com.evil.example/", false),
            ("https://evilgoogleapis.com/", false),
            ("https://x@evil.example/.googleapis.com", false),
        ] {
            assert_eq!(may_have_tokens(url), want, "{url}");
        }
    }
}
