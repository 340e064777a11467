//! The network of plugin processes: which hosts a plugin may connect to, and through which proxy.
//!
//! A sandboxed process can open TCP connections only to Outrigger's proxy, which asks this module. By default a plugin may
//! connect to every public address. Its manifest restricts that, `hosts` of the user's `[plugins.NAME]` grants less or more,
//! and addresses of this machine or of a private network need a grant by name.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use outrigger_config::package_name;
use outrigger_network_proxy::hosts::{Hosts, Reach, Refusal};
use outrigger_network_proxy::{Client, Connection, Proxy, ProxyTicket, Upstream};
use outrigger_plugin_status::{Notice, NoticeFn};
use tokio::sync::OnceCell;

use crate::access::rights::Access;
use crate::access::settings::{PluginRules, PluginSettings};
use crate::registry::Registry;

/// The proxy of a project's plugins, started with the first process that needs it.
pub struct Network {
    proxy: OnceCell<Proxy>,
    notice: NoticeFn,
    /// Additional hosts that every plugin may connect to.
    everybody: Hosts,
    /// Hosts that no plugin may connect to, by the machine policy.
    forbidden: Hosts,
    /// Logged refusals: each is reported to the user once, however often it is tried.
    logged: Arc<Mutex<HashSet<String>>>,
}

/// Maximum number of refusals logged as warnings.
const MAX_LOGGED: usize = 256;

impl Network {
    /// Creates the network with the hosts of these settings. `notice` is notified of connections.
    pub fn new(settings: &PluginSettings, notice: NoticeFn) -> Arc<Self> {
        let everybody = Hosts::parse(&settings.network_allow).unwrap_or_else(|error| {
            tracing::warn!("network.allow: {error}; nothing of it is granted");
            Hosts::default()
        });
        Arc::new(Self {
            proxy: OnceCell::new(),
            notice,
            everybody,
            forbidden: Hosts::forbidden(&settings.network_forbid),
            logged: Arc::default(),
        })
    }

    /// A way out for the process of these plugins; `None` where they may connect to nothing.
    ///
    /// # Errors
    /// Why there is no proxy. The process must not be started then.
    pub async fn ticket(
        &self,
        registry: &Registry,
        members: &[usize],
        access: Option<&Access>,
    ) -> Result<Option<ProxyTicket>, String> {
        let Some(client) = self.client(registry, members, access)? else {
            return Ok(None);
        };
        let pass = self.proxy().await?.admit(client);
        pass.map(Some).map_err(|error| error.to_string())
    }

    /// A way out for what several plugins with processes of their own contributed together: to hosts that each of them may connect to;
    /// `None` where one of them may connect to nothing.
    ///
    /// # Errors
    /// As [`Network::ticket`].
    pub async fn common_ticket(
        &self,
        registry: &Registry,
        members: &[usize],
    ) -> Result<Option<ProxyTicket>, String> {
        let mut clients = Vec::with_capacity(members.len());
        for index in members {
            let access = registry.with(*index, |plugin| plugin.rules.access.clone());
            match self.client(registry, &[*index], access.flatten().as_ref())? {
                Some(client) => clients.push(client),
                None => return Ok(None),
            }
        }
        let names: Vec<String> = members
            .iter()
            .filter_map(|index| registry.with(*index, |plugin| plugin.id.clone()))
            .collect();
        let mut clients = clients.into_iter();
        let Some(first) = clients.next() else {
            return Ok(None);
        };
        let others: Vec<Reach> = clients.map(|client| client.reach).collect();
        let client = Client {
            name: format!("plugins {}", names.join(", ")),
            on_connect: self.teller(names),
            ..first
        };
        let check = move |host: &str, port: u16, address| {
            let mut others = others.iter();
            others.try_for_each(|reach| reach.address(host, port, address))
        };
        let ticket = self.proxy().await?.admit_checked(client, Arc::new(check));
        ticket.map(Some).map_err(|error| error.to_string())
    }

    async fn proxy(&self) -> Result<&Proxy, String> {
        self.proxy
            .get_or_try_init(|| Proxy::start(upstream(), outrigger_sandbox::ProcSockets))
            .await
            .map_err(|error| format!("no proxy for its network: {error}"))
    }

