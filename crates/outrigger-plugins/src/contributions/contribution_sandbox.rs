//! The sandbox of programs that a plugin adds through its `config` hook (MCP servers, language servers, formatters, shell lines
//! in its command templates) and of URLs that its `config`, `auth` and `provider` objects name. The host starts the programs
//! and sends the requests, with the permissions of the plugin's own process.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_network_proxy::{ProcessSockets as _, ProxyTicket};
use outrigger_protocol::id::PluginId;
use outrigger_sandbox::{ProcSockets, SandboxOverride};

use crate::contributions::auth::{AuthHook, ProviderHook};
use crate::contributions::common_policy::common;
use crate::plugin_host::PluginHost;
use crate::plugins::Plugins;
use outrigger_plugin_supervisor::group::Group;
use outrigger_plugin_supervisor::launch::home;
use outrigger_plugin_supervisor::launch::{Launch, search, short_digest};

impl Plugins {
    /// The sandbox of a program that entries of the configuration name, or of an address, where plugins have put it there: what all who
    /// put these entries there or changed them may do. `at` is the JSON pointer of the object or list that has them; an item of a list is
    /// its own name. `None` where plugins are in no sandbox.
    ///
    /// # Errors
    /// Why there is none. The program must not be started then.
    pub async fn sandbox_of(
        &self,
        at: &str,
        names: &[String],
    ) -> Result<Option<SandboxOverride>, String> {
        if !self.0.settings.sandbox {
            return Ok(None);
        }
        let mut all: Vec<(Arc<Group>, usize)> = Vec::new();
        for name in names {
            let authors = self.authors(at, name);
            if authors.is_empty() {
                return Err("no plugin is known that contributed it".to_owned());
            }
            for index in authors {
                let group = self.0.group_of(index)?;
                // Those in one process can do the same.
                if !all.iter().any(|(other, _)| other.key == group.key) {
                    all.push((group, index));
                }
            }
        }
        sandbox_of_contributions(&all).await.map(Some)
    }

    /// Returns the sandbox of what lies in a plugin's folder and is started for it; `None` if plugins are not sandboxed.
    ///
    /// # Errors
    /// Why there is none. Nothing of the plugin must be started then.
    pub async fn sandbox_of_plugin(
        &self,
        id: &PluginId,
    ) -> Result<Option<SandboxOverride>, String> {
        if !self.0.settings.sandbox {
            return Ok(None);
        }
        let all = self.0.registry.list();
        let index = all
            .iter()
            .position(|(_, status)| status.id == id.0)
            .ok_or_else(|| format!("the plugin {} does not exist", id.0))?;
        let group = self.0.group_of(index)?;
        sandbox_of_contributions(&[(group, index)]).await.map(Some)
    }
}

impl PluginHost {
    fn group_of(&self, index: usize) -> Result<Arc<Group>, String> {
        self.registry
            .with(index, |plugin| plugin.group)
            .flatten()
            .and_then(|key| self.processes.get(key))
            .ok_or_else(|| "the plugin that contributed it does not run".to_owned())
    }

    /// Returns the sandbox through whose proxy a plugin's URLs are requested; `None` if plugins are not sandboxed.
    async fn sandbox_for_requests(
        &self,
        index: usize,
        addresses: &[&str],
    ) -> Result<Option<SandboxOverride>, String> {
        if !self.settings.sandbox {
            return Ok(None);
        }
        let group = self.group_of(index)?;
        let launch = &group.launch;
        let rules = self.registry.with(index, |plugin| plugin.rules.clone());
        let access = rules.and_then(|rules| rules.access);
        let client = launch
            .network
            .client(&self.registry, &[index], access.as_ref())?
            .ok_or_else(|| "the plugin that names its address connects to nothing".to_owned())?;
        let addresses: Vec<String> = addresses.iter().map(|it| (*it).to_owned()).collect();
        let process = group.current().0.map(|live| live.process.pid());
        // A plugin that puts its own server in front of a provider is reached there, as the plugin reaches it itself. Reads
        // `/proc`.
        let refused = tokio::task::spawn_blocking(move || {
            let is_own = |url: &&String| process.is_some_and(|pid| is_own_server(pid, url));
            let mut others = addresses.iter().filter(|it| !is_own(it));
            others.find_map(|it| client.refuses(it))
        });
        match refused.await.map_err(|error| error.to_string())? {
            Some(why) => Err(why),
            None => sandbox_of_contributions(&[(group, index)]).await.map(Some),
        }
    }
}

impl AuthHook {
    /// The sandbox by whose proxy the addresses that the loader named are asked; `None` where plugins are in no sandbox.
    ///
    /// # Errors
    /// Why they are not asked: what the plugin was granted does not cover one of them.
    pub async fn sandbox_for_requests(
        &self,
        addresses: &[&str],
    ) -> Result<Option<SandboxOverride>, String> {
        self.inner.sandbox_for_requests(self.index, addresses).await
    }
}

impl ProviderHook {
    /// The same for the addresses of the models that it listed.
    ///
    /// # Errors
    /// As above.
    pub async fn sandbox_for_requests(
        &self,
        addresses: &[&str],
    ) -> Result<Option<SandboxOverride>, String> {
        self.inner.sandbox_for_requests(self.index, addresses).await
    }
}

fn is_own_server(pid: u32, url: &str) -> bool {
    let place = outrigger_network_proxy::hosts::of_url(url);
    place.is_some_and(|(host, port)| ProcSockets.own_server(pid, &host, port).is_some())
}

