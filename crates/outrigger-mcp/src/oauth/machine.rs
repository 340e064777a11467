//! Tokens without the user: the client logs in itself (`client_credentials`, SEP-1046), or an identity provider vouches for the user
//! (cross-app access, SEP-990: RFC 8693, then RFC 7523). Only if the user configured it in `[mcp.NAME]`.

use reqwest::Url;

use super::OAuthConfig;
use super::discover::{Endpoints, acceptable, post};
use super::exchange::{self, Identity, said};
use super::settings::IdentityProvider;
use super::store::Tokens;

const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// Gets tokens for a server.
///
/// # Errors
/// The reason, as the end of a sentence.
pub(super) async fn tokens(
    config: &OAuthConfig,
    server: &Url,
    endpoints: &Endpoints,
    identity: &Identity<'_>,
) -> Result<Tokens, String> {
    let mut fields = Vec::new();
    let grant;
    match &config.settings.identity_provider {
        Some(provider) => {
            grant = vouched(server, provider, endpoints).await?;
            fields.extend([("grant_type", JWT_BEARER), ("assertion", &grant)]);
        }
        None => fields.push(("grant_type", "client_credentials")),
    }
    let scope = config.scope.as_ref().or(endpoints.scope.as_ref());
    if let Some(scope) = scope {
        fields.push(("scope", scope));
    }
    let mut tokens = exchange::tokens(endpoints, identity, &fields)
        .await
        .map_err(|refused| refused.reason)?;
    tokens.asked_scope = scope.cloned();
    Ok(tokens)
}

/// Gets the identity provider's assertion about the user, valid only for this server and its authorization server.
async fn vouched(
    server: &Url,
    provider: &IdentityProvider,
    endpoints: &Endpoints,
) -> Result<String, String> {
    let file = &provider.id_token_file;
    let token = outrigger_files::read(file, outrigger_files::DATA)
        .map_err(|error| format!("the ID token {}: {error}", file.display()))?;
    let token = String::from_utf8_lossy(&token);
    let endpoint = acceptable(&provider.token_endpoint)?;
    let resource = endpoints.resource.as_deref().unwrap_or(server.as_str());
    let mut fields = vec![
        ("grant_type", TOKEN_EXCHANGE),
        ("requested_token_type", ID_JAG),
        ("subject_token_type", ID_TOKEN),
        ("subject_token", token.trim()),
        ("audience", endpoints.issuer.as_str()),
        ("resource", resource),
    ];
    if let Some(client) = &provider.client_id {
        fields.push(("client_id", client));
    }
    if let Some(scope) = &endpoints.scope {
        fields.push(("scope", scope));
    }
    let (status, answer) = post(
        &endpoint,
        &endpoints.way.of_the_users(),
        exchange::FORM,
        None,
        exchange::form(&fields),
    )
    .await?;
    let grant = answer["access_token"].as_str().filter(|it| !it.is_empty());
    let is_grant = answer["issued_token_type"] == ID_JAG;
    match grant {
        Some(grant) if status.is_success() && is_grant => Ok(grant.to_owned()),
        _ => Err(format!(
            "the identity provider did not vouch for you: {}",
            said(status, &answer)
        )),
    }
}
