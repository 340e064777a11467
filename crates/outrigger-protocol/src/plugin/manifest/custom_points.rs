//! Hook points, bus events and model providers that a plugin declares in its manifest (B8).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Manifest, ManifestProblem};

/// Domains of the program's own points and events: a plugin's names must not use them after its id, so that they cannot
/// be confused.
pub const RESERVED_DOMAINS: [&str; 27] = [
    "agent_end",
    "bridge",
    "browser",
    "chat",
    "command",
    "compaction",
    "config",
    "event",
    "execute",
    "experimental",
    "file",
    "hook",
    "llm",
    "lsp",
    "mcp",
    "message",
    "outrigger",
    "permission",
    "plugin",
    "project",
    "provider",
    "question",
    "run",
    "runtime",
    "server",
    "session",
    "tool",
];

/// Maximum number of points, or events, of one plugin.
const MAX_DECLARED: usize = 64;
/// Maximum bytes of a schema as JSON.
const MAX_SCHEMA: usize = 16 * 1024;

/// What handlers may do at a declared point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Allow {
    /// Read it. Always allowed.
    Observe,
    /// Change the output, within its schema.
    Patch,
    /// Refuse, by throwing.
    Block,
}

/// Deadline of a handler at a declared point. The milliseconds are those of the program's own points (C5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeadlineClass {
    /// Pure policy.
    Fast,
    /// As the hooks of JS plugins.
    #[default]
    Normal,
    /// Waits for something external.
    Slow,
}

/// A hook point that a plugin declares: only that plugin triggers it, others add handlers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointDecl {
    /// `PLUGIN/domain.name`; other plugins contribute a hook of this name.
    pub name: String,
    /// Its purpose.
    pub description: String,
    /// JSON Schema of the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// JSON Schema of the output, an object. Its properties are what handlers may change where they may patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// What handlers may do besides reading.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allows: Vec<Allow>,
    /// How long a handler may take.
    #[serde(default)]
    pub deadline: DeadlineClass,
    /// Examples, validated against its schemas whenever the plugin is loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<PointExample>,
}

/// An example of a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointExample {
    /// The input of handlers.
    #[serde(default)]
    pub input: Value,
    /// What handlers may change.
    #[serde(default)]
    pub output: Value,
}

/// An example of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventExample {
    /// Its payload.
    pub properties: Value,
}

/// A bus event that a plugin declares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventDecl {
    /// `PLUGIN/domain.name`: the event's `type`.
    pub name: String,
    /// Its description.
    pub description: String,
    /// JSON Schema of its `properties`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Examples, validated against its schema whenever the plugin is loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<EventExample>,
}

/// A plugin's description of a model provider that it implements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderEntry {
    /// Its id, one of `provides.providers`.
    pub id: String,
    /// Its description.
    pub description: String,
    /// Example requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<ProviderExample>,
}

/// A request to a provider, which `outrigger plugin test` sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderExample {
    /// One of its models.
    pub model: String,
    /// The prompt.
    pub prompt: String,
}

