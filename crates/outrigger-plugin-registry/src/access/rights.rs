//! Access of a plugin with a manifest, and removal of contributions that it does not allow.

use std::path::{Path, PathBuf};

use outrigger_kernel::hooks::{HookPoint, Rights};
use outrigger_protocol::custom_points::ProviderDecl;
use outrigger_protocol::manifest::PluginKind;
use outrigger_protocol::rpc::Instance;
use outrigger_sandbox::Policy;
use outrigger_sandbox::paths::Roots;

/// Access of a plugin with a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Files and folders to read.
    pub read: Vec<PathBuf>,
    /// Files and folders to read and change.
    pub write: Vec<PathBuf>,
    /// Variables that are not secrets.
    pub env: Vec<String>,
    /// Hosts that it may connect to; empty: it opens no TCP connection.
    pub hosts: Vec<String>,
    /// Routes of the client; `None`: all.
    pub client: Option<Vec<String>>,
    /// Hooks that are called; `None`: all.
    pub hooks: Option<Vec<String>>,
    /// Its manifest, and that of its host, name the hooks: these may do whatever their points allow. Otherwise they have
    /// the rights that C3 gives to every plugin ([`outrigger_kernel::hooks::Rights::unnamed`]).
    pub named: bool,
    /// Tools that may be registered; `None`: all.
    pub tools: Option<Vec<String>>,
    /// Providers whose protocol it may implement.
    pub providers: Vec<String>,
    /// Declared kind (C6, D9): a kind contributes what it is named after, and hooks. `None` without a manifest.
    pub kind: Option<PluginKind>,
    /// Names of the connectors that it executes: tools that no model calls.
    pub connectors: Vec<String>,
    /// Another plugin hosts it: it contributes hooks and tools, and nothing that involves the user's accounts (C8).
    pub hosted: bool,
}

/// Resolves all links of a path; a missing file keeps its name.
pub fn real(path: &Path) -> Option<PathBuf> {
    Roots::new(["/"]).contains(path).ok()
}

/// Returns whether a name matches one of the patterns.
pub fn matches(patterns: &[String], name: &str) -> bool {
    patterns
        .iter()
        .any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => pattern == name,
        })
}

/// Removes from a plugin what its kind does not contribute.
fn not_of_kind(kind: PluginKind, connectors: &[String], instance: &mut Instance) -> Vec<String> {
    let why = match kind {
        PluginKind::Hook => {
            "its manifest says that it is of the kind \"hook\", which can only provide hooks"
                .to_owned()
        }
        kind => format!(
            "its manifest says that it is of the kind \"{}\", which does not provide that",
            kind.name()
        ),
    };
    let is_theirs = |name: &String| {
        if kind.brings_connectors() {
            connectors.contains(name)
        } else {
            kind.brings_tools()
        }
    };
    let tools = instance.tools.extract_if(.., |tool| !is_theirs(&tool.name));
    let mut removed: Vec<String> = tools
        .map(|tool| format!("the tool {} is not registered: {why}", tool.name))
        .collect();
    let accounts = instance.auth.is_some() || instance.provider.is_some();
    if (accounts || instance.streams.is_some()) && !kind.brings_providers() {
        (instance.auth, instance.provider, instance.streams) = (None, None, None);
        removed.push(format!("its `auth` and `provider` are skipped: {why}"));
    }
    removed
}

impl Access {
    /// Removes contributions that the manifest does not name, and returns descriptions of them.
    pub fn cut(&self, instances: &mut [Instance]) -> Vec<String> {
        let mut removed = Vec::new();
        for instance in instances {
            let hooks = instance.hooks.extract_if(.., |hook| !self.has_hook(hook));
            removed.extend(hooks.map(|hook| format!("the hook {hook} is not called: `hook_policy.allowed_hooks` of its manifest does not name it")));
            if let Some(kind) = self.kind {
                removed.extend(not_of_kind(kind, &self.connectors, instance));
            }
            let tools = instance
                .tools
                .extract_if(.., |tool| !self.has_tool(&tool.name));
            let accounts = instance.auth.is_some() || instance.provider.is_some();
            if self.hosted && accounts {
                (instance.auth, instance.provider) = (None, None);
                removed.push(
                    "its `auth` and `provider` are skipped: another plugin hosts it".to_owned(),
                );
            }
            let offers = |it: &mut ProviderDecl| !self.providers.contains(&it.id);
            let refused = instance.streams.take_if(offers);
            removed.extend(refused.map(|it| format!("the provider {} is not offered: `provides.providers` of its manifest does not name it", it.id)));
            removed.extend(tools.map(|tool| format!("the tool {} is not registered: `provides.tools` of its manifest does not name it", tool.name)));
        }
        removed
    }

    /// Restricts a sandbox to what is requested: the project only if it is named.
    pub fn apply_to(&self, policy: &mut Policy, project: &Path) {
        policy.write.retain(|path| path != project);
        // Links were resolved when the plugin was admitted; a path that has become a link since is skipped.
        let same = |path: &&PathBuf| real(path).is_none_or(|now| now == **path);
        policy.write.extend(self.write.iter().filter(same).cloned());
        policy.read.extend(self.read.iter().filter(same).cloned());
    }

    /// Returns whether a variable that is not a secret is passed on.
    pub fn has_variable(&self, name: &str) -> bool {
        matches(&self.env, name)
    }

