//! Shared parts of both HTTP transports: configured headers, the token, and errors without keys.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Client, RequestBuilder, Response, StatusCode};

use crate::error::McpError;
use crate::oauth::{Bearer, Challenge};
use crate::secret::Secrets;
use crate::wire::MAX_BYTES;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a quoted error page.
const MAX_QUOTED: usize = 300;

/// The proxy for a server that a plugin contributed; the user's servers use this machine's connections.
pub(crate) type Way = Option<String>;

/// A remote server's URL and what is sent with each request to it.
pub(crate) struct Remote {
    pub(crate) server: String,
    pub(crate) client: Client,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    secrets: Secrets,
    // `None` if `oauth` is false or the configuration has its own `Authorization`.
    bearer: Option<Arc<Bearer>>,
}

impl Remote {
    /// Sends nothing yet.
    ///
    /// # Errors
    /// [`McpError::Config`] for an invalid header, [`McpError::Http`] without a client.
    pub(crate) fn new(
        server: &str,
        url: &str,
        headers: &BTreeMap<String, String>,
        bearer: Option<Arc<Bearer>>,
        way: &Way,
    ) -> Result<Self, McpError> {
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            let wrong = || McpError::Config {
                server: server.to_owned(),
                reason: format!("`headers.{name}` is not a valid header"),
            };
            let name = HeaderName::try_from(name).map_err(|_| wrong())?;
            let mut value = HeaderValue::try_from(value).map_err(|_| wrong())?;
            value.set_sensitive(true);
            sent.insert(name, value);
        }
        outrigger_net::check_text(url).map_err(|refused| McpError::Http {
            server: server.to_owned(),
            reason: refused.to_string(),
        })?;
        let client = client(url, way, Redirects::None, false).map_err(|error| McpError::Http {
            server: server.to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Self {
            server: server.to_owned(),
            client,
            url: url.to_owned(),
            bearer: bearer.filter(|_| !sent.contains_key(AUTHORIZATION)),
            headers: sent,
            secrets: Secrets::new(headers),
        })
    }

    /// Sends a request, with the token if there is one. A refusal is handled once, by renewing the token or getting one with more rights.
    ///
    /// # Errors
    /// [`McpError::NeedsAuth`], [`McpError::NeedsScope`], [`McpError::ScopeRefused`], [`McpError::NeedsClientRegistration`],
    /// [`McpError::Http`].
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, McpError> {
        let again = request.try_clone();
        let token = match &self.bearer {
            Some(bearer) => bearer.token().await,
            None => None,
        };
        let response = self.once(request, token.as_deref()).await?;
        let status = response.status();
        let (Some(bearer), Some(again)) = (&self.bearer, again) else {
            return self.admitted(response);
        };
        let sent = token.as_deref();
        let challenge = challenge_of(&response);
        let renewed = match challenge.as_deref() {
            challenge if status == StatusCode::UNAUTHORIZED => {
                drop(response);
                bearer.refused(sent, challenge).await?
            }
            Some(challenge) if wants_scope(status, challenge) => {
                drop(response);
                bearer.too_little(sent, challenge).await?
            }
            _ => return self.admitted(response),
        };
        let response = self.once(again, Some(&renewed)).await?;
        // The new token may have too few rights; the missing scope is stored for the next login.
        match challenge_of(&response) {
            Some(challenge) if wants_scope(response.status(), &challenge) => {
                let status = response.status().as_u16();
                match bearer.too_little(None, &challenge).await {
                    Err(error) => Err(error),
                    Ok(_) => Err(self.needs_auth(status)),
                }
            }
            _ => self.admitted(response),
        }
    }

    async fn once(
        &self,
        request: RequestBuilder,
        token: Option<&str>,
    ) -> Result<Response, McpError> {
        if (token.is_some() || !self.headers.is_empty())
            && let Ok(url) = reqwest::Url::parse(&self.url)
        {
            outrigger_net::check_receiver(&url).map_err(|it| self.http(it.to_string()))?;
            if token.is_some() || !self.secrets.is_empty() {
                outrigger_net::warn_in_the_clear(&format!("mcp:{}", self.server), &url);
            }
        }
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        request.send().await.map_err(|error| self.failed(&error))
    }

