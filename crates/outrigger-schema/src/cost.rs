//! What it costs to check a value against a JSON Schema that a stranger wrote.
//!
//! References make a schema of a few KB a tree of any size: 45 definitions, each of two references to the one before,
//! are 2^45 steps. So before a validator compiles a schema, its references and its depth are bounded ([`Cost::new`]),
//! and before it checks a value, the steps are counted ([`Cost::of`]). Each pair of a schema and a value is counted
//! once, so counting is cheap where checking is not.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

/// Maximum nesting of the definitions of a schema, added up: what a chain of references can make of it.
const MAX_LEVELS: usize = 4000;
/// Maximum nesting of one schema, which `serde_json` also has.
const MAX_DEPTH: usize = 130;
/// Maximum number of steps of a check: that of a table of 1,000 rows and 40 optional columns takes 120,000.
const MAX_STEPS: u64 = 2_000_000;
/// Maximum nesting of the steps of a check.
const MAX_NESTED: usize = 300;
/// Steps for a pattern, and bytes of a text that are one step of it.
const PATTERN: (u64, usize) = (100, 16);
/// The documents that a validator brings along, and steps for each value that is checked against one.
const METASCHEMAS: &str = "json-schema.org/";
const META: u64 = 200;
/// Maximum number of values in a schema, of bytes of the keys on a path, and of parts with an `$id`.
const MAX_VALUES: usize = 50_000;
const MAX_POINTER: usize = 4096;
const MAX_ROOTS: usize = 64;

/// Keywords whose target depends on the way to it.
const DYNAMIC: [&str; 4] = [
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$recursiveAnchor",
];

/// Bounds the checks of one schema.
#[derive(Clone, Debug)]
pub struct Cost {
    schema: Value,
    /// Where its subschemas with an `$id` are, and the root.
    roots: Vec<String>,
    /// Places by name. A name may be a value's too, so there may be several.
    anchors: HashMap<String, Vec<String>>,
    levels: usize,
    /// The draft that writes `id` for `$id`.
    is_draft_4: bool,
}

/// Steps and nesting.
type Steps = Result<u64, String>;

impl Cost {
    /// Looks at a schema before it is compiled.
    ///
    /// # Errors
    /// In words: it is nested too deep, has too many references, or references that depend on the way to them.
    pub fn new(schema: &Value) -> Result<Self, String> {
        let mut cost = Self {
            schema: schema.clone(),
            roots: vec![String::new()],
            anchors: HashMap::new(),
            levels: 0,
            is_draft_4: schema
                .get("$schema")
                .is_some_and(|it| it.to_string().contains("draft-04")),
        };
        let mut references = HashSet::new();
        let mut open = vec![(schema, String::new(), 0)];
        let mut seen = 0;
        while let Some((value, pointer, depth)) = open.pop() {
            seen += 1;
            if seen > MAX_VALUES || pointer.len() > MAX_POINTER {
                return Err(format!(
                    "it has more than {MAX_VALUES} values, or keys that are longer than {MAX_POINTER} bytes on a path"
                ));
            }
            if depth > MAX_DEPTH {
                return Err(format!("it is nested more than {MAX_DEPTH} deep"));
            }
            if let Some(map) = value.as_object() {
                cost.note(map, &pointer, &mut references)?;
            }
            open.extend(children(value).map(|(key, it)| {
                let key = key.replace('~', "~0").replace('/', "~1");
                (it, format!("{pointer}/{key}"), depth + 1)
            }));
        }
        cost.levels = cost.levels_of(schema, &references)?;
        Ok(cost)
    }

    fn levels_of(&self, schema: &Value, references: &HashSet<String>) -> Result<usize, String> {
        let mut levels = depth(schema);
        let mut reached = HashSet::new();
        for target in references.iter().flat_map(|it| self.targets(it)) {
            if reached.insert(address(target)) {
                levels += depth(target);
            }
            if levels > MAX_LEVELS {
                return Err(format!(
                    "its references lead through more than {MAX_LEVELS} levels; use fewer definitions"
                ));
            }
        }
        Ok(levels)
    }

