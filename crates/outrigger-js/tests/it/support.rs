//! A process over a project of plugin files, under every installed runtime.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use outrigger_js::{
    HostHandler, JsError, JsProcess, JsRuntime, Lookup, OutputLog, RuntimeKind, SdkAnswer,
    StartOptions, Transfer, default_policy,
};
use outrigger_protocol::hook::{Change, HookOutcome};
use outrigger_protocol::rpc::{
    HandlerRef, HookFailed, HookResult, HookRun, Initialize, Initialized, Log, OpenField,
    PluginEntry, SdkRequest, SdkResponse, Stage, ToolAsk, ToolMetadata, ToolRun,
};
use outrigger_protocol::turn::HookPayload;
use outrigger_sandbox::{Limits, Spawner, env};
use serde_json::{Value, json};

/// Long enough for a loaded machine; no test waits for it to pass.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// For calls that are to hang.
pub(crate) const SHORT: Duration = Duration::from_millis(700);

/// Node, and Bun when it is found through `OUTRIGGER_BUN`, `PATH` or the repo's own tools.
pub(crate) fn runtimes() -> Vec<JsRuntime> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let node = JsRuntime::find(&Lookup {
        path: path.clone(),
        node: Some("node".into()),
        ..Lookup::default()
    });
    let mut found = vec![node.expect("the tests need Node 20 or later on PATH")];
    match bun() {
        Some(bun) => found.push(bun.clone()),
        None => eprintln!(
            "NOTE: no Bun (OUTRIGGER_BUN, PATH, .work/tools): its rows are run with Node only"
        ),
    }
    found
}

pub(crate) fn bun() -> Option<&'static JsRuntime> {
    static BUN: OnceLock<Option<JsRuntime>> = OnceLock::new();
    BUN.get_or_init(|| {
        let mut lookup = Lookup::from_env(None, None);
        lookup.node = None;
        JsRuntime::find(&lookup)
            .ok()
            .filter(|runtime| runtime.kind == RuntimeKind::Bun)
            .or_else(|| repo_bun().map(|path| JsRuntime::at(RuntimeKind::Bun, path)))
    })
    .as_ref()
}

/// What the repo's set-up command installs. Without npm's install scripts `.bin/bun` is a text that says so, and the
/// program lies in the package of the platform.
fn repo_bun() -> Option<PathBuf> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.work/tools/node_modules");
    let packages = fs::read_dir(modules.join("@oven"))
        .into_iter()
        .flatten()
        .flatten();
    let mut places: Vec<PathBuf> = packages
        .map(|package| package.path().join("bin/bun"))
        .collect();
    places.push(modules.join(".bin/bun"));
    places
        .into_iter()
        .find(|path| fs::metadata(path).is_ok_and(|meta| meta.len() > 1_000_000))
        .and_then(|path| fs::canonicalize(path).ok())
}

/// What plugins requested and reported, and how requests are answered.
#[derive(Default)]
pub(crate) struct Host {
    pub(crate) sdk: Mutex<Vec<SdkRequest>>,
    pub(crate) metadata: Mutex<Vec<ToolMetadata>>,
    pub(crate) stages: Mutex<Vec<String>>,
    pub(crate) logs: Mutex<Vec<String>>,
    /// Requests to `/slow` wait for this.
    pub(crate) gate: tokio::sync::Notify,
    pub(crate) slow: Mutex<VecDeque<String>>,
    /// Answers to `/stream/SIZE`.
    pub(crate) streams: crate::streams::Streams,
}

