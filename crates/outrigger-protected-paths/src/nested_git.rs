//! Repositories below a project that a process in a sandbox made or changed: `git status` of the user's in the project looks into
//! those that the index names, with the settings and hooks that they have. What of these starts a program is taken out when the process
//! has ended (issue 18, finding 6).

mod harmless;
mod index;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outrigger_sandbox::absent::{Place, SUFFIX};

use crate::git_config::{self, Setting};
use crate::git_files::is_repository;
use crate::nested_startup::{NestedStartup, is_candidate, is_workspace};

/// How deep below the project's root repositories are looked for that the index does not name.
pub(crate) const DEPTH: usize = 3;
/// Files and folders that are looked at for them.
const MAX_ENTRIES: usize = 4000;
/// Repositories in each other.
const MAX_NESTING: usize = 8;
/// What holds very many files and is not worked in: what lies right in them is looked at, and last.
const LARGE: [&str; 3] = ["node_modules", "target", ".venv"];
/// Times of a file system are a little behind those of the system.
const BEHIND: Duration = Duration::from_secs(2);
/// Files of a repository that say what runs, but for hooks.
const SETTINGS: [&str; 2] = ["config", "config.worktree"];

/// A file, whatever it holds: device, number and time of its last change, which no process can set.
type Stamp = (u64, u64, i64, i64);

/// What a repository had that says what runs, by path.
type Stamps = Vec<(PathBuf, Option<Stamp>)>;

/// The repositories below a project as they were before a process.
#[derive(Debug)]
pub(crate) struct NestedGit {
    worktree: PathBuf,
    before: HashMap<PathBuf, Stamps>,
    /// The others that were there: the user's, which the index may name later.
    others: HashMap<PathBuf, Stamps>,
    /// Where the others have their repositories.
    stores: BTreeSet<PathBuf>,
    /// In seconds since 1970.
    began: i64,
    /// There before the process, by the user's git.
    locked: bool,
    startup: NestedStartup,
    is_command: bool,
}

/// What lies not far below the root.
struct Walked {
    repositories: Vec<Repository>,
    /// Files and folders of names that make something run later, by path from the root.
    startup: Vec<PathBuf>,
    /// Nothing was left out for there being too much.
    is_whole: bool,
}

/// Files and folders not far below a root that make something run later, by path from it; `None` where not all were looked at.
pub(crate) fn startup_below(root: &Path) -> Option<Vec<PathBuf>> {
    let walked = walk(root);
    walked.is_whole.then_some(walked.startup)
}

/// A repository below the project.
struct Repository {
    /// Its folder, relative to the project's root.
    folder: PathBuf,
    /// `.git` in it; the folder itself where it is a repository without a work tree.
    entry: PathBuf,
    /// Where that leads: its own folder, and the one whose settings it has.
    stores: BTreeSet<PathBuf>,
}

