//! Files generated from the table of settings: `docs/outrigger.schema.json` for editors, and the tables of their page.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use outrigger_config::Settings;
use outrigger_config::settings::keys::Key;
use outrigger_config::settings::sections::{PLUGIN_KEYS, SECTIONS, TOP};
use outrigger_config::settings::{Plugin, keys, tool_execution};
use outrigger_schema::{Field, joined};
use serde_json::{Value, json};

use crate::generate::schema::CLOSED;

/// The page about settings.
pub(crate) const PAGE: &str = "docs/configuration/outrigger-toml.md";
const BEGIN: &str = "<!-- made by `cargo xtask generate` -->\n";
const END: &str = "<!-- end -->\n";

/// Returns the JSON Schema of `outrigger.toml`.
pub(crate) fn schema() -> Value {
    let defaults: BTreeMap<String, Value> = Settings::default().list().into_iter().collect();
    let mut file = table(TOP, &defaults);
    for section in SECTIONS {
        let mut table = table(section.keys, &defaults);
        table["description"] = json!(plain(&joined(section.doc)));
        file["properties"][section.name] = table;
    }
    file["properties"]["plugins"] = json!({
        "type": "object",
        "description": "Settings of single plugins, by id, package name, or entry as written in the `plugin` list.",
        "additionalProperties": table(PLUGIN_KEYS, &plugin_defaults()),
    });
    if let Value::Object(more) = CLOSED.value(&tool_execution::SECTIONS)["properties"].take()
        && let Some(properties) = file["properties"].as_object_mut()
    {
        properties.extend(more);
    }
    file
}

fn table<T>(keys: &[Key<T>], defaults: &BTreeMap<String, Value>) -> Value {
    let field = |key: &Key<T>| Field {
        name: last(key.name),
        schema: key.schema,
        required: false,
        doc: key.doc,
        aliases: key.aliases,
    };
    let mut table = CLOSED.object(&keys.iter().map(field).collect::<Vec<_>>());
    for key in keys {
        let default = defaults.get(key.name).filter(|it| !it.is_null());
        for name in [last(key.name)].iter().chain(key.aliases) {
            let property = &mut table["properties"][name];
            property["description"] = json!(plain(&joined(key.doc)));
            if let Some(default) = default {
                property["default"] = default.clone();
            }
        }
    }
    table
}

fn plugin_defaults() -> BTreeMap<String, Value> {
    let defaults = serde_json::to_value(Plugin::default())
        .unwrap_or_default()
        .as_object()
        .cloned()
        .unwrap_or_default();
    defaults.into_iter().collect()
}

fn last(name: &'static str) -> &'static str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Removes the targets of links, which are only valid on the page.
fn plain(markdown: &str) -> String {
    let mut out = String::new();
    let mut rest = markdown;
    while let Some((before, link)) = rest.split_once("](")
        && let Some((target, after)) = link.split_once(')')
        && let Some((before, text)) = before.rsplit_once('[')
        && !target.contains(char::is_whitespace)
    {
        out.push_str(before);
        out.push_str(text);
        rest = after;
    }
    out + rest
}

/// Returns the page with its current tables between the marks, in order.
///
/// # Errors
/// The page does not have two pairs of marks.
pub(crate) fn page(committed: &str) -> Result<String, String> {
    let defaults: BTreeMap<String, Value> = Settings::default().list().into_iter().collect();
    let tables = [
        rows(keys::all(), &defaults),
        rows(PLUGIN_KEYS, &plugin_defaults()),
    ];
    let mut out = String::new();
    let mut rest = committed;
    for table in tables {
        let marked = rest.split_once(BEGIN);
        let (before, after) = marked
            .and_then(|(before, after)| Some((before, after.split_once(END)?.1)))
            .ok_or_else(|| format!("{PAGE} has not two tables between {BEGIN:?} and {END:?}"))?;
        out += &format!("{before}{BEGIN}{table}{END}");
        rest = after;
    }
    Ok(out + rest)
}

fn rows<T: 'static>(
    keys: impl IntoIterator<Item = &'static Key<T>>,
    defaults: &BTreeMap<String, Value>,
) -> String {
    let mut out = String::from("| Key | Default | What it is for |\n|---|---|---|\n");
    for key in keys {
        let default = match defaults.get(key.name) {
            None | Some(Value::Null) => "–".to_owned(),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
            Some(other) => format!("`{other}`"),
        };
        let doc = joined(key.doc);
        let _ = writeln!(out, "| `{}` | {default} | {doc} |", key.name);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lose_their_targets() {
        for (markdown, text) in [
            (
                "See [plugins.md](../plugins.md#a), or not.",
                "See plugins.md, or not.",
            ),
            ("[a](b) and [c](d)", "a and c"),
            ("as `[\"~/.ssh\"]` (a list)", "as `[\"~/.ssh\"]` (a list)"),
        ] {
            assert_eq!(plain(markdown), text);
        }
    }

    #[test]
    fn tables_stand_between_their_marks() {
        let source = format!("a\n{BEGIN}stale row\n{END}b\n{BEGIN}{END}c\n");
        let made = page(&source).unwrap();
        assert!(made.starts_with(&format!("a\n{BEGIN}| Key |")), "{made}");
        assert!(made.ends_with(&format!("{END}c\n")) && !made.contains("stale row"));
        assert_eq!(page(&made).unwrap(), made);
        assert!(page("a").is_err());
    }
}
