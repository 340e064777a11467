//! UNIX sockets with a path: a process may connect to those that it or another process of its session listens on, and to no others.
//! Examples are build workers, Python's `multiprocessing`, tmux with its own socket.
//!
//! A name in a folder proves nothing: a link to another service may replace it a moment later. So the target is opened once, and
//! the kernel reports which sockets listen under that very file (`unix_diag`).

use std::collections::HashSet;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{fstat, major, minor};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{netlink, recv, send, socket_with};

use super::notify::{Caller, Listener, PendingCall};
use super::{ConnectDecision, Errno, address, connect_while, errno_of};

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST` and `NLM_F_DUMP`.
const DUMP: u16 = 0x301;
/// `NLMSG_DONE`, and the error reply.
const DONE: u16 = 3;
const ERROR: u16 = 2;
/// The state `TCP_LISTEN`, as a bit.
const LISTENS: u32 = 1 << 10;
/// `UDIAG_SHOW_VFS`, and the attribute of the reply, `UNIX_DIAG_VFS`.
const SHOW_FILE: u32 = 2;
const FILE: u16 = 1;
/// Sizes of a message header, of the socket header after it, and of an attribute header.
const HEAD: usize = 16;
const SOCKET: usize = 16;
const ATTRIBUTE: usize = 4;
/// More than one reply of the kernel.
const ROOM: usize = 64 * 1024;

/// Connects to what is at this path, if `own` contains every socket that listens there.
pub(super) fn connect(
    own: impl FnOnce() -> HashSet<u64> + Send + 'static,
    path: PathBuf,
    socket: OwnedFd,
    caller: &Caller,
    listener: &Listener,
    asked: &PendingCall,
) -> Result<ConnectDecision, Errno> {
    if caller.user != rustix::process::geteuid().as_raw() {
        return Err(libc::EPERM);
    }
    let view = caller.view(listener, asked)?;
    Ok(ConnectDecision::Direct(Box::new(move |waits| {
        let found = view.find(&path)?;
        let listen = listening(&found)?;
        let own = own();
        match listen.iter().all(|it| own.contains(it)) {
            true if listen.is_empty() => Err(libc::ECONNREFUSED),
            true => connect_while(&socket, &address::unix(found.as_raw_fd()), waits),
            false => Err(libc::EACCES),
        }
    })))
}

/// Returns the inodes of the sockets that listen under an open file.
fn listening(file: &OwnedFd) -> Result<Vec<u64>, Errno> {
    let stat = fstat(file).map_err(errno_of)?;
    // The kernel's internal format: of the inode, only the lower half.
    let device = (major(stat.st_dev) << 20) | minor(stat.st_dev);
    let want = (stat.st_ino as u32, device);
    let flags = SocketFlags::CLOEXEC;
    let diag = Some(netlink::SOCK_DIAG);
    let kernel =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, diag).map_err(errno_of)?;
    send(&kernel, &request(), SendFlags::empty()).map_err(errno_of)?;
    let mut room = vec![0; ROOM];
    let mut found = Vec::new();
    loop {
        let (_, len) = recv(&kernel, room.as_mut_slice(), RecvFlags::empty()).map_err(errno_of)?;
        let bytes = room.get(..len).unwrap_or_default();
        if answers(bytes, want, &mut found)? {
            return Ok(found);
        }
    }
}

/// Requests all listening sockets with their files.
fn request() -> Vec<u8> {
    let family = AddressFamily::UNIX.as_raw() as u8;
    let mut body = vec![family, 0, 0, 0];
    for number in [LISTENS, 0, SHOW_FILE, 0, 0] {
        body.extend(number.to_ne_bytes());
    }
    let len = u32::try_from(HEAD + body.len()).unwrap_or_default();
    let mut bytes = len.to_ne_bytes().to_vec();
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(DUMP.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(body);
    bytes
}

/// Reads messages; returns whether the last one has arrived.
fn answers(mut bytes: &[u8], want: (u32, u32), found: &mut Vec<u64>) -> Result<bool, Errno> {
    while let (Some(len), Some(kind)) = (number(bytes, 0), half(bytes, 4)) {
        let len = usize::try_from(len).unwrap_or_default();
        let message = bytes.get(HEAD..len).ok_or(libc::EPROTO)?;
        match kind {
            DONE => return Ok(true),
            // This system has no such list: then no socket is known to be its own.
            ERROR => return Err(libc::EPERM),
            BY_FAMILY if file_of(message) == Some(want) => {
                found.extend(number(message, 4).map(u64::from));
            }
            _ => {}
        }
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// Returns inode and device of the file under which a socket listens.
fn file_of(message: &[u8]) -> Option<(u32, u32)> {
    let mut attributes = message.get(SOCKET..)?;
    loop {
        let (len, kind) = (usize::from(half(attributes, 0)?), half(attributes, 2)?);
        if kind == FILE {
            return Some((
                number(attributes, ATTRIBUTE)?,
                number(attributes, ATTRIBUTE + 4)?,
            ));
        }
        attributes = attributes.get(len.max(ATTRIBUTE).next_multiple_of(4)..)?;
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four: &[u8; 4] = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*four))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let two: &[u8; 2] = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_ne_bytes(*two))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixListener;

    #[test]
    fn who_listens_under_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("s"), dir.path().join("t"));
        let listener = UnixListener::bind(&path).unwrap();
        let _other = UnixListener::bind(&other).unwrap();
        let at = |path: &std::path::Path| {
            let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
            rustix::fs::open(path, flags, rustix::fs::Mode::empty()).unwrap()
        };
        match listening(&at(&path)) {
            Ok(found) => {
                let want = fstat(listener.as_fd()).unwrap().st_ino;
                assert_eq!(found, [want]);
                drop(listener);
                assert_eq!(listening(&at(&path)), Ok(Vec::new()));
            }
            Err(errno) => println!("skipped: the system does not tell ({errno})"),
        }
    }
}
