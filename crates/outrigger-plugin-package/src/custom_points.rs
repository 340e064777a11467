//! Custom hook points and bus events that plugins declare (B8): the same chain, order, deadlines, breakers, guard and audit
//! as at the program's own points, since they use the kernel's point type.
//!
//! A plugin declares them in its manifest, under its own id, and only its own process reaches them. A plugin that shares a
//! process has no manifest, so the plugin behind a process is known and not just claimed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use jsonschema::Validator;
use outrigger_kernel::hooks::{
    Deadline, Failure, Field, HookPoint, Kind, OutputCheck, Phase, PointSpec,
};
use outrigger_protocol::manifest::{
    Allow, DeadlineClass, EventDecl, Manifest, PointDecl, ProviderEntry,
};
use outrigger_schema::cost::Cost;
use outrigger_stdx::sync::lock;
use serde_json::Value;

/// Limit of different points that may be declared while the program runs. Each is kept until exit, once, however often its
/// plugin is loaded.
const MAX_POINTS: usize = 4096;

/// A point that a plugin declared.
#[derive(Debug)]
pub struct DeclaredPoint {
    /// The kernel's form.
    pub point: HookPoint,
    /// The manifest's form.
    pub decl: PointDecl,
    /// Schema of its input.
    pub input: Option<Schema>,
    /// Schema of its output.
    pub output: Option<Schema>,
}

/// An event that a plugin declared.
#[derive(Debug)]
pub struct DeclaredEvent {
    /// The manifest's form.
    pub decl: EventDecl,
    /// Schema of its properties.
    pub schema: Option<Schema>,
}

/// Declarations of one plugin.
#[derive(Debug, Default)]
pub struct Declarations {
    /// Its hook points.
    pub points: Vec<DeclaredPoint>,
    /// Its bus events.
    pub events: Vec<DeclaredEvent>,
    /// What it says of its providers of models.
    pub providers: Vec<ProviderEntry>,
}

/// Maximum nesting of a schema when its references are followed: events are checked on any thread, in a small stack.
const MAX_LEVELS: usize = 100;

/// A compiled schema. References to other documents are refused: nothing is fetched.
#[derive(Clone, Debug)]
pub struct Schema(Arc<(Validator, Cost)>);

impl Schema {
    fn new(schema: Option<&Value>) -> Result<Option<Self>, String> {
        let Some(schema) = schema else {
            return Ok(None);
        };
        let cost = Cost::new(schema)?;
        if cost.levels() > MAX_LEVELS {
            return Err(format!(
                "its references lead through more than {MAX_LEVELS} levels"
            ));
        }
        let compiled = jsonschema::validator_for(schema).map_err(|error| error.to_string())?;
        Ok(Some(Self(Arc::new((compiled, cost)))))
    }

    /// Holds a value against it.
    ///
    /// # Errors
    /// Where it does not fit, and why.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        let (validator, cost) = &*self.0;
        if cost.of(value)? > MAX_LEVELS {
            return Err(format!(
                "it is nested more than {MAX_LEVELS} levels of its schema deep"
            ));
        }
        match validator.iter_errors(value).next() {
            None => Ok(()),
            Some(error) => {
                let place = error.instance_path().to_string();
                let place = if place.is_empty() { "it" } else { &place };
                let mut text = format!("{place} does not fit the schema: {error}");
                if let Some((at, _)) = text.char_indices().nth(300) {
                    text.truncate(at);
                }
                Err(text)
            }
        }
    }
}

impl Declarations {
    /// What a manifest declares.
    ///
    /// # Errors
    /// The key of the manifest and what is wrong: an invalid schema.
    pub fn of(manifest: &Manifest) -> Result<Self, (&'static str, String)> {
        let schema = |schema: Option<&Value>, key, name: &str| {
            Schema::new(schema).map_err(|why| (key, format!("invalid schema of {name:?}: {why}")))
        };
        let points = manifest.points.iter().map(|decl| {
            let input = schema(decl.input.as_ref(), "points", &decl.name)?;
            let output = schema(decl.output.as_ref(), "points", &decl.name)?;
            Ok(DeclaredPoint {
                point: interned(decl)
                    .map(HookPoint::Declared)
                    .map_err(|why| ("points", why))?,
                decl: decl.clone(),
                input,
                output,
            })
        });
        let events = manifest.events.iter().map(|decl| {
            Ok(DeclaredEvent {
                schema: schema(decl.schema.as_ref(), "events", &decl.name)?,
                decl: decl.clone(),
            })
        });
        let own = Self {
            points: points.collect::<Result<_, _>>()?,
            events: events.collect::<Result<_, _>>()?,
            providers: manifest.providers.clone(),
        };
        own.examples_fit()?;
        Ok(own)
    }

    /// Checks that the examples of a declaration match its schemas (B8).
    fn examples_fit(&self) -> Result<(), (&'static str, String)> {
        let fits = |schema: &Option<Schema>, value: &Value| match schema {
            Some(schema) => schema.check(value),
            None => Ok(()),
        };
        for own in &self.points {
            for (n, example) in (1..).zip(&own.decl.examples) {
                for (what, schema, value) in [
                    ("input", &own.input, &example.input),
                    ("output", &own.output, &example.output),
                ] {
                    fits(schema, value).map_err(|why| {
                        let name = &own.decl.name;
                        (
                            "points",
                            format!("example {n} of {name:?}: its {what}: {why}"),
                        )
                    })?;
                }
            }
        }
        for own in &self.events {
            for (n, example) in (1..).zip(&own.decl.examples) {
                fits(&own.schema, &example.properties).map_err(|why| {
                    (
                        "events",
                        format!("example {n} of {:?}: {why}", own.decl.name),
                    )
                })?;
            }
        }
        Ok(())
    }

