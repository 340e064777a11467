//! Hook points and events with their subscribers: `outrigger plugin points`.

use outrigger_kernel::hooks::{HookPoint, Phase};
use outrigger_protocol::manifest::{EventExample, PointExample};
use serde::Serialize;
use serde_json::Value;

use crate::plugins::Plugins;

/// A hook point, of the program or of a plugin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PointRow {
    /// Name of the point.
    pub name: String,
    /// Key under which plugins register a hook.
    pub hook: String,
    /// Plugin that declared it; `None` for the program's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared_by: Option<String>,
    /// What it is for.
    pub description: String,
    /// Rights of handlers: `observe`, `patch`, `block`.
    pub allows: Vec<&'static str>,
    /// Time limit of a handler in milliseconds, unless its plugin has another deadline.
    pub deadline_ms: u64,
    /// JSON Schema of the input, if declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// JSON Schema of the output, if declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Example inputs, if declared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<PointExample>,
    /// Plugins with a handler, in the order in which they are called.
    pub subscribers: Vec<String>,
}

/// A bus event of a plugin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventRow {
    /// `type` of the event.
    pub name: String,
    /// Plugin that declared it.
    pub declared_by: String,
    /// What it tells.
    pub description: String,
    /// JSON Schema of its `properties`, if declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Example events, if declared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<EventExample>,
}

impl Plugins {
    /// Returns every hook point, the program's own first, and the events that plugins declare.
    #[must_use]
    pub fn points(&self) -> (Vec<PointRow>, Vec<EventRow>) {
        let registry = &self.0.registry;
        let row = |point: HookPoint| PointRow {
            name: point.name().to_owned(),
            hook: point.hook().to_owned(),
            declared_by: None,
            description: point.spec().about.to_owned(),
            allows: allows(point),
            deadline_ms: u64::try_from(
                self.0
                    .settings
                    .deadlines
                    .of(point.spec().deadline)
                    .as_millis(),
            )
            .unwrap_or(u64::MAX),
            input: None,
            output: None,
            examples: Vec::new(),
            subscribers: subscribers(registry.bound(point).as_deref()),
        };
        let mut points: Vec<PointRow> = HookPoint::ALL.iter().copied().map(row).collect();
        let mut events = Vec::new();
        for (plugin, own) in registry.all_own() {
            points.extend(own.points.iter().map(|own| PointRow {
                declared_by: Some(plugin.clone()),
                input: own.decl.input.clone(),
                output: own.decl.output.clone(),
                examples: own.decl.examples.clone(),
                ..row(own.point)
            }));
            events.extend(own.events.iter().map(|own| EventRow {
                name: own.decl.name.clone(),
                declared_by: plugin.clone(),
                description: own.decl.description.clone(),
                schema: own.decl.schema.clone(),
                examples: own.decl.examples.clone(),
            }));
        }
        (points, events)
    }
}

fn subscribers(bound: Option<&[outrigger_plugin_registry::Bound]>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for bound in bound.unwrap_or_default() {
        if !names.contains(&bound.id) {
            names.push(bound.id.clone());
        }
    }
    names
}

fn allows(point: HookPoint) -> Vec<&'static str> {
    let mut allows = vec!["observe"];
    if !point.spec().patch.is_empty() && point.spec().phase != Phase::Observe {
        allows.push("patch");
    }
    if point.spec().block {
        allows.push("block");
    }
    allows
}