/// Returns the sandbox of the plugins' own processes, without the variables and ports granted to these alone: with several plugins what
/// each of them may do.
async fn sandbox_of_contributions(
    plugins: &[(Arc<Group>, usize)],
) -> Result<SandboxOverride, String> {
    let missing = || "it does not exist".to_owned();
    let (group, _) = plugins.first().ok_or_else(missing)?;
    let launch: &Launch = &group.launch;
    let mut ids = Vec::with_capacity(plugins.len());
    for (_, index) in plugins {
        let id = launch.registry.with(*index, |plugin| plugin.id.clone());
        ids.push(id.ok_or_else(missing)?.replace(['/', '\\'], "+"));
    }
    let ticket = ticket(plugins).await?;
    let name = match ids.as_slice() {
        [one] => format!("{one}+started"),
        // Their data is for none of them alone.
        all => format!("{}+started", short_digest(all.join("\n").as_bytes())),
    };
    let private = launch.homes.join(name);
    let mut variables = home::prepare(&private, None, &[])
        .map_err(|error| format!("cannot create its folder {}: {error}", private.display()))?;
    let proxy = ticket.iter().flat_map(ProxyTicket::variables);
    variables.extend(proxy.map(|(name, value)| (name.into(), value.into())));
    let mut policies = Vec::with_capacity(plugins.len());
    for (group, index) in plugins {
        let policy = group
            .launch
            .sandbox(&[*index], &private, ticket.as_ref(), Vec::new())
            .await;
        policies.push(policy.map_err(|error| error.to_string())?);
    }
    let policy = tokio::task::spawn_blocking(|| policies.into_iter().reduce(common)).await;
    let mut policy = policy
        .map_err(|error| error.to_string())?
        .ok_or_else(missing)?;
    policy.read.extend(tool_chains(&search()));
    Ok(SandboxOverride {
        policy,
        variables,
        proxy_redirect: ticket.as_ref().map(ProxyTicket::redirect),
        held: Arc::new(ticket),
    })
}

async fn ticket(plugins: &[(Arc<Group>, usize)]) -> Result<Option<ProxyTicket>, String> {
    let [(group, index)] = plugins else {
        let Some((group, _)) = plugins.first() else {
            return Ok(None);
        };
        let all: Vec<usize> = plugins.iter().map(|(_, index)| *index).collect();
        let launch = &group.launch;
        return launch.network.common_ticket(&launch.registry, &all).await;
    };
    let launch = &group.launch;
    let access = launch.access(&[*index]);
    let ticket = launch
        .network
        .ticket(&launch.registry, &[*index], access.as_ref())
        .await?;
    // A server of the plugin's own process is reachable, as it is for the plugin.
    if let (Some(ticket), (Some(live), _)) = (&ticket, group.current()) {
        ticket.belongs_to(live.process.pid());
    }
    Ok(ticket)
}

/// Tool chains whose programs need the files next to them, by a common parent folder.
const CHAINS: [&str; 11] = [
    ".asdf", ".bun", ".deno", ".fnm", ".nvm", ".pyenv", ".rbenv", ".volta", "fnm", "mise", "pnpm",
];

/// Returns folders of user programs outside the system's (`~/.nvm/versions/node/v24/bin`): contributed programs are started by
/// name, `npx` or `uvx`. Files next to them, which may be keys, are included only for known tool chains.
fn tool_chains(path: &OsStr) -> Vec<PathBuf> {
    let hidden = |folder: &Path| {
        let mut steps = folder.components();
        steps.any(|step| step.as_os_str().as_encoded_bytes().starts_with(b"."))
    };
    let is_chain = |folder: &Path| {
        let mut steps = folder.components();
        steps.any(|step| CHAINS.iter().any(|name| step.as_os_str() == *name))
    };
    let readable = |folder: PathBuf| {
        let programs = ["bin", "shims"];
        let holds_programs = folder
            .file_name()
            .is_some_and(|name| programs.iter().any(|it| name == *it));
        match folder.parent().filter(|_| holds_programs) {
            Some(chain) if is_chain(chain) => Some(chain.to_path_buf()),
            Some(_) => Some(folder),
            None => is_chain(&folder).then_some(folder),
        }
    };
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute() && hidden(folder))
        .filter_map(readable)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_chains_of_the_user() {
        for (path, want) in [
            ("/usr/bin:/home/me/bin:.bin", vec![]),
            ("/home/me/.local/bin:/home/me", vec!["/home/me/.local/bin"]),
            ("/home/me/.cargo/bin", vec!["/home/me/.cargo/bin"]),
            ("/home/me/.nvm/node/bin", vec!["/home/me/.nvm/node"]),
            ("/root/.pyenv/shims", vec!["/root/.pyenv"]),
            (
                "/home/me/.local/share/mise/shims",
                vec!["/home/me/.local/share/mise"],
            ),
            (
                "/home/me/.local/share/pnpm",
                vec!["/home/me/.local/share/pnpm"],
            ),
            // Tokens are stored next to these programs.
            (
                "/home/me/.docker/bin:/home/me/.fly/bin:/home/me/.pulumi/bin",
                vec![
                    "/home/me/.docker/bin",
                    "/home/me/.fly/bin",
                    "/home/me/.pulumi/bin",
                ],
            ),
            ("/home/me/.config:/home/me/.ssh/x", vec![]),
        ] {
            let want: Vec<PathBuf> = want.into_iter().map(PathBuf::from).collect();
            assert_eq!(tool_chains(path.as_ref()), want, "{path}");
        }
    }
}
