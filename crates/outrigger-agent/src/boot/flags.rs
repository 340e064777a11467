//! Logs the feature flags at the start of an agent, for readers of the log (A12).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use outrigger_config::{Loaded, Origin};
use outrigger_protocol::audit::{AuditKind, AuditRecord};
use outrigger_store::Store;

use crate::state::Agent;
use outrigger_stdx::clock::now_ms;

/// Returns every flag in the order of the settings: name, whether it is on, and its origin.
pub fn flags(config: &Loaded) -> Vec<(String, bool, Origin)> {
    let values = config.settings.list().into_iter();
    values
        .filter_map(|(name, value)| {
            let flag = name.strip_prefix("flags.")?.to_owned();
            let origin = config.settings_origins.get(&name).cloned();
            Some((flag, value == true, origin.unwrap_or(Origin::Default)))
        })
        .collect()
}

impl Agent {
    /// Returns the feature flags that the agent runs with.
    #[must_use]
    pub fn flags(&self) -> Vec<(String, bool, Origin)> {
        flags(&self.state.config)
    }
}

/// Key under which the store keeps the flags of the last start.
const LAST: &str = "flags";

/// Writes the flags to the log, so that the figures after that line can be distinguished from those of another configuration. A
/// flag that changed since the last start is logged as a warning and recorded in the audit.
pub(crate) async fn record(config: &Loaded, store: &Store) {
    let flags = flags(config);
    tracing::info!(target: "plugin::perf", "[plugin-perf] flags{}", line(&flags));
    let states: BTreeMap<&str, bool> = flags
        .iter()
        .map(|(name, on, _)| (name.as_str(), *on))
        .collect();
    let text = serde_json::to_string(&states).unwrap_or_default();
    let last = store.meta_get(LAST).ok().flatten();
    if last.as_ref() == Some(&text) {
        return;
    }
    let last: BTreeMap<String, bool> = last
        .and_then(|last| serde_json::from_str(&last).ok())
        .unwrap_or_default();
    for (name, on, origin) in &flags {
        if last.get(name).is_some_and(|last| last != on) {
            changed(store, name, *on, origin);
        }
    }
    if let Err(error) = store.meta_set(LAST, Some(&text)).await {
        tracing::warn!("[flags] {error}");
    }
}

fn changed(store: &Store, name: &str, on: bool, origin: &Origin) {
    let state = if on { "on" } else { "off" };
    tracing::warn!("[flags] {name} is {state} since this start ({origin})");
    let record = AuditRecord {
        subject: Some(format!("flag {name}")),
        detail: Some(format!("by {origin}")),
        ..AuditRecord::new(AuditKind::LifeCycle, now_ms(), state)
    };
    store.audit_lazily(now_ms(), vec![record]);
}

fn line(flags: &[(String, bool, Origin)]) -> String {
    flags
        .iter()
        .fold(String::new(), |mut text, (name, on, origin)| {
            let _ = write!(text, " {name}={}", if *on { "on" } else { "off" });
            if *origin != Origin::Default {
                let _ = write!(text, " ({origin})");
            }
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_default_names_its_origin() {
        let origin = Origin::Env {
            name: "OUTRIGGER_FLAGS_B".into(),
        };
        assert_eq!(
            line(&[
                ("a".into(), true, Origin::Default),
                ("b".into(), false, origin)
            ]),
            " a=on b=off (environment OUTRIGGER_FLAGS_B)"
        );
    }
}