    /// Returns a point by name.
    #[must_use]
    pub fn point(&self, name: &str) -> Option<&DeclaredPoint> {
        self.points.iter().find(|own| own.decl.name == name)
    }

    /// Returns an event by name.
    #[must_use]
    pub fn event(&self, name: &str) -> Option<&DeclaredEvent> {
        self.events.iter().find(|own| own.decl.name == name)
    }
}

impl DeclaredPoint {
    /// Returns the check of every answer against the schema.
    #[must_use]
    pub fn check(&self) -> Option<OutputCheck> {
        let schema = self.output.clone()?;
        Some(OutputCheck::new(move |output| schema.check(output)))
    }
}

/// Interns a point: the kernel's points live as long as the program. Equal declarations share one point, so that a plugin
/// that is loaded repeatedly, or in many projects, costs one.
fn interned(decl: &PointDecl) -> Result<&'static PointSpec, String> {
    static POINTS: Mutex<BTreeMap<String, &'static PointSpec>> = Mutex::new(BTreeMap::new());
    let key = serde_json::to_string(decl).unwrap_or_default();
    let mut points = lock(&POINTS);
    if let Some(point) = points.get(&key) {
        return Ok(point);
    }
    if points.len() >= MAX_POINTS {
        return Err(format!(
            "more than {MAX_POINTS} points have been declared since the start"
        ));
    }
    let point: &'static PointSpec = Box::leak(Box::new(made(decl)));
    points.insert(key, point);
    Ok(point)
}

fn made(decl: &PointDecl) -> PointSpec {
    let name: &'static str = decl.name.clone().leak();
    let may = |what: Allow| decl.allows.contains(&what);
    let patch = if may(Allow::Patch) {
        fields(decl.output.as_ref())
    } else {
        Vec::new()
    };
    let block = may(Allow::Block);
    PointSpec {
        name,
        hook: name,
        // `Before` rather than `Observe`: the plugin waits for the answer.
        phase: Phase::Before,
        patch: patch.leak(),
        block,
        deadline: match decl.deadline {
            DeadlineClass::Fast => Deadline::Fast,
            DeadlineClass::Normal => Deadline::Normal,
            DeadlineClass::Slow => Deadline::Slow,
        },
        failure: if block {
            Failure::ThrowBlocks
        } else {
            Failure::Open
        },
        input: "",
        about: decl.description.clone().leak(),
    }
}

/// Returns the top level of the schema for the chain's own check; the schema covers deeper levels.
fn fields(output: Option<&Value>) -> Vec<Field> {
    let get = |key: &str| output.and_then(|schema| schema.get(key));
    let required = |name: &str| {
        let list = get("required").and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|it| it.as_str() == Some(name)))
    };
    let properties = get("properties").and_then(Value::as_object);
    let mut fields: Vec<Field> = properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| Field {
            key: name.clone().leak(),
            kind: match schema.get("type").and_then(Value::as_str) {
                Some("string") => Kind::String,
                Some("number" | "integer") => Kind::Number,
                Some("boolean") => Kind::Bool,
                Some("array") => Kind::Array,
                Some("object") => Kind::Object,
                _ => Kind::Any,
            },
            required: required(name),
        })
        .collect();
    if get("additionalProperties") != Some(&Value::Bool(false)) {
        fields.push(Field {
            key: "*",
            kind: Kind::Any,
            required: false,
        });
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn declared(allows: &[Allow], output: Value) -> Manifest {
        let mut manifest = Manifest::inferred("acme", None);
        manifest.points = vec![PointDecl {
            name: "acme/deploy.before".into(),
            description: "Before.".into(),
            input: None,
            output: Some(output),
            allows: allows.to_vec(),
            deadline: DeadlineClass::Fast,
            examples: Vec::new(),
        }];
        manifest
    }

    #[test]
    fn a_declaration_is_one_point_of_the_kernel() {
        let output = json!({"type": "object", "properties": {"steps": {"type": "array"}}, "required": ["steps"], "additionalProperties": false});
        let manifest = declared(&[Allow::Patch, Allow::Block], output.clone());
        let own = Declarations::of(&manifest).unwrap();
        let point = own.points[0].point.spec();
        assert_eq!(
            (
                point.name,
                point.hook,
                point.block,
                point.deadline,
                point.failure
            ),
            (
                "acme/deploy.before",
                "acme/deploy.before",
                true,
                Deadline::Fast,
                Failure::ThrowBlocks
            )
        );
        assert_eq!(
            point.patch,
            [Field {
                key: "steps",
                kind: Kind::Array,
                required: true
            }]
        );
        let again = Declarations::of(&manifest).unwrap();
        assert!(std::ptr::eq(point, again.points[0].point.spec()));
        let observed = Declarations::of(&declared(&[Allow::Observe], output)).unwrap();
        assert!(observed.points[0].point.spec().patch.is_empty());
        assert!(!observed.points[0].point.spec().block);
    }

    #[test]
    fn a_schema_that_is_none_is_reported() {
        for schema in [
            json!({"type": "object", "properties": {"a": {"type": "nonsense"}}}),
            json!({"type": "object", "$ref": "https://example.com/schema.json"}),
        ] {
            let (key, why) = Declarations::of(&declared(&[], schema)).unwrap_err();
            assert_eq!(key, "points");
            assert!(why.contains("acme/deploy.before"), "{why}");
        }
    }
}
