//! A process in its own PID namespace. Nothing outside has a number in there, and when its first process ends the kernel kills all
//! others, whatever session, group or parent they moved to.
//!
//! The first process (init) is a copy of this program that does four things: it sets up the view of the file system, starts the command,
//! reaps orphans, and reports how the command ended. It is killed by the parent-death signal when the host ends, or when the host stops
//! the command. It reads nothing, holds no file but the report, and releases the host's memory.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::OnceLock;

use rustix::pipe::{PipeFlags, pipe_with};

use crate::namespaces::release;
use crate::namespaces::syscall::fork;
use crate::namespaces::unshare::Namespaces;
use crate::spawn::exit::Exit;
use crate::spawn::setup::Setup;

/// The stack on which the command is prepared, in the memory of init.
const STACK: usize = 512 * 1024;
/// The name of init in process lists.
const NAME: &std::ffi::CStr = c"outrigger-init";

/// A program with its arguments and environment in the kernel's format.
pub(crate) struct Program {
    file: CString,
    /// Owner of the strings that the pointers refer to.
    _texts: Vec<CString>,
    arguments: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
}

impl Program {
    /// Of variables with the same name, the last one wins.
    ///
    /// # Errors
    /// A text contains a NUL byte.
    pub(crate) fn new(
        file: &Path,
        name: &OsStr,
        arguments: &[OsString],
        environment: &[(OsString, OsString)],
    ) -> io::Result<Self> {
        let text = |bytes: &[u8]| {
            CString::new(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
        };
        let mut texts = vec![text(name.as_bytes())?];
        for argument in arguments {
            texts.push(text(argument.as_bytes())?);
        }
        let count = texts.len();
        let mut variables: std::collections::BTreeMap<&OsStr, &OsStr> = Default::default();
        variables.extend(environment.iter().map(|(name, value)| (&**name, &**value)));
        for (name, value) in variables {
            texts.push(text(&[name.as_bytes(), b"=", value.as_bytes()].concat())?);
        }
        let pointers = |texts: &[CString]| {
            texts
                .iter()
                .map(|text| text.as_ptr())
                .chain([std::ptr::null()])
                .collect()
        };
        let (arguments, environment) = texts.split_at(count);
        Ok(Self {
            file: text(file.as_os_str().as_bytes())?,
            arguments: pointers(arguments),
            environment: pointers(environment),
            _texts: texts,
        })
    }
}

/// A command to start.
pub(crate) struct Start<'a> {
    pub(crate) program: &'a Program,
    pub(crate) setup: &'a Setup,
    /// Standard input, output and error.
    pub(crate) streams: [RawFd; 3],
    pub(crate) namespaces: &'a Namespaces,
}

/// How a command ended, as reported by init.
#[derive(Debug)]
pub(crate) struct Report {
    pipe: OwnedFd,
    exit: OnceLock<Exit>,
}

impl Report {
    /// Returns the pipe, which becomes readable when there is something to report.
    pub(crate) fn pipe(&self) -> &OwnedFd {
        &self.pipe
    }

    /// Returns how the command ended, or `None` while it runs. If init was killed, so was the command.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn exit(&self) -> io::Result<Option<Exit>> {
        if let Some(exit) = self.exit.get() {
            return Ok(Some(*exit));
        }
        let mut bytes = [0; size_of::<libc::c_int>()];
        let exit = match rustix::io::read(&self.pipe, &mut bytes) {
            Ok(read) if read == bytes.len() => exit_of(libc::c_int::from_ne_bytes(bytes)),
            Ok(_) => Exit {
                code: None,
                signal: Some(libc::SIGKILL),
            },
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Another thread may have read it first.
        Ok(Some(*self.exit.get_or_init(|| exit)))
    }
}

fn exit_of(status: libc::c_int) -> Exit {
    if libc::WIFEXITED(status) {
        Exit {
            code: Some(libc::WEXITSTATUS(status)),
            signal: None,
        }
    } else {
        Exit {
            code: None,
            signal: Some(libc::WTERMSIG(status)),
        }
    }
}

/// Everything that init and the command need, prepared before the fork.
struct Prepared<'a> {
    start: &'a Start<'a>,
    /// Where the command reports that it could not execute the program.
    failed: RawFd,
    report: RawFd,
    /// The host's end of the report.
    reader: RawFd,
}

/// Starts it and returns the process id of init.
///
/// # Errors
/// Those of init and of the command until the program runs.
#[expect(
    unsafe_code,
    reason = "clone with namespaces has no wrapper; the child makes async-signal-safe calls only"
)]
pub(crate) fn start(start: &Start<'_>) -> io::Result<(u32, Report)> {
    let (failure, failed) = pipe_with(PipeFlags::CLOEXEC)?;
    let (reader, report) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&reader, true)?;
    let inner = Prepared {
        start,
        failed: failed.as_raw_fd(),
        report: report.as_raw_fd(),
        reader: reader.as_raw_fd(),
    };
    // SAFETY: the child is a copy of this thread that never returns from `init`; it makes raw calls on what was prepared. The
    // handlers of this program must not run in it, so signals wait until the parent has its mask back.
    let pid = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let pid = fork(start.namespaces.flags());
        if pid == 0 {
            init(&inner);
        }
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        if pid < 0 {
            return Err(error);
        }
        pid
    };
    drop((failed, report));
    let mut bytes = [0; size_of::<libc::c_int>()];
    let read = rustix::io::retry_on_intr(|| rustix::io::read(&failure, &mut bytes));
    if read == Ok(0) {
        let report = Report {
            pipe: reader,
            exit: OnceLock::new(),
        };
        return Ok((pid.cast_unsigned(), report));
    }
    reap(pid);
    Err(match read {
        Ok(_) => io::Error::from_raw_os_error(libc::c_int::from_ne_bytes(bytes)),
        Err(error) => error.into(),
    })
}

