//! Ports that a test must name before a process listens there.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::Mutex;

/// Below those that the system assigns for port 0.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// The claims of this process, which end with it.
static CLAIMS: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());

/// Returns a port without a listener that no other test gets while this process lives. A port that was only found free by
/// binding and releasing it may be taken by another process before it is used.
///
/// ```
/// use outrigger_test_support::free_port;
///
/// let port = free_port();
/// std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
/// assert_ne!(port, free_port());
/// ```
pub fn free_port() -> u16 {
    // Tests start at different numbers.
    let begin = std::process::id().wrapping_mul(37);
    let ports = (0..u32::from(COUNT)).map(|n| {
        let offset = begin.wrapping_add(n) % u32::from(COUNT);
        FIRST + u16::try_from(offset).unwrap()
    });
    for port in ports {
        let name = format!("outrigger-test-port-{port}");
        let name = SocketAddr::from_abstract_name(name).unwrap();
        // A name without a file: the kernel gives it to one process at a time.
        let Ok(claim) = UnixListener::bind_addr(&name) else {
            continue;
        };
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            CLAIMS.lock().unwrap().push(claim);
            return port;
        }
    }
    panic!("no port is free");
}
