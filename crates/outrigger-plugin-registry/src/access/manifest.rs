//! Grants of a plugin with a manifest; [`Access`] is the result.
//!
//! A plugin with a manifest gets what it declares, within the default for plugins; resources that a user grants by name
//! (variables that are secrets, ports, UNIX sockets) only if the user granted them. Without a manifest it gets the default.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_config::policy::Grant;
use outrigger_config::{Forbid, PolicyFile};
use outrigger_kernel::hooks::HookPoint;
use outrigger_network_proxy::hosts::Hosts;
use outrigger_protocol::manifest::Manifest;
use outrigger_sandbox::which;
use serde::Serialize;

use crate::access::critical;
use crate::access::environment::is_secret;
use crate::access::rights::{Access, matches, real};
use crate::access::settings::PluginRules;

/// A plugin's manifest, for display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ManifestShown {
    /// It has its own manifest; otherwise these are the defaults.
    pub declared: bool,
    /// The manifest.
    pub manifest: Manifest,
    /// Rights of its hooks (C3).
    pub hooks: String,
    /// What it requests and does not get, with the setting that would grant it.
    pub withheld: Vec<String>,
    /// Hosts that it was granted; of these it reaches those that its manifest requests.
    pub hosts: Vec<String>,
    /// Paths that the machine policy hides from it, whatever it was granted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forbidden: Vec<String>,
}

