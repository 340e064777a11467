//! Credentials of providers, and what plugins make of providers with them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::future::join_all;
use outrigger_models::{
    CredentialError, Credentials, FetchRequest, FetchResponse, Models, ProviderFetch, Speaker,
    Stored,
};
use outrigger_plugins::{AuthHook, Grant, PluginFetch, Plugins, ProviderHook};
use outrigger_protocol::auth::Credential;
use outrigger_protocol::id::PluginId;
use outrigger_protocol::login::AuthFetch;
use outrigger_workspace::ProjectLocation;
use serde_json::{Value, json};

use crate::boot::options::Boot;
use crate::error::AgentError;
use crate::state::{Agent, AgentState};

/// How long a list of providers waits for plugins.
const PROVIDERS_TIMEOUT: Duration = Duration::from_secs(5);

impl Boot {
    /// The credentials of this user: ours, and those that OpenCode has stored, which are only read.
    #[must_use]
    pub fn credentials(&self) -> Credentials {
        let data = &self.folders.data;
        Credentials::new(
            data.join("auth.json"),
            data.parent().map(|data| data.join("opencode/auth.json")),
            self.env.get("OPENCODE_AUTH_CONTENT").map(String::as_str),
        )
    }

    /// Models and providers as the configuration has them, without plugins.
    ///
    /// # Errors
    /// Those of the configuration.
    pub fn models(&self) -> Result<Models, AgentError> {
        let config = self.load(&ProjectLocation::find(&self.directory))?;
        Ok(Models::new(crate::boot::start::model_options(
            self, &config,
        )))
    }
}

/// A plugin's `fetch` as the models see it.
struct Fetch(PluginFetch);

impl ProviderFetch for Fetch {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'static, Result<FetchResponse, String>> {
        let sent = self.0.send(AuthFetch {
            handle: 0,
            method: request.method,
            url: request.url,
            headers: request.headers,
            body: request.body,
        });
        Box::pin(async move {
            let (head, body) = sent.await?;
            Ok(FetchResponse {
                status: head.status,
                headers: head.headers,
                body,
            })
        })
    }

    fn plugin(&self) -> &str {
        self.0.plugin()
    }
}

/// A plugin that answers for a provider. It has the user's keys with the grant to be the model.
pub(crate) fn speaker(plugins: &Plugins, plugin: &PluginId) -> Speaker {
    Speaker {
        plugin: plugin.0.clone(),
        name: plugins.grant_name(plugin),
        has_keys: plugins.grant_missing(plugin, Grant::Model).is_none(),
        of_project: plugins.is_of_project(&plugin.0),
    }
}

impl AgentState {
    /// Lets plugins prepare the providers that they bring, once: before that neither their models nor their `fetch` are
    /// there. A plugin that fails is named and costs its own part.
    pub(crate) async fn providers_ready(&self) {
        self.providers
            .get_or_init(|| async {
                self.plugin_providers();
                // Of several for one provider the last counts.
                let hooks = self.plugins.provider_hooks().into_iter();
                let hooks: BTreeMap<String, ProviderHook> =
                    hooks.map(|hook| (hook.provider.clone(), hook)).collect();
                join_all(hooks.into_values().map(|hook| self.load_models(hook))).await;
                let mut hooks: BTreeMap<String, AuthHook> = BTreeMap::new();
                for hook in self.plugins.auth_hooks() {
                    hooks.insert(hook.provider.clone(), hook);
                }
                join_all(hooks.into_values().map(|hook| self.load_auth(hook))).await;
                self.report_withheld_keys();
            })
            .await;
    }

