//! Ports that a test must name before somebody listens there.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::Mutex;

/// Below those that the system gives out for port 0.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// What this process has claimed; a claim ends with the process.
static CLAIMS: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());

/// A port at which nobody listens, and which no other test gets as long as this process lives. A port that is only found free,
/// by binding it and letting it go, may be somebody else's when it is used.
///
/// ```
/// use outrigger_test_support::free_port;
///
/// let port = free_port();
/// std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
/// assert_ne!(port, free_port());
/// ```
pub fn free_port() -> u16 {
    // Tests begin at different places.
    let begin = std::process::id().wrapping_mul(37);
    let ports = (0..u32::from(COUNT)).map(|n| {
        let offset = begin.wrapping_add(n) % u32::from(COUNT);
        FIRST + u16::try_from(offset).unwrap()
    });
    for port in ports {
        let name = format!("outrigger-test-port-{port}");
        let name = SocketAddr::from_abstract_name(name).unwrap();
        // A name without a file: the kernel gives it to one at a time.
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
