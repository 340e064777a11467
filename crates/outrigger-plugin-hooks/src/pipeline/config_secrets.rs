//! The configuration as one `config` hook hands it to the next: a secret that a plugin put there (a key from a variable that the user
//! granted to that plugin alone) is not for the plugins called after it. They get a placeholder, as for the user's own secrets
//! (invariant 10), and the secret returns where its recipient is unchanged.

use outrigger_config::{restore_secrets, without_secrets};
use outrigger_kernel::hooks::apply;
use outrigger_plugin_registry::ConfigStep;
use outrigger_plugin_supervisor::reconfigure;
use outrigger_protocol::hook::{Change, HookOutcome, Key};
use outrigger_protocol::turn::HookPayload;
use serde_json::Value;

use super::Drive;

impl Drive<'_> {
    /// Returns the configuration without secrets, for the process that is called next; `None` at other points.
    pub(super) fn without_secrets(&mut self) -> Option<Vec<HookPayload>> {
        if self.point != reconfigure::POINT {
            return None;
        }
        let known = self.host.registry.granted_secrets();
        let mut items = self.items().to_vec();
        for item in &mut items {
            item.output = without_secrets(&item.output, &known);
        }
        self.shown = items.first().map(|item| item.output.clone());
        Some(items)
    }

    /// Adds to the changes of a `config` hook what puts the secrets back that it was not shown, or takes them out where the plugin
    /// changed what they are used for.
    pub(super) fn hold_secrets(&mut self, outcome: HookOutcome) -> HookOutcome {
        let HookOutcome::Patch(mut patch) = outcome else {
            return outcome;
        };
        if let (Some(shown), Some(changes)) = (self.shown.take(), patch.items.first_mut())
            && let Some(real) = self.items().first().map(|item| &item.output)
        {
            let known = self.host.registry.granted_secrets();
            let redacted = redacted_after(shown, real, changes, &known);
            for pointer in redacted.omitted {
                tracing::warn!(
                    "[config] a plugin changed what uses {pointer}, or copied it: the secret is omitted"
                );
            }
            changes.extend(redacted.restoring_changes);
            self.shown = Some(redacted.shown);
        }
        HookOutcome::Patch(patch)
    }

    /// Returns the configuration before a `config` hook's changes are applied.
    pub(super) fn before_step(&self, outcome: &HookOutcome) -> Option<Value> {
        let changes = matches!(outcome, HookOutcome::Patch(patch) if !patch.is_empty());
        let item = self
            .items()
            .first()
            .filter(|_| changes && self.point == reconfigure::POINT);
        item.map(|item| item.output.clone())
    }

    /// Records who changed the configuration: what is run, read or requested for an entry is held to what those may do.
    pub(super) fn end_step(&self, handler: usize, before: Option<Value>) {
        let (Some(before), Some(bound), Some(item)) =
            (before, self.bound.get(handler), self.items().first())
        else {
            return;
        };
        if before != item.output {
            self.host.registry.add_config_step(ConfigStep {
                plugin: bound.plugin,
                before,
                after: item.output.clone(),
            });
        }
    }
}

/// A configuration of which a plugin sees no secrets of others, after that plugin's changes.
struct RedactedConfig {
    /// As the plugin sees it.
    shown: Value,
    /// Changes after the plugin's own, so that the real configuration has its secrets where they were and nowhere else.
    restoring_changes: Vec<Change>,
    /// The places of secrets that are omitted.
    omitted: Vec<String>,
}

/// Applies a plugin's changes to the configuration that it was shown.
fn redacted_after(
    mut shown: Value,
    real: &Value,
    changes: &[Change],
    known: &[String],
) -> RedactedConfig {
    let mut plain = real.clone();
    for change in changes {
        // The chain applies what fits the real configuration, and refuses a change that does not.
        let _ = apply(&mut plain, change);
        // A change that does not fit what the plugin saw changes nothing in it.
        let _ = apply(&mut shown, change);
    }
    let mut whole = shown.clone();
    let omitted = restore_secrets(&mut whole, real, known);
    let restoring_changes = match (&whole, &plain) {
        (Value::Object(whole), Value::Object(plain)) => whole
            .iter()
            .filter(|(name, value)| plain.get(*name) != Some(*value))
            .map(|(name, value)| Change {
                path: vec![Key::Name(name.clone())],
                value: Some(value.clone()),
            })
            .collect(),
        _ => Vec::new(),
    };
    RedactedConfig {
        shown,
        restoring_changes,
        omitted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn change(path: &[&str], value: Value) -> Change {
        Change {
            path: path
                .iter()
                .map(|key| Key::Name((*key).to_owned()))
                .collect(),
            value: Some(value),
        }
    }

    /// The configuration after the changes of the next plugin, which was shown no secret.
    fn after(real: &Value, changes: &[Change]) -> (Value, Vec<String>) {
        let known = ["granted-by-name".to_owned()];
        let shown = without_secrets(real, &known);
        let text = shown.to_string();
        assert!(!text.contains("tok-1") && !text.contains("granted-by-name"));
        let redacted = redacted_after(shown, real, changes, &known);
        let mut left = real.clone();
        for change in changes.iter().chain(&redacted.restoring_changes) {
            let _ = apply(&mut left, change);
        }
        (left, redacted.omitted)
    }

    #[test]
    fn a_plugins_secret_stays_where_it_was_put_and_goes_nowhere_else() {
        let real = json!({
            "mcp": { "g": {
                "type": "remote", "url": "https://g.test", "headers": { "Authorization": "Bearer tok-1" },
            } },
            "agent": { "a": { "prompt": "say granted-by-name" } },
        });
        // Nothing that uses it.
        let (left, lost) = after(
            &real,
            &[
                change(&["mcp", "g", "timeout"], json!(5)),
                change(&["agent", "b"], json!({ "prompt": "b" })),
            ],
        );
        let mut want = real.clone();
        want["mcp"]["g"]["timeout"] = json!(5);
        want["agent"]["b"] = json!({ "prompt": "b" });
        assert_eq!((left, lost.len()), (want, 0));
        // Sent elsewhere: by a change of the address alone, and by a copy of what it was shown.
        let copy = without_secrets(&real["mcp"]["g"], &[]);
        let mut moved = copy.clone();
        moved["headers"]["Authorization"] = json!("(redacted)");
        for changes in [
            vec![change(&["mcp", "g", "url"], json!("https://e.test"))],
            vec![change(&["mcp", "g", "environment"], json!({ "A": "b" }))],
            vec![
                change(&["nowhere", "a", "b"], json!(1)),
                change(&["mcp", "g", "url"], json!("https://e.test")),
            ],
            vec![change(&["mcp", "e"], moved.clone())],
            vec![change(&["mcp"], json!({ "e": moved }))],
        ] {
            let (left, lost) = after(&real, &changes);
            let own = left.pointer("/mcp/g").cloned().unwrap_or_default();
            let sent = left["mcp"].to_string();
            let is_same = own == real["mcp"]["g"];
            assert_eq!(
                sent.matches("tok-1").count(),
                usize::from(is_same),
                "{sent}"
            );
            assert_eq!(lost.len(), 1, "{changes:?}");
        }
    }
}
