//! What a sandboxed process cannot change although it may write to the project, since processes without a sandbox, the user's
//! own among them, do what it says: settings that name programs, and what git runs (issue 5, item 5).

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod content;
pub mod direnv;
mod git_config;
pub mod git_files;
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
use outrigger_sandbox::absent::Clear;
use outrigger_sandbox::path_masks::{MAX_COVERS, MAX_ENTRIES};
use outrigger_sandbox::{Policy, SandboxError};

use crate::nested_git::NestedGit;

pub use running::share_in;

/// What of a repository may hold very many files, and no repository of a submodule.
const LARGE: [&str; 4] = ["objects", "refs", "logs", "lfs"];

/// Folders of Claude Code's settings, commands and skills.
const OF_CLAUDE: [&str; 2] = [".claude", ".agents"];

/// Start-up files in folders below that are kept one by one.
const MAX_NESTED: usize = 1000;

/// Whether a file is read as settings by an agent of ours that works in a folder, by its path from there.
#[must_use]
pub fn is_settings(from_folder: &Path) -> bool {
    let first = from_folder.components().next();
    let first = first.map(|it| it.as_os_str().to_string_lossy());
    let mut ours = SETTINGS.iter().chain(&OF_CLAUDE);
    first.is_some_and(|first| ours.any(|it| first == *it))
}

/// Such files in folders below a root; the nearest, where there is too much to look at. Blocking.
#[must_use]
pub fn settings_below(root: &Path) -> Vec<PathBuf> {
    let found = nested_startup::below(root).into_iter();
    let found = found.filter(|(from_folder, _)| is_settings(from_folder));
    found.map(|(_, whole)| whole).collect()
}

/// The same of settings and hooks of repositories below.
const MAX_SETTINGS: usize = 300;

/// Reads the names in a project on a thread of its own, so that the first command does not wait for that.
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

/// What the sandbox is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// A command of the model. It may move and remove folders, and what it leaves is looked at when it has ended.
    Command,
    /// Of a plugin or a server, which runs as long as this program.
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
) -> Result<(), SandboxError> {
    let mut found = Vec::new();
    let below = folder.ancestors().take_while(|it| it.starts_with(root));
    let mut folders: Vec<&Path> = below.chain([folder, root]).collect();
    folders.sort_unstable();
    folders.dedup();
    // The inner ones first.
    for folder in folders.into_iter().rev().filter(|it| it.parent().is_some()) {
        let git = folder.join(".git");
        // Of a linked worktree or a submodule: the file says where the repository is.
        if git.is_file() {
            found.push(git.clone());
        }
        let is_granted = |path: &Path| is_granted(path, folder, granted);
        let startup = STARTUP.iter().map(|it| it.path);
        let startup = startup.filter(|it| !waits_for_approval(it));
        for name in SETTINGS.into_iter().chain(startup) {
            let path = folder.join(name);
            // New settings of ours and of OpenCode wait for `outrigger config allow`. Others that are not there cannot be kept
            // free: a plugin runs as long as this program, and the user's editor makes them meanwhile.
            if path.exists() && !is_granted(&path) {
                found.push(path);
            }
        }
        let (there, not) = loaded_by_envrc(folder, root);
        found.extend(there.into_iter().filter(|it| !is_granted(it)));
        if process == Process::Command {
            policy.absent.extend(not);
        }
        for git in repositories(&git, root) {
            submodules(&git.join("modules"), &mut found)?;
            let mut of_git = git_files::of_repository(&git);
            of_git.retain(|path| !is_granted(path));
            let (there, not) = of_git.into_iter().partition(|path| path.exists());
            found.extend::<Vec<PathBuf>>(there);
            policy.absent.extend::<Vec<PathBuf>>(not);
        }
    }
    if root.parent().is_some() {
        found.extend(keep_nested(policy, root, granted, process));
    }
    hold(policy, found);
    Ok(())
}

/// Where the `.git` of a folder has its repository: it is one, or it is a file or a link that leads to one. Elsewhere than in the project
/// it is not for a process of the project to change.
fn repositories(git: &Path, root: &Path) -> Vec<PathBuf> {
    if git.is_dir() && !git.is_symlink() {
        return vec![git.to_path_buf()];
    }
    let Some(store) = nested_git::store(git) else {
        return Vec::new();
    };
    let common = outrigger_files::read_to_string(&store.join("commondir"), 4096);
    let common = common.ok().map(|it| store.join(it.trim()));
    let common = common.and_then(|it| it.canonicalize().ok());
    let real = root.canonicalize();
    let real = real.as_deref().unwrap_or(root);
    let mut all: Vec<PathBuf> = common.into_iter().chain([store]).collect();
    all.retain(|it| it.starts_with(real));
    all
}

/// What is kept in folders below the root. What a command leaves there is looked at when it has ended.
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
    policy.clear = Clear::new(Arc::new(move |has_ended| nested.clear(has_ended)));
    found
}

/// What direnv loads in a folder: what is there, and what is not.
fn loaded_by_envrc(folder: &Path, root: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let loaded = direnv::loaded(folder).into_iter();
    let in_project = loaded.filter(|it| it.starts_with(root));
    in_project.partition(|it| it.exists())
}

/// Whether the user grants it: by naming it, or a folder below this one that it lies in.
fn is_granted(path: &Path, folder: &Path, granted: &[PathBuf]) -> bool {
    let mut granted = granted.iter();
    granted.any(|it| path.starts_with(it) && it.starts_with(folder) && it != folder)
}

/// Keeps these from being changed, or moved away with a folder that they lie in.
pub fn hold(policy: &mut Policy, found: Vec<PathBuf>) {
    policy.held.extend(movable(&found, &policy.write));
    for path in found {
        if !policy.read_only.contains(&path) {
            policy.read_only.push(path);
        }
    }
}

/// The folders above these that lie in one that may be written to.
fn movable(paths: &[PathBuf], write: &[PathBuf]) -> BTreeSet<PathBuf> {
    let write: Vec<PathBuf> = write.iter().flat_map(|it| it.canonicalize()).collect();
    let above = paths.iter().flat_map(|path| path.ancestors().skip(1));
    let movable = above.filter(|it| write.iter().any(|top| it.starts_with(top) && it != top));
    movable.map(Path::to_path_buf).collect()
}

/// The settings and hooks of submodules' repositories. They lie in each other, under names of as many folders as they have
/// slashes; a folder with the marks of a repository may still have others in it, since anybody can make the marks.
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
    let (what, most) = match seen > MAX_ENTRIES {
        true => ("files and folders", MAX_ENTRIES),
        false => ("settings and hooks of submodules", MAX_COVERS),
    };
    SandboxError::TooMany {
        root: modules.to_path_buf(),
        what,
        most,
    }
}
