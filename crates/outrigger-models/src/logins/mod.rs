//! Built-in logins: OpenAI (a ChatGPT plan), GitHub Copilot, xAI and Poe. A provider's file defines its login and what its requests
//! need besides the token; the flows are those of RFC 8628 (`device`) and RFC 7636 (`browser`).
//!
//! Client identifiers are those of OpenCode: they are public, and a login of one program is valid in the other. `tokens` decides
//! who gets a token.

mod browser;
mod copilot;
mod credential;
mod device;
mod openai;
mod poe;
mod servers;
mod tokens;
mod xai;

use std::collections::BTreeMap;

use outrigger_protocol::auth::{AuthMethod, Authorization, Credential};
use outrigger_protocol::model::ModelInfo;

pub use servers::LoginServers;
pub(crate) use tokens::LoginTokens;

/// Answers to the questions before a login, by key.
pub(crate) type Answers = BTreeMap<String, String>;

/// A service with a built-in login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    OpenAi,
    Copilot,
    Xai,
    Poe,
}

impl Service {
    const ALL: [Self; 4] = [Self::OpenAi, Self::Copilot, Self::Xai, Self::Poe];

    /// Returns the service of a provider.
    pub(crate) fn of(provider: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|service| service.provider() == provider)
    }

    fn provider(self) -> &'static str {
        match self {
            Self::OpenAi => openai::PROVIDER,
            Self::Copilot => copilot::PROVIDER,
            Self::Xai => xai::PROVIDER,
            Self::Poe => poe::PROVIDER,
        }
    }

    /// Returns the name of a login there in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "ChatGPT",
            Self::Copilot => "GitHub",
            Self::Xai => "xAI",
            Self::Poe => "Poe",
        }
    }

    fn methods(self) -> Vec<AuthMethod> {
        match self {
            Self::OpenAi => openai::methods(),
            Self::Copilot => copilot::methods(),
            Self::Xai => xai::methods(),
            Self::Poe => poe::methods(),
        }
    }

    /// Adapts the catalog's models to those of a login, with their costs and limits.
    pub(crate) fn adapt(self, models: &mut BTreeMap<String, ModelInfo>) {
        if self == Self::OpenAi {
            openai::adapt(models);
        }
    }
}

/// Returns the built-in login methods, by provider. Labels are those of OpenCode, which scripts use.
#[must_use]
pub fn login_methods() -> BTreeMap<String, Vec<AuthMethod>> {
    Service::ALL
        .into_iter()
        .map(|service| (service.provider().to_owned(), service.methods()))
        .collect()
}

/// Returns what is wrong with an answer to a question of a built-in login.
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
    /// The URL and instructions for the user.
    pub begun: Authorization,
    way: Way,
}

enum Way {
    Browser(browser::Browser),
    Device(device::Device),
}

// It contains secrets of the login.
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

    /// Waits for the user until the login expires, and returns the credential. A caller that gave up may call it again.
    ///
    /// # Errors
    /// It was refused, has expired, or the server could not be reached.
    pub async fn finish(&self) -> Result<Credential, String> {
        match &self.way {
            Way::Browser(browser) => browser.finish().await,
            Way::Device(device) => device.finish().await,
        }
    }
}

/// Starts a login with the method of this number. `None`: it has no first step (a key is typed), or does not exist.
///
/// # Errors
/// The server cannot be reached or refuses, or the callback port is taken.
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
        (Some(Service::Poe), 0) => poe::in_browser(servers).await?,
        (Some(Service::Xai), 0) => xai::in_browser(servers).await?,
        (Some(Service::Xai), 1) => xai::on_another_device(servers).await?,
        _ => return Ok(None),
    };
    Ok(Some(begun))
}

/// Creates a login method with tokens.
fn oauth(label: &str) -> AuthMethod {
    AuthMethod {
        kind: "oauth".to_owned(),
        label: label.to_owned(),
        prompts: None,
    }
}

/// Creates the method of typing a key.
fn key() -> AuthMethod {
    AuthMethod {
        kind: "api".to_owned(),
        label: "Manually enter API Key".to_owned(),
        prompts: None,
    }
}
