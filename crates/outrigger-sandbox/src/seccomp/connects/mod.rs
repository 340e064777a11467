//! Decides address by address what a sandboxed process connects to and listens on.
//!
//! Landlock restricts TCP by port alone: a process that may connect to port 40000 of this machine may connect to port 40000 of
//! every other one. So `connect` is handed to the host (seccomp's user notification). The host reads the address, decides, and
//! connects a copy of that very socket itself. Overwriting the address or replacing the socket under its number in the
//! meantime has no effect. No namespace is needed, so it works the same for root and for a user without privileges, and what
//! the process listens on stays reachable.
//!
//! Listening works the same way: on a port that the system picks, a process always listens on loopback; on ports granted to
//! it, on the address it chooses ([`bind`]).
//!
//! A connection that is not allowed may be redirected: the host asks the process's proxy for a tunnel on that socket, so that
//! the host rules also apply to programs that do not support proxies ([`ProxyRedirect`]).

mod address;
mod bind;
mod filter;
mod loopback;
mod notify;
mod probe;
mod redirect;
mod reserved;
mod setgid;
mod unix_sockets;
mod worker_pool;

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, SocketType};

use outrigger_network_proxy::ProxyRedirect;

use address::Target;
pub use loopback::Loopback;
use notify::{Call, Caller, Listener, PendingCall, Reply};
pub(crate) use notify::{install, pair, receive};
pub(crate) use probe::is_possible;
use worker_pool::WorkerPool;

/// How often a slow connection checks whether its caller still waits.
const STEP: Duration = Duration::from_secs(1);
/// Enough for the little that such a thread does.
const STACK: usize = 128 * 1024;

/// What a process tree may connect to, and where it may listen.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// TCP ports of `127.0.0.1` that may be connected to; `None` means no rule.
    pub(crate) connect: Option<Vec<u16>>,
    /// TCP ports that may be listened on, 0 for one that the system picks on this machine's loopback; `None` means no rule.
    pub(crate) bind: Option<Vec<u16>>,
    /// The local services that may be connected to if connections are not restricted.
    pub(crate) loopback: Option<Loopback>,
    /// Where other TCP connections are redirected; without it they are refused.
    pub(crate) proxy_redirect: Option<ProxyRedirect>,
    /// UNIX sockets with a path may be connected to; otherwise only those on which processes of the session listen.
    pub(crate) unix_sockets: bool,
    /// UNIX sockets without a path may be connected to.
    pub(crate) abstract_sockets: bool,
    /// Names that it must give to nothing ([`reserved`]).
    pub(crate) reserved: Vec<PathBuf>,
}

