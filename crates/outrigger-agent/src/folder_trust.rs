//! Folders whose settings a person let count (issue 18). Before that, what of a project's files starts something, reads or
//! sends elsewhere, or loosens a rule is left out ([`outrigger_config::ProjectConfig`]). What counts is kept by content, so a
//! change of it is asked about again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_config::settings::TrustProjects;
use outrigger_config::{
    Asked, LoadOptions, Loaded, PolicyFile, ProjectConfig, TRUST_PROJECT, unknown,
};
use serde::{Deserialize, Serialize};

use crate::boot::Boot;
use crate::error::AgentError;
use crate::folders::Folders;
use crate::ids::now;
use crate::kept_rules::UserRules;
use crate::lock_file;
use crate::project::Place;

/// How long another process may hold the file.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks a person whether the settings of a folder are to count; the text says what they ask for, safe to print.
pub type FolderTrustFn = Arc<dyn Fn(String) -> BoxFuture<'static, bool> + Send + Sync>;

/// What is kept of a folder.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Known {
    asks: Vec<Asked>,
    /// Milliseconds since the Unix epoch.
    at: outrigger_protocol::Millis,
}

/// All folders, in our data folder, which nothing in a box can write to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Trusted {
    folders: BTreeMap<String, Known>,
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
    let _held = lock_file::hold(&folders.data.join("trusted-folders.lock"), PATIENCE)?;
    let mut all = read(folders);
    change(&mut all);
    let part = folders.data.join("trusted-folders.part");
    fs::write(&part, serde_json::to_vec_pretty(&all)?)?;
    fs::rename(part, file(folders))
}

/// How much of the project's files counts in a folder.
pub(crate) fn extent(boot: &Boot, place: &Place, options: &LoadOptions) -> ProjectConfig {
    // One that cannot be read ends the start, a moment later.
    let policies = outrigger_config::policy::policies(options).unwrap_or_default();
    if forbid(&policies) {
        return ProjectConfig::Trusted(None);
    }
    let by_variable = boot
        .env
        .get(TRUST_PROJECT)
        .is_some_and(|value| value == "1");
    if by_variable {
        return ProjectConfig::All;
    }
    let all = read(&boot.folders);
    let known = all.folders.get(&key(&place.directory));
    ProjectConfig::Trusted(known.map(|it| it.asks.clone()))
}

fn key(directory: &Path) -> String {
    let real = directory.canonicalize();
    let real = real.as_deref().unwrap_or(directory);
    real.display().to_string()
}

/// Whether the policy of this machine lets no project count.
fn is_forbidden(config: &Loaded) -> bool {
    forbid(&config.policies)
}

fn forbid(policies: &[PolicyFile]) -> bool {
    let mut projects = policies.iter().filter_map(|it| it.policy.trust.projects);
    projects.any(|it| it == TrustProjects::Deny)
}

/// Asks whether the folder's settings are to count where they do not and somebody is there, and holds the user's own rules
/// over them.
pub(crate) async fn settle(
    boot: &Boot,
    place: &Place,
    mut config: Loaded,
) -> Result<Loaded, AgentError> {
    if config.left_out
        && !is_forbidden(&config)
        && let Some(ask) = &boot.trust_folder
        && ask(question(boot, place, &config)).await
    {
        keep(&boot.folders, &place.directory, &config.asks)?;
        config = boot.load(place)?;
    }
    if let Some(users) = &config.users {
        let rules = UserRules::of(users);
        match config.left_out {
            true => rules.hold(&mut config.config),
            false => rules.hold_denies(&mut config.config),
        }
    }
    Ok(config)
}

fn keep(folders: &Folders, directory: &Path, asks: &[Asked]) -> Result<(), AgentError> {
    let known = Known {
        asks: asks.to_vec(),
        at: now(),
    };
    let kept = change(folders, |all| {
        all.folders.insert(key(directory), known);
    });
    kept.map_err(|error| AgentError::Folder {
        path: file(folders).display().to_string(),
        reason: error.to_string(),
    })
}

fn question(boot: &Boot, place: &Place, config: &Loaded) -> String {
    let all = read(&boot.folders);
    let known = all.folders.get(&key(&place.directory));
    let asks = known.map_or_else(
        || config.asks.iter().collect(),
        |it| unknown(&config.asks, &it.asks),
    );
    let head = match known {
        None => "The settings of this folder ask for what you have not let it do",
        Some(_) => {
            "The settings of this folder ask for something that they did not when you trusted it"
        }
    };
    format!("{head}:\n{}", listed(asks.into_iter(), &place.directory))
}

/// What is asked for, in lines that are safe to print.
fn listed<'a>(asks: impl Iterator<Item = &'a Asked>, directory: &Path) -> String {
    let mut text = String::new();
    for ask in asks {
        let file = Path::new(&ask.file);
        let file = file.strip_prefix(directory).unwrap_or(file);
        let line = format!("{} {}: {}", file.display(), ask.what, ask.shown);
        let safe = line
            .chars()
            .map(|c| if is_plain(c) { c } else { '\u{fffd}' });
        let _ = writeln!(text, "  {}", safe.collect::<String>());
    }
    text
}

/// Whether a terminal shows the character and does nothing else.
fn is_plain(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// One line on what is left out of a folder's settings; `None` where nothing is.
pub(crate) fn told(config: &Loaded) -> Option<String> {
    const NAMED: usize = 4;
    let mut names: Vec<&str> = Vec::new();
    for ask in &config.asks {
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
        let names = names.join(", ");
        let names: String = names.chars().filter(|c| is_plain(*c)).collect();
        let way = match is_forbidden(config) {
            true => "the policy of this machine lets no project count",
            false => "`outrigger trust` shows what it asks for and lets it count",
        };
        format!("this folder is not trusted, so of its settings {names}{more} are left out; {way}")
    })
}

/// Lets the settings of a folder count as they are now, and says what they ask for, in lines.
///
/// # Errors
/// Those of the configuration and of the data folder; a policy that lets no project count.
pub fn trust_folder(boot: &Boot) -> Result<String, AgentError> {
    let place = Place::find(&boot.directory);
    let config = boot.load(&place)?;
    if is_forbidden(&config) {
        return Err(AgentError::Folder {
            path: place.directory.display().to_string(),
            reason: "the policy of this machine lets no project count".to_owned(),
        });
    }
    keep(&boot.folders, &place.directory, &config.asks)?;
    Ok(listed(config.asks.iter(), &place.directory))
}

/// Forgets that a folder was trusted; false where it was not.
///
/// # Errors
/// Those of the data folder.
pub fn distrust_folder(boot: &Boot) -> Result<bool, AgentError> {
    let key = key(&Place::find(&boot.directory).directory);
    let mut was = false;
    let changed = change(&boot.folders, |all| {
        was = all.folders.remove(&key).is_some()
    });
    changed.map(|()| was).map_err(|error| AgentError::Folder {
        path: file(&boot.folders).display().to_string(),
        reason: error.to_string(),
    })
}
