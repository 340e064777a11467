//! Folders whose settings the user has accepted. Before that, project settings that start something, read or send data elsewhere,
//! or loosen a rule are ignored ([`outrigger_config::ProjectConfig`]). Accepted settings are stored by content, so a change needs
//! approval again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_config::settings::TrustProjects;
use outrigger_config::{
    LoadOptions, Loaded, OpenCodeConfig, PluginScope, PluginSpec, PolicyFile, ProjectConfig,
    TRUST_PROJECT, TrustRequest,
};
use outrigger_files::Readers;
use outrigger_plugin_status::Progress;
use outrigger_plugin_trust::LetCount;
use outrigger_stdx::clock::now_ms;
use outrigger_workspace::Folders;
use outrigger_workspace::ProjectLocation;
use outrigger_workspace::lock_file;
use serde::{Deserialize, Serialize};

use crate::config_source::ConfigSource;
use crate::error::TrustError;
use crate::pinned_rules::UserRules;

mod question;

use question::is_plain;
pub use question::{FolderEntry, FolderQuestion, FolderSection};

/// Maximum time that another process may hold the file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Asks the user whether the settings of a folder take effect.
pub type FolderTrustFn = Arc<dyn Fn(FolderQuestion) -> BoxFuture<'static, bool> + Send + Sync>;

/// Record of a folder.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct FolderRecord {
    asks: Vec<TrustRequest>,
    /// Files that user servers run in it, with digests, by server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    servers: BTreeMap<String, Vec<String>>,
    /// Milliseconds since the Unix epoch.
    at: outrigger_protocol::Millis,
}

/// All folders, in the data folder, which no sandboxed process can write to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Trusted {
    folders: BTreeMap<String, FolderRecord>,
}

fn file(folders: &Folders) -> PathBuf {
    folders.data.join("trusted-folders.json")
}

