//! What the user grants a single plugin by its name (`[plugins."NAME"] env`, `ports` and `unix_sockets` in `outrigger.toml`):
//! variables that the filter of the environment would keep back, TCP ports to listen on, UNIX sockets.
//!
//! A name is no proof: any project can bring a plugin file called as a package that the user trusts. So these go to the
//! npm package of the name, as the registry has it, and to the file of the path that is named; not to what merely goes by
//! the same id.

use outrigger_config::{PluginScope, package_name};
use outrigger_kernel::hooks::{HookPoint, Rights};
use outrigger_plugin_package::Source;

use crate::access::settings::{PluginRules, PluginSettings};

impl PluginSettings {
    /// The rules for a plugin, with grants only where its source is the one that they name. The second value says what
    /// was withheld and how to grant it, and what of a project's settings does not count.
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
        let granted = key.and_then(|key| self.plugins.get(key)).cloned();
        let granted = granted.unwrap_or_default();
        let withheld = granted.lacks_a_grant_of(&by_name).then(|| {
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
        let problems = [withheld, self.refused_of_project(&names, scope)];
        let problems = problems.into_iter().flatten();
        let problems = problems.reduce(|one, other| format!("{one}; {other}"));
        // What guards by one of its names guards, whatever else is written about its path.
        let mut rules = self.rules_of(&names, scope).unwrap_or_default();
        rules.hosts_withheld = granted.hosts.is_none() && by_name.hosts.is_some();
        rules.take_grants(granted);
        (rules, problems)
    }
}

impl PluginRules {
    /// Whether other rules of the same plugin grant something that these do not.
    fn lacks_a_grant_of(&self, other: &Self) -> bool {
        let lost = |has: bool, given: bool| has && !given;
        lost(!other.env.is_empty(), !self.env.is_empty())
            || lost(!other.ports.is_empty(), !self.ports.is_empty())
            || lost(!other.read.is_empty(), !self.read.is_empty())
            || lost(!other.write.is_empty(), !self.write.is_empty())
            || lost(other.unix_sockets, self.unix_sockets)
            || lost(other.approve, self.approve)
            || lost(other.rewrite, self.rewrite)
            || lost(other.model, self.model)
            || lost(other.prompt, self.prompt)
    }

    /// Puts the grants of other rules in the place of these.
    fn take_grants(&mut self, granted: Self) {
        (self.env, self.ports) = (granted.env, granted.ports);
        (self.read, self.write) = (granted.read, granted.write);
        self.unix_sockets = granted.unix_sockets;
        (self.approve, self.rewrite) = (granted.approve, granted.rewrite);
        (self.model, self.prompt) = (granted.model, granted.prompt);
        self.hosts = granted.hosts.or(self.hosts.take());
    }
}

impl PluginRules {
    /// What its hooks may do at a point (C3): whatever it allows, but for a manifest that does not name them, and for
    /// variables of commands without the grant to change calls: a command with another `PATH` is another command. What answers
    /// a model request, and for whose account, takes the grant to be the model.
    pub fn rights(&self, point: HookPoint) -> Rights {
        let unnamed = self.access.as_ref().is_some_and(|access| !access.named);
        let rights = match unnamed {
            true => Rights::unnamed(point),
            false => Rights::ALL,
        };
        let rights = match self.model {
            true => rights,
            false => rights.without_account(Grant::Model.key()),
        };
        match point == HookPoint::ExecuteBeforeShell && !self.rewrite {
            true => rights.without(Grant::Rewrite.key()),
            false => rights,
        }
    }

    /// Whether it must not share a process: others in it would have what it was granted.
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

/// The names that settings may have for a plugin: the path of its file, which says more than a name that others may have too,
/// its id, its package, its entry.
pub fn names_of(id: &str, spec: &str, source: Option<&Source>) -> Vec<String> {
    let file = file_of(source).map(str::to_owned);
    let others = [id.to_owned(), package_name(spec), spec.to_owned()];
    file.into_iter().chain(others).collect()
}

/// What a plugin does in the user's place only where the user granted it by name. Without the grant the user is asked.
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
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Approve, Self::Rewrite, Self::Model, Self::Prompt];

    /// The one of that key.
    #[must_use]
    pub fn of_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|grant| grant.key() == key)
    }

    /// The key of `[plugins.NAME]` that gives it.
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
    /// Whether the user gave it this.
    pub fn grants(&self, grant: Grant) -> bool {
        match grant {
            Grant::Approve => self.approve,
            Grant::Rewrite => self.rewrite,
            Grant::Model => self.model,
            Grant::Prompt => self.prompt,
        }
    }
}

/// NAME of the `[plugins.NAME]` whose grants a plugin of this source gets; none where grants reach no such source.
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

/// A version, a range or a tag. Everything else (`npm:other`, `file:`, an address, `user/repository`) brings other code
/// under the package's name.
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
