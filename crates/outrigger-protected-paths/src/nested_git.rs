//! Repositories below a project that a sandboxed process created or changed: the user's `git status` in the project enters those
//! that the index names, with their settings and hooks. Settings and hooks that start a program are removed when the process has
//! ended; in existing repositories that a command changed, those that are new.

mod harmless;
mod index;
mod modules;
mod repository;
mod tree;
mod walk;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outrigger_sandbox::absent::{FolderEntry, SUFFIX};
use outrigger_stdx::sync::lock;

use self::modules::modules;
use self::repository::{Repository, SETTINGS, Stamp, Stamps, active_hooks, repository_in};
use self::walk::{Extent, MAX_NAMES, Walked, startup_in, walk};
use crate::content::{Before, Content};
use crate::git_config::{self, Setting};
use crate::nested_startup::NestedStartup;
use crate::running::{First, Running};

pub(crate) use harmless::is_harmless;
pub(crate) use repository::store;

/// Maximum nesting of repositories.
const MAX_NESTING: usize = 8;
/// File system times lag slightly behind the system clock.
const BEHIND: Duration = Duration::from_secs(2);

/// Projects that were too large to check and have been reported.
static TOO_MUCH: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
/// State of running commands: the settings and hooks of existing repositories when the first of them started.
static RUNNING: Running = Running::new("git");

/// The repositories below a project before a process.
#[derive(Debug)]
pub(crate) struct NestedGit {
    worktree: PathBuf,
    before: HashMap<PathBuf, Stamps>,
    /// Existing repositories that the index does not name: the user's, which it may name later.
    others: HashMap<PathBuf, Stamps>,
    /// Contents of their settings and hooks, for a command.
    held: Arc<First>,
    /// Target of the project's `.git`, if it is a link.
    link: Option<PathBuf>,
    /// Repositories of the others.
    stores: BTreeSet<PathBuf>,
    /// In seconds since 1970.
    began: i64,
    /// Existed before the process, created by the user's git.
    locked: bool,
    startup: NestedStartup,
    is_command: bool,
    /// The whole project was checked.
    is_whole: bool,
}

impl NestedGit {
    /// Returns the current state. Blocking.
    pub(crate) fn before(worktree: &Path) -> Self {
        let began = SystemTime::now() - BEHIND;
        let began = began.duration_since(UNIX_EPOCH).unwrap_or_default();
        let worktree = worktree.canonicalize().unwrap_or_else(|_| worktree.into());
        let walked = worked(&worktree);
        let mut nested = Self {
            startup: NestedStartup::before(&worktree, &walked.startup),
            is_command: false,
            is_whole: walked.is_whole,
            link: fs::read_link(worktree.join(".git")).ok(),
            held: Arc::default(),
            worktree,
            before: HashMap::new(),
            others: HashMap::new(),
            stores: BTreeSet::new(),
            began: i64::try_from(began.as_secs()).unwrap_or_default(),
            locked: false,
        };
        nested.locked = nested.lock().exists();
        let linked = nested.linked();
        let stamped = linked.iter().map(|it| (it.folder.clone(), it.stamps()));
        nested.before = stamped.collect();
        let mut others = nested.with_modules(walked.repositories).0;
        others.retain(|it| !nested.before.contains_key(&it.folder));
        nested.stores = others.iter().flat_map(|it| it.stores.clone()).collect();
        let others = others.into_iter();
        nested.others = others.map(|it| (it.folder.clone(), it.stamps())).collect();
        nested
    }

    /// Prepares it for a command, which ends while the user works: its start-up files are removed afterwards. A plugin's process
    /// runs as long as this program, so its files could not be distinguished from the user's.
    pub(crate) fn for_command(mut self) -> Self {
        self.is_command = true;
        self.startup = self.startup.for_command();
        let paths = self
            .others
            .values()
            .flatten()
            .filter(|(_, stamp)| stamp.is_some());
        let held: Before = paths
            .filter_map(|(path, _)| {
                let meta = fs::symlink_metadata(path).ok()?;
                (!meta.is_dir()).then(|| (path.clone(), Content::of(path, &meta)))
            })
            .collect();
        self.held = RUNNING.first(&self.worktree, held);
        self
    }

    /// Returns the existing start-up files below the root.
    pub(crate) fn startup(&self) -> impl Iterator<Item = PathBuf> {
        self.startup.there()
    }

