//! A plugin's manifest: reading it, and what a plugin gets of what it asks for (issue 5, item 1).
//!
//! A plugin with a manifest gets what stands in it, as far as the default for plugins goes, and of what a user grants by
//! name (variables that are secrets, ports, UNIX sockets) what the user has granted. Without a manifest it gets the default.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_config::policy::Grant;
use outrigger_config::{ConfigError, Forbid, PolicyFile};
use outrigger_kernel::hooks::{self, Rights};
use outrigger_protocol::manifest::{MANIFEST_FILE, Manifest, PluginKind, RESERVED_IDS};
use outrigger_protocol::own::ProviderDecl;
use outrigger_protocol::rpc::Instance;
use outrigger_sandbox::hosts::Hosts;
use outrigger_sandbox::paths::Roots;
use outrigger_sandbox::{Policy, which};
use serde::Serialize;

use crate::critical;
use crate::error::PluginError;
use crate::grants::is_secret;
use crate::own::Own;
use crate::settings::PluginRules;

/// A manifest is no longer than this, in bytes.
const MOST: u64 = 256 * 1024;

/// What a plugin says of itself, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ManifestShown {
    /// It is its own; else it is what such a plugin is given by default.
    pub declared: bool,
    /// The manifest.
    pub manifest: Manifest,
    /// What its hooks may do (C3).
    pub hooks: String,
    /// What it asks for and does not get, with what would grant it.
    pub withheld: Vec<String>,
    /// Hosts that it was granted; of these it reaches what its manifest asks for.
    pub hosts: Vec<String>,
    /// What the policy of the machine keeps from it, whatever it was granted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forbidden: Vec<String>,
}

/// What a plugin with a manifest may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Files and folders to read.
    pub read: Vec<PathBuf>,
    /// Files and folders to read and change.
    pub write: Vec<PathBuf>,
    /// Variables that are no secrets.
    pub env: Vec<String>,
    /// Hosts that it may connect to; none: it opens no TCP connection.
    pub hosts: Vec<String>,
    /// Routes of the client; all when `None`.
    pub client: Option<Vec<String>>,
    /// Hooks that are called; all when `None`.
    pub hooks: Option<Vec<String>>,
    /// Its manifest, and that of its host, name the hooks: these may do whatever their points allow. Else they may do what
    /// C3 gives to every plugin ([`outrigger_kernel::hooks::Rights::unnamed`]).
    pub named: bool,
    /// Tools that may be registered; all when `None`.
    pub tools: Option<Vec<String>>,
    /// Providers that it may speak for with a protocol of its own.
    pub providers: Vec<String>,
    /// It says that it is of the kind that brings hooks and nothing else (C6).
    pub hooks_only: bool,
    /// Another plugin hosts it: it brings hooks and tools, and nothing that stands for the user's accounts (C8).
    pub hosted: bool,
}

/// The manifest in a plugin's folder, if there is one.
///
/// # Errors
/// `plugin.manifest`, with line and column.
pub(crate) fn read(spec: &str, dir: &Path) -> Result<Option<Manifest>, PluginError> {
    let path = dir.join(MANIFEST_FILE);
    let wrong = |message: String, hint: Option<String>| PluginError::OwnManifest {
        spec: spec.to_owned(),
        message,
        hint,
    };
    match fs::metadata(&path) {
        Ok(meta) if meta.is_file() && meta.len() <= MOST => {}
        Ok(_) => {
            return Err(wrong(
                format!("{} is no file of a reasonable size", path.display()),
                None,
            ));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(format!("{}: {error}", path.display()), None)),
    }
    let text = fs::read_to_string(&path)
        .map_err(|error| wrong(format!("{}: {error}", path.display()), None))?;
    let file = path.display().to_string();
    let manifest: Manifest = outrigger_config::read_toml(&text, &file)
        .map_err(|error: ConfigError| wrong(error.to_string(), error.hint()))?;
    if let Some(problem) = manifest.problems().into_iter().next() {
        let (line, column) = outrigger_config::place_in_toml(&text, problem.key);
        if RESERVED_IDS.contains(&manifest.id.as_str()) {
            return Err(PluginError::Reserved {
                spec: spec.to_owned(),
                id: manifest.id,
            });
        }
        return Err(wrong(
            format!(
                "{file}:{line}:{column}: `{}`: {}",
                problem.key, problem.message
            ),
            None,
        ));
    }
    if let Err(error) = Hosts::parse(&manifest.permissions.network.hosts) {
        let key = "permissions.network.hosts";
        let (line, column) = outrigger_config::place_in_toml(&text, key);
        return Err(wrong(
            format!("{file}:{line}:{column}: `{key}`: {error}"),
            None,
        ));
    }
    if let Err((key, message)) = Own::of(&manifest) {
        let (line, column) = outrigger_config::place_in_toml(&text, key);
        let message = format!("{file}:{line}:{column}: `{key}`: {message}");
        return Err(wrong(message, None));
    }
    Ok(Some(manifest))
}

