//! What a plugin can do itself in its sandbox: the limit for tool calls of a turn that it started without the grant.

use std::path::{Path, PathBuf};

use outrigger_network_proxy::hosts::{Hosts, of_url};
use outrigger_protocol::id::PluginId;
use outrigger_protocol::provenance::UNKNOWN_PLUGIN;
use outrigger_protocol::settings::SETTINGS;

use crate::plugins::Plugins;
use outrigger_plugin_registry::access::rights::real;
use outrigger_plugin_registry::access::settings::PluginRules;

/// The files and hosts that a running plugin can reach. The default reaches nothing.
#[derive(Debug, Default)]
pub struct PluginReach {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    hosts: Hosts,
}

impl Plugins {
    /// Returns what a plugin can do itself; nothing, if that is not known.
    #[must_use]
    pub fn plugin_reach(&self, plugin: &PluginId, worktree: &Path) -> PluginReach {
        let registry = &self.0.registry;
        let index = registry.index_of(&plugin.0);
        let rules = match index {
            Some(index) => registry.with(index, |plugin| plugin.rules.clone()),
            // Plugins that share a process have neither grants nor a manifest.
            None => (plugin.0 == UNKNOWN_PLUGIN).then(PluginRules::default),
        };
        rules.map_or_else(PluginReach::default, |rules| {
            PluginReach::of(&rules, worktree)
        })
    }
}

impl PluginReach {
    fn of(rules: &PluginRules, worktree: &Path) -> Self {
        let (mut read, mut write) = match &rules.access {
            Some(access) => (access.read.clone(), access.write.clone()),
            // As in the sandbox: a worktree of `/` is not a project.
            None if worktree.parent().is_some() => {
                (vec![worktree.to_path_buf()], vec![worktree.to_path_buf()])
            }
            None => (Vec::new(), Vec::new()),
        };
        read.extend(rules.read.iter().cloned());
        write.extend(rules.write.iter().cloned());
        read.extend(write.iter().cloned());
        // Without a grant it may connect to every public address, which a host name does not prove.
        let named = rules.access.as_ref().map(|access| &access.hosts);
        let hosts = rules.hosts.as_ref().or(named);
        let hosts = hosts.and_then(|hosts| Hosts::parse(hosts).ok());
        let real = |paths: Vec<PathBuf>| paths.iter().filter_map(|path| real(path)).collect();
        Self {
            read: real(read),
            write: real(write),
            hosts: hosts.unwrap_or_default(),
        }
    }

    /// Returns whether it may read the content of this folder.
    #[must_use]
    pub fn reads(&self, folder: &Path) -> bool {
        within(&self.read, folder).is_some()
    }

    /// Returns whether it may write the file. It cannot change hidden folders and settings, wherever they are.
    #[must_use]
    pub fn writes(&self, file: &Path) -> bool {
        let Some(below) = within(&self.write, file) else {
            return false;
        };
        let names = below.iter().map(|name| name.to_string_lossy());
        let is_kept = |name: &str| {
            name.starts_with('.') || SETTINGS.iter().any(|it| it.eq_ignore_ascii_case(name))
        };
        names.into_iter().all(|name| !is_kept(&name))
    }

    /// Returns whether it was granted the host of this URL.
    #[must_use]
    pub fn connects(&self, url: &str) -> bool {
        // A name is granted as written: its address is not known yet.
        of_url(url).is_some_and(|(host, port)| self.hosts.is_about(&host, port, host.parse().ok()))
    }
}

/// Returns the part of the path below the folder that contains it, with all links resolved.
fn within(folders: &[PathBuf], path: &Path) -> Option<PathBuf> {
    let path = real(path)?;
    folders
        .iter()
        .find_map(|it| path.strip_prefix(it).ok())
        .map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_plugin_registry::access::rights::Access;

    #[test]
    fn what_a_plugin_may_do_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("p/src/.git")).unwrap();
        std::fs::create_dir_all(root.join("granted")).unwrap();
        std::os::unix::fs::symlink(root.join("p/src/.git"), root.join("p/link")).unwrap();
        let project = root.join("p");
        let rules = PluginRules {
            write: vec![root.join("granted")],
            hosts: Some(vec!["api.test".into(), "10.0.0.1".into()]),
            ..PluginRules::default()
        };
        let reach = PluginReach::of(&rules, &project);
        for (file, writes) in [
            ("p/src/a.rs", true),
            ("p/new/b.rs", true),
            ("granted/x", true),
            ("other/x", false),
            ("p/../other/x", false),
            ("p/.git/hooks/post-commit", false),
            ("p/link/config", false),
            ("p/src/.envrc", false),
            ("p/opencode.json", false),
            ("p/OpenCode.json", false),
            ("p/sub/outrigger.toml", false),
        ] {
            assert_eq!(reach.writes(&root.join(file)), writes, "{file}");
        }
        assert!(reach.reads(&project) && !reach.reads(&root));
        for (url, connects) in [
            ("https://api.test/x", true),
            ("https://api.test.evil/x", false),
            ("http://10.0.0.1/", true),
            ("http://127.0.0.1/", false),
            ("https://example.com", false),
            ("no address", false),
        ] {
            assert_eq!(reach.connects(url), connects, "{url}");
        }
        let narrow = PluginRules {
            access: Some(Access::default()),
            ..PluginRules::default()
        };
        let narrow = PluginReach::of(&narrow, &project);
        assert!(!narrow.reads(&project) && !narrow.writes(&root.join("p/src/a.rs")));
        assert!(!PluginReach::default().connects("https://api.test"));
    }
}
