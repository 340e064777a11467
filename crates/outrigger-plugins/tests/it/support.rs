use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use outrigger_config::{PluginScope, PluginSource, PluginSpec, SkippedPlugin};
use outrigger_js::{HostHandler, Lookup, Refused, SdkAnswer};
use outrigger_kernel::hooks::HookPoint;
use outrigger_plugins::{
    ConsentFn, LoadOptions, Notice, PipelineContext, PipelineResult, PluginRules, PluginSettings,
    PluginStatus, Plugins, Progress, SERVER_URL, Stage,
};
use outrigger_protocol::custom_points::EventEmit;
use outrigger_protocol::hook::HookRecord;
use outrigger_protocol::rpc::{Log, SdkRequest, SdkResponse, ToolAsk, ToolMetadata};
use outrigger_protocol::turn::HookPayload;
use outrigger_sandbox::Spawner;
use outrigger_sandbox::path_masks::Covers;
use serde_json::{Value, json};

pub(crate) use outrigger_test_support::process::WAIT_TIMEOUT;
pub(crate) use outrigger_test_support::skip::skip;

/// No call takes so long, however busy the machine.
pub(crate) const PLENTY: Duration = Duration::from_secs(60);
/// A deadline that is to be missed, beside calls that have to keep it: enough for those, and not too much to wait for.
pub(crate) const HANGS: Duration = Duration::from_secs(3);

/// A project with a data and a cache folder.
pub(crate) struct Project {
    /// The folder below the root that is the project.
    pub(crate) directory: &'static str,
    pub(crate) root: tempfile::TempDir,
    pub(crate) settings: PluginSettings,
    pub(crate) runtimes: Lookup,
    /// Starts the processes of plugins.
    pub(crate) spawner: Spawner,
    pub(crate) handler: Arc<Handler>,
    pub(crate) consent: Option<ConsentFn>,
    pub(crate) commands: Option<outrigger_plugins::CommandHooks>,
    pub(crate) trust: Option<outrigger_plugins::TrustFn>,
    pub(crate) skipped: Vec<SkippedPlugin>,
    pub(crate) admits: Option<outrigger_plugins::AdmitFn>,
    pub(crate) seen: Arc<Mutex<Vec<Progress>>>,
    pub(crate) notices: Arc<Mutex<Vec<Notice>>>,
}

/// Answers permissions by a table and records its calls.
#[derive(Default)]
pub(crate) struct Handler {
    pub(crate) asked: Mutex<Vec<ToolAsk>>,
    /// Paths of requests.
    pub(crate) paths: Mutex<Vec<String>>,
    pub(crate) reported: Mutex<Vec<ToolMetadata>>,
    /// First lines of what the host script logged.
    pub(crate) logged: Mutex<Vec<String>>,
    /// What chains of points of plugins did.
    pub(crate) ran: Mutex<Vec<HookRecord>>,
    /// Whose requests of the client those were.
    pub(crate) claimed: Mutex<Vec<Option<String>>>,
    /// Events of plugins.
    pub(crate) emitted: Mutex<Vec<EventEmit>>,
}

impl HostHandler for Handler {
    fn sdk(&self, request: SdkRequest) -> BoxFuture<'_, SdkAnswer> {
        self.paths.lock().unwrap().push(request.path.clone());
        self.claimed.lock().unwrap().push(request.plugin.clone());
        Box::pin(async move {
            SdkResponse {
                status: 404,
                headers: Vec::new(),
                body: request.path,
                stream: false,
            }
            .into()
        })
    }
    fn ask(&self, ask: ToolAsk) -> BoxFuture<'_, Result<(), String>> {
        let answer = if ask.permission == "forbidden" {
            Err("refused by the test".to_owned())
        } else {
            Ok(())
        };
        self.asked.lock().unwrap().push(ask);
        Box::pin(async move { answer })
    }
    fn metadata(&self, metadata: ToolMetadata) {
        self.reported.lock().unwrap().push(metadata);
    }
    fn emit(&self, emit: EventEmit) -> BoxFuture<'_, Result<(), Refused>> {
        self.emitted.lock().unwrap().push(emit);
        Box::pin(async move { Ok(()) })
    }
    fn ran(&self, records: Vec<HookRecord>) {
        self.ran.lock().unwrap().extend(records);
    }
    fn stage(&self, _: outrigger_protocol::rpc::Stage) {}
    fn log(&self, process: &str, log: Log) {
        eprintln!("[{process}] {} {}", log.level, log.message);
        // As the agent does.
        tracing::warn!("[plugin:{process}] {}", log.message);
        let line = log.message.lines().next().unwrap_or_default().to_owned();
        self.logged.lock().unwrap().push(line);
    }
}