impl HostHandler for Host {
    fn sdk(&self, request: SdkRequest) -> BoxFuture<'_, SdkAnswer> {
        self.sdk.lock().unwrap().push(request.clone());
        if let Some(size) = request.path.strip_prefix("/stream/") {
            let answer = self.streams.open(size);
            return Box::pin(async move { answer });
        }
        Box::pin(async move {
            if request.path.starts_with("/slow") {
                self.slow.lock().unwrap().push_back(request.path.clone());
                self.gate.notified().await;
            }
            let status = if request.path.starts_with("/missing") {
                404
            } else {
                200
            };
            let body = if request.path.starts_with("/echo") {
                request.body.clone().unwrap_or_default()
            } else {
                json!({"method": request.method, "path": request.path}).to_string()
            };
            SdkResponse {
                status,
                headers: vec![("content-type".into(), "application/json".into())],
                body,
                stream: false,
            }
            .into()
        })
    }

    fn sdk_deadline(&self, request: &SdkRequest) -> Duration {
        if request.path.starts_with("/slow/late") {
            Duration::from_millis(200)
        } else {
            LONG
        }
    }

    fn ask(&self, ask: ToolAsk) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let refused = ask
                .patterns
                .iter()
                .any(|pattern| pattern.contains("secret"));
            if refused {
                Err(format!("{} was refused", ask.permission))
            } else {
                Ok(())
            }
        })
    }

    fn metadata(&self, metadata: ToolMetadata) {
        // On the task that reads the channel.
        if let Some(file) = metadata.metadata.get(HOLD).and_then(Value::as_str) {
            let limit = Instant::now() + LONG;
            while !Path::new(file).exists() && Instant::now() < limit {
                std::thread::sleep(Duration::from_millis(5));
            }
            assert!(Path::new(file).exists(), "{file} never came");
        }
        self.metadata.lock().unwrap().push(metadata);
    }

    fn stage(&self, stage: Stage) {
        self.stages
            .lock()
            .unwrap()
            .push(format!("{}:{}", stage.plugin, stage.stage));
    }

    fn failed(&self, failed: HookFailed) {
        let line = format!("{} of {}: {}", failed.hook, failed.plugin, failed.message);
        self.logs.lock().unwrap().push(line);
    }

    fn log(&self, _process: &str, log: Log) {
        self.logs.lock().unwrap().push(log.message);
    }
}

/// A tool's report with this in its metadata keeps the host from reading until the file of that name exists.
const HOLD: &str = "hold";

/// A project, a private folder, and the files of plugins.
pub(crate) struct Room {
    _root: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) host: Arc<Host>,
    pub(crate) runtime: JsRuntime,
}

