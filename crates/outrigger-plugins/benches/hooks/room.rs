//! A project with one plugin whose hooks do next to nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_config::{PluginScope, PluginSource, PluginSpec};
use outrigger_js::{HostHandler, JsRuntime, Lookup, SdkAnswer};
use outrigger_kernel::hooks::HookPoint;
use outrigger_plugins::{LoadOptions, PipelineContext, PluginSettings, Plugins, SERVER_URL};
use outrigger_protocol::history::History;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::rpc::{Log, SdkRequest, SdkResponse, Stage, ToolAsk, ToolMetadata};
use outrigger_protocol::turn::HookPayload;
use outrigger_sandbox::Spawner;
use outrigger_sandbox::path_masks::Covers;
use outrigger_store::Redactor;
use serde_json::{Value, json};

use crate::Way;

const PLUGIN: &str = r#"let works = 0;
// 12 MB: what ten thousand messages of 1 KB take, and more than caches hold.
const memory = new Float64Array(1_500_000);
let at = 0;
const walk = () => {
  for (let i = 0; i < 2_000; i++) memory[at = (at + 8) % memory.length] += 1;
};
export default async () => ({
  "chat.params": async (input) => {
    if (input.works !== undefined) works = input.works;
  },
  "chat.headers": async (input, output) => {
    const { user, system } = process.cpuUsage();
    output.headers.cpu = String(user + system);
  },
  "experimental.chat.messages.transform": async (input, output) => {
    if (output.messages.length === 0) throw new Error("no messages");
    for (const until = performance.now() + works; performance.now() < until;) walk();
  },
  "tool.execute.after": (input, output) => {
    if (input.tool === "title") output.title = `${output.title} (checked)`;
    if (input.tool === "output") output.output = `${output.output}\nchecked`;
  },
  "experimental.chat.system.transform": (input) => {
    if (input.fault === "spins") for (;;) {}
    if (input.fault === "waits") return new Promise(() => {});
  },
});"#;

struct Nobody;

impl HostHandler for Nobody {
    fn sdk(&self, request: SdkRequest) -> BoxFuture<'_, SdkAnswer> {
        let answer = SdkResponse {
            status: 404,
            headers: Vec::new(),
            body: request.path,
            stream: false,
        };
        Box::pin(async move { answer.into() })
    }
    fn ask(&self, _: ToolAsk) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
    fn metadata(&self, _: ToolMetadata) {}
    fn stage(&self, _: Stage) {}
    fn log(&self, process: &str, log: Log) {
        eprintln!("[{process}] {} {}", log.level, log.message);
    }
}

pub(crate) struct Room {
    root: tempfile::TempDir,
    plugins: Plugins,
    pub(crate) runtime: JsRuntime,
    pub(crate) spawner: Spawner,
}

impl Room {
    pub(crate) async fn new(way: Way) -> Self {
        Self::with(settings(way)).await
    }

    pub(crate) async fn with(settings: PluginSettings) -> Self {
        Self::recording(settings, true).await
    }

