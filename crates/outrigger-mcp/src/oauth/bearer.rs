//! The token for requests to one server.

use std::sync::Mutex;

use outrigger_stdx::sync::lock;
use reqwest::Url;

use super::discover::{Challenge, Endpoints, discover};
use super::exchange::Identity;
use super::store::{ClientInfo, Entry, TokenStore, Tokens};
use super::{OAuthConfig, exchange, failed, machine, now};
use crate::error::McpError;
use crate::transport::remote::Way;

/// Seconds before its expiry from which a token is renewed.
const SLACK: f64 = 30.0;
/// Maximum bytes of a stored challenge.
const MAX_CHALLENGE: usize = 4 * 1024;

/// One server's login.
pub(crate) struct Bearer {
    pub(crate) server: String,
    pub(crate) url: Url,
    pub(crate) config: OAuthConfig,
    store: TokenStore,
    // As configured: the parser may have changed it.
    address: String,
    // One renewal at a time: a refresh token is often valid only once.
    renewal: tokio::sync::Mutex<()>,
    pub(crate) way: Way,
    // The token of the last request, to redact error pages.
    known: Mutex<Option<String>>,
    // The server's last challenge.
    refused: Mutex<Option<String>>,
}

impl Bearer {
    /// # Errors
    /// [`McpError::Config`] if the URL is invalid.
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
                reason: format!("`url` is not an address: {error}"),
            })?,
            config,
            store,
            way,
            address: url.to_owned(),
            renewal: tokio::sync::Mutex::default(),
            known: Mutex::default(),
            refused: Mutex::default(),
        })
    }

    /// Returns the token to send, renewed if it has expired; `None` if there is no login.
    pub(crate) async fn token(&self) -> Option<String> {
        let tokens = self.entry().tokens?;
        let is_renewable = tokens.refresh_token.is_some() || self.config.settings.is_machine();
        let token = if tokens.is_expired(SLACK) && is_renewable {
            // If that fails, the old one is refused, with a better error.
            self.renew(&tokens.access_token, &Challenge::default())
                .await
                .unwrap_or(tokens.access_token)
        } else {
            tokens.access_token
        };
        self.know(&token);
        Some(token)
    }

    /// Handles a refused or missing token: gets another, if possible without the user.
    ///
    /// # Errors
    /// [`McpError::NeedsAuth`] if the user must log in, [`McpError::NeedsClientRegistration`] if that needs a client registered
    /// by hand, [`McpError::Login`] if where the login is renewed cannot be found out now.
    pub(crate) async fn refused(
        &self,
        sent: Option<&str>,
        challenge: Option<&str>,
    ) -> Result<String, McpError> {
        self.remember(challenge);
        let challenge = challenge.map(Challenge::read).unwrap_or_default();
        let renewed = match sent {
            Some(sent) => Some(self.renew(sent, &challenge).await),
            None if self.config.settings.is_machine() => Some(self.first(&challenge).await),
            None => None,
        };
        match renewed {
            Some(Ok(token)) => {
                self.know(&token);
                return Ok(token);
            }
            // The user cannot do anything about it.
            Some(Err(error)) if self.config.settings.is_machine() => return Err(error),
            Some(Err(error)) => tracing::debug!("[mcp:{}] {error}", self.server),
            None => {}
        }
        let endpoints = self.discover(&challenge).await;
        let has_client = |reads_documents: bool| {
            self.client().is_some() || reads_documents && self.document().is_some()
        };
        Err(match endpoints {
            Ok(endpoints)
                if endpoints.register.is_none() && !has_client(endpoints.reads_documents) =>
            {
                McpError::NeedsClientRegistration {
                    server: self.server.clone(),
                }
            }
            // The login is still there, and another one would fail, too.
            Err(reason) if sent.is_some() => failed(&self.server, reason),
            _ => McpError::NeedsAuth {
                server: self.server.clone(),
                status: 401,
            },
        })
    }

    /// Handles a token with too few rights (403 with `insufficient_scope`): gets another, if possible without the user.
    ///
    /// # Errors
    /// [`McpError::NeedsScope`] if the user must log in again; [`McpError::ScopeRefused`] if that was done, or would request
    /// the same once more.
    pub(crate) async fn too_little(
        &self,
        sent: Option<&str>,
        challenge: &str,
    ) -> Result<String, McpError> {
        let read = Challenge::read(challenge);
        let wanted = read.scope.clone().unwrap_or_default();
        let tokens = self.entry().tokens;
        let had = tokens
            .as_ref()
            .map(|tokens| {
                [&tokens.asked_scope, &tokens.scope]
                    .into_iter()
                    .flatten()
                    .cloned()
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .unwrap_or_default();
        let is_new = wanted
            .split_whitespace()
            .any(|word| !had.split_whitespace().any(|known| known == word));
        let server = self.server.clone();
        if !is_new {
            return Err(McpError::ScopeRefused {
                server,
                scope: exchange::short(&wanted),
            });
        }
        if let (true, Some(sent)) = (self.config.settings.is_machine(), sent) {
            let scope = Some(union(&had, &wanted));
            let token = self.renew(sent, &Challenge { scope, ..read }).await?;
            self.know(&token);
            return Ok(token);
        }
        if challenge.len() <= MAX_CHALLENGE {
            self.keep(|entry| entry.wanted = Some(challenge.to_owned()))?;
        }
        Err(McpError::NeedsScope {
            server,
            scope: exchange::short(&wanted),
        })
    }

    /// Returns the server's challenge for a login or for more rights: another request may not be refused.
    pub(crate) fn challenge(&self) -> Option<String> {
        let refused = lock(&self.refused);
        self.entry().wanted.or_else(|| refused.clone())
    }

    /// Returns the scope of a login: if more rights are needed, including the existing ones.
    pub(crate) fn widened(&self, scope: Option<&str>) -> Option<String> {
        let entry = self.entry();
        let granted = entry
            .tokens
            .filter(|_| entry.wanted.is_some())
            .and_then(|tokens| tokens.scope);
        match (granted, scope) {
            (Some(granted), Some(scope)) => Some(union(&granted, scope)),
            (_, scope) => scope.map(str::to_owned),
        }
    }

    /// Stores the tokens of a login.
    pub(crate) fn logged_in(&self, tokens: Tokens) -> Result<(), McpError> {
        lock(&self.refused).take();
        self.keep(|entry| {
            entry.tokens = Some(tokens);
            entry.wanted = None;
        })
    }

    fn remember(&self, challenge: Option<&str>) {
        let mut refused = lock(&self.refused);
        let challenge = challenge.filter(|it| it.len() <= MAX_CHALLENGE);
        *refused = challenge.map(str::to_owned);
    }

    /// Gets the first token without the user.
    async fn first(&self, challenge: &Challenge) -> Result<String, McpError> {
        let _one = self.renewal.lock().await;
        match self.entry().tokens {
            // Another request or process has got one in the meantime.
            Some(tokens) => Ok(tokens.access_token),
            None => self.by_machine(challenge).await,
        }
    }

    async fn by_machine(&self, challenge: &Challenge) -> Result<String, McpError> {
        let wrong = |reason: String| failed(&self.server, reason);
        let endpoints = self.discover(challenge).await.map_err(wrong)?;
        // Nobody is there to look where the client's secret goes, so it goes where it went the first time.
        if let Some(tokens) = self.entry().tokens {
            endpoints.check_login(&tokens).map_err(|reason| {
                let server = &self.server;
                wrong(format!(
                    "{reason} (`outrigger mcp logout {server}` accepts it)"
                ))
            })?;
        }
        let client = self
            .client()
            .ok_or_else(|| wrong("a login without a person needs `oauth.clientId`".to_owned()))?;
        let identity = self.identity(&client);
        let tokens = machine::tokens(&self.config, &self.url, &endpoints, &identity)
            .await
            .map_err(wrong)?;
        let token = tokens.access_token.clone();
        self.logged_in(tokens)?;
        Ok(token)
    }

    async fn renew(&self, sent: &str, challenge: &Challenge) -> Result<String, McpError> {
        let _one = self.renewal.lock().await;
        let wrong = |reason: String| failed(&self.server, reason);
        let Some(tokens) = self.entry().tokens else {
            return Err(wrong("nobody has logged in".to_owned()));
        };
        // Another request or process has refreshed it in the meantime.
        if tokens.access_token != sent {
            return Ok(tokens.access_token);
        }
        if self.config.settings.is_machine() {
            return self.by_machine(challenge).await;
        }
        let asked_scope = tokens.asked_scope.clone();
        let (Some(refresh), Some(client)) = (tokens.refresh_token.clone(), self.client()) else {
            return Err(wrong("the token cannot be renewed".to_owned()));
        };
        let endpoints = self.discover(challenge).await.map_err(wrong)?;
        // Tokens of one authorization server are not shown to another that the server names later.
        endpoints.check_login(&tokens).map_err(wrong)?;
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.as_str()),
        ];
        match exchange::tokens(&endpoints, &self.identity(&client), &fields).await {
            Ok(mut new) => {
                new.asked_scope = asked_scope;
                new.refresh_token.get_or_insert(refresh);
                let token = new.access_token.clone();
                self.keep(|entry| entry.tokens = Some(new))?;
                Ok(token)
            }
            Err(refused) => {
                // They will never be accepted again.
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

    /// Returns our client: the configured one, or the registered one.
    pub(crate) fn client(&self) -> Option<ClientInfo> {
        if let Some(id) = &self.config.client_id {
            return Some(ClientInfo {
                client_secret: self.config.client_secret.clone(),
                ..ClientInfo::of(id)
            });
        }
        let client = self.entry().client_info?;
        let expired = client.client_secret_expires_at.is_some_and(|at| at < now());
        (!expired).then_some(client)
    }

    /// Finds the server's login endpoints.
    pub(crate) async fn discover(&self, challenge: &Challenge) -> Result<Endpoints, String> {
        let issuer = self.config.settings.issuer.as_deref();
        discover(&self.url, &self.way, issuer, challenge).await
    }

    /// Returns our identity at a token endpoint, and its proof.
    pub(crate) fn identity<'a>(&'a self, client: &'a ClientInfo) -> Identity<'a> {
        let key = self.config.settings.private_key_file.as_deref();
        // The key belongs to the configured client.
        let is_ours = self.config.client_id.as_ref() == Some(&client.client_id);
        Identity {
            client,
            key: key.filter(|_| is_ours),
        }
    }

    /// Returns the URL of our client metadata document, if no client is configured.
    pub(crate) fn document(&self) -> Option<&str> {
        self.config
            .settings
            .client_metadata_url
            .as_deref()
            .filter(|_| self.config.client_id.is_none())
    }

    /// Updates the stored data.
    pub(crate) fn keep(&self, change: impl FnOnce(&mut Entry)) -> Result<(), McpError> {
        self.store
            .update(&self.server, &self.address, change)
            .map_err(|error| failed(&self.server, format!("the login cannot be kept: {error}")))
    }

    /// Returns the token sent last.
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

/// Joins the words of both, each once.
fn union(a: &str, b: &str) -> String {
    let mut words: Vec<&str> = a.split_whitespace().collect();
    for word in b.split_whitespace() {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" ")
}
