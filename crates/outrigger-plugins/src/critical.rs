//! Security-critical hooks: where one fails, is late or cannot be called, what it guards is refused (C5).

use outrigger_kernel::hooks::{self, Phase, Point};

use crate::settings::PluginRules;

/// Points whose result nobody can refuse: the configuration, the choice of a model for titles, the list of tools.
const NO_REFUSAL: &[&str] = &[
    "runtime.configure",
    "runtime.route.small_model",
    "llm.tool_definition",
];

/// Whether a refusal at this point is carried out.
fn refusable(point: &Point) -> bool {
    matches!(point.phase, Phase::Before | Phase::After) && !NO_REFUSAL.contains(&point.name)
}

/// The names of the hooks whose failure can be refused, in every spelling: a policy requires no others.
#[must_use]
pub fn refusing_hooks() -> Vec<String> {
    let points = hooks::POINTS.iter().filter(|point| refusable(point));
    let mut names: Vec<String> = points
        .flat_map(|point| {
            let aliases = hooks::ALIASES
                .iter()
                .filter(|(_, name)| *name == point.name);
            let short = point.hook.strip_prefix("experimental.");
            let names = [point.hook, point.name].into_iter().chain(short);
            names.chain(aliases.map(|(alias, _)| *alias))
        })
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    names
}

/// The points at which a plugin's failure refuses.
pub(crate) fn points(rules: &PluginRules) -> impl Iterator<Item = &'static Point> {
    let named = rules.fail_closed.iter();
    named
        .filter_map(|name| hooks::point(name))
        .filter(|point| refusable(point))
}

/// Whether a plugin's failure refuses there.
pub(crate) fn at(rules: &PluginRules, point: &Point) -> bool {
    // A point that a plugin declares has one name, and is refused as it allows.
    let own = || {
        hooks::point(point.name).is_none() && rules.fail_closed.iter().any(|it| it == point.name)
    };
    points(rules).any(|critical| critical.name == point.name) || own()
}

/// What of a plugin's `fail_closed` has no effect; `brings` are the names of its hooks.
pub(crate) fn problems<'a>(
    rules: &PluginRules,
    brings: impl Iterator<Item = &'a String> + Clone,
) -> Vec<String> {
    let problem = |name: &String| {
        let mut own = brings.clone();
        if name.contains('/') && own.any(|hook| hook == name) {
            return None;
        }
        let Some(point) = hooks::point(name) else {
            return Some(format!("fail_closed names {name}, which is no hook"));
        };
        if !refusable(point) {
            return Some(format!(
                "fail_closed names {name}, where nothing can be refused"
            ));
        }
        let mut brings = brings.clone();
        let brought =
            brings.any(|hook| hooks::by_hook(hook).is_some_and(|own| own.name == point.name));
        (!brought).then(|| format!("fail_closed names {name}, which it does not bring"))
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
        let known = |name: &String| hooks::point(name).is_some_and(refusable);
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
        let names: Vec<&str> = points(&rules).map(|point| point.hook).collect();
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
            problems(&rules, brings.iter()),
            [
                "fail_closed names chat.params, which it does not bring",
                "fail_closed names config, where nothing can be refused",
                "fail_closed names event, where nothing can be refused",
                "fail_closed names tool.execute.befor, which is no hook",
            ]
        );
    }
}
