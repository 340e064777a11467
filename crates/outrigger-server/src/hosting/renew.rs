//! Detects changes of the machine without a restart (D8): an installed program, an added or removed plugin, changed user
//! settings or policy. The snapshot of each folder's plugins is rebuilt periodically, and at once after a change of the user's
//! `outrigger.toml`, which `plugin disable` writes. If it differs from what runs, the folder's agent is replaced as soon as no
//! turn runs in it; until then, plugins that should no longer run are suspended. Starting a plugin process that failed (a full
//! disk, no processes left) is retried after increasing pauses.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use outrigger_agent::{Agent, Folders, Snapshot, SnapshotEntry};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::hosting::hub::{Hub, Instance};

/// Interval of the checks.
const TICK: Duration = Duration::from_secs(1);
/// Maximum pause between retries of a failed start.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(600);

/// The state of a folder.
struct Looked {
    at: Instant,
    /// When the user's own settings were last written.
    written: Option<SystemTime>,
    /// The snapshot for which its agent was last replaced: a failed change is not retried.
    tried: Option<Snapshot>,
    /// Settings that no agent could start with, as reported.
    waiting: Vec<String>,
    /// Plugins that were suspended here because they should no longer run (C7).
    off: BTreeSet<String>,
    starts: Starts,
}

/// Retries of plugin processes that could not be started.
struct Starts {
    /// When the next retry is due.
    next: Instant,
    pause: Duration,
    under_way: Option<JoinHandle<()>>,
}

impl Starts {
    fn new() -> Self {
        Self {
            next: Instant::now(),
            pause: Duration::ZERO,
            under_way: None,
        }
    }

    /// Retries if one is due, at most once per `every`.
    fn go(&mut self, agent: &Agent, every: Duration) {
        if self.under_way.as_ref().is_some_and(|it| !it.is_finished()) {
            return;
        }
        if !agent.has_unstarted_plugins() {
            *self = Self::new();
        } else if self.next <= Instant::now() {
            self.pause = (self.pause * 2).clamp(every, MAX_RETRY_PAUSE.max(every));
            self.next = Instant::now() + self.pause;
            let agent = agent.clone();
            let start = async move { agent.start_unstarted_plugins().await };
            self.under_way = Some(tokio::spawn(start));
        }
    }
}

/// Runs the checks until the server ends.
pub(crate) async fn renew(hub: Hub) {
    let mut closing = hub.closing();
    let mut known: HashMap<PathBuf, Looked> = HashMap::new();
    loop {
        tokio::select! {
            _ = closing.wait_for(|closing| *closing) => return,
            () = tokio::time::sleep(TICK) => {}
        }
        known.retain(|directory, _| hub.knows(directory));
        let own = written(hub.folders());
        for (directory, instance) in hub.running_now() {
            let every =
                Duration::from_secs(instance.agent.config().settings.discovery.renew_seconds);
            let looked = known.entry(directory.clone()).or_insert_with(|| Looked {
                at: Instant::now(),
                // They may have changed since the agent was started, so they are checked at once.
                written: None,
                tried: None,
                waiting: Vec::new(),
                off: BTreeSet::new(),
                starts: Starts::new(),
            });
            if every.is_zero() || looked.at.elapsed() < every && looked.written == own {
                continue;
            }
            (looked.at, looked.written) = (Instant::now(), own);
            let Some(now) = snapshot(&hub, &directory, &instance, looked).await else {
                looked.starts.go(&instance.agent, every);
                continue;
            };
            let other = now.entries != instance.agent.plugin_snapshot().entries;
            if other
                && looked.tried.as_ref() != Some(&now)
                && hub
                    .replace_idle(&directory, &changed(&instance, &now))
                    .await
            {
                looked.off.clear();
                looked.tried = Some(now);
                continue;
            }
            suspend(&instance.agent, &now, &mut looked.off).await;
            looked.starts.go(&instance.agent, every);
        }
    }
}

fn written(folders: &Folders) -> Option<SystemTime> {
    let own = folders.config.join("outrigger/outrigger.toml");
    own.metadata().and_then(|found| found.modified()).ok()
}

/// Returns what should run now. An unreadable configuration changes nothing: the last valid one stays.
async fn snapshot(
    hub: &Hub,
    directory: &Path,
    instance: &Instance,
    looked: &mut Looked,
) -> Option<Snapshot> {
    // No agent could start with these; what runs is left alone.
    let waiting = instance.agent.changed_settings().await;
    if waiting != looked.waiting && !waiting.is_empty() {
        tracing::warn!(
            "[config] {}: {} while this server ran: nothing changes until `outrigger config allow`",
            directory.display(),
            waiting.join(", ")
        );
    }
    looked.waiting = waiting;
    if !looked.waiting.is_empty() {
        return None;
    }
    let boot = hub.boot(directory.to_owned());
    let made = tokio::task::spawn_blocking(move || outrigger_agent::plugin_snapshot(&boot)).await;
    made.ok()?.ok()
}

/// Suspends plugins that should no longer run, even while a turn delays the replacement of the agent (C7), and resumes those
/// that should run again. `off` contains those suspended here.
async fn suspend(agent: &Agent, now: &Snapshot, off: &mut BTreeSet<String>) {
    let enabled = |snapshot: &Snapshot| -> BTreeSet<String> {
        snapshot
            .entries
            .iter()
            .filter(|it| it.enabled)
            .map(|it| it.id.clone())
            .collect()
    };
    let (runs, should) = (enabled(agent.plugin_snapshot()), enabled(now));
    for id in runs.difference(&should) {
        if off.insert(id.clone())
            && let Err(error) = agent.suspend_plugin(id).await
        {
            // A bundled plugin has no process, and one that others need stays as long as they do.
            tracing::debug!("[plugin] {id} should no longer run and is not suspended: {error}");
        }
    }
    let back: Vec<String> = off.intersection(&should).cloned().collect();
    for id in back {
        off.remove(&id);
        if let Err(error) = agent.resume_plugin(&id).await {
            tracing::debug!("[plugin] {id} should run again and is not resumed: {error}");
        }
    }
}

/// Returns the plugins whose admission has changed.
fn changed(instance: &Instance, now: &Snapshot) -> Vec<String> {
    let before = &instance.agent.plugin_snapshot().entries;
    let ids = |these: &[SnapshotEntry], those: &[SnapshotEntry]| {
        these
            .iter()
            .filter(|it| !those.contains(it))
            .map(|it| it.id.clone())
            .collect::<Vec<_>>()
    };
    let mut all = ids(before, &now.entries);
    all.extend(ids(&now.entries, before));
    all.sort();
    all.dedup();
    all
}

impl Hub {
    /// Replaces a folder's agent by one with the current plugins, unless a turn runs in it. Returns whether it was replaced.
    async fn replace_idle(&self, directory: &Path, plugins: &[String]) -> bool {
        let Some(origin) = self.dispose_idle(directory).await else {
            return false;
        };
        tracing::info!(
            "[plugin] {}: other plugins should run now ({}); they are reloaded",
            directory.display(),
            plugins.join(", ")
        );
        let properties = json!({ "plugins": plugins });
        self.publish(Some(origin), "outrigger.plugin.snapshot", properties);
        // A connector runs without requests.
        if let Err(error) = self.instance(directory).await {
            tracing::warn!("[plugin] {}: {error}", directory.display());
        }
        true
    }
}
