//! Paths that a sandboxed process cannot change although it may write to the project, since processes without a sandbox,
//! including the user's own, act on them: settings that name programs, and files that git runs.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod content;
pub mod direnv;
mod git_config;
pub mod git_files;
pub mod git_programs;
mod nested_git;
mod nested_startup;
pub mod restored;
mod running;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unprivileged;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use outrigger_protocol::settings::SETTINGS;
use outrigger_protocol::startup::{STARTUP, waits_for_approval};
use outrigger_sandbox::path_masks::{MAX_COVERS, MAX_ENTRIES};
use outrigger_sandbox::{Lookups, Policy, RealPaths, SandboxError};

use crate::nested_git::NestedGit;

pub use running::share_in;

/// Folders of a repository that may contain very many files, and no submodule's repository.
const LARGE: [&str; 4] = ["objects", "refs", "logs", "lfs"];

/// Folders of Claude Code's settings, commands and skills.
const OF_CLAUDE: [&str; 2] = [".claude", ".agents"];

/// Maximum number of nested start-up files that are protected individually.
const MAX_NESTED: usize = 1000;

/// Returns whether an Outrigger agent in a folder reads a file as settings, by its path relative to the folder.
#[must_use]
pub fn is_settings(from_folder: &Path) -> bool {
    let first = from_folder
        .components()
        .next()
        .map(|it| it.as_os_str().to_string_lossy());
    let mut ours = SETTINGS.iter().chain(&OF_CLAUDE);
    first.is_some_and(|first| ours.any(|it| first == *it))
}

/// Returns such files in folders below a root; the nearest ones if there are too many. Blocking.
#[must_use]
pub fn settings_below(root: &Path) -> Vec<PathBuf> {
    nested_startup::below(root)
        .into_iter()
        .filter(|(from_folder, _)| is_settings(from_folder))
        .map(|(_, whole)| whole)
        .collect()
}

/// Like [`MAX_NESTED`], for settings and hooks of repositories below.
const MAX_SETTINGS: usize = 300;

/// Reads the names in a project on a separate thread, so that the first command does not wait for that.
pub fn prepare(root: &Path) {
    if root.parent().is_none() {
        return;
    }
    let root = root.to_owned();
    let begun = thread::Builder::new()
        .name("names".into())
        .spawn(move || nested_git::prepare(&root));
    if let Err(error) = begun {
        tracing::debug!("[sandbox] names are not read ahead: {error}");
    }
}

/// Kind of sandboxed process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// A command of the model. It may move and remove folders, and its changes are checked at its end.
    Command,
    /// A process of a plugin or a server, which runs as long as this program.
    Plugin,
}

/// What is there of all that, from the folder up to the root of the working tree, but for what the user grants: by naming it,
/// or a folder in it that it lies in. Folders above it that the process could move away, so as to put others in their place, are
/// held where they are. What the process may write to is known by now. Walks what git keeps of submodules: blocking.
///
/// # Errors
/// [`SandboxError::TooMany`]: not all of it was found, and the process must not be started.
pub fn keep(
    policy: &mut Policy,
    [folder, root]: [&Path; 2],
    granted: &[PathBuf],
    process: Process,
    lookups: &mut Lookups,
) -> Result<(), SandboxError> {
    let mut found = Vec::new();
    let below = folder.ancestors().take_while(|it| it.starts_with(root));
    let mut folders: Vec<&Path> = below.chain([folder, root]).collect();
    folders.sort_unstable();
    folders.dedup();
    // Inner folders first.
    for folder in folders.into_iter().rev().filter(|it| it.parent().is_some()) {
        let listings = &mut lookups.listings;
        let is_granted = |path: &Path| is_granted(path, folder, granted);
        let startup = STARTUP
            .iter()
            .map(|it| it.path)
            .filter(|it| !waits_for_approval(it));
        for name in SETTINGS.into_iter().chain(startup) {
            let path = folder.join(name);
            if is_granted(&path) {
                continue;
            }
            // New settings of Outrigger and OpenCode wait for `outrigger config allow`. Other missing files are not moved away
            // from a plugin's process: it runs as long as this program, and the user's editor creates them meanwhile.
            if listings.exists(&path) {
                found.push(path);
            } else if process == Process::Plugin && !SETTINGS.contains(&name) {
                let real = lookups.real.of(folder);
                policy.reserved.extend(real.map(|it| it.join(name)));
            }
        }
        if listings.may_exist(&folder.join(direnv::ENVRC)) {
            let (there, not) = loaded_by_envrc(folder, root);
            found.extend(there.into_iter().filter(|it| !is_granted(it)));
            if process == Process::Command {
                policy.absent.extend(not);
            }
        }
        found.extend(keep_git(policy, [folder, root], granted, process, lookups)?);
    }
    if root.parent().is_some() {
        found.extend(keep_nested(policy, root, granted, process));
    }
    hold(policy, found, &mut lookups.real);
    Ok(())
}

