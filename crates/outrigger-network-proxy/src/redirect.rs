//! How the connections of a program that knows of no proxy get to it.

/// The proxy's port and the credentials of one client: the sandbox makes a tunnel with them where a process connects
/// directly ([`crate::ProxyTicket::redirect`]).
#[derive(Clone)]
pub struct ProxyRedirect {
    port: u16,
    authorization: String,
}

/// The credentials are not shown: anybody who has them is that client.
impl std::fmt::Debug for ProxyRedirect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyRedirect")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl ProxyRedirect {
    /// To a proxy on this port of loopback, with this value of `proxy-authorization`.
    #[must_use]
    pub fn new(port: u16, authorization: String) -> Self {
        Self {
            port,
            authorization,
        }
    }

    /// The proxy's port on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The value of `proxy-authorization`.
    #[must_use]
    pub fn authorization(&self) -> &str {
        &self.authorization
    }
}
