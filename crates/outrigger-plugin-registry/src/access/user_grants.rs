//! User grants for a single plugin by name (`[plugins."NAME"] env`, `ports` and `unix_sockets` in `outrigger.toml`): variables
//! that the environment filter would withhold, TCP ports to listen on, UNIX sockets.
//!
//! A name is no proof: any project can contain a plugin file named like a package that the user trusts. So grants go to the
//! npm package of that name from the registry, and to the file of the named path; not to anything that merely has the same id.

use outrigger_config::{PluginScope, package_name};
use outrigger_kernel::hooks::{HookPoint, Rights};
use outrigger_plugin_package::Source;

use crate::access::grants_in_words::UserGrants;
use crate::access::settings::{PluginRules, PluginSettings};

impl PluginSettings {
    /// Returns the rules for a plugin, with grants only if its source is the one that they name. The second value describes
    /// what was withheld and how to grant it, and which project settings are ignored.
    pub fn rules_for(
        &self,
        id: &str,
        spec: &str,
        source: Option<&Source>,
        scope: PluginScope,
    ) -> (PluginRules, Option<String>) {
        let names = names_of(id, spec, source);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let key = grant_key(source);
        let others = usize::from(file_of(source).is_some());
        let by_name = self.rules_of(names.get(others..).unwrap_or_default(), scope);
        let by_name = by_name.unwrap_or_default();
        let granted = key
            .and_then(|key| self.plugins.get(key))
            .cloned()
            .unwrap_or_default();
        let lacking = granted.lacking(&by_name).grants_in_words();
        let withheld = (!lacking.is_empty()).then(|| {
            let way = match (source, key) {
                (Some(Source::Path(_)), Some(path)) => {
                    format!("; to grant them to this file, write [plugins.\"{path}\"]")
                }
                _ => String::new(),
            };
            format!(
                "`env`, `ports`, `read`, `write`, `unix_sockets`, `approve`, `rewrite`, `model` and `prompt` of [plugins.\"{id}\"] are for the npm package of that name, and this is another plugin{way}"
            )
        });
        let problems = [withheld, self.refused_of_project(&names, scope)]
            .into_iter()
            .flatten();
        let problems = problems.reduce(|one, other| format!("{one}; {other}"));
        // A plugin that is a guard by one of its names is a guard, whatever is set for its path.
        let mut rules = self.rules_of(&names, scope).unwrap_or_default();
        rules.hosts_withheld = granted.hosts.is_none() && by_name.hosts.is_some();
        rules.take_grants(granted);
        rules.user_grants = UserGrants {
            given: rules.grants_in_words(),
            withheld: lacking,
        };
        (rules, problems)
    }
}

impl PluginRules {
    /// Replaces the grants by those of other rules.
    fn take_grants(&mut self, granted: Self) {
        (self.env, self.ports) = (granted.env, granted.ports);
        (self.read, self.write) = (granted.read, granted.write);
        self.unix_sockets = granted.unix_sockets;
        (self.approve, self.rewrite) = (granted.approve, granted.rewrite);
        (self.model, self.prompt) = (granted.model, granted.prompt);
        self.hosts = granted.hosts.or(self.hosts.take());
    }

    /// Returns the rights of its hooks at a point (C3): all that the point allows, except with a manifest that does not name
    /// them, and except variables of commands without the grant to change calls: a command with another `PATH` is another
    /// command. Changing what answers a model request, and for whose account, requires the `model` grant.
    pub fn rights(&self, point: HookPoint) -> Rights {
        let unnamed = self.access.as_ref().is_some_and(|access| !access.named);
        let rights = if unnamed {
            Rights::unnamed(point)
        } else {
            Rights::ALL
        };
        let rights = if self.model {
            rights
        } else {
            rights.without_account(Grant::Model.key())
        };
        if point == HookPoint::ExecuteBeforeShell && !self.rewrite {
            rights.without(Grant::Rewrite.key())
        } else {
            rights
        }
    }

    /// Returns whether it must not share a process: the others would have its grants.
    pub fn alone(&self) -> bool {
        self.isolation == outrigger_config::settings::Isolation::Own
            || crate::access::critical::points(self).next().is_some()
            || self.unix_sockets
            // Others in its process could answer, or change calls, in its name.
            || self.approve
            || self.rewrite
            || self.model
            || self.prompt
            || self.access.is_some()
            || self.hosts.is_some()
            || self.processes.is_some()
            || !self.read.is_empty()
            || !self.write.is_empty()
            || !self.env.is_empty()
            || !self.ports.is_empty()
    }
}

/// Returns the names that settings may use for a plugin: the path of its file, which is more specific than a name that others
/// may share, its id, its package, its entry.
pub fn names_of(id: &str, spec: &str, source: Option<&Source>) -> Vec<String> {
    let file = file_of(source).map(str::to_owned);
    let others = [id.to_owned(), package_name(spec), spec.to_owned()];
    file.into_iter().chain(others).collect()
}

/// Actions on the user's behalf that a plugin may do only if the user granted it by name. Otherwise the user is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grant {
    /// Answer a permission question with yes.
    Approve,
    /// Change the arguments of a tool call.
    Rewrite,
    /// Be the model whose tool calls run by the user's rules.
    Model,
    /// Send prompts whose tool calls run by the user's rules.
    Prompt,
}

