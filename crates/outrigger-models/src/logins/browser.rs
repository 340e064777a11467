//! A login in a browser on this machine: authorization code with PKCE (RFC 7636, S256), with a callback to a loopback port (RFC
//! 8252).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outrigger_net::Callback;
use outrigger_protocol::auth::Credential;
use reqwest::Url;
use ring::digest::{SHA256, digest};
use tokio::sync::Mutex;
use tokio::task::{AbortHandle, JoinHandle};

use super::credential::{credential, key_credential};
use crate::transport::token_endpoint::post_form;

/// A service's parameters of a login in the browser.
pub(super) struct Plan {
    pub(super) authorize: String,
    pub(super) token: String,
    pub(super) client: &'static str,
    pub(super) scope: &'static str,
    /// The host of the callback: as registered, except for the port in tests.
    pub(super) host: &'static str,
    pub(super) port: u16,
    pub(super) path: &'static str,
    /// Further parameters of the URL.
    pub(super) more: Vec<(&'static str, String)>,
    pub(super) gives: Gives,
}

/// What the token endpoint answers with.
#[derive(Clone, Copy)]
pub(super) enum Gives {
    /// Tokens that are renewed.
    Tokens,
    /// A key.
    Key,
}

/// A login that waits for the browser. Dropping it closes the port.
pub(super) struct Browser {
    token: String,
    client: &'static str,
    redirect: String,
    verifier: String,
    gives: Gives,
    /// The code, until it is taken.
    code: Mutex<Option<JoinHandle<Result<String, String>>>>,
    listening: AbortHandle,
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Listens, and creates the URL for the user.
///
/// # Errors
/// The port is taken, or the system has no randomness.
pub(super) async fn begin(plan: Plan) -> Result<(String, Browser), String> {
    let callback = Callback::listen(plan.port, plan.path)
        .await
        .map_err(|why| format!("{why}; another method needs no port"))?;
    let redirect = format!("http://{}:{}{}", plan.host, callback.port(), plan.path);
    let (verifier, state) = (random()?, random()?);
    let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes()));
    let fields = [
        ("response_type", "code"),
        ("client_id", plan.client),
        ("redirect_uri", &redirect),
        ("scope", plan.scope),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
        ("state", &state),
    ];
    let more = plan.more.iter().map(|(key, value)| (*key, value.as_str()));
    let url = Url::parse_with_params(&plan.authorize, fields.into_iter().chain(more))
        .map_err(|error| format!("{}: {error}", plan.authorize))?;
    // It runs independently, so that the port is closed in time even if no one asks for the result.
    let code = tokio::spawn(async move { callback.code(&state, |_| Ok(())).await });
    let browser = Browser {
        token: plan.token,
        client: plan.client,
        redirect,
        verifier,
        gives: plan.gives,
        listening: code.abort_handle(),
        code: Mutex::new(Some(code)),
    };
    Ok((url.to_string(), browser))
}

impl Browser {
    /// Waits for the browser, and exchanges its code for tokens.
    pub(super) async fn finish(&self) -> Result<Credential, String> {
        let form = vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", self.code().await?),
            ("redirect_uri", self.redirect.clone()),
            ("client_id", self.client.to_owned()),
            ("code_verifier", self.verifier.clone()),
        ];
        let answer = post_form(&self.token, &form).await?;
        match self.gives {
            Gives::Tokens => credential(&answer, None),
            Gives::Key => key_credential(&answer),
        }
    }

    async fn code(&self) -> Result<String, String> {
        let over = || "this login has ended already".to_owned();
        let mut waiting = self.code.lock().await;
        let code = waiting.as_mut().ok_or_else(over)?.await;
        *waiting = None;
        code.map_err(|_| over())?
    }
}

/// Returns 32 random bytes, which give the 43 characters that PKCE requires at least.
pub(super) fn random() -> Result<String, String> {
    let bytes = outrigger_stdx::random::bytes::<32>();
    let bytes = bytes.map_err(|_| "the system provides no random numbers".to_owned())?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