    /// What the proxy knows of these plugins; `None` where they may connect to nothing.
    ///
    /// # Errors
    /// Hosts of a manifest that cannot be read.
    pub fn client(
        &self,
        registry: &Registry,
        members: &[usize],
        access: Option<&Access>,
    ) -> Result<Option<Client>, String> {
        let of = |index: &usize| {
            registry.with(*index, |plugin| {
                (plugin.id.clone(), plugin.spec.clone(), plugin.rules.clone())
            })
        };
        let plugins: Vec<(String, String, PluginRules)> = members.iter().filter_map(of).collect();
        let asked = match access {
            Some(access) => Some(Hosts::parse(&access.hosts).map_err(|error| error.to_string())?),
            None => None,
        };
        if asked.as_ref().is_some_and(Hosts::is_empty) {
            return Ok(None);
        }
        // A plugin with hosts of its own is alone; those that share a process have the same hosts.
        let rules = plugins.first().map(|(.., rules)| rules);
        let granted = rules
            .map_or_else(Hosts::public, granted)
            .and(&self.everybody);
        let names: Vec<String> = plugins.iter().map(|(id, ..)| id.clone()).collect();
        Ok(Some(Client {
            name: match names.as_slice() {
                [one] => format!("plugin {one}"),
                all => format!("plugins {}", all.join(", ")),
            },
            reach: Reach {
                asked,
                granted,
                forbidden: self.forbidden.clone(),
            },
            hint: hint(&plugins),
            on_connect: self.teller(names),
        }))
    }

    fn teller(&self, plugins: Vec<String>) -> outrigger_network_proxy::ConnectFn {
        let (notice, logged) = (Arc::clone(&self.notice), Arc::clone(&self.logged));
        Arc::new(move |it: &Connection| {
            let refused = it.refused.map(|refused| refused.code().to_owned());
            if let Some(why) = it.refused {
                let line = format!(
                    "[plugin:{}] no connection to {}:{}: {}",
                    plugins.join(", "),
                    it.host,
                    it.port,
                    why.code()
                );
                log(&logged, line, why);
            }
            notice(Notice::Network {
                plugins: plugins.clone(),
                host: it.host.clone(),
                port: it.port,
                address: it.address.map(|address| address.to_string()),
                refused,
                unreported: it.unreported,
            });
        })
    }
}

/// A name that does not resolve is not a refusal that a grant would lift; the failing connection reports it.
fn log(logged: &Mutex<HashSet<String>>, line: String, why: Refusal) {
    let mut logged = logged.lock().unwrap_or_else(PoisonError::into_inner);
    let is_new =
        why != Refusal::Unknown && logged.len() < MAX_LOGGED && logged.insert(line.clone());
    if is_new {
        tracing::warn!("{line}")
    } else {
        tracing::debug!("{line}")
    }
}

fn upstream() -> Option<Upstream> {
    let env: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    Upstream::of(&env)
}

/// Returns the hosts that the user lets a plugin connect to. A plugin that merely has the name is limited to the list and gets
/// no private addresses.
fn granted(rules: &PluginRules) -> Hosts {
    let Some(list) = &rules.hosts else {
        return Hosts::public();
    };
    match Hosts::parse(list) {
        Ok(hosts) if rules.hosts_withheld => hosts.by_name(),
        Ok(hosts) => hosts,
        // Reported when it was read; an invalid list grants nothing.
        Err(_) => Hosts::default(),
    }
}

/// Returns the granted hosts of a plugin, for display.
pub fn hosts(rules: &PluginRules, settings: &PluginSettings) -> Vec<String> {
    let everybody = Hosts::parse(&settings.network_allow).unwrap_or_default();
    granted(rules).and(&everybody).shown()
}

/// Returns invalid or withheld entries of the user's list.
pub fn problem(rules: &PluginRules) -> Option<String> {
    let list = rules.hosts.as_ref()?;
    match Hosts::parse(list) {
        Err(error) => Some(format!(
            "`hosts`: {error}; until then it connects to nothing"
        )),
        Ok(_) => None,
    }
}

/// Returns the setting that would grant a host.
fn hint(plugins: &[(String, String, PluginRules)]) -> String {
    let (key, list) = match plugins {
        [(_, spec, rules)] => {
            let path = spec.strip_prefix("file://");
            let key = path.map_or_else(|| package_name(spec), str::to_owned);
            let list = rules.hosts.clone().unwrap_or_else(|| vec!["*".to_owned()]);
            (key, list)
        }
        _ => ("NAME".to_owned(), vec!["*".to_owned()]),
    };
    let list: Vec<String> = list.iter().map(|host| format!("{host:?}, ")).collect();
    format!(
        "in your own outrigger.toml, [plugins.{key:?}] hosts = [{}\"HOST\"] grants it",
        list.concat()
    )
}
