//! xAI: the models of a Grok plan. Its server does not register clients, so OpenCode's client is used.

use outrigger_protocol::auth::AuthMethod;

use super::browser::{self, Gives, Plan, random};
use super::device::{self, Ask, Device, Wait, form, needed};
use super::{LoginServers, WaitingLogin, key, oauth};
use crate::transport::token_endpoint::post_form;

pub(super) const PROVIDER: &str = "xai";
pub(super) const HOST: &str = "api.x.ai";
pub(super) const API: &str = "https://api.x.ai/v1";
pub(super) const TOKEN: &str = "https://auth.x.ai/oauth2/token";
pub(super) const CLIENT: &str = "b1a00492-073a-47ea-816f-4c329264a828";
const AUTHORIZE: &str = "https://auth.x.ai/oauth2/authorize";
const DEVICE: &str = "https://auth.x.ai/oauth2/device/code";
const SCOPE: &str = "openid profile email offline_access grok-cli:access api:access";
const PORT: u16 = 56121;

pub(super) fn methods() -> Vec<AuthMethod> {
    vec![
        oauth("xAI Grok OAuth (SuperGrok Subscription)"),
        oauth("xAI Grok OAuth (Headless / Remote / VPS)"),
        key(),
    ]
}

pub(super) async fn in_browser(servers: &LoginServers) -> Result<WaitingLogin, String> {
    let plan = Plan {
        authorize: servers.at(AUTHORIZE),
        token: servers.at(TOKEN),
        client: CLIENT,
        scope: SCOPE,
        host: "127.0.0.1",
        port: servers.port(PORT),
        path: "/callback",
        more: vec![
            ("nonce", random()?),
            // Without it the page refuses clients with a loopback callback.
            ("plan", "generic".to_owned()),
            ("referrer", "outrigger".to_owned()),
        ],
        gives: Gives::Tokens,
    };
    browser::begin(plan).await.map(WaitingLogin::browser)
}

pub(super) async fn on_another_device(servers: &LoginServers) -> Result<WaitingLogin, String> {
    let fields = vec![
        ("client_id", CLIENT.to_owned()),
        ("scope", SCOPE.to_owned()),
    ];
    let answer = post_form(&servers.at(DEVICE), &fields).await?;
    let device = Device {
        wait: Wait::of(&answer),
        ask: Ask::Token {
            url: servers.at(TOKEN),
            form: form(CLIENT, needed(&answer, "device_code")?),
        },
        gives: device::Gives::Renewable,
    };
    let whole = answer.text("verification_uri_complete");
    let page = whole
        .map_or_else(|| needed(&answer, "verification_uri"), Ok)?
        .to_owned();
    let code = needed(&answer, "user_code")?;
    Ok(WaitingLogin::device(page, code, device))
}
