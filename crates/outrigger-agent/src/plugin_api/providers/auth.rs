//! Credentials of providers, and what plugins do with them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use outrigger_models::{
    CredentialError, Credentials, FetchRequest, FetchResponse, Models, ProviderFetch, Speaker,
    Stored,
};
use outrigger_plugins::{AuthHook, Grant, PluginFetch, Plugins, ProviderHook};
use outrigger_protocol::Object;
use outrigger_protocol::auth::Credential;
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::id::PluginId;
use outrigger_protocol::login::AuthFetch;
use outrigger_workspace::ProjectLocation;
use serde_json::{Value, json};

use crate::boot::options::Boot;
use crate::error::AgentError;
use crate::state::{Agent, AgentState, PluginServices};

/// Time limit for plugins when a list of providers is requested.
const PROVIDERS_TIMEOUT: Duration = Duration::from_secs(5);

impl Boot {
    /// Returns the user's credentials: Outrigger's, and those that OpenCode stored, which are only read.
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

/// Returns a plugin that answers for a provider. It gets the user's keys only with the `model` grant.
pub(crate) fn speaker(plugins: &Plugins, plugin: &PluginId) -> Speaker {
    Speaker {
        plugin: plugin.0.clone(),
        name: plugins.grant_name(plugin),
        has_keys: plugins.grant_missing(plugin, Grant::Model).is_none(),
        of_project: plugins.is_of_project(&plugin.0),
    }
}

impl AgentState {
    /// Lets plugins prepare their providers, once: before that neither their models nor their `fetch` exist. A failing plugin is
    /// reported and loses only its own part.
    pub(crate) async fn providers_ready(&self) {
        self.plugins
            .providers_prepared
            .get_or_init(|| async {
                self.plugin_providers();
                // If several plugins handle one provider, the last one wins.
                let hooks = self.plugins.host.provider_hooks().into_iter();
                let hooks: BTreeMap<String, ProviderHook> =
                    hooks.map(|hook| (hook.provider.clone(), hook)).collect();
                join_all(hooks.into_values().map(|hook| self.load_models(hook))).await;
                let mut hooks: BTreeMap<String, AuthHook> = BTreeMap::new();
                for hook in self.plugins.host.auth_hooks() {
                    hooks.insert(hook.provider.clone(), hook);
                }
                join_all(hooks.into_values().map(|hook| self.load_auth(hook))).await;
                self.report_withheld_keys();
            })
            .await;
    }

    /// Adds the models that a `provider` hook lists.
    async fn load_models(&self, hook: ProviderHook) {
        let provider = &hook.provider;
        let auth = self.credential_for(&hook.plugin, provider);
        let before = self.provider_value(provider);
        let mut models = match hook.models(before.clone(), auth).await {
            Ok(Some(models)) => models,
            Ok(None) => return,
            Err(error) => return tracing::warn!("[provider {provider}] {error}"),
        };
        self.hold_listed(&hook, &before, &mut models);
        let speaks = outrigger_contributions::providers::says_where(&before, &models);
        let owner = self.plugins.auth_hook(provider).map(|owner| owner.plugin);
        let owner =
            owner.filter(|owner| *owner != hook.plugin && !self.plugins.host.is_of_project(owner));
        if let (true, Some(owner)) = (
            speaks && self.plugins.host.is_of_project(&hook.plugin),
            owner,
        ) {
            return tracing::warn!(
                "[provider {provider}] the models that the project's plugin {} lists are skipped: they use \
                 another address, and your plugin {owner} authenticates this provider",
                hook.plugin
            );
        }
        let route = self.models_route(&hook, &before, &models).await;
        let speaker = speaker(&self.plugins.host, &PluginId(hook.plugin.clone()));
        self.models.overlay(provider, |overlay| {
            if speaks {
                overlay.speaker = Some(speaker);
            }
            overlay.models = Some(models);
            overlay.models_route = route;
        });
    }

