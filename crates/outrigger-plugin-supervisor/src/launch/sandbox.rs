//! The sandbox of a plugin: shared limits for its process and the programs that it contributes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use outrigger_js::default_policy;
use outrigger_network_proxy::ProxyTicket;
use outrigger_plugin_package::ResolvedPlugin;
use outrigger_plugin_trust::code_places;
use outrigger_protected_paths::Process;
use outrigger_sandbox::path_masks::CoverWalk;
use outrigger_sandbox::stale_masks::Hidden;
use outrigger_sandbox::{Calls, Lookups, Policy, SandboxError, which};

use super::Launch;
use outrigger_plugin_registry::Plugin;
use outrigger_plugin_registry::access::rights::Access;
use outrigger_plugin_registry::access::settings::PluginRules;

/// Returns the hidden paths within these folders: the process cannot read the rest in any case.
pub(super) fn hidden(kept: &CoverWalk, folders: [&Path; 2]) -> Hidden {
    let hidden = kept.covers().hide.iter();
    Hidden::of(hidden.filter(|path| folders.iter().any(|folder| path.starts_with(folder))))
}

impl Launch {
    /// What the plugins may reach by their manifest, the user's rules and where their code lies, `packages` beside it.
    /// What only one kind of process gets (ports, files that the environment names, covers) its caller adds.
    ///
    /// # Errors
    /// Why there is none. Nothing must be started then.
    pub async fn sandbox(
        &self,
        members: &[usize],
        private: &Path,
        ticket: Option<&ProxyTicket>,
        packages: Vec<PathBuf>,
    ) -> Result<Policy, SandboxError> {
        let resolved = |index: &usize| {
            let resolved = |it: &Plugin| it.resolved.clone();
            self.registry.with(*index, resolved).flatten()
        };
        let resolved: Vec<ResolvedPlugin> = members.iter().filter_map(resolved).collect();
        let (directory, worktree) = (self.directory.clone(), self.worktree.clone());
        let places = tokio::task::spawn_blocking(move || -> Vec<PathBuf> {
            let project = [directory.as_path(), worktree.as_path()];
            let of = |plugin| code_places::of(plugin, project);
            resolved.iter().flat_map(of).collect()
        });
        let mut folders = places.await.map_err(|_| SandboxError::Stopped)?;
        folders.extend(self.modules.as_ref().map(|modules| modules.root.clone()));
        folders.extend(packages);
        let mut policy = default_policy(&self.runtime.path, &self.directory, &folders, private);
        match self.access(members) {
            Some(access) => access.apply_to(&mut policy, &self.directory),
            // Outside version control OpenCode's worktree is `/`, which is not a project.
            None if self.worktree.parent().is_some() => policy.write.push(self.worktree.clone()),
            None => {}
        }
        let rules = |index: &usize| self.registry.with(*index, |plugin| plugin.rules.clone());
        let rules: Vec<PluginRules> = members.iter().filter_map(rules).collect();
        let read = rules.iter().flat_map(|rules| &rules.read);
        policy.read.extend(read.cloned());
        let write: Vec<PathBuf> = rules.iter().flat_map(|it| it.write.clone()).collect();
        policy.write.extend(write.iter().cloned());
        let listed = rules.iter().find_map(|rules| rules.processes.as_deref());
        policy.execute = listed.map(|names| programs(names, &search()));
        policy.connect_tcp = Some(ticket.into_iter().map(ProxyTicket::port).collect());
        policy.calls = Some(Calls {
            unix_sockets: rules.iter().all(|rules| rules.unix_sockets),
            alone: listed.is_some_and(<[String]>::is_empty),
            // The proxy resolves names.
            udp: false,
        });
        let (directory, worktree) = (self.directory.clone(), self.worktree.clone());
        let kept = tokio::task::spawn_blocking(move || {
            let folders = [directory.as_path(), worktree.as_path()];
            let lookups = &mut Lookups::default();
            outrigger_protected_paths::keep(&mut policy, folders, &write, Process::Plugin, lookups)
                .map(|()| policy)
        });
        kept.await.map_err(|_| SandboxError::Stopped)?
    }

    /// Returns the access of this process's plugin, if it has a manifest: it is alone then.
    pub fn access(&self, members: &[usize]) -> Option<Access> {
        let [one] = members else {
            return None;
        };
        self.registry
            .with(*one, |plugin| plugin.rules.access.clone())?
    }
}

/// Returns the search path for programs.
pub fn search() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// Returns the files of programs. A missing one is skipped.
fn programs(names: &[String], path: &OsString) -> Vec<PathBuf> {
    names
        .iter()
        .filter_map(|name| {
            if name.contains('/') {
                Some(PathBuf::from(name))
            } else {
                which(Path::new(name), path)
            }
        })
        .collect()
}
