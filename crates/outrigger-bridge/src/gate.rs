//! Who may connect: token and origin (C9, 1). Checked before the connection becomes a WebSocket.

use http::HeaderMap;
use http::header::{AUTHORIZATION, ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use outrigger_protocol::invoke::BEARER_PROTOCOL;

use crate::BridgeError;

/// What a connection has to bring.
#[derive(Clone)]
pub struct Gate {
    token: String,
    origins: Vec<String>,
    no_origin: bool,
}

impl Gate {
    /// `origins`: pages that may connect, as `https://app.example`; `no_origin`: clients that send none may connect,
    /// too; a page in a browser cannot omit it.
    #[must_use]
    pub fn new(token: String, origins: Vec<String>, no_origin: bool) -> Self {
        Self {
            token,
            origins,
            no_origin,
        }
    }

    /// Whether a request may become a connection.
    ///
    /// # Errors
    /// `bridge.origin`, `bridge.unauthorized`.
    pub fn admit(&self, headers: &HeaderMap) -> Result<(), BridgeError> {
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (None, _) if self.no_origin => {}
            (None, _) => {
                return Err(BridgeError::new(
                    "bridge.origin",
                    "a connection without an Origin is refused; start the bridge with --no-origin for programs that are not browsers",
                ));
            }
            (Some(origin), None)
                if origin
                    .to_str()
                    .is_ok_and(|it| self.origins.iter().any(|known| known == it)) => {}
            _ => {
                return Err(BridgeError::new(
                    "bridge.origin",
                    "this origin may not connect; the bridge's --origin names those that may",
                ));
            }
        }
        let given = token_of(headers);
        if self.token.len() < 16 || !given.is_some_and(|token| same(token, &self.token)) {
            return Err(BridgeError::new(
                "bridge.unauthorized",
                "the token is missing or wrong",
            ));
        }
        Ok(())
    }
}

/// The token of the header, or of the subprotocol that pages use.
fn token_of(headers: &HeaderMap) -> Option<&str> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        return value.to_str().ok()?.strip_prefix("Bearer ");
    }
    headers
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .find_map(|word| word.trim().strip_prefix(BEARER_PROTOCOL))
}

/// Takes as long whatever is different; only the length shows.
fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let differs = a.iter().zip(b).fold(0_u8, |all, (a, b)| all | (a ^ b));
    a.len() == b.len() && std::hint::black_box(differs) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn who_may_connect() {
        let page = "https://app.example";
        let bearer = format!("Bearer {TOKEN}");
        let protocol = format!("outrigger.bridge.v1, bearer.{TOKEN}");
        for (origin, header, value, no_origin, want) in [
            (Some(page), "authorization", bearer.as_str(), false, "ok"),
            (Some(page), "sec-websocket-protocol", &protocol, false, "ok"),
            (None, "authorization", &bearer, true, "ok"),
            (None, "authorization", &bearer, false, "bridge.origin"),
            (
                Some("https://evil.example"),
                "authorization",
                &bearer,
                true,
                "bridge.origin",
            ),
            (
                Some("https://app.example.evil.example"),
                "authorization",
                &bearer,
                true,
                "bridge.origin",
            ),
            (
                Some("http://app.example"),
                "authorization",
                &bearer,
                true,
                "bridge.origin",
            ),
            (
                Some("null"),
                "authorization",
                &bearer,
                true,
                "bridge.origin",
            ),
            (Some(page), "x-other", "x", false, "bridge.unauthorized"),
            (
                Some(page),
                "authorization",
                "Bearer ",
                false,
                "bridge.unauthorized",
            ),
            (
                Some(page),
                "authorization",
                "Bearer 0123456789abcdef",
                false,
                "bridge.unauthorized",
            ),
            (
                Some(page),
                "authorization",
                TOKEN,
                false,
                "bridge.unauthorized",
            ),
            (
                Some(page),
                "sec-websocket-protocol",
                "bearer.x",
                false,
                "bridge.unauthorized",
            ),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            let name: http::HeaderName = header.parse().unwrap();
            headers.insert(name, value.parse().unwrap());
            let gate = Gate::new(TOKEN.into(), vec![page.into()], no_origin);
            let got = gate
                .admit(&headers)
                .map_or_else(|e| e.code, |()| "ok".into());
            assert_eq!(got, want, "{origin:?} {header}: {value}");
        }
        let mut two = HeaderMap::new();
        two.append(ORIGIN, page.parse().unwrap());
        two.append(ORIGIN, "https://evil.example".parse().unwrap());
        two.insert(AUTHORIZATION, bearer.parse().unwrap());
        let gate = Gate::new(TOKEN.into(), vec![page.into()], false);
        assert_eq!(gate.admit(&two).unwrap_err().code, "bridge.origin");
        // A token that is none lets nobody in.
        let mut empty = HeaderMap::new();
        empty.insert(AUTHORIZATION, "Bearer ".parse().unwrap());
        let gate = Gate::new(String::new(), vec![], true);
        assert_eq!(gate.admit(&empty).unwrap_err().code, "bridge.unauthorized");
    }
}