    /// Takes over the models that a `provider` hook lists.
    async fn load_models(&self, hook: ProviderHook) {
        let provider = &hook.provider;
        let auth = self.credential_for(&hook.plugin, provider);
        let before = self.provider_value(provider);
        let models = match hook.models(before.clone(), auth).await {
            Ok(Some(models)) => models,
            Ok(None) => return,
            Err(error) => return tracing::warn!("[provider {provider}] {error}"),
        };
        let speaks = outrigger_contributions::providers::says_where(&before, &models);
        let owner = self.auth_hook(provider).map(|owner| owner.plugin);
        let owner =
            owner.filter(|owner| *owner != hook.plugin && !self.plugins.is_of_project(owner));
        if let (true, Some(owner)) = (speaks && self.plugins.is_of_project(&hook.plugin), owner) {
            return tracing::warn!(
                "[provider {provider}] the models that the project's plugin {} lists are left out: they are asked elsewhere, and \
                 the plugin {owner} of yours authenticates this provider",
                hook.plugin
            );
        }
        let route = self.models_route(&hook, &before, &models).await;
        let speaker = speaker(&self.plugins, &PluginId(hook.plugin.clone()));
        self.models.overlay(provider, |overlay| {
            if speaks {
                overlay.speaker = Some(speaker);
            }
            overlay.models = Some(models);
            overlay.models_route = route;
        });
    }

    /// The plugin, another than this one, that says where a provider is asked without the right to the user's keys.
    fn diverted_by(&self, hook: &AuthHook) -> Option<String> {
        let other = self.models.speaker(&hook.provider)?;
        let speaker = speaker(&self.plugins, &PluginId(other.clone()));
        (other != hook.plugin && !speaker.has_keys).then_some(other)
    }

    /// Whether a plugin brings the authentication of a provider.
    pub(crate) fn owns_auth(&self, plugin: &str, provider: &str) -> bool {
        let hook = self.auth_hook(provider);
        hook.is_some_and(|hook| hook.plugin == plugin) || self.speaks_for(plugin, provider)
    }

    /// The credential of a provider, for the plugin that brings its authentication and for no other (invariant 10): one that a
    /// login of this plugin stored, or any with the grant to be the model.
    pub(crate) fn credential_for(&self, plugin: &str, provider: &str) -> Option<Credential> {
        if !self.owns_auth(plugin, provider) {
            return None;
        }
        let stored = self.models.credentials().stored(provider)?;
        self.may_have(plugin, &stored).then_some(stored.credential)
    }

    /// Whether the user lets a plugin be the model, with the keys and logins of its provider.
    pub(super) fn may_have_keys(&self, plugin: &str) -> bool {
        speaker(&self.plugins, &PluginId(plugin.to_owned())).has_keys
    }

    fn may_have(&self, plugin: &str, stored: &Stored) -> bool {
        let speaker = speaker(&self.plugins, &PluginId(plugin.to_owned()));
        speaker.may_have(stored, self.speaks_for(plugin, &stored.provider))
    }

    /// Whether a plugin may put a credential in the place of the one that is stored.
    pub(super) fn may_replace_credential(&self, plugin: &str, provider: &str) -> bool {
        let stored = self.models.credentials().stored(provider);
        stored.is_none_or(|stored| self.may_have(plugin, &stored))
    }

    /// Says of which provider the user's key is not used, since a plugin would read it.
    fn report_withheld_keys(&self) {
        for (id, error) in self.models.all_withheld() {
            let hint = error.hint().unwrap_or_default();
            tracing::warn!("[provider {id}] {error}: {hint}");
        }
    }

    fn provider_value(&self, id: &str) -> Value {
        json!(self.models.provider_for_hooks(id, true).as_deref())
    }

    pub(super) fn auth_hook(&self, provider: &str) -> Option<AuthHook> {
        let mut hooks = self.plugins.auth_hooks();
        hooks.retain(|hook| hook.provider == provider);
        hooks.pop()
    }

