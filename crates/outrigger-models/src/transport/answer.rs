//! Sends a request, ourselves or through a plugin, and reads its response.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt as _};
use http::{HeaderMap, HeaderName, HeaderValue};
use outrigger_net::{Lookup, NoSuchHost};

use crate::cloud::{Authority, Unsigned};
use crate::transport::client::{Http, error_text};
use crate::transport::fetch::{FetchRequest, ProviderFetch};

/// The sender of a request.
pub(crate) enum Way {
    /// This process, with this authorization.
    Http(Arc<Http>, Authority),
    /// A plugin.
    Plugin(Arc<dyn ProviderFetch>),
}

/// A response whose body has not been read yet.
pub(crate) enum ProviderResponse {
    Http(reqwest::Response),
    /// Status, headers and body. The lock only makes the body shareable; nothing waits for it.
    Plugin(
        u16,
        HeaderMap,
        Mutex<BoxStream<'static, Result<Bytes, String>>>,
    ),
}

impl fmt::Debug for ProviderResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProviderResponse")
            .field(&self.status())
            .finish()
    }
}

/// Why a request could not be sent.
pub(crate) struct NotSent {
    pub(crate) message: String,
    /// How the lookup of the host's name failed, if it did.
    pub(crate) lookup: Option<Lookup>,
    /// It cannot be authorized, and no retry will change that.
    pub(crate) unsigned: Option<NotAuthorised>,
}

/// What prevents the authorization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotAuthorised {
    /// The configuration.
    Config,
    /// A login.
    Login,
}

impl From<String> for NotSent {
    fn from(message: String) -> Self {
        Self {
            message,
            lookup: None,
            unsigned: None,
        }
    }
}

impl NotSent {
    fn unsigned(why: Unsigned) -> Self {
        let (message, unsigned) = match why {
            Unsigned::Config(message) => (message, Some(NotAuthorised::Config)),
            Unsigned::Login(message) => (message, Some(NotAuthorised::Login)),
            Unsigned::Passing(message) => (message, None),
        };
        Self {
            unsigned,
            ..Self::from(message)
        }
    }
}

impl Way {
    /// Returns the plugin, if it is one.
    pub(crate) fn plugin(&self) -> Option<&str> {
        match self {
            Self::Http(..) => None,
            Self::Plugin(fetch) => Some(fetch.plugin()),
        }
    }

    /// Removes the authorization from a text of the recipient.
    pub(crate) fn scrub(&self, text: &str) -> String {
        match self {
            Self::Http(_, authority) => authority.scrub(text),
            Self::Plugin(_) => text.to_owned(),
        }
    }

    /// Sends a request. The error is the reason if that was not possible.
    pub(crate) async fn send(
        &self,
        url: &str,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<ProviderResponse, NotSent> {
        match self {
            Self::Http(http, authority) => {
                let client = http.client(url)?;
                let mut headers = headers.clone();
                let signed = authority.sign(url, &mut headers, body).await;
                signed.map_err(NotSent::unsigned)?;
                let request = client.post(url).headers(headers).body(body.clone());
                let sent = request.send().await;
                sent.map(ProviderResponse::Http).map_err(|error| NotSent {
                    message: error_text(&error),
                    lookup: NoSuchHost::behind(&error).map(|it| it.lookup),
                    unsigned: None,
                })
            }
            Self::Plugin(fetch) => {
                let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
                let request = FetchRequest {
                    method: "POST".to_owned(),
                    url: url.to_owned(),
                    headers: headers
                        .iter()
                        .map(|(name, value)| (name.as_str().to_owned(), text(value)))
                        .collect(),
                    body: String::from_utf8_lossy(body).into_owned(),
                };
                let response = fetch.fetch(request).await?;
                let headers = response
                    .headers
                    .iter()
                    .filter_map(|(name, value)| {
                        Some((
                            HeaderName::from_bytes(name.as_bytes()).ok()?,
                            HeaderValue::from_str(value).ok()?,
                        ))
                    })
                    .collect();
                Ok(ProviderResponse::Plugin(
                    response.status,
                    headers,
                    Mutex::new(response.body),
                ))
            }
        }
    }
}

impl ProviderResponse {
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Http(response) => response.status().as_u16(),
            Self::Plugin(status, ..) => *status,
        }
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        match self {
            Self::Http(response) => response.headers(),
            Self::Plugin(_, headers, _) => headers,
        }
    }

    /// Returns the next piece of the body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, String> {
        match self {
            Self::Http(response) => response.chunk().await.map_err(|e| error_text(&e)),
            Self::Plugin(_, _, body) => {
                let body = body.get_mut().unwrap_or_else(PoisonError::into_inner);
                body.next().await.transpose()
            }
        }
    }
}
