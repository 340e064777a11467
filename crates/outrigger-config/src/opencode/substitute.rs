//! `{env:NAME}` and `{file:PATH}` in strings.
//!
//! OpenCode replaces them in the file's text, which breaks the JSON if a value contains a quote; here they are replaced in the
//! parsed strings, so any value is safe and positions stay correct. As there, an unset variable is the empty string, a file's
//! text is trimmed, `~/` is the home folder, a relative path starts at the declaring file's folder, and variables are replaced
//! first, so that `{file:{env:DIR}/x}` works.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use outrigger_protocol::keys::is_secret_in_texts;
use outrigger_schema::child;
use serde_json::{Map, Value};

use crate::ConfigError;
use crate::opencode::jsonc::Document;
use crate::origin::position_of;
use crate::paths;

/// Context of substitutions.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// Environment.
    pub(crate) env: &'a BTreeMap<String, String>,
    /// Home folder.
    pub(crate) home: &'a Path,
    /// Folder of the declaring file.
    pub(crate) folder: &'a Path,
    /// The declaring file, for messages.
    pub(crate) file: &'a str,
    /// Returns why a file is not read.
    pub(crate) forbidden: &'a dyn Fn(&Path) -> Option<&'static str>,
    /// Collects likely secrets that were inserted.
    pub(crate) secrets: &'a RefCell<BTreeSet<String>>,
}

/// Minimum length of a secret: removing shorter values would make every text unreadable.
const MIN_SECRET_LENGTH: usize = 8;

impl Scope<'_> {
    /// Records an inserted value if it is likely a secret: by the name of the variable, or as a single word or a key in a file,
    /// which is how keys are stored.
    fn note(&self, variable: Option<&str>, value: &str) {
        let is_word = !value.contains(char::is_whitespace) || value.starts_with("-----BEGIN");
        let is_secret = match variable {
            Some(name) if name.to_ascii_uppercase().ends_with("KEY") => {
                is_secret_in_texts("key", value)
            }
            Some(name) => is_secret_in_texts(name, value),
            None => is_word && is_secret_in_texts("key", value),
        };
        if is_secret && value.len() >= MIN_SECRET_LENGTH && !value.starts_with('/') {
            self.secrets.borrow_mut().insert(value.to_owned());
        }
    }
}

/// Replaces in every string and key of the document.
///
/// # Errors
/// `config.file_reference` when a file cannot be read.
pub(crate) fn substitute(document: &mut Document, scope: Scope<'_>) -> Result<(), ConfigError> {
    let mut value = std::mem::take(&mut document.value);
    walk(&mut value, "", document, scope)?;
    document.value = value;
    Ok(())
}

fn walk(
    value: &mut Value,
    pointer: &str,
    document: &Document,
    scope: Scope<'_>,
) -> Result<(), ConfigError> {
    match value {
        Value::String(text) if text.contains('{') => {
            *text = replace(text, pointer, document, scope)?
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                walk(item, &format!("{pointer}/{index}"), document, scope)?;
            }
        }
        Value::Object(map) => {
            for (key, member) in map.iter_mut() {
                walk(member, &child(pointer, key), document, scope)?;
            }
            if map
                .keys()
                .any(|key| key.contains("{env:") || key.contains("{file:"))
            {
                let mut renamed = Map::new();
                for (key, member) in std::mem::take(map) {
                    renamed.insert(replace(&key, pointer, document, scope)?, member);
                }
                *map = renamed;
            }
        }
        _ => {}
    }
    Ok(())
}

fn replace(
    text: &str,
    pointer: &str,
    document: &Document,
    scope: Scope<'_>,
) -> Result<String, ConfigError> {
    let with_env = expand(text, "{env:", |name| {
        let value = scope.env.get(name).cloned().unwrap_or_default();
        scope.note(Some(name), &value);
        Ok(value)
    })?;
    expand(&with_env, "{file:", |reference| {
        let path = paths::expand(reference, scope.folder, scope.home);
        let read = match (scope.forbidden)(&path) {
            Some(reason) => Err(reason.to_owned()),
            None => outrigger_files::read_to_string(&path, outrigger_files::SETTINGS)
                .map_err(|error| paths::reason(&error)),
        };
        read.map(|content| content.trim().to_owned())
            .inspect(|content| scope.note(None, content))
            .map_err(|reason| {
                let at = position_of(&document.positions, pointer);
                ConfigError::FileReference {
                    file: scope.file.into(),
                    line: at.line,
                    column: at.column,
                    pointer: pointer.into(),
                    reference: format!("{{file:{reference}}}").into(),
                    path: path.display().to_string(),
                    reason: reason.into(),
                }
            })
    })
}

