//! A cached tree of a project's folders, kept up to date: a command only costs reading the folders that changed, not a walk of
//! the project. All commands, plugins and servers of this process share it.
//!
//! Only names are cached. The contents of start-up files and repository settings are re-read each time, as after a walk.
//!
//! A command may do anything to folders and names. Changed folders are detected in two ways, neither of which a command can
//! deceive: the kernel reports each change of a folder as it is made ([`Watches`]); if there are few folders, or too few watches,
//! the change time of each folder is compared, which no process can set. If neither is reliable (lost reports, a mount, a network
//! file system, too many folders), everything is read again.

mod listing;
mod mounts;
mod watches;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use outrigger_stdx::sync::lock;
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, openat2, statat};

use self::listing::{Listing, is_local};
use self::mounts::Mounts;
use self::watches::Watches;
use super::BEHIND;
use super::repository::repository_in;
use super::walk::{MAX_NAMES, Walked, is_large};

/// Maximum number of cached folders of a project; a larger one is walked each time.
const MAX_FOLDERS: usize = 50_000;
/// Number of folders up to which comparing times is faster than releasing watches, for which an ending process waits ten
/// milliseconds.
const FEW: usize = 256;
/// Maximum number of unreadable folders, which are retried each time.
const MAX_UNREAD: usize = 500;
/// Maximum number of cached projects.
const MAX_TREES: usize = 8;

/// Ordered by last use.
static TREES: Mutex<Vec<(PathBuf, Arc<Mutex<State>>)>> = Mutex::new(Vec::new());

/// State of a project.
enum State {
    Unknown,
    Read(Box<Tree>),
    /// It must be walked.
    Unfit,
}

/// Returns the entries below a canonicalised root, as a walk finds them; `None` if it must be walked. Blocking.
pub(super) fn look(worktree: &Path) -> Option<Walked> {
    let state = state(worktree);
    let mut state = lock(&state);
    let is_current = match &mut *state {
        State::Unfit => return None,
        State::Unknown => false,
        State::Read(tree) => tree.refresh().is_ok(),
    };
    if !is_current {
        // Release its watches for the new one.
        *state = State::Unknown;
        *state = match Tree::read(worktree) {
            Ok(tree) => State::Read(Box::new(tree)),
            Err(Unfit) => State::Unfit,
        };
    }
    match &*state {
        State::Read(tree) => Some(tree.found()),
        State::Unknown | State::Unfit => None,
    }
}

/// Takes the kernel's reports, so that none is lost while much happens.
pub(super) fn take_reports(worktree: &Path) {
    let trees = lock(&TREES);
    let known = trees.iter().find(|(it, _)| it == worktree);
    let Some(state) = known.map(|(_, state)| Arc::clone(state)) else {
        return;
    };
    drop(trees);
    // The holder of the lock takes them too.
    if let Ok(mut state) = state.try_lock()
        && let State::Read(tree) = &mut *state
        && let Some(watches) = &mut tree.watches
    {
        watches.take();
    }
}

fn state(worktree: &Path) -> Arc<Mutex<State>> {
    let mut trees = lock(&TREES);
    let at = trees.iter().position(|(it, _)| it == worktree);
    let (path, state) = match at {
        Some(at) => trees.remove(at),
        None => (worktree.to_owned(), Arc::new(Mutex::new(State::Unknown))),
    };
    if trees.len() >= MAX_TREES {
        trees.remove(0);
    }
    trees.push((path, Arc::clone(&state)));
    state
}

/// Unique id of a folder.
type Id = u64;
const ROOT: Id = 0;

/// The tree must be read again, or walked.
#[derive(Debug, PartialEq, Eq)]
struct Unfit;

/// How much of a folder is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Root,
    Whole,
    /// It contains very many files and is not worked in: only check whether its subfolders are repositories.
    Large,
    Marks,
}

/// A folder as it was read.
struct Folder {
    name: OsString,
    parent: Id,
    depth: usize,
    reach: Reach,
    /// It is, or is in, a folder that is not worked in.
    is_last: bool,
    watch: Option<i32>,
    /// Its folders, by name.
    folders: HashMap<OsString, Id>,
    listing: Listing,
    /// It was read long enough after its last change that a further change has a different time.
    is_settled: bool,
}

