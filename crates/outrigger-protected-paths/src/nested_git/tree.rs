//! The folders of a project as they were read, kept up to date: a command costs a look at the folders that changed since the last one,
//! not a walk of the project. All commands, plugins and servers of this process share it.
//!
//! What is kept is names alone. What start-up files and settings of repositories hold is read anew each time, as after a walk.
//!
//! A command may do anything to folders and names. Two ways tell which folders it changed, and it can deceive neither: the kernel reports
//! each change of a folder as it is made ([`Watches`]); where there are few folders, or too few watches, the time of each folder's last change
//! is compared, which no process can set. Where neither is certain (reports that were lost, a mount, a file system of another machine, too many
//! folders), everything is read again.

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

use outrigger_files::sync::lock;
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, openat2, statat};

use self::listing::{Listing, is_local};
use self::mounts::Mounts;
use self::watches::Watches;
use super::BEHIND;
use super::repository::repository_in;
use super::walk::{MAX_NAMES, Walked, is_large};

/// Folders of a project that are kept; one with more is walked each time.
const MAX_FOLDERS: usize = 50_000;
/// Folders whose times are compared sooner than the kernel gives up watches, for which a process that ends waits ten milliseconds.
const FEW: usize = 256;
/// Folders that nobody could read, and that are tried each time.
const MAX_UNREAD: usize = 500;
/// Projects that are kept.
const MAX_TREES: usize = 8;

/// By how recently they were used.
static TREES: Mutex<Vec<(PathBuf, Arc<Mutex<State>>)>> = Mutex::new(Vec::new());

/// What is known of a project.
enum State {
    Unknown,
    Read(Box<Tree>),
    /// It must be walked.
    Unfit,
}

