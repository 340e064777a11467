//! Finds the login endpoints: a server's protected resource metadata (RFC 9728) name an authorization server, whose own metadata (RFC
//! 8414, otherwise OpenID Connect's) name the endpoints.

use std::time::Duration;

use reqwest::{Client, StatusCode, Url};
use serde_json::Value;

use super::store::Tokens;
use crate::transport::remote::{Redirects, Way, client, reason};

const WAIT: Duration = Duration::from_secs(10);
/// Maximum bytes of a metadata document or a response.
const MAX_BYTES: usize = 256 * 1024;
/// The path of a server's resource metadata (RFC 9728).
const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource";

/// The content of `WWW-Authenticate` in a 401.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    pub(crate) resource_metadata: Option<String>,
    pub(crate) scope: Option<String>,
    /// `insufficient_scope` if the token has too few rights.
    pub(crate) error: Option<String>,
}

impl Challenge {
    /// Parses the header; skips what is invalid.
    pub(crate) fn read(header: &str) -> Self {
        let value = |key: &str| {
            let at = header.find(&format!("{key}="))?;
            let rest = header.get(at + key.len() + 1..)?;
            let text = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next(),
                None => rest.split([',', ' ']).next(),
            };
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Self {
            resource_metadata: value("resource_metadata"),
            scope: value("scope"),
            error: value("error"),
        }
    }
}

/// The login endpoints.
#[derive(Clone, Debug)]
pub(crate) struct Endpoints {
    /// The authorization server.
    pub(crate) issuer: String,
    /// It includes its issuer in callbacks (RFC 9207).
    pub(crate) names_issuer: bool,
    /// `None`: users cannot log in.
    pub(crate) authorize: Option<Url>,
    pub(crate) token: Url,
    /// `None`: clients must be registered by hand.
    pub(crate) register: Option<Url>,
    /// It supports client metadata documents, whose URL is the client's id (SEP-991).
    pub(crate) reads_documents: bool,
    /// The scope that the server wants.
    pub(crate) scope: Option<String>,
    /// The audience of the token (RFC 8707), if the server has its own metadata.
    pub(crate) resource: Option<String>,
    /// Supported client authentication methods.
    pub(crate) methods: Vec<String>,
    /// How to connect to them.
    pub(crate) way: LoginWay,
}

/// How to connect to endpoints named by a server, and which addresses are allowed.
#[derive(Clone, Debug)]
pub(crate) struct LoginWay {
    way: Way,
    near: Near,
}

/// Finds a server's login endpoints.
///
/// # Errors
/// The reason, as the end of a sentence.
pub(crate) async fn discover(
    url: &Url,
    way: &Way,
    accepted_issuer: Option<&str>,
    challenge: &Challenge,
) -> Result<Endpoints, String> {
    let way = LoginWay::of(url, way).await;
    let acceptable = |text: &str| way.near.acceptable(text);
    let resource = resource_metadata(url, challenge, &way).await?;
    let (issuer, meta) = authorization_server(url, resource.as_ref(), &way).await?;
    let named = meta.as_ref().and_then(|meta| meta["issuer"].as_str());
    let issuer = checked_issuer(&issuer, named, accepted_issuer)?;
    let text = |key: &str| meta.as_ref().and_then(|meta| meta[key].as_str());
    let endpoint = |key: &str, path: &str| match text(key) {
        Some(named) => acceptable(named),
        None if meta.is_some() => Err(format!("its metadata name no `{key}`")),
        // Servers older than both kinds of metadata are their own authorization server, with the usual names.
        None => root(url).join(path).map_err(|error| error.to_string()),
    };
    check_pkce(meta.as_ref())?;
    let supported = resource
        .as_ref()
        .and_then(|meta| texts(&meta["scopes_supported"]))
        .filter(|scopes| !scopes.is_empty())
        .map(|scopes| scopes.join(" "));
    Ok(Endpoints {
        issuer,
        names_issuer: meta
            .as_ref()
            .is_some_and(|meta| meta["authorization_response_iss_parameter_supported"] == true),
        authorize: match text("authorization_endpoint") {
            None if meta.is_some() => None,
            _ => Some(endpoint("authorization_endpoint", "/authorize")?),
        },
        token: endpoint("token_endpoint", "/token")?,
        register: match text("registration_endpoint") {
            None if meta.is_some() => None,
            _ => Some(endpoint("registration_endpoint", "/register")?),
        },
        reads_documents: meta
            .as_ref()
            .is_some_and(|meta| meta["client_id_metadata_document_supported"] == true),
        scope: challenge.scope.clone().or(supported),
        resource: resource
            .as_ref()
            .map(|meta| meta["resource"].as_str().unwrap_or(url.as_str()).to_owned()),
        methods: meta
            .as_ref()
            .and_then(|meta| texts(&meta["token_endpoint_auth_methods_supported"]))
            .unwrap_or_default(),
        way,
    })
}

