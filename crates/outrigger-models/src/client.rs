//! The HTTP clients, made when they are first needed.
//!
//! Loading the system's root certificates costs tens of milliseconds, so a client for `http://` is kept apart from the
//! one for `https://` and loads none.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::Client;

/// What every request says of the program.
pub(crate) const USER_AGENT: &str = concat!("outrigger/", env!("CARGO_PKG_VERSION"));

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Both clients. One object serves all providers, so connections are shared.
#[derive(Debug, Default)]
pub(crate) struct Http {
    plain: OnceLock<Result<Client, String>>,
    tls: OnceLock<Result<Client, String>>,
}

impl Http {
    /// The client for an address, or why there is none.
    pub(crate) fn client(&self, url: &str) -> Result<&Client, String> {
        let secure = url
            .get(..8)
            .is_some_and(|s| s.eq_ignore_ascii_case("https://"));
        let cell = if secure { &self.tls } else { &self.plain };
        cell.get_or_init(|| build(secure)).as_ref().map_err(Clone::clone)
    }
}

fn build(secure: bool) -> Result<Client, String> {
    // Fails only when a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        // A redirect would carry the key to another place; the error names that place instead.
        .redirect(reqwest::redirect::Policy::none());
    let builder = if secure {
        builder
    } else {
        builder.tls_certs_only([])
    };
    builder.build().map_err(|e| error_text(&e))
}

/// An error with its causes, without the address (which may hold a key as a query parameter).
pub(crate) fn error_text(error: &reqwest::Error) -> String {
    use std::error::Error as _;
    let mut text = String::new();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let part = inner.to_string();
        if !text.contains(&part) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&part);
        }
        cause = inner.source();
    }
    if text.is_empty() {
        text = if error.is_timeout() {
            "timed out".into()
        } else {
            "request failed".into()
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plain_client_is_cheap() {
        // The crypto provider is process wide; take it out of the measurement as other users would pay for it too.
        let first = std::time::Instant::now();
        let http = Http::default();
        assert!(http.client("http://127.0.0.1:1/v1").is_ok());
        let first = first.elapsed();
        let again = std::time::Instant::now();
        assert!(build(false).is_ok());
        let again = again.elapsed();
        println!("plain client: first {first:?}, again {again:?}");
        assert!(http.tls.get().is_none(), "no TLS client without need");
    }
}
