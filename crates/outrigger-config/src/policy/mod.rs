//! The managed policy: what an administrator allows on a machine, which no project and no user can loosen.
//!
//! Its file is `/etc/outrigger/policy.toml`. `OUTRIGGER_POLICY` names one more file, which can only make it stricter: with
//! several, each rule of each applies. A policy that is unreadable or contains an unknown key fails the start.

mod apply;
pub mod forbid;
pub(crate) mod pattern;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::opencode::plugin_list::{PluginSpec, SkipReason, SkippedPlugin};
use crate::policy::forbid::Forbid;
use crate::policy::pattern::matches;
use crate::settings::{Profile, Sandbox, TrustChanges, TrustProjects};
use crate::{ConfigError, LoadOptions, package_name, paths};

/// File of the machine policy.
pub const POLICY_FILE: &str = "/etc/outrigger/policy.toml";
/// The variable that names a further policy.
pub const POLICY_VARIABLE: &str = "OUTRIGGER_POLICY";

/// One policy file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Which plugins may be loaded.
    pub plugins: PolicyPlugins,
    /// Minimum sandbox of processes.
    pub sandbox: PolicySandbox,
    /// Grants that no user may give a plugin.
    pub grants: PolicyGrants,
    /// Minimum settings for trust.
    pub trust: PolicyTrust,
    /// Signatures of plugins.
    pub signatures: PolicySignatures,
    /// What is forbidden for everyone.
    pub forbid: Forbid,
}

/// `[plugins]`. A pattern is the name of an npm package or the path of a file; `*` matches any run of characters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyPlugins {
    /// Only these; all if there is no such list, none if it is empty.
    pub allow: Option<Vec<String>>,
    /// Not these, whatever is allowed; also by the id of their manifest.
    pub deny: Vec<String>,
    /// Ids of plugins that must run, with their hooks whose actions are refused without them. A project's own plugin does not
    /// count.
    pub require: BTreeMap<String, Vec<String>>,
}

/// `[sandbox]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicySandbox {
    /// Minimum for `sandbox`: `on` or `strict`.
    pub minimum: Option<Sandbox>,
    /// Minimum for `tools.sandbox`: `workspace-write` or `read-only`.
    pub tools: Option<Profile>,
}

/// `[grants]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyGrants {
    /// No plugin gets these.
    pub forbid: Vec<Grant>,
    /// No plugin gets a variable with one of these names; `*` matches any run of characters.
    pub forbid_env: Vec<String>,
}

/// What a user grants single plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// Variables that look like secrets.
    Env,
    /// TCP ports to listen on.
    Ports,
    /// UNIX sockets.
    UnixSockets,
}

/// `[trust]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyTrust {
    /// Minimum for `trust.projects`: `ask` or `deny`.
    pub projects: Option<TrustProjects>,
    /// Minimum for `trust.changes`: `ask`.
    pub changes: Option<TrustChanges>,
    /// False: `trust.world_writable` is ignored.
    pub world_writable: Option<bool>,
}

/// `[signatures]` (C7).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicySignatures {
    /// Public keys in minisign's form (Ed25519).
    pub keys: Vec<String>,
    /// No plugin is started without a signature by one of them.
    pub require: bool,
}

/// A policy with its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFile {
    /// The file.
    pub path: PathBuf,
    /// Its content.
    pub policy: Policy,
    /// A user other than root may change it.
    pub loose: bool,
}

/// Reads the policies that hold here.
///
/// # Errors
/// `config.read` (one that is named has to be there), `config.syntax`, `config.unknown_setting`.
pub fn policies(options: &LoadOptions) -> Result<Vec<PolicyFile>, ConfigError> {
    let mut all = Vec::new();
    if let Some(file) = read(&options.policy, options)? {
        all.push(file);
    }
    if let Some(named) = options.env.get(POLICY_VARIABLE).filter(|it| !it.is_empty()) {
        let path = paths::expand(named, &options.directory, &options.home);
        all.push(read(&path, options)?.ok_or_else(|| ConfigError::Read {
            file: path.display().to_string(),
            reason: format!("no such file ({POLICY_VARIABLE} names it)"),
        })?);
    }
    Ok(all)
}