struct Tree {
    worktree: PathBuf,
    root: OwnedFd,
    folders: HashMap<Id, Folder>,
    next: Id,
    /// Folders with entries that a walk finds.
    notable: BTreeSet<Id>,
    /// Folders that are not worked in.
    large: BTreeSet<Id>,
    unread: BTreeSet<Id>,
    names: usize,
    /// If `None`, times are compared.
    watches: Option<Watches>,
    mounts: Mounts,
    /// Devices with local file systems.
    devices: Vec<u64>,
    /// Maximum number of folders without watches.
    few: usize,
    /// Maximum number of folders.
    max: usize,
    /// Number of folders read so far.
    reads: u64,
}

/// Folders to read, outer ones first.
type FolderQueue = BinaryHeap<Reverse<(usize, Id)>>;

impl Tree {
    fn read(worktree: &Path) -> Result<Self, Unfit> {
        let watched = Self::read_by(worktree, None, [FEW, MAX_FOLDERS]);
        // There may be too few watches.
        watched.or_else(|Unfit| Self::read_by(worktree, None, [MAX_FOLDERS; 2]))
    }

    /// Reads with watches above the first limit of folders, and not at all above the second.
    fn read_by(
        worktree: &Path,
        watches: Option<Watches>,
        [few, max]: [usize; 2],
    ) -> Result<Self, Unfit> {
        let mounts = Mounts::below(worktree).map_err(|_| Unfit)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(worktree, flags, Mode::empty()).map_err(|_| Unfit)?;
        let mut tree = Self {
            worktree: worktree.to_owned(),
            root,
            folders: HashMap::new(),
            next: ROOT,
            notable: BTreeSet::new(),
            large: BTreeSet::new(),
            unread: BTreeSet::new(),
            names: 0,
            watches,
            mounts,
            devices: Vec::new(),
            few,
            max,
            reads: 0,
        };
        let mut waiting = FolderQueue::new();
        tree.add(ROOT, OsString::new(), &mut waiting)?;
        tree.read_all(waiting)?;
        Ok(tree)
    }

    /// Reads what changed.
    fn refresh(&mut self) -> Result<(), Unfit> {
        let root = self.folders.get(&ROOT).ok_or(Unfit)?;
        let now = fs::symlink_metadata(&self.worktree).map_err(|_| Unfit)?;
        if !root.listing.is_of(now.dev(), now.ino()) || self.mounts.have_changed() {
            return Err(Unfit);
        }
        let mut changed = match &mut self.watches {
            Some(watches) => watches.changed().ok_or(Unfit)?,
            None => self.by_times(),
        };
        changed.extend(&self.unread);
        let depth = |id: Id| Some(Reverse((self.folders.get(&id)?.depth, id)));
        let waiting = changed.into_iter().filter_map(depth).collect();
        self.read_all(waiting)
    }

