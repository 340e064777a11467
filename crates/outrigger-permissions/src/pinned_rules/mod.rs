//! Rules that plugins cannot lift: the user's own denies and asks.
//!
//! The last matching rule decides, so a rule appended after a deny or an ask lifts it. A plugin can append some: it changes the
//! configuration in its `config` hook, and sets rules of sessions over its client. The denies and asks of the user's files are
//! therefore repeated after the rules of plugins, and a wider rule for a session is refused.

mod agent_limits;
mod intersection;

use outrigger_config::{AgentEntry, OpenCodeConfig as Config};
use outrigger_kernel::permission::evaluate;
use outrigger_protocol::permission::{Action, Rule};

pub use agent_limits::{LiftedRule, is_within, subagent_limits, would_lift};
pub use intersection::narrowing;
use intersection::{is_wider, overlap};

/// The rules of the user's files, before plugins changed them.
#[derive(Clone, Debug, Default)]
pub struct UserRules {
    everywhere: Vec<Rule>,
    agents: Vec<AgentEntry>,
    /// Default agent in the user's files.
    default: Option<String>,
}

impl UserRules {
    /// Returns the rules of the user's configuration.
    pub fn of(config: &Config) -> Self {
        Self {
            everywhere: config.permission.clone(),
            agents: config.agent.clone(),
            default: default_of(config),
        }
    }

    /// Repeats the user's denies and asks after rules that plugins have changed.
    pub fn hold(&self, config: &mut Config) {
        self.repeat(config, true);
    }

    /// Repeats the user's denies after the rules of a trusted project, which may answer an ask of the user but lifts no deny.
    pub fn hold_denies(&self, config: &mut Config) {
        self.repeat(config, false);
    }

    fn repeat(&self, config: &mut Config, asks: bool) {
        hold(&self.everywhere, &mut config.permission, asks);
        // A removed agent would become the built-in one of its name, without the user's rules.
        for agent in self.agents.iter().filter(|it| !it.permission.is_empty()) {
            if !config.agent.iter().any(|it| it.name == agent.name) {
                config.agent.push(agent.clone());
            }
        }
        for agent in &mut config.agent {
            let own = self.rules_of(&agent.name);
            if agent.permission != own {
                self.hold_for(own, agent, asks);
            }
        }
        self.hold_for_default(config, asks);
    }

    /// Applies the user's rules for the default agent to one that a plugin or project selects instead.
    fn hold_for_default(&self, config: &mut Config, asks: bool) {
        let own = self
            .default
            .as_deref()
            .map_or(&[][..], |it| self.rules_of(it));
        let now = default_of(config).filter(|_| !own.is_empty());
        let Some(now) = now.filter(|now| self.default.as_ref() != Some(now)) else {
            return;
        };
        if !config.agent.iter().any(|it| it.name == now) {
            let name = now.clone();
            config.agent.push(AgentEntry {
                name,
                ..AgentEntry::default()
            });
        }
        for agent in config.agent.iter_mut().filter(|it| it.name == now) {
            self.hold_for(own, agent, asks);
        }
    }

    /// Applies the user's rules: a rule for every agent is lifted only by a user rule for this one.
    fn hold_for(&self, own: &[Rule], agent: &mut AgentEntry, asks: bool) {
        let user: Vec<Rule> = self.everywhere.iter().chain(own).cloned().collect();
        hold(&user, &mut agent.permission, asks);
    }

    fn rules_of(&self, name: &str) -> &[Rule] {
        self.agents
            .iter()
            .find(|it| it.name == name)
            .map_or(&[][..], |it| &it.permission)
    }

    /// Returns those of these rules that are in the user's files, not added by a plugin or a session.
    pub fn written(&self, layers: &[&[Rule]]) -> Vec<Rule> {
        let of_agents = self.agents.iter().flat_map(|agent| &agent.permission);
        let own: Vec<&Rule> = self.everywhere.iter().chain(of_agents).collect();
        layers
            .iter()
            .flat_map(|layer| layer.iter())
            .filter(|rule| own.contains(rule))
            .cloned()
            .collect()
    }