/// Returns the problems of a manifest's declarations, the first of each key.
pub(super) fn problems(manifest: &Manifest) -> Vec<ManifestProblem> {
    let names = |key, names: Vec<&String>| {
        let bad = names.iter().enumerate().find_map(|(at, name)| {
            let twice = names.iter().take(at).any(|other| other == name);
            let why = if twice {
                Some("is declared twice".to_owned())
            } else {
                misnamed(&manifest.id, name)
            };
            why.map(|why| format!("{name:?} {why}"))
        });
        let many =
            (names.len() > MAX_DECLARED).then(|| format!("more than {MAX_DECLARED} are declared"));
        bad.or(many).map(|message| ManifestProblem { key, message })
    };
    let points = names(
        "points",
        manifest.points.iter().map(|it| &it.name).collect(),
    );
    let events = names(
        "events",
        manifest.events.iter().map(|it| &it.name).collect(),
    );
    let described = manifest.points.iter().map(|it| (&it.name, &it.description));
    let points = points.or_else(|| bare("points", described));
    let described = manifest.events.iter().map(|it| (&it.name, &it.description));
    let events = events.or_else(|| bare("events", described));
    let points = points.or_else(|| {
        let message = manifest.points.iter().find_map(|point| {
            let input = point.input.as_ref().and_then(|it| misshaped(it, false));
            let output = point.output.as_ref().and_then(|it| misshaped(it, true));
            let why = input
                .map(|why| ("input", why))
                .or(output.map(|why| ("output", why)))?;
            Some(format!(
                "the {} schema of {:?} {}",
                why.0, point.name, why.1
            ))
        });
        message.map(|message| ManifestProblem {
            key: "points",
            message,
        })
    });
    let events = events.or_else(|| {
        let message = manifest.events.iter().find_map(|event| {
            let why = event.schema.as_ref().and_then(|it| misshaped(it, true))?;
            Some(format!("the schema of {:?} {why}", event.name))
        });
        message.map(|message| ManifestProblem {
            key: "events",
            message,
        })
    });
    let providers = wrong_provider(manifest);
    points.into_iter().chain(events).chain(providers).collect()
}

/// Returns the first provider that is described twice, not at all, or not contributed by the plugin.
fn wrong_provider(manifest: &Manifest) -> Option<ManifestProblem> {
    let known = &manifest.provides.providers;
    let all = &manifest.providers;
    let wrong = all.iter().enumerate().find_map(|(at, it)| {
        let twice = all.iter().take(at).any(|other| other.id == it.id);
        let why = match (known.contains(&it.id), twice) {
            (false, _) => "is not in `provides.providers`",
            (true, true) => "is declared twice",
            (true, false) => return None,
        };
        Some(format!("{:?} {why}", it.id))
    });
    let described = all.iter().map(|it| (&it.id, &it.description));
    let bare = bare("providers", described);
    wrong
        .map(|message| ManifestProblem {
            key: "providers",
            message,
        })
        .or(bare)
}

/// Returns the first name without a description (B8).
fn bare<'a>(
    key: &'static str,
    mut described: impl Iterator<Item = (&'a String, &'a String)>,
) -> Option<ManifestProblem> {
    let (name, _) = described.find(|(_, text)| text.trim().is_empty())?;
    let message = format!("{name:?} has no description");
    Some(ManifestProblem { key, message })
}

fn misnamed(plugin: &str, name: &str) -> Option<String> {
    let word = |it: &str| {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        !it.is_empty() && it.len() <= 64 && it.chars().all(fits)
    };
    let own = name
        .strip_prefix(plugin)
        .and_then(|rest| rest.strip_prefix('/'));
    let Some(own) = own.filter(|own| !own.contains('/')) else {
        return Some(format!(
            "is not in the plugin's namespace, as \"{plugin}/deploy.before\""
        ));
    };
    let mut words = own.split('.');
    let domain = words.next().unwrap_or_default();
    if RESERVED_DOMAINS.contains(&domain) {
        return Some(format!("has the reserved domain {domain:?}"));
    }
    let two = own.split('.').count() >= 2 && own.split('.').all(word);
    (!two).then(|| "has no form `domain.name` (a-z, 0-9, _) behind the id".to_owned())
}

