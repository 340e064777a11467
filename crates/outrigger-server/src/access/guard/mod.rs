//! The checks that precede everything else for a request over TCP.
//!
//! A name in `Host` that is not this server's is refused (a page can make any name point to 127.0.0.1). So is an `Origin` that is not on
//! OpenCode's list, the server's own or the user's, and a browser's request for a page of another site without one (an image, a link), and a
//! `POST` of another page that a form could send. Then the password is checked, in OpenCode's two forms: `Authorization: Basic`, or
//! `auth_token` in the query for clients that cannot send headers (`EventSource`, web sockets). Our own page uses a token that is valid for
//! the server's life instead ([`super::page_session`]).

#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::uri::Authority;
use outrigger_bridge::ConnectionHandle;
use outrigger_protocol::message::NamedError;
use sha2::{Digest as _, Sha256};

use super::page_session::PageSession;
use crate::error::ApiError;
use crate::routes::page;

const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Kinds of bodies that a page may have sent anywhere (Fetch, "CORS-safelisted request-header").
const FORM_TYPES: [&str; 4] = [
    "",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "text/plain",
];

/// A user name and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// `opencode` in OpenCode.
    pub username: String,
    /// Never empty.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({}, ...)", self.username)
    }
}

/// Decides which requests are allowed.
#[derive(Clone, Debug)]
pub struct Guard {
    /// `None`: no password is needed.
    pub login: Option<Login>,
    /// The name or address of the listening socket.
    pub hostname: String,
    /// Further names that clients may use for this server.
    pub hosts: Vec<String>,
    /// Further permitted origins of pages.
    pub cors: Vec<String>,
    /// Desktop applications are permitted and, with a password, pages of OpenCode and of other servers on this machine, as in
    /// OpenCode.
    pub has_pages: bool,
    /// How our own page signs in, if it must.
    pub page: Option<Arc<PageSession>>,
}

impl Guard {
    /// Wraps a router with these checks.
    pub fn around(self, router: Router) -> Router {
        router.layer(from_fn_with_state(Arc::new(self), check))
    }

    fn knows_host(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
            let bound: Option<IpAddr> = self.hostname.parse().ok();
            // An address cannot be made to point elsewhere, so any is fine if the server listens on all.
            return address.to_canonical().is_loopback()
                || bound.is_some_and(|bound| bound.is_unspecified() || bound == address);
        }
        host == "localhost"
            || host.ends_with(".localhost")
            || std::iter::once(&self.hostname)
                .chain(&self.hosts)
                .any(|known| known.eq_ignore_ascii_case(host))
    }

    /// Whether the password of a request may be one that the browser has kept, and the page does not know: the page is of another
    /// program of this machine that the user has not named, and a form of any page can send the like.
    fn may_be_forged(&self, request: &Request, origin: &str, host: &str) -> bool {
        let authority = origin.strip_prefix("http://").unwrap_or_default();
        let is_of_other_program = is_local(authority.rsplit_once(':').map_or(authority, |it| it.0))
            || is_local(authority);
        self.login.is_some()
            && is_of_other_program
            && !authority.eq_ignore_ascii_case(host)
            && !self.cors.iter().any(|known| known == origin)
            && is_cors_simple_request(request)
    }

    fn knows_origin(&self, origin: &str, host: Option<&str>) -> bool {
        if self.cors.iter().any(|known| known == origin) {
            return true;
        }
        if self.has_pages && ["oc://renderer", "tauri://localhost"].contains(&origin) {
            return true;
        }
        let Ok(uri) = origin.parse::<Uri>() else {
            return false;
        };
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return false;
        };
        if authority.as_str().contains('@') || uri.path() != "/" || uri.query().is_some() {
            return false;
        }
        let name = authority.host();
        // A suffix that is not a number is not a port, but a part of another name.
        let port = authority.as_str().strip_prefix(name).unwrap_or_default();
        let number = port.strip_prefix(':').unwrap_or_default();
        if !port.is_empty() && number.parse::<u16>().is_err() {
            return false;
        }
        let own = host.is_some_and(|host| host.eq_ignore_ascii_case(authority.as_str()));
        match scheme {
            "http" | "https" if own => true,
            _ if !self.has_pages => false,
            "http" | "https" if name == "tauri.localhost" => true,
            // Without a password, a page of a development server that the model started would be a client.
            "http" => self.login.is_some() && is_local(name),
            // OpenCode's own pages.
            "https" => {
                self.login.is_some() && (name == "opencode.ai" || name.ends_with(".opencode.ai"))
            }
            _ => false,
        }
    }

    fn knows_user(&self, request: &Request) -> bool {
        let Some(login) = &self.login else {
            return true;
        };
        if let (Some(page), Some(token)) = (&self.page, page_token(request)) {
            return page.knows(token);
        }
        let Some(token) = token(request) else {
            return false;
        };
        let Ok(given) = STANDARD.decode(token) else {
            return false;
        };
        // Digests have the same length, and all their bytes are compared, so the timing reveals nothing.
        let known = Sha256::digest(format!("{}:{}", login.username, login.password));
        let given = Sha256::digest(&given);
        let different = known
            .iter()
            .zip(given.iter())
            .fold(0_u8, |sum, (a, b)| sum | (a ^ b));
        std::hint::black_box(different) == 0
    }
}