    fn admitted(&self, response: Response) -> Result<Response, McpError> {
        let status = response.status();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(self.needs_auth(status.as_u16()));
        }
        Ok(response)
    }

    fn needs_auth(&self, status: u16) -> McpError {
        McpError::NeedsAuth {
            server: self.server.clone(),
            status,
        }
    }

    /// Converts an unsuccessful response to an error.
    pub(crate) async fn refused(&self, mut response: Response) -> McpError {
        let status = response.status();
        let page = response.chunk().await.ok().flatten().unwrap_or_default();
        let page: String = self
            .hide(String::from_utf8_lossy(&page).into_owned())
            .trim()
            .chars()
            .take(MAX_QUOTED)
            .collect();
        let reason = if page.is_empty() {
            format!("HTTP {status}")
        } else {
            format!("HTTP {status}: {page}")
        };
        self.http(reason)
    }

    /// Removes configured keys and the token from a text of the server.
    pub(crate) fn hide(&self, text: String) -> String {
        let text = self.secrets.hide(text);
        match self.bearer.as_ref().and_then(|bearer| bearer.known()) {
            Some(token) => text.replace(&token, "***"),
            None => text,
        }
    }

    /// Converts a failed request to an error.
    pub(crate) fn failed(&self, error: &reqwest::Error) -> McpError {
        if !error.is_connect() {
            return self.http(reason(error, &self.url));
        }
        let host = reqwest::Url::parse(&self.url)
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned));
        McpError::Unreachable {
            server: self.server.clone(),
            host: host.unwrap_or_default(),
            reason: first_cause(error),
        }
    }

    pub(crate) fn http(&self, reason: String) -> McpError {
        McpError::Http {
            server: self.server.clone(),
            reason,
        }
    }

    /// Creates the error for a response that violates the protocol.
    pub(crate) fn answer(&self, reason: &str) -> McpError {
        McpError::Answer {
            server: self.server.clone(),
            reason: reason.to_owned(),
        }
    }

    pub(crate) fn too_long(&self) -> McpError {
        self.answer(&format!("it is longer than {} MiB", MAX_BYTES >> 20))
    }
}

/// Returns a refusal's challenge.
pub(crate) fn challenge_of(response: &Response) -> Option<String> {
    response
        .headers()
        .get(WWW_AUTHENTICATE)?
        .to_str()
        .ok()
        .map(str::to_owned)
}

/// Returns whether a token has too few rights (RFC 6750).
fn wants_scope(status: StatusCode, challenge: &str) -> bool {
    let challenge = Challenge::read(challenge);
    status == StatusCode::FORBIDDEN
        && challenge.error.as_deref() == Some("insufficient_scope")
        && challenge.scope.is_some()
}

/// Returns the cause of a connection failure, without the attempts.
fn first_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    match cause.to_string() {
        // A proxy's reason is not passed on; our proxy has logged it.
        text if text.starts_with("tunnel error") => "the proxy makes no connection".to_owned(),
        text => text,
    }
}

/// Returns the causes of an error, without the URL, which may contain a key.
pub(crate) fn reason(error: &reqwest::Error, url: &str) -> String {
    let mut reason = error.to_string().replace(url, "its address");
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        reason = format!("{reason}: {inner}");
        cause = inner.source();
    }
    reason
}

/// The redirects that are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redirects {
    /// None: they would send the configured headers elsewhere.
    None,
    /// A few, to any target.
    Any,
    /// A few, but neither they nor the first request may go to this machine or its network.
    Public,
}

/// The maximum number.
const MAX_REDIRECTS: usize = 3;

impl Redirects {
    /// Checks whether a redirect to a URL is allowed.
    pub(crate) fn check(self, url: &reqwest::Url) -> Result<(), String> {
        outrigger_net::check(url).map_err(|refused| refused.to_string())?;
        if self == Self::Public && outrigger_net::is_local(url) {
            Err(format!("{url} is of this machine or its network"))
        } else {
            Ok(())
        }
    }
}

/// Creates a client for a URL; `is_public`: it does not connect to this machine or its network.
pub(crate) fn client(
    url: &str,
    way: &Way,
    redirects: Redirects,
    is_public: bool,
) -> Result<Client, reqwest::Error> {
    let policy = match redirects {
        Redirects::None => reqwest::redirect::Policy::none(),
        redirects => {
            reqwest::redirect::Policy::custom(move |attempt| match redirects.check(attempt.url()) {
                _ if attempt.previous().len() > MAX_REDIRECTS => {
                    attempt.error("too many redirects")
                }
                Ok(()) => attempt.follow(),
                Err(refused) => attempt.error(refused),
            })
        }
    };
    let builder = if is_public {
        outrigger_net::public_builder(Arc::new(|_| false))
    } else {
        outrigger_net::builder()
    };
    let builder = builder
        .user_agent(concat!("outrigger/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .redirect(policy);
    let local = ["http://localhost", "http://127.", "http://[::1]"]
        .iter()
        .any(|start| url.starts_with(start));
    let builder = match way {
        Some(proxy) => builder.proxy(reqwest::Proxy::all(proxy)?),
        None if local => builder.no_proxy(),
        None => builder,
    };
    // Loading the system's certificates takes tens of milliseconds.
    let builder = if url.starts_with("http://") && redirects == Redirects::None {
        builder.tls_certs_only([])
    } else {
        builder
    };
    builder.build()
}