    /// Calls a loader, if there is a credential for it.
    async fn load_auth(&self, hook: AuthHook) {
        let provider = hook.provider.clone();
        let stored = self.models.credentials().stored(&provider);
        let Some(stored) = stored.filter(|_| hook.has_loader) else {
            return;
        };
        if !self.may_have(&hook.plugin, &stored) {
            let id = PluginId(hook.plugin.clone());
            let name = self.plugins.grant_name(&id).unwrap_or(hook.plugin);
            tracing::warn!(
                "[provider {provider}] a plugin wants to use its credential, which another login stored: `model = true` under \
                 [plugins.\"{name}\"] in your own outrigger.toml lets it, as does a login by the plugin (`outrigger auth login`)"
            );
            return;
        }
        // What it sends would carry its credential to where the other one says.
        if let Some(other) = self.diverted_by(&hook) {
            return tracing::warn!(
                "[provider {provider}] the login by the plugin {} is not used: the plugin {other} changed where or how this provider is \
                 asked",
                hook.plugin
            );
        }
        match hook.load(self.provider_value(&provider)).await {
            Ok(loaded) => {
                let route = self.auth_route(&hook, &loaded).await;
                let options = loaded.options.as_ref();
                let speaks =
                    loaded.fetch.is_some() || options.is_some_and(outrigger_models::names_place);
                let speaker = speaker(&self.plugins, &PluginId(hook.plugin.clone()));
                self.models.overlay(&provider, |overlay| {
                    if speaks {
                        overlay.speaker = Some(speaker);
                    }
                    overlay.options = loaded.options;
                    overlay.options_route = route;
                    // A provider that speaks a protocol of its own goes on to.
                    if overlay.own.is_none() {
                        overlay.fetch = loaded
                            .fetch
                            .map(|fetch| Arc::new(Fetch(fetch)) as Arc<dyn ProviderFetch>);
                    }
                });
            }
            Err(error) => tracing::warn!("[provider {provider}] {error}"),
        }
    }
}

impl Agent {
    /// Whether a plugin brings the authentication of a provider, or the provider itself.
    #[must_use]
    pub fn owns_auth(&self, plugin: &str, provider: &str) -> bool {
        self.inner.owns_auth(plugin, provider)
    }

    /// Whether a plugin may store, replace or forget the credential of a provider: it brings the authentication, and what is
    /// stored is of a login of its own, or it may have the user's keys.
    #[must_use]
    pub fn may_set_credential(&self, plugin: &str, provider: &str) -> bool {
        self.inner.owns_auth(plugin, provider)
            && self.inner.may_replace_credential(plugin, provider)
    }

    /// Lets plugins prepare the providers that they bring, if that has not been done. Does not wait for long: who asks may
    /// be such a plugin.
    pub async fn providers_ready(&self) {
        let agent = self.clone();
        let ready = tokio::spawn(async move { agent.inner.providers_ready().await });
        let _ = tokio::time::timeout(PROVIDERS_TIMEOUT, ready).await;
    }

    /// Stores a credential, which is of a login of that plugin where one is named; the provider is put together anew with it.
    /// A loader that has not run yet runs before the provider is next used; one that has asks for the credential itself.
    ///
    /// # Errors
    /// Those of the file.
    pub async fn set_credential(
        &self,
        provider: &str,
        credential: &Credential,
        by: Option<&str>,
    ) -> Result<(), CredentialError> {
        let inner = &self.inner;
        let known = inner.models.credentials().get(provider).is_some();
        // A key for a provider that exists by a plugin of the user's is for that plugin, also where a client stores it. One of a
        // project's gets what the user gave to it by name.
        let speaks = || inner.plugins.providers().into_iter().map(|it| it.plugin);
        let is_known =
            |plugin: &String| !inner.plugins.is_of_project(plugin) || inner.may_have_keys(plugin);
        let own = || {
            speaks()
                .find(|plugin| inner.speaks_for(plugin, provider))
                .filter(is_known)
        };
        let by = by.map(str::to_owned).or_else(own);
        let by = by.and_then(|plugin| inner.plugins.grant_name(&PluginId(plugin)));
        let credentials = inner.models.credentials();
        credentials.set(provider, credential, by.as_deref())?;
        inner.models.forget(provider);
        if !known
            && inner.providers.initialized()
            && let Some(hook) = inner.auth_hook(provider)
        {
            inner.load_auth(hook).await;
        }
        Ok(())
    }

    /// Forgets a credential, and what a loader made of it.
    ///
    /// # Errors
    /// Those of the file.
    pub fn remove_credential(&self, provider: &str) -> Result<(), CredentialError> {
        let models = &self.inner.models;
        models.credentials().remove(provider)?;
        models.overlay(provider, |overlay| {
            overlay.options = None;
            if overlay.own.is_none() {
                overlay.fetch = None;
            }
        });
        Ok(())
    }
}
