//! One running server: its initialisation, the files sent to it, and waiting for its diagnostics.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use outrigger_sandbox::Spec;
use outrigger_sandbox::process_time::{Instant, sleep_until, timeout_at};
use serde_json::{Value, json};

use crate::content::Content;
use crate::documents::Documents;
use crate::error::LspError;
use crate::lsp::{Limits, Options};
use crate::process::Process;
use crate::{language, uri};

/// How long after diagnostics a server may send better ones (OpenCode's figure).
const SETTLING: Duration = Duration::from_millis(150);
/// After this many silences in a row, a server is not waited for until it sends something.
const SILENCES: u32 = 2;
/// Maximum number of files sent to one server.
const MAX_FILES: usize = 2_000;
/// Kinds of listed symbols (classes, functions, enums, interfaces, variables, constants, structs, methods).
const KINDS: [u64; 8] = [5, 12, 6, 11, 13, 14, 23, 10];
/// Maximum number of symbols of one server.
const MAX_SYMBOLS: usize = 10;

/// The start parameters of a server.
pub(crate) struct Start<'a> {
    pub(crate) id: &'a str,
    pub(crate) root: &'a Path,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    pub(crate) options: Value,
}

struct SentFile {
    version: i64,
    /// Line and character (UTF-16) of its end, for servers that accept changes only as ranges.
    end: (usize, usize),
}

/// An initialised server.
pub(crate) struct Client {
    process: Process,
    documents: Arc<Documents>,
    content: Content,
    /// Held while a file is sent, so that versions are sent in order.
    sent: tokio::sync::Mutex<HashMap<PathBuf, SentFile>>,
    by_range: bool,
    answers: bool,
    wants_saves: bool,
    silences: AtomicU32,
    limits: Limits,
}

impl Client {
    /// Starts the process and performs the first exchange.
    ///
    /// # Errors
    /// Those of the process, and of `initialize`.
    pub(crate) async fn start(start: Start<'_>, options: &Options) -> Result<Self, LspError> {
        let Options {
            spawner, limits, ..
        } = options;
        let limits = *limits;
        let documents = Arc::new(Documents::new(
            start.id,
            start.options.clone(),
            start.root.to_path_buf(),
        ));
        let spec = Spec::new(&start.program)
            .args(&start.args)
            .cwd(start.root)
            .vars(start.env);
        let handler = Arc::clone(&documents);
        let process = Process::start(start.id, &start.program, spec, spawner, handler).await?;
        let given = start.options.as_object().is_some_and(|o| !o.is_empty());
        let initialize = initialize(start.root, process.pid(), &start.options);
        let answer = process
            .request("initialize", &initialize, limits.start)
            .await?;
        process.notify("initialized", &json!({}));
        if given {
            let settings = json!({"settings": start.options});
            process.notify("workspace/didChangeConfiguration", &settings);
        }
        let sync = answer.pointer("/capabilities/textDocumentSync");
        let change = sync.and_then(|sync| sync.as_u64().or_else(|| sync.get("change")?.as_u64()));
        let save = sync.and_then(|sync| sync.get("save"));
        let diagnostic = answer.pointer("/capabilities/diagnosticProvider");
        Ok(Self {
            process,
            documents,
            content: Content::new(&options.directory, &options.worktree, &options.may_see),
            sent: tokio::sync::Mutex::default(),
            by_range: change == Some(2),
            answers: diagnostic.is_some_and(|d| !d.is_null() && *d != Value::Bool(false)),
            wants_saves: save.is_some_and(|s| !s.is_null() && *s != Value::Bool(false)),
            silences: AtomicU32::new(0),
            limits,
        })
    }

    /// Returns why it has ended, if it has.
    pub(crate) fn gone(&self) -> Option<LspError> {
        self.process.gone()
    }

    pub(crate) fn diagnostics(&self) -> BTreeMap<PathBuf, Vec<Value>> {
        self.documents.all()
    }

