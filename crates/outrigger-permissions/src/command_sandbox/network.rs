//! The network of shell commands: open unless the user names hosts (`tools.hosts`) or the machine policy forbids some;
//! then commands can reach the allowed ones, through a proxy.

use std::collections::BTreeMap;
use std::sync::Arc;

use outrigger_audit::connection;
use outrigger_config::Loaded;
use outrigger_config::settings::Sandbox;
use outrigger_network_proxy::hosts::{Hosts, Reach};
use outrigger_network_proxy::{Connection, Upstream};
use outrigger_protocol::audit::AuditRecord;
use outrigger_sandbox::{ScopedNetwork, Spawner};
use outrigger_stdx::clock::now_ms;
use outrigger_store::Store;
use tokio::sync::OnceCell;

/// How to grant a host to commands.
const HINT: &str = "in your own outrigger.toml, [tools] hosts = [..., \"HOST\"] grants it";

/// Returns the spawner of commands: of the shell and Python tools, of `!` in prompts, of the user's own shell and
/// terminals.
#[must_use]
pub fn spawner(spawner: &Spawner, config: &Loaded, store: &Store) -> Spawner {
    let hosts = config.settings.tools.hosts.as_ref();
    let hosts = hosts.map(|hosts| parsed("tools.hosts", hosts));
    within(spawner, config, store, "shell commands", hosts)
}

/// Returns the spawner of plugin installers: they reach what the machine policy does not forbid.
#[must_use]
pub fn installers(spawner: &Spawner, config: &Loaded, store: &Store) -> Spawner {
    within(spawner, config, store, "installing plugins", None)
}

fn within(
    spawner: &Spawner,
    config: &Loaded,
    store: &Store,
    name: &str,
    hosts: Option<Hosts>,
) -> Spawner {
    let settings = &config.settings;
    let forbidden = Hosts::forbidden(&settings.forbid.hosts);
    if settings.sandbox == Sandbox::Off || (hosts.is_none() && forbidden.is_empty()) {
        return spawner.clone();
    }
    let env: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let store = store.clone();
    spawner.clone().with_hosts(Arc::new(ScopedNetwork {
        name: name.to_owned(),
        reach: Reach::of(hosts, forbidden),
        hint: HINT.to_owned(),
        on_connect: Arc::new(move |it| store.audit_lazily(now_ms(), vec![record(it)])),
        strict: settings.sandbox == Sandbox::Strict,
        upstream: Upstream::of(&env),
        proxy: OnceCell::new(),
    }))
}

/// Parses a list of hosts; an invalid list grants nothing.
fn parsed(key: &str, list: &[String]) -> Hosts {
    Hosts::parse(list).unwrap_or_else(|error| {
        tracing::warn!("{key}: {error}; nothing of it is granted");
        Hosts::default()
    })
}

fn record(it: &Connection) -> AuditRecord {
    let more =
        (it.unreported > 0).then(|| format!("{} earlier refusals are not listed", it.unreported));
    let address = it.address.map(|address| address.to_string());
    let detail: Vec<String> = std::iter::once(it.client.clone())
        .chain(address)
        .chain(more)
        .collect();
    let refused = it.refused.as_ref().map(|why| why.code());
    connection((&it.host, it.port), refused, &detail)
}
