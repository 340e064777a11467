//! `/outrigger/web/`: the page, which loads everything else over the API. Its files are embedded in the program and contain no secrets, so
//! they are served without a password; `Host` and `Origin` are checked as everywhere. See `access::page_session` for its sign-in.

use axum::extract::{DefaultBodyLimit, Path, Query};
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use outrigger_protocol::message::NamedError;
use serde::{Deserialize, Serialize};

use crate::access::guard::PageAt;
use crate::error::{ApiError, JsonResult};

/// The path of the page.
pub const PAGE: &str = "/outrigger/web/";
/// Where the page signs in, and identifies the server.
const SESSION: &str = "/outrigger/web/session";
/// Maximum bytes of a body from a client without a password.
const MAX_SIGN_IN: usize = 4096;

/// The content security policy of the page: it may run its own code, send requests to this server, and show images embedded in it. Text
/// never becomes code.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; font-src 'self'; img-src 'self' data: blob:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/outrigger/web", get(async || Redirect::permanent(PAGE)))
        .route(PAGE, get(async || answer(outrigger_web::INDEX)))
        .route(
            "/outrigger/web/{file}",
            get(async |Path(name): Path<String>| answer(&name)),
        )
        .route(SESSION, get(server).post(sign_in))
        .route("/outrigger/web/session/key", get(key))
        .route_layer(DefaultBodyLimit::max(MAX_SIGN_IN))
}

/// Returns whether a request is the page's sign-in after the user typed the password.
pub(crate) fn is_sign_in(method: &Method, uri: &Uri) -> bool {
    method == Method::POST && uri.path() == SESSION
}

#[derive(Deserialize)]
struct ServerQuery {
    nonce: Option<String>,
}

#[derive(Serialize)]
struct Server {
    /// The name of the server instance; `None` if no password is needed.
    instance: Option<String>,
    /// The proof for the page's nonce.
    proof: Option<String>,
}

async fn server(page: Option<Extension<PageAt>>, Query(asked): Query<ServerQuery>) -> Json<Server> {
    let page = page.map(|Extension(page)| page);
    Json(Server {
        instance: page.as_ref().map(|it| it.session.instance().to_owned()),
        proof: page.and_then(|it| it.session.proof(&it.host, &asked.nonce?)),
    })
}

#[derive(Deserialize)]
struct Typed {
    user: String,
    instance: String,
    nonce: String,
    proof: String,
}

#[derive(Serialize)]
struct Given {
    token: String,
    proof: String,
}

async fn sign_in(page: Option<Extension<PageAt>>, Json(typed): Json<Typed>) -> JsonResult<Given> {
    let Extension(page) = page.ok_or_else(none_needed)?;
    if typed.instance != page.session.instance() {
        let error = NamedError::new("Conflict", "the server was restarted: reload the page");
        return Err(ApiError::named(StatusCode::CONFLICT, error));
    }
    let signed_in = page
        .session
        .sign_in(&typed.user, &typed.nonce, &typed.proof)
        .ok_or_else(|| {
            let error = NamedError::new("Unauthorized", "wrong password");
            ApiError::named(StatusCode::UNAUTHORIZED, error)
        })?;
    Ok(Json(Given {
        token: signed_in.token,
        proof: signed_in.proof,
    }))
}

#[derive(Serialize)]
struct ServerKey {
    instance: String,
    /// `None` if the page cannot recognise a server.
    key: Option<String>,
}

/// Returns the key with which a signed-in page recognises this server.
async fn key(page: Option<Extension<PageAt>>) -> JsonResult<ServerKey> {
    let Extension(page) = page.ok_or_else(none_needed)?;
    Ok(Json(ServerKey {
        instance: page.session.instance().to_owned(),
        key: page.session.key(&page.host),
    }))
}

fn none_needed() -> ApiError {
    ApiError::missing("this server needs no password")
}

/// Returns whether a request is for a file of the page and nothing else.
pub(crate) fn is_page(method: &Method, uri: &Uri) -> bool {
    let named = uri.path().strip_prefix(PAGE);
    [Method::GET, Method::HEAD].contains(method)
        && (uri.path() == "/outrigger/web" || named.is_some_and(|name| !name.contains('/')))
}

fn answer(name: &str) -> Response {
    let Some(file) = outrigger_web::file(name) else {
        let message = if outrigger_web::is_built() {
            format!("the page has no file `{name}`")
        } else {
            "this program was built without the page (cargo xtask web)".to_owned()
        };
        return ApiError::missing(message).into_response();
    };
    let cache = if file.is_permanent {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let mut response = (StatusCode::OK, file.bytes).into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, file.media_type),
        (header::CACHE_CONTROL, cache),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(
        "cross-origin-opener-policy",
        HeaderValue::from_static("same-origin"),
    );
    headers.insert(
        "cross-origin-resource-policy",
        HeaderValue::from_static("same-origin"),
    );
    response
}
