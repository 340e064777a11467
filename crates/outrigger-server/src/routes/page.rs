//! `/outrigger/web/`: the page, which asks for everything else over the API. Its files are in the program and hold nothing secret, so they
//! are served without a password; which `Host` and whose `Origin` may ask is checked as everywhere.

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;

use crate::error::ApiError;

/// Where the page is.
pub const PAGE: &str = "/outrigger/web/";

/// What the page may do: run its own code, ask this server, show images that are in it. Text never becomes code.
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
}

/// Whether a request is for a file of the page and for nothing else.
pub(crate) fn is_page(method: &Method, uri: &Uri) -> bool {
    let named = uri.path().strip_prefix(PAGE);
    [Method::GET, Method::HEAD].contains(method)
        && (uri.path() == "/outrigger/web" || named.is_some_and(|name| !name.contains('/')))
}

fn answer(name: &str) -> Response {
    let Some(file) = outrigger_web::file(name) else {
        let message = match outrigger_web::is_built() {
            true => format!("the page has no file `{name}`"),
            false => "this program was built without the page (cargo xtask web)".to_owned(),
        };
        return ApiError::missing(message).into_response();
    };
    let cache = match file.is_permanent {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
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