/// Answers the calls of a process tree until its last process has ended.
///
/// # Errors
/// No thread can be started.
pub(crate) fn watch(listener: OwnedFd, rules: Rules) -> io::Result<()> {
    let listener = Arc::new(Listener::new(listener));
    // A slow proxy does not delay local connections.
    let (redirected, direct) = (Arc::<WorkerPool>::default(), Arc::<WorkerPool>::default());
    let answer_all = move || {
        while let Some(asked) = listener.next() {
            let (pool, work) = match rules.answer(&listener, &asked) {
                ConnectDecision::Now(reply) => {
                    listener.answer(&asked, reply);
                    continue;
                }
                ConnectDecision::Redirected(work) => (&redirected, work),
                ConnectDecision::Direct(work) => (&direct, work),
            };
            let notified = Arc::clone(&listener);
            let turn = move || {
                let waits = || notified.waits(&asked);
                if waits() {
                    notified.answer(&asked, Reply::Made(work(&waits)));
                }
            };
            if !pool.submit(Box::new(turn)) {
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

/// An error number, as returned by `connect`.
type Errno = libc::c_int;

enum ConnectDecision {
    Now(Reply),
    /// Through the proxy.
    Redirected(Work),
    /// To this machine: the listener may be slow to accept.
    Direct(Work),
}

/// A connection to make; its argument returns whether the caller still waits for it.
type Work = Box<dyn FnOnce(&dyn Fn() -> bool) -> Result<(), Errno> + Send>;

impl Rules {
    fn answer(&self, listener: &Listener, asked: &PendingCall) -> ConnectDecision {
        let answer = match (asked.call, &self.connect, &self.bind) {
            (Call::Connect, Some(ports), _) => self.connect(ports, listener, asked),
            (Call::Bind, _, Some(ports)) => {
                bind::bind(ports, listener, asked).map(ConnectDecision::Now)
            }
            (Call::Listen(queue), _, Some(ports)) => {
                let made = bind::listen(ports, listener, asked, queue);
                Ok(ConnectDecision::Now(Reply::Made(made)))
            }
            (Call::Connect, None, _) => match &self.loopback {
                Some(loopback) => loopback.connect(self, listener, asked),
                None => Ok(ConnectDecision::Now(Reply::Unruled)),
            },
            (Call::Listen(_), _, None) => match &self.loopback {
                Some(loopback) => loopback.listen(listener, asked).map(ConnectDecision::Now),
                None => Ok(ConnectDecision::Now(Reply::Unruled)),
            },
            (Call::Bind, _, None) => Ok(ConnectDecision::Now(Reply::Unruled)),
            (Call::Mode(call), _, _) => {
                let made = setgid::set_mode(call, listener, asked);
                Ok(ConnectDecision::Now(Reply::Made(made)))
            }
            (Call::Name(call), _, _) => {
                reserved::answer(&self.reserved, call, listener, asked).map(ConnectDecision::Now)
            }
        };
        answer.unwrap_or_else(|errno| ConnectDecision::Now(Reply::Made(Err(errno))))
    }

    fn connect(
        &self,
        ports: &[u16],
        listener: &Listener,
        asked: &PendingCall,
    ) -> Result<ConnectDecision, Errno> {
        let caller = Caller::of(listener, asked)?;
        let bytes = caller.address(asked)?;
        let socket = caller.socket(asked)?;
        let family = sockopt::socket_domain(&socket).map_err(errno_of)?;
        match address::target(family, &bytes)? {
            Target::Inet(to) => {
                // Sockets other than TCP are restricted by the filter of system calls: if they can be created, they are
                // allowed.
                let granted = to.ip() == address::HERE && ports.contains(&to.port());
                if granted || !is_stream(&socket)? {
                    return Ok(direct(socket, bytes));
                }
                let proxy = self.proxy_redirect.clone().ok_or(libc::EACCES)?;
                let v6 = family == AddressFamily::INET6;
                Ok(ConnectDecision::Redirected(Box::new(move |_| {
                    redirect::tunnel(&proxy, &socket, v6, to)
                })))
            }
            Target::Path(path) => self.connect_path(path, socket, caller, listener, asked),
            Target::Abstract if !self.abstract_sockets => Err(libc::EPERM),
            Target::Abstract | Target::Nothing => Ok(direct(socket, bytes)),
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
    // SAFETY: the buffer has the given length; the kernel copies it.
    match unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), len) } {
        -1 => Err(last_errno()),
        _ => Ok(()),
    }
}

fn direct(socket: OwnedFd, address: Vec<u8>) -> ConnectDecision {
    ConnectDecision::Direct(Box::new(move |waits| {
        connect_while(&socket, &address, waits)
    }))
}

/// Connects while the caller waits for it. The socket blocks if the caller's does, and a listener that never accepts would
/// block it forever.
fn connect_while(socket: &OwnedFd, address: &[u8], waits: &dyn Fn() -> bool) -> Result<(), Errno> {
    let of_the_caller = sockopt::socket_timeout(socket, Timeout::Send).map_err(errno_of)?;
    let set = |time| sockopt::set_socket_timeout(socket, Timeout::Send, time).map_err(errno_of);
    let begun = Instant::now();
    let answer = loop {
        set(Some(of_the_caller.map_or(STEP, |most| most.min(STEP))))?;
        let answer = connect(socket, address);
        let late = matches!(
            answer,
            Err(libc::EAGAIN | libc::EINPROGRESS | libc::EALREADY)
        );
        let over = of_the_caller.is_some_and(|most| begun.elapsed() >= most);
        if !late || over || is_nonblocking(socket)? || !waits() {
            break answer;
        }
    };
    set(of_the_caller)?;
    answer
}

fn is_nonblocking(socket: &OwnedFd) -> Result<bool, Errno> {
    let flags = rustix::fs::fcntl_getfl(socket).map_err(errno_of)?;
    Ok(flags.contains(OFlags::NONBLOCK))
}

fn errno_of(error: rustix::io::Errno) -> Errno {
    error.raw_os_error()
}

fn last_errno() -> Errno {
    io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EPERM)
}
