//! Skills: finding them, also at URLs, and running them as slash commands.

use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_config::skills::{Skill, discover};
use outrigger_config::{Loaded, OpenCodeConfig};
use outrigger_prompt::command::{CommandInfo, CommandSource};
use outrigger_sandbox::{SandboxOverride, SandboxOverrides};
use outrigger_workspace::Folders;

mod fetch;

/// Maximum time that the start waits for all skills from URLs together. Skills that are not fetched by then are skipped
/// in this run, or used from the cache.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Finds the skills of the effective configuration, and those in `contributed`, folders of plugins. A URL that cannot be
/// fetched completely is a warning.
pub async fn find(
    config: &Loaded,
    effective: &OpenCodeConfig,
    folders: &Folders,
    sandboxes: &SandboxOverrides,
    contributed: Vec<PathBuf>,
) -> Vec<Skill> {
    let mut search = config.skill_search(effective);
    search.plugins = contributed;
    if !effective.skill_urls.is_empty() {
        let cache = cache(folders);
        let (found, problems) =
            fetch::all(&effective.skill_urls, &cache, FETCH_TIMEOUT, sandboxes).await;
        for problem in problems {
            tracing::warn!("[skills] {problem}");
        }
        search.fetched = found;
    }
    let (skills, problems) = discover(&search);
    for problem in problems {
        tracing::debug!("[skills] {problem}");
    }
    skills
}

/// Returns the label of the sandbox for fetching skills from a URL that a plugin contributed.
#[must_use]
pub fn sandbox_label(url: &str) -> String {
    format!("skills:{url}")
}

/// Returns the label of the sandbox for what the skills below a folder start, which a plugin named in `skills.paths`.
#[must_use]
pub fn folder_label(folder: &Path) -> String {
    let real = folder.canonicalize();
    format!("skills-in:{}", real.as_deref().unwrap_or(folder).display())
}

/// Returns the sandbox of the plugin that named a folder of `skills.paths` in which a skill's folder lies.
#[must_use]
pub fn sandbox_of_named(dir: &Path, sandboxes: &SandboxOverrides) -> Option<SandboxOverride> {
    let real = dir.canonicalize();
    let mut above = real.as_deref().unwrap_or(dir).ancestors();
    above.find_map(|folder| sandboxes.of(&folder_label(folder)))
}

/// Returns the folder of fetched skills.
#[must_use]
pub fn cache(folders: &Folders) -> PathBuf {
    folders.cache.join("skills")
}

/// Returns a skill as a command: its text, and the location of its other files (OpenCode's form).
#[must_use]
pub fn command(skill: &Skill, config: &Loaded, folders: &Folders) -> CommandInfo {
    let dir = skill.dir.display();
    let fetched = skill.dir.starts_with(cache(folders));
    CommandInfo {
        name: skill.name.clone(),
        description: skill.description.clone(),
        template: format!(
            "{}\n\nBase directory for this skill: {dir}\nRelative paths in this skill (e.g., scripts/, references/) are relative to this base directory.",
            skill.content
        ),
        source: if fetched || !config.lets_skill_run(skill) {
            CommandSource::FetchedSkill
        } else {
            CommandSource::Skill
        },
        ..CommandInfo::default()
    }
}
