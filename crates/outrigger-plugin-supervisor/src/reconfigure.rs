//! `config` hooks of a restarted process.
//!
//! Plugins initialise themselves in their `config` hook, so it is called in the new process too, with the input of the first
//! time. Its changes are not applied again, since they are in the configuration already; they are compared, and a difference
//! becomes a warning. This is part of starting a process and not a hook chain: nothing is folded, and no caller waits for an
//! answer.

use std::collections::BTreeMap;
use std::time::Duration;

use outrigger_js::{HookCall, JsError, JsProcess, Sent};
use outrigger_kernel::hooks::{HookPoint, pointer};
use outrigger_protocol::hook::{Change, HookOutcome};
use outrigger_protocol::rpc::{HandlerRef, LoadedPlugin};
use outrigger_protocol::turn::HookPayload;
use serde_json::Value;

use outrigger_plugin_registry::error::PluginError;
use outrigger_plugin_registry::{Configured, Registry};

/// The hook point.
pub const POINT: HookPoint = HookPoint::RuntimeConfigure;
/// Maximum number of places that are named.
const NAMED: usize = 5;

/// Calls the `config` hooks of these plugins again, in order. Answers what differs from their first call, or failed.
///
/// # Errors
/// The plugin (its index) that hung or ended the process.
pub async fn reconfigure(
    process: &JsProcess,
    registry: &Registry,
    members: &[usize],
    deadline: Duration,
) -> Result<Vec<(usize, String)>, (usize, PluginError)> {
    let mut warnings = Vec::new();
    for index in members {
        let known = registry.with(*index, |plugin| {
            (plugin.id.clone(), plugin.configured.clone())
        });
        let Some((plugin, all)) = known else { continue };
        for first in all {
            match again(process, &plugin, &first, deadline).await {
                Ok((text, _)) => warnings.extend(text.map(|text| (*index, text))),
                Err(error) => return Err((*index, failed(plugin, &error, deadline))),
            }
        }
    }
    Ok(warnings)
}

/// The same for the next generation of plugins, whose hooks may be others: those that are gone are forgotten, and those that
/// are new are called with `given`, the configuration that holds. What they change is not applied, and becomes a warning.
///
/// # Errors
/// As [`reconfigure`].
pub(crate) async fn configure_next(
    process: &JsProcess,
    registry: &Registry,
    members: &[(usize, &LoadedPlugin)],
    given: Option<&Value>,
    deadline: Duration,
) -> Result<Next, (usize, PluginError)> {
    let mut next = Next::default();
    for (index, answer) in members {
        let known = registry.with(*index, |plugin| {
            (plugin.id.clone(), plugin.configured.clone())
        });
        let Some((plugin, known)) = known else {
            continue;
        };
        let mut all = Vec::new();
        for (instance, hook) in config_hooks(answer) {
            let is = |first: &&Configured| first.instance == instance && first.hook == hook;
            let mut first = match (known.iter().find(is), given) {
                (Some(first), _) => first.clone(),
                (None, Some(given)) => Configured {
                    instance,
                    hook,
                    before: given.clone(),
                    changes: Vec::new(),
                },
                // No hook was called yet: it is called with the others.
                (None, None) => continue,
            };
            let called = again(process, &plugin, &first, deadline).await;
            let (text, changes) =
                called.map_err(|error| (*index, failed(plugin.clone(), &error, deadline)))?;
            next.warnings.extend(text.map(|text| (*index, text)));
            first.changes = changes;
            all.push(first);
        }
        next.configured.push((*index, all));
    }
    Ok(next)
}

/// Results of the `config` hooks of the next generation.
#[derive(Default)]
pub(crate) struct Next {
    /// Differences from their first call, or failures, by plugin.
    pub(crate) warnings: Vec<(usize, String)>,
    /// How they are called at the next restart, by plugin.
    pub configured: Vec<(usize, Vec<Configured>)>,
}

fn config_hooks(answer: &LoadedPlugin) -> Vec<(usize, String)> {
    let instances = answer.instances.iter().enumerate();
    let hooks = instances.flat_map(|(at, instance)| {
        let is = |hook: &&String| HookPoint::parse(hook) == Some(POINT);
        // Both spellings on one object are one handler.
        let hook = instance.hooks.iter().find(is);
        hook.map(|hook| (at, hook.clone()))
    });
    hooks.collect()
}

