//! The token that goes with each request to one server.

use std::sync::Mutex;

use outrigger_files::sync::lock;
use reqwest::Url;

use super::discover::{Challenge, discover, is_same_issuer};
use super::store::{ClientInfo, Entry, TokenStore};
use super::{OAuthConfig, exchange, failed, now};
use crate::error::McpError;
use crate::transport::remote::Way;

/// Seconds before its end in which a token is renewed ahead of time.
const SLACK: f64 = 30.0;

/// One server's login.
pub(crate) struct Bearer {
    pub(crate) server: String,
    pub(crate) url: Url,
    pub(crate) config: OAuthConfig,
    store: TokenStore,
    // As configured: the parser may have changed it.
    address: String,
    // One renewal at a time: a refresh token is often good only once.
    renewal: tokio::sync::Mutex<()>,
    pub(crate) way: Way,
    // What the last request carried, to take it out of error pages.
    known: Mutex<Option<String>>,
}

impl Bearer {
    /// # Errors
    /// [`McpError::Config`] for an address that is none.
    pub(crate) fn new(
        server: &str,
        url: &str,
        config: OAuthConfig,
        store: TokenStore,
        way: Way,
    ) -> Result<Self, McpError> {
        Ok(Self {
            server: server.to_owned(),
            url: Url::parse(url).map_err(|error| McpError::Config {
                server: server.to_owned(),
                reason: format!("`url` is no address: {error}"),
            })?,
            config,
            store,
            way,
            address: url.to_owned(),
            renewal: tokio::sync::Mutex::default(),
            known: Mutex::default(),
        })
    }

    /// The token to send, renewed when it has expired; `None` when nobody has logged in.
    pub(crate) async fn token(&self) -> Option<String> {
        let tokens = self.entry().tokens?;
        let token = if tokens.is_expired(SLACK) && tokens.refresh_token.is_some() {
            // Where that fails the old one is refused, which says more.
            self.renew(&tokens.access_token, &Challenge::default())
                .await
                .unwrap_or(tokens.access_token)
        } else {
            tokens.access_token
        };
        self.know(&token);
        Some(token)
    }

    /// The server has refused a token, or the lack of one: gets another, if that can be done without a person.
    ///
    /// # Errors
    /// [`McpError::NeedsAuth`] when a person has to log in, [`McpError::NeedsClientRegistration`] when that needs a
    /// client that was registered by hand.
    pub(crate) async fn refused(
        &self,
        sent: Option<&str>,
        challenge: Option<&str>,
    ) -> Result<String, McpError> {
        let challenge = challenge.map(Challenge::read).unwrap_or_default();
        if let Some(sent) = sent {
            match self.renew(sent, &challenge).await {
                Ok(token) => {
                    self.know(&token);
                    return Ok(token);
                }
                Err(error) => tracing::debug!("[mcp:{}] {error}", self.server),
            }
        }
        let endpoints = discover(self, &challenge).await;
        Err(match endpoints {
            Ok(endpoints) if endpoints.register.is_none() && self.client().is_none() => {
                McpError::NeedsClientRegistration {
                    server: self.server.clone(),
                }
            }
            _ => McpError::NeedsAuth {
                server: self.server.clone(),
                status: 401,
            },
        })
    }

    async fn renew(&self, sent: &str, challenge: &Challenge) -> Result<String, McpError> {
        let _one = self.renewal.lock().await;
        let wrong = |reason: String| failed(&self.server, reason);
        let Some(tokens) = self.entry().tokens else {
            return Err(wrong("nobody has logged in".to_owned()));
        };
        // Another request or another process has refreshed it meanwhile.
        if tokens.access_token != sent {
            return Ok(tokens.access_token);
        }
        let (Some(refresh), Some(client)) = (tokens.refresh_token, self.client()) else {
            return Err(wrong("the token cannot be renewed".to_owned()));
        };
        let endpoints = discover(self, challenge).await.map_err(wrong)?;
        // What one authorization server gave is not shown to another that the server names later.
        let issuer = tokens.issuer.as_deref();
        if issuer.is_some_and(|issuer| !is_same_issuer(issuer, &endpoints.issuer)) {
            return Err(wrong(format!(
                "its authorization server is another one than at the login: {}",
                endpoints.issuer
            )));
        }
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.as_str()),
        ];
        match exchange::tokens(&endpoints, &client, &fields).await {
            Ok(mut new) => {
                new.refresh_token.get_or_insert(refresh);
                let token = new.access_token.clone();
                self.keep(|entry| entry.tokens = Some(new))?;
                Ok(token)
            }
            Err(refused) => {
                // They will never be taken again.
                match refused.code.as_str() {
                    "invalid_client" | "unauthorized_client" => self.keep(|entry| {
                        entry.tokens = None;
                        entry.client_info = None;
                    })?,
                    "invalid_grant" => self.keep(|entry| entry.tokens = None)?,
                    _ => {}
                }
                Err(wrong(refused.reason))
            }
        }
    }

    /// The client that we are: the configured one, else the registered one.
    pub(crate) fn client(&self) -> Option<ClientInfo> {
        if let Some(id) = &self.config.client_id {
            return Some(ClientInfo {
                client_id: id.clone(),
                client_secret: self.config.client_secret.clone(),
                client_id_issued_at: None,
                client_secret_expires_at: None,
                issuer: None,
            });
        }
        let client = self.entry().client_info?;
        let expired = client.client_secret_expires_at.is_some_and(|at| at < now());
        (!expired).then_some(client)
    }

    /// Changes what is kept.
    pub(crate) fn keep(&self, change: impl FnOnce(&mut Entry)) -> Result<(), McpError> {
        self.store
            .update(&self.server, &self.address, change)
            .map_err(|error| failed(&self.server, format!("the login cannot be kept: {error}")))
    }

    /// The token that was sent last.
    pub(crate) fn known(&self) -> Option<String> {
        lock(&self.known).clone()
    }

    fn know(&self, token: &str) {
        let mut known = lock(&self.known);
        *known = Some(token.to_owned());
    }

    fn entry(&self) -> Entry {
        self.store.get(&self.server, &self.address)
    }
}
