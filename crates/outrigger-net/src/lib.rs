//! HTTP clients of this process: each connects to the hosts that the policy of the machine allows (`[forbid] hosts`)
//! and no others, wherever the address comes from (a model, a provider, an MCP server, a redirect, a name that is
//! resolved anew).
//!
//! [`check`] decides about an address before a request; clients of [`builder`] check the resolved address when they connect.
//! The policy is the machine's, so there is one per process.
//!
//! [`Callback`] is the server to which a browser returns after a login.
//!
//! This crate does not decide about processes (the sandbox and its proxy do), or about what a user has to approve.

mod callback;
mod resolver;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Mutex, Once, OnceLock, PoisonError, RwLock};

use outrigger_network_proxy::hosts::{Hosts, Reach, is_public};
use reqwest::{ClientBuilder, Url};

pub use callback::Callback;
use resolver::Guarded;
pub use resolver::{LocalFn, Lookup, NoSuchHost};

/// A URL that must not be requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The policy forbids the host, or an address of its name.
    #[error("the policy of this machine forbids the host {host} (`forbid.hosts`)")]
    Forbidden {
        /// As named in the URL.
        host: String,
    },
    /// The name resolves to this machine or its network.
    #[error("{host} leads to {address}, an address of this machine or its network")]
    Local {
        /// As named in the URL.
        host: String,
        /// The resolved address.
        address: IpAddr,
    },
    /// A command of a session listens where a service of the user's is expected.
    #[error(
        "a command that Outrigger runs listens at {host}:{port}, so nothing is sent there (start your service, or end that command)"
    )]
    Command {
        /// As named in the URL.
        host: String,
        /// Its port.
        port: u16,
    },
}

impl Refused {
    /// Returns a stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Forbidden { .. } => "network.forbidden",
            Self::Local { .. } => "network.private",
            Self::Command { .. } => "network.command",
        }
    }
}

fn forbidden() -> &'static RwLock<Hosts> {
    static FORBIDDEN: OnceLock<RwLock<Hosts>> = OnceLock::new();
    FORBIDDEN.get_or_init(RwLock::default)
}

/// Sets the forbidden hosts of the machine's policy. An unreadable list forbids everything.
pub fn forbid(hosts: &[String]) {
    let hosts = Hosts::forbidden(hosts);
    *forbidden().write().unwrap_or_else(PoisonError::into_inner) = hosts;
}

/// What the policy leaves of all addresses.
#[must_use]
pub fn reach() -> Reach {
    let forbidden = forbidden().read();
    let forbidden = forbidden.unwrap_or_else(PoisonError::into_inner).clone();
    Reach::of(None, forbidden)
}

/// Checks a URL by its host's name or literal address.
///
/// # Errors
/// [`Refused::Forbidden`].
pub fn check(url: &Url) -> Result<(), Refused> {
    let host = host_of(url);
    let port = url.port_or_known_default().unwrap_or_default();
    reach()
        .before(&host, port)
        .map_err(|_| Refused::Forbidden { host })
}

/// Like [`check`], for a URL as text. An invalid one is allowed here: its request fails.
///
/// # Errors
/// [`Refused::Forbidden`].
pub fn check_text(url: &str) -> Result<(), Refused> {
    Url::parse(url).map_or(Ok(()), |url| check(&url))
}

/// Checks that no command of a session has taken the place of a service on this machine, for requests with the user's keys. Reads
/// `/proc` for a URL of this machine.
///
/// # Errors
/// [`Refused::Command`].
pub fn check_receiver(url: &Url) -> Result<(), Refused> {
    let host = host_of(url);
    let port = url.port_or_known_default().unwrap_or_default();
    if outrigger_sandbox::command_listens(&host, port) {
        return Err(Refused::Command { host, port });
    }
    Ok(())
}

/// Warns, once for each receiver and host, that a secret is sent to another machine without encryption.
pub fn warn_in_the_clear(receiver: &str, url: &Url) {
    static WARNED: OnceLock<Mutex<BTreeSet<String>>> = OnceLock::new();
    if !is_in_the_clear(url) {
        return;
    }
    let host = host_of(url);
    let warned = WARNED.get_or_init(Mutex::default);
    let mut warned = warned.lock().unwrap_or_else(PoisonError::into_inner);
    if warned.insert(format!("{receiver} {host}")) {
        tracing::warn!(
            "[{receiver}] its key is sent unencrypted to another machine, {host}: everybody on the way can read it; use https"
        );
    }
}

/// Returns whether requests go to another machine without encryption.
fn is_in_the_clear(url: &Url) -> bool {
    let host = host_of(url);
    url.scheme() == "http" && outrigger_sandbox::own_addresses(&host).is_empty()
}