/// Returns a server's authorization server, and its metadata. Endpoints with the usual names are not assumed of one that the server
/// names: they would be the server's own.
async fn authorization_server(
    url: &Url,
    resource: Option<&Value>,
    way: &LoginWay,
) -> Result<(Url, Option<Value>), String> {
    let named = resource.and_then(|meta| meta["authorization_servers"].get(0)?.as_str());
    let issuer = match named {
        Some(issuer) => way.near.acceptable(issuer)?,
        None => root(url),
    };
    let meta = issuer_metadata(&issuer, way).await?;
    if meta.is_none() && named.is_some() {
        return Err(format!(
            "its authorization server {issuer} has no metadata, which name where it logs in"
        ));
    }
    Ok((issuer, meta))
}

/// Checks PKCE support: without it, anyone who sees a code can use it.
fn check_pkce(meta: Option<&Value>) -> Result<(), String> {
    let methods = meta.and_then(|meta| meta["code_challenge_methods_supported"].as_array());
    match methods {
        Some(methods) if !methods.iter().any(|method| method == "S256") => {
            Err("its authorization server does not support PKCE with S256".to_owned())
        }
        _ => Ok(()),
    }
}

async fn resource_metadata(
    url: &Url,
    challenge: &Challenge,
    way: &LoginWay,
) -> Result<Option<Value>, String> {
    let mut places = Vec::new();
    if let Some(named) = &challenge.resource_metadata {
        places.push(way.near.acceptable(named)?);
    } else {
        let path = url.path().trim_end_matches('/');
        for path in [path, ""] {
            let place = format!("{RESOURCE_METADATA}{path}");
            places.extend(url.join(&place));
        }
        places.dedup();
    }
    for place in places {
        match json(&place, way).await {
            Ok(Some(meta)) => {
                check_resource(&meta, &place, url)?;
                return Ok(Some(meta));
            }
            Ok(None) => {}
            // Servers older than these metadata ask for a token at every path.
            Err(unread) if unread.status == Some(StatusCode::UNAUTHORIZED) => {}
            Err(unread) => return Err(unread.reason),
        }
    }
    Ok(None)
}

/// Checks the resource. Metadata of another resource would send the token to another server. According to RFC 9728 they must name the URL
/// of the server itself. Many servers name their root, which is accepted from the location that only the owner of the root controls.
fn check_resource(meta: &Value, place: &Url, url: &Url) -> Result<(), String> {
    let named = meta["resource"]
        .as_str()
        .ok_or_else(|| "its metadata name no `resource`".to_owned())?;
    let named =
        Url::parse(named).map_err(|_| "`resource` of its metadata is not an address".to_owned())?;
    if named.origin() != url.origin() || !within(named.path(), url.path()) {
        return Err(format!("its metadata are those of another server: {named}"));
    }
    let is_itself = within(url.path(), named.path());
    let is_of_root = place.origin() == url.origin() && within(RESOURCE_METADATA, place.path());
    if is_itself || is_of_root {
        Ok(())
    } else {
        Err(format!(
            "its metadata are those of {named}, and lie at {place}"
        ))
    }
}