/// Returns the missing requirements of a plugin, which cannot run here (D3).
pub fn missing(manifest: &Manifest, path: &OsString, env: &dyn Fn(&str) -> bool) -> Vec<String> {
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

/// Returns what a manifest requests and a policy forbids: such a plugin is refused rather than restricted, since it would
/// not work.
pub fn too_wide(manifest: &Manifest, policies: &[PolicyFile]) -> Option<(String, PathBuf)> {
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

/// Returns the first file or program that a manifest requests and a policy forbids.
fn forbidden(manifest: &Manifest, forbid: &Forbid) -> Option<String> {
    let asked = &manifest.permissions;
    let mut programs = asked.processes.iter().flatten();
    if let Some(name) = programs.find(|it| forbid.program(Path::new(it)).is_some()) {
        return Some(format!("the program {name}"));
    }
    let mut files = asked.files.read.iter().chain(&asked.files.write);
    let file = files.find(|it| {
        let path = crate::access::settings::place(it);
        path.is_some_and(|path| forbid.file(Path::new("/"), &path).is_some())
    })?;
    Some(format!("the file {file}"))
}

/// Restricts the rules of a plugin to what its manifest requests, and returns what it does not get.
pub fn apply(manifest: &Manifest, project: &Path, rules: &mut PluginRules) -> ManifestShown {
    let mut admission = ManifestRules {
        manifest,
        rules,
        withheld: Vec::new(),
    };
    admission.cut_variables();
    admission.cut_connections();
    admission.warn_of_secrets();
    admission.take_hook_policy();
    let (read, write) = admission.cut_files(project);
    let ManifestRules {
        rules, withheld, ..
    } = admission;
    let asked = &manifest.permissions;
    rules.processes = fewer(asked.processes.as_deref(), rules.processes.as_deref());
    let access = access(manifest, read, write);
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

/// Returns what a plugin with this manifest may reach; `read` and `write` are its granted files.
fn access(manifest: &Manifest, read: Vec<PathBuf>, write: Vec<PathBuf>) -> Access {
    let (asked, policy) = (&manifest.permissions, &manifest.hook_policy);
    Access {
        read,
        write,
        env: asked.env.clone(),
        hosts: asked.network.hosts.clone(),
        client: asked.client.clone(),
        hooks: policy.allowed_hooks.clone(),
        named: policy.allowed_hooks.is_some(),
        // A connector is executed by a tool of its name.
        tools: manifest.provides.tools.as_ref().map(|tools| {
            let connectors = &manifest.provides.connectors;
            tools.iter().chain(connectors).cloned().collect()
        }),
        providers: manifest.provides.providers.clone(),
        kind: Some(manifest.kind),
        connectors: manifest.provides.connectors.clone(),
        hosted: false,
    }
}

/// The rules of a plugin while they are restricted to its manifest.
struct ManifestRules<'a> {
    manifest: &'a Manifest,
    rules: &'a mut PluginRules,
    /// What it requests and does not get, with the setting that would grant it.
    withheld: Vec<String>,
}

impl ManifestRules<'_> {
    fn cut_variables(&mut self) {
        let asked = &self.manifest.permissions;
        let granted = &mut self.rules.env;
        let missing = asked.secrets.iter().filter(|name| !granted.contains(name));
        self.withheld.extend(
            missing.map(|name| format!("the variable {name} (`env = [\"{name}\"]` grants it)")),
        );
        granted.retain(|name| asked.secrets.contains(name) || matches(&asked.env, name));
    }

    /// Restricts ports, hosts and UNIX sockets.
    fn cut_connections(&mut self) {
        let asked = &self.manifest.permissions;
        let (listen, ports) = (&asked.network.listen, &mut self.rules.ports);
        let missing = listen.iter().filter(|port| !ports.contains(port));
        self.withheld
            .extend(missing.map(|port| format!("the port {port} (`ports = [{port}]` grants it)")));
        ports.retain(|port| listen.contains(port));
        self.withheld
            .extend(private_hosts(&asked.network.hosts, self.rules));
        if asked.unix_sockets && !self.rules.unix_sockets {
            self.withheld
                .push("UNIX sockets (`unix_sockets = true` grants them)".to_owned());
        }
        self.rules.unix_sockets &= asked.unix_sockets;
    }

    /// Warns of variables that it requests as harmless and that look like secrets.
    fn warn_of_secrets(&mut self) {
        let named = self.manifest.permissions.env.iter();
        let secrets = named.filter(|name| !name.ends_with('*') && is_secret(name));
        self.withheld.extend(secrets.map(|name| {
            format!("the variable {name}: it looks like a secret, which belongs into `secrets`")
        }));
    }

    /// Takes over its priority, its longest deadline, and the hooks whose failure refuses.
    fn take_hook_policy(&mut self) {
        let (policy, rules) = (&self.manifest.hook_policy, &mut *self.rules);
        if rules.priority == 0 {
            rules.priority = policy.priority;
        }
        rules.max_timeout = policy.max_timeout_ms.map(Duration::from_millis);
        let point =
            |name: &str| HookPoint::parse(name).map_or(name.to_owned(), |it| it.name().to_owned());
        for hook in &policy.fail_closed {
            let said = rules.fail_closed.iter().any(|it| point(it) == point(hook));
            if !said && critical::by_manifest(hook) {
                rules.fail_closed.push(hook.clone());
            } else if !said {
                self.withheld.push(format!(
                    "a refusal where {hook} fails, which may refuse nothing (`fail_closed = [\"{hook}\"]` grants it)"
                ));
            }
        }
    }

    /// Restricts the files and folders to read and to change. It does not get user grants beyond its manifest.
    fn cut_files(&mut self, project: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let asked = &self.manifest.permissions.files;
        let (granted_read, granted_write) = (
            std::mem::take(&mut self.rules.read),
            std::mem::take(&mut self.rules.write),
        );
        let readable = [granted_read, granted_write.clone()].concat();
        let mut roots = |list: &[String], granted: &[PathBuf], key: &str| -> Vec<PathBuf> {
            let place = |root: &String| root_of(project, root, granted);
            for root in list.iter().filter(|root| place(root).is_none()) {
                self.withheld
                    .push(format!("{root} (`{key} = [\"{root}\"]` grants it)"));
            }
            list.iter().filter_map(place).collect()
        };
        let read = roots(&asked.read, &readable, "read");
        let write = roots(&asked.write, &granted_write, "write");
        (read, write)
    }
}

/// Returns the requested private addresses, which only the user can grant.
fn private_hosts(asked: &[String], rules: &PluginRules) -> Vec<String> {
    let granted = rules
        .hosts
        .as_deref()
        .filter(|_| !rules.hosts_withheld)
        .unwrap_or_default();
    asked
        .iter()
        .filter(|host| {
            let one = Hosts::parse([host.as_str()]);
            one.is_ok_and(|one| one.is_private()) && !granted.contains(*host)
        })
        .map(|host| format!("the host {host} (`hosts = [\"{host}\"]` grants it)"))
        .collect()
}

/// Returns the programs on both lists, if there are two.
fn fewer(asked: Option<&[String]>, granted: Option<&[String]>) -> Option<Vec<String>> {
    match (asked, granted) {
        (Some(asked), Some(granted)) => {
            let both = asked.iter().filter(|program| granted.contains(program));
            Some(both.cloned().collect())
        }
        (one, other) => one.or(other).map(<[String]>::to_vec),
    }
}

/// Resolves a requested path; `None` if it is outside the project and was not granted.
fn root_of(project: &Path, root: &str, granted: &[PathBuf]) -> Option<PathBuf> {
    let granted_too = |place: &PathBuf| granted.iter().any(|it| place.starts_with(it));
    if !root.starts_with(['/', '~']) {
        // A link in the project may point anywhere.
        let place = real(&under(project, root))?;
        let inside = real(project).is_some_and(|project| place.starts_with(project));
        return (inside || granted_too(&place)).then_some(place);
    }
    let place = crate::access::settings::place(root)?;
    granted_too(&place).then_some(place)
}

fn under(project: &Path, root: &str) -> PathBuf {
    let rest = root.strip_prefix("${project}").unwrap_or(root);
    outrigger_sandbox::paths::resolve(project, Path::new(rest.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use outrigger_sandbox::Policy;

    use super::*;

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
        // A path that has become a link since is skipped.
        let access = Access {
            write: vec![project.join("real"), project.join("out")],
            ..Access::default()
        };
        let mut policy = Policy::default();
        access.apply_to(&mut policy, &project);
        assert_eq!(policy.write, [project.join("real")]);
    }
}
