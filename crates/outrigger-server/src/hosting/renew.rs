//! A changed machine is seen without a restart (D8): a program that was installed, a plugin that came or went, another word of
//! the user or of the policy. The snapshot of each folder's plugins is made again from time to time, and at once where the
//! user's `outrigger.toml` has changed, into which `plugin disable` writes; where it says something else than what runs, the
//! folder's agent is replaced as soon as no turn is in it; what should no longer run is suspended until then. A plugin whose
//! process could not be started (a full disk, no process left) is tried again in ever longer pauses.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use outrigger_agent::{Agent, Folders, Snapshot, SnapshotEntry};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::hosting::hub::{Hub, Instance};

/// Between two looks at whose time has come.
const TICK: Duration = Duration::from_secs(1);
/// Between two tries to start what could not be started.
const LONGEST: Duration = Duration::from_secs(600);

/// What is known of a folder.
struct Looked {
    at: Instant,
    /// When the user's own settings were written last.
    written: Option<SystemTime>,
    /// What its agent was last replaced for: a change that failed is not tried again.
    tried: Option<Snapshot>,
    /// Settings that nothing could start with, as they were reported.
    waiting: Vec<String>,
    /// Plugins that were suspended here, since they should no longer run (C7).
    off: BTreeSet<String>,
    starts: Starts,
}

/// Tries to start the processes of plugins that could not be started.
struct Starts {
    /// When the next one is due.
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

    /// Looks whether one is due; never more often than `every`.
    fn go(&mut self, agent: &Agent, every: Duration) {
        if self.under_way.as_ref().is_some_and(|it| !it.is_finished()) {
            return;
        }
        if !agent.has_unstarted_plugins() {
            *self = Self::new();
        } else if self.next <= Instant::now() {
            self.pause = (self.pause * 2).clamp(every, LONGEST.max(every));
            self.next = Instant::now() + self.pause;
            let agent = agent.clone();
            let start = async move { agent.start_unstarted_plugins().await };
            self.under_way = Some(tokio::spawn(start));
        }
    }
}

/// Looks until the server ends.
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
                // They may have changed since the agent was started, so they are looked at once.
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

/// What should run now. A configuration that cannot be read changes nothing: what runs is the last that could.
async fn snapshot(
    hub: &Hub,
    directory: &Path,
    instance: &Instance,
    looked: &mut Looked,
) -> Option<Snapshot> {
    // Nothing could start with these; what runs is left alone.
    let waiting = instance.agent.changed_settings().await;
    if waiting != looked.waiting && !waiting.is_empty() {
        tracing::warn!(
            "[config] {}: {} while this server ran: what runs is left as it is until `outrigger config allow`",
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

/// What should no longer run is no longer called, even while a turn is in the way of another agent (C7); what should run again
/// before there was one is resumed. `off` are those that were suspended here.
async fn suspend(agent: &Agent, now: &Snapshot, off: &mut BTreeSet<String>) {
    let enabled = |snapshot: &Snapshot| -> BTreeSet<String> {
        let entries = snapshot.entries.iter().filter(|it| it.enabled);
        entries.map(|it| it.id.clone()).collect()
    };
    let (runs, should) = (enabled(agent.plugin_snapshot()), enabled(now));
    for id in runs.difference(&should) {
        if off.insert(id.clone())
            && let Err(error) = agent.suspend_plugin(id).await
        {
            // A bundled one is not a process, and one that others need stays as long as they do.
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

/// The plugins about which something else was decided.
fn changed(instance: &Instance, now: &Snapshot) -> Vec<String> {
    let before = &instance.agent.plugin_snapshot().entries;
    let ids = |these: &[SnapshotEntry], those: &[SnapshotEntry]| {
        let new = these.iter().filter(|it| !those.contains(it));
        new.map(|it| it.id.clone()).collect::<Vec<_>>()
    };
    let mut all = ids(before, &now.entries);
    all.extend(ids(&now.entries, before));
    all.sort();
    all.dedup();
    all
}

impl Hub {
    /// Replaces a folder's agent by one that has the plugins of now, unless a turn is in it. True when it was replaced.
    async fn replace_idle(&self, directory: &Path, plugins: &[String]) -> bool {
        let Some(origin) = self.dispose_idle(directory).await else {
            return false;
        };
        tracing::info!(
            "[plugin] {}: other plugins should run now ({}); they are loaded anew",
            directory.display(),
            plugins.join(", ")
        );
        let properties = json!({ "plugins": plugins });
        self.publish(Some(origin), "outrigger.plugin.snapshot", properties);
        // A connector runs without anybody asking.
        if let Err(error) = self.instance(directory).await {
            tracing::warn!("[plugin] {}: {error}", directory.display());
        }
        true
    }
}