    /// Sends the current content of a file; returns its version on the server, or `None` if it was not sent.
    pub(crate) async fn send(&self, path: &Path) -> Option<i64> {
        let mut files = self.sent.lock().await;
        let bytes = tokio::task::spawn_blocking({
            let (content, path) = (self.content.clone(), path.to_path_buf());
            move || content.read(&path)
        });
        let bytes = bytes.await.ok()?.inspect_err(|error| {
            tracing::debug!("not sent to language servers: {}: {error}", path.display());
        });
        let text = String::from_utf8_lossy(&bytes.ok()?).into_owned();
        let uri = uri::of_path(path);
        let end = end_of(&text);
        let before = files.get(path).map(|file| (file.version, file.end));
        let kind = if before.is_some() { 2 } else { 1 };
        let watched = json!({"changes": [{"uri": uri, "type": kind}]});
        self.process
            .notify("workspace/didChangeWatchedFiles", &watched);
        let (version, sent) = match before {
            Some((version, (line, character))) => {
                let version = version + 1;
                let change = if self.by_range {
                    json!({"range": {"start": {"line": 0, "character": 0}, "end": {"line": line, "character": character}}, "text": text})
                } else {
                    json!({"text": text})
                };
                let params = json!({"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]});
                (
                    version,
                    self.process.notify("textDocument/didChange", &params),
                )
            }
            None if files.len() >= MAX_FILES => return None,
            None => {
                self.documents.forget(path);
                let document = json!({"uri": uri, "languageId": language::of(path), "version": 0, "text": text});
                let params = json!({"textDocument": document});
                (0, self.process.notify("textDocument/didOpen", &params))
            }
        };
        if !sent {
            return None;
        }
        if self.wants_saves && before.is_some() {
            let params = json!({"textDocument": {"uri": uri}});
            self.process.notify("textDocument/didSave", &params);
        }
        files.insert(path.to_path_buf(), SentFile { version, end });
        Some(version)
    }

    /// Waits for the diagnostics of a version of a file that was sent at `since`: pushed, or pulled if the server
    /// supports it. Returns whether there were any.
    pub(crate) async fn wait(&self, path: &Path, version: i64, since: Instant) -> bool {
        let timeout = if self.silences.load(Ordering::Relaxed) >= SILENCES {
            self.limits.after_silences
        } else {
            self.limits.document
        };
        let end = since + timeout;
        let spoke = timeout_at(end, self.settled(path, version, since))
            .await
            .is_ok();
        if spoke {
            self.silences.store(0, Ordering::Relaxed);
        } else {
            self.silences.fetch_add(1, Ordering::Relaxed);
        }
        spoke
    }

    async fn settled(&self, path: &Path, version: i64, since: Instant) {
        let mut news = self.documents.news();
        loop {
            if self.pull(path).await {
                return;
            }
            let registered = self.documents.registered();
            loop {
                if let Some(at) = self.spoken(path, version, since) {
                    sleep_until(at + SETTLING).await;
                    // Better ones may have arrived in the meantime; then those must settle.
                    if self.spoken(path, version, since) == Some(at) {
                        return;
                    }
                    continue;
                }
                if self.gone().is_some() || news.changed().await.is_err() {
                    return std::future::pending().await;
                }
                if self.documents.registered() != registered {
                    break;
                }
            }
        }
    }

    /// Returns when the server last published valid diagnostics for this version.
    fn spoken(&self, path: &Path, version: i64, since: Instant) -> Option<Instant> {
        let published = self.documents.published(path)?;
        let counts = match published.version {
            Some(of) => of == version,
            None => published.at >= since,
        };
        counts.then_some(published.at)
    }

    /// Requests the diagnostics of a file, if the server supports that; returns whether it answered.
    async fn pull(&self, path: &Path) -> bool {
        let mut identifiers = self.documents.registered();
        if self.answers {
            identifiers.insert(0, None);
            identifiers.dedup();
        }
        let mut matched = false;
        for identifier in identifiers {
            let mut params = json!({"textDocument": {"uri": uri::of_path(path)}});
            if let (Some(identifier), Some(fields)) = (identifier, params.as_object_mut()) {
                fields.insert("identifier".to_owned(), identifier.into());
            }
            let wait = self.limits.answer;
            if let Ok(answer) = self
                .process
                .request("textDocument/diagnostic", &params, wait)
                .await
            {
                matched |= self.documents.pulled(path, answer);
            }
        }
        matched
    }

    /// Sends a request to the server.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: &Value,
        wait: Duration,
    ) -> Result<Value, LspError> {
        self.process.request(method, params, wait).await
    }

    /// Returns some symbols of the workspace by name.
    pub(crate) async fn symbols(&self, query: &str) -> Vec<Value> {
        let params = json!({"query": query});
        let answer = self
            .process
            .request("workspace/symbol", &params, self.limits.answer)
            .await;
        let Ok(Value::Array(list)) = answer else {
            return Vec::new();
        };
        let wanted = |symbol: &Value| {
            let kind = symbol.get("kind").and_then(Value::as_u64);
            kind.is_some_and(|kind| KINDS.contains(&kind))
                && symbol.pointer("/location/range").is_some()
        };
        list.into_iter().filter(wanted).take(MAX_SYMBOLS).collect()
    }

    pub(crate) async fn close(&self, grace: Duration) {
        self.process.close(grace).await;
    }
}

fn initialize(root: &Path, pid: u32, options: &Value) -> Value {
    let uri = uri::of_path(root);
    let options = if options.is_object() {
        options.clone()
    } else {
        json!({})
    };
    json!({
        "processId": pid,
        "clientInfo": {"name": "outrigger", "version": env!("CARGO_PKG_VERSION")},
        "rootUri": uri,
        "workspaceFolders": [{"name": "workspace", "uri": uri}],
        "initializationOptions": options,
        "capabilities": {
            "window": {"workDoneProgress": true},
            "workspace": {
                "configuration": true,
                "workspaceFolders": true,
                "didChangeWatchedFiles": {"dynamicRegistration": true},
                "diagnostics": {"refreshSupport": false},
                "symbol": {},
            },
            "textDocument": {
                "synchronization": {"didSave": true},
                "diagnostic": {"dynamicRegistration": true, "relatedDocumentSupport": true},
                "publishDiagnostics": {"versionSupport": false},
            },
        },
    })
}

fn end_of(text: &str) -> (usize, usize) {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let last = text.rsplit('\n').next().unwrap_or_default();
    (text.matches('\n').count(), last.encode_utf16().count())
}

#[cfg(test)]
mod tests {
    #[test]
    fn ends_of_texts() {
        for (text, end) in [
            ("", (0, 0)),
            ("ab", (0, 2)),
            ("a\n", (1, 0)),
            ("a\r\nb\rc\u{1F600}", (2, 3)),
        ] {
            assert_eq!(super::end_of(text), end, "{text:?}");
        }
    }
}
