//! `lsp` of `opencode.json`: absent or `false` for none, `true` for the known servers, an object to change and add some.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::root::Root;
use crate::servers::{KNOWN, Needs};

/// A server that may be started.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Server {
    pub(crate) id: String,
    /// With their dots; a whole name (`Dockerfile`) matches a file without one. Empty: every file.
    pub(crate) extensions: Vec<String>,
    pub(crate) root: Root,
    pub(crate) command: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) options: Initial,
    /// The user configured it; then its command need not be on `PATH`.
    pub(crate) configured: bool,
}

/// `initializationOptions`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Initial {
    Of(Needs),
    Given(Value),
}

impl Server {
    /// Returns whether it handles files like this.
    pub(crate) fn takes(&self, file: &Path) -> bool {
        let name = |part: Option<&std::ffi::OsStr>| part.map(|p| p.to_string_lossy().into_owned());
        let of_file = match name(file.extension()) {
            Some(extension) => format!(".{extension}"),
            None => name(file.file_name()).unwrap_or_default(),
        };
        self.extensions.is_empty() || self.extensions.contains(&of_file)
    }
}

/// Returns the names of the known servers.
#[must_use]
pub fn built_in() -> Vec<&'static str> {
    KNOWN.iter().map(|known| known.id).collect()
}

/// Returns the servers of a configuration, in OpenCode's order: the known ones, then those that are only configured.
pub(crate) fn servers(value: Option<&Value>) -> Vec<Server> {
    let configured = match value {
        None | Some(Value::Null | Value::Bool(false)) => return Vec::new(),
        Some(Value::Object(servers)) => Some(servers),
        Some(_) => None,
    };
    let mut all: Vec<Server> = KNOWN
        .iter()
        .map(|known| Server {
            id: known.id.to_owned(),
            extensions: texts(known.extensions),
            root: known.root,
            command: texts(known.command),
            env: Vec::new(),
            options: Initial::Of(known.needs),
            configured: false,
        })
        .collect();
    for (id, entry) in configured.into_iter().flatten() {
        let at = all.iter().position(|server| server.id == *id);
        if entry.get("disabled") == Some(&Value::Bool(true)) {
            if let Some(at) = at {
                all.remove(at);
            }
            continue;
        }
        let Some(server) = configure(id, entry, at.and_then(|at| all.get(at))) else {
            tracing::warn!("[lsp] `lsp.{id}` has no `command`; skipped");
            continue;
        };
        match at.and_then(|at| all.get_mut(at)) {
            Some(old) => *old = server,
            None => all.push(server),
        }
    }
    all
}

fn configure(id: &str, entry: &Value, known: Option<&Server>) -> Option<Server> {
    let list = |key: &str| texts_at(entry, key);
    let command = list("command").filter(|command| !command.is_empty())?;
    Some(Server {
        id: id.to_owned(),
        extensions: list("extensions")
            .or_else(|| known.map(|known| known.extensions.clone()))
            .unwrap_or_default(),
        root: known.map_or(Root::Directory, |known| known.root),
        command,
        env: variables_at(entry, "env"),
        options: Initial::Given(entry.get("initialization").cloned().unwrap_or(Value::Null)),
        configured: true,
    })
}

/// Returns a list of texts in an entry; skips other values. `None` if there is no list.
#[must_use]
pub fn texts_at(entry: &Value, key: &str) -> Option<Vec<String>> {
    let list = entry.get(key)?.as_array()?;
    let texts = list.iter().filter_map(|v| v.as_str().map(str::to_owned));
    Some(texts.collect())
}

/// Returns names and values of an entry; skips values that are not text.
#[must_use]
pub fn variables_at(entry: &Value, key: &str) -> Vec<(String, String)> {
    entry
        .get(key)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

/// Returns the program to start, if it exists.
pub(crate) fn program(server: &Server, root: &Path, path: &std::ffi::OsStr) -> Option<PathBuf> {
    let name = server.command.first()?;
    if name.contains('/') && Path::new(name).is_relative() {
        return Some(root.join(name));
    }
    let found = outrigger_sandbox::which(name, path);
    // The start then reports what is missing; for a known server that was not configured, no report is needed.
    found.or_else(|| server.configured.then(|| PathBuf::from(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn off_on_and_changed() {
        for off in [None, Some(json!(false)), Some(Value::Null)] {
            assert!(servers(off.as_ref()).is_empty());
        }
        assert_eq!(servers(Some(&json!(true))).len(), KNOWN.len());
        assert_eq!(servers(Some(&json!({}))).len(), KNOWN.len());
        let config = json!({
            "rust": {"disabled": true},
            "gopls": {"command": ["my-gopls", "-v"], "env": {"A": "1"}, "initialization": {"b": 2}},
            "acme": {"command": ["acme-ls"], "extensions": [".acme", "Acmefile"]},
            "none": {"extensions": [".x"]},
            "any": {"command": ["any-ls"]},
        });
        let all = servers(Some(&config));
        let of = |id: &str| all.iter().find(|server| server.id == id);
        assert!(of("rust").is_none() && of("none").is_none());
        let gopls = of("gopls").unwrap();
        assert_eq!(gopls.command, ["my-gopls", "-v"]);
        assert_eq!(gopls.extensions, [".go"]);
        assert_eq!(gopls.env, [("A".to_owned(), "1".to_owned())]);
        assert_eq!(gopls.options, Initial::Given(json!({"b": 2})));
        assert_eq!(
            gopls.root,
            Root::Either(&["go.work"], &["go.mod", "go.sum"])
        );
        let acme = of("acme").unwrap();
        for (file, takes) in [
            ("/a/b.acme", true),
            ("/a/Acmefile", true),
            ("/a/acme", false),
            ("/a/b.go", false),
        ] {
            assert_eq!(acme.takes(Path::new(file)), takes, "{file}");
        }
        assert!(of("any").unwrap().takes(Path::new("/a/b.c")));
    }
}
