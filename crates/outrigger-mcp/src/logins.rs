//! Logging in to servers, and out.

use std::sync::Arc;

use outrigger_net::Callback;
use outrigger_stdx::sync::lock;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Response, StatusCode};

use crate::config::Transport;
use crate::error::McpError;
use crate::oauth::{AuthState, Bearer, Login, begin, failed, place_of};
use crate::server::{Server, Status};
use crate::servers::McpServers;
use crate::transport::remote::{Remote, challenge_of};
use crate::wire;

/// A login that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthStart {
    /// The URL at which the user logs in; empty if the server requires no login.
    pub authorization_url: String,
    /// Returned together with the code.
    pub state: String,
}

impl McpServers {
    /// Starts a login. [`Self::finish_auth`] takes the resulting code.
    ///
    /// # Errors
    /// [`McpError::Unknown`], [`McpError::NoOAuth`], and what prevents a login.
    pub async fn start_auth(&self, name: &str) -> Result<AuthStart, McpError> {
        let login = self.begin_login(name).await?;
        Ok(AuthStart {
            authorization_url: login
                .as_ref()
                .map_or_else(String::new, |it| it.authorization_url.clone()),
            state: login.map_or_else(String::new, |it| it.state.clone()),
        })
    }

    /// Returns the started login; `None` if the server requires none.
    async fn begin_login(&self, name: &str) -> Result<Option<Arc<Login>>, McpError> {
        let server = self.find(name)?;
        let bearer = bearer(&server)?;
        let challenge = match bearer.challenge() {
            Some(known) => Some(known),
            None => {
                let response = probe(&server).await?;
                if response.status() != StatusCode::UNAUTHORIZED {
                    return Ok(None);
                }
                challenge_of(&response)
            }
        };
        let login = Arc::new(begin(&bearer, challenge.as_deref()).await?);
        *lock(&server.login) = Some(Arc::clone(&login));
        Ok(Some(login))
    }

    /// Completes the started login with its code, and connects. `iss`: the issuer (RFC 9207), if the response contains it.
    ///
    /// # Errors
    /// [`McpError::Unknown`], [`McpError::NoOAuth`], [`McpError::Login`].
    pub async fn finish_auth(
        &self,
        name: &str,
        code: &str,
        iss: Option<&str>,
    ) -> Result<Status, McpError> {
        let server = self.find(name)?;
        let bearer = bearer(&server)?;
        let login = lock(&server.login).take();
        let login = login.ok_or_else(|| failed(name, "none was begun"))?;
        if iss.is_some() {
            let checked = login.expected().check(iss);
            checked.map_err(|reason| failed(name, reason))?;
        }
        login.finish(&bearer, code).await?;
        server.switch(true).await;
        Ok(server.status())
    }

    /// Performs a whole login: calls `open` with the login URL, and waits for the code (5 minutes at most). A server that
    /// needs no login is only connected.
    ///
    /// # Errors
    /// As [`Self::start_auth`] and [`Self::finish_auth`], and if the user does not log in.
    pub async fn authenticate(
        &self,
        name: &str,
        open: impl AsyncFnOnce(&str),
    ) -> Result<Status, McpError> {
        let Some(login) = self.begin_login(name).await? else {
            return self.switch(name, true).await;
        };
        let redirect = bearer(&self.find(name)?)?.config.redirect();
        let wrong = |reason| failed(name, reason);
        let (port, path) = place_of(&redirect).map_err(wrong)?;
        let callback = Callback::listen(port, &path).await.map_err(wrong)?;
        open(&login.authorization_url).await;
        let expected = login.expected();
        let code = callback.code(&expected.state, |iss| expected.check(iss));
        let code = code.await.map_err(wrong)?;
        self.finish_auth(name, &code, None).await
    }

    /// Removes the login of a server; a login in progress is abandoned.
    ///
    /// # Errors
    /// [`McpError::Unknown`], and [`McpError::Login`] if the file cannot be written.
    pub fn remove_auth(&self, name: &str) -> Result<(), McpError> {
        let server = self.find(name)?;
        lock(&server.login).take();
        self.tokens()
            .remove(name)
            .map_err(|error| failed(name, error.to_string()))?;
        Ok(())
    }

    /// Returns the login state of a server; `None` if it does not support logins.
    #[must_use]
    pub fn auth_state(&self, name: &str) -> Option<AuthState> {
        let server = self.find(name).ok()?;
        server.bearer.as_ref()?;
        match &server.config.as_ref().ok()?.transport {
            Transport::Remote { url, .. } => Some(self.tokens().state(name, url)),
            Transport::Local { .. } => None,
        }
    }
}

fn bearer(server: &Arc<Server>) -> Result<Arc<Bearer>, McpError> {
    server.bearer.clone().ok_or_else(|| McpError::NoOAuth {
        server: server.name.clone(),
    })
}

/// Sends the first request without a token, to learn what the server requires.
async fn probe(server: &Server) -> Result<Response, McpError> {
    let remote: Remote = server.remote()?;
    let wait = std::time::Duration::from_secs(30);
    let request = remote
        .client
        .post(&remote.url)
        .headers(remote.headers.clone())
        .header(ACCEPT, "application/json, text/event-stream")
        .header(CONTENT_TYPE, "application/json")
        .timeout(wait)
        .body(wire::request(0, "initialize", &wire::hello()));
    let failed = |error: reqwest::Error| remote.failed(&error);
    let response = request.send().await.map_err(failed)?;
    let status = response.status();
    if status == StatusCode::UNAUTHORIZED || !status.is_client_error() {
        return Ok(response);
    }
    // The older transport does not know this request.
    let request = remote
        .client
        .get(&remote.url)
        .headers(remote.headers.clone())
        .header(ACCEPT, "text/event-stream")
        .timeout(wait);
    request.send().await.map_err(failed)
}