/// Replaces `OPEN…}`. One without a closing brace or with nothing in it is unchanged.
pub(crate) fn expand(
    text: &str,
    open: &str,
    mut value: impl FnMut(&str) -> Result<String, ConfigError>,
) -> Result<String, ConfigError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(open) {
        out.push_str(before);
        match after.split_once('}') {
            Some((name, tail)) if !name.is_empty() => {
                out.push_str(&value(name)?);
                rest = tail;
            }
            _ => {
                out.push_str(open);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opencode::jsonc;
    use outrigger_protocol::diagnose::Diagnose;
    use serde_json::json;

    fn run(text: &str, folder: &Path, home: &Path) -> Result<Value, ConfigError> {
        let env = [("KEY", "s3\"cret"), ("EMPTY", ""), ("DIR", "sub")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into();
        let mut document = jsonc::parse(text, "opencode.json")?;
        substitute(
            &mut document,
            Scope {
                env: &env,
                home,
                folder,
                file: "opencode.json",
                forbidden: &|path| path.ends_with("forbidden").then_some("it is forbidden"),
                secrets: &RefCell::default(),
            },
        )?;
        Ok(document.value)
    }

    #[test]
    fn replaces() {
        let dir = tempfile::tempdir().unwrap();
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(dir.path().join("sub/x"), "  line \"1\"\nline 2\n\n").unwrap();
        std::fs::write(home.path().join("h"), "home").unwrap();
        let absolute = dir.path().join("sub/x").display().to_string();
        for (text, expected) in [
            (r#""{env:KEY}""#.to_owned(), json!("s3\"cret")),
            (
                r#""a{env:KEY}b{env:KEY}c""#.into(),
                json!("as3\"cretbs3\"cretc"),
            ),
            (r#""[{env:NOT_SET}{env:EMPTY}]""#.into(), json!("[]")),
            (r#""{file:sub/x}""#.into(), json!("line \"1\"\nline 2")),
            (
                r#""{file:./{env:DIR}/x}""#.into(),
                json!("line \"1\"\nline 2"),
            ),
            (
                format!(r#""{{file:{absolute}}}""#),
                json!("line \"1\"\nline 2"),
            ),
            (r#""{file:~/h}""#.into(), json!("home")),
            (
                r#"["{env:KEY}", 1, {"{env:DIR}": "{env:DIR}"}]"#.into(),
                json!(["s3\"cret", 1, {"sub": "sub"}]),
            ),
            (
                r#""{env:} {other:x} {env:""#.into(),
                json!("{env:} {other:x} {env:"),
            ),
            ("{\"a\": 1 // {file:missing}\n}".into(), json!({"a": 1})),
        ] {
            assert_eq!(
                run(&text, dir.path(), home.path()).unwrap(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn missing_file_is_named() {
        let folder = Path::new("/nonexistent-folder");
        let error = run("{\n \"a\": {\"b\": \"x {file:key.txt}\"}}", folder, folder).unwrap_err();
        insta::assert_snapshot!(error, @"opencode.json:2:13: /a/b: cannot read {file:key.txt}: /nonexistent-folder/key.txt: no such file");
        insta::assert_snapshot!(error.hint().unwrap(), @"create the file or correct the path; a relative path starts at the folder of opencode.json");
        assert_eq!(error.code(), "config.file_reference");
    }

    #[test]
    fn a_forbidden_file_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("forbidden"), "secret").unwrap();
        let error = run("{\"a\": \"{file:forbidden}\"}", dir.path(), dir.path()).unwrap_err();
        let text = error.to_string();
        assert!(text.ends_with("it is forbidden"), "{text}");
    }
}