/// Checks the authorization server's own issuer: metadata of another one (RFC 8414, 3.3) would cause the code of its login to be sent to
/// this one. Many servers have an issuer with another path of the same origin; `accepted` is the issuer that the user has configured.
fn checked_issuer(
    expected: &Url,
    named: Option<&str>,
    accepted: Option<&str>,
) -> Result<String, String> {
    // One that says no name is known by its address.
    let named = named.unwrap_or(expected.as_str());
    let is_right = match accepted {
        Some(accepted) => is_same_issuer(named, accepted),
        None => Url::parse(named).is_ok_and(|named| {
            let (outer, inner) = (named.path(), expected.path());
            named.origin() == expected.origin() && (within(outer, inner) || within(inner, outer))
        }),
    };
    if is_right {
        Ok(named.to_owned())
    } else {
        Err(format!(
            "its authorization server {} says that it is another one: {named} (if both are the same service, \
             `issuer = \"{named}\"` under [mcp.NAME] in your own outrigger.toml accepts it)",
            accepted.unwrap_or(expected.as_str())
        ))
    }
}

/// Returns whether two issuers are equal; many omit a trailing `/`.
pub(crate) fn is_same_issuer(a: &str, b: &str) -> bool {
    a.trim_end_matches('/') == b.trim_end_matches('/')
}

/// Returns whether `/a/b` is at or below `/a`.
fn within(outer: &str, inner: &str) -> bool {
    let outer = outer.trim_end_matches('/');
    inner
        .strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Reads an authorization server's metadata; `None` if it says of each place that there are none.
async fn issuer_metadata(issuer: &Url, way: &LoginWay) -> Result<Option<Value>, String> {
    let path = issuer.path().trim_end_matches('/');
    let mut places = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{path}/.well-known/openid-configuration"));
    }
    let mut refused = None;
    for place in places {
        let place = issuer.join(&place).map_err(|error| error.to_string())?;
        match json(&place, way).await {
            Ok(Some(meta)) => return Ok(Some(meta)),
            Ok(None) => {}
            // Some storage answers 403 for a file that is not there; the metadata may be at the next place.
            Err(unread) if unread.status.is_some() => {
                refused.get_or_insert(unread.reason);
            }
            Err(unread) => return Err(unread.reason),
        }
    }
    refused.map_or(Ok(None), Err)
}

impl Endpoints {
    /// Checks that secrets of an earlier login are for this authorization server, and for this endpoint of it: an issuer that the user
    /// accepts has its metadata where the server says.
    ///
    /// # Errors
    /// The reason, as the end of a sentence.
    pub(crate) fn check_login(&self, tokens: &Tokens) -> Result<(), String> {
        let issuer = tokens.issuer.as_deref();
        if !issuer.is_some_and(|issuer| is_same_issuer(issuer, &self.issuer)) {
            return Err(format!(
                "its authorization server is another one than at the login: {}",
                self.issuer
            ));
        }
        if tokens.token_endpoint.as_deref() == Some(self.token.as_str()) {
            Ok(())
        } else {
            Err(format!(
                "its endpoint for tokens is another one than at the login: {}",
                self.token
            ))
        }
    }
}

impl LoginWay {
    /// Creates one for a server at this URL.
    async fn of(server: &Url, way: &Way) -> Self {
        Self {
            way: way.clone(),
            near: Near::of(server).await,
        }
    }

    /// Like `self`, for an endpoint that the user configured.
    pub(crate) fn of_the_users(&self) -> Self {
        Self {
            near: Near(true),
            ..self.clone()
        }
    }

    /// Creates a client for an endpoint named by a server. For a remote server it connects only to public addresses, whatever a name
    /// resolves to; a proxy of the user resolves names itself.
    fn client(&self, url: &Url, redirects: Redirects) -> Result<Client, reqwest::Error> {
        client(url.as_str(), &self.way, redirects, !self.near.0)
    }
}

/// Whether a server is on this machine or in its network. A remote server may not name endpoints there, where listeners would take a
/// request of this machine for the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Near(bool);

impl Near {
    async fn of(server: &Url) -> Self {
        let leads_here = async {
            let host = server.host_str().unwrap_or_default();
            outrigger_net::leads_to_local(host).await
        };
        Self(outrigger_net::is_local(server) || leads_here.await)
    }

