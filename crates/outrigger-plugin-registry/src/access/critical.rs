//! Security-critical hooks: if one fails, is late or cannot be called, what it guards is refused (C5).

use std::collections::HashMap;

use outrigger_kernel::hooks::{ALIASES, HookPoint};

use crate::access::settings::PluginRules;

/// Returns the names of the hooks whose failure can be refused, in every spelling: a policy can require only these.
#[must_use]
pub fn refusing_hooks() -> Vec<String> {
    let points = HookPoint::ALL.iter().filter(|point| point.fails_closed());
    let mut names: Vec<String> = points
        .flat_map(|point| {
            let aliases = ALIASES.iter().filter(move |(_, of)| of == point);
            let short = point.hook().strip_prefix("experimental.");
            [point.hook(), point.name()]
                .into_iter()
                .chain(short)
                .chain(aliases.map(|(alias, _)| *alias))
        })
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Returns the points at which a plugin's failure refuses.
pub fn points(rules: &PluginRules) -> impl Iterator<Item = HookPoint> {
    rules
        .fail_closed
        .iter()
        .filter_map(|name| HookPoint::parse(name))
        .filter(|point| point.fails_closed())
}

/// Returns a name that is not a hook. A name with a slash is that of a plugin's custom point, which may be declared later.
pub fn misnamed(rules: &PluginRules) -> Option<&String> {
    let mut named = rules.fail_closed.iter();
    named.find(|name| !name.contains('/') && HookPoint::parse(name).is_none())
}

/// Returns whether a plugin's failure refuses there.
pub fn at(rules: &PluginRules, point: HookPoint) -> bool {
    // A point that a plugin declares has one name, and is refused as it allows.
    let own = || {
        point.is_declared()
            && point.fails_closed()
            && rules.fail_closed.iter().any(|it| it == point.name())
    };
    points(rules).any(|critical| critical == point) || own()
}

/// Returns whether a manifest itself may set that a failure refuses there: only where every handler may refuse (C3). At
/// other points the user sets it. Custom points are known once all manifests are.
pub(crate) fn by_manifest(hook: &str) -> bool {
    HookPoint::parse(hook).is_none_or(|point| point.spec().block)
}

/// Returns the entries of a plugin's `fail_closed` that have no effect; `brings` are the names of its hooks, `declared`
/// the points of plugins.
pub fn problems<'a>(
    rules: &PluginRules,
    brings: impl Iterator<Item = &'a String> + Clone,
    declared: &HashMap<&'static str, HookPoint>,
) -> Vec<String> {
    let problem = |name: &String| {
        let own = declared.get(name.as_str()).copied();
        let Some(point) = HookPoint::parse(name).or(own) else {
            // The plugin that declares it may not be loaded yet.
            let mut brings = brings.clone();
            let known = name.contains('/') && brings.any(|hook| hook == name);
            return (!known).then(|| format!("fail_closed names {name}, which is not a hook"));
        };
        if !point.fails_closed() {
            return Some(format!(
                "fail_closed names {name}, where nothing can be refused"
            ));
        }
        let mut brings = brings.clone();
        let known =
            brings.any(|hook| hook == point.name() || HookPoint::parse(hook) == Some(point));
        (!known).then(|| format!("fail_closed names {name}, which it does not bring"))
    };
    rules.fail_closed.iter().filter_map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_that_can_be_required_are_those_whose_failure_refuses() {
        let all = refusing_hooks();
        for (name, refuses) in [
            ("tool.execute.before", true),
            ("tool.before_call", true),
            ("chat.system.transform", true),
            ("experimental.chat.system.transform", true),
            ("event", false),
            ("config", false),
            ("tool.execute.befor", false),
        ] {
            assert_eq!(all.iter().any(|it| it == name), refuses, "{name}");
        }
        let known = |name: &String| HookPoint::parse(name).is_some_and(HookPoint::fails_closed);
        assert!(all.iter().all(known));
    }

    #[test]
    fn names_in_either_spelling_and_what_has_no_effect() {
        let rules = PluginRules {
            fail_closed: [
                "tool.before_call",
                "permission.ask",
                "chat.system.transform",
                "chat.params",
                "config",
                "event",
                "tool.execute.befor",
            ]
            .map(str::to_owned)
            .to_vec(),
            ..PluginRules::default()
        };
        let names: Vec<&str> = points(&rules).map(|point| point.hook()).collect();
        assert_eq!(
            names,
            [
                "tool.execute.before",
                "permission.ask",
                "experimental.chat.system.transform",
                "chat.params"
            ]
        );
        let brings = [
            "tool.execute.before",
            "permission.ask",
            "experimental.chat.system.transform",
        ]
        .map(str::to_owned);
        assert_eq!(
            problems(&rules, brings.iter(), &HashMap::new()),
            [
                "fail_closed names chat.params, which it does not bring",
                "fail_closed names config, where nothing can be refused",
                "fail_closed names event, where nothing can be refused",
                "fail_closed names tool.execute.befor, which is not a hook",
            ]
        );
    }
}