/// What a manifest calls its plugin, whatever else is wrong with it.
pub(crate) fn named(dir: &Path) -> Option<String> {
    let path = dir.join(MANIFEST_FILE);
    let fits = fs::metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() <= MOST);
    let text = fits.then(|| fs::read_to_string(&path).ok())??;
    // Line by line: what breaks it may be anywhere, and a section ends what is said of the plugin itself.
    let lines = text.lines().map(str::trim);
    let mut lines = lines.take_while(|line| !line.starts_with('['));
    let id = lines.find_map(|line| line.strip_prefix("id")?.trim_start().strip_prefix('='))?;
    let id = id.trim_start().strip_prefix(['"', '\''])?;
    let id: String = id
        .chars()
        .take_while(|it| it.is_ascii_alphanumeric() || "-_.@/".contains(*it))
        .collect();
    (!id.is_empty()).then_some(id)
}

/// Why a plugin cannot run here: what it requires and is not there (D3).
pub(crate) fn missing(
    manifest: &Manifest,
    path: &OsString,
    env: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let needs = &manifest.requirements;
    let mut missing: Vec<String> = needs
        .env
        .iter()
        .filter(|name| !env(name))
        .map(|name| format!("the variable {name}"))
        .collect();
    let groups = needs
        .env_any
        .iter()
        .filter(|group| !group.iter().any(|name| env(name)));
    missing.extend(groups.map(|group| format!("one of the variables {}", group.join(", "))));
    let programs = needs
        .external_bins
        .iter()
        .filter(|name| which(name, path).is_none());
    missing.extend(programs.map(|name| format!("the program {name}")));
    missing
}

/// What a policy forbids and a manifest asks for: such a plugin is refused, not cut down, since it would not work.
pub(crate) fn too_wide(manifest: &Manifest, policies: &[PolicyFile]) -> Option<(String, PathBuf)> {
    let asked = &manifest.permissions;
    for file in policies {
        let grants = &file.policy.grants;
        let forbids = |grant: Grant| grants.forbid.contains(&grant);
        let secret = asked
            .secrets
            .iter()
            .find(|name| forbids(Grant::Env) || grants.forbids_env(name));
        let what = match secret {
            Some(name) => format!("the variable {name}"),
            None if !asked.network.listen.is_empty() && forbids(Grant::Ports) => {
                "ports to listen on".to_owned()
            }
            None if asked.unix_sockets && forbids(Grant::UnixSockets) => "UNIX sockets".to_owned(),
            None => match forbidden(manifest, &file.policy.forbid) {
                Some(what) => what,
                None => continue,
            },
        };
        return Some((what, file.path.clone()));
    }
    None
}

/// The first file or program that a manifest asks for and a policy forbids.
fn forbidden(manifest: &Manifest, forbid: &Forbid) -> Option<String> {
    let asked = &manifest.permissions;
    let mut programs = asked.processes.iter().flatten();
    if let Some(name) = programs.find(|it| forbid.program(Path::new(it)).is_some()) {
        return Some(format!("the program {name}"));
    }
    let mut files = asked.files.read.iter().chain(&asked.files.write);
    let file = files.find(|it| {
        let path = crate::settings::place(it);
        path.is_some_and(|path| forbid.file(Path::new("/"), &path).is_some())
    })?;
    Some(format!("the file {file}"))
}

