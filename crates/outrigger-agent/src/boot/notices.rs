//! Publishes changes in the state of running plugins as events: breakers, restarts, moves to a separate process, and
//! disabling.
//!
//! The event kinds are Outrigger's own (`outrigger.plugin.*`); OpenCode has no equivalent. Clients that do not know them
//! ignore them.

use std::sync::Arc;

use outrigger_plugins::{Notice, NoticeFn, Stage};
use outrigger_protocol::Object;
use outrigger_protocol::event::{CustomEvent, Event};
use outrigger_protocol::message::NamedError;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::state::AgentState;
use outrigger_session_state::bus::numbered;

/// Creates the channel for notices. There is one notice per restart or change of a breaker, so the queue needs no bound.
pub(crate) fn channel() -> (NoticeFn, UnboundedReceiver<Notice>) {
    let (sender, receiver) = unbounded_channel();
    let send = move |notice| {
        // The receiver is dropped when the agent ends.
        let _ = sender.send(notice);
    };
    (Arc::new(send), receiver)
}

/// Publishes the notices as events, in order.
pub(crate) fn bind(state: &Arc<AgentState>, mut notices: UnboundedReceiver<Notice>) {
    let owner = Arc::downgrade(state);
    tokio::spawn(async move {
        while let Some(notice) = notices.recv().await {
            let Some(state) = owner.upgrade() else { return };
            if notice.is_passing() {
                state.bus.publish(Arc::new(numbered(event(&notice))));
                continue;
            }
            if let Err(error) = state.commit(Vec::new(), vec![event(&notice)]).await {
                tracing::warn!("[plugin] {error}");
            }
        }
    });
}

/// Notifies clients of the plugins that could not be loaded, as OpenCode does: an error without a session. Plugins are
/// not notified; in OpenCode none is subscribed at that point either.
pub(crate) fn failed(state: &AgentState) {
    let plugins = state.plugins.host.list();
    let failed = plugins
        .iter()
        .filter(|plugin| plugin.stage == Stage::Failed);
    for plugin in failed {
        let why = plugin.cause.as_ref().map(|cause| cause.message.as_str());
        let message = format!(
            "Plugin {} could not be loaded: {}",
            plugin.spec,
            why.unwrap_or("no reason was given")
        );
        let event = Event::SessionError {
            session_id: None,
            error: NamedError::new("UnknownError", message),
        };
        state.bus.publish(Arc::new(numbered(event)));
    }
}

fn event(notice: &Notice) -> Event {
    let mut properties = match json!(notice) {
        Value::Object(properties) => properties,
        _ => Object::new(),
    };
    let kind = properties.remove("kind");
    let kind = kind.as_ref().and_then(Value::as_str).unwrap_or_default();
    Event::Custom(CustomEvent {
        depth: 0,
        kind: format!("outrigger.plugin.{kind}"),
        properties,
    })
}

#[cfg(test)]
mod tests {
    use outrigger_plugins::BreakerState;

    use super::*;

    #[test]
    fn the_kind_of_the_event_is_that_of_the_notice() {
        let breaker = Notice::Breaker {
            plugin: "slow".into(),
            hook: "chat.params".into(),
            state: BreakerState::Open,
            pause_ms: Some(60_000),
        };
        assert_eq!(
            json!(event(&breaker)),
            json!({"type": "outrigger.plugin.breaker", "properties": {"plugin": "slow", "hook": "chat.params", "state": "open", "pause_ms": 60_000}})
        );
        let off = Notice::Off {
            plugin: "slow".into(),
            cause: "why".into(),
        };
        assert_eq!(
            json!(event(&off)),
            json!({"type": "outrigger.plugin.off", "properties": {"plugin": "slow", "cause": "why"}})
        );
    }
}
