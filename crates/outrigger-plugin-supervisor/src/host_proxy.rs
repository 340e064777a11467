//! Proxy between one plugin process and the host's handler: reports the progress of loading, and makes call numbers unique
//! in the host.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_js::{HostHandler, Refused, SdkAnswer};
use outrigger_plugin_status::{Notice, NoticeFn};
use outrigger_protocol::Millis;
use outrigger_protocol::custom_points::{EventEmit, PointCall, PointCalled};
use outrigger_protocol::hook::HookRecord;
use outrigger_protocol::login::AuthGet;
use outrigger_protocol::rpc::{
    HookFailed, Log, RanCalls, SdkRequest, SdkResponse, Stage, ToolAsk, ToolMetadata,
};
use outrigger_stdx::sync::lock;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::failures::{Failures, MAX_FAILURES};
use outrigger_plugin_registry::access::rights::Access;

/// Maximum number of background hook calls that a process reports at once.
const MAX_CALLS: usize = 1024;

/// Numbers of calls are local to a process; prefixed with the process's serial number they are unique in the host.
const CALL_BITS: u32 = 40;

/// Returns the host-wide number of a call, as [`ToolAsk::call`] and [`ToolMetadata::call`] carry it to the host's handler.
#[must_use]
pub fn host_call(serial: u64, call: u64) -> u64 {
    (serial << CALL_BITS) | (call & ((1 << CALL_BITS) - 1))
}

/// Result of a call of a declared point: the answer, and the records.
pub type Ran = (Result<PointCalled, Refused>, Vec<HookRecord>);

/// The points and events that the only plugin of a process declared.
pub trait CustomPoints: Send + Sync {
    /// Runs the chain of a point.
    fn call(&self, call: PointCall) -> BoxFuture<'_, Ran>;

    /// Checks whether the plugin may publish an event; returns its depth, or the refusal to record.
    fn emit(&self, emit: &EventEmit) -> Result<u32, (Refused, Option<Box<HookRecord>>)>;
}

/// Creates them for a plugin, by its index and name.
pub type CustomPointsFn = Arc<dyn Fn(usize, String) -> Box<dyn CustomPoints> + Send + Sync>;

/// The plugins of a process, and what the only one of it may do.
pub(crate) struct Members {
    /// Their ids.
    pub(crate) ids: Vec<String>,
    /// Access of the only plugin, if it has a manifest.
    pub(crate) access: Option<Access>,
    /// Its custom points.
    pub(crate) points: Option<Box<dyn CustomPoints>>,
}

/// The handler that a process is started with.
pub(crate) struct HostProxy {
    inner: Arc<dyn HostHandler>,
    serial: u64,
    members: Members,
    stages: Mutex<BTreeMap<String, String>>,
    ticks: watch::Sender<u64>,
    starting: Box<dyn Fn(&str) + Send + Sync>,
    /// Notified of refusals.
    notice: NoticeFn,
    failures: Failures,
}

impl HostProxy {
    /// Creates the proxy. `starting` is called before a plugin's functions are called, `notice` for refusals.
    pub(crate) fn new(
        inner: Arc<dyn HostHandler>,
        serial: u64,
        members: Members,
        starting: impl Fn(&str) + Send + Sync + 'static,
        notice: NoticeFn,
        now: fn() -> Millis,
    ) -> Arc<Self> {
        Arc::new(Self {
            inner,
            serial,
            members,
            stages: Mutex::default(),
            ticks: watch::Sender::new(0),
            starting: Box::new(starting),
            notice,
            failures: Failures::new(now),
        })
    }

    /// Returns a value that changes whenever loading progresses.
    pub(crate) fn ticks(&self) -> watch::Receiver<u64> {
        self.ticks.subscribe()
    }

    /// Returns whether no other plugin's code has run in the process yet.
    pub(crate) fn is_alone(&self, plugin: &str) -> bool {
        let stages = lock(&self.stages);
        stages.keys().all(|other| other == plugin)
    }

    /// Returns the plugin that sent a request. With a single plugin no claim is needed; otherwise a claim is accepted only
    /// for plugins in this process.
    fn sender(&self, claimed: Option<String>) -> Option<String> {
        match self.members.ids.as_slice() {
            [one] => Some(one.clone()),
            all => claimed.filter(|name| all.contains(name)),
        }
    }

    fn refused(&self, rule: &str, request: String) {
        (self.notice)(Notice::Refused {
            plugins: self.members.ids.clone(),
            request,
            rule: rule.to_owned(),
        });
    }

    /// Returns the stage of a plugin's loading: `importing`, `starting`, `ready`, `failed`.
    pub(crate) fn stage_of(&self, plugin: &str) -> Option<String> {
        lock(&self.stages).get(plugin).cloned()
    }
}

/// Returns the answer to a request that a plugin's manifest does not declare.
fn not_asked_for(request: &SdkRequest) -> SdkAnswer {
    let route = format!("{} {}", request.method, request.path);
    let message = format!("{route} is not among `permissions.client` of the plugin's manifest");
    SdkResponse {
        status: 403,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: json!({ "name": "Forbidden", "data": { "message": message } }).to_string(),
        stream: false,
    }
    .into()
}

