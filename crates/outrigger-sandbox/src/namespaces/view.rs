//! A view of the file system of its own: what a process must not see is covered, what it must not change is read-only.
//!
//! Landlock does not rule modes, owners, times and extended attributes of files, so all is mounted read-only but what may be
//! written.
//!
//! Landlock only allows, so a file inside an allowed folder cannot be denied by it. Here the child moves to a mount
//! namespace of its own and binds an empty file or folder over what is hidden, and a read-only copy of itself over what
//! is frozen. No one else sees these mounts; they end with the last process of the tree.
//!
//! What is covered is what exists when the process starts. A file made later under a hidden name is the process's own.

use std::ffi::{CString, OsStr};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use closed::Closed;
use roots::Roots;

use crate::policy::{Late, Policy};

mod closed;
mod roots;

/// Where the empty file and folder stand while the mounts are made. Nothing below is looked up meanwhile, and it exists
/// everywhere.
const STAGE: &std::ffi::CStr = c"/proc";
const EMPTY_FILE: &std::ffi::CStr = c"/proc/file";
const EMPTY_FOLDER: &std::ffi::CStr = c"/proc/folder";

/// `struct mount_attr` of `linux/mount.h`, which the C library's bindings lack.
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}
/// `MOUNT_ATTR_RDONLY` of the same header.
const READ_ONLY: u64 = 1;
/// `OPEN_TREE_CLONE` of the same header.
const OPEN_TREE_CLONE: libc::c_int = 1;
/// `MOVE_MOUNT_F_EMPTY_PATH` and `MOVE_MOUNT_T_EMPTY_PATH` of the same header.
const MOVE_MOUNT_EMPTY_PATHS: libc::c_uint = 0x44;

/// `MOVE_MOUNT_F_EMPTY_PATH` alone.
const MOVE_MOUNT_FROM_EMPTY_PATH: libc::c_uint = 4;

/// The error of a start before which something was moved that is to be covered: it has to be looked for anew.
pub(crate) const MOVED: libc::c_int = libc::ESTALE;

/// What it means that a path is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gone {
    Skipped,
    Moved,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cover {
    File,
    Folder,
    ReadOnly,
    Held,
}

/// What is covered, by the path at which it was found and as what it was found there.
#[derive(Debug, Clone)]
struct Target {
    path: CString,
    device: u64,
    inode: u64,
    cover: Cover,
}

/// Everything the child needs to make its view, prepared before fork.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// What may be written; none where that is everything.
    roots: Option<Roots>,
    closed: Vec<Closed>,
    covers: Vec<Target>,
    /// What is below [`STAGE`] itself, when that is gone again.
    late: Vec<Target>,
    terminals: bool,
    memory: bool,
    /// `/proc` may be read, by a rule of its own.
    reads_proc: bool,
    cwd: CString,
}

/// The identity map of a user namespace: the process stays who it is.
#[derive(Debug, Clone)]
struct Maps {
    uid: String,
    gid: String,
}

impl Maps {
    /// What the host needs so that its children can mount: nothing when it may do so itself.
    fn needed() -> Option<Self> {
        let admin = rustix::thread::capabilities(None).is_ok_and(|sets| {
            sets.effective
                .contains(rustix::thread::CapabilitySet::SYS_ADMIN)
        });
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        (!admin).then(|| Self {
            uid: format!("{0} {0} 1", uid.as_raw()),
            gid: format!("{0} {0} 1", gid.as_raw()),
        })
    }
}