fn read(path: &Path, options: &LoadOptions) -> Result<Option<PolicyFile>, ConfigError> {
    let Some(text) = paths::read(path)? else {
        return Ok(None);
    };
    let mut policy: Policy = crate::read_toml(&text, &path.display().to_string())?;
    policy.forbid.at_home(&options.home);
    known_hooks(&text, path, &options.hooks)?;
    let loose =
        std::fs::metadata(path).is_ok_and(|meta| meta.uid() != 0 || meta.mode() & 0o022 != 0);
    Ok(Some(PolicyFile {
        path: path.to_owned(),
        policy,
        loose,
    }))
}

/// Checks the required hooks: an unknown one, or one that can refuse nothing, would guard nothing. Those that plugins declare
/// (`ID/NAME`) are not known here.
fn known_hooks(text: &str, path: &Path, known: &[String]) -> Result<(), ConfigError> {
    for (hook, at) in crate::toml::strict::texts_below(text, &["plugins", "require"]) {
        if known.is_empty() || hook.contains('/') || known.contains(&hook) {
            continue;
        }
        return Err(ConfigError::UnknownHook {
            file: path.display().to_string(),
            line: at.line,
            column: at.column,
            near: crate::suggest::nearest_few(&hook, known),
            hook,
        });
    }
    Ok(())
}

impl PolicyFile {
    /// Returns whether it prevents this plugin from being loaded.
    #[must_use]
    pub fn forbids(&self, plugin: &PluginSpec) -> bool {
        !self.policy.plugins.allows(plugin)
    }

    /// Returns whether it denies the plugin of this id, including bundled ones, which the list of allowed external plugins
    /// (`allow`) does not cover.
    #[must_use]
    pub fn denies(&self, id: &str) -> bool {
        let deny = &self.policy.plugins.deny;
        deny.iter().any(|pattern| matches(pattern, id))
    }

    /// Removes what may not be loaded.
    pub(crate) fn filter(&self, plugins: &mut Vec<PluginSpec>) -> Vec<SkippedPlugin> {
        let out = plugins.extract_if(.., |plugin| !self.policy.plugins.allows(plugin));
        let reason = SkipReason::Policy {
            file: self.path.clone(),
        };
        out.map(|plugin| SkippedPlugin {
            plugin,
            reason: reason.clone(),
        })
        .collect()
    }

    /// Describes it, one line each, for `doctor`.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let policy = &self.policy;
        let mut lines = Vec::new();
        let list = |items: &[String]| {
            if items.is_empty() {
                "none".to_owned()
            } else {
                items.join(", ")
            }
        };
        if let Some(allow) = &policy.plugins.allow {
            lines.push(format!("plugins allowed: {}", list(allow)));
        }
        if !policy.plugins.deny.is_empty() {
            lines.push(format!("plugins denied: {}", list(&policy.plugins.deny)));
        }
        if !policy.plugins.require.is_empty() {
            let ids: Vec<String> = policy.plugins.require.keys().cloned().collect();
            lines.push(format!("plugins required: {}", list(&ids)));
        }
        let least = [
            ("sandbox", policy.sandbox.minimum.map(|it| apply::word(&it))),
            (
                "tools.sandbox",
                policy.sandbox.tools.map(|it| apply::word(&it)),
            ),
            (
                "trust.projects",
                policy.trust.projects.map(|it| apply::word(&it)),
            ),
            (
                "trust.changes",
                policy.trust.changes.map(|it| apply::word(&it)),
            ),
        ];
        lines.extend(
            least
                .into_iter()
                .filter_map(|(key, value)| Some(format!("{key} is at least {}", value?))),
        );
        if policy.trust.world_writable == Some(false) {
            lines.push("trust.world_writable stays off".into());
        }
        if policy.signatures.require {
            let keys = policy.signatures.keys.len();
            lines.push(format!("plugins are signed by one of {keys} keys"));
        }
        lines.extend(self.forbidden());
        lines
    }

    /// Describes what no plugin gets, whatever its grants, one line each.
    #[must_use]
    pub fn forbidden(&self) -> Vec<String> {
        let policy = &self.policy;
        let mut lines = policy.forbid.lines();
        if !policy.grants.forbid.is_empty() {
            lines.push(format!("no plugin is granted: {:?}", policy.grants.forbid));
        }
        if !policy.grants.forbid_env.is_empty() {
            let names = policy.grants.forbid_env.join(", ");
            lines.push(format!("no plugin is granted the variables {names}"));
        }
        lines
    }
}

