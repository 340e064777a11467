//! The HTTP clients, created on first use.
//!
//! Loading the system's root certificates costs tens of milliseconds, so a client for `http://` is separate from the
//! one for `https://` and loads none.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::Client;

/// The user agent of every request.
pub(crate) const USER_AGENT: &str = concat!("outrigger/", env!("CARGO_PKG_VERSION"));

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The clients. One object serves all providers, so connections are shared.
#[derive(Default)]
pub(crate) struct Http {
    /// The URL of the proxy for all requests, including its credentials.
    proxy: Option<String>,
    local: OnceLock<Result<Client, String>>,
    plain: OnceLock<Result<Client, String>>,
    tls: OnceLock<Result<Client, String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `http://` on this machine: without a proxy, which could not reach it.
    Local,
    Plain,
    Tls,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http")
            .field("proxied", &self.proxy.is_some())
            .finish_non_exhaustive()
    }
}

impl Http {
    /// Creates clients that use this proxy.
    pub(crate) fn through(proxy: &str) -> Self {
        Self {
            proxy: Some(proxy.to_owned()),
            ..Self::default()
        }
    }

    /// Returns the client for a URL, or why there is none.
    pub(crate) fn client(&self, url: &str) -> Result<&Client, String> {
        check(url).map_err(|refused| refused.to_string())?;
        let kind = kind(url);
        let cell = match kind {
            Kind::Local => &self.local,
            Kind::Plain => &self.plain,
            Kind::Tls => &self.tls,
        };
        cell.get_or_init(|| build(kind, self.proxy.as_deref()))
            .as_ref()
            .map_err(Clone::clone)
    }
}

/// Checks that a model's requests, with the key and the conversation, may be sent to a URL.
///
/// # Errors
/// The policy forbids the host, or a command of a session listens there.
pub(crate) fn check(url: &str) -> Result<(), outrigger_net::Refused> {
    outrigger_net::check_text(url)?;
    reqwest::Url::parse(url).map_or(Ok(()), |url| outrigger_net::check_receiver(&url))
}

fn kind(url: &str) -> Kind {
    let lower = url.to_ascii_lowercase();
    let Some(rest) = lower.strip_prefix("http://") else {
        return Kind::Tls;
    };
    let host = rest.split('/').next().unwrap_or_default();
    let is =
        |name: &str| host == name || host.strip_prefix(name).is_some_and(|t| t.starts_with(':'));
    let ipv4 = host.split(':').next().unwrap_or_default();
    if is("localhost")
        || is("[::1]")
        || (ipv4.starts_with("127.") && ipv4.parse::<std::net::Ipv4Addr>().is_ok())
    {
        Kind::Local
    } else {
        Kind::Plain
    }
}

/// Creates a client for a URL that is not a model's, configured like those of models.
///
/// # Errors
/// The system's certificates cannot be read, or the policy forbids the host.
pub fn http_client(url: &str) -> Result<Client, String> {
    outrigger_net::check_text(url).map_err(|refused| refused.to_string())?;
    build(kind(url), None)
}

fn build(kind: Kind, proxy: Option<&str>) -> Result<Client, String> {
    let builder = outrigger_net::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        // A redirect would send the key elsewhere; the error names the target instead.
        .redirect(reqwest::redirect::Policy::none());
    let builder = match kind {
        Kind::Local if proxy.is_none() => builder.tls_certs_only([]).no_proxy(),
        Kind::Local | Kind::Plain => builder.tls_certs_only([]),
        Kind::Tls => builder,
    };
    let builder = match proxy.map(reqwest::Proxy::all) {
        Some(proxy) => builder.proxy(proxy.map_err(|e| error_text(&e))?),
        None => builder,
    };
    builder.build().map_err(|e| error_text(&e))
}

/// Formats an error with its causes, without the URL (which may contain a key as a query parameter).
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
    fn addresses_and_their_clients() {
        for (url, want) in [
            ("https://api.test/v1", Kind::Tls),
            ("HTTP://127.0.0.1:8080/v1", Kind::Local),
            ("http://localhost/v1", Kind::Local),
            ("http://[::1]:1/v1", Kind::Local),
            ("http://localhost.evil.test/v1", Kind::Plain),
            ("http://127.0.0.1.evil.test/v1", Kind::Plain),
            ("http://192.168.0.2:1234", Kind::Plain),
        ] {
            assert_eq!(kind(url), want, "{url}");
        }
    }

    /// Reading the system's root certificates at every step costs another implementation 130 ms per step.
    #[test]
    fn a_client_is_made_once_and_serves_all_addresses_of_its_kind() {
        let http = Http::default();
        for (one, other) in [
            ("https://api.test/v1", "https://elsewhere.test:8443/v2"),
            ("http://127.0.0.1:1/v1", "http://localhost:2"),
        ] {
            let first: *const Client = http.client(one).unwrap();
            assert!(std::ptr::eq(first, http.client(one).unwrap()), "{one}");
            assert!(std::ptr::eq(first, http.client(other).unwrap()), "{other}");
        }
    }

    #[test]
    fn the_plain_client_loads_no_certificates() {
        let http = Http::default();
        assert!(http.client("http://127.0.0.1:1/v1").is_ok());
        assert!(http.tls.get().is_none());
    }
}
