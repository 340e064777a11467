//! The files sent to a server, and its diagnostics for them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use outrigger_sandbox::process_time::Instant;
use outrigger_stdx::sync::lock;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::process::Handler;
use crate::uri;

/// Maximum number of files with diagnostics, and of diagnostics of one file.
const MAX_FILES: usize = 1_000;
const MAX_PER_FILE: usize = 500;
/// Maximum characters of a diagnostic's message.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// When diagnostics of a file arrived, and for which version.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Published {
    pub(crate) at: Instant,
    pub(crate) version: Option<i64>,
}

#[derive(Default)]
struct State {
    pushed: BTreeMap<PathBuf, Vec<Value>>,
    pulled: BTreeMap<PathBuf, Vec<Value>>,
    published: HashMap<PathBuf, Published>,
    /// Registrations of `textDocument/diagnostic`, with their identifier.
    registered: HashMap<String, Option<String>>,
}

/// The client's side of a server's documents.
pub(crate) struct Documents {
    state: Mutex<State>,
    news: watch::Sender<u64>,
    /// The first diagnostics of a file are only about syntax: the relevant ones follow (TypeScript's server;
    /// OpenCode's rule).
    first_is_preliminary: bool,
    options: Value,
    root: PathBuf,
}

impl Documents {
    pub(crate) fn new(id: &str, options: Value, root: PathBuf) -> Self {
        Self {
            state: Mutex::default(),
            news: watch::Sender::new(0),
            first_is_preliminary: id == "typescript",
            options,
            root,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn notify_changed(&self) {
        self.news.send_modify(|count| *count += 1);
    }

    /// Returns a channel that changes when diagnostics arrive, or the server starts or stops supporting requests for
    /// them.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    pub(crate) fn published(&self, path: &Path) -> Option<Published> {
        self.state().published.get(path).copied()
    }

    /// Drops diagnostics of a file that is being opened.
    pub(crate) fn forget(&self, path: &Path) {
        let mut state = self.state();
        state.pushed.remove(path);
        state.pulled.remove(path);
    }

    /// Returns the identifiers of registrations for requesting diagnostics; empty if there are none.
    pub(crate) fn registered(&self) -> Vec<Option<String>> {
        let mut all: Vec<Option<String>> = self.state().registered.values().cloned().collect();
        all.sort();
        all.dedup();
        all
    }

    fn publish(&self, mut params: Value) {
        let uri = params.get("uri").and_then(Value::as_str);
        let Some(path) = uri.and_then(uri::to_path) else {
            return;
        };
        let version = params.get("version").and_then(Value::as_i64);
        let list = diagnostics(params.get_mut("diagnostics").map(Value::take));
        let mut state = self.state();
        if state.pushed.len() >= MAX_FILES && !state.pushed.contains_key(&path) {
            return;
        }
        let preliminary = self.first_is_preliminary && !state.pushed.contains_key(&path);
        state.pushed.insert(path.clone(), list);
        if !preliminary {
            let now = Published {
                at: Instant::now(),
                version,
            };
            state.published.insert(path, now);
        }
        drop(state);
        self.notify_changed();
    }

    /// Handles the response to a request for diagnostics; returns whether it contains some for this file.
    pub(crate) fn pulled(&self, path: &Path, mut answer: Value) -> bool {
        let mut state = self.state();
        let mut matched = false;
        if let Some(items) = answer.get_mut("items").filter(|items| items.is_array()) {
            let list = diagnostics(Some(items.take()));
            state.pulled.insert(path.to_path_buf(), list);
            matched = true;
        }
        let related = answer
            .get_mut("relatedDocuments")
            .and_then(Value::as_object_mut);
        for (uri, document) in related.into_iter().flatten() {
            let items = document.get_mut("items").filter(|items| items.is_array());
            let (Some(other), Some(items)) = (uri::to_path(uri), items) else {
                continue;
            };
            if state.pulled.len() < MAX_FILES {
                matched |= other == path;
                let list = diagnostics(Some(items.take()));
                state.pulled.insert(other, list);
            }
        }
        matched
    }

    /// Returns all diagnostics, without duplicates.
    pub(crate) fn all(&self) -> BTreeMap<PathBuf, Vec<Value>> {
        let state = self.state();
        let paths: BTreeSet<&PathBuf> = state.pushed.keys().chain(state.pulled.keys()).collect();
        let of = |path: &PathBuf| {
            let both = state
                .pushed
                .get(path)
                .into_iter()
                .chain(state.pulled.get(path));
            let mut seen = BTreeSet::new();
            both.flatten()
                .filter(|d| seen.insert(key(d)))
                .cloned()
                .collect()
        };
        paths
            .into_iter()
            .map(|path| (path.clone(), of(path)))
            .collect()
    }

    fn register(&self, params: &Value, key: &str, on: bool) {
        let list = params.get(key).and_then(Value::as_array);
        let mut changed = false;
        for entry in list.into_iter().flatten() {
            let (Some("textDocument/diagnostic"), Some(id)) = (
                entry.get("method").and_then(Value::as_str),
                entry.get("id").and_then(Value::as_str),
            ) else {
                continue;
            };
            let mut state = self.state();
            if on && state.registered.len() < 100 {
                let identifier = entry
                    .pointer("/registerOptions/identifier")
                    .and_then(Value::as_str)
                    .map(str::to_owned);
                state.registered.insert(id.to_owned(), identifier);
            } else {
                state.registered.remove(id);
            }
            changed = true;
        }
        if changed {
            self.notify_changed();
        }
    }

    // Returns a section of the options that the server was started with; all of them without a section.
    fn setting(&self, item: &Value) -> Value {
        let section = item.get("section").and_then(Value::as_str).unwrap_or("");
        let mut parts = section.split('.').filter(|part| !part.is_empty());
        let found = parts.try_fold(&self.options, |at, part| at.get(part));
        found.cloned().unwrap_or_default()
    }
}

impl Handler for Documents {
    fn notice(&self, method: &str, params: Value) {
        if method == "textDocument/publishDiagnostics" {
            self.publish(params);
        }
    }

