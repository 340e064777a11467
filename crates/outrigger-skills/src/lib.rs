//! Skills: finding them, also behind addresses, and as slash commands.

use std::time::Duration;

use outrigger_config::skills::{Skill, discover};
use outrigger_config::{Loaded, OpenCodeConfig};
use outrigger_prompt::command::{CommandInfo, CommandSource};
use outrigger_sandbox::SandboxOverrides;
use outrigger_workspace::Folders;

mod fetch;

/// How long the start waits for all skills behind addresses together. What is not there by then is left out of this run,
/// or taken as it was fetched before.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Finds the skills of the configuration in force, and those in `contributed`, folders of plugins. An address that
/// cannot be fetched, or not whole, is a warning.
pub async fn find(
    config: &Loaded,
    effective: &OpenCodeConfig,
    folders: &Folders,
    sandboxes: &SandboxOverrides,
    contributed: Vec<std::path::PathBuf>,
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

/// The label of the sandbox that an address of skills is fetched in, where a plugin contributed it.
#[must_use]
pub fn sandbox_label(url: &str) -> String {
    format!("skills:{url}")
}

/// Where fetched skills are kept.
#[must_use]
pub fn cache(folders: &Folders) -> std::path::PathBuf {
    folders.cache.join("skills")
}

/// A skill as a command: its text, and where its other files are (OpenCode's form).
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
        source: match fetched || !config.lets_skill_run(skill) {
            true => CommandSource::FetchedSkill,
            false => CommandSource::Skill,
        },
        ..CommandInfo::default()
    }
}
