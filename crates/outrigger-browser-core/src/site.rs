//! Which addresses a tab may show, whether opened by the model, a link, a redirect or a script.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::pattern;

/// An address, in its parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Address<'a> {
    /// Without the colon.
    pub scheme: &'a str,
    /// As requested: in lower case, a name in its ASCII form.
    pub host: &'a str,
    /// Also if it is the default.
    pub port: u16,
    /// Whether it is local: this machine or its network.
    pub is_local: bool,
}

/// Why an address may not be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// `file:`, `javascript:`, `data:`, `chrome:` and all others but `http`, `https` and `about:blank`.
    Scheme(String),
    /// A port of this program's own server.
    OwnPort(u16),
    /// It is local, and no rule allows it by name.
    Local(String),
}

impl Refused {
    /// A stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Scheme(_) => "browser.scheme",
            Self::OwnPort(_) => "browser.own_port",
            Self::Local(_) => "browser.local",
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme(scheme) => {
                write!(
                    f,
                    "`{scheme}:` addresses are not shown; use http:// or https://"
                )
            }
            Self::OwnPort(port) => write!(f, "port {port} belongs to Outrigger's own server"),
            Self::Local(host) => write!(
                f,
                "{host} is on this machine or its network, and no rule allows it by name"
            ),
        }
    }
}

/// What a browser may show.
#[derive(Clone, Debug, Default)]
pub struct SiteRules {
    /// Ports of this program's servers.
    pub own_ports: Vec<u16>,
    /// Local origins that a rule allows by name, such as `http://127.0.0.1:3000`.
    pub local: Vec<String>,
}

impl SiteRules {
    /// Checks whether a tab may show an address, or a page may request it.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn judge(&self, address: Address<'_>) -> Result<(), Refused> {
        if !matches!(address.scheme, "http" | "https" | "ws" | "wss") {
            return Err(Refused::Scheme(address.scheme.into()));
        }
        if !address.is_local {
            return Ok(());
        }
        if self.own_ports.contains(&address.port) {
            return Err(Refused::OwnPort(address.port));
        }
        // A WebSocket belongs to its origin.
        let scheme = match address.scheme {
            "ws" => "http",
            "wss" => "https",
            other => other,
        };
        let origin = origin(scheme, address.host, address.port);
        if self.local.contains(&origin) {
            Ok(())
        } else {
            Err(Refused::Local(format!("{}:{}", address.host, address.port)))
        }
    }
}

/// Returns an origin, always with its port.
#[must_use]
pub fn origin(scheme: &str, host: &str, port: u16) -> String {
    format!("{scheme}://{host}:{port}")
}

/// Returns whether a site matches a list of patterns: a host, `*.host` for its subdomains, or a whole address with `*`.
#[must_use]
pub fn is_listed(list: &[String], host: &str, url: &str) -> bool {
    let fits = |rule: &String| {
        if rule.contains("://") {
            pattern::whole(rule, url)
        } else {
            pattern::whole(rule, host)
        }
    };
    list.iter().any(fits)
}

/// Returns why a host name may imitate another one.
#[must_use]
pub fn looks_like_another(host: &str) -> Option<&'static str> {
    if host.split('.').any(|label| label.starts_with("xn--")) {
        return Some("its name has characters that look like others (it is written as xn--…)");
    }
    let mut labels = host.rsplit('.');
    let below = labels.by_ref().skip(2);
    let known = [
        "google",
        "paypal",
        "apple",
        "microsoft",
        "github",
        "amazon",
        "facebook",
        "bank",
    ];
    for label in below {
        if known.contains(&label) || label == "com" || label == "org" || label == "net" {
            return Some("its name starts with that of another site");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_by_table() {
        let rules = SiteRules {
            own_ports: [4096].into(),
            local: [
                "http://127.0.0.1:3000".into(),
                "http://127.0.0.1:4096".into(),
            ]
            .into(),
        };
        let of = |scheme, host, port, is_local| {
            let address = Address {
                scheme,
                host,
                port,
                is_local,
            };
            rules.judge(address).map_err(|it| it.code()).err()
        };
        assert_eq!(of("https", "example.com", 443, false), None);
        assert_eq!(of("http", "127.0.0.1", 3000, true), None);
        assert_eq!(of("ws", "127.0.0.1", 3000, true), None);
        assert_eq!(of("http", "127.0.0.1", 3001, true), Some("browser.local"));
        // Not even if a rule names it.
        assert_eq!(
            of("http", "127.0.0.1", 4096, true),
            Some("browser.own_port")
        );
        for scheme in [
            "file",
            "javascript",
            "data",
            "chrome",
            "view-source",
            "blob",
            "ftp",
            "",
        ] {
            assert_eq!(of(scheme, "", 0, false), Some("browser.scheme"), "{scheme}");
        }
    }

    #[test]
    fn names_that_are_meant_to_be_taken_for_others() {
        for (host, want) in [
            ("xn--pypal-4ve.com", true),
            ("www.xn--80ak6aa92e.com", true),
            ("paypal.com.evil.example", true),
            ("paypal.evil.example", true),
            ("www.paypal.com", false),
            ("example.co.uk", false),
            ("127.0.0.1", false),
        ] {
            assert_eq!(looks_like_another(host).is_some(), want, "{host}");
        }
    }

    #[test]
    fn lists_of_sites() {
        let list: Vec<String> = [
            "bank.example".into(),
            "*.shop.example".into(),
            "https://x.example/pay*".into(),
        ]
        .into();
        for (host, url, want) in [
            ("bank.example", "https://bank.example/", true),
            ("www.bank.example", "https://www.bank.example/", false),
            ("a.shop.example", "https://a.shop.example/", true),
            ("x.example", "https://x.example/pay/1", true),
            ("x.example", "https://x.example/read", false),
        ] {
            assert_eq!(is_listed(&list, host, url), want, "{url}");
        }
    }
}