    fn request(&self, method: &str, params: &Value) -> Value {
        match method {
            "workspace/configuration" => params
                .get("items")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .take(1_000)
                .map(|item| self.setting(item))
                .collect(),
            "workspace/workspaceFolders" => {
                json!([{"name": "workspace", "uri": uri::of_path(&self.root)}])
            }
            "client/registerCapability" => {
                self.register(params, "registrations", true);
                Value::Null
            }
            "client/unregisterCapability" => {
                // The misspelled name is part of the protocol.
                self.register(params, "unregisterations", false);
                Value::Null
            }
            _ => Value::Null,
        }
    }
}

// Returns the identity of a diagnostic; servers that push and pull send them twice.
fn key(diagnostic: &Value) -> String {
    let parts = ["code", "severity", "message", "source", "range"];
    json!(parts.map(|part| diagnostic.get(part))).to_string()
}

fn diagnostics(list: Option<Value>) -> Vec<Value> {
    let Some(Value::Array(mut list)) = list else {
        return Vec::new();
    };
    list.retain(|d| d.get("range").is_some() && d.get("message").is_some_and(Value::is_string));
    list.truncate(MAX_PER_FILE);
    for diagnostic in &mut list {
        let Some(Value::String(message)) = diagnostic.get_mut("message") else {
            continue;
        };
        if let Some((at, _)) = message.char_indices().nth(MAX_MESSAGE_CHARS) {
            message.truncate(at);
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(message: &str) -> Value {
        json!({"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}, "severity": 1, "message": message})
    }

    fn messages(documents: &Documents) -> Vec<String> {
        documents
            .all()
            .into_iter()
            .map(|(path, list)| {
                let texts: Vec<_> = list
                    .iter()
                    .map(|d| d["message"].as_str().unwrap())
                    .collect();
                format!("{} {}", path.display(), texts.join(","))
            })
            .collect()
    }

    #[test]
    fn pushed_and_pulled_are_one_list() {
        let documents = Documents::new("x", Value::Null, "/w".into());
        documents.notice(
            "textDocument/publishDiagnostics",
            json!({"uri": "file:///w/a", "version": 3, "diagnostics": [diagnostic("one"), {"message": "no range"}]}),
        );
        assert_eq!(
            documents.published(Path::new("/w/a")).unwrap().version,
            Some(3)
        );
        let answer = json!({"kind": "full", "items": [diagnostic("one"), diagnostic("two")],
            "relatedDocuments": {"file:///w/b": {"kind": "full", "items": [diagnostic("three")]}, "x:": {"items": []}}});
        assert!(documents.pulled(Path::new("/w/a"), answer));
        assert_eq!(messages(&documents), ["/w/a one,two", "/w/b three"]);
        assert!(!documents.pulled(Path::new("/w/a"), json!({"kind": "unchanged"})));
        documents.forget(Path::new("/w/a"));
        assert_eq!(messages(&documents), ["/w/b three"]);
    }

    #[test]
    fn floods_are_cut() {
        let documents = Documents::new("x", Value::Null, "/w".into());
        for n in 0..MAX_FILES + 5 {
            let list = vec![diagnostic(&"m".repeat(5_000)); if n == 0 { 1_000 } else { 1 }];
            documents.notice(
                "textDocument/publishDiagnostics",
                json!({"uri": format!("file:///w/{n}"), "diagnostics": list}),
            );
        }
        assert_eq!(documents.state().pushed.len(), MAX_FILES);
        assert_eq!(
            documents.state().pushed[Path::new("/w/0")].len(),
            MAX_PER_FILE
        );
        let all = documents.all();
        assert_eq!(
            all[Path::new("/w/1")][0]["message"].as_str().unwrap().len(),
            MAX_MESSAGE_CHARS
        );
    }

    #[test]
    fn typescripts_first_word_is_not_its_last() {
        let documents = Documents::new("typescript", Value::Null, "/w".into());
        let push = || {
            let params = json!({"uri": "file:///w/a", "diagnostics": []});
            documents.notice("textDocument/publishDiagnostics", params);
            documents.published(Path::new("/w/a")).is_some()
        };
        assert_eq!([push(), push()], [false, true]);
    }

    #[test]
    fn what_servers_ask() {
        let options = json!({"python": {"pythonPath": "/p"}, "a": 1});
        let documents = Documents::new("x", options.clone(), "/w".into());
        let items = json!({"items": [{"section": "python.pythonPath"}, {"section": "none.x"}, {}]});
        assert_eq!(
            documents.request("workspace/configuration", &items),
            json!(["/p", null, options])
        );
        assert_eq!(
            documents.request("workspace/workspaceFolders", &Value::Null),
            json!([{"name": "workspace", "uri": "file:///w"}])
        );
        assert_eq!(
            documents.request("window/workDoneProgress/create", &Value::Null),
            Value::Null
        );
        let registration = |id: &str| json!({"id": id, "method": "textDocument/diagnostic", "registerOptions": {"identifier": "i"}});
        documents.request(
            "client/registerCapability",
            &json!({"registrations": [registration("1"), registration("2"), {"id": "3", "method": "other"}]}),
        );
        assert_eq!(documents.registered(), [Some("i".to_owned())]);
        for id in ["1", "2"] {
            let gone =
                json!({"unregisterations": [{"id": id, "method": "textDocument/diagnostic"}]});
            documents.request("client/unregisterCapability", &gone);
        }
        assert!(documents.registered().is_empty());
    }
}
