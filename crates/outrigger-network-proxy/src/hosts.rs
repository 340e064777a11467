//! Hosts that a process may connect to: patterns, and the classification of public addresses.
//!
//! Rules are about the target of a connection, not its name: an allowed name that resolves to an address of this machine
//! or of a private network is refused, unless a rule names that address (DNS rebinding).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One pattern, with a port or for all ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRule {
    host: Host,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    /// `*`: every public address.
    Any,
    /// A name, in lower case.
    Name(String),
    /// `*.name`: its subdomains, not the name itself.
    Below(String),
    /// An address, or `address/bits`.
    Net(IpAddr, u8),
}

/// An invalid pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a host: use `api.example.com`, `*.example.com`, `*`, an address or `10.0.0.0/8`, with or without `:PORT`"
)]
pub struct BadHost(pub String);

impl HostRule {
    /// Parses `api.example.com`, `*.example.com`, `*`, `localhost`, `127.0.0.1`, `[::1]`, `10.0.0.0/8`, each also with
    /// `:PORT` (`:*` means all ports).
    ///
    /// # Errors
    /// [`BadHost`] for anything else, including an address in an unusual form (`0x7f.1`, `2130706433`).
    pub fn parse(text: &str) -> Result<Self, BadHost> {
        let bad = || BadHost(text.to_owned());
        let (host, port) = split(text).ok_or_else(bad)?;
        let port = match port {
            None | Some("*") => None,
            Some(port) => Some(port.parse().ok().filter(|port| *port > 0).ok_or_else(bad)?),
        };
        let host = match host {
            "*" => Host::Any,
            host => match (net(host), host.strip_prefix("*.")) {
                (Some((address, bits)), _) => Host::Net(address, bits),
                (None, Some(rest)) => Host::Below(name(rest).ok_or_else(bad)?),
                (None, None) => Host::Name(name(host).ok_or_else(bad)?),
            },
        };
        Ok(Self { host, port })
    }

    fn names(&self, host: &str, port: u16) -> bool {
        self.port.is_none_or(|it| it == port)
            && match &self.host {
                Host::Any => true,
                Host::Name(name) => name == host,
                Host::Below(rest) => host
                    .strip_suffix(rest.as_str())
                    .is_some_and(|start| start.len() > 1 && start.ends_with('.')),
                Host::Net(..) => false,
            }
    }

    /// Returns whether it names this very address, as required to allow a non-public one.
    fn grants(&self, host: &str, port: u16, address: IpAddr) -> bool {
        self.port.is_none_or(|it| it == port)
            && match &self.host {
                Host::Net(net, bits) => contains(*net, *bits, address),
                // It always resolves to the local machine.
                Host::Name(name) => name == "localhost" && host == name && address.is_loopback(),
                Host::Any | Host::Below(_) => false,
            }
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        match &self.host {
            Host::Any => write!(f, "*{port}"),
            Host::Name(name) => write!(f, "{name}{port}"),
            Host::Below(rest) => write!(f, "*.{rest}{port}"),
            Host::Net(net, bits) => {
                let whole = if net.is_ipv4() { 32 } else { 128 };
                let bits = if *bits < whole {
                    format!("/{bits}")
                } else {
                    String::new()
                };
                match net {
                    IpAddr::V6(net) if !port.is_empty() => write!(f, "[{net}{bits}]{port}"),
                    net => write!(f, "{net}{bits}{port}"),
                }
            }
        }
    }
}

/// A list of patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts(Vec<HostRule>);