impl Grant {
    /// All grants.
    pub const ALL: [Self; 4] = [Self::Approve, Self::Rewrite, Self::Model, Self::Prompt];

    /// Returns the grant with this key.
    #[must_use]
    pub fn of_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|grant| grant.key() == key)
    }

    /// Returns its key in `[plugins.NAME]`.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Rewrite => "rewrite",
            Self::Model => "model",
            Self::Prompt => "prompt",
        }
    }
}

impl PluginRules {
    /// Returns whether the user gave this grant.
    pub fn grants(&self, grant: Grant) -> bool {
        match grant {
            Grant::Approve => self.approve,
            Grant::Rewrite => self.rewrite,
            Grant::Model => self.model,
            Grant::Prompt => self.prompt,
        }
    }
}

/// Returns the NAME of the `[plugins.NAME]` whose grants a plugin of this source gets; `None` if such a source cannot get
/// grants.
pub fn grant_key(source: Option<&Source>) -> Option<&str> {
    match source {
        Some(Source::Npm { name, request }) if of_registry(request) => Some(name),
        _ => file_of(source),
    }
}

fn file_of(source: Option<&Source>) -> Option<&str> {
    match source {
        Some(Source::Path(path)) => path.to_str(),
        _ => None,
    }
}

/// Returns whether a request is a version, a range or a tag. Everything else (`npm:other`, `file:`, a URL, `user/repository`)
/// installs other code under the package's name.
fn of_registry(request: &str) -> bool {
    !request.contains([':', '/', '\\', '#'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_goes_by_its_path_however_that_is_written() {
        let config = std::path::Path::new("/p/opencode.json");
        for (spec, path) in [
            ("file:///p/a%20b/guard.ts", Some("/p/a b/guard.ts")),
            ("./guard.ts", Some("/p/guard.ts")),
            ("/p/guard.ts", Some("/p/guard.ts")),
            ("guard@1", None),
        ] {
            let source = Source::parse(spec, config).unwrap();
            let names = names_of("guard", spec, Some(&source));
            let first = path.unwrap_or("guard");
            assert_eq!(names.first().map(String::as_str), Some(first), "{spec}");
        }
    }

    #[test]
    fn grants_go_to_what_they_name_and_to_nothing_that_is_called_like_it() {
        let mut settings = PluginSettings::default();
        let granted = PluginRules {
            env: vec!["ACME_KEY".into()],
            ports: vec![1455],
            unix_sockets: true,
            approve: true,
            priority: 2,
            ..PluginRules::default()
        };
        for name in ["acme", "/home/u/mine.ts"] {
            settings.plugins.insert(name.into(), granted.clone());
        }
        let npm = |request: &str| Source::Npm {
            name: "acme".into(),
            request: request.into(),
        };
        let file = |path: &str| Source::Path(path.into());
        for (source, spec, granted) in [
            (npm("latest"), "acme", true),
            (npm("^1.2.0"), "acme@^1.2.0", true),
            (npm("npm:evil@1"), "acme@npm:evil@1", false),
            (npm("file:./evil.tgz"), "acme@file:./evil.tgz", false),
            (npm("evil/repo"), "acme@evil/repo", false),
            (file("/project/acme.ts"), "file:///project/acme.ts", false),
            (file("/home/u/mine.ts"), "file:///home/u/mine.ts", true),
        ] {
            let id = if spec.contains("mine") {
                "mine"
            } else {
                "acme"
            };
            let (rules, withheld) = settings.rules_for(id, spec, Some(&source), PluginScope::Local);
            assert_eq!(
                (
                    !rules.env.is_empty(),
                    !rules.ports.is_empty(),
                    rules.unix_sockets,
                    rules.alone()
                ),
                (granted, granted, granted, granted),
                "{spec}"
            );
            assert_eq!(withheld.is_some(), !granted, "{spec}: {withheld:?}");
            // The audit has it as it counts.
            let words: Vec<String> = [
                "variables ACME_KEY",
                "ports 1455",
                "UNIX sockets",
                "`approve`",
            ]
            .map(str::to_owned)
            .to_vec();
            let of = rules.user_grants;
            let (counts, other) = if granted {
                (of.given, of.withheld)
            } else {
                (of.withheld, of.given)
            };
            assert_eq!((counts, other), (words, Vec::new()), "{spec}");
            // Nothing else about a plugin is a secret.
            assert_eq!(rules.priority, 2, "{spec}");
        }
        let (_, withheld) = settings.rules_for(
            "acme",
            "x",
            Some(&file("/project/acme.ts")),
            PluginScope::Local,
        );
        insta::assert_snapshot!(withheld.unwrap(), @r#"`env`, `ports`, `read`, `write`, `unix_sockets`, `approve`, `rewrite`, `model` and `prompt` of [plugins."acme"] are for the npm package of that name, and this is another plugin; to grant them to this file, write [plugins."/project/acme.ts"]"#);
        let (_, other) = settings.rules_for("other", "other", Some(&npm("1")), PluginScope::Local);
        assert_eq!(other, None);
    }
}
