//! Rules for URLs. Addresses of this machine or its network need a rule that names the host; `*` does not match them: a server
//! that a project runs there could expose what the rules keep from every tool.

use outrigger_kernel::permission::paths::is_everything;
use outrigger_kernel::permission::{evaluate, matches};
use outrigger_protocol::permission::{Action, Rule};
use reqwest::Url;

/// The permission whose patterns are URLs.
pub const WEB: &str = "webfetch";

/// Returns the action for a URL.
pub fn decide(url: &str, layers: &[&[Rule]]) -> Action {
    match evaluate(WEB, url, layers) {
        Action::Allow if is_local(url) && !is_named(url, layers) => Action::Ask,
        action => action,
    }
}

/// Returns whether an address belongs to this machine or its network.
pub fn is_local(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| outrigger_net::is_local(&url))
}

/// Returns whether the rules allow a URL by its host, and not by a general pattern.
pub fn is_named(url: &str, layers: &[&[Rule]]) -> bool {
    let parsed = Url::parse(url).ok();
    let Some(host) = parsed.as_ref().and_then(Url::host_str) else {
        return false;
    };
    let names = |rule: &Rule| {
        let pattern = rule.pattern.to_ascii_lowercase();
        !is_everything(&pattern) && pattern.contains(host)
    };
    let rules = layers.iter().rev().flat_map(|layer| layer.iter().rev());
    let mut about =
        rules.filter(|rule| matches(&rule.permission, WEB) && matches(&rule.pattern, url));
    about
        .find(|rule| rule.action != Action::Allow || names(rule))
        .is_some_and(|rule| rule.action == Action::Allow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_is_allowed_by_name() {
        use Action::{Allow, Ask, Deny};
        let rule = |pattern: &str, action| Rule {
            permission: WEB.into(),
            pattern: pattern.into(),
            action,
        };
        let all = rule("*", Allow);
        for (rules, url, want) in [
            (vec![all.clone()], "http://localhost:3000/", Ask),
            (vec![all.clone()], "http://127.0.0.1/.env", Ask),
            (vec![all.clone()], "http://[::1]/", Ask),
            (vec![all.clone()], "http://0x7f000001/", Ask),
            (vec![all.clone()], "http://192.168.1.1/", Ask),
            (vec![all.clone()], "https://example.com/", Allow),
            (vec![rule("http*", Allow)], "http://localhost/", Ask),
            (
                vec![rule("http://localhost:3000/*", Allow)],
                "http://localhost:3000/",
                Allow,
            ),
            (
                vec![rule("http://localhost:3000/*", Allow), all.clone()],
                "http://localhost:3000/",
                Allow,
            ),
            (
                vec![rule("http://localhost:3000/*", Allow)],
                "http://localhost:3001/",
                Ask,
            ),
            (
                vec![rule("http://localhost/*", Allow), rule("*", Deny)],
                "http://localhost/",
                Deny,
            ),
            (
                vec![rule("http://localhost/*", Allow), rule("*", Ask), all],
                "http://localhost/",
                Ask,
            ),
        ] {
            assert_eq!(decide(url, &[&rules]), want, "{rules:?} {url}");
        }
    }
}
