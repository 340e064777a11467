//! The sandbox of programs that a plugin adds through its `config` hook (MCP servers, language servers, formatters, shell lines
//! in its command templates) and of URLs that its `config`, `auth` and `provider` objects name. The host starts the programs
//! and sends the requests, with the permissions of the plugin's own process.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_network_proxy::{ProcessSockets as _, ProxyTicket};
use outrigger_protocol::hook::{Change, Key};
use outrigger_protocol::id::PluginId;
use outrigger_sandbox::{ProcSockets, SandboxOverride};
use serde_json::Value;

use crate::contributions::auth::{AuthHook, ProviderHook};
use crate::plugin_host::PluginHost;
use crate::plugins::Plugins;
use outrigger_plugin_registry::Configured;
use outrigger_plugin_supervisor::group::Group;
use outrigger_plugin_supervisor::launch::home;
use outrigger_plugin_supervisor::launch::{Launch, search};

impl Plugins {
    /// Returns the plugin whose `config` hook changed an entry (`mcp`, `notes`) last.
    fn last_to_configure(&self, key: &str, name: &str) -> Option<usize> {
        let touches = |configured: &Configured| {
            let mut changes = configured.changes.iter();
            changes.any(|change| touches(change, key, name))
        };
        let all = 0..self.0.registry.list().len();
        let mut touched = all.filter(|index| {
            let configured = self
                .0
                .registry
                .with(*index, |plugin| plugin.configured.clone());
            configured.is_some_and(|all| all.iter().any(touches))
        });
        touched.next_back()
    }

    /// The sandbox of a program that an entry of the configuration names, where a plugin has put it there; `None` where plugins
    /// are in no sandbox.
    ///
    /// # Errors
    /// Why there is none. The program must not be started then.
    pub async fn sandbox_of(
        &self,
        key: &str,
        name: &str,
    ) -> Result<Option<SandboxOverride>, String> {
        if !self.0.settings.sandbox {
            return Ok(None);
        }
        let index = self.last_to_configure(key, name);
        let Some(index) = index else {
            return Err("no plugin is known that contributed it".to_owned());
        };
        let group = self.0.group_of(index)?;
        sandbox_of_contributions(&group, index).await.map(Some)
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
        let index = all.iter().position(|(_, status)| status.id == id.0);
        let index = index.ok_or_else(|| format!("the plugin {} is not there", id.0))?;
        let group = self.0.group_of(index)?;
        sandbox_of_contributions(&group, index).await.map(Some)
    }

    /// Returns the plugin whose `config` hook changed this entry last.
    #[must_use]
    pub fn configured_by(&self, key: &str, name: &str) -> Option<PluginId> {
        let index = self.last_to_configure(key, name)?;
        let id = self.0.registry.with(index, |plugin| plugin.id.clone());
        id.map(PluginId)
    }

    /// Returns all plugins whose `config` hooks changed this place of the configuration, something in it, or what it is in, in
    /// load order.
    #[must_use]
    pub fn all_that_configured(&self, path: &[&str]) -> Vec<PluginId> {
        let touches = |change: &Change| {
            let mut steps = change.path.iter().zip(path);
            steps.all(|(step, wanted)| matches!(step, Key::Name(it) if it == *wanted))
        };
        self.that_changed(touches)
    }

    /// Returns the plugins whose `config` hooks changed any of these keys of the configuration, in load order.
    #[must_use]
    pub fn configured_keys(&self, keys: &[&str]) -> Vec<PluginId> {
        let touches = |change: &Change| match change.path.first() {
            Some(Key::Name(name)) => keys.contains(&name.as_str()),
            // The configuration as a whole.
            _ => true,
        };
        self.that_changed(touches)
    }

    fn that_changed(&self, touches: impl Fn(&Change) -> bool) -> Vec<PluginId> {
        let registry = &self.0.registry;
        let all = 0..registry.list().len();
        let touched = all.filter_map(|index| {
            registry.with(index, |plugin| {
                let mut configured = plugin.configured.iter();
                let changed = configured.any(|it| it.changes.iter().any(&touches));
                changed.then(|| PluginId(plugin.id.clone()))
            })
        });
        touched.flatten().collect()
    }
}

impl PluginHost {
    fn group_of(&self, index: usize) -> Result<Arc<Group>, String> {
        let group = self.registry.with(index, |plugin| plugin.group).flatten();
        let group = group.and_then(|key| self.processes.get(key));
        group.ok_or_else(|| "the plugin that contributed it does not run".to_owned())
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
            None => sandbox_of_contributions(&group, index).await.map(Some),
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

fn touches(change: &Change, key: &str, name: &str) -> bool {
    let named = |at: usize, wanted: &str| matches!(change.path.get(at), Some(Key::Name(it)) if it == wanted);
    let holds = |value: &Value| value.get(name).is_some();
    match change.path.len() {
        0 => change
            .value
            .as_ref()
            .and_then(|it| it.get(key))
            .is_some_and(holds),
        1 => named(0, key) && change.value.as_ref().is_some_and(holds),
        _ => named(0, key) && named(1, name),
    }
}

/// Returns the sandbox of the plugin's own process, without the variables and ports granted to that process alone.
async fn sandbox_of_contributions(group: &Group, index: usize) -> Result<SandboxOverride, String> {
    let launch: &Launch = &group.launch;
    let id = launch.registry.with(index, |plugin| plugin.id.clone());
    let id = id.ok_or_else(|| "it is not there".to_owned())?;
    let access = launch.access(&[index]);
    let ticket = launch
        .network
        .ticket(&launch.registry, &[index], access.as_ref())
        .await?;
    // A server of the plugin's own process is reachable, as it is for the plugin.
    if let (Some(ticket), (Some(live), _)) = (&ticket, group.current()) {
        ticket.belongs_to(live.process.pid());
    }
    let private = launch
        .homes
        .join(format!("{}+started", id.replace(['/', '\\'], "+")));
    let mut variables = home::prepare(&private, None, &[])
        .map_err(|error| format!("cannot create its folder {}: {error}", private.display()))?;
    let proxy = ticket.iter().flat_map(ProxyTicket::variables);
    variables.extend(proxy.map(|(name, value)| (name.into(), value.into())));
    let mut policy = launch
        .sandbox(&[index], &private, ticket.as_ref(), Vec::new())
        .await
        .map_err(|error| error.to_string())?;
    policy.read.extend(tool_chains(&search()));
    Ok(SandboxOverride {
        policy,
        variables,
        proxy_redirect: ticket.as_ref().map(ProxyTicket::redirect),
        held: Arc::new(ticket),
    })
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
    let folders =
        std::env::split_paths(path).filter(|folder| folder.is_absolute() && hidden(folder));
    folders.filter_map(readable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde_json::json;

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

    #[test]
    fn which_changes_are_about_an_entry() {
        let name = |it: &str| Key::Name(it.to_owned());
        for (path, value, want) in [
            (vec![name("mcp"), name("a")], json!({}), true),
            (
                vec![name("mcp"), name("a"), name("command")],
                json!([]),
                true,
            ),
            (vec![name("mcp"), name("b")], json!({}), false),
            (vec![name("mcp")], json!({"a": {}}), true),
            (vec![name("mcp")], json!({"b": {}}), false),
            (vec![], json!({"mcp": {"a": {}}}), true),
            (vec![name("lsp"), name("a")], json!({}), false),
        ] {
            let change = Change {
                path: path.clone(),
                value: Some(value),
            };
            assert_eq!(touches(&change, "mcp", "a"), want, "{path:?}");
        }
    }
}
