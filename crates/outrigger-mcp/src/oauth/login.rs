//! A login, from the URL for the browser to the tokens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use sha2::{Digest as _, Sha256};

use super::bearer::Bearer;
use super::callback::Expected;
use super::discover::{Challenge, Endpoints, is_same_issuer};
use super::store::ClientInfo;
use super::{exchange, failed};
use crate::error::McpError;

/// A login that waits for the user.
pub(crate) struct Login {
    /// The URL at which the user logs in.
    pub(crate) authorization_url: String,
    /// Returned with the code.
    pub(crate) state: String,
    verifier: String,
    redirect: String,
    endpoints: Endpoints,
    client: ClientInfo,
    // The requested scope.
    scope: Option<String>,
}

/// Finds the endpoints, registers a client if necessary, and creates the URL for the browser.
///
/// # Errors
/// [`McpError::Login`], [`McpError::NeedsClientRegistration`].
pub(crate) async fn begin(bearer: &Bearer, challenge: Option<&str>) -> Result<Login, McpError> {
    let server = &bearer.server;
    let challenge = challenge.map(Challenge::read).unwrap_or_default();
    let endpoints = bearer
        .discover(&challenge)
        .await
        .map_err(|reason| failed(server, reason))?;
    let redirect = bearer.config.redirect();
    let client = client_at(bearer, &endpoints, &redirect).await?;
    let (verifier, state) = (random(server)?, random(server)?);
    let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    let scope = bearer.config.scope.clone();
    let scope = scope.or_else(|| bearer.widened(endpoints.scope.as_deref()));
    let authorize = endpoints.authorize.clone();
    let mut address: Url =
        authorize.ok_or_else(|| failed(server, "its metadata name no `authorization_endpoint`"))?;
    let mut query = address.query_pairs_mut();
    query
        .append_pair("response_type", "code")
        .append_pair("client_id", &client.client_id)
        .append_pair("code_challenge", &digest)
        .append_pair("code_challenge_method", "S256")
        .append_pair("redirect_uri", &redirect)
        .append_pair("state", &state);
    if let Some(scope) = &scope {
        query.append_pair("scope", scope);
        // Without it some servers return no refresh token (the SDK's rule).
        if scope.split(' ').any(|one| one == "offline_access") {
            query.append_pair("prompt", "consent");
        }
    }
    if let Some(resource) = &endpoints.resource {
        query.append_pair("resource", resource);
    }
    drop(query);
    Ok(Login {
        authorization_url: address.to_string(),
        state,
        verifier,
        redirect,
        endpoints,
        client,
        scope,
    })
}

/// Returns our client at an authorization server. A client registered elsewhere cannot be used.
async fn client_at(
    bearer: &Bearer,
    endpoints: &Endpoints,
    redirect: &str,
) -> Result<ClientInfo, McpError> {
    // One that the user configured names neither.
    let is_here = |client: &ClientInfo| {
        let (issuer, endpoint) = (client.issuer.as_deref(), client.token_endpoint.as_deref());
        issuer.is_none_or(|issuer| is_same_issuer(issuer, &endpoints.issuer))
            && (issuer.is_none() || endpoint == Some(endpoints.token.as_str()))
    };
    if let Some(id) = bearer.document().filter(|_| endpoints.reads_documents) {
        let client = ClientInfo {
            issuer: Some(endpoints.issuer.clone()),
            token_endpoint: Some(endpoints.token.to_string()),
            ..ClientInfo::of(id)
        };
        bearer.keep(|entry| entry.client_info = Some(client.clone()))?;
        return Ok(client);
    }
    if let Some(client) = bearer.client().filter(is_here) {
        return Ok(client);
    }
    let server = &bearer.server;
    let unregistered = || McpError::NeedsClientRegistration {
        server: server.clone(),
    };
    let endpoint = endpoints.register.as_ref().ok_or_else(unregistered)?;
    let mut client = exchange::register(endpoint, &bearer.config, redirect, &endpoints.way)
        .await
        .map_err(|reason| failed(server, reason))?;
    client.issuer = Some(endpoints.issuer.clone());
    client.token_endpoint = Some(endpoints.token.to_string());
    bearer.keep(|entry| entry.client_info = Some(client.clone()))?;
    Ok(client)
}

impl Login {
    /// Returns the expected callback.
    pub(crate) fn expected(&self) -> Expected {
        Expected {
            state: self.state.clone(),
            issuer: self.endpoints.issuer.clone(),
            names_issuer: self.endpoints.names_issuer,
        }
    }

    /// Exchanges a code for tokens, and stores them.
    ///
    /// # Errors
    /// [`McpError::Login`].
    pub(crate) async fn finish(&self, bearer: &Bearer, code: &str) -> Result<(), McpError> {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("code_verifier", &self.verifier),
            ("redirect_uri", &self.redirect),
        ];
        let mut tokens = exchange::tokens(&self.endpoints, &bearer.identity(&self.client), &fields)
            .await
            .map_err(|refused| failed(&bearer.server, refused.reason))?;
        tokens.asked_scope.clone_from(&self.scope);
        bearer.logged_in(tokens)
    }
}

// 32 bytes give the 43 characters that PKCE requires at least.
fn random(server: &str) -> Result<String, McpError> {
    let bytes =
        outrigger_stdx::random::bytes::<32>().map_err(|error| failed(server, error.to_string()))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