/// Cuts the rules of a plugin down to what its manifest asks for, and says what it does not get of it.
pub(crate) fn apply(manifest: &Manifest, project: &Path, rules: &mut PluginRules) -> ManifestShown {
    let asked = &manifest.permissions;
    let mut withheld = Vec::new();
    for name in asked
        .secrets
        .iter()
        .filter(|name| !rules.env.contains(name))
    {
        withheld.push(format!(
            "the variable {name} (`env = [\"{name}\"]` grants it)"
        ));
    }
    rules
        .env
        .retain(|name| asked.secrets.contains(name) || matches(&asked.env, name));
    for port in asked
        .network
        .listen
        .iter()
        .filter(|port| !rules.ports.contains(port))
    {
        withheld.push(format!("the port {port} (`ports = [{port}]` grants it)"));
    }
    rules
        .ports
        .retain(|port| asked.network.listen.contains(port));
    withheld.extend(private_hosts(&asked.network.hosts, rules));
    if asked.unix_sockets && !rules.unix_sockets {
        withheld.push("UNIX sockets (`unix_sockets = true` grants them)".to_owned());
    }
    rules.unix_sockets &= asked.unix_sockets;
    for name in asked
        .env
        .iter()
        .filter(|name| !name.ends_with('*') && is_secret(name))
    {
        withheld.push(format!(
            "the variable {name}: it looks like a secret, which belongs into `secrets`"
        ));
    }
    let policy = &manifest.hook_policy;
    if rules.priority == 0 {
        rules.priority = policy.priority;
    }
    rules.max_timeout = policy.max_timeout_ms.map(Duration::from_millis);
    let point = |name: &str| hooks::point(name).map_or(name.to_owned(), |it| it.name.to_owned());
    for hook in &policy.fail_closed {
        let said = rules.fail_closed.iter().any(|it| point(it) == point(hook));
        if !said && critical::by_manifest(hook) {
            rules.fail_closed.push(hook.clone());
        } else if !said {
            withheld.push(format!(
                "a refusal where {hook} fails, which may refuse nothing (`fail_closed = [\"{hook}\"]` grants it)"
            ));
        }
    }
    let (granted_read, granted_write) = (
        std::mem::take(&mut rules.read),
        std::mem::take(&mut rules.write),
    );
    let readable = [granted_read, granted_write.clone()].concat();
    let mut roots = |list: &[String], granted: &[PathBuf], key: &str| -> Vec<PathBuf> {
        let place = |root: &String| root_of(project, root, granted);
        for root in list.iter().filter(|root| place(root).is_none()) {
            withheld.push(format!("{root} (`{key} = [\"{root}\"]` grants it)"));
        }
        list.iter().filter_map(place).collect()
    };
    let read = roots(&asked.files.read, &readable, "read");
    let write = roots(&asked.files.write, &granted_write, "write");
    rules.processes = fewer(asked.processes.as_deref(), rules.processes.as_deref());
    let access = Access {
        read,
        write,
        env: asked.env.clone(),
        hosts: asked.network.hosts.clone(),
        client: asked.client.clone(),
        hooks: policy.allowed_hooks.clone(),
        named: policy.allowed_hooks.is_some(),
        // What executes for a connector is a tool of that name.
        tools: manifest.provides.tools.as_ref().map(|tools| {
            let connectors = &manifest.provides.connectors;
            tools.iter().chain(connectors).cloned().collect()
        }),
        providers: manifest.provides.providers.clone(),
        hooks_only: manifest.kind == PluginKind::Hook,
        hosted: false,
    };
    let shown = access.hooks_shown(&rules.fail_closed);
    rules.access = Some(access);
    ManifestShown {
        declared: true,
        manifest: manifest.clone(),
        hooks: shown,
        withheld,
        hosts: Vec::new(),
        forbidden: Vec::new(),
    }
}

