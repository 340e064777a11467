//! Tokens of logins in requests: who gets them, when they are renewed, and further headers.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use outrigger_protocol::auth::Credential;
use outrigger_stdx::clock::now_ms;
use reqwest::Url;

use super::credential::{credential, ends_at};
use super::{LoginServers, Service, copilot, openai, poe, xai};
use crate::cloud::Unsigned;
use crate::credentials::{Credentials, Origin, Stored};
use crate::secret::{Secret, Secrets};
use crate::transport::fetch::Overlay;
use crate::transport::token_endpoint::{encoded, post_form};

/// Milliseconds before its expiry from which a token is renewed.
const SLACK: u64 = 2 * 60 * 1000;

/// The login of one provider. Deliberately without `Debug`.
pub(crate) struct LoginTokens {
    pub(crate) service: Service,
    credentials: Credentials,
    servers: LoginServers,
}

impl LoginTokens {
    /// Returns the login for requests to a provider, if the user has logged in there with a method of ours or OpenCode's, and no
    /// plugin implements the provider or names its URL.
    pub(crate) fn of(
        provider: &str,
        stored: Option<&Stored>,
        overlay: &Overlay,
        credentials: &Credentials,
        servers: &LoginServers,
    ) -> Option<Arc<Self>> {
        let service = Service::of(provider)?;
        let is_plugins = overlay.speaker.is_some()
            || overlay.fetch.is_some()
            || overlay.own.is_some()
            || overlay.options.is_some();
        let login = Self {
            service,
            credentials: credentials.clone(),
            servers: servers.clone(),
        };
        (!is_plugins && stored.is_some_and(is_ours)).then(|| Arc::new(login))
    }

    /// Returns the URL of a request. `base` comes from the configuration and the catalog: if it is the service's own, the login's
    /// URL is used instead. Any other is requested without a token.
    pub(crate) fn address(&self, base: Option<&str>, path: &str) -> String {
        let is_services = |base: &str| {
            let url = Url::parse(base).ok();
            url.is_some_and(|url| url.host_str() == Some(self.service.host()))
        };
        match base.filter(|base| !is_services(base)) {
            Some(base) => format!("{base}/{path}"),
            None => format!("{}/{path}", self.api(self.current().ok().as_ref())),
        }
    }

    /// Returns the service's URL for this login.
    fn api(&self, stored: Option<&Stored>) -> String {
        let enterprise_url = match stored.map(|it| &it.credential) {
            Some(Credential::Oauth { enterprise_url, .. }) => enterprise_url.as_deref(),
            _ => None,
        };
        self.servers.at(&self.service.api(enterprise_url))
    }

    /// Adds the token to the headers of a request, renewed if it is about to expire.
    ///
    /// A token is sent only to the service of its login, whatever URL a folder's configuration, a plugin or the catalog names.
    ///
    /// # Errors
    /// The URL is another one, there is no login any longer, or the token cannot be renewed.
    pub(crate) async fn put(
        self: &Arc<Self>,
        url: &str,
        headers: &mut HeaderMap,
    ) -> Result<(), Unsigned> {
        let stored = self.current()?;
        let api = self.api(Some(&stored));
        if !is_at(url, &api) {
            return Err(Unsigned::Login(format!(
                "the login at {} is valid for {api} only, and the configuration sets another address (`options.baseURL`)",
                self.service.name()
            )));
        }
        if self.has_ended(&stored) {
            let (name, provider) = (self.service.name(), self.service.provider());
            return Err(Unsigned::Login(format!(
                "the login at {name} has expired; `outrigger auth login {provider}` logs in again"
            )));
        }
        let stored = if self.is_due(&stored) {
            self.renewed(&stored).await?
        } else {
            stored
        };
        let Credential::Oauth {
            access, account_id, ..
        } = &stored.credential
        else {
            return Err(self.nobody());
        };
        let mut set = |name: HeaderName, value: &str| {
            let mut value = HeaderValue::from_str(value).map_err(|_| self.nobody())?;
            value.set_sensitive(true);
            headers.insert(name, value);
            Ok(())
        };
        set(http::header::AUTHORIZATION, &format!("Bearer {access}"))?;
        match account_id
            .as_deref()
            .filter(|_| self.service == Service::OpenAi)
        {
            Some(account) => set(HeaderName::from_static("chatgpt-account-id"), account),
            None => Ok(()),
        }
    }

    /// Removes the tokens from a text of the service.
    pub(crate) fn scrub(&self, text: &str) -> String {
        let mut secrets = Secrets::default();
        if let Ok(stored) = self.current() {
            for secret in stored.credential.secrets() {
                secrets.add(&Secret::new(secret));
            }
        }
        secrets.scrub_exact(text)
    }

    fn current(&self) -> Result<Stored, Unsigned> {
        let stored = self.credentials.stored(self.service.provider());
        stored.filter(is_ours).ok_or_else(|| self.nobody())
    }

    fn nobody(&self) -> Unsigned {
        Unsigned::Login(format!("not logged in at {}", self.service.name()))
    }