/// What lies below a root that was canonicalized, as a walk finds it; `None` where it must be walked. Blocking.
pub(super) fn look(worktree: &Path) -> Option<Walked> {
    let state = state(worktree);
    let mut state = lock(&state);
    let is_current = match &mut *state {
        State::Unfit => return None,
        State::Unknown => false,
        State::Read(tree) => tree.refresh().is_ok(),
    };
    if !is_current {
        // What it has watched is free for the new one.
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

/// Takes what the kernel has reported, so that nothing of it is lost while much happens.
pub(super) fn take_reports(worktree: &Path) {
    let trees = lock(&TREES);
    let known = trees.iter().find(|(it, _)| it == worktree);
    let Some(state) = known.map(|(_, state)| Arc::clone(state)) else {
        return;
    };
    drop(trees);
    // Whoever has it takes them, too.
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

/// Never that of another folder.
type Id = u64;
const ROOT: Id = 0;

/// It must be read anew, or walked.
#[derive(Debug, PartialEq, Eq)]
struct Unfit;

/// What of a folder is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Root,
    Whole,
    /// It holds very many files and is not worked in: of the folders in it, whether they are repositories.
    Large,
    Marks,
}

/// A folder as it was read.
struct Folder {
    name: OsString,
    parent: Id,
    depth: usize,
    reach: Reach,
    /// It is, or lies in, a folder that is not worked in.
    is_last: bool,
    watch: Option<i32>,
    /// Its folders, by name.
    folders: HashMap<OsString, Id>,
    listing: Listing,
    /// It was read so long after its last change that another one has another time.
    is_settled: bool,
}

struct Tree {
    worktree: PathBuf,
    root: OwnedFd,
    folders: HashMap<Id, Folder>,
    next: Id,
    /// Those with something in them that a walk finds.
    notable: BTreeSet<Id>,
    /// Those that are not worked in.
    large: BTreeSet<Id>,
    unread: BTreeSet<Id>,
    names: usize,
    /// Without them, times are compared.
    watches: Option<Watches>,
    mounts: Mounts,
    /// Devices whose file systems are of this machine.
    devices: Vec<u64>,
    /// Folders that it may have without watches.
    few: usize,
    /// Folders that it may have.
    max: usize,
    /// Folders that were read since the beginning.
    reads: u64,
}

/// Folders that wait to be read, the outer ones first.
type Waiting = BinaryHeap<Reverse<(usize, Id)>>;

impl Tree {
    fn read(worktree: &Path) -> Result<Self, Unfit> {
        let watched = Self::read_by(worktree, None, [FEW, MAX_FOLDERS]);
        // There may be too few watches.
        watched.or_else(|Unfit| Self::read_by(worktree, None, [MAX_FOLDERS; 2]))
    }

    /// Of more than the first of these many folders by reports, of more than the second not at all.
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
        let mut waiting = Waiting::new();
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

    /// Those whose times are others, or that changed just before they were read.
    fn by_times(&self) -> BTreeSet<Id> {
        let is_as_read = |id: Id, folder: &Folder| {
            let path = self.path(id);
            let path = if id == ROOT { Path::new(".") } else { &path };
            let now = statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW);
            folder.is_settled && now.is_ok_and(|now| folder.listing.is_as_in(&now))
        };
        let all = self.folders.iter();
        let changed = all.filter(|(id, folder)| !is_as_read(**id, folder));
        changed.map(|(id, _)| *id).collect()
    }

    fn read_all(&mut self, mut waiting: Waiting) -> Result<(), Unfit> {
        while let Some(Reverse((_, id))) = waiting.pop() {
            // It may have gone with the one that it lay in.
            if self.folders.contains_key(&id) {
                self.read_one(id, &mut waiting)?;
            }
            if self.watches.is_none() && self.folders.len() > self.few {
                self.watches = Some(Watches::new().map_err(|_| Unfit)?);
                // Each is read once more, behind its watch.
                let all = self.folders.iter();
                waiting = all.map(|(id, it)| Reverse((it.depth, *id))).collect();
            }
        }
        Ok(())
    }

    fn read_one(&mut self, id: Id, waiting: &mut Waiting) -> Result<(), Unfit> {
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
        match is_notable {
            true => self.notable.insert(id),
            false => self.notable.remove(&id),
        };
        if before != watch {
            self.release(before, id);
        }
        if self.names > MAX_NAMES {
            return Err(Unfit);
        }
        self.take_folders(id, known, names, &open, waiting)
    }

    /// Keeps the folders in one that are those that were read, and adds the others.
    fn take_folders(
        &mut self,
        id: Id,
        mut known: HashMap<OsString, Id>,
        names: Vec<OsString>,
        open: &OwnedFd,
        waiting: &mut Waiting,
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
            match is_same {
                true => drop(known.remove(&name).map(|child| kept.insert(name, child))),
                false => new.push(name),
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

    /// Nothing of what it had is known any more.
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
        match id != ROOT && self.unread.len() <= MAX_UNREAD {
            true => Ok(()),
            false => Err(Unfit),
        }
    }

    fn add(&mut self, parent: Id, name: OsString, waiting: &mut Waiting) -> Result<(), Unfit> {
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

    /// The folder itself, what is in it, and its watch, which is there before it is read.
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

    /// From the root.
    fn path(&self, id: Id) -> PathBuf {
        let mut names = Vec::new();
        let mut at = id;
        while let Some(folder) = self.folders.get(&at).filter(|_| at != ROOT) {
            names.push(&folder.name);
            at = folder.parent;
        }
        names.iter().rev().collect()
    }

    /// As a walk finds it: the nearest first, and last what is not worked in.
    fn found(&self) -> Walked {
        let of = |id: &Id| Some((self.folders.get(id)?, self.path(*id)));
        let mut all: Vec<(&Folder, PathBuf)> = self.notable.iter().filter_map(of).collect();
        all.sort_by(|(one, path), (other, its)| {
            let one = (one.is_last, one.depth, path);
            one.cmp(&(other.is_last, other.depth, its))
        });
        let startup = all.iter().flat_map(|(folder, path)| {
            let names = folder.listing.startup.iter();
            names.map(|name| path.join(name))
        });
        let startup = startup.collect();
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
    /// It cannot be, now.
    Unread,
    Unfit,
}

/// Folders of a project that were read.
#[cfg(test)]
pub(super) fn reads(worktree: &Path) -> Option<u64> {
    match &*lock(&state(worktree)) {
        State::Read(tree) => Some(tree.reads),
        State::Unknown | State::Unfit => None,
    }
}

#[cfg(test)]
mod tests;
