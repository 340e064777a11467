//! What names lead to, without what may not be connected to: looked at when the connection is made, so that a name which leads
//! elsewhere a moment later leads nowhere (DNS rebinding).

use std::net::SocketAddr;
use std::sync::Arc;

use outrigger_network_proxy::hosts::is_public;
use reqwest::ClientBuilder;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::{Refused, is_localhost, reach};

/// Whether a name may lead to this machine or its network.
pub type LocalFn = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Holds a client to public addresses, but for names that may lead to local ones. `localhost` always may: it says so.
pub fn for_public(builder: ClientBuilder, local: LocalFn) -> ClientBuilder {
    builder.dns_resolver(Guarded { local: Some(local) })
}

/// The system's answers, less what is refused.
#[derive(Default)]
pub(crate) struct Guarded {
    local: Option<LocalFn>,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let local = self.local.clone();
        Box::pin(async move {
            let found = look_up(name.as_str(), local.as_ref()).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// A name that was looked up and has no address.
#[derive(Debug, thiserror::Error)]
#[error("there is no host of the name {host}, or no network to ask for it: {reason}")]
pub struct NoSuchHost {
    /// As it was named.
    pub host: String,
    /// What the system said.
    pub reason: String,
    /// Whether a later try may find one.
    pub lookup: Lookup,
}

/// How the look-up of a name failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// It leads nowhere: the same question is answered the same way a moment later.
    NoAddress,
    /// No server for names answered. Without a network it is like this until there is one.
    NoAnswer,
}

impl NoSuchHost {
    /// The one that is the cause of an error.
    #[must_use]
    pub fn behind<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Self> {
        let mut causes = std::iter::successors(Some(error), |error| error.source());
        causes.find_map(|error| error.downcast_ref())
    }
}

/// What the system says where no server for names answered (glibc, musl).
const NO_ANSWER: [&str; 2] = ["Temporary failure", "Try again"];

fn no_address(host: &str, error: std::io::Error) -> Failed {
    // Failures to look up have no code of their own; one without a file or memory has.
    if error.raw_os_error().is_some() {
        return error.into();
    }
    let reason = error.to_string();
    let lookup = match NO_ANSWER.iter().any(|it| reason.contains(it)) {
        true => Lookup::NoAnswer,
        false => Lookup::NoAddress,
    };
    let host = host.to_owned();
    NoSuchHost {
        host,
        reason,
        lookup,
    }
    .into()
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// The addresses of a name. One that may not be connected to is a refusal of all: who answers so does it on purpose.
pub(crate) async fn look_up(
    name: &str,
    local: Option<&LocalFn>,
) -> Result<Vec<SocketAddr>, Failed> {
    let host = name.trim_end_matches('.').to_ascii_lowercase();
    let found = tokio::net::lookup_host((name, 0)).await;
    let found: Vec<SocketAddr> = found.map_err(|error| no_address(&host, error))?.collect();
    let reach = reach();
    for address in found.iter().map(SocketAddr::ip) {
        // Rules for one port alone are held against the address as it is named.
        if reach.address(&host, 0, address).is_err() {
            return Err(Refused::Forbidden { host }.into());
        }
        let may_be = |local: &LocalFn| is_localhost(&host) || local(&host);
        if !is_public(address) && local.is_some_and(|it| !may_be(it)) {
            return Err(Refused::Local { host, address }.into());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use super::*;

    #[test]
    fn a_name_without_an_answer_is_not_one_without_an_address() {
        let failed = "failed to lookup address information: ";
        for (error, want) in [
            (
                Error::other(format!("{failed}Name or service not known")),
                Some(Lookup::NoAddress),
            ),
            (
                Error::other(format!("{failed}Temporary failure in name resolution")),
                Some(Lookup::NoAnswer),
            ),
            (
                Error::other(format!("{failed}Try again")),
                Some(Lookup::NoAnswer),
            ),
            // No descriptor is left.
            (Error::from_raw_os_error(24), None),
        ] {
            let shown = error.to_string();
            let found = no_address("example.invalid", error);
            let found = NoSuchHost::behind(&*found).map(|it| it.lookup);
            assert_eq!(found, want, "{shown}");
        }
    }
}
