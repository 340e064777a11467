//! Between one plugin process and the host's handler: tells how far loading is, and gives calls numbers of the whole host.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use outrigger_js::{HostHandler, Refused, SdkAnswer};
use outrigger_protocol::hook::HookRecord;
use outrigger_protocol::login::AuthGet;
use outrigger_protocol::own::{EventEmit, PointCall, PointCalled};
use outrigger_protocol::rpc::{Log, SdkRequest, SdkResponse, Stage, ToolAsk, ToolMetadata};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::manifest::Access;
use crate::own::Desk;

/// Numbers of calls are each process's own; with the process's serial number in front they are the host's.
const CALL_BITS: u32 = 40;

/// The host-wide number of a call, as [`ToolAsk::call`] and [`ToolMetadata::call`] carry it to the host's handler.
#[must_use]
pub(crate) fn host_call(serial: u64, call: u64) -> u64 {
    (serial << CALL_BITS) | (call & ((1 << CALL_BITS) - 1))
}

/// The handler that a process is started with.
pub(crate) struct Relay {
    inner: Arc<dyn HostHandler>,
    serial: u64,
    members: Vec<String>,
    /// What the one plugin of the process may reach, where it has a manifest.
    access: Option<Access>,
    /// Where it reaches what it declared.
    desk: Option<Desk>,
    stages: Mutex<BTreeMap<String, String>>,
    ticks: watch::Sender<u64>,
    starting: Box<dyn Fn(&str) + Send + Sync>,
}

impl Relay {
    /// `starting` is told when a plugin's functions are about to be called.
    pub(crate) fn new(
        inner: Arc<dyn HostHandler>,
        serial: u64,
        (members, access): (Vec<String>, Option<Access>),
        desk: Option<Desk>,
        starting: impl Fn(&str) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            inner,
            serial,
            members,
            access,
            desk,
            stages: Mutex::default(),
            ticks: watch::Sender::new(0),
            starting: Box::new(starting),
        })
    }

    /// Changes whenever a plugin's loading goes on.
    pub(crate) fn ticks(&self) -> watch::Receiver<u64> {
        self.ticks.subscribe()
    }

    /// Whether no other plugin's code has come into the process yet.
    pub(crate) fn is_alone(&self, plugin: &str) -> bool {
        let stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
        stages.keys().all(|other| other == plugin)
    }

    /// Whose request it is. Where one plugin is alone that needs no claim, and a claim counts for those that live here.
    fn sender(&self, claimed: Option<String>) -> Option<String> {
        match self.members.as_slice() {
            [one] => Some(one.clone()),
            all => claimed.filter(|name| all.contains(name)),
        }
    }

    /// How far a plugin's loading is: `importing`, `starting`, `ready`, `failed`.
    pub(crate) fn stage_of(&self, plugin: &str) -> Option<String> {
        self.stages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(plugin)
            .cloned()
    }
}

/// The answer to a request that a plugin's manifest does not name.
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

/// Only a manifest declares, and whoever shares a process has none.
fn no_manifest(name: &str) -> Refused {
    let message = format!(
        "{name} cannot be reached: the plugin has no outrigger.plugin.toml that declares it"
    );
    Refused::new("own.undeclared", message)
}

impl HostHandler for Relay {
    fn sdk(&self, mut request: SdkRequest) -> BoxFuture<'_, SdkAnswer> {
        request.plugin = self.sender(request.plugin.take());
        let refused = self
            .access
            .as_ref()
            .is_some_and(|access| !access.has_route(&request.method, &request.path));
        if refused {
            let answer = not_asked_for(&request);
            return Box::pin(async move { answer });
        }
        self.inner.sdk(request)
    }

    fn ask(&self, mut ask: ToolAsk) -> BoxFuture<'_, Result<(), String>> {
        ask.call = host_call(self.serial, ask.call);
        self.inner.ask(ask)
    }

    /// In one process a plugin's name is a claim: it counts only for those that live there.
    fn credential(&self, get: AuthGet) -> BoxFuture<'_, Result<Value, String>> {
        let hosted = self.access.as_ref().is_some_and(|access| access.hosted);
        if self.members.contains(&get.plugin) && !hosted {
            return self.inner.credential(get);
        }
        Box::pin(async move { Err(format!("{} is not in this process", get.plugin)) })
    }

    fn metadata(&self, mut metadata: ToolMetadata) {
        metadata.call = host_call(self.serial, metadata.call);
        self.inner.metadata(metadata);
    }

    fn call_point(&self, call: PointCall) -> BoxFuture<'_, Result<PointCalled, Refused>> {
        Box::pin(async move {
            let Some(desk) = &self.desk else {
                return Err(no_manifest(&call.point));
            };
            let (answer, records) = desk.call(call).await;
            self.inner.ran(records);
            answer
        })
    }

    fn emit(&self, emit: EventEmit) -> BoxFuture<'_, Result<(), Refused>> {
        Box::pin(async move {
            let Some(desk) = &self.desk else {
                return Err(no_manifest(&emit.event));
            };
            if let Err((refused, record)) = desk.emit(&emit) {
                self.inner
                    .ran(record.into_iter().map(|record| *record).collect());
                return Err(refused);
            }
            self.inner.emit(emit).await
        })
    }

    fn ran(&self, records: Vec<HookRecord>) {
        self.inner.ran(records);
    }

    fn stage(&self, stage: Stage) {
        if stage.stage == "starting" {
            (self.starting)(&stage.plugin);
        }
        self.stages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(stage.plugin.clone(), stage.stage.clone());
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

    #[test]
    fn calls_of_different_processes_have_different_numbers() {
        assert_ne!(host_call(1, 7), host_call(2, 7));
        assert_eq!(host_call(1, 7) & 0xFF, 7);
    }
}
