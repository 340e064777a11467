//! The gate: decides whether a plugin may be started.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_config::settings::{Trust, TrustChanges, TrustProjects};
use outrigger_config::{PluginScope, PluginSpec};
use outrigger_plugin_package::ResolvedPlugin;
use outrigger_protocol::Millis;

use crate::changes::Changes;
use crate::content::{Before, Content};
use crate::error::TrustError;
use crate::kept_code;
use crate::store::{ProjectLock, Store, Trusted, TrustedBy};
use crate::tree::TreeError;
use crate::{TrustFn, TrustQuestion};

/// A plugin that may be started in its current state.
#[derive(Clone, Debug)]
pub struct Verified {
    /// Its trust record.
    pub trusted: Trusted,
    /// Its files when they were checked.
    pub content: Arc<Content>,
}

/// Decides about the plugins of one start.
pub struct Gate {
    /// The settings.
    pub rules: Trust,
    /// Outrigger's data folder.
    pub data: PathBuf,
    /// The root of the project.
    pub project: PathBuf,
    /// Asks the user; `None` if there is none.
    pub ask: Option<TrustFn>,
    /// Time for the records.
    pub now: Millis,
    /// Nothing of this project was trusted at the start: its current plugins came with it.
    pub fresh: bool,
    /// What the user accepted of the project after seeing a list.
    pub let_count: Option<LetCount>,
}

/// What the user accepted of a project when trusting its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LetCount {
    /// Keys of plugins ([`PluginSpec::key`]) in the list.
    pub plugins: BTreeSet<String>,
    /// Files in the list, by real path, with SHA-256 of their content.
    pub files: BTreeMap<PathBuf, String>,
}

/// A plugin with its records.
pub struct Candidate {
    pub(crate) declared: PluginSpec,
    pub(crate) resolved: ResolvedPlugin,
    pub(crate) store: Store,
    /// Its current files.
    pub content: Arc<Content>,
    pub(crate) known: Option<Trusted>,
    /// Records of its files.
    before: Before,
}

impl Candidate {
    /// Checks the files of a plugin, and loads its trust record.
    pub(crate) async fn of(
        declared: &PluginSpec,
        resolved: &ResolvedPlugin,
        data: &Path,
        project: &Path,
        rules: &Trust,
    ) -> Result<Self, TrustError> {
        let store = Store::of(data, project, declared);
        let known = store.find(&declared.key())?;
        let before = store.before(&declared.key());
        let (before, content) = look(resolved, rules, before).await?;
        Ok(Self {
            declared: declared.clone(),
            resolved: resolved.clone(),
            store,
            content: Arc::new(content),
            known,
            before,
        })
    }

    pub(crate) fn changes(&self) -> Changes {
        Changes::between(&self.before, &self.content, &self.store)
    }

    /// Refuses a plugin that differs from the project's pin.
    pub(crate) fn pinned(&self, project: &Path) -> Result<(), TrustError> {
        if self.declared.scope != PluginScope::Local {
            return Ok(());
        }
        let Some(lock) = ProjectLock::read(project)? else {
            return Ok(());
        };
        match lock
            .plugins
            .get(&ProjectLock::name(project, &self.declared))
        {
            Some(hash) if *hash != self.content.own() => Err(TrustError::NotAsPinned {
                spec: self.declared.spec.clone(),
                lock: project.join(crate::TRUST_FILE),
            }),
            _ => Ok(()),
        }
    }

    pub(crate) async fn trust(&self, by: TrustedBy, at: Millis) -> Result<Trusted, TrustError> {
        let entry = Trusted {
            plugin: self.declared.key(),
            hash: self.content.hash(),
            own: self.content.own(),
            files: self.content.files.len(),
            bytes: self.content.bytes(),
            by,
            at,
        };
        self.store.trust(entry.clone(), &self.content).await?;
        Ok(entry)
    }
}

impl Gate {
    /// Looks at a plugin's files.
    ///
    /// # Errors
    /// `plugin.world_writable`, `plugin.unreviewable`, `plugin.trust_file`.
    pub async fn look(
        &self,
        declared: &PluginSpec,
        resolved: &ResolvedPlugin,
    ) -> Result<Candidate, TrustError> {
        Candidate::of(declared, resolved, &self.data, &self.project, &self.rules).await
    }

    /// Whether a plugin may be started as it is.
    ///
    /// # Errors
    /// `plugin.changed`, `plugin.untrusted`, `plugin.not_pinned`, `plugin.trust_file`.
    pub async fn check(&self, found: Candidate) -> Result<Verified, TrustError> {
        let resolved = found.resolved.clone();
        let verified = self.checked(found).await?;
        kept_code::keep(&self.project, &resolved, &verified.content);
        Ok(verified)
    }