/// Returns whether a process is the init of one of our namespaces, by its name.
pub(crate) fn is_init(pid: u32) -> bool {
    let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.strip_suffix(b"\n") == Some(NAME.to_bytes())
}

/// Kills and reaps it.
#[expect(unsafe_code, reason = "see `start`")]
fn reap(pid: libc::pid_t) {
    // SAFETY: numbers only, of a child that nobody else waits for.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        while libc::waitpid(pid, std::ptr::null_mut(), 0) == -1 && errno() == libc::EINTR {}
    }
}

fn errno() -> libc::c_int {
    io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO)
}

/// The first process of the namespace. Never returns.
#[expect(unsafe_code, reason = "see `start`")]
unsafe fn init(inner: &Prepared<'_>) -> ! {
    // SAFETY: raw calls on numbers, literals and what was prepared.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        let command = match begin(inner) {
            Ok(command) => command,
            Err(error) => fail(inner, &error),
        };
        // Keep only the report open: readers of the command's output must see its end.
        keep_only(inner.report);
        release::memory();
        loop {
            let mut status = 0;
            let ended = libc::waitpid(-1, &raw mut status, 0);
            if ended == command {
                let bytes = status.to_ne_bytes();
                libc::write(inner.report, bytes.as_ptr().cast(), bytes.len());
                libc::close(inner.report);
            } else if ended == -1 && errno() != libc::EINTR {
                // No process is left; the host kills this one.
                libc::pause();
            }
        }
    }
}

/// Runs until the command is started, and returns its process id.
#[expect(unsafe_code, reason = "see `start`")]
unsafe fn begin(inner: &Prepared<'_>) -> io::Result<libc::pid_t> {
    // SAFETY: as in `init`. The command shares this memory until it is the program, on a stack of its own, while this waits.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // The host may have ended before: then nothing reads the report.
        libc::close(inner.reader);
        let mut poll = libc::pollfd {
            fd: inner.report,
            events: 0,
            revents: 0,
        };
        if libc::poll(&raw mut poll, 1, 0) == 1 && poll.revents & libc::POLLERR != 0 {
            libc::_exit(127);
        }
        inner.start.namespaces.settle()?;
        if let Some(view) = &inner.start.setup.view {
            view.apply(true)?;
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let stack = libc::mmap(std::ptr::null_mut(), STACK, access, flags, -1, 0);
        if stack == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let argument = std::ptr::from_ref(inner).cast_mut().cast();
        let command = libc::clone(command, stack.byte_add(STACK), flags, argument);
        if command == -1 {
            return Err(io::Error::last_os_error());
        }
        libc::munmap(stack, STACK);
        Ok(command)
    }
}

/// Runs in the command's process until it executes the program.
#[expect(unsafe_code, reason = "see `start`")]
extern "C" fn command(argument: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `begin` passes the `Prepared` that it was given, and waits.
    unsafe {
        let inner = &*argument.cast::<Prepared<'_>>();
        let error = match become_program(inner) {
            Ok(never) => match never {},
            Err(error) => error,
        };
        fail(inner, &error)
    }
}

#[expect(unsafe_code, reason = "see `start`")]
unsafe fn become_program(inner: &Prepared<'_>) -> io::Result<std::convert::Infallible> {
    let start = inner.start;
    // SAFETY: raw calls on numbers and on what was prepared.
    unsafe {
        for (number, stream) in (0..).zip(start.streams) {
            if libc::dup2(stream, number) == -1 {
                return Err(io::Error::last_os_error());
            }
        }
        start.setup.apply()?;
        // Reset the signals that this program ignores.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        let program = start.program;
        // The memory is still a copy of init's, which contains the host's data. The program must not be able to read it, from its first
        // instruction on. `execve` makes the process dumpable again with its own memory.
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        libc::execve(
            program.file.as_ptr(),
            program.arguments.as_ptr(),
            program.environment.as_ptr(),
        );
    }
    Err(io::Error::last_os_error())
}

/// Reports why the command could not be started, and exits.
#[expect(unsafe_code, reason = "see `start`")]
unsafe fn fail(inner: &Prepared<'_>, error: &io::Error) -> ! {
    let bytes = error.raw_os_error().unwrap_or(libc::EIO).to_ne_bytes();
    // SAFETY: a local, and a descriptor that is open.
    unsafe {
        libc::write(inner.failed, bytes.as_ptr().cast(), bytes.len());
        libc::_exit(127)
    }
}

/// Closes all files except one.
#[expect(unsafe_code, reason = "see `start`")]
unsafe fn keep_only(file: RawFd) {
    let close = |first: libc::c_uint, last: libc::c_uint| {
        // SAFETY: numbers only.
        first > last || unsafe { libc::syscall(libc::SYS_close_range, first, last, 0_u32) } == 0
    };
    let kept = file.cast_unsigned();
    let below = kept == 0 || close(0, kept - 1);
    if !below || !close(kept + 1, libc::c_uint::MAX) {
        // Before Linux 5.9.
        for other in (0..65_536).filter(|other| *other != file) {
            // SAFETY: a number that is not open answers an error.
            unsafe { libc::close(other) };
        }
    }
}