    /// Puts back what a `provider` hook without the grant changed of the models of a provider that the user pays for.
    fn hold_listed(&self, hook: &ProviderHook, before: &Value, models: &mut Object) {
        let provider = &hook.provider;
        let speaker = speaker(&self.plugins.host, &PluginId(hook.plugin.clone()));
        let stored = self.models.credentials().stored(provider);
        let is_by_it = stored.is_some_and(|it| it.by.is_some() && it.by == speaker.name);
        if speaker.has_keys || is_by_it || self.speaks_for(&hook.plugin, provider) {
            return;
        }
        let name = speaker.name.as_ref().unwrap_or(&hook.plugin);
        for place in outrigger_contributions::model_settings::hold_listed_models(before, models) {
            tracing::warn!(
                "[provider {provider}] the plugin {} changed `{place}`, which decides whose account pays for \
                 requests or what answers them: the change is ignored; `model = true` under [plugins.\"{name}\"] in your own outrigger.toml allows it",
                hook.plugin
            );
        }
    }

    /// Returns another plugin that sets the provider's URL and lacks the right to the user's keys.
    fn diverted_by(&self, hook: &AuthHook) -> Option<String> {
        let other = self.models.speaker(&hook.provider)?;
        let speaker = speaker(&self.plugins.host, &PluginId(other.clone()));
        (other != hook.plugin && !speaker.has_keys).then_some(other)
    }

    /// Returns whether a plugin provides the authentication of a provider.
    pub(crate) fn owns_auth(&self, plugin: &str, provider: &str) -> bool {
        let hook = self.plugins.auth_hook(provider);
        hook.is_some_and(|hook| hook.plugin == plugin) || self.speaks_for(plugin, provider)
    }

    /// Returns the credential of a provider for the plugin that provides its authentication, and for no other (invariant 10):
    /// one stored by a login of this plugin, or any with the `model` grant.
    pub(crate) fn credential_for(&self, plugin: &str, provider: &str) -> Option<Credential> {
        if !self.owns_auth(plugin, provider) {
            return None;
        }
        let stored = self.models.credentials().stored(provider)?;
        self.may_have(plugin, &stored).then_some(stored.credential)
    }

    fn may_have(&self, plugin: &str, stored: &Stored) -> bool {
        let speaker = speaker(&self.plugins.host, &PluginId(plugin.to_owned()));
        speaker.may_have(stored, self.speaks_for(plugin, &stored.provider))
    }

    /// Returns whether a plugin may store a credential, or replace the stored one: it decides whose account pays for requests.
    /// Without the user's grant it may only where its own login stored one, and for a provider that nobody else is: a key in
    /// a variable or in the settings is the user's.
    pub(super) fn may_replace_credential(&self, plugin: &str, provider: &str) -> bool {
        match self.models.credentials().stored(provider) {
            Some(stored) => self.may_have(plugin, &stored),
            None => self.plugins.may_have_keys(plugin) || self.speaks_for(plugin, provider),
        }
    }

    /// Reports the providers whose user key is not used because a plugin would read it.
    fn report_withheld_keys(&self) {
        for (id, error) in self.models.all_withheld() {
            let hint = error.hint().unwrap_or_default();
            tracing::warn!("[provider {id}] {error}: {hint}");
        }
    }

    fn provider_value(&self, id: &str) -> Value {
        json!(self.models.provider_for_hooks(id, true).as_deref())
    }