    /// Returns settings and hooks of the repositories below that the index does not name.
    pub(crate) fn settings(&self) -> impl Iterator<Item = PathBuf> {
        // Those of the project's own submodules are kept with its repository.
        let below = self.others.iter().filter(|it| !it.0.starts_with(".git"));
        let all = below.flat_map(|it| it.1);
        let there = all.filter(|(path, stamp)| stamp.is_some() && path.starts_with(&self.worktree));
        // The repository itself may change, the programs that it runs may not.
        there
            .filter(|(path, _)| path.ends_with("hooks") || !path.is_dir())
            .map(|(path, _)| path.clone())
    }

    /// Returns the files of existing repositories that determine what they run: those to protect, and names that must not be
    /// created.
    pub(crate) fn kept(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        // The repository itself may change, the programs that it runs may not.
        let is_whole = |path: &Path| path.ends_with(".git") && path.is_dir();
        let all = self
            .before
            .values()
            .flatten()
            .filter(|(path, _)| !is_whole(path));
        let (there, not): (Vec<_>, Vec<_>) = all.partition(|(_, stamp)| stamp.is_some());
        let paths = |list: Vec<&(PathBuf, Option<Stamp>)>| {
            list.into_iter().map(|(path, _)| path.clone()).collect()
        };
        (paths(there), paths(not))
    }

    /// Removes new entries of a process that start programs, and returns descriptions for the result. Before it `has_ended`, only
    /// those that the index names. Blocking.
    pub(crate) fn clear(&self, has_ended: bool) -> Vec<String> {
        let mut report = Vec::new();
        let mut all = self.linked();
        if has_ended {
            let known: BTreeSet<PathBuf> = all.iter().map(|it| it.folder.clone()).collect();
            let walked = worked(&self.worktree);
            let (found, has_all) = self.with_modules(walked.repositories);
            let others = self.appeared(found).into_iter();
            all.extend(others.filter(|it| !known.contains(&it.folder)));
            if self.is_command {
                let (said, is_whole) = self.startup.clear(&walked.startup);
                report.extend(said);
                if !is_whole || !walked.is_whole || !has_all {
                    report.extend(self.say_too_much());
                }
            }
            report.extend(self.restore_link());
        } else {
            tree::take_reports(&self.worktree);
        }
        for repository in all {
            if !self.is_the_users(&repository) {
                self.clear_one(&repository, &mut report);
            }
        }
        // git leaves it if it may not replace its settings, and later takes it for another process's lock.
        let lock = self.lock();
        if has_ended && !self.locked && lock.is_file() && fs::remove_file(&lock).is_ok() {
            report.push(
                "Commands must not change .git/config (`git config`, `remote add`, `push -u`): the user can, in a terminal or by letting \
                 the command run outside of the sandbox when asked."
                    .to_owned(),
            );
        }
        report
    }

    /// Reports once that a project was too large to check completely.
    fn say_too_much(&self) -> Option<String> {
        let had_too_much = !self.is_whole || !self.startup.is_whole();
        if had_too_much && !lock(&TOO_MUCH).insert(self.worktree.clone()) {
            return None;
        }
        let said = format!(
            "The project has more than {MAX_NAMES} files and folders, so not all of it was looked at: files below its root that make something run \
             later (.envrc, .vscode/tasks.json) and repositories may have been made or changed by the command, and stay as they are."
        );
        tracing::warn!("[sandbox] {}: {said}", self.worktree.display());
        Some(said)
    }

    /// Returns whether a repository is unchanged, or was changed by the user: no sandboxed process can change an existing one
    /// that the index names.
    fn is_the_users(&self, repository: &Repository) -> bool {
        let now = repository.stamps();
        match self.before.get(&repository.folder) {
            Some(before) => {
                before.first() == now.first()
                    && before.iter().all(|it| it.1.is_some() || now.contains(it))
            }
            None => self.others.get(&repository.folder) == Some(&now),
        }
    }

    fn lock(&self) -> PathBuf {
        let git = self.worktree.join(".git");
        let git = store(&git).unwrap_or(git);
        git.join("config.lock")
    }

    /// These, and those that lie in `modules` of them and of the project's own, and whether these are all.
    fn with_modules(&self, mut found: Vec<Repository>) -> (Vec<Repository>, bool) {
        let project = repository_in(&self.worktree, PathBuf::new());
        let all = project.iter().chain(&found);
        let stores: BTreeSet<PathBuf> = all.flat_map(|it| it.stores.iter().cloned()).collect();
        let modules = modules(&self.worktree, stores.iter());
        found.extend(modules.repositories);
        (found, modules.is_whole)
    }

