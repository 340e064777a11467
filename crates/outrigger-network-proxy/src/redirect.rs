//! How connections of a program without proxy support reach the proxy.

/// The proxy's port and the credentials of one client: the sandbox uses them to create a tunnel if a process
/// connects directly ([`crate::ProxyTicket::redirect`]).
#[derive(Clone)]
pub struct ProxyRedirect {
    port: u16,
    authorization: String,
}

/// The credentials are not shown: anyone who has them is that client.
impl std::fmt::Debug for ProxyRedirect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyRedirect")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl ProxyRedirect {
    /// Creates a redirect to a proxy on this loopback port, with this value of `proxy-authorization`.
    #[must_use]
    pub fn new(port: u16, authorization: String) -> Self {
        Self {
            port,
            authorization,
        }
    }

    /// Returns the proxy's port on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the value of `proxy-authorization`.
    #[must_use]
    pub fn authorization(&self) -> &str {
        &self.authorization
    }
}