    fn acceptable(self, text: &str) -> Result<Url, String> {
        let url = acceptable(text)?;
        if !self.0 && outrigger_net::is_local(&url) {
            Err(format!(
                "it names {url}, which is of this machine or its network, and the server is not"
            ))
        } else {
            Ok(url)
        }
    }

    fn redirects(self) -> Redirects {
        if self.0 {
            Redirects::Any
        } else {
            Redirects::Public
        }
    }
}

/// Checks that tokens and codes are only sent to https URLs, or to this machine.
pub(crate) fn acceptable(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|_| format!("`{text}` is not an address"))?;
    let local = matches!(
        url.host_str(),
        Some("localhost" | "127.0.0.1" | "[::1]" | "::1")
    );
    match url.scheme() {
        "https" => Ok(url),
        "http" if local => Ok(url),
        _ => Err(format!("{url} is not an https address")),
    }
}

fn root(url: &Url) -> Url {
    let mut root = url.clone();
    root.set_path("/");
    root.set_query(None);
    root.set_fragment(None);
    root
}

fn texts(value: &Value) -> Option<Vec<String>> {
    let list = value.as_array()?.iter();
    Some(
        list.filter_map(|item| item.as_str().map(str::to_owned))
            .collect(),
    )
}

/// A document of which nobody said that there is none.
#[derive(Debug)]
struct Unread {
    /// The server's answer, if there was one.
    status: Option<StatusCode>,
    /// What failed, as the end of a sentence.
    reason: String,
}

impl From<String> for Unread {
    fn from(reason: String) -> Self {
        Self {
            status: None,
            reason,
        }
    }
}

/// Fetches a document; `None` if the server says that there is none. A limit of requests or a refusal does not say that: what is not
/// read at such a moment is not replaced by a guess.
async fn json(url: &Url, way: &LoginWay) -> Result<Option<Value>, Unread> {
    let failed = |error: reqwest::Error| format!("{}: {}", host(url), reason(&error, url.as_str()));
    outrigger_net::check(url).map_err(|refused| refused.to_string())?;
    let client = way.client(url, way.near.redirects()).map_err(failed)?;
    let request = client
        .get(url.clone())
        .header("accept", "application/json")
        .header("mcp-protocol-version", crate::wire::VERSION)
        .timeout(WAIT);
    let response = request.send().await.map_err(failed)?;
    let status = response.status();
    if matches!(
        status,
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::GONE
    ) {
        return Ok(None);
    }
    if !status.is_success() {
        return Err(Unread {
            status: Some(status),
            reason: format!("{url} answered HTTP {status}"),
        });
    }
    let body = body(response).await?;
    // An HTML page instead is the same as nothing.
    Ok(serde_json::from_slice(&body)
        .ok()
        .filter(|value: &Value| value.is_object()))
}

pub(crate) fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default()
}

/// Reads the body of a response, up to the limit.
pub(crate) async fn body(mut response: reqwest::Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| error.to_string())? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_BYTES {
            return Err("the answer is too long".to_owned());
        }
    }
    Ok(body)
}

/// Sends a form or a document; returns the status and the JSON of the response.
pub(crate) async fn post(
    url: &Url,
    way: &LoginWay,
    content_type: &str,
    authorization: Option<String>,
    text: String,
) -> Result<(StatusCode, Value), String> {
    let failed = |error: reqwest::Error| format!("{}: {}", host(url), reason(&error, url.as_str()));
    let checked = outrigger_net::check(url).and_then(|()| outrigger_net::check_receiver(url));
    checked.map_err(|refused| refused.to_string())?;
    let client = way.client(url, Redirects::None).map_err(failed)?;
    let mut request = client
        .post(url.clone())
        .header("accept", "application/json")
        .header("content-type", content_type)
        .timeout(WAIT)
        .body(text);
    if let Some(authorization) = authorization {
        request = request.header("authorization", authorization);
    }
    let response = request.send().await.map_err(failed)?;
    let status = response.status();
    let body = body(response).await?;
    Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
}

#[cfg(test)]
mod tests;
