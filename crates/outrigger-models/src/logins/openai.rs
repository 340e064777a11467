//! OpenAI: the models of a ChatGPT plan, which a separate service provides.

use std::collections::BTreeMap;

use outrigger_protocol::auth::AuthMethod;
use outrigger_protocol::model::{Cost, Limit, ModelInfo};
use serde_json::json;

use super::browser::{self, Gives, Plan};
use super::device::{self, Ask, Device, Wait, body, needed};
use super::{LoginServers, WaitingLogin, key, oauth};
use crate::transport::token_endpoint::post_json;

pub(super) const PROVIDER: &str = "openai";
/// The host of the service for keys; with a login, its requests go to [`API`].
pub(super) const HOST: &str = "api.openai.com";
pub(super) const API: &str = "https://chatgpt.com/backend-api/codex";
pub(super) const TOKEN: &str = "https://auth.openai.com/oauth/token";
pub(super) const CLIENT: &str = "app_EMoamEEZ73f0CkXaXp7hrann";
const ISSUER: &str = "https://auth.openai.com";
const PORT: u16 = 1455;

pub(super) fn methods() -> Vec<AuthMethod> {
    vec![
        oauth("ChatGPT Pro/Plus (browser)"),
        oauth("ChatGPT Pro/Plus (headless)"),
        key(),
    ]
}

pub(super) async fn in_browser(servers: &LoginServers) -> Result<WaitingLogin, String> {
    let plan = Plan {
        authorize: servers.at(&format!("{ISSUER}/oauth/authorize")),
        token: servers.at(TOKEN),
        client: CLIENT,
        scope: "openid profile email offline_access",
        host: "localhost",
        port: servers.port(PORT),
        path: "/auth/callback",
        more: vec![
            ("id_token_add_organizations", "true".to_owned()),
            ("codex_cli_simplified_flow", "true".to_owned()),
            ("originator", "outrigger".to_owned()),
        ],
        gives: Gives::Tokens,
    };
    browser::begin(plan).await.map(WaitingLogin::browser)
}

pub(super) async fn on_another_device(servers: &LoginServers) -> Result<WaitingLogin, String> {
    let at = |path: &str| servers.at(&format!("{ISSUER}{path}"));
    let client = json!({ "client_id": CLIENT });
    let answer = post_json(&at("/api/accounts/deviceauth/usercode"), &client).await?;
    let code = needed(&answer, "user_code")?;
    let device = Device {
        wait: Wait::of(&answer),
        ask: Ask::Exchange {
            url: at("/api/accounts/deviceauth/token"),
            body: body(needed(&answer, "device_auth_id")?, code),
            token: servers.at(TOKEN),
            client: CLIENT,
            // A registered name that is not used for a callback.
            redirect: format!("{ISSUER}/deviceauth/callback"),
        },
        gives: device::Gives::Renewable,
    };
    Ok(WaitingLogin::device(at("/codex/device"), code, device))
}

/// The models before GPT-5.5 that a plan includes. The list changes; a refused model reports it.
const MODELS: [&str; 5] = [
    "gpt-5.2",
    "gpt-5.3-codex",
    "gpt-5.3-codex-spark",
    "gpt-5.4",
    "gpt-5.4-mini",
];

fn is_in_plan(id: &str) -> bool {
    let version = id.strip_prefix("gpt-").and_then(|rest| {
        let version = rest.split('-').next()?;
        let (major, minor) = version.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    });
    MODELS.contains(&id) || version.is_some_and(|version| version > (5, 4))
}

/// Keeps the models of a plan, which have no cost per token. GPT-5.5 has a smaller context there than with
/// a key.
pub(super) fn adapt(models: &mut BTreeMap<String, ModelInfo>) {
    models.retain(|_, model| is_in_plan(&model.api.id));
    for model in models.values_mut() {
        model.cost = Cost::default();
        if model.api.id.starts_with("gpt-5.5") {
            model.limit = Limit {
                context: 400_000,
                input: Some(272_000),
                output: 128_000,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_the_newer_models() {
        for (id, want) in [
            ("gpt-5.4", true),
            ("gpt-5.4-mini", true),
            ("gpt-5.4-nano", false),
            ("gpt-5.5", true),
            ("gpt-5.6-sol", true),
            ("gpt-5.10", true),
            ("gpt-6.0-x", true),
            ("gpt-5", false),
            ("gpt-5.1-codex", false),
            ("o3", false),
        ] {
            assert_eq!(is_in_plan(id), want, "{id}");
        }
    }
}