    /// Calls a loader if there is a credential for it.
    async fn load_auth(&self, hook: AuthHook) {
        let provider = hook.provider.clone();
        let stored = self.models.credentials().stored(&provider);
        let Some(stored) = stored.filter(|_| hook.has_loader) else {
            return;
        };
        if !self.may_have(&hook.plugin, &stored) {
            let id = PluginId(hook.plugin.clone());
            let name = self.plugins.host.grant_name(&id).unwrap_or(hook.plugin);
            tracing::warn!(
                "[provider {provider}] a plugin wants to use its credential, which another login stored: `model = true` under \
                 [plugins.\"{name}\"] in your own outrigger.toml allows it, as does a login by the plugin (`outrigger auth login`)"
            );
            return;
        }
        // Its requests would carry its credential to the URL that the other plugin sets.
        if let Some(other) = self.diverted_by(&hook) {
            return tracing::warn!(
                "[provider {provider}] the login by the plugin {} is not used: the plugin {other} changed the \
                 address or the protocol of this provider",
                hook.plugin
            );
        }
        match hook.load(self.provider_value(&provider)).await {
            Ok(loaded) => {
                let route = self.auth_route(&hook, &loaded).await;
                let options = loaded.options.as_ref();
                let speaks =
                    loaded.fetch.is_some() || options.is_some_and(outrigger_models::names_place);
                let speaker = speaker(&self.plugins.host, &PluginId(hook.plugin.clone()));
                self.models.overlay(&provider, |overlay| {
                    if speaks {
                        overlay.speaker = Some(speaker);
                    }
                    overlay.options = loaded.options;
                    overlay.options_route = route;
                    // A provider with its own protocol has further steps.
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

impl PluginServices {
    pub(super) fn auth_hook(&self, provider: &str) -> Option<AuthHook> {
        let mut hooks = self.host.auth_hooks();
        hooks.retain(|hook| hook.provider == provider);
        hooks.pop()
    }

    /// Returns whether the user lets a plugin be the model, with the keys and logins of its provider.
    pub(super) fn may_have_keys(&self, plugin: &str) -> bool {
        speaker(&self.host, &PluginId(plugin.to_owned())).has_keys
    }
}

impl Agent {
    /// Returns whether a plugin provides the authentication of a provider, or the provider itself.
    #[must_use]
    pub fn owns_auth(&self, plugin: &str, provider: &str) -> bool {
        self.state.owns_auth(plugin, provider)
    }

    /// Returns whether a plugin may store, replace or delete the credential of a provider: it provides the authentication and
    /// the stored credential is from its own login, or it is the provider, or it has the grant for the user's keys.
    #[must_use]
    pub fn may_set_credential(&self, plugin: &str, provider: &str) -> bool {
        self.state.owns_auth(plugin, provider)
            && self.state.may_replace_credential(plugin, provider)
    }

    /// Lets plugins prepare their providers if that has not happened yet. Waits only briefly: the caller may be such a plugin.
    pub async fn providers_ready(&self) {
        let agent = self.clone();
        let ready = tokio::spawn(async move { agent.state.providers_ready().await });
        let _ = outrigger_sandbox::process_time::timeout(PROVIDERS_TIMEOUT, ready).await;
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
        let state = &self.state;
        let known = state.models.credentials().get(provider).is_some();
        // A key for a provider that a user plugin defines is for that plugin, also if a client stores it. A project plugin gets
        // only what the user gave it by name.
        let speaks = || {
            state
                .plugins
                .host
                .providers()
                .into_iter()
                .map(|it| it.plugin)
        };
        let is_known = |plugin: &String| {
            !state.plugins.host.is_of_project(plugin) || state.plugins.may_have_keys(plugin)
        };
        let own = || {
            speaks()
                .find(|plugin| state.speaks_for(plugin, provider))
                .filter(is_known)
        };
        let by = by.map(str::to_owned).or_else(own);
        let by = by.and_then(|plugin| state.plugins.host.grant_name(&PluginId(plugin)));
        let credentials = state.models.credentials();
        credentials.set(provider, credential, by.as_deref())?;
        state.models.forget(provider);
        if !known
            && state.plugins.providers_prepared.initialized()
            && let Some(hook) = state.plugins.auth_hook(provider)
        {
            state.load_auth(hook).await;
        }
        Ok(())
    }

    /// Forgets a credential, and what a loader made of it.
    ///
    /// # Errors
    /// Those of the file.
    pub fn remove_credential(&self, provider: &str) -> Result<(), CredentialError> {
        let models = &self.state.models;
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