/// Addresses that are not public are the user's to grant.
fn private_hosts(asked: &[String], rules: &PluginRules) -> Vec<String> {
    let granted = rules.hosts.as_deref().filter(|_| !rules.hosts_withheld);
    let granted = granted.unwrap_or_default();
    let private = asked.iter().filter(|host| {
        let one = Hosts::parse([host.as_str()]);
        one.is_ok_and(|one| one.is_private()) && !granted.contains(*host)
    });
    private
        .map(|host| format!("the host {host} (`hosts = [\"{host}\"]` grants it)"))
        .collect()
}

/// Programs that are on both lists, where there are two.
fn fewer(asked: Option<&[String]>, granted: Option<&[String]>) -> Option<Vec<String>> {
    match (asked, granted) {
        (Some(asked), Some(granted)) => {
            let both = asked.iter().filter(|program| granted.contains(program));
            Some(both.cloned().collect())
        }
        (one, other) => one.or(other).map(<[String]>::to_vec),
    }
}

/// A place that is asked for; `None` when it lies outside of the project and was not granted.
fn root_of(project: &Path, root: &str, granted: &[PathBuf]) -> Option<PathBuf> {
    let granted_too = |place: &PathBuf| granted.iter().any(|it| place.starts_with(it));
    if !root.starts_with(['/', '~']) {
        // A link in the project may lead anywhere.
        let place = real(&under(project, root))?;
        let inside = real(project).is_some_and(|project| place.starts_with(project));
        return (inside || granted_too(&place)).then_some(place);
    }
    let place = crate::settings::place(root)?;
    granted_too(&place).then_some(place)
}

/// Where a path leads, through all of its links; what is not there yet keeps its name.
fn real(path: &Path) -> Option<PathBuf> {
    Roots::new(["/"]).contains(path).ok()
}

fn under(project: &Path, root: &str) -> PathBuf {
    let rest = root.strip_prefix("${project}").unwrap_or(root);
    outrigger_sandbox::paths::resolve(project, Path::new(rest.trim_start_matches('/')))
}

/// Whether a name fits one of the patterns.
fn matches(patterns: &[String], name: &str) -> bool {
    patterns
        .iter()
        .any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => pattern == name,
        })
}

/// Takes from a plugin of the kind `hook` what is no hook.
fn not_hooks(instance: &mut Instance) -> Vec<String> {
    let kind =
        "its manifest says that it is of the kind \"hook\", which brings hooks and nothing else";
    let tools = instance.tools.drain(..);
    let mut told: Vec<String> = tools
        .map(|tool| format!("the tool {} is not registered: {kind}", tool.name))
        .collect();
    let accounts = instance.auth.is_some() || instance.provider.is_some();
    if accounts || instance.streams.is_some() {
        (instance.auth, instance.provider, instance.streams) = (None, None, None);
        told.push(format!("its `auth` and `provider` are left out: {kind}"));
    }
    told
}

impl Access {
    /// Takes from what a plugin brought what its manifest does not name, and says what that was.
    pub(crate) fn cut(&self, instances: &mut [Instance]) -> Vec<String> {
        let mut told = Vec::new();
        for instance in instances {
            let hooks = instance.hooks.extract_if(.., |hook| !self.has_hook(hook));
            told.extend(hooks.map(|hook| format!("the hook {hook} is not called: `hook_policy.allowed_hooks` of its manifest does not name it")));
            if self.hooks_only {
                told.extend(not_hooks(instance));
            }
            let tools = instance
                .tools
                .extract_if(.., |tool| !self.has_tool(&tool.name));
            let accounts = instance.auth.is_some() || instance.provider.is_some();
            if self.hosted && accounts {
                (instance.auth, instance.provider) = (None, None);
                told.push(
                    "its `auth` and `provider` are left out: another plugin hosts it".to_owned(),
                );
            }
            let offers = |it: &mut ProviderDecl| !self.providers.contains(&it.id);
            let refused = instance.streams.take_if(offers);
            told.extend(refused.map(|it| format!("the provider {} is not offered: `provides.providers` of its manifest does not name it", it.id)));
            told.extend(tools.map(|tool| format!("the tool {} is not registered: `provides.tools` of its manifest does not name it", tool.name)));
        }
        told
    }