/// Returns the client's credentials in base64. As in OpenCode, the query takes precedence over the header.
fn token(request: &Request) -> Option<String> {
    let query = Query::<Vec<(String, String)>>::try_from_uri(request.uri()).ok();
    let named = query.and_then(|Query(pairs)| {
        pairs
            .into_iter()
            .find(|(key, _)| key == "auth_token")
            .map(|(_, value)| value)
            .filter(|value| !value.is_empty())
    });
    if let Some(token) = named {
        // An unencoded plus sign has become a blank.
        return Some(token.replace(' ', "+"));
    }
    let value = only(request.headers(), &header::AUTHORIZATION)?
        .to_str()
        .ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("basic")
        .then(|| token.trim().to_owned())
}

/// Returns the token of our own page.
fn page_token(request: &Request) -> Option<&str> {
    let value = only(request.headers(), &header::AUTHORIZATION)?.to_str();
    value.ok()?.strip_prefix("Bearer ")
}

/// Returns the value of a header that occurs exactly once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

/// Whether this is a name of this machine, as pages of other programs on it have it.
fn is_local(name: &str) -> bool {
    ["localhost", "127.0.0.1", "[::1]"].contains(&name)
}

/// Returns whether a browser sends this cross-origin without a preflight (Fetch: a `POST` with a safelisted content type and
/// no headers of ours). All others need a preflight, which carries no password and is refused.
fn is_cors_simple_request(request: &Request) -> bool {
    let ours = ["x-opencode-", "x-outrigger-"];
    let mut names = request.headers().keys();
    let has_ours = names.any(|name| ours.iter().any(|it| name.as_str().starts_with(it)));
    let kind = request
        .headers()
        .get(header::CONTENT_TYPE)
        .map(|it| it.to_str().unwrap_or_default())
        .map(|it| it.split(';').next().unwrap_or_default().trim());
    let is_of_form = kind.is_none_or(|kind| {
        let mut of_forms = FORM_TYPES.iter();
        of_forms.any(|it| it.eq_ignore_ascii_case(kind))
    });
    request.method() == Method::POST && is_of_form && !has_ours
}

/// Marks a request without a password whose ticket its route must check. It starts no agent: unauthenticated clients must not choose a folder's plugins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByTicket;

/// For routes of the page: the page sessions, and the checked `Host`.
#[derive(Clone, Debug)]
pub(crate) struct PageAt {
    pub(crate) session: Arc<PageSession>,
    pub(crate) host: String,
}

async fn check(State(guard): State<Arc<Guard>>, mut request: Request, next: Next) -> Response {
    let host = match host(&guard, &request) {
        Ok(host) => host,
        Err(error) => return error.into_response(),
    };
    let origin = match origin(&guard, &request, &host) {
        Ok(origin) => origin,
        Err(error) => return error.into_response(),
    };
    let preflight = request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    // `None` if no port is open.
    let connection = request
        .extensions()
        .get::<ConnectInfo<ConnectionHandle>>()
        .cloned();
    let authenticated = || {
        if let Some(ConnectInfo(connection)) = &connection {
            connection.authenticated();
        }
    };
    if let Some(session) = &guard.page {
        let at = PageAt {
            session: Arc::clone(session),
            host,
        };
        request.extensions_mut().insert(at);
    }
    let mut response = if origin.is_some() && preflight {
        permitted(&request)
    } else if guard.knows_user(&request) {
        authenticated();
        next.run(request).await
    } else if page::is_page(request.method(), request.uri())
        || page::is_sign_in(request.method(), request.uri())
    {
        // The route checks the password itself.
        next.run(request).await
    } else if brings_ticket(request.uri()) {
        // A page's web socket cannot send headers; the ticket was given to a client that could.
        request.extensions_mut().insert(ByTicket);
        let response = next.run(request).await;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            authenticated();
        }
        response
    } else {
        refused()
    };
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    response
}