/// Protects what makes git run something in a folder, and what git runs there.
fn keep_git(
    policy: &mut Policy,
    [folder, root]: [&Path; 2],
    granted: &[PathBuf],
    process: Process,
    lookups: &mut Lookups,
) -> Result<Vec<PathBuf>, SandboxError> {
    let (git, mut found) = (folder.join(".git"), Vec::new());
    if !lookups.listings.may_exist(&git) {
        return Ok(found);
    }
    // In a linked worktree or a submodule the file contains the path of the repository.
    if git.is_file() {
        found.push(git.clone());
    }
    for git in repositories(&git, root, &mut lookups.real) {
        submodules(&git.join("modules"), &mut found)?;
        let mut of_git = git_files::of_repository(&git);
        of_git.retain(|path| !is_granted(path, folder, granted));
        let (there, not): (Vec<_>, Vec<_>) = of_git
            .into_iter()
            .partition(|path| lookups.listings.exists(path));
        found.extend(there);
        policy.absent.extend(not);
    }
    for git in stores(&git) {
        found.extend(keep_programs(policy, &git, folder, granted, process));
    }
    Ok(found)
}

/// What git runs of a work tree by its settings and hooks. What is not there yet, and links on the way, the user may make while a plugin runs.
fn keep_programs(
    policy: &mut Policy,
    git: &Path,
    folder: &Path,
    granted: &[PathBuf],
    process: Process,
) -> Vec<PathBuf> {
    let mut named = git_programs::named_by(git, folder);
    let is_kept = |path: &PathBuf| !is_granted(path, folder, granted);
    named.files.retain(is_kept);
    named.links.retain(|path, _| is_kept(path));
    let files = std::mem::take(&mut named.files);
    let (there, not): (Vec<_>, Vec<_>) = files.into_iter().partition(|path| path.exists());
    if process == Process::Command {
        policy.absent.extend(not);
        if !named.links.is_empty() {
            let root = folder.to_owned();
            let restored = Arc::new(move |_: bool| named.restore_links(&root));
            policy.clear = policy.clear.clone().and(restored);
        }
    }
    there
}

/// Where the `.git` of a folder has its repository: it is one, or it is a file or a link that leads to one. Elsewhere than in the project
/// it is not for a process of the project to change.
fn repositories(git: &Path, root: &Path, real: &mut RealPaths) -> Vec<PathBuf> {
    let real = real.of(root);
    let real = real.as_deref().unwrap_or(root);
    let mut all = stores(git);
    all.retain(|it| it == git || it.starts_with(real));
    all
}

/// The same wherever they are.
fn stores(git: &Path) -> Vec<PathBuf> {
    if git.is_dir() && !git.is_symlink() {
        return vec![git.to_path_buf()];
    }
    let Some(store) = nested_git::store(git) else {
        return Vec::new();
    };
    outrigger_files::read_to_string(&store.join("commondir"), 4096)
        .ok()
        .map(|it| store.join(it.trim()))
        .and_then(|it| it.canonicalize().ok())
        .into_iter()
        .chain([store])
        .collect()
}

