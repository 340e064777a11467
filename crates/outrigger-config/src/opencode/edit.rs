//! Changing a configuration file while preserving comments, order and layout.
//!
//! This module computes texts. The caller reads and writes files.

use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::{Map, Value};

use crate::ConfigError;
use crate::load::layers;
use crate::opencode::check;
use crate::opencode::jsonc;
use crate::origin::Positions;
use crate::redact::restore;

/// Returns the file for a change of the user's own configuration, given the configuration folder `opencode`: the existing
/// one with the highest precedence.
#[must_use]
pub fn global_file(folder: &Path) -> PathBuf {
    chosen(folder, &layers::GLOBAL_FILES)
        .unwrap_or_else(|| folder.join(layers::GLOBAL_FILES[layers::GLOBAL_FILES.len() - 1]))
}

/// Returns the file for a change of a project's configuration.
#[must_use]
pub fn project_file(directory: &Path) -> PathBuf {
    chosen(directory, &layers::FILES).unwrap_or_else(|| directory.join(layers::FILES[0]))
}

fn chosen(folder: &Path, names: &[&str]) -> Option<PathBuf> {
    names
        .iter()
        .rev()
        .map(|name| folder.join(name))
        .into_iter()
        .find(|path| path.exists())
}

/// Looks whether this can be merged into a configuration.
///
/// # Errors
/// What is not an object, and known keys of a wrong type.
pub fn check_changes(changes: &Value) -> Result<(), ConfigError> {
    match check::document(changes).into_iter().next() {
        Some(wrong) => Err(wrong.error("the change", &Positions::new())),
        None => Ok(()),
    }
}

/// The text of a configuration file with `changes` merged into it: objects key by key, everything else replaced. Stand-ins
/// for secrets, which a client was given in their place, change nothing.
///
/// # Errors
/// A text that is not JSON with comments, or no object.
pub fn edited(text: &str, file: &str, changes: &Value) -> Result<String, ConfigError> {
    let before = jsonc::parse(text, file)?.value;
    let mut changes = changes.clone();
    restore(&mut changes, &before, &[]);
    let Value::Object(changes) = changes else {
        return Ok(text.to_owned());
    };
    if text.trim().is_empty() {
        let pretty = serde_json::to_string_pretty(&changes).unwrap_or_default();
        return Ok(pretty + "\n");
    }
    let root = root(text, file)?;
    merge(&root.object_value_or_set(), changes);
    Ok(root.to_string())
}

/// The text of a configuration file without the member at `path`; `None` where it has none.
///
/// # Errors
/// As [`edited`].
pub fn without(text: &str, file: &str, path: &[&str]) -> Result<Option<String>, ConfigError> {
    let root = root(text, file)?;
    let Some((last, parents)) = path.split_last() else {
        return Ok(None);
    };
    let mut object = root.object_value();
    for name in parents {
        object = object.and_then(|it| it.object_value(name));
    }
    Ok(object.and_then(|it| it.get(last)).map(|member| {
        member.remove();
        root.to_string()
    }))
}

/// The text of a configuration file with an item added to the list `key`, unless it is there.
///
/// # Errors
/// As [`edited`]; a `key` that is not a list.
pub fn with_item(
    text: &str,
    file: &str,
    key: &str,
    item: &Value,
) -> Result<Option<String>, ConfigError> {
    if text.trim().is_empty() {
        return edited(text, file, &serde_json::json!({ key: [item] })).map(Some);
    }
    let root = root(text, file)?;
    let list = root
        .object_value_or_set()
        .array_value_or_create(key)
        .ok_or_else(|| not_a_list(file, key))?;
    let is_there = |node: &CstNode| node.to_serde_value().as_ref() == Some(item);
    if list.elements().iter().any(is_there) {
        return Ok(None);
    }
    list.append(input(item.clone()));
    Ok(Some(root.to_string()))
}

/// The text of a configuration file without the items of the list `key` that `fits` takes; `None` where there is none.
///
/// # Errors
/// As [`edited`].
pub fn without_items(
    text: &str,
    file: &str,
    key: &str,
    fits: impl Fn(&Value) -> bool,
) -> Result<Option<String>, ConfigError> {
    let root = root(text, file)?;
    let list = root.object_value().and_then(|it| it.array_value(key));
    let items = list.map(|list| list.elements()).unwrap_or_default();
    let found = items
        .into_iter()
        .filter(|it| it.to_serde_value().as_ref().is_some_and(&fits));
    let mut removed = false;
    for item in found {
        item.remove();
        removed = true;
    }
    Ok(removed.then(|| root.to_string()))
}

fn not_a_list(file: &str, key: &str) -> ConfigError {
    ConfigError::Syntax {
        file: file.into(),
        line: 1,
        column: 1,
        language: "JSON",
        message: format!("`{key}` is not a list"),
        hint: format!("make `{key}` a list"),
    }
}