    /// A project whose records have the values that hooks changed, or not.
    pub(crate) async fn recording(settings: PluginSettings, values: bool) -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("project")).unwrap();
        let file = root.path().join("plugin.mjs");
        std::fs::write(&file, PLUGIN).unwrap();
        let runtimes = runtimes();
        let spawner = Spawner::new().unwrap();
        let plugins = Plugins::load(LoadOptions {
            plugins: vec![PluginSpec {
                spec: format!("file://{}", file.display()),
                options: None,
                declared_in: root.path().join("project/opencode.json"),
                source: PluginSource::Config,
                scope: PluginScope::Local,
            }],
            skipped: Vec::new(),
            admits: None,
            bundled: Vec::new(),
            settings,
            directory: root.path().join("project"),
            worktree: PathBuf::from("/"),
            project: json!({"id": "global"}),
            server_url: SERVER_URL.to_owned(),
            spawner: spawner.clone(),
            installers: spawner.clone(),
            runtimes: runtimes.clone(),
            data: root.path().join("data"),
            cache: root.path().join("cache"),
            user_config: None,
            install_modules: false,
            consent: None,
            commands: None,
            trust: None,
            let_count: None,
            handler: Arc::new(Nobody),
            covers: Arc::new(|| Ok(Covers::default())),
            progress: Arc::new(|_| {}),
            notice: Arc::new(|_| {}),
            redact: values.then(|| {
                let redactor = Redactor::default();
                Arc::new(move |name: &str, value: &mut Value| redactor.clean_value(name, value))
                    as _
            }),
            now: || 1_700_000_000_000,
        })
        .await;
        assert!(
            plugins.pipeline().has(HookPoint::LlmBeforeParams),
            "the plugin is not there: {:?}",
            plugins.list()
        );
        Self {
            root,
            plugins,
            runtime: JsRuntime::find(&runtimes).unwrap(),
            spawner,
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.root.path()
    }

    /// The outcomes of a call of a hook that does what `fault` says.
    pub(crate) async fn system(&self, fault: Option<&str>) -> Vec<String> {
        let item = HookPayload::new(json!({"fault": fault}), json!({"system": []}));
        let context = PipelineContext::default();
        let pipeline = self.plugins.pipeline();
        let result = pipeline
            .run(HookPoint::LlmBeforeSystem, vec![item], context)
            .await;
        result
            .records
            .into_iter()
            .map(|record| record.outcome.to_string())
            .collect()
    }

    async fn run(&self, point: HookPoint, item: HookPayload) -> Value {
        let context = PipelineContext {
            session: Some(SessionId("ses_00000000000000000000000000".into())),
            ..PipelineContext::default()
        };
        let mut result = self
            .plugins
            .pipeline()
            .run(point, vec![item], context)
            .await;
        assert!(
            result
                .records
                .iter()
                .all(|record| record.outcome.name() == "ok"),
            "{:?}",
            result.records
        );
        result.outputs.pop().unwrap()
    }

    pub(crate) async fn empty(&self) {
        self.run(
            HookPoint::LlmBeforeParams,
            HookPayload::new(json!({}), json!({})),
        )
        .await;
    }

    /// A hook behind a call that printed this: it changes the field that is named, or nothing. Returns how many values the
    /// record has of that.
    pub(crate) async fn behind_a_call(&self, changes: &str, printed: &str) -> usize {
        let input = json!({"tool": changes, "sessionID": "ses_1", "callID": "call_1", "args": {}});
        let output = json!({"title": "a.rs", "output": printed, "metadata": {}});
        let pipeline = self.plugins.pipeline();
        let items = vec![HookPayload::new(input, output)];
        let context = PipelineContext::default();
        let result = pipeline
            .run(HookPoint::ToolAfterResult, items, context)
            .await;
        assert_eq!(result.records.len(), 1, "{:?}", result.records);
        let record = result.records.first().unwrap();
        assert_eq!(record.outcome.name(), "ok", "{record:?}");
        assert_eq!(
            record.changed.is_empty(),
            changes == "nothing",
            "{record:?}"
        );
        record.values.places.len()
    }

    /// From now on `messages.transform` takes this much longer, and walks through memory meanwhile.
    pub(crate) async fn works(&self, time: Duration) {
        let input = json!({"works": time.as_secs_f64() * 1e3});
        self.run(
            HookPoint::LlmBeforeParams,
            HookPayload::new(input, json!({})),
        )
        .await;
    }

    pub(crate) async fn transform(&self, messages: History) {
        let item = HookPayload::with_history(json!({}), messages);
        self.run(HookPoint::LlmBeforeMessages, item).await;
    }

    /// CPU time of the plugin process so far, in milliseconds, as it says itself.
    pub(crate) async fn js_cpu(&self) -> f64 {
        let item = HookPayload::new(json!({}), json!({"headers": {}}));
        let output = self.run(HookPoint::LlmBeforeHeaders, item).await;
        let micros: f64 = output["headers"]["cpu"].as_str().unwrap().parse().unwrap();
        micros / 1000.0
    }

    pub(crate) async fn end(&self) {
        self.plugins.dispose(Duration::from_secs(5)).await;
    }
}

pub(crate) fn settings(way: Way) -> PluginSettings {
    let mut settings = PluginSettings::default();
    settings.deadlines.normal = Duration::from_secs(30);
    settings.file_ipc = way != Way::Inline;
    settings.mirror = way == Way::Mirror;
    settings
}

/// CPU time of the threads of this process so far, in milliseconds.
pub(crate) fn host_cpu() -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let of = |thread: std::fs::DirEntry| {
        // A thread that has just ended has none.
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let nanos: f64 = text.split_whitespace().next()?.parse().ok()?;
        Some(nanos / 1e6)
    };
    threads.filter_map(of).sum()
}

/// Bun of `OUTRIGGER_BUN` or `PATH`, else the one that `cargo xtask setup` installed, else Node.
fn runtimes() -> Lookup {
    let mut lookup = Lookup::from_env(None, None);
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.work/tools/node_modules/@oven");
    if lookup.bun.is_none() {
        let platforms = std::fs::read_dir(tools).into_iter().flatten().flatten();
        lookup.bun = platforms
            .map(|entry| entry.path().join("bin/bun"))
            .find(|bun| bun.is_file());
    }
    lookup
}