    /// Returns the first of `rules` that would lift one of the user's, after that one: of the rules for every agent, and for
    /// each.
    pub fn lifted(&self, rules: &[Rule]) -> Option<(Rule, Rule)> {
        let of_agents = self.agents.iter().map(|agent| &agent.permission[..]);
        let mut own = std::iter::once(&[][..]).chain(of_agents);
        own.find_map(|own| {
            let held = [&self.everywhere, own].concat();
            let (kept, rule) = intersection::lifted(&held, rules)?;
            Some((kept.clone(), rule.clone()))
        })
    }
}

/// Returns the default agent.
fn default_of(config: &Config) -> Option<String> {
    let agents = crate::agents::all(&config.agent, &[], crate::agents::Places::default());
    crate::agents::default_name(&agents, config.default_agent.as_deref())
}

/// Repeats the denies of `user` after `rules`, and with `asks` also the asks, with the user's exceptions.
fn hold(user: &[Rule], rules: &mut Vec<Rule>, asks: bool) {
    if rules == user {
        return;
    }
    let mut behind: Vec<Rule> = Vec::new();
    for rule in user {
        let kept = match rule.action {
            Action::Deny => true,
            Action::Ask if asks => true,
            Action::Ask | Action::Allow => behind.iter().any(|kept| overlap(kept, rule)),
        };
        if kept {
            behind.push(rule.clone());
        }
    }
    // Additional denies of plugins remain.
    let narrower = rules.iter().filter(|rule| {
        let denied_anyway = evaluate(&rule.permission, &rule.pattern, &[user]) == Action::Deny;
        rule.action == Action::Deny && !user.contains(rule) && !denied_anyway
    });
    let narrower: Vec<Rule> = if behind.iter().any(|rule| rule.action != Action::Deny) {
        narrower.cloned().collect()
    } else {
        Vec::new()
    };
    rules.extend(behind);
    rules.extend(narrower);
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn rules(text: &str) -> Vec<Rule> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines
            .map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                Rule {
                    action: match words[0] {
                        "allow" => Action::Allow,
                        "ask" => Action::Ask,
                        _ => Action::Deny,
                    },
                    permission: words[1].into(),
                    pattern: words[2].into(),
                }
            })
            .collect()
    }

    #[test]
    fn what_the_user_denies_stays() {
        for (user, plugin, (permission, path), want) in [
            (
                "deny read *.env",
                "allow read *",
                ("read", ".env"),
                Action::Deny,
            ),
            (
                "deny read *.env",
                "allow * *",
                ("read", ".env"),
                Action::Deny,
            ),
            (
                "deny read *.env",
                "ask read a.env",
                ("read", "a.env"),
                Action::Deny,
            ),
            (
                "deny read *.env",
                "allow read *",
                ("read", "a.txt"),
                Action::Allow,
            ),
            (
                "deny bash *\n allow bash echo*",
                "allow bash *",
                ("bash", "echo x"),
                Action::Allow,
            ),
            (
                "deny bash *\n allow bash echo*",
                "allow bash *",
                ("bash", "rm x"),
                Action::Deny,
            ),
            (
                "deny bash *\n allow bash echo*",
                "allow bash *\n deny bash echo-x",
                ("bash", "echo-x"),
                Action::Deny,
            ),
            ("ask bash *", "allow bash *", ("bash", "ls"), Action::Ask),
            ("ask bash *", "allow * *", ("bash", "ls"), Action::Ask),
            (
                "ask bash *",
                "deny bash rm*",
                ("bash", "rm x"),
                Action::Deny,
            ),
            (
                "ask bash *\n allow bash ls",
                "allow bash *",
                ("bash", "ls"),
                Action::Allow,
            ),
            (
                "allow bash *\n ask bash rm*",
                "allow bash *",
                ("bash", "rm x"),
                Action::Ask,
            ),
            ("ask edit *", "allow read *", ("read", "x"), Action::Allow),
            ("deny edit *", "allow read *", ("read", "x"), Action::Allow),
        ] {
            let mut changed = rules(plugin);
            hold(&rules(user), &mut changed, true);
            assert_eq!(
                evaluate(permission, path, &[&changed]),
                want,
                "{user:?} {plugin:?} {path}"
            );
        }
    }

    #[test]
    fn rules_that_would_lift_a_deny_are_found() {
        let user = UserRules {
            everywhere: rules(
                "deny read *.env\n deny read keys\n allow bash *\n ask webfetch *\n ask bash rm*",
            ),
            agents: vec![AgentEntry {
                name: "plan".into(),
                permission: rules("deny edit src/*"),
                ..AgentEntry::default()
            }],
            default: None,
        };
        for (given, want) in [
            ("deny read *", false),
            ("allow websearch *", false),
            ("allow webfetch *", true),
            ("ask webfetch *", false),
            ("deny webfetch *", false),
            ("allow bash *", true),
            ("allow bash ls", false),
            ("allow bash rm x", true),
            ("allow read docs/*", true),
            ("allow read docs/a.txt", false),
            ("allow read x.env", true),
            ("allow read /p/x.env", true),
            ("allow read X.ENV", true),
            ("allow read **/x.env", true),
            ("allow read keys/id", true),
            ("allow read /p/keys/id", true),
            ("allow * *", true),
            ("ask edit src/a", true),
            ("allow edit docs/a", false),
        ] {
            assert_eq!(user.lifted(&rules(given)).is_some(), want, "{given}");
        }
        // The path of the project is unknown here.
        let user = UserRules {
            everywhere: rules("deny read /p/own/a"),
            agents: Vec::new(),
            default: None,
        };
        for (given, want) in [
            ("allow read own/a", true),
            ("allow read a", true),
            ("allow read /p/own/a/x", true),
            ("allow read /P/own/a", true),
            ("allow read /p/own/b", false),
            ("allow read /q/*", false),
        ] {
            assert_eq!(user.lifted(&rules(given)).is_some(), want, "{given}");
        }
    }

    /// Returns lists of rules, the same in every run.
    pub(super) fn draws() -> impl FnMut() -> Vec<Rule> {
        // A small linear congruential generator.
        let mut seed = 7_u64;
        let mut draw = move |most: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(seed >> 33).unwrap() % most
        };
        let patterns = ["*", "a", "b", "a*", "*b", "a?", "?b", "ab", "a*b"];
        move || {
            let count = draw(4);
            let mut rule = || Rule {
                permission: ["*", "a", "a*"][draw(3)].into(),
                pattern: patterns[draw(patterns.len())].into(),
                action: [Action::Allow, Action::Ask, Action::Deny][draw(3)],
            };
            (0..count).map(|_| rule()).collect()
        }
    }

    /// For any rules of a plugin, what the user denies is denied, and what the user asks about is not allowed.
    #[test]
    fn no_rules_lift_a_deny_or_an_ask() {
        let mut made = draws();
        for _ in 0..20_000 {
            let (user, plugin) = (made(), made());
            let mut rules = plugin.clone();
            hold(&user, &mut rules, true);
            for path in ["", "a", "b", "ab", "bb", "aab"] {
                // If no user rule matches, the plugin's rules are limited to the defaults, which are not here.
                let fallback = [Rule {
                    permission: "*".into(),
                    pattern: "*".into(),
                    action: Action::Allow,
                }];
                let before = evaluate("a", path, &[&fallback, &user]);
                let after = evaluate("a", path, &[&fallback, &rules]);
                assert!(
                    !is_wider(after, before),
                    "{path}: {user:?} {plugin:?} {rules:?}"
                );
            }
        }
    }
}