impl PolicyGrants {
    /// Returns whether a variable must not be granted to any plugin.
    #[must_use]
    pub fn forbids_env(&self, variable: &str) -> bool {
        self.forbid_env
            .iter()
            .any(|pattern| matches(pattern, variable))
    }
}

impl PolicyPlugins {
    fn allows(&self, plugin: &PluginSpec) -> bool {
        let names = Names::of(plugin);
        let denied = self
            .deny
            .iter()
            .any(|pattern| names.any.iter().any(|name| matches(pattern, name)));
        let allowed = self.allow.as_ref().is_none_or(|allow| {
            names
                .proven
                .as_ref()
                .is_some_and(|name| allow.iter().any(|pattern| matches(pattern, name)))
        });
        !denied && allowed
    }
}

/// Names of a plugin for policies.
struct Names {
    /// A deny matches any of these.
    any: Vec<String>,
    /// Only the verified identity can be allowed: the package that the registry has by this name, or the real path of its file.
    /// An alias (`name@npm:other`), a URL or a link is not that.
    proven: Option<String>,
}

impl Names {
    fn of(plugin: &PluginSpec) -> Self {
        let spec = &plugin.spec;
        let mut any = vec![spec.clone()];
        if let Some(path) = paths::from_file_url(spec) {
            let real = path.canonicalize().ok();
            any.push(path.display().to_string());
            any.extend(real.as_ref().map(|real| real.display().to_string()));
            return Self {
                proven: real.map(|real| real.display().to_string()),
                any,
            };
        }
        let name = package_name(spec);
        let request = spec
            .strip_prefix(&name)
            .and_then(|rest| rest.strip_prefix('@'))
            .unwrap_or_default();
        any.extend(request.strip_prefix("npm:").map(package_name));
        any.push(name.clone());
        let of_registry = !spec.contains(':') && !request.contains(['/', '\\', '#']);
        Self {
            proven: of_registry.then_some(name),
            any,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opencode::plugin_list::{PluginScope, PluginSource};

    #[test]
    fn what_a_plugin_is_called_does_not_allow_it_and_any_name_denies_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (good, evil) = (root.join("good"), root.join("evil"));
        for folder in [&good, &evil] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("p.js"), "").unwrap();
        }
        std::os::unix::fs::symlink(evil.join("p.js"), good.join("link.js")).unwrap();
        let url = |path: PathBuf| format!("file://{}", path.display());
        let plugins = PolicyPlugins {
            allow: Some(vec![
                "@acme/*".into(),
                "plain".into(),
                format!("{}/*", good.display()),
            ]),
            deny: vec!["@acme/old".into(), "real-evil".into()],
            require: BTreeMap::new(),
        };
        for (spec, allowed) in [
            ("@acme/x".to_owned(), true),
            ("@acme/x@^1.2".to_owned(), true),
            ("@acme/old@3".to_owned(), false),
            ("plain".to_owned(), true),
            ("plain@npm:other".to_owned(), false),
            ("plain@npm:real-evil@1".to_owned(), false),
            ("plain@file:./x.tgz".to_owned(), false),
            ("plain@user/repo".to_owned(), false),
            ("other".to_owned(), false),
            (url(good.join("p.js")), true),
            (url(evil.join("p.js")), false),
            (url(good.join("link.js")), false),
            (url(good.join("../evil/p.js")), false),
            (url(good.join("gone.js")), false),
        ] {
            let plugin = PluginSpec {
                spec: spec.clone(),
                options: None,
                declared_in: root.clone(),
                source: PluginSource::Config,
                scope: PluginScope::Local,
            };
            assert_eq!(plugins.allows(&plugin), allowed, "{spec}");
        }
        assert!(PolicyPlugins::default().allows(&PluginSpec {
            spec: "any".into(),
            options: None,
            declared_in: root.clone(),
            source: PluginSource::Config,
            scope: PluginScope::Local,
        }));
    }
}
