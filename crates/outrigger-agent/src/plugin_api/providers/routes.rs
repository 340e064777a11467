//! Network routes for the URLs that plugins set for providers.

use outrigger_contributions::NOTHING;
use outrigger_contributions::providers::new_in_models;
use outrigger_models::Route;
use outrigger_plugins::{AuthHook, LoadedAuth, ProviderHook};
use outrigger_sandbox::SandboxOverride;
use serde_json::{Map, Value};

use crate::state::{AgentState, PluginServices};

impl AgentState {
    /// Returns the network route for a URL set by an `auth.loader`, if our process sends the request.
    pub(crate) async fn auth_route(&self, hook: &AuthHook, loaded: &LoadedAuth) -> Option<Route> {
        let options = loaded.options.as_ref()?;
        if loaded.fetch.is_some() || !outrigger_models::names_place(options) {
            return None;
        }
        let urls = ["baseURL", "endpoint"];
        let urls = urls.iter().filter_map(|key| options.get(*key)?.as_str());
        let urls: Vec<&str> = urls.collect();
        let own = hook.sandbox_for_requests(&urls).await;
        self.plugins.route("auth", &hook.provider, own)
    }

    /// Returns the network routes for models listed by a `provider` hook; models known `before` belong to no plugin.
    pub(crate) async fn models_route(
        &self,
        hook: &ProviderHook,
        before: &Value,
        models: &Map<String, Value>,
    ) -> Option<Route> {
        let named = new_in_models("/api/url", before, models);
        if named.is_empty() {
            return None;
        }
        self.plugins.route(
            "models",
            &hook.provider,
            hook.sandbox_for_requests(&named).await,
        )
    }
}

impl PluginServices {
    fn route(
        &self,
        what: &str,
        provider: &str,
        own: Result<Option<SandboxOverride>, String>,
    ) -> Option<Route> {
        let proxy = match own {
            Ok(None) => return None,
            Ok(Some(own)) => {
                let proxy = own.proxy().ok_or_else(|| NOTHING.to_owned());
                // The proxy knows the plugin for as long as the sandbox exists.
                self.sandboxes.set(format!("{what}:{provider}"), own);
                proxy
            }
            Err(why) => Err(why),
        };
        Some(match proxy {
            Ok(proxy) => Route::Proxy(proxy),
            Err(why) => {
                tracing::warn!("[provider {provider}] its address is not used: {why}");
                Route::Refused(format!("its address is not used: {why}"))
            }
        })
    }
}