    /// Returns the folders with changed times, or that changed just before they were read.
    fn by_times(&self) -> BTreeSet<Id> {
        let is_as_read = |id: Id, folder: &Folder| {
            let path = self.path(id);
            let path = if id == ROOT { Path::new(".") } else { &path };
            let now = statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW);
            folder.is_settled && now.is_ok_and(|now| folder.listing.is_as_in(&now))
        };
        self.folders
            .iter()
            .filter(|(id, folder)| !is_as_read(**id, folder))
            .map(|(id, _)| *id)
            .collect()
    }

    fn read_all(&mut self, mut waiting: FolderQueue) -> Result<(), Unfit> {
        while let Some(Reverse((_, id))) = waiting.pop() {
            // It may have been removed with its parent.
            if self.folders.contains_key(&id) {
                self.read_one(id, &mut waiting)?;
            }
            if self.watches.is_none() && self.folders.len() > self.few {
                self.watches = Some(Watches::new().map_err(|_| Unfit)?);
                // Each is read once more, after its watch is set.
                let all = self.folders.iter();
                waiting = all.map(|(id, it)| Reverse((it.depth, *id))).collect();
            }
        }
        Ok(())
    }

    fn read_one(&mut self, id: Id, waiting: &mut FolderQueue) -> Result<(), Unfit> {
        self.reads += 1;
        let began = SystemTime::now();
        let (open, mut listing, watch) = match self.open(id) {
            Ok(opened) => opened,
            Err(Failed::Unfit) => return Err(Unfit),
            Err(Failed::Unread) => return self.could_not_read(id),
        };
        let Some(folder) = self.folders.get_mut(&id) else {
            return Ok(());
        };
        let before = std::mem::replace(&mut folder.watch, watch);
        folder.is_settled = listing.is_older_than(began.checked_sub(BEHIND).unwrap_or(UNIX_EPOCH));
        let known = std::mem::take(&mut folder.folders);
        let names = std::mem::take(&mut listing.folders);
        self.names = self.names + listing.names - folder.listing.names;
        let is_notable = listing.is_notable();
        folder.listing = listing;
        self.unread.remove(&id);
        if is_notable {
            self.notable.insert(id)
        } else {
            self.notable.remove(&id)
        };
        if before != watch {
            self.release(before, id);
        }
        if self.names > MAX_NAMES {
            return Err(Unfit);
        }
        self.take_folders(id, known, names, &open, waiting)
    }

    /// Keeps the unchanged subfolders of a folder, and adds the others.
    fn take_folders(
        &mut self,
        id: Id,
        mut known: HashMap<OsString, Id>,
        names: Vec<OsString>,
        open: &OwnedFd,
        waiting: &mut FolderQueue,
    ) -> Result<(), Unfit> {
        let mut kept = HashMap::with_capacity(names.len());
        let mut new = Vec::new();
        for name in names {
            let Some(child) = known.get(&name).copied() else {
                new.push(name);
                continue;
            };
            let now = statat(open, &name, AtFlags::SYMLINK_NOFOLLOW);
            let folder = self.folders.get(&child);
            let is_same = folder.zip(now.ok()).is_some_and(|(folder, now)| {
                let is_reported = self.watches.is_none() || folder.watch.is_some();
                is_reported && folder.listing.is_of(now.st_dev, now.st_ino)
            });
            if is_same {
                known.remove(&name);
                kept.insert(name, child);
            } else {
                new.push(name);
            }
        }
        known.into_values().for_each(|gone| self.forget(gone));
        if let Some(folder) = self.folders.get_mut(&id) {
            folder.folders = kept;
        }
        for name in new {
            self.add(id, name, waiting)?;
        }
        Ok(())
    }

    /// Forgets the content of an unreadable folder.
    fn could_not_read(&mut self, id: Id) -> Result<(), Unfit> {
        self.notable.remove(&id);
        self.unread.insert(id);
        let Some(folder) = self.folders.get_mut(&id) else {
            return Ok(());
        };
        let watch = folder.watch.take();
        let gone = std::mem::take(&mut folder.folders);
        self.names -= folder.listing.names;
        folder.listing = Listing::default();
        folder.is_settled = false;
        self.release(watch, id);
        gone.into_values().for_each(|gone| self.forget(gone));
        if id != ROOT && self.unread.len() <= MAX_UNREAD {
            Ok(())
        } else {
            Err(Unfit)
        }
    }

    fn add(&mut self, parent: Id, name: OsString, waiting: &mut FolderQueue) -> Result<(), Unfit> {
        let id = self.next;
        let around = self.folders.get(&parent);
        let reach = match around.map(|it| it.reach) {
            None => Reach::Root,
            Some(Reach::Large | Reach::Marks) => Reach::Marks,
            Some(Reach::Root | Reach::Whole) if is_large(Some(&name)) => Reach::Large,
            Some(Reach::Root | Reach::Whole) => Reach::Whole,
        };
        let depth = around.map_or(0, |it| it.depth + 1);
        let is_last = matches!(reach, Reach::Large | Reach::Marks);
        if self.folders.len() >= self.max {
            return Err(Unfit);
        }
        if let Some(around) = self.folders.get_mut(&parent) {
            around.folders.insert(name.clone(), id);
        }
        let folder = Folder {
            name,
            parent,
            depth,
            reach,
            is_last,
            watch: None,
            folders: HashMap::new(),
            listing: Listing::default(),
            is_settled: false,
        };
        self.folders.insert(id, folder);
        if reach == Reach::Large {
            self.large.insert(id);
        }
        self.next += 1;
        waiting.push(Reverse((depth, id)));
        Ok(())
    }

    fn forget(&mut self, id: Id) {
        let mut gone = vec![id];
        while let Some(id) = gone.pop() {
            let Some(folder) = self.folders.remove(&id) else {
                continue;
            };
            self.notable.remove(&id);
            self.large.remove(&id);
            self.unread.remove(&id);
            self.names -= folder.listing.names;
            gone.extend(folder.folders.into_values());
            self.release(folder.watch, id);
        }
    }

    fn release(&mut self, watch: Option<i32>, id: Id) {
        if let (Some(watches), Some(watch)) = (&mut self.watches, watch) {
            watches.release(watch, id);
        }
    }

    /// Opens a folder, sets its watch, and then reads it.
    fn open(&mut self, id: Id) -> Result<(OwnedFd, Listing, Option<i32>), Failed> {
        let path = self.path(id);
        let path = if id == ROOT { Path::new(".") } else { &path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = openat2(
            &self.root,
            path,
            flags,
            Mode::empty(),
            ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
        );
        let open = open.map_err(|_| Failed::Unread)?;
        let watch = match &mut self.watches {
            Some(watches) => Some(watches.add(&open, id).map_err(|_| Failed::Unfit)?),
            None => None,
        };
        let reach = self.folders.get(&id).map_or(Reach::Whole, |it| it.reach);
        let Ok(listing) = Listing::of(&open, reach) else {
            self.release(watch, id);
            return Err(Failed::Unread);
        };
        let device = listing.device();
        if !self.devices.contains(&device) {
            if !is_local(&open) {
                return Err(Failed::Unfit);
            }
            self.devices.push(device);
        }
        Ok((open, listing, watch))
    }

    /// Returns its path relative to the root.
    fn path(&self, id: Id) -> PathBuf {
        let mut names = Vec::new();
        let mut at = id;
        while let Some(folder) = self.folders.get(&at).filter(|_| at != ROOT) {
            names.push(&folder.name);
            at = folder.parent;
        }
        names.iter().rev().collect()
    }

    /// Returns the entries as a walk finds them: the nearest first, and last those that are not worked in.
    fn found(&self) -> Walked {
        let of = |id: &Id| Some((self.folders.get(id)?, self.path(*id)));
        let mut all: Vec<(&Folder, PathBuf)> = self.notable.iter().filter_map(of).collect();
        all.sort_by(|(one, path), (other, its)| {
            let one = (one.is_last, one.depth, path);
            one.cmp(&(other.is_last, other.depth, its))
        });
        let startup = all
            .iter()
            .flat_map(|(folder, path)| folder.listing.startup.iter().map(|name| path.join(name)))
            .collect();
        let marked = all
            .into_iter()
            .filter(|(folder, _)| folder.listing.is_marked && folder.reach != Reach::Root);
        let repositories = marked.filter_map(|(_, path)| repository_in(&self.worktree, path));
        Walked {
            repositories: repositories.collect(),
            startup,
            large: self.large.iter().map(|id| self.path(*id)).collect(),
            is_whole: true,
        }
    }
}

/// Why a folder was not read.
enum Failed {
    /// It is currently unreadable.
    Unread,
    Unfit,
}

/// Returns the number of folders read in a project.
#[cfg(test)]
pub(super) fn reads(worktree: &Path) -> Option<u64> {
    match &*lock(&state(worktree)) {
        State::Read(tree) => Some(tree.reads),
        State::Unknown | State::Unfit => None,
    }
}

#[cfg(test)]
mod tests;
