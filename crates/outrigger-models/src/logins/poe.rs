//! Poe: a login gives a key of the user's, made for this program, which goes with requests as a key that was typed does. It ends when Poe
//! says and is not renewed.

use outrigger_protocol::auth::AuthMethod;

use super::browser::{self, Gives, Plan};
use super::{LoginServers, WaitingLogin, key, oauth};

pub(super) const PROVIDER: &str = "poe";
pub(super) const HOST: &str = "api.poe.com";
pub(super) const API: &str = "https://api.poe.com/v1";
const TOKEN: &str = "https://api.poe.com/token";
const CLIENT: &str = "client_728290227fc048cc9262091a1ea197ea";
const AUTHORIZE: &str = "https://poe.com/oauth/authorize";

pub(super) fn methods() -> Vec<AuthMethod> {
    vec![oauth("Login with Poe (browser)"), key()]
}

pub(super) async fn in_browser(servers: &LoginServers) -> Result<WaitingLogin, String> {
    let plan = Plan {
        authorize: servers.at(AUTHORIZE),
        token: servers.at(TOKEN),
        client: CLIENT,
        scope: "apikey:create",
        host: "127.0.0.1",
        // Any that is free.
        port: 0,
        path: "/callback",
        more: Vec::new(),
        gives: Gives::Key,
    };
    browser::begin(plan).await.map(WaitingLogin::browser)
}