impl Hosts {
    /// Parses a list.
    ///
    /// # Errors
    /// The first invalid pattern.
    pub fn parse<T: AsRef<str>>(list: impl IntoIterator<Item = T>) -> Result<Self, BadHost> {
        list.into_iter()
            .map(|text| HostRule::parse(text.as_ref()))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Returns the list of all public addresses.
    #[must_use]
    pub fn public() -> Self {
        Self(vec![HostRule {
            host: Host::Any,
            port: None,
        }])
    }

    /// Returns a policy's forbidden hosts. An unreadable list forbids everything.
    #[must_use]
    pub fn forbidden(list: &[String]) -> Self {
        Self::parse(list).unwrap_or_else(|error| {
            tracing::warn!("a policy's list of forbidden hosts: {error}; every host is forbidden");
            Self::all()
        })
    }

    /// Returns the list of all addresses.
    #[must_use]
    pub fn all() -> Self {
        let whole = |net: IpAddr| HostRule {
            host: Host::Net(net, 0),
            port: None,
        };
        let nets = [
            whole(Ipv4Addr::UNSPECIFIED.into()),
            whole(Ipv6Addr::UNSPECIFIED.into()),
        ];
        let mut all = Self::public();
        all.0.extend(nets);
        all
    }

    /// Returns whether there is no pattern, so that nothing is allowed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps only names: these cannot grant private addresses.
    #[must_use]
    pub fn by_name(mut self) -> Self {
        self.0.retain(|rule| match &rule.host {
            Host::Net(..) => false,
            Host::Name(name) => name != "localhost",
            Host::Any | Host::Below(_) => true,
        });
        self
    }

    /// Returns whether it names non-public addresses.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.0.iter().any(|rule| match &rule.host {
            Host::Net(net, _) => !is_public(*net),
            Host::Name(name) => name == "localhost",
            Host::Any | Host::Below(_) => false,
        })
    }

    /// Joins two lists.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.0.extend(other.0.iter().cloned());
        self
    }

    /// Returns the patterns as written.
    #[must_use]
    pub fn shown(&self) -> Vec<String> {
        self.0.iter().map(HostRule::to_string).collect()
    }

    /// Returns whether a name could be allowed, whatever it resolves to. Other names are not even looked up, since a
    /// lookup reveals the name.
    fn may(&self, host: &str, port: u16) -> bool {
        let by_address = |rule: &HostRule| {
            matches!(rule.host, Host::Net(..)) && rule.port.is_none_or(|it| it == port)
        };
        self.0
            .iter()
            .any(|rule| rule.names(host, port) || by_address(rule))
    }

    /// Returns whether a rule matches; for a non-public address, one that names it.
    fn allows(&self, host: &str, port: u16, address: IpAddr) -> bool {
        let public = is_public(address);
        self.0
            .iter()
            .any(|rule| rule.grants(host, port, address) || (public && rule.names(host, port)))
    }

    /// Returns whether a rule is about this name, or about this address; `localhost` is about the addresses that it
    /// resolves to.
    #[must_use]
    pub fn is_about(&self, host: &str, port: u16, address: Option<IpAddr>) -> bool {
        self.0.iter().any(|rule| {
            let at = |address| match &rule.host {
                Host::Name(name) if name == "localhost" => {
                    canonical(address).is_loopback() && rule.port.is_none_or(|it| it == port)
                }
                _ => rule.grants(host, port, address),
            };
            rule.names(host, port) || address.is_some_and(at)
        })
    }

    /// Returns whether it was requested: like [`Hosts::allows`], but `*` requests everything.
    fn asks(&self, host: &str, port: u16, address: IpAddr) -> bool {
        self.0
            .iter()
            .any(|rule| rule.grants(host, port, address) || rule.names(host, port))
    }
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No rule of its own request (its manifest) matches.
    NotAsked,
    /// No rule of its grants matches.
    NotGranted,
    /// The machine's policy forbids it.
    Forbidden,
    /// The name resolves to a non-public address that no rule names.
    Private(IpAddr),
    /// The target is not a host.
    NoHost,
    /// The name does not resolve.
    Unknown,
    /// Too many concurrent connections.
    TooMany,
}

impl Refusal {
    /// Returns the stable code.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::NotAsked => "network.not_asked",
            Self::NotGranted => "network.not_granted",
            Self::Forbidden => "network.forbidden",
            Self::Private(_) => "network.private",
            Self::NoHost => "network.no_host",
            Self::Unknown => "network.unknown_host",
            Self::TooMany => "network.too_many",
        }
    }
}

/// What a process may connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The hosts that it requests itself, if any: nothing beyond is allowed.
    pub asked: Option<Hosts>,
    /// The hosts granted to it.
    pub granted: Hosts,
    /// The hosts that cannot be granted.
    pub forbidden: Hosts,
}

impl Reach {
    /// Combines granted and forbidden hosts. Without a list of grants every address is granted, including those of this
    /// machine.
    #[must_use]
    pub fn of(granted: Option<Hosts>, forbidden: Hosts) -> Self {
        Self {
            asked: None,
            granted: granted.unwrap_or_else(Hosts::all),
            forbidden,
        }
    }

    /// Checks whether a name may be looked up.
    ///
    /// # Errors
    /// It may not.
    pub fn before(&self, host: &str, port: u16) -> Result<(), Refusal> {
        if self.forbidden.is_about(host, port, None) {
            return Err(Refusal::Forbidden);
        }
        if self
            .asked
            .as_ref()
            .is_some_and(|asked| !asked.may(host, port))
        {
            return Err(Refusal::NotAsked);
        }
        // A literal address needs no lookup.
        if let Ok(address) = host.parse::<IpAddr>() {
            return self.address(host, port, address);
        }
        if self.granted.may(host, port) {
            Ok(())
        } else {
            Err(Refusal::NotGranted)
        }
    }