impl View {
    /// Of this policy. Paths of its lists that do not exist are skipped.
    ///
    /// # Errors
    /// A path that cannot be handed to the kernel, or cannot be looked at; [`MOVED`] when something that a walk found is no
    /// longer there.
    pub(crate) fn of(policy: &Policy, cwd: &Path) -> io::Result<Self> {
        let hidden = |meta: &fs::Metadata| match meta.is_dir() {
            true => Cover::Folder,
            false => Cover::File,
        };
        let kept = policy.kept.covers();
        let mut hide = collect(&policy.hide, hidden, Gone::Skipped)?;
        hide.extend(collect(&kept.hide, hidden, Gone::Moved)?);
        let mut covers = collect(&policy.read_only, |_| Cover::ReadOnly, Gone::Skipped)?;
        covers.extend(collect(&kept.read_only, |_| Cover::ReadOnly, Gone::Moved)?);
        let mut held = collect(&policy.held, |_| Cover::Held, Gone::Skipped)?;
        held.extend(collect(&kept.held, |_| Cover::Held, Gone::Skipped)?);
        let closed = collect(&kept.closed, |_| Cover::Held, Gone::Skipped)?;
        // What is bound to itself first: that would uncover what is hidden below. Outer before inner.
        for list in [&mut held, &mut covers, &mut hide] {
            list.sort_by(|(a, _), (b, _)| a.cmp(b));
            list.dedup_by(|(a, _), (b, _)| a == b);
        }
        let closed = closed::all(closed, &kept.held)?;
        // What lies in a hidden folder cannot be reached any more, nor what a closed one does not show.
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
            !hidden && closed.iter().all(|(at, closed)| closed.shows(at, path))
        };
        held.extend(covers);
        held.extend(hide);
        let mut covers = held;
        covers.retain(|(path, _)| is_reached(path));
        Ok(Self {
            roots: Roots::of(policy)?,
            closed: closed.into_iter().map(|(_, closed)| closed).collect(),
            covers: covers.into_iter().map(|(_, target)| target).collect(),
            late: kernel(policy)?,
            terminals: policy.own_terminals,
            memory: policy.own_memory && Path::new("/dev/shm").is_dir(),
            reads_proc: policy.read.iter().any(|path| path == Path::new("/proc")),
            cwd: c_string(cwd.as_os_str())?,
        })
    }

    /// File systems that it makes; `numbers` as for [`View::apply`].
    pub(crate) fn late(&self, numbers: bool) -> Vec<Late> {
        let all = [
            (self.terminals, Late::TERMINALS),
            (self.memory, Late::MEMORY),
            (self.reads_proc && numbers, Late::NUMBERS),
        ];
        let made = all.into_iter().filter(|(is_made, _)| *is_made);
        made.map(|(_, late)| late).collect()
    }

    /// Runs in the child, in namespaces of its own: async-signal-safe calls only. `numbers`: among them is one of process numbers.
    #[expect(
        unsafe_code,
        reason = "system calls between fork and exec, where only raw calls are allowed"
    )]
    pub(crate) fn apply(&self, numbers: bool) -> io::Result<()> {
        if let Some(roots) = &self.roots {
            roots.apply()?;
        }
        stage()?;
        // SAFETY: raw calls with pointers to prepared, nul-terminated strings.
        unsafe {
            // Empty and not unreadable: git gives up on a file that it cannot open.
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
            for target in &self.covers {
                target.apply()?;
            }
            check(libc::umount2(STAGE.as_ptr(), libc::MNT_DETACH))?;
            if numbers {
                own_proc(self.roots.is_some())?;
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
            // The old working directory is still the uncovered one.
            check(libc::chdir(self.cwd.as_ptr()))
        }
    }
}

/// Whether a child of this host can have a view of its own; asked once, by trying it.
#[expect(unsafe_code, reason = "fork: the try is made in a child")]
pub(crate) fn is_possible() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let namespaces = Namespaces::needed();
        // SAFETY: the child makes async-signal-safe calls only and ends without running anything of ours.
        unsafe {
            match libc::fork() {
                -1 => false,
                0 => {
                    let made = namespaces
                        .enter()
                        .and_then(|()| Roots::default().apply())
                        .and_then(|()| stage());
                    libc::_exit(i32::from(made.is_err()))
                }
                child => {
                    let mut status = 0;
                    while libc::waitpid(child, &raw mut status, 0) == -1 {
                        if io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
                            return false;
                        }
                    }
                    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
                }
            }
        }
    })
}

/// What a process has to itself: mounts, and System V memory, semaphores and queues, which are no files.
const OWN: libc::c_int = libc::CLONE_NEWNS | libc::CLONE_NEWIPC;

/// Namespaces of a process of ours, and who it is in them.
#[derive(Debug, Clone)]
pub(crate) struct Namespaces(Option<Maps>);

impl Namespaces {
    /// What a child of this host needs to have any.
    pub(crate) fn needed() -> Self {
        Self(Maps::needed())
    }