    /// Returns how deep a recursive compiler of it may get.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// Remembers where references can lead.
    fn note(
        &mut self,
        map: &Map<String, Value>,
        pointer: &str,
        references: &mut HashSet<String>,
    ) -> Result<(), String> {
        if let Some(name) = DYNAMIC.iter().find(|it| is_keyword(map, it)) {
            return Err(format!("it has {name}; use $ref"));
        }
        let text = |key: &str| map.get(key).and_then(Value::as_str);
        references.extend(text("$ref").map(str::to_owned));
        let id = if self.is_draft_4 {
            text("id")
        } else {
            text("$id")
        };
        if let Some(id) = id {
            match id.strip_prefix('#') {
                Some(anchor) => self.anchor(anchor, pointer),
                None if !pointer.is_empty() => self.roots.push(pointer.to_owned()),
                None => {}
            }
        }
        if self.roots.len() > MAX_ROOTS {
            return Err(format!(
                "it has more than {MAX_ROOTS} parts with an $id; use $defs"
            ));
        }
        if let Some(anchor) = text("$anchor") {
            self.anchor(anchor, pointer);
        }
        Ok(())
    }

    fn anchor(&mut self, name: &str, pointer: &str) {
        let places = self.anchors.entry(name.to_owned()).or_default();
        places.push(pointer.to_owned());
    }

    /// Returns where a reference may lead; nowhere, if out of the document.
    fn targets(&self, reference: &str) -> Vec<&Value> {
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let fragment = decoded(fragment);
        if !fragment.is_empty() && !fragment.starts_with('/') {
            let places = self.anchors.get(&fragment).into_iter().flatten();
            return places.filter_map(|it| self.schema.pointer(it)).collect();
        }
        if base.contains(METASCHEMAS) && !self.claims_metaschemas() {
            return Vec::new();
        }
        // A part with an `$id` is a document of its own: which one is meant is not resolved here.
        self.roots
            .iter()
            .filter_map(|root| self.schema.pointer(&format!("{root}{fragment}")))
            .collect()
    }

    fn claims_metaschemas(&self) -> bool {
        let mut ids = self.roots.iter().filter_map(|it| {
            let part = self.schema.pointer(it)?;
            part.get("$id").or_else(|| part.get("id"))?.as_str()
        });
        ids.any(|id| id.contains(METASCHEMAS))
    }

    /// Counts the steps of checking a value.
    ///
    /// Returns how deep they are nested.
    ///
    /// # Errors
    /// In words: they are too many or nested too deep, or the schema refers to itself without end.
    pub fn of(&self, value: &Value) -> Result<usize, String> {
        let mut count = Count {
            cost: self,
            known: HashMap::new(),
            deepest: 0,
        };
        let steps = count.pair(&self.schema, value, 0)?;
        if steps > MAX_STEPS {
            return Err(too_many());
        }
        Ok(count.deepest)
    }
}

/// Returns whether a member is a keyword, not the schema of a property with its name.
fn is_keyword(map: &Map<String, Value>, name: &str) -> bool {
    map.get(name).is_some_and(|it| !it.is_object())
}

fn too_many() -> String {
    format!(
        "checking these arguments takes more than {MAX_STEPS} steps; give fewer or shorter ones"
    )
}

struct Count<'a> {
    cost: &'a Cost,
    /// Steps of the pairs that were counted; `None` while one is.
    known: HashMap<(usize, usize), Option<u64>>,
    deepest: usize,
}

impl<'a> Count<'a> {
    fn pair(&mut self, schema: &'a Value, value: &'a Value, nested: usize) -> Steps {
        let Some(map) = schema.as_object() else {
            return Ok(1);
        };
        let key = (address(schema), address(value));
        match self.known.get(&key) {
            Some(Some(steps)) => return Ok(*steps),
            Some(None) => return Err("the schema refers to itself for the same value".into()),
            None => {}
        }
        if nested > MAX_NESTED {
            return Err(format!(
                "checking these arguments takes steps nested more than {MAX_NESTED} deep; nest them less"
            ));
        }
        if self.known.len() as u64 > MAX_STEPS {
            return Err(too_many());
        }
        self.deepest = self.deepest.max(nested);
        self.known.insert(key, None);
        let steps = self.keywords(map, value, nested + 1)?;
        self.known.insert(key, Some(steps));
        Ok(steps)
    }