/// Returns whether a request carries its own proof, a ticket, which its handler checks. A browser cannot send a password with a WebSocket,
/// so the guard lets these through.
#[must_use]
pub fn brings_ticket(uri: &Uri) -> bool {
    let parts: Vec<&str> = uri.path().split('/').collect();
    let query = Query::<Vec<(String, String)>>::try_from_uri(uri);
    matches!(parts.as_slice(), ["", "pty", id, "connect"] if !id.is_empty())
        && query.is_ok_and(|Query(pairs)| pairs.iter().any(|(k, v)| k == "ticket" && !v.is_empty()))
}

/// Returns the name that the client uses for this server.
fn host(guard: &Guard, request: &Request) -> Result<String, ApiError> {
    let named = only(request.headers(), &header::HOST)
        .and_then(|host| host.to_str().ok())
        .ok_or_else(|| ApiError::forbidden("a request needs one Host header"))?;
    // A request line with an absolute URL names the server a second time.
    let names = [
        Some(named),
        request.uri().authority().map(Authority::as_str),
    ];
    for name in names.into_iter().flatten() {
        let known = name
            .parse::<Authority>()
            .is_ok_and(|at| !name.contains('@') && guard.knows_host(at.host()));
        if !known {
            return Err(ApiError::forbidden(format!(
                "`{name}` is not a name of this server; start it with --allow-host if it should be"
            )));
        }
    }
    Ok(named.to_owned())
}

/// Returns whether a browser reports that a page of another site caused the request: for an image, a frame or a link it sends no origin.
/// Other programs do not send this.
fn is_of_another_site(request: &Request) -> bool {
    let mut sites = request.headers().get_all(SEC_FETCH_SITE).iter();
    sites.any(|site| !["same-origin", "none"].iter().any(|it| site == *it))
}

/// Returns whether the user followed a link to our page, from a file, a message or another site. The page cannot be framed.
fn opens_page(request: &Request) -> bool {
    let says = |name: &str, value: &str| request.headers().get(name).is_some_and(|it| it == value);
    page::is_page(request.method(), request.uri())
        && says("sec-fetch-mode", "navigate")
        && says("sec-fetch-dest", "document")
}

/// Checks the origin of the requesting page, if there is one.
fn origin(guard: &Guard, request: &Request, host: &str) -> Result<Option<HeaderValue>, ApiError> {
    if !request.headers().contains_key(header::ORIGIN) {
        return if is_of_another_site(request) && !opens_page(request) {
            Err(ApiError::forbidden(
                "pages of other sites may not ask this server",
            ))
        } else {
            Ok(None)
        };
    }
    let origin = only(request.headers(), &header::ORIGIN);
    let known = origin
        .and_then(|origin| origin.to_str().ok())
        .is_some_and(|origin| guard.knows_origin(origin, Some(host)));
    if !known {
        return Err(ApiError::forbidden(format!(
            "pages of {} may not ask this server; start it with --cors if they should",
            origin.map_or_else(
                || "that origin".into(),
                |o| String::from_utf8_lossy(o.as_bytes())
            )
        )));
    }
    let text = origin.and_then(|it| it.to_str().ok()).unwrap_or_default();
    if guard.may_be_forged(request, text, host) {
        return Err(ApiError::forbidden(format!(
            "a POST of a page of {text} needs `content-type: application/json`, so that its browser asks whether the page may send it; start \
             the server with --cors {text} if that page is yours"
        )));
    }
    Ok(origin.cloned())
}

/// Answers a preflight request of a page. These carry no password.
fn permitted(request: &Request) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, HEAD, PUT, PATCH, POST, DELETE"),
    );
    if let Some(wanted) = request
        .headers()
        .get(header::ACCESS_CONTROL_REQUEST_HEADERS)
    {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    headers.insert(
        header::ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from_static("86400"),
    );
    headers.append(
        header::VARY,
        HeaderValue::from_static("Access-Control-Request-Headers"),
    );
    response
}

pub(crate) fn refused() -> Response {
    let error = NamedError::new(
        "Unauthorized",
        "this server asks for a password (OPENCODE_SERVER_PASSWORD)",
    );
    let mut response = ApiError::named(StatusCode::UNAUTHORIZED, error).into_response();
    response.headers_mut().insert(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_static("Basic realm=\"Secure Area\""),
    );
    response
}
