//! A view of the file system of its own: what a process must not see is covered, what it must not change is read-only.
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
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::policy::Policy;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cover {
    File,
    Folder,
    ReadOnly,
}

/// Everything the child needs to make its view, prepared before fork.
#[derive(Debug, Clone)]
pub(crate) struct View {
    covers: Vec<(CString, Cover)>,
    cwd: CString,
    maps: Option<Maps>,
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
    /// `None` when the policy covers nothing. Paths that do not exist are skipped.
    ///
    /// # Errors
    /// A path that cannot be handed to the kernel, or cannot be looked at.
    pub(crate) fn of(policy: &Policy, cwd: &Path) -> io::Result<Option<Self>> {
        if !policy.covers() {
            return Ok(None);
        }
        // What is read-only first: a bind of it would uncover what is hidden below. Outer before inner.
        let mut covers = collect(&policy.read_only, |_| Cover::ReadOnly)?;
        covers.extend(collect(&policy.hide, |meta| match meta.is_dir() {
            true => Cover::Folder,
            false => Cover::File,
        })?);
        Ok(Some(Self {
            covers,
            cwd: c_string(cwd.as_os_str())?,
            maps: Maps::needed(),
        }))
    }

    /// Runs in the child: async-signal-safe calls only.
    #[expect(
        unsafe_code,
        reason = "system calls between fork and exec, where only raw calls are allowed"
    )]
    pub(crate) fn apply(&self) -> io::Result<()> {
        enter(self.maps.as_ref())?;
        // SAFETY: raw calls with pointers to prepared, nul-terminated strings.
        unsafe {
            check(libc::mkdir(EMPTY_FOLDER.as_ptr(), 0))?;
            let file = libc::open(
                EMPTY_FILE.as_ptr(),
                libc::O_CREAT | libc::O_RDONLY | libc::O_CLOEXEC,
                0,
            );
            check(file)?;
            libc::close(file);
            for (target, cover) in &self.covers {
                let source = match cover {
                    Cover::File => EMPTY_FILE.as_ptr(),
                    Cover::Folder => EMPTY_FOLDER.as_ptr(),
                    Cover::ReadOnly => target.as_ptr(),
                };
                match bind(source, target.as_ptr()) {
                    // Gone since it was found, or below something that is hidden already.
                    Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
                    other => other?,
                }
            }
            check(libc::umount2(STAGE.as_ptr(), libc::MNT_DETACH))?;
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
        let maps = Maps::needed();
        // SAFETY: the child makes async-signal-safe calls only and ends without running anything of ours.
        unsafe {
            match libc::fork() {
                -1 => false,
                0 => libc::_exit(i32::from(enter(maps.as_ref()).is_err())),
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

/// Moves the caller to a mount namespace of its own, with a small file system mounted at [`STAGE`].
#[expect(unsafe_code, reason = "see `View::apply`")]
fn enter(maps: Option<&Maps>) -> io::Result<()> {
    // SAFETY: raw calls on numbers and literals.
    unsafe {
        match maps {
            None => check(libc::unshare(libc::CLONE_NEWNS))?,
            Some(maps) => {
                check(libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS))?;
                // The host is not dumpable, so its child's files in /proc are root's until this; exec decides anew.
                libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
                write(c"/proc/self/setgroups", b"deny")?;
                write(c"/proc/self/uid_map", maps.uid.as_bytes())?;
                write(c"/proc/self/gid_map", maps.gid.as_bytes())?;
            }
        }
        let none = std::ptr::null();
        // What the host mounts later still shows up here, what is mounted here stays here.
        check(libc::mount(
            none,
            c"/".as_ptr(),
            none,
            libc::MS_REC | libc::MS_SLAVE,
            none.cast(),
        ))?;
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        check(libc::mount(
            c"tmpfs".as_ptr(),
            STAGE.as_ptr(),
            c"tmpfs".as_ptr(),
            flags,
            c"nr_inodes=8,size=4k,mode=700".as_ptr().cast(),
        ))
    }
}

#[expect(unsafe_code, reason = "see `View::apply`")]
unsafe fn bind(source: *const libc::c_char, target: *const libc::c_char) -> io::Result<()> {
    let none = std::ptr::null();
    // SAFETY: prepared strings; the attribute is a local of the size that is passed.
    unsafe {
        check(libc::mount(
            source,
            target,
            none,
            libc::MS_BIND | libc::MS_REC,
            none.cast(),
        ))?;
        // Unlike a remount this keeps the flags that a user namespace may not take away.
        let attribute = MountAttr {
            set: READ_ONLY,
            clear: 0,
            propagation: 0,
            user_namespace: 0,
        };
        let answer = libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            target,
            libc::AT_RECURSIVE,
            &raw const attribute,
            size_of::<MountAttr>(),
        );
        check(if answer == 0 { 0 } else { -1 })
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
) -> io::Result<Vec<(CString, Cover)>> {
    let mut found = Vec::new();
    for path in paths {
        // A mount lies on what a path leads to; a link's own name stays and leads to the cover.
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if real.starts_with(OsStr::from_bytes(STAGE.to_bytes())) {
            continue;
        }
        let cover = cover(&fs::metadata(&real)?);
        found.push((real, cover));
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found.dedup_by(|(a, _), (b, _)| a == b);
    found
        .into_iter()
        .map(|(path, cover)| Ok((c_string(path.as_os_str())?, cover)))
        .collect()
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}