fn root(text: &str, file: &str) -> Result<CstRootNode, ConfigError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| ConfigError::Syntax {
        file: file.into(),
        line: u32::try_from(error.line_display()).unwrap_or(0),
        column: u32::try_from(error.column_display()).unwrap_or(0),
        language: "JSON",
        message: error.kind().to_string(),
        hint: "the file has to be mended before it can be changed".into(),
    })
}

fn merge(into: &CstObject, changes: Map<String, Value>) {
    for (key, value) in changes {
        match (value, into.get(&key)) {
            (Value::Object(members), Some(_)) => merge(&into.object_value_or_set(&key), members),
            (value, Some(known))
                if known.value().and_then(|node| node.to_serde_value()) == Some(value.clone()) => {}
            (value, Some(known)) => known.set_value(input(value)),
            (value, None) => {
                into.append(&key, input(value));
            }
        }
    }
}

fn input(value: Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(on) => CstInputValue::Bool(on),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text),
        Value::Array(list) => CstInputValue::Array(list.into_iter().map(input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members
                .into_iter()
                .map(|(key, value)| (key, input(value)))
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn comments_and_layout_stay() {
        let text = "{\n  // who\n  \"username\": \"old\", // trailing\n  \"agent\": { \"a\": { \"prompt\": \"p\" } },\n}\n";
        let changes = json!({ "username": "new", "agent": { "b": { "prompt": "q" } }, "instructions": ["x.md"] });
        insta::assert_snapshot!(edited(text, "f", &changes).unwrap(), @r#"
        {
          // who
          "username": "new", // trailing
          "agent": {
            "a": { "prompt": "p" },
            "b": {
              "prompt": "q"
            }
          },
          "instructions": ["x.md"],
        }
        "#);
        assert_eq!(
            edited(text, "f", &json!({ "username": "old" })).unwrap(),
            text
        );
        assert_eq!(
            edited("", "f", &json!({ "a": 1 })).unwrap(),
            "{\n  \"a\": 1\n}\n"
        );
        assert!(edited("{", "f", &json!({})).is_err());
        assert!(check_changes(&json!({ "username": 5 })).is_err());
        assert!(check_changes(&json!([])).is_err());
        assert!(check_changes(&json!({ "anything": 5 })).is_ok());
    }

    #[test]
    fn members_and_items_come_and_go_and_the_rest_stays() {
        let text = "{\n  // servers\n  \"mcp\": {\n    \"a\": { \"url\": \"u\" }, // one\n    \"b\": {}\n  },\n  \"plugin\": [\n    \"x@1\", // kept\n    [\"y\", {}]\n  ]\n}\n";
        insta::assert_snapshot!(without(text, "f", &["mcp", "b"]).unwrap().unwrap(), @r#"
        {
          // servers
          "mcp": {
            "a": { "url": "u" } // one
          },
          "plugin": [
            "x@1", // kept
            ["y", {}]
          ]
        }
        "#);
        assert_eq!(without(text, "f", &["mcp", "c"]).unwrap(), None);
        assert_eq!(without(text, "f", &["none", "c"]).unwrap(), None);
        let more = with_item(text, "f", "plugin", &json!("z"))
            .unwrap()
            .unwrap();
        insta::assert_snapshot!(more, @r#"
        {
          // servers
          "mcp": {
            "a": { "url": "u" }, // one
            "b": {}
          },
          "plugin": [
            "x@1", // kept
            ["y", {}],
            "z"
          ]
        }
        "#);
        assert_eq!(with_item(&more, "f", "plugin", &json!("z")).unwrap(), None);
        let less = without_items(&more, "f", "plugin", |it| it == "z").unwrap();
        assert_eq!(less.as_deref(), Some(text));
        assert_eq!(
            without_items(text, "f", "plugin", |it| it == "z").unwrap(),
            None
        );
        assert_eq!(
            with_item("", "f", "plugin", &json!("z")).unwrap().unwrap(),
            "{\n  \"plugin\": [\n    \"z\"\n  ]\n}\n"
        );
        assert!(with_item("{\"plugin\": 5}", "f", "plugin", &json!("z")).is_err());
    }

    #[test]
    fn a_stand_in_for_a_key_is_not_written_over_it() {
        let text = r#"{"provider":{"p":{"options":{"apiKey":"sk-real","baseURL":"http://x"}}}}"#;
        let shown = crate::redacted(&serde_json::from_str(text).unwrap());
        assert!(!shown.to_string().contains("sk-real"));
        let kept = edited(text, "f", &shown).unwrap();
        assert_eq!(kept, text);
    }

    #[test]
    fn the_file_that_has_the_last_word_is_changed() {
        let dir = tempfile::tempdir().unwrap();
        let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(name(global_file(dir.path())), "opencode.jsonc");
        assert_eq!(name(project_file(dir.path())), "opencode.json");
        std::fs::write(dir.path().join("config.json"), "{}").unwrap();
        assert_eq!(name(global_file(dir.path())), "config.json");
        std::fs::write(dir.path().join("opencode.jsonc"), "{}").unwrap();
        assert_eq!(name(global_file(dir.path())), "opencode.jsonc");
        assert_eq!(name(project_file(dir.path())), "opencode.jsonc");
    }
}
