//! Logins that are built in: OpenAI (a ChatGPT plan), GitHub Copilot and xAI. A provider's file says how one logs in there and
//! what its requests need besides the token; the flows are those of RFC 8628 (`device`) and RFC 7636 (`browser`).
//!
//! Clients are identified as OpenCode identifies itself: the identifiers are public, and a login of the one is one of the other.
//! Who gets a token is decided in `tokens`.

mod browser;
mod copilot;
mod credential;
mod device;
mod openai;
mod servers;
mod tokens;
mod xai;

use std::collections::BTreeMap;

use outrigger_protocol::auth::{AuthMethod, Authorization, Credential};
use outrigger_protocol::model::ModelInfo;

pub use servers::LoginServers;
pub(crate) use tokens::LoginTokens;

/// Answers to what a login asks first, by key.
pub(crate) type Answers = BTreeMap<String, String>;

/// A service that one can log in at without a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    OpenAi,
    Copilot,
    Xai,
}

impl Service {
    const ALL: [Self; 3] = [Self::OpenAi, Self::Copilot, Self::Xai];

    /// The service of a provider.
    pub(crate) fn of(provider: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|service| service.provider() == provider)
    }

    fn provider(self) -> &'static str {
        match self {
            Self::OpenAi => openai::PROVIDER,
            Self::Copilot => copilot::PROVIDER,
            Self::Xai => xai::PROVIDER,
        }
    }

    /// What a login there is called in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "ChatGPT",
            Self::Copilot => "GitHub",
            Self::Xai => "xAI",
        }
    }

    fn methods(self) -> Vec<AuthMethod> {
        match self {
            Self::OpenAi => openai::methods(),
            Self::Copilot => copilot::methods(),
            Self::Xai => xai::methods(),
        }
    }

    /// Changes the models of the catalog to those that a login there gives, with what they cost and hold then.
    pub(crate) fn adapt(self, models: &mut BTreeMap<String, ModelInfo>) {
        if self == Self::OpenAi {
            openai::adapt(models);
        }
    }
}

/// The ways to log in that are built in, by provider. Labels are those of OpenCode, which scripts name.
#[must_use]
pub fn login_methods() -> BTreeMap<String, Vec<AuthMethod>> {
    let all = Service::ALL.into_iter();
    all.map(|service| (service.provider().to_owned(), service.methods()))
        .collect()
}

/// What is wrong with an answer to a question of a built-in login.
#[must_use]
pub fn wrong_login_answer(provider: &str, key: &str, value: &str) -> Option<String> {
    let asked = Service::of(provider) == Some(Service::Copilot) && key == copilot::ENTERPRISE_URL;
    if asked {
        return copilot::domain(value).err();
    }
    None
}

/// A login that waits for its user.
pub struct WaitingLogin {
    /// Where the user goes, and what they are shown.
    pub begun: Authorization,
    way: Way,
}

enum Way {
    Browser(browser::Browser),
    Device(device::Device),
}

// It holds what ends a login.
impl std::fmt::Debug for WaitingLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WaitingLogin").finish_non_exhaustive()
    }
}

impl WaitingLogin {
    fn browser((url, browser): (String, browser::Browser)) -> Self {
        Self {
            begun: Authorization {
                url,
                method: "auto".to_owned(),
                instructions: "Log in with your browser on this machine.".to_owned(),
            },
            way: Way::Browser(browser),
        }
    }

    fn device(page: String, code: &str, device: device::Device) -> Self {
        Self {
            begun: Authorization {
                url: page,
                method: "auto".to_owned(),
                // OpenCode's words, which clients look for.
                instructions: format!("Enter code: {code}"),
            },
            way: Way::Device(device),
        }
    }

    /// Waits for the user, as long as the login holds, and gets the credential. A caller that gave up may ask again.
    ///
    /// # Errors
    /// It was refused, has ended, or the server could not be asked.
    pub async fn finish(&self) -> Result<Credential, String> {
        match &self.way {
            Way::Browser(browser) => browser.finish().await,
            Way::Device(device) => device.finish().await,
        }
    }
}

/// Begins a login by the method of this number. `None`: it has nothing to begin with (a key is typed), or is not there.
///
/// # Errors
/// The server cannot be asked or refuses, or the port that the browser comes back to is taken.
pub(crate) async fn begin(
    servers: &LoginServers,
    provider: &str,
    method: usize,
    answers: &Answers,
) -> Result<Option<WaitingLogin>, String> {
    let begun = match (Service::of(provider), method) {
        (Some(Service::OpenAi), 0) => openai::in_browser(servers).await?,
        (Some(Service::OpenAi), 1) => openai::on_another_device(servers).await?,
        (Some(Service::Copilot), 0) => copilot::begin(servers, answers).await?,
        (Some(Service::Xai), 0) => xai::in_browser(servers).await?,
        (Some(Service::Xai), 1) => xai::on_another_device(servers).await?,
        _ => return Ok(None),
    };
    Ok(Some(begun))
}

/// A way to log in with tokens.
fn oauth(label: &str) -> AuthMethod {
    AuthMethod {
        kind: "oauth".to_owned(),
        label: label.to_owned(),
        prompts: None,
    }
}

/// A key that is typed.
fn key() -> AuthMethod {
    AuthMethod {
        kind: "api".to_owned(),
        label: "Manually enter API Key".to_owned(),
        prompts: None,
    }
}