/// Bun of `OUTRIGGER_BUN` or `PATH`, else the one that the repository's test tools bring, else Node.
pub(crate) fn runtimes() -> Lookup {
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

impl Project {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["project", "plugins"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        let mut settings = PluginSettings::default();
        // Nothing misses them but what hangs; a test that waits for that sets its own, for the plugin that hangs alone where it can.
        settings.deadlines.normal = PLENTY;
        settings.deadlines.load = PLENTY;
        settings.js.install = outrigger_config::settings::Install::Auto;
        Self {
            directory: "project",
            root,
            settings,
            runtimes: runtimes(),
            spawner: Spawner::new().unwrap(),
            handler: Arc::default(),
            consent: None,
            commands: None,
            trust: None,
            skipped: Vec::new(),
            admits: None,
            seen: Arc::default(),
            notices: Arc::default(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// A plugin file with this source.
    pub(crate) fn plugin(&self, name: &str, source: &str) -> PluginSpec {
        let path = self.path("plugins").join(format!("{name}.mjs"));
        std::fs::write(&path, source).unwrap();
        self.spec(&format!("file://{}", path.display()))
    }

    pub(crate) fn spec(&self, spec: &str) -> PluginSpec {
        PluginSpec {
            spec: spec.to_owned(),
            options: None,
            declared_in: self.path("project/opencode.json"),
            source: PluginSource::Config,
            scope: PluginScope::Local,
        }
    }

    pub(crate) fn rules(&mut self, plugin: &str, rules: PluginRules) {
        self.settings.plugins.insert(plugin.to_owned(), rules);
    }

    /// Gives the hooks of this plugin a deadline of their own: they are to miss it, and what others do is not held to it.
    pub(crate) fn hook_deadline(&mut self, plugin: &str, deadline: Duration) {
        let rules = self.settings.plugins.entry(plugin.to_owned()).or_default();
        rules.hook_deadline = Some(deadline);
    }

    pub(crate) async fn load(&self, plugins: Vec<PluginSpec>) -> Plugins {
        let seen = Arc::clone(&self.seen);
        Plugins::load(LoadOptions {
            plugins,
            skipped: self.skipped.clone(),
            admits: self.admits.clone(),
            bundled: Vec::new(),
            settings: self.settings.clone(),
            directory: self.path(self.directory),
            worktree: PathBuf::from("/"),
            project: json!({"id": "global"}),
            server_url: SERVER_URL.to_owned(),
            covers: Arc::new(|| Ok(Covers::default())),
            spawner: self.spawner.clone(),
            installers: Spawner::new().unwrap(),
            runtimes: self.runtimes.clone(),
            data: self.path("data"),
            cache: self.path("cache"),
            user_config: None,
            install_modules: false,
            consent: self.consent.clone(),
            commands: self.commands.clone(),
            trust: self.trust.clone(),
            let_count: None,
            handler: self.handler.clone(),
            progress: Arc::new(move |progress| seen.lock().unwrap().push(progress)),
            notice: {
                let notices = Arc::clone(&self.notices);
                Arc::new(move |notice| notices.lock().unwrap().push(notice))
            },
            redact: Some(Arc::new(|_, _| {})),
            now: || 1_700_000_000_000,
        })
        .await
    }

    /// The stages that a plugin went through.
    pub(crate) fn stages(&self, plugin: &str) -> String {
        let seen = self.seen.lock().unwrap();
        let stages: Vec<String> = seen
            .iter()
            .filter(|p| p.plugin == plugin)
            .map(|p| p.stage.to_string())
            .collect();
        stages.join(" ")
    }
}

/// A plugin that appends its name to `output.system` and says how often it did.
pub(crate) fn appender(name: &str) -> String {
    format!(
        r#"export default async () => {{
          let calls = 0
          return {{ "experimental.chat.system.transform": async (input, output) => {{
            calls++
            output.system.push("{name}" + calls)
          }} }}
        }}"#
    )
}

/// Runs `experimental.chat.system.transform` over an empty list.
pub(crate) async fn system(plugins: &Plugins) -> PipelineResult {
    run(
        plugins,
        "experimental.chat.system.transform",
        json!({}),
        json!({"system": []}),
    )
    .await
}

pub(crate) async fn run(
    plugins: &Plugins,
    point: &str,
    input: Value,
    output: Value,
) -> PipelineResult {
    plugins
        .pipeline()
        .run(
            HookPoint::parse(point).unwrap(),
            vec![HookPayload::new(input, output)],
            PipelineContext::default(),
        )
        .await
}

/// `a1 b2` of a system transform.
pub(crate) fn system_texts(result: &PipelineResult) -> String {
    let texts: Vec<&str> = result.outputs[0]["system"]
        .as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap())
        .collect();
    texts.join(" ")
}

/// `a1 b2 | a ok, b timeout` of a system transform.
pub(crate) fn summary(result: &PipelineResult) -> String {
    let runs: Vec<String> = result
        .records
        .iter()
        .map(|r| format!("{} {}", r.plugin, r.outcome))
        .collect();
    format!("{} | {}", system_texts(result), runs.join(", "))
}

/// `id stage code` of every plugin.
pub(crate) fn listed(plugins: &Plugins) -> String {
    let line = |status: PluginStatus| match status.cause {
        Some(cause) => format!("{} {} {}", status.id, status.stage, cause.code),
        None => format!("{} {}", status.id, status.stage),
    };
    plugins
        .list()
        .into_iter()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

pub(crate) fn status(plugins: &Plugins, id: &str) -> PluginStatus {
    plugins
        .list()
        .into_iter()
        .find(|status| status.id == id)
        .unwrap()
}

pub(crate) fn message(plugins: &Plugins, id: &str) -> String {
    status(plugins, id).cause.unwrap().message
}

/// By stage, how many plugins are there.
pub(crate) fn count(plugins: &Plugins) -> BTreeMap<Stage, usize> {
    let mut count = BTreeMap::new();
    for status in plugins.list() {
        *count.entry(status.stage).or_default() += 1;
    }
    count
}

/// A search path on which there is nothing.
pub(crate) fn nothing() -> Lookup {
    Lookup {
        path: OsString::from("/nowhere"),
        ..Lookup::default()
    }
}

/// Waits until something is so.
pub(crate) async fn wait_for(what: &str, is: impl Fn() -> bool) {
    let end = Instant::now() + WAIT_TIMEOUT;
    while !is() {
        assert!(Instant::now() < end, "{what}: not within {WAIT_TIMEOUT:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What a plugin reports, with one word for what the sandbox refuses: a write is `EROFS` where the system has views,
/// else `EACCES`.
pub(crate) fn refusals(text: &str) -> String {
    text.replace("EROFS", "EACCES")
}