    async fn checked(&self, found: Candidate) -> Result<Verified, TrustError> {
        let id = found.resolved.id.clone();
        found.pinned(&self.project)?;
        let by = match &found.known {
            Some(known) if known.hash == found.content.hash() => {
                return Ok(same(known.clone(), found));
            }
            Some(_) => self.changed(&found).await?,
            None => self.first(&found).await?,
        };
        let trusted = match found.trust(by, self.now).await {
            Ok(trusted) => trusted,
            // If nothing can be recorded, a first use remains a first use.
            Err(error) if found.known.is_none() => {
                tracing::warn!("plugin {id}: {error}");
                unwritten(&found, self.now)
            }
            Err(error) => return Err(error),
        };
        tracing::info!(
            "plugin {id}: trusted by {by}: {} files, {}",
            trusted.files,
            trusted.hash
        );
        Ok(Verified {
            trusted,
            content: found.content,
        })
    }

    async fn changed(&self, found: &Candidate) -> Result<TrustedBy, TrustError> {
        if self.rules.changes == TrustChanges::Allow {
            return Ok(TrustedBy::Setting);
        }
        if self.saw_changes(found) {
            return Ok(TrustedBy::Answer);
        }
        let changes = found.changes();
        let reason = "its files are not those that were trusted".to_owned();
        if self.said_yes(found, &reason, changes.text()).await {
            return Ok(TrustedBy::Answer);
        }
        Err(TrustError::Changed {
            spec: found.declared.spec.clone(),
            id: found.resolved.id.clone(),
            what: summary(&changes),
        })
    }

    async fn first(&self, found: &Candidate) -> Result<TrustedBy, TrustError> {
        if found.declared.scope == PluginScope::Global {
            return Ok(TrustedBy::FirstUse);
        }
        let was_listed = || {
            self.let_count
                .as_ref()
                .is_some_and(|it| it.plugins.contains(&found.declared.key()))
        };
        let reason = match self.rules.projects {
            TrustProjects::Trust | TrustProjects::Ask if was_listed() => {
                return Ok(TrustedBy::Answer);
            }
            TrustProjects::Trust if self.fresh => return Ok(TrustedBy::FirstUse),
            TrustProjects::Trust if self.rules.changes == TrustChanges::Allow => {
                return Ok(TrustedBy::Setting);
            }
            TrustProjects::Trust => "it was added since the project's plugins were trusted",
            TrustProjects::Ask => "plugins of projects need approval",
            TrustProjects::Deny => {
                return Err(TrustError::Untrusted {
                    spec: found.declared.spec.clone(),
                    id: found.resolved.id.clone(),
                    reason: "plugins of projects are denied (`trust.projects`)".to_owned(),
                    review: false,
                });
            }
        };
        let content = Changes::between(&Before::default(), &found.content, &found.store);
        if self.said_yes(found, reason, content.text()).await {
            return Ok(TrustedBy::Answer);
        }
        Err(TrustError::Untrusted {
            spec: found.declared.spec.clone(),
            id: found.resolved.id.clone(),
            reason: reason.to_owned(),
            review: true,
        })
    }

    /// Returns whether all changed files of a project's plugin are in the list that the user accepted, in their current state.
    fn saw_changes(&self, found: &Candidate) -> bool {
        let Some(seen) = &self.let_count else {
            return false;
        };
        found.declared.scope == PluginScope::Local
            && found.content.only_differs_in(&found.before, &seen.files)
    }

    async fn said_yes(&self, found: &Candidate, reason: &str, details: String) -> bool {
        let Some(ask) = &self.ask else {
            return false;
        };
        ask(TrustQuestion {
            plugin: found.resolved.id.clone(),
            spec: found.declared.spec.clone(),
            reason: reason.to_owned(),
            details,
        })
        .await
    }

    /// Whether nothing of a project was ever trusted.
    ///
    /// # Errors
    /// `plugin.trust_file`.
    pub fn is_fresh(
        data: &Path,
        project: &Path,
        plugins: &[PluginSpec],
    ) -> Result<bool, TrustError> {
        let mut scopes = plugins.iter().map(|plugin| plugin.scope);
        if scopes.any(|scope| scope == PluginScope::Local) {
            Store::of_project(data, project).is_new()
        } else {
            Ok(true)
        }
    }
}

