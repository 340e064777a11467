//! Logging in to remote servers: OAuth 2.1 as MCP uses it (RFC 9728 and 8414 to find the login, RFC 7591 to register, PKCE with S256,
//! refresh tokens, more scopes on demand), and tokens without the user (`machine`). Logins are stored in one file of ours, in OpenCode's
//! form.

mod bearer;
mod callback;
mod discover;
mod exchange;
mod jwt;
mod login;
mod machine;
mod settings;
mod store;

pub(crate) use bearer::Bearer;
pub(crate) use discover::Challenge;
pub(crate) use login::{Login, begin};
pub use settings::{IdentityProvider, LoginSettings};
pub use store::{AuthState, TokenStore};

use serde_json::Value;

use crate::error::McpError;

/// The default port of the callback (OpenCode's).
pub(crate) const CALLBACK_PORT: u16 = 19876;
/// The path of the callback (OpenCode's).
pub(crate) const CALLBACK_PATH: &str = "/mcp/oauth/callback";

/// `oauth` of a remote server's entry.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OAuthConfig {
    /// Client that was registered by hand; without one we register ourselves.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<String>,
    /// The scope to request instead of the server's.
    pub scope: Option<String>,
    /// Port of the callback.
    pub callback_port: Option<u16>,
    /// Complete URL of the callback.
    pub redirect_uri: Option<String>,
    /// The user's settings for logins there.
    pub settings: Box<LoginSettings>,
}

impl OAuthConfig {
    /// Reads `oauth`; `None` if it is `false`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(value: Option<&Value>) -> Result<Option<Self>, &'static str> {
        let fields = match value {
            None | Some(Value::Null) => return Ok(Some(Self::default())),
            Some(Value::Bool(false)) => return Ok(None),
            Some(Value::Object(fields)) => fields,
            Some(_) => return Err("`oauth` must be false or an object"),
        };
        let text = |key: &str| {
            let text = fields.get(key).and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let callback_port = match fields.get("callbackPort") {
            None => None,
            Some(port) => Some(
                port.as_u64()
                    .and_then(|port| u16::try_from(port).ok())
                    .filter(|port| *port > 0)
                    .ok_or("`oauth.callbackPort` must be a port, 1 to 65535")?,
            ),
        };
        Ok(Some(Self {
            client_id: text("clientId"),
            client_secret: text("clientSecret"),
            scope: text("scope"),
            callback_port,
            redirect_uri: text("redirectUri"),
            settings: Box::default(),
        }))
    }

    /// Returns the URL of the callback.
    #[must_use]
    pub fn redirect(&self) -> String {
        self.redirect_uri.clone().unwrap_or_else(|| {
            let port = self.callback_port.unwrap_or(CALLBACK_PORT);
            format!("http://127.0.0.1:{port}{CALLBACK_PATH}")
        })
    }
}

/// Returns port and path of a callback URL.
///
/// # Errors
/// It is not a URL, in words.
pub(crate) fn place_of(redirect: &str) -> Result<(u16, String), String> {
    let url =
        reqwest::Url::parse(redirect).map_err(|_| format!("`{redirect}` is not an address"))?;
    let port = url.port_or_known_default().unwrap_or(CALLBACK_PORT);
    let path = match url.path() {
        "" => CALLBACK_PATH,
        path => path,
    };
    Ok((port, path.to_owned()))
}

/// The secret is not shown (invariant 10).
impl std::fmt::Debug for OAuthConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OAuthConfig")
            .field("client_id", &self.client_id)
            .field("scope", &self.scope)
            .field("redirect", &self.redirect())
            .finish_non_exhaustive()
    }
}

/// Creates a login error.
pub(crate) fn failed(server: &str, reason: impl Into<String>) -> McpError {
    McpError::Login {
        server: server.to_owned(),
        reason: reason.into(),
    }
}

/// Returns the seconds since 1970.
pub(crate) fn now() -> f64 {
    outrigger_stdx::clock::since_epoch().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_entry_is_read_and_its_secret_not_shown() {
        let read = |value: Value| OAuthConfig::read(Some(&value));
        assert_eq!(read(json!(false)), Ok(None));
        assert_eq!(OAuthConfig::read(None), Ok(Some(OAuthConfig::default())));
        let full =
            json!({"clientId": "c", "clientSecret": "hidden", "scope": "s", "callbackPort": 5});
        let full = read(full).unwrap().unwrap();
        assert_eq!(full.redirect(), "http://127.0.0.1:5/mcp/oauth/callback");
        assert!(!format!("{full:?}").contains("hidden"));
        for wrong in [
            json!(true),
            json!({"callbackPort": 0}),
            json!({"callbackPort": 70000}),
        ] {
            assert!(read(wrong).is_err());
        }
    }
}