    /// For `clone`, with numbers of processes among them.
    pub(crate) fn flags(&self) -> libc::c_int {
        let user = self.0.as_ref().map_or(0, |_| libc::CLONE_NEWUSER);
        OWN | libc::CLONE_NEWPID | user
    }

    /// Moves the caller to namespaces of its own, but for that of numbers, which only a child would be in.
    #[expect(unsafe_code, reason = "see `View::apply`")]
    pub(crate) fn enter(&self) -> io::Result<()> {
        let user = self.0.as_ref().map_or(0, |_| libc::CLONE_NEWUSER);
        // SAFETY: a number.
        check(unsafe { libc::unshare(OWN | user) })?;
        self.settle()
    }

    /// What is left to do in new ones: the caller stays who it is, and mounts of its own stay its own.
    #[expect(unsafe_code, reason = "see `View::apply`")]
    pub(crate) fn settle(&self) -> io::Result<()> {
        // SAFETY: raw calls on numbers and literals.
        unsafe {
            if let Some(maps) = &self.0 {
                // The host is not dumpable, so its child's files in /proc are root's until this; exec decides anew.
                libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
                write(c"/proc/self/setgroups", b"deny")?;
                write(c"/proc/self/uid_map", maps.uid.as_bytes())?;
                write(c"/proc/self/gid_map", maps.gid.as_bytes())?;
            }
            let none = std::ptr::null();
            // What the host mounts later still shows up here, what is mounted here stays here.
            check(libc::mount(
                none,
                c"/".as_ptr(),
                none,
                libc::MS_REC | libc::MS_SLAVE,
                none.cast(),
            ))
        }
    }
}

/// Mounts the `/proc` of the caller's namespace of numbers.
#[expect(unsafe_code, reason = "see `View::apply`")]
pub(crate) fn own_proc(read_only: bool) -> io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    let flags = if read_only {
        flags | libc::MS_RDONLY
    } else {
        flags
    };
    // SAFETY: raw calls on literals.
    check(unsafe {
        libc::mount(
            c"proc".as_ptr(),
            c"/proc".as_ptr(),
            c"proc".as_ptr(),
            flags,
            std::ptr::null(),
        )
    })
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

impl Target {
    /// What is at its place now.
    #[expect(unsafe_code, reason = "see `View::apply`")]
    unsafe fn open_whatever(&self) -> io::Result<libc::c_int> {
        let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: a prepared string.
        let target = unsafe { libc::open(self.path.as_ptr(), flags) };
        check(target).map_err(moved)?;
        Ok(target)
    }

    /// What was found, and nothing else that has its place now.
    #[expect(unsafe_code, reason = "see `View::apply`")]
    unsafe fn open(&self) -> io::Result<libc::c_int> {
        // SAFETY: a raw call on a local of the size that is passed.
        unsafe {
            let target = self.open_whatever()?;
            let mut stat: libc::stat = std::mem::zeroed();
            check(libc::fstat(target, &raw mut stat))?;
            if stat.st_dev != self.device || stat.st_ino != self.inode {
                return Err(io::Error::from_raw_os_error(MOVED));
            }
            Ok(target)
        }
    }

    /// Covers what was found and nothing else: it is held by a descriptor, so it may be moved about meanwhile. Runs in the
    /// child.
    #[expect(unsafe_code, reason = "see `View::apply`")]
    unsafe fn apply(&self) -> io::Result<()> {
        // SAFETY: what is opened is closed by what covers it.
        unsafe { self.apply_to(self.open()?) }
    }

    /// Covers an open file or folder, and closes it.
    #[expect(unsafe_code, reason = "see `View::apply`")]
    unsafe fn apply_to(&self, target: libc::c_int) -> io::Result<()> {
        // SAFETY: raw calls on descriptors that are open.
        unsafe {
            let (from, source, below) = match self.cover {
                Cover::File => (libc::AT_FDCWD, EMPTY_FILE, 0),
                Cover::Folder => (libc::AT_FDCWD, EMPTY_FOLDER, 0),
                Cover::ReadOnly | Cover::Held => {
                    (target, c"", libc::AT_EMPTY_PATH | libc::AT_RECURSIVE)
                }
            };
            let tree = libc::syscall(
                libc::SYS_open_tree,
                from,
                source.as_ptr(),
                OPEN_TREE_CLONE | libc::O_CLOEXEC | below,
            );
            let tree = called(tree)?;
            if self.cover != Cover::Held {
                read_only(tree, libc::AT_RECURSIVE)?;
            }
            called(libc::syscall(
                libc::SYS_move_mount,
                tree,
                c"".as_ptr(),
                target,
                c"".as_ptr(),
                MOVE_MOUNT_EMPTY_PATHS,
            ))?;
            libc::close(tree);
            libc::close(target);
            Ok(())
        }
    }
}