/// Plugins came to a project while a sandboxed process ran there: from here on none of it is trusted for having been there at
/// the first use.
///
/// # Errors
/// `plugin.trust_file`.
pub fn trust_no_newcomers(data: &Path, project: &Path) -> Result<(), TrustError> {
    let store = Store::of_project(data, project);
    if store.is_new()? {
        store.begin()
    } else {
        Ok(())
    }
}

fn same(trusted: Trusted, found: Candidate) -> Verified {
    // Only for speed: otherwise the next start reads them again.
    if found.before.files != found.content.files {
        let _ = found.store.look(&trusted.plugin, &found.content);
    }
    Verified {
        trusted,
        content: found.content,
    }
}

fn unwritten(found: &Candidate, at: Millis) -> Trusted {
    Trusted {
        plugin: found.declared.key(),
        hash: found.content.hash(),
        own: found.content.own(),
        files: found.content.files.len(),
        bytes: found.content.bytes(),
        by: TrustedBy::FirstUse,
        at,
    }
}

fn summary(changes: &Changes) -> String {
    let count = |kind: &str| {
        changes
            .files
            .iter()
            .filter(|file| file.change == kind)
            .count()
    };
    let named: Vec<String> = ["changed", "added", "removed"]
        .into_iter()
        .filter(|kind| count(kind) > 0)
        .map(|kind| format!("{} {kind}", count(kind)))
        .collect();
    let more = if changes.more > 0 {
        format!(" and {} more", changes.more)
    } else {
        String::new()
    };
    format!("{}{more}", named.join(", "))
}

pub(crate) async fn look(
    plugin: &ResolvedPlugin,
    rules: &Trust,
    before: Before,
) -> Result<(Before, Content), TrustError> {
    let (owned, allow) = (plugin.clone(), rules.world_writable);
    let looked = tokio::task::spawn_blocking(move || {
        let content = Content::of(&owned, allow, &before);
        content.map(|content| (before, content))
    })
    .await;
    let spec = plugin.spec.clone();
    let unreviewable = |reason: String| TrustError::Unreviewable {
        spec: plugin.spec.clone(),
        reason,
    };
    match looked {
        Ok(Ok(looked)) => Ok(looked),
        Ok(Err(TreeError::WorldWritable(path))) => Err(TrustError::WorldWritable { spec, path }),
        Ok(Err(TreeError::TooLarge(reason))) => Err(unreviewable(reason)),
        Ok(Err(TreeError::Io(path, reason))) => {
            Err(unreviewable(format!("{}: {reason}", path.display())))
        }
        Err(error) => Err(unreviewable(error.to_string())),
    }
}

/// Time for which a check of a cached package remains valid.
const RECHECK_AFTER: std::time::Duration = std::time::Duration::from_secs(20);

/// Looks again right before a start: what is started is what was trusted.
///
/// # Errors
/// `plugin.changed` and those of looking.
pub async fn still(
    plugin: &ResolvedPlugin,
    rules: &Trust,
    verified: &Verified,
) -> Result<Arc<Content>, TrustError> {
    if !plugin.from_path && verified.content.age() < RECHECK_AFTER {
        return Ok(Arc::clone(&verified.content));
    }
    let (_, now) = look(plugin, rules, verified.content.before()).await?;
    if now.hash() == verified.trusted.hash {
        Ok(Arc::new(now))
    } else {
        Err(since(plugin, "its files changed since they were looked at"))
    }
}

/// Looks a last time when it was loaded. Not at a package in our cache: no sandboxed process can write there, and installers link
/// the same file into several places, which touches it.
///
/// # Errors
/// `plugin.changed` and those of looking.
pub async fn untouched(
    plugin: &ResolvedPlugin,
    rules: &Trust,
    before: &Content,
) -> Result<(), TrustError> {
    if !plugin.from_path {
        return Ok(());
    }
    let (_, later) = look(plugin, rules, before.before()).await?;
    if before.untouched(&later) {
        Ok(())
    } else {
        Err(since(
            plugin,
            "its files were touched while they were loaded",
        ))
    }
}

fn since(plugin: &ResolvedPlugin, what: &str) -> TrustError {
    TrustError::Changed {
        spec: plugin.spec.clone(),
        id: plugin.id.clone(),
        what: what.to_owned(),
    }
}

/// Returns the folder whose plugins are a project's own: the root of the working tree, or outside version control the folder
/// itself.
#[must_use]
pub fn project_of(directory: &Path, worktree: &Path) -> PathBuf {
    match worktree.parent() {
        Some(_) => worktree.to_owned(),
        None => directory.to_owned(),
    }
}