    fn is_due(&self, stored: &Stored) -> bool {
        let Credential::Oauth {
            access, expires, ..
        } = &stored.credential
        else {
            return false;
        };
        let ends = ends_at(access).map_or(*expires, |at| at.min(*expires));
        self.service.token_endpoint().is_some() && ends <= now_ms().saturating_add(SLACK)
    }

    /// Whether it has expired and is not renewed.
    fn has_ended(&self, stored: &Stored) -> bool {
        let Credential::Oauth { expires, .. } = &stored.credential else {
            return false;
        };
        self.service.token_endpoint().is_none() && *expires != 0 && *expires <= now_ms()
    }

    /// Returns the login with a new token. A separate task gets and stores it: a cancelled turn must not lose a new token, since
    /// the old one is invalid then.
    async fn renewed(self: &Arc<Self>, stored: &Stored) -> Result<Stored, Unsigned> {
        if stored.origin == Origin::OpenCode {
            // It would become invalid for OpenCode, whose file is not written.
            return Err(Unsigned::Login(format!(
                "the login at {} that OpenCode has stored has expired: OpenCode renews it when it is used",
                self.service.name()
            )));
        }
        let login = Arc::clone(self);
        let renewal = tokio::spawn(async move { login.renew().await });
        renewal
            .await
            .map_err(|_| Unsigned::Passing("the renewal of the login ended".to_owned()))?
    }

    /// Renews one at a time, across all processes of this user: a refresh token is often valid once.
    async fn renew(&self) -> Result<Stored, Unsigned> {
        let _alone = self.credentials.renewal().await;
        let stored = self.current()?;
        if !self.is_due(&stored) {
            return Ok(stored);
        }
        let (Some((url, client)), Credential::Oauth { refresh, .. }) =
            (self.service.token_endpoint(), &stored.credential)
        else {
            return Err(self.nobody());
        };
        let form = vec![
            ("grant_type", "refresh_token".to_owned()),
            ("refresh_token", refresh.clone()),
            ("client_id", client.to_owned()),
        ];
        let answer = post_form(&self.servers.at(url), &form)
            .await
            .map_err(Unsigned::Passing)?;
        // A busy server proves nothing about the login.
        if answer.status.is_server_error() || answer.status == StatusCode::TOO_MANY_REQUESTS {
            return Err(Unsigned::Passing(self.scrub(&answer.refusal())));
        }
        let renewed = credential(&answer, Some(&stored.credential)).map_err(|why| {
            let why = self.scrub(&why).replace(encoded(refresh).as_str(), "");
            let name = self.service.name();
            Unsigned::Login(format!("the login at {name} cannot be renewed: {why}"))
        })?;
        let provider = self.service.provider();
        if let Err(error) = self.credentials.set(provider, &renewed, None) {
            tracing::warn!("[auth] the renewed login of {provider} is used once and lost: {error}");
        }
        Ok(Stored {
            credential: renewed,
            ..stored
        })
    }
}

/// Returns whether a login was made with a method of ours or OpenCode's. One stored by a plugin belongs to that plugin.
fn is_ours(stored: &Stored) -> bool {
    stored.by.is_none() && matches!(stored.credential, Credential::Oauth { .. })
}

/// Returns whether a URL belongs to this service: scheme, host and port are equal.
fn is_at(url: &str, api: &str) -> bool {
    match (Url::parse(url), Url::parse(api)) {
        (Ok(url), Ok(api)) => {
            url.origin() == api.origin() && url.username().is_empty() && url.password().is_none()
        }
        _ => false,
    }
}

impl Service {
    /// Returns the service's host for keys.
    fn host(self) -> &'static str {
        match self {
            Self::OpenAi => openai::HOST,
            Self::Copilot => copilot::HOST,
            Self::Xai => xai::HOST,
            Self::Poe => poe::HOST,
        }
    }

    fn api(self, enterprise_url: Option<&str>) -> String {
        match self {
            Self::OpenAi => openai::API.to_owned(),
            Self::Copilot => copilot::api(enterprise_url),
            Self::Xai => xai::API.to_owned(),
            Self::Poe => poe::API.to_owned(),
        }
    }

    /// Returns the token endpoint and the client; GitHub's tokens do not expire, and keys of Poe are not renewed.
    fn token_endpoint(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::OpenAi => Some((openai::TOKEN, openai::CLIENT)),
            Self::Copilot | Self::Poe => None,
            Self::Xai => Some((xai::TOKEN, xai::CLIENT)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_to_the_service_of_its_login() {
        let api = "https://api.x.ai/v1";
        for (url, want) in [
            ("https://api.x.ai/v1/chat/completions", true),
            ("https://API.x.ai:443/", true),
            ("http://api.x.ai/v1", false),
            ("https://api.x.ai:8443/v1", false),
            ("https://api.x.ai.evil.test/v1", false),
            ("https://api.x.ai@evil.test/v1", false),
            ("https://me@api.x.ai/v1", false),
            ("http://127.0.0.1/v1", false),
            ("", false),
        ] {
            assert_eq!(is_at(url, api), want, "{url}");
        }
    }
}
