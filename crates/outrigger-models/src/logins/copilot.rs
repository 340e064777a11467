//! GitHub Copilot: the token of a login to GitHub, or to a company's own GitHub, is sent unchanged and does not expire.

use outrigger_protocol::auth::{AuthMethod, AuthOption, AuthPrompt, AuthRule};
use reqwest::Url;

use super::device::{Ask, Device, Gives, Wait, form, needed};
use super::{Answers, LoginServers, WaitingLogin, oauth};
use crate::provider::presets::COPILOT;
use crate::transport::token_endpoint::post_form;

pub(super) const PROVIDER: &str = COPILOT;
pub(super) const HOST: &str = "api.githubcopilot.com";
/// The question for the URL of a company's own GitHub.
pub(super) const ENTERPRISE_URL: &str = "enterpriseUrl";
const API: &str = "https://api.githubcopilot.com";
const DEPLOYMENT: &str = "deploymentType";
const ENTERPRISE: &str = "enterprise";
const CLIENT: &str = "Ov23li8tweQw6odWQebz";

pub(super) fn methods() -> Vec<AuthMethod> {
    let choice = |label: &str, value: &str, hint: &str| AuthOption {
        label: label.to_owned(),
        value: value.to_owned(),
        hint: Some(hint.to_owned()),
    };
    let deployment = AuthPrompt {
        kind: "select".to_owned(),
        key: DEPLOYMENT.to_owned(),
        message: "Which GitHub?".to_owned(),
        placeholder: None,
        options: Some(vec![
            choice("GitHub.com", "github.com", "Public"),
            choice(
                "GitHub Enterprise",
                ENTERPRISE,
                "Data residency or self-hosted",
            ),
        ]),
        when: None,
    };
    let address = AuthPrompt {
        kind: "text".to_owned(),
        key: ENTERPRISE_URL.to_owned(),
        message: "Its address:".to_owned(),
        placeholder: Some("company.ghe.com".to_owned()),
        options: None,
        when: Some(AuthRule {
            key: DEPLOYMENT.to_owned(),
            op: "eq".to_owned(),
            value: ENTERPRISE.to_owned(),
        }),
    };
    vec![AuthMethod {
        prompts: Some(vec![deployment, address]),
        ..oauth("Login with GitHub Copilot")
    }]
}

/// Returns the host (and port) of a URL.
///
/// # Errors
/// It is invalid, in words.
pub(super) fn domain(typed: &str) -> Result<String, String> {
    let wrong = || "an address such as company.ghe.com is wanted".to_owned();
    let typed = typed.trim();
    let url = if typed.contains("://") {
        Url::parse(typed)
    } else {
        Url::parse(&format!("https://{typed}"))
    };
    let url = url.map_err(|_| wrong())?;
    let is_plain = url.scheme() == "https"
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    let host = url
        .host_str()
        .filter(|host| !host.is_empty() && is_plain)
        .ok_or_else(wrong)?;
    Ok(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

pub(super) async fn begin(
    servers: &LoginServers,
    answers: &Answers,
) -> Result<WaitingLogin, String> {
    let answer = |key: &str| answers.get(key).map(String::as_str);
    let enterprise_url = match answer(DEPLOYMENT) {
        Some(ENTERPRISE) => Some(domain(answer(ENTERPRISE_URL).unwrap_or_default())?),
        _ => None,
    };
    let host = enterprise_url.as_deref().unwrap_or("github.com");
    let at = |path: &str| servers.at(&format!("https://{host}{path}"));
    let scope = vec![
        ("client_id", CLIENT.to_owned()),
        ("scope", "read:user".to_owned()),
    ];
    let answer = post_form(&at("/login/device/code"), &scope).await?;
    let device = Device {
        wait: Wait::of(&answer),
        ask: Ask::Token {
            url: at("/login/oauth/access_token"),
            form: form(CLIENT, needed(&answer, "device_code")?),
        },
        gives: Gives::Lasting { enterprise_url },
    };
    let page = needed(&answer, "verification_uri")?.to_owned();
    let code = needed(&answer, "user_code")?;
    Ok(WaitingLogin::device(page, code, device))
}

/// Returns Copilot's URL for this login.
pub(super) fn api(enterprise_url: Option<&str>) -> String {
    let domain = enterprise_url.and_then(|typed| domain(typed).ok());
    domain.map_or_else(
        || API.to_owned(),
        |domain| format!("https://copilot-api.{domain}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_companys_own_github_is_named_by_its_host() {
        for (typed, want) in [
            ("company.ghe.com", Some("company.ghe.com")),
            (" https://company.ghe.com/ ", Some("company.ghe.com")),
            ("company.ghe.com:8443", Some("company.ghe.com:8443")),
            ("http://company.ghe.com", None),
            ("https://me@company.ghe.com", None),
            ("https://company.ghe.com/path", None),
            ("company.ghe.com?x", None),
            ("", None),
            ("a b", None),
        ] {
            assert_eq!(domain(typed).ok().as_deref(), want, "{typed}");
        }
        assert_eq!(api(Some("a.test")), "https://copilot-api.a.test");
        assert_eq!(api(None), API);
    }
}