    /// Describes the rights of its hooks.
    pub fn hooks_shown(&self, fail_closed: &[String]) -> String {
        let refuses = match fail_closed {
            [] => String::new(),
            some => format!("; a failure refuses at {}", some.join(", ")),
        };
        let points = HookPoint::ALL.iter().copied();
        let changed: Vec<&str> = points
            .filter(|it| Rights::unnamed(*it).patch && !it.spec().patch.is_empty())
            .map(HookPoint::hook)
            .collect();
        let called = self
            .hooks
            .as_ref()
            .map(|hooks| hooks.join(", "))
            .unwrap_or_else(|| "all".to_owned());
        if self.named {
            format!("{called}, each as its point allows{refuses}")
        } else {
            format!(
                "{called}, to look; changes are taken at {}{refuses}",
                changed.join(", ")
            )
        }
    }

    /// Returns whether a hook is called, by any of its names.
    pub(crate) fn has_hook(&self, hook: &str) -> bool {
        let point = HookPoint::parse(hook);
        self.hooks.as_ref().is_none_or(|allowed| {
            allowed
                .iter()
                .any(|name| name == hook || (point.is_some() && HookPoint::parse(name) == point))
        })
    }

    /// Returns whether a tool may be registered.
    pub(crate) fn has_tool(&self, tool: &str) -> bool {
        self.tools
            .as_ref()
            .is_none_or(|tools| tools.iter().any(|name| name == tool))
    }

    /// Returns whether a route of the client may be used. Paths with `..` or doubled slashes match nothing, so that the
    /// path is what it appears to be.
    pub fn has_route(&self, method: &str, path: &str) -> bool {
        let Some(routes) = &self.client else {
            return true;
        };
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let odd = path
            .split('/')
            .skip(1)
            .any(|part| part.is_empty() || part.starts_with('.') || part.contains('%'));
        if odd && path != "/" {
            return false;
        }
        routes.iter().any(|route| {
            let (verb, pattern) = route.split_once(' ').unwrap_or(("", ""));
            let fits = match pattern.strip_suffix("/*") {
                Some(start) => path
                    .strip_prefix(start)
                    .is_some_and(|rest| rest.starts_with('/')),
                None => pattern == path || pattern == "*",
            };
            fits && (verb == "*" || verb.eq_ignore_ascii_case(method))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C6, D9: each kind contributes hooks and what it is named after.
    #[test]
    fn a_kind_brings_what_it_says() {
        for (kind, tools, provides) in [
            (None, "count box", true),
            (Some(PluginKind::Hook), "", false),
            (Some(PluginKind::Capability), "count box", true),
            (Some(PluginKind::Toolset), "count box", false),
            (Some(PluginKind::SkillSource), "", false),
            (Some(PluginKind::Provider), "", true),
            (Some(PluginKind::Connector), "box", false),
            (Some(PluginKind::Bridge), "box", false),
        ] {
            let tool =
                |name: &str| serde_json::json!({ "name": name, "description": "", "schema": {} });
            let instance = serde_json::json!({ "export": "default", "hooks": ["event"], "tools": [tool("count"), tool("box")], "provider": "p" });
            let mut instances: [Instance; 1] = [serde_json::from_value(instance).unwrap()];
            let access = Access {
                kind,
                connectors: vec!["box".to_owned()],
                ..Access::default()
            };
            let said = access.cut(&mut instances);
            let [instance] = instances;
            let left: Vec<&str> = instance.tools.iter().map(|it| it.name.as_str()).collect();
            assert_eq!(left.join(" "), tools, "{kind:?}");
            assert_eq!(instance.provider.is_some(), provides, "{kind:?}");
            assert_eq!(instance.hooks, ["event"], "{kind:?}");
            let all = tools == "count box" && provides;
            assert_eq!(said.is_empty(), all, "{kind:?}: {said:?}");
        }
    }

    fn access(hooks: &[&str], routes: &[&str]) -> Access {
        let texts = |list: &[&str]| Some(list.iter().map(|it| (*it).to_owned()).collect());
        Access {
            hooks: texts(hooks),
            client: texts(routes),
            ..Access::default()
        }
    }

    #[test]
    fn a_hook_is_named_by_any_of_its_names() {
        for (allowed, hook, called) in [
            ("tool.execute.before", "tool.execute.before", true),
            ("tool.execute.before", "tool.execute.after", false),
            (
                "chat.system.transform",
                "experimental.chat.system.transform",
                true,
            ),
            (
                "experimental.chat.system.transform",
                "chat.system.transform",
                true,
            ),
            ("no.such", "chat.params", false),
        ] {
            assert_eq!(
                access(&[allowed], &[]).has_hook(hook),
                called,
                "{allowed} {hook}"
            );
        }
        assert!(!access(&[], &[]).has_hook("chat.params"));
        assert!(Access::default().has_hook("chat.params"));
    }

    #[test]
    fn routes_by_table() {
        let access = access(
            &[],
            &["GET /session", "GET /session/*", "* /log", "POST /tui/*"],
        );
        for (method, path, fits) in [
            ("GET", "/session", true),
            ("get", "/session?directory=/x", true),
            ("GET", "/session/ses_1/message", true),
            ("POST", "/session", false),
            ("GET", "/sessions", false),
            ("GET", "/session/../config", false),
            ("GET", "/session/%2e%2e/config", false),
            ("GET", "/session//config", false),
            ("GET", "//config", false),
            ("PUT", "/log", true),
            ("POST", "/tui", false),
            ("POST", "/tui/toast", true),
            ("GET", "/config", false),
            ("GET", "", false),
        ] {
            assert_eq!(access.has_route(method, path), fits, "{method} {path}");
        }
        assert!(Access::default().has_route("GET", "/config"));
    }
}