    /// Leaves of a box what is asked for: the project only where it is named.
    pub(crate) fn box_in(&self, policy: &mut Policy, project: &Path) {
        policy.write.retain(|path| path != project);
        // They were followed when the plugin was admitted; what has become a link since is left out.
        let same = |path: &&PathBuf| real(path).is_none_or(|now| now == **path);
        policy.write.extend(self.write.iter().filter(same).cloned());
        policy.read.extend(self.read.iter().filter(same).cloned());
    }

    /// Whether a variable that is no secret is passed on.
    pub(crate) fn has_variable(&self, name: &str) -> bool {
        matches(&self.env, name)
    }

    /// What its hooks may do, for people.
    pub(crate) fn hooks_shown(&self, fail_closed: &[String]) -> String {
        let refuses = match fail_closed {
            [] => String::new(),
            some => format!("; a failure refuses at {}", some.join(", ")),
        };
        let points = hooks::POINTS.iter();
        let changed = points.filter(|it| Rights::unnamed(it).patch && !it.patch.is_empty());
        let changed: Vec<&str> = changed.map(|point| point.hook).collect();
        let called = self.hooks.as_ref().map(|hooks| hooks.join(", "));
        let called = called.unwrap_or_else(|| "all".to_owned());
        match self.named {
            true => format!("{called}, each as its point allows{refuses}"),
            false => format!(
                "{called}, to look; changes are taken at {}{refuses}",
                changed.join(", ")
            ),
        }
    }

    /// Whether a hook is called, by any of its names.
    pub(crate) fn has_hook(&self, hook: &str) -> bool {
        let point = |name: &str| hooks::by_hook(name).map(|point| point.name);
        self.hooks.as_ref().is_none_or(|allowed| {
            allowed.iter().any(|name| {
                name == hook
                    || Some(name.as_str()) == point(hook)
                    || (point(name).is_some() && point(name) == point(hook))
            })
        })
    }

    /// Whether a tool may be registered.
    pub(crate) fn has_tool(&self, tool: &str) -> bool {
        self.tools
            .as_ref()
            .is_none_or(|tools| tools.iter().any(|name| name == tool))
    }

    /// Whether a route of the client may be used. `..` and doubled slashes fit nothing: what is asked is what is meant.
    pub(crate) fn has_route(&self, method: &str, path: &str) -> bool {
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
    fn roots_through_links_are_withheld() {
        let dir = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(dir.path()).unwrap();
        let project = dir.join("project");
        for folder in ["project/real", "outside/deep", "granted"] {
            fs::create_dir_all(dir.join(folder)).unwrap();
        }
        for (link, to) in [
            ("out", "outside"),
            ("in", "project/real"),
            ("grant", "granted"),
            ("circle", "project/circle"),
        ] {
            std::os::unix::fs::symlink(dir.join(to), project.join(link)).unwrap();
        }
        let granted = [dir.join("granted")];
        for (root, want) in [
            ("${project}/out", None),
            ("${project}/out/deep", None),
            ("out/not/there", None),
            ("${project}/../outside", None),
            ("circle", None),
            ("${project}/in", Some("project/real")),
            ("new/folder", Some("project/new/folder")),
            ("${project}", Some("project")),
            ("grant", Some("granted")),
        ] {
            let found = root_of(&project, root, &granted);
            assert_eq!(found, want.map(|name| dir.join(name)), "{root}");
        }
        // One that has become a link since is left out.
        let access = Access {
            write: vec![project.join("real"), project.join("out")],
            ..Access::default()
        };
        let mut policy = Policy::default();
        access.box_in(&mut policy, &project);
        assert_eq!(policy.write, [project.join("real")]);
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