    /// Those that the index names, and what their indexes name.
    fn linked(&self) -> Vec<Repository> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        let Some(top) = store(&self.worktree.join(".git")) else {
            return found;
        };
        let mut waiting = VecDeque::from([(PathBuf::new(), top, 0)]);
        while let Some((folder, git, depth)) = waiting.pop_front() {
            if depth > MAX_NESTING || !seen.insert((folder.clone(), git.clone())) {
                continue;
            }
            for link in index::links(&git) {
                // git does not accept a name that points outside.
                if link.is_absolute() || link.components().any(|it| it.as_os_str() == "..") {
                    continue;
                }
                let folder = folder.join(link);
                let Some(repository) = repository_in(&self.worktree, folder.clone()) else {
                    continue;
                };
                let own = store(&repository.entry);
                waiting.extend(own.map(|own| (folder, own, depth + 1)));
                found.push(repository);
            }
        }
        found
    }

    /// Returns those that were created in folders near the root since the process started, and those that a command changed.
    /// While another process runs, the user may have done so.
    fn appeared(&self, mut found: Vec<Repository>) -> Vec<Repository> {
        found.retain(|it| match self.others.get(&it.folder) {
            Some(before) => self.is_command && *before != it.stamps(),
            None => self.is_new(it) || self.is_command && !self.was_elsewhere(it),
        });
        found
    }

    /// Returns whether a repository existed unchanged in another folder. One from an unchecked folder (in `target`) may be from
    /// an earlier command.
    fn was_elsewhere(&self, repository: &Repository) -> bool {
        let stamps = |it: &Stamps| {
            let mut stamps: Vec<Option<Stamp>> = it.iter().map(|(_, stamp)| *stamp).collect();
            stamps.sort_unstable();
            stamps
        };
        let now = stamps(&repository.stamps());
        let mut before = self.before.values().chain(self.others.values());
        before.any(|before| stamps(before) == now)
    }

    /// Restores the target of the project's own `.git`, if it is a link.
    fn restore_link(&self) -> Option<String> {
        let entry = self.worktree.join(".git");
        let target = self.link.as_ref()?;
        if fs::read_link(&entry).is_ok_and(|now| now == *target) {
            return None;
        }
        FolderEntry::of(&self.worktree, &entry).and_then(|it| it.move_aside());
        let again = FolderEntry::free(&self.worktree, &entry).and_then(|it| it.link_to(target));
        if let Err(error) = again {
            tracing::warn!("[sandbox] {} is not restored: {error}", entry.display());
        }
        Some(format!(
            "Commands must not change where .git leads: what came in its place was renamed to .git{SUFFIX}-*; the link is back."
        ))
    }

    fn is_new(&self, repository: &Repository) -> bool {
        let stamps = repository.stamps().into_iter();
        let mut times = stamps.filter_map(|(_, stamp)| Some(stamp?.2));
        times.any(|changed| changed >= self.began)
    }

    fn clear_one(&self, repository: &Repository, report: &mut Vec<String>) {
        let folder = repository.folder.display();
        let project = repository_in(&self.worktree, PathBuf::new())
            .map(|it| it.stores)
            .unwrap_or_default();
        for git in &repository.stores {
            // No sandboxed process can change the project's own settings, and a new work tree of a user's repository shares its
            // settings.
            let is_itself = self.others.contains_key(&repository.folder);
            if project.contains(git) || (self.stores.contains(git) && !is_itself) {
                continue;
            }
            let mut inside = project.iter().chain([&self.worktree]);
            // Another project's repository has its own settings, and must not be named by this one.
            let Some(base) = inside.find(|it| git.starts_with(it)) else {
                if is_itself && self.leads_where_it_led(repository) {
                    continue;
                }
                let mut inside = project.iter().chain([&self.worktree]);
                let base = inside
                    .find(|it| repository.entry.starts_with(it))
                    .unwrap_or(&self.worktree);
                let entry = FolderEntry::of(base, &repository.entry);
                if entry.and_then(|it| it.move_aside()).is_some() {
                    let name = if repository.entry.ends_with(&repository.folder) {
                        folder.to_string()
                    } else {
                        format!("{folder}/.git")
                    };
                    report.push(format!(
                        "{name} leads out of the project, to {}; it was renamed to NAME{SUFFIX}-*.",
                        git.display(),
                    ));
                }
                return;
            };
            for name in SETTINGS {
                let path = git.join(name);
                let before = self.held.get(&path);
                let taken = clear_settings([base, &self.worktree], &path, before);
                if !taken.is_empty() {
                    report.push(format!(
                        "Commands must not set {} in the repository {folder}; it was taken out (the file as it was: {name}{}-*).",
                        taken.join(", "),
                        SUFFIX
                    ));
                }
            }
            let hooks = active_hooks(git);
            for hook in hooks.iter().filter(|it| self.clear_hook(base, it)) {
                let name = hook.file_name().unwrap_or_default().display();
                report.push(format!(
                    "Commands must not make hooks: {name} in the repository {folder} was renamed to {name}{}-*.",
                    SUFFIX
                ));
            }
        }
    }

    /// Renames a changed hook, and restores the previous one; returns false if it is unchanged.
    fn clear_hook(&self, base: &Path, hook: &Path) -> bool {
        let Ok(meta) = fs::symlink_metadata(hook) else {
            return false;
        };
        let before = self.held.get(hook);
        if before == Some(&Content::of(hook, &meta)) {
            return false;
        }
        let aside = FolderEntry::of(base, hook).and_then(|it| it.move_aside());
        let again = match before {
            Some(Content::File { bytes, mode }) => {
                FolderEntry::free(base, hook).and_then(|it| it.write_new(bytes, *mode))
            }
            Some(Content::Link(target)) => {
                FolderEntry::free(base, hook).and_then(|it| it.link_to(target))
            }
            _ => Ok(()),
        };
        if let Err(error) = again {
            tracing::warn!("[sandbox] {} is not restored: {error}", hook.display());
        }
        aside.is_some()
    }

    /// Returns whether an existing repository has an unchanged `.git`.
    fn leads_where_it_led(&self, repository: &Repository) -> bool {
        let before = self.others.get(&repository.folder);
        before.and_then(|it| it.first()) == repository.stamps().first()
    }
}

