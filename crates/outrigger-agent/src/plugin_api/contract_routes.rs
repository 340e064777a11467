//! Providers of tool contracts: this machine, or a connector named in the user's settings (C11).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use outrigger_kernel::hooks::points::runtime::{route_after_select, route_on_error};
use outrigger_kernel::hooks::{Context, Empty};
use outrigger_protocol::descriptor::Contract;
use outrigger_protocol::id::{CallId, SessionId};
use outrigger_protocol::tool::ToolCall;
use outrigger_stdx::sync::lock;
use outrigger_tools::Stage;
use outrigger_tools::routes::{LOCAL, Route, Routes};

use crate::state::AgentState;
use outrigger_session_state::notifications::About;

/// Binds contracts to providers as the user's settings specify, and notifies plugins.
pub(crate) fn bind(state: &Arc<AgentState>, env: &BTreeMap<String, String>) {
    let policy = &state.config.settings.tool_execution;
    let providers = policy.connectors.iter().map(|(name, connector)| {
        let provider = crate::plugin_api::connector::provider(state, name, connector, env);
        (name.clone(), provider)
    });
    let rules = policy.routes.iter().map(|rule| Route {
        contract: rule.contract,
        tool: rule.tool.clone(),
        agent: rule.agent.clone(),
        path: rule.path.clone(),
        provider: rule.provider.clone(),
    });
    match Routes::new(providers.collect(), rules.collect()) {
        Ok(routes) => state.tools.runtime.bind(routes),
        // The settings were validated for this.
        Err(name) => tracing::error!("[routes] there is no connector `{name}`"),
    }
    let owner = Arc::downgrade(state);
    let bound = Mutex::new(HashMap::new());
    state.tools.runtime.listen(Arc::new(move |call, stage| {
        if let Some(state) = owner.upgrade() {
            notify(&state, &bound, call, stage);
        }
    }));
}

/// Calls bound to another provider than this machine, until they end.
type BoundCalls = Mutex<HashMap<(SessionId, CallId), Bound>>;

/// The provider that a call was bound to.
struct Bound {
    contract: Contract,
    provider: String,
    rule: Option<usize>,
}

impl Bound {
    fn input<'a>(&'a self, call: &'a ToolCall) -> route_after_select::Input<'a> {
        route_after_select::Input {
            session_id: &call.session_id,
            agent: &call.agent,
            call_id: &call.call_id,
            tool: &call.tool,
            contract: self.contract,
            provider: &self.provider,
            rule: self.rule,
        }
    }
}

fn notify(state: &Arc<AgentState>, bound: &BoundCalls, call: &ToolCall, stage: &Stage<'_>) {
    let key = || (call.session_id.clone(), call.call_id.clone());
    match stage {
        Stage::Routed {
            contract,
            provider,
            rule,
        } => {
            let selected = Bound {
                contract: *contract,
                provider: (*provider).to_owned(),
                rule: *rule,
            };
            let whose = About::Session(call.session_id.clone());
            state.notify_hook(&selected.input(call), &Empty {}, whose);
            if *provider != LOCAL {
                lock(bound).insert(key(), selected);
            }
        }
        Stage::Ended { outcome } => {
            let selected = lock(bound).remove(&key());
            if let Some(selected) = selected.filter(|_| *outcome != "completed") {
                let input = route_on_error::Input {
                    bound: selected.input(call),
                    code: outcome,
                };
                let whose = About::Session(call.session_id.clone());
                state.notify_hook(&input, &Context::default(), whose);
            }
        }
        _ => {}
    }
}