impl Room {
    pub(crate) fn new(runtime: &JsRuntime) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(temp.path()).unwrap();
        for folder in ["project/.opencode/plugin", "private/tmp"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        Self {
            _root: temp,
            root,
            host: Arc::default(),
            runtime: runtime.clone(),
        }
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A plugin file in the project, named after the plugin.
    pub(crate) fn plugin(&self, name: &str, text: &str) -> PluginEntry {
        let file = if name.contains('.') {
            name.to_owned()
        } else {
            format!("{name}.mjs")
        };
        let path = self.file(&format!("project/.opencode/plugin/{file}"), text);
        let id = name.split('.').next().unwrap().to_owned();
        PluginEntry {
            id,
            entry: format!("file://{}", path.display()),
            from_path: true,
            options: None,
            tools: None,
            facade: None,
        }
    }

    pub(crate) fn initialize(&self, plugins: Vec<PluginEntry>) -> Initialize {
        Initialize {
            directory: self.root.join("project").display().to_string(),
            worktree: self.root.join("project").display().to_string(),
            project: json!({"id": "global", "worktree": "/"}),
            server_url: "http://outrigger.localhost/".into(),
            plugins,
            ..Initialize::default()
        }
    }

    pub(crate) async fn start(&self) -> Result<JsProcess, JsError> {
        self.start_as(|_| {}).await
    }

    pub(crate) async fn start_as(
        &self,
        change: impl FnOnce(&mut StartOptions),
    ) -> Result<JsProcess, JsError> {
        let private = self.root.join("private");
        let mut env = env::allow_list(&[]);
        env.retain(|(name, _)| !name.to_string_lossy().starts_with("XDG_"));
        for (name, path) in [("HOME", private.clone()), ("TMPDIR", private.join("tmp"))] {
            env.push((name.into(), path.into()));
        }
        let plugins = [self.root.join("project"), self.root.join("modules")];
        let mut options = StartOptions {
            runtime: self.runtime.clone(),
            spawner: spawner(),
            policy: Some(default_policy(
                &self.runtime.path,
                &self.root.join("project"),
                &plugins,
                &private,
            )),
            proxy_redirect: None,
            env,
            limits: Limits::default(),
            scripts: self.root.join("scripts"),
            name: "test".into(),
            handler: Arc::clone(&self.host) as Arc<dyn HostHandler>,
            output: OutputLog::default(),
            deadline: LONG,
            transfer: Transfer::default(),
        };
        change(&mut options);
        JsProcess::start(options).await
    }

    /// Starts a process and loads plugins given as name and source.
    pub(crate) async fn load(&self, plugins: &[(&str, &str)]) -> (JsProcess, Initialized) {
        let entries = plugins
            .iter()
            .map(|(name, text)| self.plugin(name, text))
            .collect();
        let process = self.start().await.unwrap();
        let loaded = process
            .initialize(&self.initialize(entries), LONG)
            .await
            .unwrap();
        (process, loaded)
    }
}

fn spawner() -> Spawner {
    static SPAWNER: OnceLock<Spawner> = OnceLock::new();
    SPAWNER.get_or_init(|| Spawner::new().unwrap()).clone()
}

pub(crate) fn handler(plugin: &str) -> HandlerRef {
    HandlerRef {
        plugin: plugin.into(),
        instance: 0,
    }
}

/// Everything may be changed.
pub(crate) fn anything() -> Vec<OpenField> {
    vec![OpenField {
        key: "*".into(),
        kind: "any".into(),
        required: false,
    }]
}

pub(crate) fn run(hook: &str, plugins: &[&str], output: Value) -> HookRun {
    HookRun {
        hook: hook.into(),
        handlers: plugins.iter().map(|plugin| handler(plugin)).collect(),
        open: anything(),
        items: vec![HookPayload::new(json!({"sessionID": "ses_1"}), output)],
        chain: None,
    }
}

/// Runs a hook and answers the results of its handlers.
pub(crate) async fn hook(process: &JsProcess, run: &HookRun) -> Vec<HookResult> {
    let mut results = Vec::new();
    process
        .hook_run(run, LONG, |result| results.push(result))
        .await
        .unwrap();
    results
}

/// What it changed.
pub(crate) fn items(result: &HookResult) -> &[Vec<Change>] {
    match &result.outcome {
        HookOutcome::Patch(patch) => &patch.items,
        _ => &[],
    }
}

/// `path=value` for each change, `path=-` for a deletion; or the error.
pub(crate) fn show(result: &HookResult) -> String {
    match &result.outcome {
        HookOutcome::Continue => "unchanged".to_owned(),
        HookOutcome::Patch(patch) => {
            let items: Vec<String> = patch.items.iter().map(|it| show_changes(it)).collect();
            items.join(" | ")
        }
        HookOutcome::Failed(failure) => format!("! {failure}"),
        HookOutcome::Block(block) => format!("! {}", block.record_text()),
    }
}

fn show_changes(changes: &[Change]) -> String {
    let one = |change: &Change| {
        let path: Vec<String> = change
            .path
            .iter()
            .map(|key| {
                serde_json::to_value(key)
                    .unwrap()
                    .to_string()
                    .trim_matches('"')
                    .to_owned()
            })
            .collect();
        let value = change
            .value
            .as_ref()
            .map_or("-".to_owned(), Value::to_string);
        format!("{}={value}", path.join("."))
    };
    changes.iter().map(one).collect::<Vec<_>>().join(" ")
}

pub(crate) fn tool_run(plugin: &str, tool: &str, args: Value) -> ToolRun {
    let context = json!({
        "sessionID": "ses_1", "messageID": "msg_1", "callID": "call_1", "agent": "build",
        "directory": "/d", "worktree": "/w", "extra": {"model": {"id": "m"}}, "messages": [],
    });
    let Value::Object(context) = context else {
        unreachable!()
    };
    ToolRun {
        handler: handler(plugin),
        tool: tool.into(),
        args,
        context,
        chain: None,
    }
}