/// Reads the entries below a root, for the first process that needs them. Blocking.
pub(crate) fn prepare(worktree: &Path) {
    if let Ok(worktree) = worktree.canonicalize() {
        tree::look(&worktree);
    }
}

/// Returns files and folders below a root that make something run later, by relative path, including those of packages. Blocking.
pub(crate) fn startup_below(root: &Path) -> Vec<PathBuf> {
    let root = root.canonicalize().unwrap_or_else(|_| root.into());
    let Some(known) = tree::look(&root) else {
        return walk(&root, Extent::All).startup;
    };
    let mut found = known.startup;
    let mut seen: BTreeSet<PathBuf> = found.iter().cloned().collect();
    let mut of_packages = startup_in(&root, known.large);
    of_packages.retain(|it| seen.insert(it.clone()));
    found.extend(of_packages);
    found
}

/// Returns the entries below a root, without those of packages.
fn worked(worktree: &Path) -> Walked {
    tree::look(worktree).unwrap_or_else(|| walk(worktree, Extent::Worked))
}

/// Returns whether it sets the work tree of a submodule within the project: git writes files there.
fn is_work_tree(setting: &Setting, project: &Path, git: &Path) -> bool {
    let (section, name) = (setting.section.as_str(), setting.name.as_str());
    let lies_in = |folder: PathBuf| {
        folder
            .canonicalize()
            .ok()
            .is_some_and(|it| it.starts_with(project) && it != project)
    };
    (section, name) == ("core", "worktree") && lies_in(git.join(setting.text()))
}

/// Keeps the harmless settings of a file and those that it had `before`, and returns the removed ones.
fn clear_settings(
    [base, project]: [&Path; 2],
    path: &Path,
    before: Option<&Content>,
) -> Vec<String> {
    let Ok(meta) = fs::symlink_metadata(path) else {
        return Vec::new();
    };
    if before == Some(&Content::of(path, &meta)) {
        return Vec::new();
    }
    let known = match before {
        Some(Content::File { bytes, .. }) => git_config::parse(&String::from_utf8_lossy(bytes)),
        _ => Vec::new(),
    };
    let is_read = meta.is_file() && meta.len() <= outrigger_files::SETTINGS;
    let settings = if is_read {
        git_config::read(path)
    } else {
        Vec::new()
    };
    let git = path.parent().unwrap_or(path);
    let is_kept = |it: &Setting| {
        harmless::is_harmless(it) || is_work_tree(it, project, git) || known.contains(it)
    };
    let (kept, taken): (Vec<Setting>, Vec<Setting>) = settings.into_iter().partition(is_kept);
    if is_read && taken.is_empty() {
        return Vec::new();
    }
    let Some(place) = FolderEntry::of(base, path) else {
        return Vec::new();
    };
    if place.move_aside().is_none() {
        tracing::error!("[sandbox] cannot rename {}: remove it", path.display());
    }
    if let Err(error) = place.write_new(git_config::write(&kept), meta.mode()) {
        tracing::warn!("[sandbox] {} is not written anew: {error}", path.display());
    }
    if is_read {
        let keys: BTreeSet<String> = taken.iter().map(Setting::key).collect();
        keys.into_iter().collect()
    } else {
        vec!["settings that cannot be read".to_owned()]
    }
}

#[cfg(test)]
mod tests;
