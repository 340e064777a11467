//! The tokens of logins at requests: who gets them, when they are renewed, and what goes with them.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use outrigger_protocol::auth::Credential;
use reqwest::Url;

use super::credential::{credential, ends_at, now};
use super::{LoginServers, Service, copilot, openai, xai};
use crate::cloud::Unsigned;
use crate::credentials::{Credentials, Origin, Stored};
use crate::secret::{Secret, Secrets};
use crate::transport::fetch::Overlay;
use crate::transport::token_endpoint::{encoded, post_form};

/// Milliseconds before its end in which a token is renewed.
const SLACK: u64 = 2 * 60 * 1000;

/// The login of one provider. It has no `Debug`.
pub(crate) struct LoginTokens {
    pub(crate) service: Service,
    credentials: Credentials,
    servers: LoginServers,
}

impl LoginTokens {
    /// The login that requests to a provider carry, where the user has logged in there by a method of ours or OpenCode's, and no
    /// plugin speaks for the provider or says how it is asked.
    pub(crate) fn of(
        provider: &str,
        stored: Option<&Stored>,
        overlay: &Overlay,
        (credentials, servers): (&Credentials, &LoginServers),
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

    /// The address of a request. `base` is what the configuration and the catalog say: where it is the service's own, the login
    /// has a place of its own for it. Any other is asked, and gets no token.
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

    /// Where the service is asked with this login.
    fn api(&self, stored: Option<&Stored>) -> String {
        let enterprise_url = match stored.map(|it| &it.credential) {
            Some(Credential::Oauth { enterprise_url, .. }) => enterprise_url.as_deref(),
            _ => None,
        };
        self.servers.at(&self.service.api(enterprise_url))
    }

    /// Puts the token into the headers of a request, renewed where it is about to end.
    ///
    /// A token is sent to the service whose login it is of, and nowhere else: what the configuration of a folder, a plugin or the
    /// catalog says of addresses does not count.
    ///
    /// # Errors
    /// The address is another one, nobody is logged in any more, or the token cannot be renewed.
    pub(crate) async fn put(
        self: &Arc<Self>,
        url: &str,
        headers: &mut HeaderMap,
    ) -> Result<(), Unsigned> {
        let stored = self.current()?;
        let api = self.api(Some(&stored));
        if !is_at(url, &api) {
            return Err(Unsigned::Login(format!(
                "the login at {} goes to {api} only, and the configuration names another address (`options.baseURL`)",
                self.service.name()
            )));
        }
        let stored = match self.is_due(&stored) {
            true => self.renewed(&stored).await?,
            false => stored,
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

    /// A text of the service's without the tokens.
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
        Unsigned::Login(format!("nobody is logged in at {}", self.service.name()))
    }

    fn is_due(&self, stored: &Stored) -> bool {
        let Credential::Oauth {
            access, expires, ..
        } = &stored.credential
        else {
            return false;
        };
        let ends = ends_at(access).map_or(*expires, |at| at.min(*expires));
        self.service.token_endpoint().is_some() && ends <= now().saturating_add(SLACK)
    }

    /// The login with a new token. It is got and stored by a task of its own: a turn that is cancelled meanwhile must not lose a
    /// token that its server has given out, as the old one is worth nothing then.
    async fn renewed(self: &Arc<Self>, stored: &Stored) -> Result<Stored, Unsigned> {
        if stored.origin == Origin::OpenCode {
            // It would be worth nothing to OpenCode afterwards, whose file is not written.
            return Err(Unsigned::Login(format!(
                "the login at {} that OpenCode has stored has ended: OpenCode renews it when it is used",
                self.service.name()
            )));
        }
        let login = Arc::clone(self);
        let renewal = tokio::spawn(async move { login.renew().await });
        renewal
            .await
            .map_err(|_| Unsigned::Passing("the renewal of the login ended".to_owned()))?
    }

    /// One at a time, in all processes of this user: a token that renews is often good once.
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
        let answer = post_form(&self.servers.at(url), &form).await;
        let answer = answer.map_err(Unsigned::Passing)?;
        // A server that is busy says nothing about the login.
        if answer.status.is_server_error() || answer.status == StatusCode::TOO_MANY_REQUESTS {
            return Err(Unsigned::Passing(self.scrub(&answer.refusal())));
        }
        let renewed = credential(&answer, Some(&stored.credential));
        let renewed = renewed.map_err(|why| {
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

/// A login by a method of ours or OpenCode's. One that a plugin stored is that plugin's.
fn is_ours(stored: &Stored) -> bool {
    stored.by.is_none() && matches!(stored.credential, Credential::Oauth { .. })
}

/// Whether an address is that of this service: scheme, host and port are the same.
fn is_at(url: &str, api: &str) -> bool {
    match (Url::parse(url), Url::parse(api)) {
        (Ok(url), Ok(api)) => {
            url.origin() == api.origin() && url.username().is_empty() && url.password().is_none()
        }
        _ => false,
    }
}

impl Service {
    /// The host that the service has for keys.
    fn host(self) -> &'static str {
        match self {
            Self::OpenAi => openai::HOST,
            Self::Copilot => copilot::HOST,
            Self::Xai => xai::HOST,
        }
    }

    fn api(self, enterprise_url: Option<&str>) -> String {
        match self {
            Self::OpenAi => openai::API.to_owned(),
            Self::Copilot => copilot::api(enterprise_url),
            Self::Xai => xai::API.to_owned(),
        }
    }

    /// Where its tokens are renewed, and by whom; those of GitHub do not end.
    fn token_endpoint(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::OpenAi => Some((openai::TOKEN, openai::CLIENT)),
            Self::Copilot => None,
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
