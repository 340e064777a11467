//! Routing of contracts (C11): the rules that bind calls to providers. Paths are compared as text only, since a path on another
//! machine has no links here.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use outrigger_protocol::descriptor::Contract;
use serde::{Deserialize, Serialize};

/// Name of the provider that is this machine or its browser.
pub const LOCAL: &str = "local";
/// Name of the native provider of the contracts `browser.read` and `browser.write`: a Chromium over the DevTools protocol.
pub const CDP: &str = "cdp";

/// A routing rule. An absent field matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Route {
    /// Contract.
    pub contract: Option<Contract>,
    /// Tool of this name, or with a trailing `*` all tools with this prefix.
    pub tool: Option<String>,
    /// This agent and its subagents.
    pub agent: Option<String>,
    /// Paths at or below this one (the working directory of commands), absolute or relative to the session's folder.
    pub path: Option<String>,
    /// Provider that fulfils the contract.
    pub provider: String,
}

/// The properties of a call that rules match.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Name of the tool.
    pub tool: &'a str,
    /// Name of the agent.
    pub agent: &'a str,
    /// Parent agents of that agent.
    pub callers: &'a [String],
    /// Absolute path of the session's folder.
    pub directory: &'a str,
}

/// Returns the index of the rule that binds a call with this contract: the first match wins. `place` is the file or folder of the
/// call; without one it is the session's folder.
#[must_use]
pub fn bound(
    rules: &[Route],
    contract: Contract,
    place: Option<&str>,
    call: &Call<'_>,
) -> Option<usize> {
    let place = resolve(call.directory, place.unwrap_or("."));
    rules.iter().position(|rule| {
        is_for(rule, contract, call)
            && rule
                .path
                .as_ref()
                .is_none_or(|root| is_below(&place, &resolve(call.directory, root)))
    })
}

/// Returns the providers other than this machine that fulfil part of a contract at or below a path, or anywhere.
#[must_use]
pub fn elsewhere<'a>(
    rules: &'a [Route],
    contract: Contract,
    place: Option<&str>,
    call: &Call<'_>,
) -> Option<&'a str> {
    let place = place.map(|place| resolve(call.directory, place));
    for rule in rules.iter().filter(|it| is_for(it, contract, call)) {
        let root = rule.path.as_ref().map(|path| resolve(call.directory, path));
        let (all, some) = match (&root, &place) {
            (None, _) => (true, true),
            (Some(_), None) => (false, true),
            (Some(root), Some(place)) => {
                let all = is_below(place, root);
                (all, all || is_below(root, place))
            }
        };
        if some && rule.provider != LOCAL && rule.provider != CDP {
            return Some(&rule.provider);
        }
        if all {
            return None;
        }
    }
    None
}

/// Returns whether a rule matches this contract, tool and agent.
fn is_for(rule: &Route, contract: Contract, call: &Call<'_>) -> bool {
    let (tool, agent) = (rule.tool.as_ref(), rule.agent.as_ref());
    rule.contract.is_none_or(|it| it == contract)
        && tool.is_none_or(|tool| names(tool, call.tool))
        // What an agent delegates elsewhere, its subagents do not do here.
        && agent.is_none_or(|agent| agent == call.agent || call.callers.contains(agent))
}

fn names(pattern: &str, tool: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => tool.starts_with(start),
        None => pattern == tool,
    }
}

/// Returns the components of a path relative to a folder, from the root, without `.` and `..`.
fn resolve(folder: &str, path: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let from = if path.starts_with('/') { "" } else { folder };
    for name in from.split('/').chain(path.split('/')) {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name.to_owned()),
        }
    }
    names
}

fn is_below(place: &[String], root: &[String]) -> bool {
    place.starts_with(root)
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    fn rule(contract: Option<Contract>, path: Option<&str>, provider: &str) -> Route {
        Route {
            contract,
            path: path.map(ToString::to_string),
            provider: provider.to_string(),
            ..Route::default()
        }
    }

    const CALL: Call<'_> = Call {
        tool: "read",
        agent: "build",
        callers: &[],
        directory: "/p",
    };

    #[test]
    fn the_first_rule_that_fits_counts() {
        let rules = [
            rule(Some(Contract::Read), Some("src"), "a"),
            rule(None, Some("/p/src/../docs"), "b"),
            rule(Some(Contract::Exec), None, "c"),
        ];
        for (contract, place, want) in [
            (Contract::Read, Some("src/x.rs"), Some(0)),
            (Contract::Read, Some("srcs/x.rs"), None),
            (Contract::Read, Some("docs/x.rs"), Some(1)),
            (Contract::Read, Some("/p/src"), Some(0)),
            (Contract::Read, Some("../p/src"), Some(0)),
            (Contract::Write, Some("src/x.rs"), None),
            (Contract::Exec, None, Some(2)),
        ] {
            assert_eq!(bound(&rules, contract, place, &CALL), want, "{place:?}");
        }
        let of_tool = [Route {
            tool: Some("browser_*".to_string()),
            agent: Some("parent".to_string()),
            ..rule(None, None, "a")
        }];
        let callers = vec!["parent".to_string()];
        let call = Call {
            tool: "browser_open",
            callers: &callers,
            ..CALL
        };
        assert_eq!(
            bound(&of_tool, Contract::BrowserWrite, None, &call),
            Some(0)
        );
        let other = Call {
            callers: &[],
            ..call
        };
        assert_eq!(bound(&of_tool, Contract::BrowserWrite, None, &other), None);
    }

    #[test]
    fn what_is_done_elsewhere_is_found_above_and_below() {
        let rules = [
            rule(None, Some("docs"), LOCAL),
            rule(None, Some("src"), "a"),
        ];
        for (place, want) in [
            (Some("src/deep"), Some("a")),
            (Some("."), Some("a")),
            (None, Some("a")),
            (Some("docs"), None),
            (Some("other"), None),
        ] {
            assert_eq!(
                elsewhere(&rules, Contract::Read, place, &CALL),
                want,
                "{place:?}"
            );
        }
    }
}
