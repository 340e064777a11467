//! The URLs of login servers and their services.

use reqwest::Url;

/// The login servers and their services: the real ones, or a stand-in for all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoginServers {
    stand_in: Option<Url>,
}

impl LoginServers {
    /// Replaces all servers by one on this machine, for tests. Tokens are sent there, so no other machine may be named.
    #[must_use]
    pub fn stand_in(address: &str) -> Option<Self> {
        let url = Url::parse(address).ok()?;
        let host = url.host_str()?.trim_matches(['[', ']']);
        let is_loopback = match host.parse::<std::net::IpAddr>() {
            Ok(address) => address.is_loopback(),
            Err(_) => host == "localhost",
        };
        (url.scheme() == "http" && is_loopback).then_some(Self {
            stand_in: Some(url),
        })
    }

    /// Returns the URL to request for this one: the path is kept.
    pub(super) fn at(&self, real: &str) -> String {
        let stand_in = || {
            let url = self.stand_in.as_ref()?;
            let (host, port) = (url.host_str()?, url.port_or_known_default()?);
            let path = Url::parse(real).ok()?.path().to_owned();
            let path = path.trim_end_matches('/');
            Some(format!("http://{host}:{port}{path}"))
        };
        stand_in().unwrap_or_else(|| real.to_owned())
    }

    /// Returns the port of the callback. The real servers accept only one port.
    pub(super) fn port(&self, real: u16) -> u16 {
        match self.stand_in {
            Some(_) => 0,
            None => real,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_stands_in() {
        for (address, want) in [
            ("http://127.0.0.1:7", true),
            ("http://localhost:7/", true),
            ("http://[::1]:7", true),
            ("https://127.0.0.1:7", false),
            ("http://10.0.0.1", false),
            ("http://localhost.evil.test", false),
            ("http://127.0.0.1.evil.test", false),
            ("http://127.0.0.1@evil.test", false),
            ("evil.test", false),
        ] {
            let found = LoginServers::stand_in(address);
            assert_eq!(found.is_some(), want, "{address}");
        }
        let servers = LoginServers::stand_in("http://127.0.0.1:7").unwrap();
        let real = "https://auth.test/oauth/token";
        assert_eq!(servers.at(real), "http://127.0.0.1:7/oauth/token");
        assert_eq!(servers.at("https://api.test"), "http://127.0.0.1:7");
        assert_eq!(LoginServers::default().at(real), real);
    }
}
