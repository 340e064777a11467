//! The user's settings for the login to one server, in `[mcp.NAME]` of `outrigger.toml`. Unlike the server's entry, they never come
//! from a project.

use std::path::PathBuf;

use reqwest::Url;

/// Settings for one server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoginSettings {
    /// The URL that the settings are for: they are not used for a server of that name elsewhere.
    pub url: Option<String>,
    /// Its authorization server's issuer, if its metadata have another one than that by which it is found.
    pub issuer: Option<String>,
    /// The URL of our client metadata document, which is then the client's id (Client ID Metadata Documents, SEP-991).
    pub client_metadata_url: Option<String>,
    /// The client logs in itself (`client_credentials`) instead of the user.
    pub client_credentials: bool,
    /// The key with which the client signs its identity (`private_key_jwt`); PKCS #8 in PEM.
    pub private_key_file: Option<PathBuf>,
    /// Vouches for the user (SEP-990).
    pub identity_provider: Option<IdentityProvider>,
}

/// An identity provider at which the user is logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityProvider {
    /// Where it exchanges tokens.
    pub token_endpoint: String,
    /// Our client there.
    pub client_id: Option<String>,
    /// Contains the user's ID token; the program that logs the user in keeps it current.
    pub id_token_file: PathBuf,
}

impl LoginSettings {
    /// Returns whether tokens need no user.
    pub(crate) fn is_machine(&self) -> bool {
        self.client_credentials || self.identity_provider.is_some()
    }

    /// Returns these settings for a server at a URL.
    ///
    /// # Errors
    /// What is missing or wrong.
    pub(crate) fn of(self, url: &str) -> Result<Self, String> {
        match &self.url {
            Some(meant) if !is_same(meant, url) => {
                return Err(format!(
                    "`[mcp.NAME]` of outrigger.toml is for the server at {meant}"
                ));
            }
            None if self.is_machine() => {
                return Err(
                    "`[mcp.NAME]` of outrigger.toml logs in without asking and so has to name the `url` that it is for"
                        .to_owned(),
                );
            }
            _ => {}
        }
        let document = self.client_metadata_url.as_deref();
        let is_wrong = |url: &str| {
            !Url::parse(url).is_ok_and(|url| url.scheme() == "https" && url.path() != "/")
        };
        if document.is_some_and(is_wrong) {
            return Err("`client_metadata_url` must be an https address with a path".to_owned());
        }
        Ok(self)
    }
}

fn is_same(a: &str, b: &str) -> bool {
    match (Url::parse(a), Url::parse(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_logs_in_without_asking_is_for_one_address() {
        let machine = |url: Option<&str>| LoginSettings {
            url: url.map(str::to_owned),
            client_credentials: true,
            ..LoginSettings::default()
        };
        let here = "https://a.test/mcp";
        assert!(machine(Some(here)).of(here).is_ok());
        assert!(machine(Some(here)).of("https://evil.test/mcp").is_err());
        assert!(machine(None).of(here).is_err());
        assert!(LoginSettings::default().of(here).is_ok());
        for (url, is_taken) in [
            ("https://me.test/client.json", true),
            ("https://me.test/", false),
            ("http://me.test/client.json", false),
        ] {
            let settings = LoginSettings {
                client_metadata_url: Some(url.to_owned()),
                ..LoginSettings::default()
            };
            assert_eq!(settings.of(here).is_ok(), is_taken, "{url}");
        }
    }
}
