//! The process's own view of the file system: what it must not see is masked, what it must not change is read-only.
//!
//! Landlock does not restrict changes of modes, owners, times and extended attributes, so everything except the writable paths is
//! mounted read-only.
//!
//! Landlock can only allow, so it cannot deny a file inside an allowed folder. Here the child moves to its own mount namespace and
//! binds an empty file or folder over each hidden path, and a read-only copy over each read-only path. Other processes do not see
//! these mounts; they end with the last process of the tree.
//!
//! Masks cover what exists when the process starts. A file created later under a hidden name is the process's own.

mod closed;
mod mount;
mod roots;
mod target;

use std::ffi::CString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use closed::Closed;
use roots::Roots;
use target::{
    Cover, EMPTY_FILE, EMPTY_FOLDER, Gone, STAGE, Target, c_string, collect, links, look,
};

use crate::fs::real_paths::RealPaths;
use crate::namespaces::syscall::check;
use crate::namespaces::unshare::{self, Namespaces};
use crate::policy::Policy;
use crate::policy::view_rules::ViewRule;

/// The error of a start before which a path to mask was moved: the caller must search again.
pub(crate) use target::MOVED;

/// Everything the child needs to set up its view, prepared before fork.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// Writable paths; `None` if everything is writable.
    roots: Option<Roots>,
    /// Mounted over themselves, so that they stay where they are, before `closed`: each carries a copy of what is mounted below it, and
    /// those of folders in one another copies of copies.
    held: Vec<Target>,
    closed: Vec<Closed>,
    covers: Vec<Target>,
    /// Targets below [`STAGE`] itself, applied after it is unmounted.
    late: Vec<Target>,
    terminals: bool,
    memory: bool,
    /// `/proc` may be read, by its own rule.
    reads_proc: bool,
    cwd: CString,
}

impl View {
    /// Prepares the view for this policy. Listed paths that do not exist are skipped.
    ///
    /// # Errors
    /// A path cannot be passed to the kernel or cannot be read; [`MOVED`] if a path that a walk found no longer exists.
    pub(crate) fn of(policy: &Policy, cwd: &Path, real: &mut RealPaths) -> io::Result<Self> {
        let kept = policy.kept.covers();
        let read_only = |_: &fs::Metadata| Cover::ReadOnly;
        let stays = |_: &fs::Metadata| Cover::Held;
        let mut hide = collect(&policy.hide, empty, Gone::Skipped, real)?;
        hide.extend(collect(&kept.hide, empty, Gone::Moved, real)?);
        let mut covers = collect(&policy.read_only, read_only, Gone::Skipped, real)?;
        covers.extend(collect(&kept.read_only, read_only, Gone::Moved, real)?);
        let mut held = collect(&policy.held, stays, Gone::Skipped, real)?;
        held.extend(collect(&kept.held, stays, Gone::Skipped, real)?);
        held.extend(links(&policy.held, real)?);
        held.extend(links(&kept.held, real)?);
        let closed = collect(&kept.closed, stays, Gone::Skipped, real)?;
        // Outer before inner.
        for list in [&mut held, &mut covers, &mut hide] {
            list.sort_by(|(a, _), (b, _)| a.cmp(b));
            list.dedup_by(|(a, _), (b, _)| a == b);
        }
        let closed = closed::all(closed, &policy.shown(), real)?;
        // Paths in a hidden folder can no longer be reached, nor paths that a closed folder does not show.
        let folders: Vec<PathBuf> = hide
            .iter()
            .filter(|(_, target)| target.cover == Cover::Folder)
            .map(|(path, _)| path.clone())
            .collect();
        let is_reached = |path: &Path| {
            let mut above = path.ancestors().skip(1);
            let hidden = above.any(|it| {
                folders
                    .binary_search_by(|folder| folder.as_path().cmp(it))
                    .is_ok()
            });
            // A closed folder is replaced by another one, which cannot be moved either.
            let is_shown = |(at, closed): &(PathBuf, Closed)| at != path && closed.shows(at, path);
            !hidden && closed.iter().all(is_shown)
        };
        covers.extend(hide);
        let reached = |found: Vec<(PathBuf, Target)>| -> Vec<Target> {
            let found = found.into_iter().filter(|(path, _)| is_reached(path));
            found.map(|(_, target)| target).collect()
        };
        Ok(Self {
            roots: Roots::of(policy, real)?,
            held: reached(held),
            covers: reached(covers),
            closed: closed.into_iter().map(|(_, closed)| closed).collect(),
            late: kernel(policy, real)?,
            terminals: policy.own_terminals,
            memory: policy.own_memory && Path::new("/dev/shm").is_dir(),
            reads_proc: policy.read.iter().any(|path| path == Path::new("/proc")),
            cwd: c_string(cwd.as_os_str())?,
        })
    }