/// Makes a tree of mounts read-only: with `depth` `AT_RECURSIVE` what is mounted below, too. Unlike a remount this keeps the
/// flags that a user namespace may not take away.
#[expect(unsafe_code, reason = "see `View::apply`")]
unsafe fn read_only(tree: libc::c_int, depth: libc::c_int) -> io::Result<()> {
    let attribute = MountAttr {
        set: READ_ONLY,
        clear: 0,
        propagation: 0,
        user_namespace: 0,
    };
    // SAFETY: a local of the size that is passed, which the kernel copies.
    called(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree,
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | depth,
            &raw const attribute,
            size_of::<MountAttr>(),
        )
    })?;
    Ok(())
}

/// The answer of a call that has no wrapper.
fn called(answer: libc::c_long) -> io::Result<libc::c_int> {
    let answer = libc::c_int::try_from(answer).unwrap_or(-1);
    check(answer).map(|()| answer)
}

/// What is not at its place, or a link now, has been moved.
fn moved(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP) => io::Error::from_raw_os_error(MOVED),
        _ => error,
    }
}

#[expect(unsafe_code, reason = "see `View::apply`")]
unsafe fn write(path: &std::ffi::CStr, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the buffer is as long as is said, the descriptor is closed again.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        check(file)?;
        let written = libc::write(file, bytes.as_ptr().cast(), bytes.len());
        let answer = check(if written < 0 { -1 } else { 0 });
        libc::close(file);
        answer
    }
}

fn check(answer: libc::c_int) -> io::Result<()> {
    if answer == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

fn collect(
    paths: &[PathBuf],
    cover: impl Fn(&fs::Metadata) -> Cover,
    gone: Gone,
) -> io::Result<Vec<(PathBuf, Target)>> {
    let mut found = look(paths, cover, gone)?;
    found.retain(|(path, _)| !path.starts_with(OsStr::from_bytes(STAGE.to_bytes())));
    Ok(found)
}

fn look(
    paths: &[PathBuf],
    cover: impl Fn(&fs::Metadata) -> Cover,
    gone: Gone,
) -> io::Result<Vec<(PathBuf, Target)>> {
    let mut found = Vec::with_capacity(paths.len());
    for path in paths {
        // A mount lies on what a path leads to; a link's own name stays and leads to the cover.
        let looked = fs::canonicalize(path).and_then(|real| {
            let meta = fs::metadata(&real)?;
            Ok((real, meta))
        });
        let (real, meta) = match looked {
            Ok(looked) => looked,
            // A link that leads nowhere shows nothing.
            Err(error) => {
                let error = moved(error);
                let is_link = || fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
                if error.raw_os_error() == Some(MOVED) && (gone == Gone::Skipped || is_link()) {
                    continue;
                }
                return Err(error);
            }
        };
        let target = Target {
            path: c_string(real.as_os_str())?,
            device: meta.dev(),
            inode: meta.ino(),
            cover: cover(&meta),
        };
        found.push((real, target));
    }
    Ok(found)
}

/// Settings of the kernel that a confined root could still write: programs are named in them, too.
fn kernel(policy: &Policy) -> io::Result<Vec<Target>> {
    if Maps::needed().is_some() {
        return Ok(Vec::new());
    }
    let all = policy.write.iter().any(|path| path == Path::new("/"));
    let paths: Vec<PathBuf> = Some("/proc/sys".into())
        .filter(|_| all)
        .into_iter()
        .collect();
    let found = look(&paths, |_| Cover::ReadOnly, Gone::Skipped)?;
    Ok(found.into_iter().map(|(_, target)| target).collect())
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}