/// Returns the host of a URL as named in rules.
fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    host.trim_matches(['[', ']'])
        .trim_end_matches('.')
        .to_ascii_lowercase()
}

/// Returns whether a URL names this machine or its network, by a literal address or as `localhost`.
#[must_use]
pub fn is_local(url: &Url) -> bool {
    let host = host_of(url);
    match host.parse::<IpAddr>() {
        Ok(address) => !is_public(address),
        Err(_) => is_localhost(&host),
    }
}

fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// Returns whether a name resolves to this machine or its network. One that does not resolve does not.
pub async fn leads_to_local(name: &str) -> bool {
    let name = name.trim_matches(['[', ']']);
    let found = tokio::net::lookup_host((name, 0)).await;
    found.is_ok_and(|mut all| all.any(|it| !is_public(it.ip())))
}

/// Returns a builder of clients that do not connect to what the policy forbids, whatever a name resolves to.
pub fn builder() -> ClientBuilder {
    guarded_builder(Guarded::default())
}

/// Like [`builder`], for clients that connect to public addresses only. A name for which `may_be_local` holds, and
/// `localhost`, may also resolve to this machine or its network.
pub fn public_builder(may_be_local: LocalFn) -> ClientBuilder {
    guarded_builder(Guarded::public(may_be_local))
}

fn guarded_builder(resolver: Guarded) -> ClientBuilder {
    static CRYPTO: Once = Once::new();
    CRYPTO.call_once(|| {
        // Fails only if the process has a provider already, as tests with a TLS server of their own do.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    reqwest::Client::builder().dns_resolver(resolver)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attempt 1369 of docs/bypass/attempts.toml.
    #[test]
    fn only_this_machine_gets_keys_in_the_clear() {
        for (url, is) in [
            ("http://127.0.0.1:80/", false),
            ("http://localhost/", false),
            ("http://[::1]/", false),
            ("http://a.localhost/", false),
            ("https://example.com/", false),
            ("http://example.com/", true),
            ("http://192.168.0.1/", true),
            ("http://localhost.example.com/", true),
        ] {
            assert_eq!(is_in_the_clear(&Url::parse(url).unwrap()), is, "{url}");
        }
    }

    #[test]
    fn addresses_of_this_machine_and_its_network_are_known() {
        for (url, local) in [
            ("http://127.0.0.1:80/", true),
            ("http://localhost/", true),
            ("http://LOCALHOST./", true),
            ("http://a.localhost/", true),
            ("http://10.1.2.3/", true),
            ("http://192.168.0.1/", true),
            ("http://169.254.169.254/latest", true),
            ("http://100.64.0.1/", true),
            ("http://[::1]/", true),
            ("http://[::ffff:127.0.0.1]/", true),
            ("http://[fd00::1]/", true),
            ("http://0/", true),
            ("http://2130706433/", true),
            ("http://0x7f.1/", true),
            ("https://example.com/", false),
            ("http://93.184.216.34/", false),
            ("http://localhost.example.com/", false),
        ] {
            assert_eq!(is_local(&Url::parse(url).unwrap()), local, "{url}");
        }
    }

    /// The only test that sets the policy of this process.
    #[tokio::test]
    async fn what_the_policy_forbids_is_not_asked() {
        forbid(&[
            "evil.example".into(),
            "*.bad.example".into(),
            "127.0.0.3".into(),
            "[::1]:8".into(),
        ]);
        for (url, refused) in [
            ("http://evil.example/", true),
            ("https://EVIL.example.:8443/x", true),
            ("http://a@evil.example/", true),
            ("http://a.bad.example/", true),
            ("http://bad.example/", false),
            ("http://127.0.0.3/", true),
            ("http://0x7f000003/", true),
            ("http://[::ffff:127.0.0.3]/", true),
            ("http://[::1]:8/", true),
            ("http://[::1]:9/", false),
            ("http://127.0.0.1/", false),
        ] {
            assert_eq!(check_text(url).is_err(), refused, "{url}");
        }
        for (name, refused) in [("localhost", false), ("127.0.0.3", true)] {
            let found = resolver::look_up(name, None).await;
            assert_eq!(found.is_err(), refused, "{name}");
        }
        let never: LocalFn = std::sync::Arc::new(|_| false);
        let refused = resolver::look_up("ip6-localhost.localdomain.localhost", Some(&never)).await;
        drop(refused);
        let always: LocalFn = std::sync::Arc::new(|_| true);
        assert!(resolver::look_up("localhost", Some(&always)).await.is_ok());
        forbid(&["no host at all".into()]);
        assert!(check_text("https://example.com").is_err());
        forbid(&[]);
        assert!(check_text("http://evil.example/").is_ok());
    }
}
