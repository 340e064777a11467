//! Who fulfils the contracts of tools: this machine, or a connector that the user's settings name (C11).

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::id::{CallId, SessionId};
use outrigger_protocol::tool::ToolCall;
use outrigger_tools::Stage;
use outrigger_tools::routes::{LOCAL, Route, Routes};
use outrigger_workspace::sync::lock;
use serde_json::{Value, json};

use crate::state::Inner;
use crate::state::notifications::About;

/// Binds contracts to providers as the user's settings say, and notifies plugins of it.
pub(crate) fn bind(inner: &Arc<Inner>, env: &BTreeMap<String, String>) {
    let hands = &inner.config.settings.hands;
    let providers = hands.connectors.iter().map(|(name, connector)| {
        let provider = crate::plugin_api::connector::provider(inner, name, connector, env);
        (name.clone(), provider)
    });
    let rules = hands.routes.iter().map(|rule| Route {
        contract: rule.contract,
        tool: rule.tool.clone(),
        agent: rule.agent.clone(),
        path: rule.path.as_ref().map(PathBuf::from),
        provider: rule.provider.clone(),
    });
    match Routes::new(providers.collect(), rules.collect()) {
        Ok(routes) => inner.runtime.bind(routes),
        // The settings were checked for it.
        Err(name) => tracing::error!("[routes] there is no connector `{name}`"),
    }
    let owner = Arc::downgrade(inner);
    let bound = Mutex::new(HashMap::new());
    inner.runtime.listen(Arc::new(move |call, stage| {
        if let Some(inner) = owner.upgrade() {
            notify(&inner, &bound, call, stage);
        }
    }));
}

/// Calls that are bound to somebody else than this machine, until they end.
type BoundCalls = Mutex<HashMap<(SessionId, CallId), Value>>;

fn notify(inner: &Arc<Inner>, bound: &BoundCalls, call: &ToolCall, stage: &Stage<'_>) {
    let key = || (call.session_id.clone(), call.call_id.clone());
    match stage {
        Stage::Routed {
            contract,
            provider,
            rule,
        } => {
            let mut about = json!({
                "sessionID": call.session_id, "agent": call.agent, "callID": call.call_id, "tool": call.tool,
                "contract": contract, "provider": provider,
            });
            if let Some(rule) = rule {
                about["rule"] = json!(rule);
            }
            if *provider != LOCAL {
                lock(bound).insert(key(), about.clone());
            }
            let whose = About::Session(call.session_id.clone());
            inner.notify_hook(HookPoint::RuntimeRouteAfterSelect, about, json!({}), whose);
        }
        Stage::Ended { outcome } => {
            if let Some(mut about) = lock(bound).remove(&key())
                && *outcome != "completed"
            {
                about["code"] = json!(outcome);
                let whose = About::Session(call.session_id.clone());
                inner.notify_hook(HookPoint::RuntimeRouteOnError, about, json!({}), whose);
            }
        }
        _ => {}
    }
}