/// Returns what is wrong with a schema. `whole`: it must describe an object.
fn misshaped(schema: &Value, whole: bool) -> Option<String> {
    if schema.to_string().len() > MAX_SCHEMA {
        return Some(format!("is longer than {MAX_SCHEMA} bytes"));
    }
    let Some(keys) = schema.as_object() else {
        return Some("is not an object".to_owned());
    };
    let object = keys.get("type").and_then(Value::as_str) == Some("object");
    (whole && !object).then(|| "does not say type = \"object\"".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_and_schemas_by_table() {
        for (id, name, schema, wrong) in [
            ("acme", "acme/deploy.before", json!({"type": "object"}), ""),
            (
                "@acme/tools",
                "@acme/tools/deploy.before",
                json!({"type": "object"}),
                "",
            ),
            (
                "acme",
                "deploy.before",
                json!({"type": "object"}),
                "namespace",
            ),
            (
                "acme",
                "other/deploy.before",
                json!({"type": "object"}),
                "namespace",
            ),
            (
                "acme",
                "acme/x/deploy.before",
                json!({"type": "object"}),
                "namespace",
            ),
            (
                "acme",
                "acmex/deploy.before",
                json!({"type": "object"}),
                "namespace",
            ),
            ("acme", "acme/deploy", json!({"type": "object"}), "form"),
            (
                "acme",
                "acme/Deploy.before",
                json!({"type": "object"}),
                "form",
            ),
            (
                "acme",
                "acme/deploy..before",
                json!({"type": "object"}),
                "form",
            ),
            (
                "acme",
                "acme/tool.before_call",
                json!({"type": "object"}),
                "reserved",
            ),
            (
                "acme",
                "acme/session.created",
                json!({"type": "object"}),
                "reserved",
            ),
            ("acme", "acme/deploy.before", json!("x"), "not an object"),
            (
                "acme",
                "acme/deploy.before",
                json!({"type": "string"}),
                "type = ",
            ),
            (
                "acme",
                "acme/deploy.before",
                json!({"type": "object", "title": "x".repeat(20_000)}),
                "longer",
            ),
        ] {
            let mut manifest = Manifest::inferred(id, None);
            manifest.points = vec![PointDecl {
                name: name.into(),
                description: "What it is for.".into(),
                input: None,
                output: Some(schema.clone()),
                allows: Vec::new(),
                deadline: DeadlineClass::Normal,
                examples: Vec::new(),
            }];
            manifest.events = vec![EventDecl {
                name: name.into(),
                description: "What it is for.".into(),
                schema: Some(schema),
                examples: Vec::new(),
            }];
            let found = manifest.problems();
            assert_eq!(
                found.len(),
                if wrong.is_empty() { 0 } else { 2 },
                "{name} {found:?}"
            );
            for problem in found {
                assert!(
                    problem.message.contains(wrong),
                    "{name}: {}",
                    problem.message
                );
            }
        }
    }

    #[test]
    fn what_is_declared_has_a_description() {
        let mut manifest = Manifest::inferred("acme", None);
        manifest.events = vec![EventDecl {
            name: "acme/deploy.done".into(),
            description: " ".into(),
            schema: None,
            examples: Vec::new(),
        }];
        assert!(manifest.problems()[0].message.contains("no description"));
    }

    #[test]
    fn a_provider_that_is_described_is_brought() {
        let provider = |id: &str, description: &str| ProviderEntry {
            id: id.into(),
            description: description.into(),
            examples: Vec::new(),
        };
        for (providers, wrong) in [
            (vec![provider("acme", "Models of Acme.")], None),
            (vec![provider("acme", " ")], Some("no description")),
            (
                vec![provider("other", "Models.")],
                Some("provides.providers"),
            ),
            (
                vec![provider("acme", "Models."), provider("acme", "Models.")],
                Some("twice"),
            ),
        ] {
            let mut manifest = Manifest::inferred("acme", None);
            manifest.provides.providers = vec!["acme".into()];
            manifest.providers = providers;
            let found = manifest.problems();
            assert_eq!(found.is_empty(), wrong.is_none(), "{found:?}");
            for problem in found {
                assert_eq!(problem.key, "providers");
                assert!(problem.message.contains(wrong.unwrap()), "{problem:?}");
            }
        }
    }

    #[test]
    fn nothing_is_declared_twice_or_without_end() {
        let mut manifest = Manifest::inferred("acme", None);
        let event = |number: usize| EventDecl {
            name: format!("acme/deploy.done{number}"),
            description: "What it is for.".into(),
            schema: None,
            examples: Vec::new(),
        };
        manifest.events = vec![event(1), event(1)];
        assert!(manifest.problems()[0].message.contains("twice"));
        manifest.events = (0..=MAX_DECLARED).map(event).collect();
        assert!(manifest.problems()[0].message.contains("more than 64"));
    }
}
