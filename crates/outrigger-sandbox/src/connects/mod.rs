//! What a boxed process connects to and listens on, address by address.
//!
//! Landlock rules TCP by port alone: a process that may connect to port 40000 of this machine may connect to port 40000
//! of every other one. So `connect` is handed to the host here (seccomp's user notification). The host reads the address,
//! decides, and connects a copy of the very socket itself: what the process writes over the address, or puts under the
//! socket's number, in the meantime changes nothing. No namespace is needed, so it is the same for root and for a user
//! without rights, and what the process listens on stays reachable.
//!
//! Listening goes the same way: on a port that the system picks a process listens on loopback, whatever it says, and on
//! those that are granted to it where it likes ([`bind`]).
//!
//! A connection that goes nowhere allowed may be led: the host asks the process's proxy for a tunnel on that socket, so
//! that the rules for hosts count for programs that know of no proxy, too ([`Door`]).

mod address;
mod bind;
mod lead;
mod notify;
mod probe;

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::net::{AddressFamily, SocketType, sockopt};

use address::Target;
pub use lead::Door;
use notify::{Asked, Call, Caller, Listener, Reply};
pub(crate) use notify::{install, pair, receive};
pub(crate) use probe::is_possible;

/// Most connections of one tree of processes that are being led at a time.
const MOST_LED: usize = 32;
/// Enough for what a thread of this does, which is little.
const STACK: usize = 128 * 1024;

/// What a tree of processes may connect to, and where it may listen.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// TCP ports of `127.0.0.1` that may be connected to; `None` is no rule.
    pub(crate) connect: Option<Vec<u16>>,
    /// TCP ports that may be listened on, 0 for one that the system picks, on this machine's loopback; `None` is no rule.
    pub(crate) bind: Option<Vec<u16>>,
    /// Where other TCP connections are led; they are refused without it.
    pub(crate) door: Option<Door>,
    /// UNIX sockets without a path may be connected to.
    pub(crate) abstract_sockets: bool,
}

/// Answers the calls of a tree until its last process has ended.
///
/// # Errors
/// No thread can be started.
pub(crate) fn watch(listener: OwnedFd, rules: Rules) -> io::Result<()> {
    let listener = Arc::new(Listener::new(listener));
    let led = Arc::new(AtomicUsize::new(0));
    let answer_all = move || {
        while let Some(asked) = listener.next() {
            let work = match rules.answer(&listener, &asked) {
                Answer::Now(reply) => {
                    listener.answer(&asked, reply);
                    continue;
                }
                Answer::Led(work) => work,
            };
            let (place, told) = (Place::of(&led), Arc::clone(&listener));
            let started = place.and_then(|place| {
                let lead = move || {
                    told.answer(&asked, Reply::Made(work()));
                    drop(place);
                };
                small_thread("connect", lead).ok()
            });
            if started.is_none() {
                listener.answer(&asked, Reply::Made(Err(libc::EAGAIN)));
            }
        }
    };
    small_thread("connects", answer_all)
}

fn small_thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = thread::Builder::new().name(name.into()).stack_size(STACK);
    builder.spawn(work).map(drop)
}

/// One of the places for connections that are being led.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn of(count: &Arc<AtomicUsize>) -> Option<Self> {
        let before = count.fetch_add(1, Ordering::Relaxed);
        let place = Self(Arc::clone(count));
        (before < MOST_LED).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The number of an error, as `connect` answers it.
type Errno = libc::c_int;

enum Answer {
    Now(Reply),
    /// It takes its time.
    Led(Box<dyn FnOnce() -> Result<(), Errno> + Send>),
}

impl Rules {
    fn answer(&self, listener: &Listener, asked: &Asked) -> Answer {
        let answer = match (asked.call, &self.connect, &self.bind) {
            (Call::Connect, Some(ports), _) => self.connect(ports, listener, asked),
            (Call::Bind, _, Some(ports)) => bind::bind(ports, listener, asked).map(Answer::Now),
            (Call::Listen(queue), _, Some(ports)) => {
                let made = bind::listen(ports, listener, asked, queue);
                Ok(Answer::Now(Reply::Made(made)))
            }
            _ => Ok(Answer::Now(Reply::Unruled)),
        };
        answer.unwrap_or_else(|errno| Answer::Now(Reply::Made(Err(errno))))
    }

    fn connect(&self, ports: &[u16], listener: &Listener, asked: &Asked) -> Result<Answer, Errno> {
        let caller = Caller::of(listener, asked)?;
        let bytes = caller.address(asked)?;
        let socket = caller.socket(asked)?;
        let family = sockopt::socket_domain(&socket).map_err(errno_of)?;
        let made = |answer| Ok(Answer::Now(Reply::Made(answer)));
        match address::target(family, &bytes)? {
            Target::Inet(to) => {
                // Others than TCP's are a matter of the filter of calls: where they are there, they are allowed.
                let granted = to.ip() == address::HERE && ports.contains(&to.port());
                if granted || !is_stream(&socket)? {
                    return made(connect(&socket, &bytes));
                }
                match self.door.clone() {
                    Some(door) => {
                        let v6 = family == AddressFamily::INET6;
                        Ok(Answer::Led(Box::new(move || door.lead(&socket, v6, to))))
                    }
                    None => Err(libc::EACCES),
                }
            }
            Target::Path(path) => made(connect_path(&socket, &caller, &path)),
            Target::Abstract if !self.abstract_sockets => Err(libc::EPERM),
            Target::Abstract | Target::Nothing => made(connect(&socket, &bytes)),
        }
    }
}

fn is_stream(socket: &OwnedFd) -> Result<bool, Errno> {
    let kind = sockopt::socket_type(socket).map_err(errno_of)?;
    Ok(kind == SocketType::STREAM)
}

#[expect(
    unsafe_code,
    reason = "the address is a row of bytes, whatever its family"
)]
fn connect(socket: &OwnedFd, address: &[u8]) -> Result<(), Errno> {
    let len = libc::socklen_t::try_from(address.len()).map_err(|_| libc::EINVAL)?;
    // SAFETY: the buffer is as long as is said; the kernel copies it.
    match unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), len) } {
        -1 => Err(last_errno()),
        _ => Ok(()),
    }
}

/// Connects to the socket that the caller sees under this path: in its view, from its folder.
fn connect_path(socket: &OwnedFd, caller: &Caller, path: &Path) -> Result<(), Errno> {
    let of = |name: &str| PathBuf::from(format!("/proc/{}/{name}", caller.pid));
    let whole = match path.is_absolute() {
        true => path.to_owned(),
        false => fs::read_link(of("cwd"))
            .map_err(|_| libc::EPERM)?
            .join(path),
    };
    let root = rustix::fs::open(of("root"), OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let root = root.map_err(errno_of)?;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let found = openat2(
        &root,
        whole.as_path(),
        flags,
        Mode::empty(),
        ResolveFlags::IN_ROOT,
    );
    let found = found.map_err(errno_of)?;
    connect(socket, &address::unix(found.as_raw_fd()))
}

fn errno_of(error: rustix::io::Errno) -> Errno {
    error.raw_os_error()
}

fn last_errno() -> Errno {
    io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EPERM)
}