impl NestedGit {
    /// As they are now. Blocking.
    pub(crate) fn before(worktree: &Path) -> Self {
        let began = SystemTime::now() - BEHIND;
        let began = began.duration_since(UNIX_EPOCH).unwrap_or_default();
        let worktree = worktree.canonicalize().unwrap_or_else(|_| worktree.into());
        let walked = walk(&worktree);
        let mut nested = Self {
            startup: NestedStartup::before(&worktree, &walked.startup),
            is_command: false,
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
        let mut others = walked.repositories;
        others.retain(|it| !nested.before.contains_key(&it.folder));
        nested.stores = others.iter().flat_map(|it| it.stores.clone()).collect();
        let others = others.into_iter();
        nested.others = others.map(|it| (it.folder.clone(), it.stamps())).collect();
        nested
    }

    /// For a command, which ends while the user works: what it leaves of start-up files goes when it has. A plugin's process runs as
    /// long as this program, and nobody could tell the user's files from its own.
    pub(crate) fn for_command(mut self) -> Self {
        self.is_command = true;
        self.startup = self.startup.for_command();
        self
    }

    /// The start-up files that were there below the root.
    pub(crate) fn startup(&self) -> impl Iterator<Item = PathBuf> {
        self.startup.there()
    }

    /// What of the repositories that were there says what they run: to be kept as it is, and names that are not to come.
    pub(crate) fn kept(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        // A repository itself may be changed, what it runs may not.
        let is_whole = |path: &Path| path.ends_with(".git") && path.is_dir();
        let all = self.before.values().flatten();
        let all = all.filter(|(path, _)| !is_whole(path));
        let (there, not): (Vec<_>, Vec<_>) = all.partition(|(_, stamp)| stamp.is_some());
        let paths = |list: Vec<&(PathBuf, Option<Stamp>)>| {
            list.into_iter().map(|(path, _)| path.clone()).collect()
        };
        (paths(there), paths(not))
    }

    /// Removes what a process has put there that starts programs, and returns what was done, for the reader of the
    /// result. Before it `has_ended`, of what the index names. Blocking.
    pub(crate) fn clear(&self, has_ended: bool) -> Vec<String> {
        let mut report = Vec::new();
        let mut all = self.linked();
        if has_ended {
            let known: BTreeSet<PathBuf> = all.iter().map(|it| it.folder.clone()).collect();
            let walked = walk(&self.worktree);
            let others = self.appeared(walked.repositories).into_iter();
            all.extend(others.filter(|it| !known.contains(&it.folder)));
            if self.is_command {
                report.extend(self.startup.clear(&walked.startup));
            }
        }
        for repository in all {
            if !self.is_the_users(&repository) {
                self.clear_one(&repository, &mut report);
            }
        }
        // git leaves it where it may not replace its settings, and later takes it for another process's.
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

    /// Whether a repository is as it was, or was changed by the user: what was there of those that the index named, no process in a
    /// sandbox changes.
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
        self.worktree.join(".git/config.lock")
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
                // A name that leads elsewhere is none that git takes.
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

    /// Those that came into folders not far below the root since the process began.
    fn appeared(&self, mut found: Vec<Repository>) -> Vec<Repository> {
        found.retain(|it| !self.others.contains_key(&it.folder) && self.is_new(it));
        found
    }

    fn is_new(&self, repository: &Repository) -> bool {
        let stamps = repository.stamps().into_iter();
        let mut times = stamps.filter_map(|(_, stamp)| Some(stamp?.2));
        times.any(|changed| changed >= self.began)
    }

    fn clear_one(&self, repository: &Repository, report: &mut Vec<String>) {
        let folder = repository.folder.display();
        let project = repository_in(&self.worktree, PathBuf::new());
        let project = project.map(|it| it.stores).unwrap_or_default();
        for git in &repository.stores {
            // The project's own settings no process in a sandbox changes, and a new work tree of a repository of the user's has
            // that one's.
            let is_itself = self.others.contains_key(&repository.folder);
            if project.contains(git) || (self.stores.contains(git) && !is_itself) {
                continue;
            }
            let mut inside = project.iter().chain([&self.worktree]);
            // That of another project has its own settings, and is not for this one to name.
            let Some(base) = inside.find(|it| git.starts_with(it)) else {
                let entry = Place::of(&self.worktree, &repository.entry);
                if entry.and_then(|it| it.move_aside()).is_some() {
                    report.push(format!(
                        "{folder}/.git leads out of the project, to {}; it was renamed to .git{}-*.",
                        git.display(),
                        SUFFIX
                    ));
                }
                return;
            };
            for name in SETTINGS {
                let taken = clear_settings(base, &self.worktree, &git.join(name));
                if !taken.is_empty() {
                    report.push(format!(
                        "Commands must not set {} in the repository {folder}; it was taken out (the file as it was: {name}{}-*).",
                        taken.join(", "),
                        SUFFIX
                    ));
                }
            }
            let hooks = active_hooks(git);
            let aside =
                |it: &&PathBuf| Place::of(base, it).and_then(|it| it.move_aside()).is_some();
            for hook in hooks.iter().filter(aside) {
                let name = hook.file_name().unwrap_or_default().display();
                report.push(format!(
                    "Commands must not make hooks: {name} in the repository {folder} was renamed to {name}{}-*.",
                    SUFFIX
                ));
            }
        }
    }
}

/// What lies in folders not far below the root.
fn walk(worktree: &Path) -> Walked {
    let mut found = Walked {
        repositories: Vec::new(),
        startup: Vec::new(),
        is_whole: true,
    };
    let mut waiting = VecDeque::from([(PathBuf::new(), 0)]);
    let mut large = VecDeque::new();
    let mut seen = 0;
    while let Some((folder, depth)) = waiting.pop_front().or_else(|| large.pop_front()) {
        let entries = fs::read_dir(worktree.join(&folder)).into_iter();
        for entry in entries.flatten().flatten() {
            seen += 1;
            if seen > MAX_ENTRIES {
                found.is_whole = false;
                return found;
            }
            let name = entry.file_name();
            let kind = entry.file_type();
            // The root's own are looked at elsewhere, but for names that nobody can list and links in the place of folders.
            let is_link = kind.as_ref().is_ok_and(fs::FileType::is_symlink);
            if is_candidate(&name) && (depth > 0 || is_link || is_workspace(&name)) {
                found.startup.push(folder.join(&name));
            }
            let is_folder = kind.is_ok_and(|it| it.is_dir());
            if !is_folder || name == ".git" {
                continue;
            }
            let is_large = LARGE.iter().any(|it| name == *it);
            let folder = folder.join(name);
            let repository = repository_in(worktree, folder.clone());
            let is_bare = repository.as_ref().is_some_and(Repository::is_bare);
            found.repositories.extend(repository);
            // Anybody can make the marks of a repository: what lies in one is looked at as well, but last.
            if is_large {
                large.push_back((folder, DEPTH));
            } else if depth + 1 < DEPTH {
                let list = if is_bare { &mut large } else { &mut waiting };
                list.push_back((folder, depth + 1));
            }
        }
    }
    found
}

fn repository_in(worktree: &Path, folder: PathBuf) -> Option<Repository> {
    let whole = worktree.join(&folder);
    let mut entry = whole.join(".git");
    // The project's own folder is looked at elsewhere.
    let is_bare = folder.components().next().is_some() && is_repository(&whole);
    if fs::symlink_metadata(&entry).is_err() {
        if !is_bare {
            return None;
        }
        entry.clone_from(&whole);
    }
    // git does not follow links on the way to a repository either.
    if whole.canonicalize().ok()? != whole {
        return None;
    }
    let mut stores = BTreeSet::new();
    if let Some(own) = store(&entry) {
        let common = outrigger_files::read_to_string(&own.join("commondir"), 4096);
        let common = common
            .ok()
            .and_then(|it| own.join(it.trim()).canonicalize().ok());
        stores.extend(common);
        stores.insert(own);
    }
    if is_bare {
        stores.insert(whole);
    }
    Some(Repository {
        folder,
        entry,
        stores,
    })
}

impl Repository {
    /// It has no work tree: what lies in it is git's.
    fn is_bare(&self) -> bool {
        self.entry.ends_with(&self.folder)
    }

    fn stamps(&self) -> Stamps {
        let mut paths = vec![self.entry.clone()];
        for git in &self.stores {
            paths.extend(SETTINGS.iter().map(|name| git.join(name)));
            paths.push(git.join("commondir"));
            paths.push(git.join("hooks"));
            paths.extend(active_hooks(git));
        }
        // A folder changes with all that is done in it.
        let of = |path: PathBuf| {
            let meta = fs::symlink_metadata(&path).ok();
            let stamp = meta.map(|it| match it.is_dir() {
                true => (it.dev(), it.ino(), 0, 0),
                false => (it.dev(), it.ino(), it.ctime(), it.ctime_nsec()),
            });
            (path, stamp)
        };
        paths.into_iter().map(of).collect()
    }
}

/// Where a `.git` has its repository: it is a folder, a file that names one, or a link.
fn store(entry: &Path) -> Option<PathBuf> {
    if entry.is_dir() {
        return entry.canonicalize().ok();
    }
    let text = outrigger_files::read_to_string(entry, 4096).ok()?;
    let named = text.strip_prefix("gitdir:")?.trim();
    let git = entry.parent()?.join(named).canonicalize().ok()?;
    is_repository(&git).then_some(git)
}

/// What git would run of a folder of hooks, or the folder, where it is a link.
fn active_hooks(git: &Path) -> Vec<PathBuf> {
    let hooks = git.join("hooks");
    if hooks.is_symlink() {
        return vec![hooks];
    }
    let entries = fs::read_dir(&hooks).into_iter().flatten().flatten();
    let names = entries.map(|it| it.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !name.ends_with(".sample") && !name.contains(SUFFIX) && !path.is_dir()
    });
    names.collect()
}

/// Whether it says where the work tree of a submodule is, in the project: git writes files there.
fn is_work_tree(setting: &Setting, project: &Path, git: &Path) -> bool {
    let (section, name) = (setting.section.as_str(), setting.name.as_str());
    let lies_in = |folder: PathBuf| {
        let folder = folder.canonicalize().ok();
        folder.is_some_and(|it| it.starts_with(project) && it != project)
    };
    (section, name) == ("core", "worktree") && lies_in(git.join(setting.text()))
}

/// Leaves of a file of settings what starts nothing, and answers what was taken out.
fn clear_settings(base: &Path, project: &Path, path: &Path) -> Vec<String> {
    let Ok(meta) = fs::symlink_metadata(path) else {
        return Vec::new();
    };
    let is_read = meta.is_file() && meta.len() <= outrigger_files::SETTINGS;
    let settings = if is_read {
        git_config::read(path)
    } else {
        Vec::new()
    };
    let git = path.parent().unwrap_or(path);
    let is_kept = |it: &Setting| harmless::is_harmless(it) || is_work_tree(it, project, git);
    let (kept, taken): (Vec<Setting>, Vec<Setting>) = settings.into_iter().partition(is_kept);
    if is_read && taken.is_empty() {
        return Vec::new();
    }
    let Some(place) = Place::of(base, path) else {
        return Vec::new();
    };
    if place.move_aside().is_none() {
        tracing::error!("[sandbox] {} cannot be renamed: remove it", path.display());
    }
    if let Err(error) = place.write_new(git_config::write(&kept), meta.mode()) {
        tracing::warn!("[sandbox] {} is not written anew: {error}", path.display());
    }
    match is_read {
        true => {
            let keys: BTreeSet<String> = taken.iter().map(Setting::key).collect();
            keys.into_iter().collect()
        }
        false => vec!["settings that cannot be read".to_owned()],
    }
}

#[cfg(test)]
mod tests;