    /// Returns rules for the file systems it mounts; `numbers` as for [`View::apply`].
    pub(crate) fn late(&self, numbers: bool) -> Vec<ViewRule> {
        let all = [
            (self.terminals, ViewRule::TERMINALS),
            (self.memory, ViewRule::MEMORY),
            (self.reads_proc && numbers, ViewRule::NUMBERS),
        ];
        all.into_iter()
            .filter(|(is_made, _)| *is_made)
            .map(|(_, late)| late)
            .collect()
    }

    /// Runs in the child, in its own namespaces: async-signal-safe calls only. `numbers`: one of them is a PID namespace.
    #[expect(
        unsafe_code,
        reason = "system calls between fork and exec, where only raw calls are allowed"
    )]
    pub(crate) fn apply(&self, numbers: bool) -> io::Result<()> {
        if let Some(roots) = &self.roots {
            roots.apply()?;
        }
        for target in &self.held {
            // SAFETY: what is opened is closed by what covers it.
            unsafe { target.apply()? };
        }
        stage()?;
        // SAFETY: raw calls with pointers to prepared, nul-terminated strings.
        unsafe {
            // Empty rather than unreadable: git fails on a file that it cannot open.
            check(libc::mkdir(EMPTY_FOLDER.as_ptr(), 0o555))?;
            let file = libc::open(
                EMPTY_FILE.as_ptr(),
                libc::O_CREAT | libc::O_RDONLY | libc::O_CLOEXEC,
                0o444,
            );
            check(file)?;
            libc::close(file);
            for closed in &self.closed {
                closed.apply()?;
            }
            for target in &self.held {
                target.still_holds()?;
            }
            for target in &self.covers {
                target.apply()?;
            }
            check(libc::umount2(STAGE.as_ptr(), libc::MNT_DETACH))?;
            if numbers {
                unshare::own_proc(self.roots.is_some())?;
            }
            for target in &self.late {
                target.apply_to(target.open_whatever()?)?;
            }
            if self.terminals {
                check(libc::mount(
                    c"devpts".as_ptr(),
                    c"/dev/pts".as_ptr(),
                    c"devpts".as_ptr(),
                    libc::MS_NOSUID | libc::MS_NOEXEC,
                    c"newinstance,ptmxmode=0666,mode=0600".as_ptr().cast(),
                ))?;
            }
            if self.memory {
                check(libc::mount(
                    c"tmpfs".as_ptr(),
                    c"/dev/shm".as_ptr(),
                    c"tmpfs".as_ptr(),
                    libc::MS_NOSUID | libc::MS_NODEV,
                    c"mode=1777".as_ptr().cast(),
                ))?;
            }
            // The old working directory still refers to the unmasked folder.
            check(libc::chdir(self.cwd.as_ptr()))
        }
    }
}

/// Makes what every view needs, in a child that tries it out: a read-only file system and the small one at [`STAGE`].
pub(crate) fn attempt() -> io::Result<()> {
    Roots::default().apply()?;
    stage()
}

/// Mounts a small file system at [`STAGE`].
#[expect(unsafe_code, reason = "see `View::apply`")]
fn stage() -> io::Result<()> {
    // SAFETY: raw calls on literals.
    unsafe {
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        check(libc::mount(
            c"tmpfs".as_ptr(),
            STAGE.as_ptr(),
            c"tmpfs".as_ptr(),
            flags,
            c"nr_inodes=64,size=4k,mode=700".as_ptr().cast(),
        ))
    }
}

/// Returns the mask of a hidden path.
fn empty(meta: &fs::Metadata) -> Cover {
    if meta.is_dir() {
        Cover::Folder
    } else {
        Cover::File
    }
}

/// Returns the kernel settings that a confined root could still write; some of them name programs.
fn kernel(policy: &Policy, real: &mut RealPaths) -> io::Result<Vec<Target>> {
    if Namespaces::needed().has_user() {
        return Ok(Vec::new());
    }
    let all = policy.write.iter().any(|path| path == Path::new("/"));
    let paths: Vec<PathBuf> = Some("/proc/sys".into())
        .filter(|_| all)
        .into_iter()
        .collect();
    let found = look(&paths, |_| Cover::ReadOnly, Gone::Skipped, real)?;
    Ok(found.into_iter().map(|(_, target)| target).collect())
}