    fn keywords(&mut self, map: &'a Map<String, Value>, value: &'a Value, nested: usize) -> Steps {
        let here = self.in_place(map, value, nested)?;
        // What was not looked at yet is found out by looking at everything again, for each child.
        let again = map.keys().any(|it| it.starts_with("unevaluated"));
        let here = if again {
            here.saturating_mul(2 + children(value).count() as u64)
        } else {
            here
        };
        let patterns = map.get("patternProperties").and_then(Value::as_object);
        let mut steps = here.saturating_add(1);
        for (name, child) in children(value) {
            for (keyword, schemas) in map {
                let applied: Vec<&Value> = match keyword.as_str() {
                    "properties" => schemas.get(&name).into_iter().collect(),
                    "patternProperties" => schemas
                        .as_object()
                        .into_iter()
                        .flat_map(Map::values)
                        .collect(),
                    "items"
                    | "prefixItems"
                    | "contains"
                    | "additionalItems"
                    | "additionalProperties"
                    | "unevaluatedItems"
                    | "unevaluatedProperties" => match schemas {
                        Value::Array(list) => name
                            .parse()
                            .ok()
                            .and_then(|at: usize| list.get(at))
                            .into_iter()
                            .collect(),
                        one => vec![one],
                    },
                    _ => continue,
                };
                for schema in applied {
                    steps = steps.saturating_add(self.pair(schema, child, nested)?);
                }
            }
            let matched = patterns.map_or(0, Map::len) as u64;
            steps = steps.saturating_add(matched.saturating_mul(pattern(&name)));
        }
        Ok(steps)
    }

    /// Counts the schemas that are for the value itself.
    fn in_place(&mut self, map: &'a Map<String, Value>, value: &'a Value, nested: usize) -> Steps {
        let mut steps = 0_u64;
        for (keyword, schemas) in map {
            let more = match (keyword.as_str(), schemas) {
                ("$ref", Value::String(reference)) => self.reference(reference, value, nested)?,
                ("allOf" | "anyOf" | "oneOf", Value::Array(list)) => {
                    self.all(list.iter(), value, nested)?
                }
                ("not" | "if" | "then" | "else", one) => self.pair(one, value, nested)?,
                ("dependentSchemas" | "dependencies", Value::Object(parts)) => {
                    self.all(parts.values(), value, nested)?
                }
                // Each name is a text of its own, which refers to no part of the value.
                ("propertyNames", one) => {
                    let names = value.as_object().map_or(0, Map::len) as u64;
                    let each = if names == 0 {
                        0
                    } else {
                        self.pair(one, &Value::Null, nested)?
                    };
                    names.saturating_mul(each.saturating_add(pattern("")))
                }
                ("pattern", _) => value.as_str().map_or(0, pattern),
                ("enum", Value::Array(list)) => list.len() as u64,
                ("uniqueItems", _) => value.as_array().map_or(0, Vec::len) as u64,
                _ => 0,
            };
            steps = steps.saturating_add(more);
        }
        Ok(steps)
    }

    fn all(
        &mut self,
        schemas: impl Iterator<Item = &'a Value>,
        value: &'a Value,
        nested: usize,
    ) -> Steps {
        let mut steps = 0_u64;
        for schema in schemas {
            steps = steps.saturating_add(self.pair(schema, value, nested)?);
        }
        Ok(steps)
    }

    fn reference(&mut self, reference: &str, value: &'a Value, nested: usize) -> Steps {
        let cost = self.cost;
        let targets = cost.targets(reference);
        if targets.is_empty() {
            return Ok(size(value).saturating_mul(META));
        }
        let mut most = 0;
        for target in targets {
            most = self.pair(target, value, nested)?.max(most);
        }
        Ok(most.saturating_add(1))
    }
}

fn pattern(text: &str) -> u64 {
    PATTERN.0 + (text.len() / PATTERN.1) as u64
}

/// Iterates over the members or items of a value, with their names.
fn children(value: &Value) -> impl Iterator<Item = (String, &Value)> {
    let members = value.as_object().into_iter().flatten();
    let items = value
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(at, it)| (at.to_string(), it));
    members.map(|(name, it)| (name.clone(), it)).chain(items)
}

/// Returns how many values there are in a value, with itself.
fn size(value: &Value) -> u64 {
    let mut open = vec![value];
    let mut count = 0;
    while let Some(value) = open.pop() {
        count += 1;
        open.extend(children(value).map(|(_, it)| it));
    }
    count
}

fn depth(value: &Value) -> usize {
    let mut open = vec![(value, 1)];
    let mut deepest = 0;
    while let Some((value, depth)) = open.pop() {
        deepest = deepest.max(depth);
        open.extend(children(value).map(|(_, it)| (it, depth + 1)));
    }
    deepest
}

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value) as usize
}

/// Resolves the percent encoding of a fragment.
fn decoded(fragment: &str) -> String {
    let bytes = fragment.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let hex = fragment.get(at + 1..at + 3).filter(|_| *byte == b'%');
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
#[path = "cost_tests.rs"]
mod tests;