/// Calls one hook: returns its warning and its changes.
async fn again(
    process: &JsProcess,
    plugin: &str,
    first: &Configured,
    deadline: Duration,
) -> Result<(Option<String>, Vec<Change>), JsError> {
    let handler = HandlerRef {
        plugin: plugin.to_owned(),
        instance: first.instance,
    };
    let item = HookPayload::new(Value::Null, first.before.clone());
    let call = HookCall {
        hook: &first.hook,
        handlers: &[handler],
        open: &[],
        items: &[item],
        session: None,
        chain: None,
    };
    let mut answer: Option<HookOutcome> = None;
    let ended = process
        .hook_call(&call, deadline, &mut Sent::default(), |result| {
            answer = Some(result.outcome);
        })
        .await;
    match (answer, ended) {
        (Some(answer), _) => Ok(taken(first, answer)),
        (None, Err(error)) => Err(error),
        (None, Ok(())) => Ok((None, first.changes.clone())),
    }
}

/// Returns the warning about an answer, and the hook's recorded changes. A failed hook keeps its earlier changes, which are in
/// the configuration.
fn taken(first: &Configured, answer: HookOutcome) -> (Option<String>, Vec<Change>) {
    let warning = compared(first, &answer);
    let changes = match answer {
        HookOutcome::Failed(_) => first.changes.clone(),
        HookOutcome::Patch(patch) => patch.items.into_iter().next().unwrap_or_default(),
        HookOutcome::Continue | HookOutcome::Block(_) => Vec::new(),
    };
    (warning, changes)
}

fn compared(first: &Configured, answer: &HookOutcome) -> Option<String> {
    if let HookOutcome::Failed(error) = answer {
        return Some(format!(
            "its `config` hook failed when its process was started again: {error}; the configuration stays as it was"
        ));
    }
    let changes = match answer {
        HookOutcome::Patch(patch) => patch.items.first(),
        _ => None,
    };
    let now = places(changes.map(Vec::as_slice).unwrap_or_default());
    let then = places(&first.changes);
    let differing: Vec<&str> = now
        .iter()
        .filter(|(place, value)| then.get(*place) != Some(value))
        .chain(then.iter().filter(|(place, _)| !now.contains_key(*place)))
        .map(|(place, _)| place.as_str())
        .collect();
    let more = differing.len().saturating_sub(NAMED);
    let named = differing.iter().take(NAMED).copied().collect::<Vec<_>>();
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    (!differing.is_empty()).then(|| {
        format!(
            "its `config` hook changed something else when its process was started again ({}{more}); the configuration \
             stays as it was",
            named.join(", ")
        )
    })
}

fn places(changes: &[Change]) -> BTreeMap<String, Option<&Value>> {
    let place = |change: &'_ Change| pointer(&change.path);
    changes
        .iter()
        .map(|change| (place(change), change.value.as_ref()))
        .collect()
}

fn failed(plugin: String, error: &JsError, deadline: Duration) -> PluginError {
    let what = "config".to_owned();
    match error {
        JsError::CallTimeout { .. } => PluginError::Hung {
            plugin,
            what,
            ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
        },
        error => PluginError::Crashed {
            plugin,
            what,
            message: error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_protocol::hook::HookFailure;
    use serde_json::json;

    fn changes(list: Value) -> Vec<Change> {
        serde_json::from_value(list).unwrap()
    }

    #[test]
    fn a_difference_is_named_by_its_places() {
        let first = Configured {
            instance: 0,
            hook: "config".into(),
            before: json!({}),
            changes: changes(
                json!([{"path": ["a"], "value": 1}, {"path": ["b"], "value": {"x": 1, "y": 2}}]),
            ),
        };
        let answer = |items: Value, error: Option<&str>| match error {
            Some(message) => HookFailure::Threw {
                message: message.to_owned(),
            }
            .into(),
            None => HookOutcome::patch(vec![changes(items)]),
        };
        let same = json!([{"path": ["b"], "value": {"y": 2, "x": 1}}, {"path": ["a"], "value": 1}]);
        let other = json!([{"path": ["a"], "value": 2}, {"path": ["c"], "value": 1}]);
        let rows = [
            (answer(same, None), None),
            (answer(other, None), Some("(/a, /c, /b)")),
            (answer(json!([]), None), Some("(/a, /b)")),
            (
                answer(json!([]), Some("no")),
                Some("failed when its process was started again: no;"),
            ),
        ];
        for (answer, expected) in rows {
            let given = match &answer {
                HookOutcome::Patch(patch) => patch.items[0].clone(),
                _ => first.changes.clone(),
            };
            let (warning, changes) = taken(&first, answer);
            assert_eq!(changes, given);
            assert_eq!(warning.is_some(), expected.is_some(), "{warning:?}");
            if let (Some(warning), Some(expected)) = (warning, expected) {
                assert!(warning.contains(expected), "{warning}");
            }
        }
    }
}