/// Returns the refusal for a plugin without a manifest: only a manifest declares points, and a plugin that shares a
/// process has none.
fn no_manifest(name: &str) -> Refused {
    let message =
        format!("cannot reach {name}: the plugin has no outrigger.plugin.toml that declares it");
    Refused::new("custom_point.undeclared", message)
}

impl HostHandler for HostProxy {
    fn sdk(&self, mut request: SdkRequest) -> BoxFuture<'_, SdkAnswer> {
        request.plugin = self.sender(request.plugin.take());
        let refused = self
            .members
            .access
            .as_ref()
            .is_some_and(|access| !access.has_route(&request.method, &request.path));
        if refused {
            let path = request.path.split('?').next().unwrap_or_default();
            self.refused("permissions.client", format!("{} {path}", request.method));
            let answer = not_asked_for(&request);
            return Box::pin(async move { answer });
        }
        self.inner.sdk(request)
    }

    fn ask(&self, mut ask: ToolAsk) -> BoxFuture<'_, Result<(), String>> {
        ask.call = host_call(self.serial, ask.call);
        self.inner.ask(ask)
    }

    /// In a shared process a plugin's name is a claim: it is accepted only for plugins in that process.
    fn credential(&self, get: AuthGet) -> BoxFuture<'_, Result<Value, String>> {
        let hosted = self
            .members
            .access
            .as_ref()
            .is_some_and(|access| access.hosted);
        if self.members.ids.contains(&get.plugin) && !hosted {
            return self.inner.credential(get);
        }
        let AuthGet { plugin, provider } = get;
        let request = format!("the credential of {provider} for {plugin}");
        self.refused("credential.member", request);
        Box::pin(async move { Err(format!("{plugin} is not in this process")) })
    }

    fn metadata(&self, mut metadata: ToolMetadata) {
        metadata.call = host_call(self.serial, metadata.call);
        self.inner.metadata(metadata);
    }

    fn call_point(&self, call: PointCall) -> BoxFuture<'_, Result<PointCalled, Refused>> {
        Box::pin(async move {
            let Some(points) = &self.members.points else {
                self.refused(
                    "custom_point.undeclared",
                    format!("the point {}", call.point),
                );
                return Err(no_manifest(&call.point));
            };
            let (answer, records) = points.call(call).await;
            self.inner.ran(records);
            answer
        })
    }

    fn emit(&self, mut emit: EventEmit) -> BoxFuture<'_, Result<(), Refused>> {
        Box::pin(async move {
            let Some(points) = &self.members.points else {
                self.refused(
                    "custom_point.undeclared",
                    format!("the event {}", emit.event),
                );
                return Err(no_manifest(&emit.event));
            };
            match points.emit(&emit) {
                Ok(depth) => emit.depth = depth,
                Err((refused, record)) => {
                    let records = record.into_iter().map(|record| *record);
                    self.inner.ran(records.collect());
                    return Err(refused);
                }
            }
            self.inner.emit(emit).await
        })
    }

    fn ran(&self, records: Vec<HookRecord>) {
        self.inner.ran(records);
    }

    fn sdk_deadline(&self, request: &SdkRequest) -> Duration {
        self.inner.sdk_deadline(request)
    }

    fn observed(&self, calls: Vec<RanCalls>) {
        let is_theirs = |it: &RanCalls| {
            self.members.ids.contains(&it.plugin.0)
                && matches!(it.hook.as_str(), "event" | "dispose")
                && it.ms.len() <= MAX_CALLS
                && it.ms.iter().all(|ms| ms.is_finite() && *ms >= 0.0)
        };
        let calls: Vec<_> = calls.into_iter().filter(is_theirs).collect();
        if !calls.is_empty() {
            self.inner.observed(calls);
        }
    }

    fn failed(&self, failed: HookFailed) {
        if !self.members.ids.contains(&failed.plugin) {
            return;
        }
        let record = self.failures.record(failed, || {
            let cause = format!("more than {MAX_FAILURES} of its hooks that nobody waits for failed within a minute; more are counted and not listed");
            (self.notice)(Notice::Limit { plugins: self.members.ids.clone(), cause });
        });
        let shared = self.members.ids.len() > 1;
        let record = record.map(|mut record| {
            record.audit.claimed = shared;
            record
        });
        self.inner.ran(record.into_iter().collect());
    }

    fn stage(&self, stage: Stage) {
        if stage.stage == "starting" {
            (self.starting)(&stage.plugin);
        }
        lock(&self.stages).insert(stage.plugin.clone(), stage.stage.clone());
        self.ticks.send_modify(|tick| *tick += 1);
        self.inner.stage(stage);
    }

    fn log(&self, process: &str, log: Log) {
        self.inner.log(process, log);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records the senders of requests, and failures.
    #[derive(Default)]
    struct Listens(Mutex<Vec<Option<String>>>, Mutex<Vec<HookRecord>>);

    impl HostHandler for Listens {
        fn sdk(&self, request: SdkRequest) -> BoxFuture<'_, SdkAnswer> {
            self.0.lock().unwrap().push(request.plugin.clone());
            Box::pin(async move { not_asked_for(&request) })
        }
        fn ask(&self, _: ToolAsk) -> BoxFuture<'_, Result<(), String>> {
            Box::pin(async { Ok(()) })
        }
        fn metadata(&self, _: ToolMetadata) {}
        fn credential(&self, _: AuthGet) -> BoxFuture<'_, Result<Value, String>> {
            Box::pin(async { Ok(json!("a key")) })
        }
        fn ran(&self, records: Vec<HookRecord>) {
            self.1.lock().unwrap().extend(records);
        }
        fn stage(&self, _: Stage) {}
        fn log(&self, _: &str, _: Log) {}
    }

    /// In a shared process a plugin can claim at most to be another one in it, and gets no other's credential.
    #[tokio::test]
    async fn a_request_is_that_of_a_member_and_refusals_are_reported() {
        let notices: Arc<Mutex<Vec<Notice>>> = Arc::default();
        let proxy = |members: &[&str], access: Option<Access>| {
            let listens = Arc::new(Listens::default());
            let notices = Arc::clone(&notices);
            let members = members.iter().map(|it| (*it).to_owned()).collect();
            let notice: NoticeFn = Arc::new(move |it| notices.lock().unwrap().push(it));
            let inner = Arc::clone(&listens) as Arc<dyn HostHandler>;
            let proxy = HostProxy::new(
                inner,
                1,
                Members {
                    ids: members,
                    access,
                    points: None,
                },
                |_: &str| {},
                notice,
                || 0,
            );
            (proxy, listens)
        };
        let get = |path: &str, plugin: Option<&str>| SdkRequest {
            method: "GET".to_owned(),
            path: path.to_owned(),
            plugin: plugin.map(str::to_owned),
            headers: Vec::new(),
            body: None,
        };
        for (members, claims, counts) in [
            (&["a", "b"][..], Some("b"), Some("b")),
            (&["a", "b"], Some("c"), None),
            (&["a", "b"], None, None),
            (&["a"], Some("c"), Some("a")),
        ] {
            let (proxy, listens) = proxy(members, None);
            proxy.sdk(get("/session", claims)).await;
            let heard = listens.0.lock().unwrap().pop().unwrap();
            assert_eq!(heard.as_deref(), counts, "{members:?} {claims:?}");
        }
        assert!(notices.lock().unwrap().is_empty());
        let one = |plugin: &str| AuthGet {
            plugin: plugin.to_owned(),
            provider: "acme".to_owned(),
        };
        let (shared, _) = proxy(&["a", "b"], None);
        assert!(shared.credential(one("a")).await.is_ok());
        assert!(shared.credential(one("c")).await.is_err());
        let access = Access {
            client: Some(vec!["GET /session".to_owned()]),
            ..Access::default()
        };
        let (alone, listens) = proxy(&["a"], Some(access));
        alone.sdk(get("/session", None)).await;
        alone.sdk(get("/config?x=secret", None)).await;
        assert_eq!(listens.0.lock().unwrap().len(), 1);
        let refused: Vec<String> = notices
            .lock()
            .unwrap()
            .iter()
            .map(|it| match it {
                Notice::Refused {
                    plugins,
                    request,
                    rule,
                } => format!("{}: {request}: {rule}", plugins.join(" ")),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(
            refused,
            [
                "a b: the credential of acme for c: credential.member",
                "a: GET /config: permissions.client",
            ]
        );
    }

    /// A failure is attributed to a plugin in the process; with several, the process claims which.
    #[tokio::test]
    async fn a_failure_is_that_of_a_member() {
        for (members, claims, counts) in [
            (&["a"][..], "a", Some(false)),
            (&["a"], "b", None),
            (&["a", "b"], "b", Some(true)),
        ] {
            let listens = Arc::new(Listens::default());
            let members = members.iter().map(|it| (*it).to_owned()).collect();
            let proxy = HostProxy::new(
                Arc::clone(&listens) as Arc<dyn HostHandler>,
                1,
                Members {
                    ids: members,
                    access: None,
                    points: None,
                },
                |_: &str| {},
                Arc::new(|_| {}),
                || 0,
            );
            proxy.failed(HookFailed {
                plugin: claims.to_owned(),
                hook: "event".to_owned(),
                message: "no".to_owned(),
                session: None,
                ms: 0.0,
            });
            let ran = listens.1.lock().unwrap();
            let claimed: Vec<bool> = ran.iter().map(|it| it.audit.claimed).collect();
            assert_eq!(claimed, counts.into_iter().collect::<Vec<_>>(), "{claims}");
        }
    }

    #[test]
    fn calls_of_different_processes_have_different_numbers() {
        assert_ne!(host_call(1, 7), host_call(2, 7));
        assert_eq!(host_call(1, 7) & 0xFF, 7);
    }
}
