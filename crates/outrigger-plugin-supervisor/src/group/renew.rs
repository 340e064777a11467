//! Replaces a process by its next generation while it runs (C7): the new one is started and checked for an answer, then calls go
//! to it, and calls in progress end in the old one. If the new one fails, the old one continues.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outrigger_plugin_status::Stage;
use outrigger_protocol::rpc::LoadedPlugin;
use outrigger_sandbox::process_time::{self, Instant};

use super::start::alone;
use super::{Fault, Group, Live};
use crate::blame::PING;
use crate::launch::{Failed, Loaded, Order};
use crate::reconfigure::{Next, configure_next};
use crate::watch::health::{Rhythm, check_old};
use crate::watch::resource_limits::{Gauge, Verdict};
use outrigger_plugin_registry::access::settings::ProcessLimits;
use outrigger_plugin_registry::error::PluginError;

/// Time that the plugins of an old generation may take to dispose of their resources.
const DISPOSE: Duration = Duration::from_secs(5);
/// Interval between measurements of an old generation.
const USAGE_INTERVAL: Duration = Duration::from_secs(1);
/// Interval between checks whether the last call has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

impl Live {
    /// Returns a file that is hidden from the process and was replaced by another one, which is not hidden.
    pub(crate) fn replaced(&self) -> Option<&Path> {
        self.held.hidden.replaced()
    }

    /// Ends a process that gets no new calls, and cancels what is still held of it.
    pub fn end(&self, cause: &str) {
        self.gone.send_replace(Some(Fault::by_host(cause)));
        self.process.kill();
    }
}

impl Group {
    /// Replaces the process. Returns the new generation.
    ///
    /// # Errors
    /// Why the new process is unusable. Nothing has changed then.
    pub async fn renew(self: &Arc<Self>) -> Result<u64, PluginError> {
        self.renew_when(|| {}).await
    }

    /// Like [`Group::renew`]; `ready` is called when the new process answers, right before calls find its handlers.
    ///
    /// # Errors
    /// As for [`Group::renew`]; `ready` has not been called then.
    pub async fn renew_when(self: &Arc<Self>, ready: impl FnOnce()) -> Result<u64, PluginError> {
        let state = self.state.lock().await;
        let members = state.members.clone();
        let registry = &self.launch.registry;
        let stages: Vec<Option<Stage>> = members
            .iter()
            .map(|index| registry.stage_now(*index))
            .collect();
        let made = self.next(&members, ready).await;
        if made.is_err() {
            for (index, stage) in members.iter().zip(stages) {
                registry.stage(*index, stage.unwrap_or(Stage::Active));
            }
        }
        made
    }

    /// Removes plugins that moved to their own process: the next generation is started without them.
    pub async fn remove(&self, moved: &[usize]) {
        let mut state = self.state.lock().await;
        state.members.retain(|member| !moved.contains(member));
    }

    async fn next(
        self: &Arc<Self>,
        members: &[usize],
        ready: impl FnOnce(),
    ) -> Result<u64, PluginError> {
        let registry = &self.launch.registry;
        let (mut loaded, next) = self.load_next(members).await?;
        ready();
        // Nothing waits from here on: a caller that finds the new handlers finds the new process.
        for (index, answer) in members.iter().zip(std::mem::take(&mut loaded.plugins)) {
            registry.adopt(*index, answer);
        }
        for (index, configured) in next.configured {
            registry.configured_as(index, configured);
        }
        registry.warn_all(next.warnings);
        let (old, generation) = self.replace(loaded, members)?;
        if let Some(old) = old {
            self.retire(old);
        }
        Ok(generation)
    }

    pub(super) fn failed(&self, message: &str) -> PluginError {
        PluginError::Process {
            process: self.name.clone(),
            message: message.to_owned(),
        }
    }

    /// Starts the new process, with its plugins loaded and their `config` hooks called.
    ///
    /// # Errors
    /// Why it is unusable.
    async fn load_next(&self, members: &[usize]) -> Result<(Loaded, Next), PluginError> {
        let registry = &self.launch.registry;
        let started = self.launch.start(&self.name, members, Order::OneByOne);
        let loaded = started.await.map_err(|error| match error {
            Failed::Process(error) | Failed::Culprit(_, error) => error,
            Failed::Unclear => self.failed("it did not answer while it loaded plugins"),
        })?;
        for (index, answer) in members.iter().zip(&loaded.plugins) {
            if let Some(error) = registry.refuses(*index, answer) {
                return Err(error);
            }
        }
        let deadline = self.launch.settings.deadlines.load;
        let answers: Vec<(usize, &LoadedPlugin)> =
            members.iter().copied().zip(&loaded.plugins).collect();
        let given = self.launch.configured.get();
        let next = configure_next(&loaded.process, registry, &answers, given, deadline)
            .await
            .map_err(|(_, error)| error)?;
        // It has loaded everything; now it must answer like a process in use.
        if !loaded.process.responds(PING).await {
            return Err(self.failed("its new generation does not answer"));
        }
        Ok((loaded, next))
    }

    /// Directs calls to the new process. Returns the old one, and the new generation.
    fn replace(
        &self,
        loaded: Loaded,
        members: &[usize],
    ) -> Result<(Option<Arc<Live>>, u64), PluginError> {
        let mut slot = self.slot();
        if slot.closed {
            return Err(self.failed("its plugins have been disposed of"));
        }
        slot.generation += 1;
        let live = Arc::new(Live::new(loaded, slot.generation));
        self.flush(&mut slot, &live);
        slot.alone = alone(members);
        if let Some(processes) = self.table.upgrade() {
            processes.begins(self.key, &live);
        }
        slot.fault = None;
        Ok((slot.live.replace(live), slot.generation))
    }

    /// Lets calls in progress end in the old process, and then ends it.
    fn retire(&self, old: Arc<Live>) {
        let settings = &self.launch.settings;
        let (longest, limits) = (settings.deadlines.tool, settings.limits);
        let name = self.name.clone();
        if let (Some(every), true) = (settings.health, settings.self_heal) {
            let deadline = settings.deadlines.normal;
            check_old(name.clone(), &old, Rhythm { every, deadline });
        }
        tokio::spawn(async move { drain(&name, old, longest, limits).await });
    }
}

/// Waits until no call is open in a process, and ends it; by force if that takes too long or it exceeds its limits.
async fn drain(name: &str, mut old: Arc<Live>, longest: Duration, limits: ProcessLimits) {
    let began = Instant::now();
    let end = began + longest;
    let mut gauge = Gauge::default();
    let mut looked = began;
    loop {
        if looked.elapsed() >= USAGE_INTERVAL {
            looked = Instant::now();
            if let Some(Verdict::Stop(cause)) = read(&mut gauge, &old, began.elapsed(), &limits) {
                tracing::warn!(
                    "plugin process {name} (its generation before this one): {cause}; it is ended"
                );
                old.end(&cause);
                return;
            }
        }
        match Arc::try_unwrap(old) {
            Ok(live) => {
                if let Err(error) = live.process.shutdown(DISPOSE).await {
                    tracing::debug!("plugin process {name}: {error}");
                }
                return;
            }
            Err(held) if Instant::now() >= end || !held.process.is_alive() => {
                held.process.kill();
                return;
            }
            Err(held) => {
                old = held;
                process_time::sleep(POLL_INTERVAL).await;
            }
        }
    }
}

fn read(gauge: &mut Gauge, live: &Live, now: Duration, limits: &ProcessLimits) -> Option<Verdict> {
    let usage = outrigger_sandbox::usage::usage(live.process.pid())?;
    gauge.read(now, usage, live.process.is_working(), limits)
}
