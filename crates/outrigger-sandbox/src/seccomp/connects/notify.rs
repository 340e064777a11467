//! Seccomp's user notification: the filter that hands calls over, and the host's end.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
    recvmsg, socketpair,
};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::filter::{FILTER, NAMES};
use super::{Errno, errno_of, last_errno};
use crate::seccomp::calls::setuid::FCHMODAT2;

/// `SECCOMP_SET_MODE_FILTER`.
const SET_FILTER: libc::c_uint = 1;
/// `SECCOMP_USER_NOTIF_FLAG_CONTINUE`.
const CONTINUE: u32 = 1;
/// `PIDFD_THREAD` of Linux 6.9: refers to a thread, not its process.
const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(0o200);
/// How often a path is looked up, as the kernel asks to be asked again.
const FIND_TRIES: u32 = 1000;
/// `sizeof(struct sockaddr_storage)`: no address is longer.
const MAX_ADDRESS_BYTES: usize = 128;

/// Creates the socket pair over which a child passes the listener to its host: the host's end, the child's end.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Runs in the child, between fork and exec: installs the filter and passes its listener to the host through `socket`. `names`: the host
/// decides about the names of files.
#[expect(
    unsafe_code,
    reason = "system calls between fork and exec, where only raw calls are allowed"
)]
pub(crate) fn install(socket: RawFd, names: bool) -> io::Result<()> {
    let filter = if names { NAMES } else { FILTER };
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // A signal must not interrupt a call that the host has received: it would be made twice.
    let whole =
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let set = |flags: libc::c_ulong| {
        // SAFETY: the program is a constant that the kernel copies.
        unsafe { libc::syscall(libc::SYS_seccomp, SET_FILTER, flags, &raw const program) }
    };
    let mut listener = set(whole);
    if listener < 0 && last_errno() == libc::EINVAL {
        // Before Linux 5.19.
        listener = set(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER);
    }
    let Ok(listener @ 0..) = libc::c_int::try_from(listener) else {
        return Err(io::Error::last_os_error());
    };
    // SAFETY: the listener was just created, and is closed once.
    unsafe {
        let sent = send(socket, listener);
        libc::close(listener);
        sent
    }
}

/// Sends a descriptor. Lays out the control message with the C library's macros; no allocation.
#[expect(unsafe_code, reason = "see `install`")]
unsafe fn send(socket: RawFd, fd: libc::c_int) -> io::Result<()> {
    #[repr(C, align(8))]
    struct Control([u8; 64]);
    let mut control = Control([0; 64]);
    let mut byte = [0_u8];
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: byte.len(),
    };
    let size = size_of::<libc::c_int>() as libc::c_uint;
    // SAFETY: zero is a valid message; every pointer is to a local that outlives the call, and the control message fits:
    // a header and one number are less than 64 bytes.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if header.is_null() {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size) as _;
        libc::CMSG_DATA(header)
            .cast::<libc::c_int>()
            .write_unaligned(fd);
        match libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

/// Receives what [`install`] sent.
///
/// # Errors
/// The child sent nothing.
pub(crate) fn receive(socket: &OwnedFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0_u8];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        flags,
    )?;
    let mut rights = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    rights.next().ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The host's end of the notification.
pub(super) struct Listener(OwnedFd);

/// A requested call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Connect,
    Bind,
    /// With the length of its queue.
    Listen(libc::c_int),
    /// A call that sets the mode of a file or folder, with its number.
    Mode(libc::c_long),
    /// A call that gives a file a name, with its number.
    Name(libc::c_long),
}

/// The reply to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// The host made the call, with this result.
    Made(Result<(), Errno>),
    /// The caller makes it itself. Nothing may depend on what was read for it, since that may have been changed.
    Unruled,
}

/// A call that waits for its reply.
#[derive(Clone, Copy)]
pub(super) struct PendingCall {
    pub(super) call: Call,
    id: u64,
    /// The thread's number, 0 if this host cannot see it.
    thread: i32,
    socket: RawFd,
    address: u64,
    len: u64,
    pub(super) args: [u64; 6],
}

/// Large enough for the structures of future kernels, which truncate them if given less room.
#[repr(C, align(8))]
struct Room([u8; 512]);

impl Listener {
    pub(super) fn new(listener: OwnedFd) -> Self {
        Self(listener)
    }

