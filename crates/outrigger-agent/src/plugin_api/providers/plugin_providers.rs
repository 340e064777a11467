//! Providers for which plugins implement the protocol (B8), between the plugins and the models.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use outrigger_models::{ContributedProvider, FetchRequest, FetchResponse, ProviderFetch};
use outrigger_plugins::PluginProvider;
use outrigger_protocol::audit::{AuditKind, AuditRecord, POLICY_PASSED};
use outrigger_protocol::id::PluginId;

use crate::state::AgentState;
use outrigger_stdx::clock::now_ms;

/// A plugin's provider as the models see it: it sends the provider's requests.
struct Speaks(PluginProvider);

impl ProviderFetch for Speaks {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'static, Result<FetchResponse, String>> {
        let provider = self.0.clone();
        Box::pin(async move {
            let ask = serde_json::from_str(&request.body).map_err(|error| error.to_string())?;
            let mut headers = request.headers.into_iter();
            let key = headers.find(|(name, _)| name == "x-api-key");
            let (head, body) = provider.send(ask, key.map(|(_, key)| key)).await?;
            Ok(FetchResponse {
                status: head.status,
                headers: head.headers,
                body,
            })
        })
    }

    fn plugin(&self) -> &str {
        &self.0.plugin
    }
}

/// Returns the audit record that a plugin speaks for a provider: from then on it gets the provider's key and prompts.
fn spoken(provider: &PluginProvider, refused: Option<&str>) -> AuditRecord {
    let decision = if refused.is_some() { "deny" } else { "allow" };
    AuditRecord {
        plugin_id: Some(PluginId(provider.plugin.clone())),
        subject: Some(format!("provider {}", provider.declared.id)),
        policy_check_result: match refused {
            Some(why) => format!("refused: {why}"),
            None => POLICY_PASSED.to_owned(),
        },
        ..AuditRecord::new(AuditKind::Grant, now_ms(), decision)
    }
}

impl AgentState {
    /// Registers the providers of plugins. Existing ones are left alone; if two plugins define one provider, the first
    /// wins, since no plugin may take over requests meant for another.
    pub(crate) fn plugin_providers(&self) {
        let mut taken: Vec<String> = Vec::new();
        for provider in self.plugins.host.providers() {
            let id = provider.declared.id.clone();
            let why = if taken.contains(&id) {
                Some("another plugin provides it".to_owned())
            } else {
                self.models.taken(&id)
            };
            self.store
                .audit_lazily(now_ms(), vec![spoken(&provider, why.as_deref())]);
            if let Some(why) = why {
                self.plugins.host.refuse_provider(&provider, &why);
                continue;
            }
            taken.push(id.clone());
            let own = ContributedProvider {
                name: provider.declared.name.clone(),
                env: provider.declared.env.clone(),
                granted: provider.granted.clone(),
            };
            let speaker = crate::plugin_api::providers::auth::speaker(
                &self.plugins.host,
                &PluginId(provider.plugin.clone()),
            );
            self.models.overlay(&id, |overlay| {
                overlay.own = Some(own);
                overlay.speaker = Some(speaker);
                overlay.fetch = Some(Arc::new(Speaks(provider)));
            });
        }
    }

    /// Returns whether a plugin implements the protocol of a provider.
    pub(crate) fn speaks_for(&self, plugin: &str, provider: &str) -> bool {
        let mut own = self.plugins.host.providers().into_iter();
        let first = own.find(|own| own.declared.id == provider);
        first.is_some_and(|own| own.plugin == plugin) && self.models.taken(provider).is_none()
    }
}
