//! Limits for agents as changed by plugins: their permissions without plugins, from the user's rules and the defaults of the
//! program and its bundled agents. So a plugin can restrict an agent but never widen it.

use std::collections::BTreeMap;

use outrigger_kernel::permission::paths::is_everything;
use outrigger_kernel::permission::{evaluate, matches};
use outrigger_protocol::permission::{Action, Rule};

use super::intersection::{lifted, narrowing};
use super::{UserRules, is_wider};
use crate::access::hosts;
use crate::agents::{self, AgentInfo, Places};

/// A restriction that a plugin's rules would have lifted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiftedRule {
    /// The agent.
    pub agent: String,
    /// The rule that stays in force.
    pub kept: Rule,
}

impl UserRules {
    /// Limits agents to their permissions without plugins, and returns what the plugins would have lifted. `default` is the agent
    /// that answers if none is named.
    pub fn limit(
        &self,
        agents: &mut BTreeMap<String, AgentInfo>,
        default: Option<&str>,
        places: Places<'_>,
    ) -> Vec<LiftedRule> {
        let wanted: Vec<Vec<Rule>> = agents.values().map(|it| it.permission.clone()).collect();
        let lifted = self.hold_agents(agents, default, places);
        for (agent, wanted) in agents.values_mut().zip(wanted) {
            agent.wanted = Some(wanted).filter(|wanted| *wanted != agent.permission);
        }
        lifted
    }

    /// Limits agents to their permissions by these rules alone and the program's own agents: an untrusted project widens none.
    /// Returns what it would have lifted.
    pub fn hold_agents(
        &self,
        agents: &mut BTreeMap<String, AgentInfo>,
        default: Option<&str>,
        places: Places<'_>,
    ) -> Vec<LiftedRule> {
        let without = agents::all(&self.agents, &self.everywhere, places);
        // An agent contributed by a plugin may do what the usual agent may, before user rules for that one.
        let usual = agents::all(&[], &self.everywhere, places)
            .remove("build")
            .map(|it| it.permission)
            .unwrap_or_default();
        let replaced = self
            .default
            .as_deref()
            .filter(|name| default.is_some_and(|now| now != *name))
            .and_then(|name| without.get(name));
        let mut all = Vec::new();
        for (name, agent) in agents {
            let held = without.get(name).map_or(&usual, |it| &it.permission);
            all.extend(limit(held, name, &mut agent.permission));
            // An agent that replaces the user's choice has the limits of that choice too.
            if let Some(replaced) = replaced.filter(|_| default == Some(name)) {
                all.extend(limit(&replaced.permission, name, &mut agent.permission));
            }
        }
        all
    }
}

/// Permissions that only interact with the user: a question, and the change between planning and building, which needs approval.
const TALK: [&str; 3] = ["question", "plan_enter", "plan_exit"];

/// Returns the rules of a list that restrict an agent.
fn rights(rules: &[Rule]) -> Vec<Rule> {
    rules
        .iter()
        .filter(|rule| !TALK.contains(&rule.permission.as_str()))
        .cloned()
        .collect()
}

/// Returns whether rules permit nothing that others do not.
pub fn is_within(held: &[Rule], rules: &[Rule]) -> bool {
    narrowing(&rights(held), rules).is_empty()
}

fn limit(held: &[Rule], agent: &str, rules: &mut Vec<Rule>) -> Vec<LiftedRule> {
    let held = &rights(held);
    let local = |rule: &Rule| may_name_local_host(rule) && !held.contains(rule);
    let named = rules.iter().filter(|rule| local(rule)).cloned();
    let mut lifted: Vec<Rule> = named.collect();
    rules.retain(|rule| !local(rule));
    let behind = narrowing(held, rules);
    let is_wider = |rule: &&Rule| {
        let before = evaluate(&rule.permission, &rule.pattern, &[rules]);
        is_wider(before, rule.action)
    };
    lifted.extend(behind.iter().filter(is_wider).cloned());
    rules.extend(behind);
    lifted
        .into_iter()
        .map(|kept| LiftedRule {
            agent: agent.to_owned(),
            kept,
        })
        .collect()
}

/// Returns the first of `rules` that, appended to those of an agent and its session, lifts a restriction, with that restriction.
pub fn would_lift<'a>(held: &'a [Rule], rules: &'a [Rule]) -> Option<(&'a Rule, &'a Rule)> {
    let local = |rule: &&Rule| may_name_local_host(rule) && !held.contains(rule);
    let names = rules.iter().find(local).map(|rule| (rule, rule));
    lifted(held, rules).or(names)
}