    /// Waits for the next call; `None` if no process is left that could make one.
    pub(super) fn next(&self) -> Option<PendingCall> {
        loop {
            let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return None,
            }
            let [fd] = fds;
            if fd.revents().contains(PollFlags::IN) {
                if let Some(asked) = self.take() {
                    return Some(asked);
                }
            } else {
                return None;
            }
        }
    }

    /// Waits up to `ms` milliseconds and returns whether no process is left that could make a call.
    pub(super) fn ends_within(&self, ms: i64) -> bool {
        let timeout = rustix::event::Timespec {
            tv_sec: ms / 1000,
            tv_nsec: ms % 1000 * 1_000_000,
        };
        let mut fds = [PollFd::new(&self.0, PollFlags::empty())];
        let [fd] = &mut fds;
        poll(std::slice::from_mut(fd), Some(&timeout)).is_ok()
            && fd.revents().contains(PollFlags::HUP)
    }

    #[expect(unsafe_code, reason = "ioctl has no wrapper for this")]
    fn take(&self) -> Option<PendingCall> {
        let mut room = Room([0; 512]);
        // SAFETY: the room is zero, as the kernel asks, and larger than what it writes, whose layout is the kernel's.
        let asked = unsafe {
            let at = room.0.as_mut_ptr();
            if libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, at) == -1 {
                return None;
            }
            at.cast::<libc::seccomp_notif>().read()
        };
        let [socket, address, len, ..] = asked.data.args;
        let call = match libc::c_long::from(asked.data.nr) {
            libc::SYS_connect => Call::Connect,
            libc::SYS_bind => Call::Bind,
            libc::SYS_listen => Call::Listen(address as libc::c_int),
            #[cfg(target_arch = "x86_64")]
            call @ libc::SYS_chmod => Call::Mode(call),
            call @ (libc::SYS_fchmod | libc::SYS_fchmodat | FCHMODAT2) => Call::Mode(call),
            call => Call::Name(call),
        };
        Some(PendingCall {
            call,
            id: asked.id,
            thread: i32::try_from(asked.pid).unwrap_or(0),
            // The kernel, too, takes the low half.
            socket: socket as RawFd,
            address,
            len: u64::from(len as u32),
            args: asked.data.args,
        })
    }

    /// Returns whether the caller still waits. If so, whatever was opened by its number before this really is its own, and not another
    /// process's that got the number since.
    #[expect(unsafe_code, reason = "ioctl has no wrapper for this")]
    pub(super) fn waits(&self, asked: &PendingCall) -> bool {
        let id = asked.id;
        // SAFETY: the number is a local that the kernel reads.
        let answer = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
                &raw const id,
            )
        };
        answer == 0
    }

    #[expect(unsafe_code, reason = "ioctl has no wrapper for this")]
    pub(super) fn answer(&self, asked: &PendingCall, reply: Reply) {
        let mut room = Room([0; 512]);
        let (error, flags) = match reply {
            Reply::Made(made) => (made.err().map_or(0, |errno| -errno), 0),
            Reply::Unruled => (0, CONTINUE),
        };
        // SAFETY: the room is aligned and larger than the reply, which the kernel reads. It fails if the caller has ended, and then there
        // is no one to reply to.
        unsafe {
            let at = room.0.as_mut_ptr();
            at.cast::<libc::seccomp_notif_resp>()
                .write(libc::seccomp_notif_resp {
                    id: asked.id,
                    val: 0,
                    error,
                    flags,
                });
            libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, at);
        }
    }
}

/// The caller. Whatever was opened by its number is its own, since it still waited after that. The number may be reused later.
pub(super) struct Caller {
    pid: i32,
    /// The user with whose rights it opens files.
    pub(super) user: u32,
    held: OwnedFd,
    memory: File,
}

/// The root and folder at which a caller's paths start.
pub(super) struct View {
    root: OwnedFd,
    pub(super) folder: PathBuf,
}