/// Protects files in folders below the root. The changes of a command there are checked at its end.
fn keep_nested(
    policy: &mut Policy,
    root: &Path,
    granted: &[PathBuf],
    process: Process,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut nested = NestedGit::before(root);
    match process {
        Process::Command => {
            let of_root = |it: &PathBuf| it.parent() == Some(root) && !it.is_symlink();
            found.extend(nested.startup().filter(of_root));
            nested = nested.for_command();
        }
        Process::Plugin => {
            if nested.startup().nth(MAX_NESTED).is_some() {
                tracing::warn!(
                    "[sandbox] {}: of more than {MAX_NESTED} files below the root that make something run later, plugins and servers can change \
                     those behind these",
                    root.display()
                );
            }
            let startup = nested.startup().take(MAX_NESTED);
            let settings = nested.settings().take(MAX_SETTINGS);
            let all = startup.chain(settings);
            found.extend(all.filter(|it| !is_granted(it, root, granted)));
        }
    }
    let (there, not) = nested.kept();
    found.extend(there);
    policy.absent.extend(not);
    let nested = Arc::new(move |has_ended| nested.clear(has_ended));
    policy.clear = policy.clear.clone().and(nested);
    found
}

/// Returns the files that direnv loads in a folder: existing and missing ones.
fn loaded_by_envrc(folder: &Path, root: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    direnv::loaded(folder)
        .into_iter()
        .filter(|it| it.starts_with(root))
        .partition(|it| it.exists())
}

/// Returns whether the user grants it: by naming it, or a folder below this one that contains it.
fn is_granted(path: &Path, folder: &Path, granted: &[PathBuf]) -> bool {
    let mut granted = granted.iter();
    granted.any(|it| path.starts_with(it) && it.starts_with(folder) && it != folder)
}

/// Protects these from changes, and from being moved with a parent folder.
pub fn hold(policy: &mut Policy, found: Vec<PathBuf>, real: &mut RealPaths) {
    policy.held.extend(movable(&found, &policy.write, real));
    for path in found {
        if !policy.read_only.contains(&path) {
            policy.read_only.push(path);
        }
    }
}

/// Returns the writable folders above these.
fn movable(paths: &[PathBuf], write: &[PathBuf], real: &mut RealPaths) -> BTreeSet<PathBuf> {
    let write: Vec<PathBuf> = write.iter().flat_map(|it| real.of(it)).collect();
    let mut found = BTreeSet::new();
    for path in paths {
        let tops = write
            .iter()
            .filter(|top| path != *top && path.starts_with(top));
        for top in tops {
            let above = path.ancestors().skip(1).take_while(|it| it != top);
            found.extend(above.map(Path::to_path_buf));
        }
    }
    found
}

/// Finds the settings and hooks of submodules' repositories. They are nested, under names with as many folders as slashes; a
/// folder that looks like a repository may still contain others, since any process can create such a folder.
fn submodules(modules: &Path, found: &mut Vec<PathBuf>) -> Result<(), SandboxError> {
    let mut folders = vec![modules.to_path_buf()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        let is_repository = folder.join("HEAD").is_file();
        if is_repository {
            let parts = ["config", "hooks"].map(|name| folder.join(name));
            found.extend(parts.into_iter().filter(|part| part.exists()));
        }
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries {
            seen += 1;
            if seen > MAX_ENTRIES || found.len() > MAX_COVERS {
                return Err(too_many(modules, seen));
            }
            let is_large = is_repository && LARGE.iter().any(|name| entry.file_name() == *name);
            let path = entry.path();
            let is_link = path.is_symlink();
            if is_link && path.join("HEAD").is_file() {
                found.extend(["config", "hooks"].map(|name| path.join(name)));
            } else if !is_large && !is_link && path.is_dir() {
                folders.push(path);
            }
        }
    }
    Ok(())
}

fn too_many(modules: &Path, seen: usize) -> SandboxError {
    let (what, most) = if seen > MAX_ENTRIES {
        ("files and folders", MAX_ENTRIES)
    } else {
        ("settings and hooks of submodules", MAX_COVERS)
    };
    SandboxError::TooMany {
        root: modules.to_path_buf(),
        what,
        most,
    }
}