fn read(folders: &Folders) -> Trusted {
    let text = outrigger_files::read(&file(folders), outrigger_files::DATA).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn change(folders: &Folders, change: impl FnOnce(&mut Trusted)) -> io::Result<()> {
    fs::create_dir_all(&folders.data)?;
    let _held = lock_file::hold(&folders.data.join("trusted-folders.lock"), LOCK_TIMEOUT)?;
    let mut all = read(folders);
    change(&mut all);
    let text = serde_json::to_vec_pretty(&all)?;
    outrigger_files::replace(&file(folders), &text, Readers::Owner)
}

/// Returns which project settings take effect in a folder.
pub fn extent(
    env: &BTreeMap<String, String>,
    folders: &Folders,
    location: &ProjectLocation,
    options: &LoadOptions,
) -> ProjectConfig {
    // An unreadable one fails the start shortly after.
    let policies = outrigger_config::policy::policies(options).unwrap_or_default();
    if forbid(&policies) {
        return ProjectConfig::Trusted(None);
    }
    let by_variable = env.get(TRUST_PROJECT).is_some_and(|value| value == "1");
    if by_variable {
        return ProjectConfig::All;
    }
    let all = read(folders);
    let known = all.folders.get(&key(&location.directory));
    ProjectConfig::Trusted(known.map(|it| it.asks.clone()))
}

/// Returns what the user has accepted in a folder so far.
pub(crate) fn known(folders: &Folders, directory: &Path) -> Vec<TrustRequest> {
    let mut all = read(folders);
    let known = all.folders.remove(&key(directory));
    known.map(|it| it.asks).unwrap_or_default()
}

/// Returns the files that a user server ran when it was first started in a folder since the folder was trusted: `now`, if this is
/// the first time. `None` if the user does not trust the folder.
pub(crate) fn settle_server(
    folders: &Folders,
    directory: &Path,
    server: &str,
    now: &[String],
) -> Option<Vec<String>> {
    let folder = key(directory);
    let mut all = read(folders);
    let mut known = all.folders.remove(&folder)?;
    if let Some(files) = known.servers.remove(server) {
        return Some(files);
    }
    let kept = change(folders, |all| {
        if let Some(known) = all.folders.get_mut(&folder) {
            known.servers.insert(server.to_owned(), now.to_vec());
        }
    });
    if let Err(error) = kept {
        tracing::warn!("cannot write {}: {error}", file(folders).display());
        return None;
    }
    Some(now.to_vec())
}

fn key(directory: &Path) -> String {
    let real = directory.canonicalize();
    let real = real.as_deref().unwrap_or(directory);
    real.display().to_string()
}

/// Returns whether the machine policy accepts no project.
fn is_forbidden(config: &Loaded) -> bool {
    forbid(&config.policies)
}

fn forbid(policies: &[PolicyFile]) -> bool {
    let mut projects = policies.iter().filter_map(|it| it.policy.trust.projects);
    projects.any(|it| it == TrustProjects::Deny)
}

/// Asks whether the folder's settings are to count where they do not and somebody is there, and holds the user's own rules
/// over them. Settings that changed while something in a sandbox ran are part of the one question, and so is `download`, what plugins
/// may need from npm: the second value is whether that was agreed to.
///
/// # Errors
/// Those of the configuration and of the data folder.
pub async fn settle(
    source: &dyn ConfigSource,
    ask: Option<&FolderTrustFn>,
    location: &ProjectLocation,
    mut config: Loaded,
    download: Option<&str>,
) -> Result<(Loaded, bool), TrustError> {
    let mut agreed = false;
    if let Some(ask) = ask
        && !is_forbidden(&config)
    {
        let made = crate::workspace_trust::changed(source, location, &config).await?;
        let is_asked = config.left_out || !made.is_empty();
        let mut question = question(source, location, &config, made);
        let has_own = !config.plugins.is_empty() || !config.tool_files.is_empty();
        let download = download.filter(|_| has_own || question.has_plugins());
        if let Some(spec) = download {
            question.add_download(spec);
        }
        if is_asked && ask(question).await {
            agreed = download.is_some();
            if config.left_out {
                keep(source.folders(), &location.directory, &config.asks)?;
            }
            crate::workspace_trust::allow_settings(source)?;
            config = source.load_config(location)?;
        }
    }
    if let Some(users) = &config.users {
        let rules = UserRules::of(users);
        if config.is_trusted {
            rules.hold_denies(&mut config.config);
        } else {
            // A setting that is harmless alone may still replace a rule.
            rules.hold(&mut config.config);
            hold_choice(users, &mut config.config);
        }
    }
    Ok((config, agreed))
}

/// Restores the user's choice of the default agent: an untrusted project cannot change it.
fn hold_choice(users: &OpenCodeConfig, config: &mut OpenCodeConfig) {
    for agent in &mut config.agent {
        if let Some(own) = users.agent.iter().find(|it| it.name == agent.name) {
            (agent.mode, agent.hidden, agent.disable) = (own.mode, own.hidden, own.disable);
        }
    }
}

fn keep(folders: &Folders, directory: &Path, asks: &[TrustRequest]) -> Result<(), TrustError> {
    let known = FolderRecord {
        asks: asks.to_vec(),
        servers: BTreeMap::new(),
        at: now_ms(),
    };
    let kept = change(folders, |all| {
        all.folders.insert(key(directory), known);
    });
    kept.map_err(|error| TrustError::Folder {
        path: file(folders).display().to_string(),
        reason: error.to_string(),
    })
}

fn question(
    source: &dyn ConfigSource,
    location: &ProjectLocation,
    config: &Loaded,
    made: Vec<String>,
) -> FolderQuestion {
    let all = read(source.folders());
    let known = all
        .folders
        .get(&key(&location.directory))
        .map(|it| it.asks.as_slice());
    let asks: &[TrustRequest] = if config.left_out { &config.asks } else { &[] };
    FolderQuestion::of(asks, known, made, &location.directory)
}

/// Returns one line about ignored settings of a folder; `None` if there are none.
pub fn notice(config: &Loaded) -> Option<String> {
    const NAMED: usize = 4;
    let mut names: Vec<&str> = Vec::new();
    for ask in config.asks.iter().filter(|it| !it.is_consequence()) {
        let name = ask.what.trim_start_matches('/').split('/').next();
        names.extend(name.filter(|name| !names.contains(name)));
    }
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    config.left_out.then(|| {
        let names: String = names.join(", ").chars().filter(|c| is_plain(*c)).collect();
        let way = if is_forbidden(config) {
            "the policy of this machine trusts no project"
        } else {
            "review and trust them with `outrigger trust`"
        };
        format!("ignoring settings of an untrusted folder: {names}{more}; {way}")
    })
}

/// Returns why settings of a folder are ignored, and what to type; `None` if they are not.
///
/// # Errors
/// Those of the configuration.
pub fn why_ignored(source: &dyn ConfigSource) -> Result<Option<String>, TrustError> {
    let location = ProjectLocation::find(source.directory());
    let config = source.load_config(&location)?;
    let all = read(source.folders());
    let was_trusted = all.folders.contains_key(&key(&location.directory));
    if config.left_out && was_trusted && !is_forbidden(&config) {
        let text = "the settings of this folder changed since you trusted it, and are ignored; review and trust them with `outrigger trust`";
        return Ok(Some(text.to_owned()));
    }
    Ok(notice(&config))
}

/// Lets the settings of a folder count as they are now, and says what they ask for.
///
/// # Errors
/// Those of the configuration and of the data folder; a policy that lets no project count.
pub fn trust_folder(source: &dyn ConfigSource) -> Result<FolderQuestion, TrustError> {
    let location = ProjectLocation::find(source.directory());
    let config = source.load_config(&location)?;
    if is_forbidden(&config) {
        return Err(TrustError::Folder {
            path: location.directory.display().to_string(),
            reason: "the policy of this machine trusts no project".to_owned(),
        });
    }
    keep(source.folders(), &location.directory, &config.asks)?;
    crate::workspace_trust::allow_settings(source)?;
    Ok(FolderQuestion::of(
        &config.asks,
        None,
        Vec::new(),
        &location.directory,
    ))
}

/// Forgets that a folder was trusted; false where it was not.
///
/// # Errors
/// Those of the data folder.
pub fn distrust_folder(source: &dyn ConfigSource) -> Result<bool, TrustError> {
    let key = key(&ProjectLocation::find(source.directory()).directory);
    let mut was = false;
    let changed = change(source.folders(), |all| {
        was = all.folders.remove(&key).is_some()
    });
    changed.map(|()| was).map_err(|error| TrustError::Folder {
        path: file(source.folders()).display().to_string(),
        reason: error.to_string(),
    })
}

/// Returns the project code that the user saw in the list when accepting it. `None` if the user did not accept the project.
pub fn let_count(config: &Loaded) -> Option<LetCount> {
    if !config.is_trusted_by_person() {
        return None;
    }
    let files = config
        .asks
        .iter()
        .filter(|it| it.what == outrigger_config::IS_RUN);
    let plugins = config.plugins.iter().chain(&config.tool_files);
    let listed = plugins.filter(|plugin| plugin.scope == PluginScope::Local);
    let found = config.asked_plugins().map(str::to_owned);
    Some(LetCount {
        plugins: listed.map(PluginSpec::key).chain(found).collect(),
        files: files
            .map(|it| (PathBuf::from(&it.file), it.hash.clone()))
            .collect(),
    })
}

/// Filters plugin progress that the line about the folder covers already.
pub fn without_repeats(
    config: &Loaded,
    progress: Arc<dyn Fn(Progress) + Send + Sync>,
) -> Arc<dyn Fn(Progress) + Send + Sync> {
    if !config.left_out {
        return progress;
    }
    let files: Vec<String> = config.asks.iter().map(|it| it.file.clone()).collect();
    Arc::new(move |mut it: Progress| {
        let waits = it
            .cause
            .as_ref()
            .is_some_and(|it| it.code == "plugin.hooks_not_allowed");
        it.mention &= !(waits && files.contains(&it.spec));
        progress(it);
    })
}
