//! The proxy that this machine itself needs for outgoing connections, if the user's environment names one.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// An upstream proxy. Its credentials are the host's secret: clients never see them.
#[derive(Clone, PartialEq, Eq)]
pub struct Upstream {
    pub(super) host: String,
    pub(super) port: u16,
    login: Option<String>,
    past: Vec<String>,
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl Upstream {
    /// Reads `HTTPS_PROXY` (or `ALL_PROXY`) and `NO_PROXY`, also in lower case. Only proxies with an unencrypted
    /// connection.
    #[must_use]
    pub fn of(env: &BTreeMap<String, String>) -> Option<Self> {
        let var = |name: &str| {
            env.get(&name.to_ascii_lowercase())
                .or_else(|| env.get(name))
                .filter(|it| !it.is_empty())
        };
        let address = var("HTTPS_PROXY").or_else(|| var("ALL_PROXY"))?;
        let rest = match address.split_once("://") {
            Some(("http", rest)) => rest,
            Some(_) => return None,
            None => address,
        };
        let rest = rest.split(['/', '?']).next().unwrap_or_default();
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => (Some(login.to_owned()), place),
            None => (None, rest),
        };
        let (host, port) = crate::hosts::authority(place, Some(80))?;
        let past = var("NO_PROXY").map(|list| {
            list.split(',')
                .map(|name| name.trim().trim_start_matches('.'))
                .filter(|name| !name.is_empty())
                .map(str::to_ascii_lowercase)
                .collect()
        });
        Some(Self {
            host,
            port,
            login,
            past: past.unwrap_or_default(),
        })
    }

    /// Returns whether connections to a host use it.
    pub(super) fn serves(&self, host: &str) -> bool {
        !self.past.iter().any(|name| {
            name == "*"
                || name == host
                || host
                    .strip_suffix(name.as_str())
                    .is_some_and(|start| start.ends_with('.'))
        })
    }

    /// Returns the header line with its credentials; empty if it has none.
    pub(super) fn login_line(&self) -> String {
        self.login
            .as_ref()
            .map(|login| {
                let login = STANDARD.encode(decoded(login));
                format!("proxy-authorization: Basic {login}\r\n")
            })
            .unwrap_or_default()
    }

    /// Returns the request for a tunnel.
    pub(super) fn connect(&self, host: &str, port: u16) -> Vec<u8> {
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        let login = self.login_line();
        format!("CONNECT {host}:{port} HTTP/1.1\r\nhost: {host}:{port}\r\n{login}\r\n").into_bytes()
    }
}

/// Decodes credentials of a URL.
fn decoded(login: &str) -> Vec<u8> {
    percent_encoding::percent_decode_str(login).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_environment_says() {
        let of = |pairs: &[(&str, &str)]| {
            let env = pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            Upstream::of(&env.collect())
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("HTTPS_PROXY", "")]), None);
        assert_eq!(of(&[("HTTPS_PROXY", "socks5://a:1")]), None);
        let got = of(&[
            ("HTTPS_PROXY", "http://me:p%40ss@proxy.corp:3128/"),
            ("no_proxy", "localhost, .corp"),
        ])
        .unwrap();
        assert_eq!((got.host.as_str(), got.port), ("proxy.corp", 3128));
        assert_eq!(
            ["a.com", "localhost", "git.corp", "corp", "notcorp"].map(|host| got.serves(host)),
            [true, false, false, false, true]
        );
        let connect = String::from_utf8(got.connect("::1", 443)).unwrap();
        assert_eq!(
            connect,
            "CONNECT [::1]:443 HTTP/1.1\r\nhost: [::1]:443\r\nproxy-authorization: Basic bWU6cEBzcw==\r\n\r\n"
        );
        assert!(!format!("{got:?}").contains("p%40ss"));
        assert_eq!(decoded("%+1%40%"), b"%+1@%");
    }
}