    /// Checks whether a connection to this address may be made, under this name.
    ///
    /// # Errors
    /// The reason.
    pub fn address(&self, host: &str, port: u16, address: IpAddr) -> Result<(), Refusal> {
        if self.forbidden.is_about(host, port, Some(address)) {
            return Err(Refusal::Forbidden);
        }
        let asked = self.asked.as_ref();
        if asked.is_some_and(|asked| !asked.asks(host, port, address)) {
            return Err(Refusal::NotAsked);
        }
        if self.granted.allows(host, port, address) {
            return Ok(());
        }
        if is_public(address) {
            Err(Refusal::NotGranted)
        } else {
            Err(Refusal::Private(address))
        }
    }
}

/// Splits `host:port`; also `[::1]:80`, and `::1` without a port. No port is `None`.
fn split(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        host.contains(':').then_some(())?;
        return match rest {
            "" => Some((host, None)),
            rest => Some((host, Some(rest.strip_prefix(':')?))),
        };
    }
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => Some((host, Some(port))),
        _ => Some((text, None)),
    }
}

/// Returns the host and port of a request, the host in lower case and without a trailing dot: `host:port` with an
/// explicit port, or without one if `default` is given.
///
/// Everything ambiguous is refused: credentials, an escape, a blank, a non-ASCII letter.
#[must_use]
pub fn authority(text: &str, default: Option<u16>) -> Option<(String, u16)> {
    let (host, port) = split(text)?;
    let port = match port {
        Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => port.parse().ok()?,
        Some(_) => return None,
        None => default?,
    };
    let host = match host.parse::<IpAddr>() {
        Ok(address) => address.to_string(),
        Err(_) => name(host)?,
    };
    (port > 0).then_some((host, port))
}

/// Returns the host and port of an `http://` or `https://` URL; `None` if it is ambiguous.
#[must_use]
pub fn of_url(url: &str) -> Option<(String, u16)> {
    let (scheme, rest) = url.trim().split_once("://")?;
    let port = match scheme.to_ascii_lowercase().as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    authority(rest.split(['/', '?', '#']).next()?, Some(port))
}

/// Returns a name of letters, digits, `-`, `_` and dots, in lower case and without the trailing dot.
fn name(text: &str) -> Option<String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let parts = text.split('.').all(|part| !part.is_empty());
    (text.len() <= 253 && parts && text.bytes().all(fits)).then(|| text.to_ascii_lowercase())
}

fn net(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let address = canonical(address.parse().ok()?);
    let whole = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(whole);
    (bits <= whole).then_some((address, bits))
}

fn contains(net: IpAddr, bits: u8, address: IpAddr) -> bool {
    match (net, canonical(address)) {
        (IpAddr::V4(net), IpAddr::V4(address)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            net.to_bits() & mask == address.to_bits() & mask
        }
        (IpAddr::V6(net), IpAddr::V6(address)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            net.to_bits() & mask == address.to_bits() & mask
        }
        _ => false,
    }
}

/// Converts an IPv6 address that embeds an IPv4 one in any form (mapped, compatible, NAT64, 6to4).
#[must_use]
pub fn canonical(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    let [a, b, c, d, e, f, g, h] = v6.segments();
    let of = |high: u16, low: u16| {
        IpAddr::V4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
    };
    match (a, b, c, d, e, f) {
        // `::` and `::1` are genuine IPv6 addresses.
        (0, 0, 0, 0, 0, 0) if g != 0 || h > 1 => of(g, h),
        (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => of(g, h),
        (0x2002, high, low, ..) => of(high, low),
        _ => address,
    }
}

/// Returns whether an address belongs to the public Internet (IANA's registries of special-purpose addresses).
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match canonical(address) {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !matches!(
        address.octets(),
        // This network, private networks, loopback.
        [0 | 10 | 127, ..]
        | [172, 16..=31, ..]
        | [192, 168, ..]
        // Carrier-grade NAT; link-local, where clouds serve credentials.
        | [100, 64..=127, ..]
        | [169, 254, ..]
        // IETF assignments, examples, relays, benchmarks.
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        // Multicast, reserved, broadcast.
        | [224..=255, ..]
    )
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    // Only 2000::/3 is allocated. Excluding Teredo and other assignments of the IETF, examples, 6to4 (see `canonical`).
    (0x2000..0x4000).contains(&a)
        && !(a == 0x2001 && b < 0x200)
        && !(a == 0x2001 && b == 0xdb8)
        && !(a == 0x3fff && b < 0x1000)
        && a != 0x2002
}

#[cfg(test)]
mod tests;