impl View {
    /// Opens what the caller sees at this path.
    pub(super) fn find(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let (flags, mode) = (OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let whole = self.folder.join(path);
        let mut tries = 0..FIND_TRIES;
        loop {
            match openat2(&self.root, &whole, flags, mode, ResolveFlags::IN_ROOT) {
                // Somebody moves a file, anywhere on the machine, while `..` is resolved.
                Err(rustix::io::Errno::AGAIN) if tries.next().is_some() => {}
                found => return found.map_err(errno_of),
            }
        }
    }
}

impl Caller {
    pub(super) fn of(listener: &Listener, asked: &PendingCall) -> Result<Self, Errno> {
        let thread = Pid::from_raw(asked.thread).ok_or(libc::EPERM)?;
        let memory = File::open(format!("/proc/{}/mem", asked.thread)).map_err(denied)?;
        let status =
            fs::read_to_string(format!("/proc/{}/status", asked.thread)).map_err(denied)?;
        let pid: i32 = number_of(&status, "Tgid:", 0).ok_or(libc::EPERM)?;
        // Real, effective and saved id; then that of the file system.
        let user = number_of(&status, "Uid:", 3).ok_or(libc::EPERM)?;
        let held = match pidfd_open(thread, THREAD) {
            Ok(held) => held,
            // Before Linux 6.9. Threads share their files, unless they explicitly unshared them.
            Err(_) => pidfd_open(Pid::from_raw(pid).ok_or(libc::EPERM)?, PidfdFlags::empty())
                .map_err(errno_of)?,
        };
        if listener.waits(asked) {
            Ok(Self {
                pid,
                user,
                held,
                memory,
            })
        } else {
            Err(libc::ESRCH)
        }
    }

    /// Returns its root and its working directory.
    pub(super) fn view(&self, listener: &Listener, asked: &PendingCall) -> Result<View, Errno> {
        self.view_from(libc::AT_FDCWD, listener, asked)
    }

    /// Returns its root and a folder that it has open under a number.
    pub(super) fn view_from(
        &self,
        folder: RawFd,
        listener: &Listener,
        asked: &PendingCall,
    ) -> Result<View, Errno> {
        let of = |name: &str| format!("/proc/{}/{name}", self.pid);
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let root = open(of("root"), flags, Mode::empty()).map_err(errno_of)?;
        let folder = match folder {
            libc::AT_FDCWD => of("cwd"),
            number => of(&format!("fd/{number}")),
        };
        let folder = fs::read_link(folder).map_err(denied)?;
        if listener.waits(asked) {
            Ok(View { root, folder })
        } else {
            Err(libc::ESRCH)
        }
    }

    /// Reads the bytes of the address.
    pub(super) fn address(&self, asked: &PendingCall) -> Result<Vec<u8>, Errno> {
        let len = usize::try_from(asked.len)
            .ok()
            .filter(|len| *len <= MAX_ADDRESS_BYTES);
        let mut bytes = vec![0; len.ok_or(libc::EINVAL)?];
        match self.memory.read_exact_at(&mut bytes, asked.address) {
            Ok(()) => Ok(bytes),
            Err(_) => Err(libc::EFAULT),
        }
    }

    /// Duplicates the socket into this process.
    pub(super) fn socket(&self, asked: &PendingCall) -> Result<OwnedFd, Errno> {
        self.open_file(asked.socket)
    }

    /// Duplicates an open file of the caller into this process.
    pub(super) fn open_file(&self, number: RawFd) -> Result<OwnedFd, Errno> {
        pidfd_getfd(&self.held, number, PidfdGetfdFlags::empty()).map_err(errno_of)
    }

    /// Reads a path from its memory.
    pub(super) fn path(&self, at: u64) -> Result<PathBuf, Errno> {
        let mut bytes = vec![0; libc::PATH_MAX as usize];
        let read = self.memory.read_at(&mut bytes, at);
        bytes.truncate(read.map_err(|_| libc::EFAULT)?);
        let end = bytes.iter().position(|byte| *byte == 0);
        bytes.truncate(end.ok_or(libc::ENAMETOOLONG)?);
        Ok(PathBuf::from(OsString::from_vec(bytes)))
    }
}

/// Parses a number from a line of `/proc/PID/status`.
fn number_of<T: FromStr>(status: &str, key: &str, at: usize) -> Option<T> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(key))?
        .split_whitespace()
        .nth(at)?
        .parse()
        .ok()
}

fn denied(error: io::Error) -> Errno {
    error.raw_os_error().unwrap_or(libc::EPERM)
}
