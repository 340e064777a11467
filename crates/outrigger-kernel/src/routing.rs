//! Who fulfils a contract (C11): the rules that bind calls to providers. Paths are compared by their text alone, since a path on
//! another machine has no links here.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use outrigger_protocol::descriptor::Contract;
use serde::{Deserialize, Serialize};

/// Name of the provider that is the machine, or the browser, that the kernel runs in.
pub const LOCAL: &str = "local";
/// Name of the native provider of the contracts `browser.read` and `browser.write`: a Chromium over the DevTools protocol.
pub const CDP: &str = "cdp";

/// A routing rule. What it does not name it does not ask about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Route {
    /// For this contract.
    pub contract: Option<Contract>,
    /// For the tool of this name, or with a `*` after it for those whose names begin so.
    pub tool: Option<String>,
    /// For this agent and its subagents.
    pub agent: Option<String>,
    /// For paths at or below this one (the working folder of commands), absolute or from the session's folder.
    pub path: Option<String>,
    /// Who does it.
    pub provider: String,
}

/// A call, as far as rules ask about it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Tool.
    pub tool: &'a str,
    /// Agent.
    pub agent: &'a str,
    /// The agents that called that one.
    pub callers: &'a [String],
    /// The session's folder, absolute.
    pub directory: &'a str,
}

/// The rule that binds a call with this contract, by its place in the list: the first one that fits counts. `place` is the file or
/// folder that the call is about; without one it is the session's folder.
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

/// Who else than this machine does some of a contract at or below a place, or anywhere.
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

/// Whether a rule is for this contract, tool and agent.
fn is_for(rule: &Route, contract: Contract, call: &Call<'_>) -> bool {
    let (tool, agent) = (rule.tool.as_ref(), rule.agent.as_ref());
    rule.contract.is_none_or(|it| it == contract)
        && tool.is_none_or(|tool| names(tool, call.tool))
        // What an agent has done elsewhere, its subagents do not do here.
        && agent.is_none_or(|agent| agent == call.agent || call.callers.contains(agent))
}

fn names(pattern: &str, tool: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => tool.starts_with(start),
        None => pattern == tool,
    }
}

/// The names on the way from the root to a path seen from a folder, without `.` and `..`.
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
