//! Changes of folders as the kernel reports them: at once, each before the system call that made it returns.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::fs::inotify::{
    CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch,
};
use rustix::io::Errno;

use super::Id;

/// Share of the user's watches: three of four are left to editors and builds.
const SHARE: usize = 4;
/// Buffer size for reports in bytes.
const BUFFER: usize = 16 * 1024;
const LIMIT: &str = "/proc/sys/fs/inotify/max_user_watches";

/// The watches of a project.
pub(super) struct Watches {
    notify: OwnedFd,
    /// Folders of a watch. Two if a folder was moved and its old parent is not read yet.
    of: HashMap<i32, Vec<Id>>,
    max: usize,
    changed: BTreeSet<Id>,
    /// Reports were lost.
    is_lost: bool,
}

impl Watches {
    /// # Errors
    /// There are none.
    pub(super) fn new() -> io::Result<Self> {
        let limit: usize = outrigger_files::read_to_string(LIMIT.as_ref(), 64)?
            .trim()
            .parse()
            .map_err(io::Error::other)?;
        Ok(Self {
            notify: init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            of: HashMap::new(),
            max: limit / SHARE,
            changed: BTreeSet::new(),
            is_lost: false,
        })
    }

    /// Watches an open folder, whatever its name is by now.
    ///
    /// # Errors
    /// There are no more.
    pub(super) fn add(&mut self, open: &OwnedFd, id: Id) -> io::Result<i32> {
        let flags = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR;
        let path = format!("/proc/self/fd/{}", open.as_raw_fd());
        let watch = add_watch(&self.notify, path, flags)?;
        let ids = self.of.entry(watch).or_default();
        if !ids.contains(&id) {
            ids.push(id);
        }
        if self.of.len() <= self.max {
            Ok(watch)
        } else {
            Err(Errno::NOSPC.into())
        }
    }

    pub(super) fn release(&mut self, watch: i32, id: Id) {
        let Some(ids) = self.of.get_mut(&watch) else {
            return;
        };
        ids.retain(|it| *it != id);
        if ids.is_empty() {
            self.of.remove(&watch);
            // The watch of a removed folder is removed with it.
            let _ = remove_watch(&self.notify, watch);
        }
    }

    /// Takes the reports so far.
    pub(super) fn take(&mut self) {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reports = Reader::new(&self.notify, &mut buffer);
        loop {
            let report = match reports.next() {
                Ok(report) => report,
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => continue,
                Err(_) => {
                    self.is_lost = true;
                    return;
                }
            };
            self.is_lost |= report.events().contains(ReadFlags::QUEUE_OVERFLOW);
            if report.events().contains(ReadFlags::IGNORED) {
                self.changed
                    .extend(self.of.remove(&report.wd()).unwrap_or_default())
            } else {
                self.changed
                    .extend(self.of.get(&report.wd()).into_iter().flatten())
            }
        }
    }

    /// Returns the folders that changed since the last call; `None` if that is uncertain.
    pub(super) fn changed(&mut self) -> Option<BTreeSet<Id>> {
        self.take();
        (!self.is_lost).then(|| std::mem::take(&mut self.changed))
    }
}
