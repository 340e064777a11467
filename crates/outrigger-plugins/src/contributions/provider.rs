//! Providers whose protocol a plugin implements (B8): a request goes to the plugin's process, and the output of its
//! `stream` is read on demand.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{StreamExt as _, unfold};
use outrigger_js::{FetchBody, JsError};
use outrigger_protocol::custom_points::{ProviderAsked, ProviderDecl, ProviderStream};
use outrigger_protocol::login::AuthHead;
use outrigger_protocol::manifest::ProviderEntry;
use outrigger_protocol::rpc::{HandlerRef, Instance, host};
use outrigger_sandbox::process_time;

use crate::contributions::auth::{FetchStream, PluginHandle, place};
use crate::plugin_host::PluginHost;
use crate::plugins::Plugins;
use outrigger_plugin_registry::access::environment::is_secret;
use outrigger_plugin_supervisor::blame::PING;
use outrigger_plugin_supervisor::group::{Counts, Fault, Group, Live};

/// Time for which a process may be unresponsive after one of its answers was cancelled, before it is killed: no other
/// deadline applies there.
const UNRESPONSIVE_TIMEOUT: Duration = Duration::from_secs(2);

/// The provider of a plugin. Remains valid when the plugin's process restarts.
#[derive(Clone)]
pub struct PluginProvider {
    inner: Arc<PluginHost>,
    index: usize,
    /// Id of the plugin.
    pub plugin: String,
    /// Its id, its display name, and the variables that may hold its key.
    pub declared: ProviderDecl,
    /// The variables that the plugin may see.
    pub granted: Vec<String>,
}

/// A provider that a plugin implements, with its manifest entry.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderRow {
    /// Id of the provider.
    pub id: String,
    /// Id of the plugin.
    pub declared_by: String,
    /// Its entry in the manifest, if there is one.
    pub entry: Option<ProviderEntry>,
}

impl std::fmt::Debug for PluginProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PluginProvider")
            .field("plugin", &self.plugin)
            .field("declared", &self.declared)
            .finish_non_exhaustive()
    }
}

impl Plugins {
    /// Returns the providers with their own protocol: those of user plugins before a project's, each in load order.
    #[must_use]
    pub fn providers(&self) -> Vec<PluginProvider> {
        let streams = self
            .0
            .registry
            .instances(|instance| instance.streams.clone());
        let provider = |(index, plugin, declared): (usize, String, ProviderDecl)| {
            let names = declared.env.iter();
            let granted = names.filter(|name| self.may_see(index, name)).cloned();
            PluginProvider {
                granted: granted.collect(),
                inner: Arc::clone(&self.0),
                index,
                plugin,
                declared,
            }
        };
        let mut all: Vec<PluginProvider> = streams.into_iter().map(provider).collect();
        all.sort_by_key(|it| self.is_of_project(&it.plugin));
        all
    }

    /// Like [`Plugins::providers`], with the manifest entries.
    #[must_use]
    pub fn provider_rows(&self) -> Vec<ProviderRow> {
        let row = |it: PluginProvider| {
            let own = self.0.registry.own(it.index);
            let mut entries = own.providers.iter();
            ProviderRow {
                entry: entries.find(|entry| entry.id == it.declared.id).cloned(),
                id: it.declared.id,
                declared_by: it.plugin,
            }
        };
        self.providers().into_iter().map(row).collect()
    }

    /// Refuses a provider: its plugin runs without it.
    pub fn refuse_provider(&self, provider: &PluginProvider, why: &str) {
        let id = &provider.declared.id;
        let warning = format!("its provider {id} is not offered: {why}");
        self.0.registry.warn(provider.index, warning);
    }

    /// Returns whether a plugin may be handed a variable as a key: what it may see of the environment, that is non-secrets
    /// and the secrets that the user grants it.
    fn may_see(&self, index: usize, name: &str) -> bool {
        let may = self.0.registry.with(index, |plugin| {
            let granted = plugin.rules.env.iter().any(|granted| granted == name);
            let access = plugin.rules.access.as_ref();
            granted || (!is_secret(name) && access.is_some_and(|access| access.has_variable(name)))
        });
        may == Some(true)
    }
}

impl PluginProvider {
    /// Requests an answer. The head reports whether it started or failed; the body streams server-sent events. Dropping the
    /// future or the body cancels it. There is no deadline here.
    pub fn send(
        &self,
        ask: ProviderAsked,
        key: Option<String>,
    ) -> BoxFuture<'static, Result<(AuthHead, FetchStream), String>> {
        let provider = self.clone();
        Box::pin(async move {
            let id = provider.declared.id.clone();
            let is = |i: &Instance| i.streams.as_ref().is_some_and(|streams| streams.id == id);
            let (inner, plugin) = (&provider.inner, &provider.plugin);
            let found = place(inner, provider.index, plugin, host::PROVIDER_STREAM, is).await;
            let PluginHandle {
                group,
                live,
                handler,
            } = found.map_err(|error| error.to_string())?;
            provider.ask(group, live, handler, ask, key).await
        })
    }

    async fn ask(
        &self,
        group: Arc<Group>,
        live: Arc<Live>,
        handler: HandlerRef,
        ask: ProviderAsked,
        key: Option<String>,
    ) -> Result<(AuthHead, FetchStream), String> {
        let params = ProviderStream {
            handler,
            provider: self.declared.id.clone(),
            key,
            ask,
        };
        let mut open = ResponseInProgress {
            group,
            live: Arc::clone(&live),
            plugin: self.index,
            heals: self.inner.settings.self_heal,
            over: false,
        };
        match live.until_gone(live.process.provider_stream(&params)).await {
            Ok(Ok((head, body))) => Ok((head, pieces(open, body))),
            Ok(Err(error)) => {
                open.over = !matches!(error, JsError::Closed { .. });
                Err(error.to_string())
            }
            Err(fault) => {
                open.over = true;
                Err(fault.cause)
            }
        }
    }
}

/// An answer in progress.
struct ResponseInProgress {
    group: Arc<Group>,
    live: Arc<Live>,
    plugin: usize,
    heals: bool,
    over: bool,
}

/// Cancels an unfinished answer: the plugin is notified. If its process does not even accept that, it is restarted, since
/// no later request with a deadline may follow.
impl Drop for ResponseInProgress {
    fn drop(&mut self) {
        if self.over || !self.heals {
            return;
        }
        let (group, live, plugin) = (Arc::clone(&self.group), Arc::clone(&self.live), self.plugin);
        tokio::spawn(async move {
            process_time::sleep(UNRESPONSIVE_TIMEOUT).await;
            if live.given_up().is_some() || live.process.responds(PING).await {
                return;
            }
            let fault = Fault {
                cause: "it did not stop a cancelled response".to_owned(),
                culprit: Some(plugin),
                counts: Counts::Crash,
            };
            group.give_up(live.generation, fault);
        });
    }
}

fn pieces(open: ResponseInProgress, body: FetchBody) -> FetchStream {
    unfold(Some((open, body)), |state| async move {
        let (mut open, mut body) = state?;
        let live = Arc::clone(&open.live);
        let next = live.until_gone(body.next()).await;
        open.over = !matches!(next, Ok(Some(Ok(_))));
        match next {
            Ok(Some(Ok(bytes))) => {
                open.over = false;
                Some((Ok(bytes), Some((open, body))))
            }
            Ok(Some(Err(error))) => Some((Err(error), None)),
            Ok(None) => None,
            Err(fault) => Some((Err(format!("its process was ended: {}", fault.cause)), None)),
        }
    })
    .boxed()
}
