//! Resolves names without forbidden addresses. This happens when the connection is made, so a name that resolves elsewhere a
//! moment later has no effect (DNS rebinding).

use std::net::SocketAddr;
use std::sync::Arc;

use outrigger_network_proxy::hosts::is_public;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::{Refused, is_localhost, reach};

/// Returns whether a name may resolve to this machine or its network.
pub type LocalFn = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The system's resolver, without refused addresses.
#[derive(Default)]
pub(crate) struct Guarded {
    /// The names that may resolve to local addresses. All may without.
    local: Option<LocalFn>,
}

impl Guarded {
    /// Creates a resolver that gives local addresses only for `localhost` and the names for which `local` holds.
    pub(crate) fn public(local: LocalFn) -> Self {
        Self { local: Some(local) }
    }
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

/// A name without an address.
#[derive(Debug, thiserror::Error)]
#[error("there is no host of the name {host}, or no network to ask for it: {reason}")]
pub struct NoSuchHost {
    /// As named in the URL.
    pub host: String,
    /// The system's error.
    pub reason: String,
    /// Whether a retry may succeed.
    pub lookup: Lookup,
}

/// How the lookup of a name failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// It does not exist: a retry would give the same result.
    NoAddress,
    /// No name server answered, as is the case without a network.
    NoAnswer,
}

impl NoSuchHost {
    /// Returns the failed lookup that caused an error.
    #[must_use]
    pub fn behind<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Self> {
        let mut causes = std::iter::successors(Some(error), |error| error.source());
        causes.find_map(|error| error.downcast_ref())
    }
}

/// The system's error if no name server answered (glibc, musl).
const NO_ANSWER: [&str; 2] = ["Temporary failure", "Try again"];

fn no_address(host: &str, error: std::io::Error) -> Failed {
    // Lookup failures have no OS error code; those for lack of descriptors or memory do.
    if error.raw_os_error().is_some() {
        return error.into();
    }
    let reason = error.to_string();
    let lookup = if NO_ANSWER.iter().any(|it| reason.contains(it)) {
        Lookup::NoAnswer
    } else {
        Lookup::NoAddress
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

/// Resolves a name. One forbidden address refuses all: such an answer is deliberate.
pub(crate) async fn look_up(
    name: &str,
    local: Option<&LocalFn>,
) -> Result<Vec<SocketAddr>, Failed> {
    let host = name.trim_end_matches('.').to_ascii_lowercase();
    let found: Vec<SocketAddr> = tokio::net::lookup_host((name, 0))
        .await
        .map_err(|error| no_address(&host, error))?
        .collect();
    let reach = reach();
    for address in found.iter().map(SocketAddr::ip) {
        // Rules for a single port are matched against the address as named.
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