/// Returns the rules to append to a subagent's, which limit it to what its caller may do too.
pub fn subagent_limits(caller: &[Rule], child: &[Rule]) -> Vec<Rule> {
    let named = child
        .iter()
        .filter(|rule| may_name_local_host(rule) && !caller.contains(rule));
    let mut limits: Vec<Rule> = named
        .map(|rule| Rule {
            action: Action::Ask,
            ..rule.clone()
        })
        .collect();
    limits.extend(narrowing(caller, &[child, &limits].concat()));
    limits
}

/// Returns whether an allowed URL could be on this machine or its network, which requires a rule that names it
/// ([`hosts::decide`]).
fn may_name_local_host(rule: &Rule) -> bool {
    if rule.action != Action::Allow
        || !matches(&rule.permission, hosts::WEB)
        || is_everything(&rule.pattern)
    {
        return false;
    }
    ["https://", "http://"]
        .iter()
        .find_map(|scheme| {
            let (host, _) = rule.pattern.strip_prefix(scheme)?.split_once('/')?;
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
            (host.contains('.') && host.chars().all(is_plain)).then(|| format!("{scheme}{host}/"))
        })
        .is_none_or(|url| hosts::is_local(&url))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use outrigger_config::OpenCodeConfig;
    use serde_json::{Value, json};

    use super::super::tests::rules;
    use super::*;

    fn config(value: Value) -> OpenCodeConfig {
        OpenCodeConfig::from_value(value, Path::new("/home/u")).unwrap()
    }

    /// Returns an agent's permissions after a plugin turned the first configuration into the second.
    fn limited(user: Value, plugin: Value, agent: &str) -> (AgentInfo, Vec<LiftedRule>) {
        let (user, changed) = (config(user), config(plugin));
        let folders = [Path::new("/tmp/out")];
        let places = Places {
            allowed_folders: &folders,
            ..Places::default()
        };
        let mut all = agents::all(&changed.agent, &changed.permission, places);
        let default = agents::default_name(&all, changed.default_agent.as_deref());
        let lifted = UserRules::of(&user).limit(&mut all, default.as_deref(), places);
        (all.remove(agent).unwrap(), lifted)
    }

    #[test]
    fn a_plugin_makes_no_agent_wider_than_it_is_without() {
        use Action::{Allow, Ask, Deny};
        let everything = json!({"*": "allow", "external_directory": "allow", "read": {"*.env": "allow"}, "edit": "allow"});
        for (user, plugin, agent, (permission, text), want) in [
            (
                json!({}),
                json!({"permission": everything}),
                "build",
                ("external_directory", "/etc/x"),
                Ask,
            ),
            (
                json!({}),
                json!({"permission": everything}),
                "build",
                ("external_directory", "/tmp/out/x"),
                Allow,
            ),
            (
                json!({}),
                json!({"permission": everything}),
                "build",
                ("read", "a/.env"),
                Ask,
            ),
            (
                json!({}),
                json!({"permission": everything}),
                "build",
                ("bash", "ls"),
                Allow,
            ),
            (
                json!({}),
                json!({"permission": everything}),
                "build",
                ("question", "*"),
                Allow,
            ),
            (
                json!({}),
                json!({"permission": everything}),
                "plan",
                ("edit", "a.rs"),
                Deny,
            ),
            (
                json!({}),
                json!({"permission": everything}),
                "plan",
                ("edit", ".opencode/plans/a.md"),
                Allow,
            ),
            (
                json!({}),
                json!({"permission": everything}),
                "explore",
                ("edit", "a.rs"),
                Deny,
            ),
            (
                json!({}),
                json!({"agent": {"build": {"permission": everything}}}),
                "build",
                ("read", ".env"),
                Ask,
            ),
            (
                json!({}),
                json!({"agent": {"plan": {"tools": {"edit": true}}}}),
                "plan",
                ("edit", "a.rs"),
                Deny,
            ),
            (
                json!({}),
                json!({"agent": {"own": {"permission": everything}}}),
                "own",
                ("external_directory", "/etc/x"),
                Ask,
            ),
            (
                json!({}),
                json!({"agent": {"own": {"permission": {"bash": "deny"}}}}),
                "own",
                ("bash", "ls"),
                Deny,
            ),
            (
                json!({}),
                json!({"agent": {"own": {"permission": {"*": "deny", "grep": "allow"}}}}),
                "own",
                ("grep", "x"),
                Allow,
            ),
            (
                json!({}),
                json!({"agent": {"own": {"permission": {"*": "deny", "grep": "allow"}}}}),
                "own",
                ("bash", "x"),
                Deny,
            ),
            (
                json!({"permission": {"bash": "ask"}}),
                json!({"agent": {"own": {"permission": everything}}}),
                "own",
                ("bash", "ls"),
                Ask,
            ),
            // Replacing the user's choice.
            (
                json!({"default_agent": "plan"}),
                json!({"default_agent": "own", "agent": {"own": {"mode": "primary"}}}),
                "own",
                ("edit", "a.rs"),
                Deny,
            ),
            (
                json!({"agent": {"wide": {"mode": "subagent", "permission": everything}}}),
                json!({"agent": {"wide": {"mode": "primary", "permission": everything}}, "default_agent": "wide"}),
                "wide",
                ("external_directory", "/etc/x"),
                Ask,
            ),
            // What the user allows stays allowed.
            (
                json!({"permission": {"external_directory": "allow"}}),
                json!({"permission": {"external_directory": "allow"}, "agent": {"own": {}}}),
                "own",
                ("external_directory", "/etc/x"),
                Allow,
            ),
        ] {
            let (got, _) = limited(user.clone(), plugin.clone(), agent);
            assert_eq!(
                evaluate(permission, text, &[&got.permission]),
                want,
                "{user} {plugin} {agent} {permission} {text}"
            );
        }
    }

    #[test]
    fn an_agent_that_is_not_wider_has_no_more_rules() {
        let narrower = json!({"agent": {"own": {"permission": {"edit": "deny"}}, "build": {"tools": {"bash": false}}}});
        let (own, lifted) = limited(json!({}), narrower.clone(), "own");
        assert_eq!(lifted, []);
        assert_eq!(own.permission.last(), rules("deny edit *").first());
        let all = json!({"permission": {"external_directory": "allow"}});
        let (_, lifted) = limited(json!({}), all, "build");
        let widened = lifted.iter().find(|it| it.agent == "build").unwrap();
        assert_eq!(widened.kept, rules("ask external_directory *")[0]);
    }

    #[test]
    fn a_bundled_agent_is_no_wider_than_itself() {
        let folders = [Path::new("/tmp/out")];
        let settings = ["/home/u/.config/opencode".into()];
        let places = Places {
            allowed_folders: &folders,
            settings_folders: &settings,
            ..Places::default()
        };
        for (name, agent) in agents::all(&[], &rules("ask bash *"), places) {
            let limits = subagent_limits(&agent.permission, &agent.permission);
            assert_eq!(limits, [], "{name}");
        }
    }

    #[test]
    fn an_address_of_this_machine_is_not_named_by_a_plugin() {
        for (pattern, want) in [
            ("*", false),
            ("https://example.com/*", false),
            ("http://127.0.0.1*", true),
            ("http://127.0.0.1/*", true),
            ("http://localhost:3000/*", true),
            ("http://intranet/*", true),
            ("*192.168.1.1*", true),
            ("https://*.example.com/127.0.0.1*", true),
        ] {
            let rule = &rules(&format!("allow webfetch {pattern}"))[0];
            assert_eq!(may_name_local_host(rule), want, "{pattern}");
        }
        let (build, _) = limited(
            json!({}),
            json!({"permission": {"webfetch": {"http://127.0.0.1*": "allow"}}}),
            "build",
        );
        let decided = hosts::decide("http://127.0.0.1:9/", &[&build.permission]);
        assert_eq!(decided, Action::Ask);
    }

    #[test]
    fn a_subagent_names_no_address_of_this_machine_that_its_caller_does_not() {
        for (caller, want) in [
            ("allow * *", Action::Ask),
            ("allow * *\n deny webfetch *", Action::Deny),
            (
                "allow * *\n allow webfetch http://localhost/*",
                Action::Allow,
            ),
        ] {
            let mut child = rules("allow * *\n allow webfetch http://localhost/*");
            child.extend(subagent_limits(&rules(caller), &child));
            assert_eq!(
                hosts::decide("http://localhost/", &[&child]),
                want,
                "{caller}"
            );
        }
    }

    #[test]
    fn rules_for_a_session_are_found_that_lift_a_default() {
        let all = agents::all(&[], &[], Places::default());
        for (agent, given, want) in [
            // An exception that a later rule revokes is lifted by none.
            ("build", "allow * *\n deny * *", false),
            ("build", "allow * *\n deny bash *", true),
            ("plan", "allow edit src/*\n deny edit *", false),
            ("plan", "deny edit *\n allow edit src/*", true),
            ("build", "deny * *\n allow own_tool *", false),
            ("explore", "deny * *\n allow grep *\n allow glob *", false),
            ("explore", "deny * *\n allow own_tool *", true),
            ("build", "allow * *", true),
            ("build", "allow bash *", false),
            ("build", "allow read *", true),
            ("build", "allow read a.rs", false),
            ("build", "allow external_directory /etc/*", true),
            ("build", "deny * *", false),
            ("plan", "allow edit *", true),
            ("plan", "allow edit .opencode/plans/a.md", false),
            ("build", "allow webfetch http://localhost/*", true),
        ] {
            let given_rules = rules(given);
            let got = would_lift(&all[agent].permission, &given_rules);
            assert_eq!(got.is_some(), want, "{agent} {given}");
        }
    }
}
