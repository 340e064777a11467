//! Connections are granted by address and port, for root and for an unprivileged user.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use outrigger_network_proxy::hosts::{Hosts, Reach, Refusal};
use outrigger_network_proxy::{Client, Connection, Proxy, ProxyTicket, Upstream};
use outrigger_sandbox::{Calls, Policy, ProcSockets, ScopedNetwork, Spec, run};
use tokio::sync::OnceCell;

use super::{PLENTY, eventually, helper, output, sh, spawner, text};

const REFUSED: &str = "PermissionDenied";

/// Opens a listener with the same port at each address, and counts their connections. The first address stands for
/// this machine, the others for machines elsewhere: the rules are about the address.
fn listeners(addresses: &[&str]) -> (u16, Vec<Arc<AtomicUsize>>) {
    loop {
        let first = TcpListener::bind((addresses[0], 0)).unwrap();
        let port = first.local_addr().unwrap().port();
        let rest: io::Result<Vec<_>> = addresses[1..]
            .iter()
            .map(|address| TcpListener::bind((*address, port)))
            .collect();
        let Ok(rest) = rest else { continue };
        let counts = std::iter::once(first).chain(rest).map(count).collect();
        return (port, counts);
    }
}

fn count(listener: TcpListener) -> Arc<AtomicUsize> {
    let came = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&came);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            drop(stream);
        }
    });
    came
}

/// Runs in the helper: connects in one way to one target.
pub(crate) fn make(task: &str) -> io::Result<()> {
    let (way, to) = task.split_once(' ').unwrap();
    let v4 = || to.parse().unwrap();
    match way {
        "plain" => TcpStream::connect(to).map(drop),
        "late" => {
            TcpStream::connect_timeout(&to.parse().unwrap(), Duration::from_secs(9)).map(drop)
        }
        "thread" => {
            let to = to.to_owned();
            std::thread::spawn(move || TcpStream::connect(to).map(drop))
                .join()
                .unwrap()
        }
        "address-race" => address_race(v4()),
        "number-race" => number_race(v4()),
        "unix" => UnixStream::connect(to).map(drop),
        "unix-as-0" => UnixStream::connect(to).map(drop),
        "unix-as-65534" => {
            become_user(65534);
            UnixStream::connect(to).map(drop)
        }
        "past" => {
            let (full, free) = to.split_once(' ').unwrap();
            let full = full.to_owned();
            let (begins, begun) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                begins.send(()).unwrap();
                UnixStream::connect(full).map(drop)
            });
            begun.recv().unwrap();
            // The other one has started by now. If it starts later, the test shows nothing, but does not fail.
            std::thread::sleep(Duration::from_millis(200));
            TcpStream::connect(free).map(drop)
        }
        "abstract" => {
            UnixStream::connect_addr(&UnixAddr::from_abstract_name(to).unwrap()).map(drop)
        }
        "listen" => listens_at(&TcpListener::bind(to)?, to),
        "listen-unbound" => unbound(),
        "listen-race" => listen_race(),
        "listen-unix" => UnixListener::bind(to).map(drop),
        "says" => {
            let mut stream = TcpStream::connect(to)?;
            stream.write_all(b"ping")?;
            let mut said = String::new();
            stream.read_to_string(&mut said)?;
            if said == "PING" {
                Ok(())
            } else {
                Err(io::Error::other(said))
            }
        }
        "beside" => beside(to),
        other => Err(io::Error::other(format!("no way {other}"))),
    }
}

/// Connects to the second address while a connection to the first one is being established.
fn beside(both: &str) -> io::Result<()> {
    let (slow, quick) = both.split_once(' ').unwrap();
    let slow = slow.to_owned();
    let begun = Arc::new(AtomicBool::new(false));
    let begins = Arc::clone(&begun);
    let waiting = std::thread::spawn(move || {
        begins.store(true, Ordering::SeqCst);
        TcpStream::connect(slow)
    });
    while !begun.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(200));
    make(&format!("says {quick}"))?;
    if waiting.is_finished() {
        Err(io::Error::other("it did not wait"))
    } else {
        Ok(())
    }
}

fn raw(to: SocketAddrV4) -> libc::sockaddr_in {
    // SAFETY: zero is a valid address.
    #[expect(unsafe_code, reason = "an address as the kernel has it")]
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = libc::AF_INET as libc::sa_family_t;
    address.sin_port = to.port().to_be();
    address.sin_addr.s_addr = u32::from_ne_bytes(to.ip().octets());
    address
}

#[expect(unsafe_code, reason = "the user of one thread has no wrapper")]
fn become_user(user: libc::uid_t) {
    // SAFETY: numbers only.
    assert_eq!(
        unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) },
        0
    );
}

#[expect(
    unsafe_code,
    reason = "connecting by an address in memory that changes"
)]
fn connect(socket: libc::c_int, at: *const libc::sockaddr_in) -> io::Result<()> {
    // SAFETY: the address outlives the call; the test is about its change in the meantime.
    let answer = unsafe {
        libc::connect(
            socket,
            at.cast(),
            size_of::<libc::sockaddr_in>() as libc::socklen_t,
        )
    };
    if answer == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[expect(unsafe_code, reason = "a socket that is not connected has no type")]
fn socket() -> OwnedFd {
    // SAFETY: numbers only; the descriptor is new.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        assert!(fd >= 0);
        OwnedFd::from_raw_fd(fd)
    }
}

/// The address is allowed when it is checked, and a moment later it is another one.
#[expect(unsafe_code, reason = "memory that two threads write")]
fn address_race(bad: SocketAddrV4) -> io::Result<()> {
    let here = SocketAddrV4::new(Ipv4Addr::LOCALHOST, bad.port());
    let place = Box::leak(Box::new(raw(here)));
    let at = std::ptr::from_mut(place) as usize;
    let over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&over);
    let flips = std::thread::spawn(move || {
        while !ends.load(Ordering::Relaxed) {
            for address in [raw(bad), raw(here)] {
                // SAFETY: leaked memory of this type.
                unsafe { (at as *mut libc::sockaddr_in).write_volatile(address) };
            }
        }
    });
    for _ in 0..2_000 {
        let socket = socket();
        let _ = connect(socket.as_raw_fd(), at as *const libc::sockaddr_in);
    }
    over.store(true, Ordering::Relaxed);
    flips.join().unwrap();
    Ok(())
}

/// The number refers to a socket whose connection is being approved, and a moment later to another one that is already
/// connected.
#[expect(unsafe_code, reason = "dup2 of numbers that are ours")]
fn number_race(bad: SocketAddrV4) -> io::Result<()> {
    let here = raw(SocketAddrV4::new(Ipv4Addr::LOCALHOST, bad.port()));
    let there = raw(bad);
    let file = std::fs::File::open("/dev/null")?;
    for _ in 0..500 {
        let (one, other) = (socket(), socket());
        let place = one.as_raw_fd();
        let (null, second) = (file.as_raw_fd(), other.as_raw_fd());
        let swap = std::thread::spawn(move || {
            for fd in [null, second, null, second] {
                // SAFETY: numbers; 0 to 2 are not among them.
                unsafe { libc::dup2(fd, place) };
            }
        });
        let _ = connect(place, &raw const here);
        let _ = connect(second, &raw const there);
        swap.join().unwrap();
    }
    Ok(())
}

/// Refused unless it is loopback, or was requested and granted.
fn listens_at(listener: &TcpListener, asked: &str) -> io::Result<()> {
    let at = listener.local_addr()?;
    let loopback = at.ip().to_canonical().is_loopback();
    if loopback || !asked.ends_with(":0") {
        Ok(())
    } else {
        Err(io::Error::other(format!("listens at {at}")))
    }
}

#[expect(unsafe_code, reason = "a socket that is not bound has no type")]
fn listen(socket: OwnedFd) -> io::Result<TcpListener> {
    // SAFETY: numbers only.
    match unsafe { libc::listen(socket.as_raw_fd(), 8) } {
        0 => Ok(socket.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn unbound() -> io::Result<()> {
    let listener = listen(socket())?;
    listens_at(&listener, ":0")?;
    TcpStream::connect(listener.local_addr()?).map(drop)
}

/// The socket is not an internet socket when it is checked, and a moment later it is.
#[expect(unsafe_code, reason = "dup2 of numbers that are ours")]
fn listen_race() -> io::Result<()> {
    let everywhere = raw(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
    for _ in 0..500 {
        // SAFETY: numbers only; the descriptor is new.
        let one =
            unsafe { OwnedFd::from_raw_fd(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)) };
        let other = socket();
        let (place, second) = (one.as_raw_fd(), other.as_raw_fd());
        let swap = std::thread::spawn(move || {
            // SAFETY: numbers; 0 to 2 are not among them.
            unsafe { libc::dup2(second, place) };
        });
        // SAFETY: a pointer to a local of the given length.
        unsafe {
            let len = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            libc::bind(place, (&raw const everywhere).cast(), len);
        }
        swap.join().unwrap();
        drop(one);
        match listen(other) {
            Ok(listener) => listens_at(&listener, ":0")?,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn ruled(ports: &[u16]) -> Policy {
    Policy {
        connect_tcp: Some(ports.to_vec()),
        calls: Some(Calls::default()),
        ..Policy::system()
    }
}

async fn answer(spec: Spec) -> String {
    let said = text(spec).await;
    said.lines()
        .find_map(|line| line.strip_prefix("ANSWER "))
        .unwrap_or(&said)
        .to_owned()
}

fn possible() -> bool {
    let possible = spawner().has_connects();
    if !possible {
        println!("skipped: connections cannot be decided about by address here");
    }
    possible
}

#[tokio::test]
async fn the_port_of_another_address_is_refused() {
    if !possible() {
        return;
    }
    let (port, came) = listeners(&["127.0.0.1", "127.0.0.2", "::1"]);
    let rows = [
        ("plain", "127.0.0.1", "ok"),
        ("plain", "[::ffff:127.0.0.1]", "ok"),
        ("late", "127.0.0.1", "ok"),
        ("thread", "127.0.0.1", "ok"),
        ("plain", "127.0.0.2", REFUSED),
        ("plain", "[::ffff:127.0.0.2]", REFUSED),
        ("plain", "[::1]", REFUSED),
        ("plain", "0.0.0.0", REFUSED),
        ("late", "127.0.0.2", REFUSED),
        ("thread", "127.0.0.2", REFUSED),
        ("thread", "[::1]", REFUSED),
        // Not of this machine: nothing is sent there.
        ("late", "192.0.2.1", REFUSED),
        ("late", "[2001:db8::1]", REFUSED),
    ];
    for (way, address, want) in rows {
        let spec = helper::spec(&format!("reach {way} {address}:{port}"));
        let said = answer(spec.policy(ruled(&[port]))).await;
        assert_eq!(said, want, "{way} {address}");
    }
    // Counts accepted connections separately from attempts.
    let counts = |came: &[Arc<AtomicUsize>]| -> Vec<usize> {
        came.iter().map(|it| it.load(Ordering::SeqCst)).collect()
    };
    assert_eq!(counts(&came), [4, 0, 0]);
    for way in ["address-race", "number-race"] {
        let spec = helper::spec(&format!("reach {way} 127.0.0.2:{port}"));
        assert_eq!(answer(spec.policy(ruled(&[port]))).await, "ok", "{way}");
    }
    let counts = counts(&came);
    assert!(counts[0] > 4, "nothing of the races arrived");
    assert_eq!(counts[1..], [0, 0]);
}

#[tokio::test]
async fn children_and_daemons_are_held_to_it() {
    if !possible() {
        return;
    }
    let (port, came) = listeners(&["127.0.0.1", "127.0.0.2"]);
    let to = |address: &str| format!("exec 3<>/dev/tcp/{address}/{port} && echo in");
    let bash = |script: String| {
        Spec::new("bash")
            .args(["-c".to_owned(), script])
            .var("PATH", "/usr/local/bin:/usr/bin:/bin")
            .policy(ruled(&[port]))
    };
    for around in ["{}", "bash -c 'bash -c \"{}\"'", "setsid -w bash -c '{}'"] {
        let said = |address: &str| output(bash(around.replace("{}", &to(address))));
        let (good, bad) = (said("127.0.0.1").await, said("127.0.0.2").await);
        assert_eq!(good.unwrap().stdout, b"in\n", "{around}");
        assert_eq!(bad.unwrap().stdout, b"", "{around}");
    }
    assert_eq!(came[1].load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn unix_sockets_are_those_of_the_own_view() {
    if !possible() {
        return;
    }
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::create_dir(at("hidden")).unwrap();
    let open = UnixListener::bind(at("open")).unwrap();
    let shut = UnixListener::bind(at("hidden/shut")).unwrap();
    // A link that leads there another way does so in the process's view, too.
    std::os::unix::fs::symlink(at("hidden/shut"), at("link")).unwrap();
    let name = format!("outrigger-{}", std::process::id());
    let outside = UnixAddr::from_abstract_name(&name).unwrap();
    let outside = UnixListener::bind_addr(&outside).unwrap();
    for listener in [&open, &shut, &outside] {
        listener.set_nonblocking(true).unwrap();
    }
    let policy = |unix_sockets| Policy {
        calls: Some(Calls {
            unix_sockets,
            ..Calls::default()
        }),
        hide: vec![at("hidden")],
        ..ruled(&[])
    };
    // An unprivileged user may not even look into what is covered.
    const HIDDEN: &str = "NotFound or PermissionDenied";
    let text_of = |name: &str| at(name).display().to_string();
    for (way, to, unix_sockets, want) in [
        ("unix", text_of("open"), true, "ok"),
        ("unix", "./open".to_owned(), true, "ok"),
        ("unix", text_of("missing"), true, "NotFound"),
        ("unix", text_of("hidden/shut"), true, HIDDEN),
        ("unix", text_of("link"), true, HIDDEN),
        ("abstract", name, true, REFUSED),
        ("unix", text_of("open"), false, REFUSED),
    ] {
        let spec = helper::spec(&format!("reach {way} {to}")).cwd(dir.path());
        let mut policy = policy(unix_sockets);
        policy.read.push(dir.path().to_owned());
        let said = answer(spec.policy(policy)).await;
        assert!(
            want.split(" or ").any(|it| it == said),
            "{way} {to}: {said}"
        );
    }
    assert!(open.accept().is_ok());
    assert!(shut.accept().is_err() && outside.accept().is_err());
}

#[tokio::test]
async fn other_machines_reach_granted_ports_only() {
    if !possible() {
        return;
    }
    let free = || {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let (granted, other) = (free(), free());
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let socket = dir.path().join("socket").display().to_string();
    for (task, want) in [
        ("listen 127.0.0.1:0".to_owned(), "ok"),
        ("listen [::1]:0".to_owned(), "ok"),
        ("listen 0.0.0.0:0".to_owned(), "ok"),
        ("listen [::]:0".to_owned(), "ok"),
        ("listen-unbound .".to_owned(), "ok"),
        ("listen-race .".to_owned(), "ok"),
        ("listen 192.0.2.1:0".to_owned(), REFUSED),
        (format!("listen 0.0.0.0:{granted}"), "ok"),
        (format!("listen [::]:{granted}"), "ok"),
        (format!("listen 127.0.0.1:{granted}"), "ok"),
        (format!("listen 0.0.0.0:{other}"), REFUSED),
        (format!("listen 127.0.0.1:{other}"), REFUSED),
        (format!("listen-unix {socket}"), "ok"),
    ] {
        let policy = Policy {
            bind_tcp: Some(vec![0, granted]),
            connect_tcp: None,
            calls: Some(Calls {
                unix_sockets: true,
                ..Calls::default()
            }),
            ..ruled(&[])
        };
        let policy = policy.write(dir.path());
        let spec = helper::spec(&format!("reach {task}"));
        assert_eq!(answer(spec.policy(policy)).await, want, "{task}");
    }
    for task in ["listen 127.0.0.1:0", "listen-unbound ."] {
        let policy = Policy {
            bind_tcp: Some(Vec::new()),
            ..ruled(&[])
        };
        let spec = helper::spec(&format!("reach {task}"));
        assert_eq!(answer(spec.policy(policy)).await, REFUSED, "{task}");
    }
}

/// Starts a server that answers in capitals.
fn capitals() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut said = [0; 4];
            if stream.read_exact(&mut said).is_ok() {
                let _ = stream.write_all(&said.to_ascii_uppercase());
            }
        }
    });
    port
}

/// Grants access through the proxy to these hosts only.
fn granted(
    proxy: &Proxy,
    hosts: &[String],
    on_connect: impl Fn(&Connection) + Send + Sync + 'static,
) -> ProxyTicket {
    let client = Client {
        name: "one".to_owned(),
        reach: Reach {
            asked: None,
            granted: Hosts::parse(hosts).unwrap(),
            forbidden: Hosts::default(),
        },
        hint: String::new(),
        on_connect: Arc::new(on_connect),
    };
    proxy.admit(client).unwrap()
}

#[tokio::test]
async fn what_knows_of_no_proxy_is_led_to_what_was_granted() {
    if !possible() {
        return;
    }
    let (open, shut) = (capitals(), capitals());
    let proxy = Proxy::start(None, ProcSockets).await.unwrap();
    let reported = Arc::new(std::sync::Mutex::new(Vec::new()));
    let tells = Arc::clone(&reported);
    let pass = granted(&proxy, &[format!("127.0.0.1:{open}")], move |it| {
        let said = (it.port, it.refused.map(|why| why.code()));
        tells.lock().unwrap().push(said);
    });
    for (to, want) in [
        (format!("127.0.0.1:{open}"), "ok"),
        (format!("[::ffff:127.0.0.1]:{open}"), "ok"),
        (format!("127.0.0.1:{shut}"), REFUSED),
    ] {
        let spec = helper::spec(&format!("reach says {to}")).proxy_redirect(pass.redirect());
        let policy = ruled(&[pass.port()]);
        assert_eq!(answer(spec.policy(policy)).await, want, "{to}");
    }
    let reported = reported.lock().unwrap().clone();
    assert_eq!(
        reported,
        [(open, None), (shut, Some("network.private"))],
        "a granted host is reported once"
    );
}

/// A connection that hangs blocks only its own thread, for a limited time, and no other connection.
#[tokio::test]
async fn a_connection_that_is_led_keeps_no_other_waiting() {
    if !possible() {
        return;
    }
    let open = capitals();
    // Accepts connections and never sends anything.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let way = format!("http://{}", silent.local_addr().unwrap());
    let env = [("HTTPS_PROXY".to_owned(), way)].into_iter().collect();
    let proxy = Proxy::start(Upstream::of(&env), ProcSockets).await.unwrap();
    let hosts = ["9.9.9.9".to_owned(), format!("127.0.0.1:{open}")];
    let pass = granted(&proxy, &hosts, |_| {});
    for (task, want) in [
        (format!("beside 9.9.9.9:443 127.0.0.1:{open}"), "ok"),
        // This one's socket does not wait, while its program would for nine seconds.
        ("late 9.9.9.9:443".to_owned(), "TimedOut"),
    ] {
        let spec = helper::spec(&format!("reach {task}")).proxy_redirect(pass.redirect());
        assert_eq!(
            answer(spec.policy(ruled(&[pass.port()]))).await,
            want,
            "{task}"
        );
    }
}

/// Returns a handle whose shell commands may reach everything.
fn led_everywhere() -> Arc<ScopedNetwork> {
    Arc::new(ScopedNetwork {
        name: "shell commands".to_owned(),
        reach: Reach::of(None, Hosts::default()),
        hint: String::new(),
        on_connect: Arc::new(|_| {}),
        strict: false,
        upstream: None,
        proxy: OnceCell::new(),
    })
}

/// What a plugin contributed runs next to the commands, and gets no more than the plugin.
#[tokio::test]
async fn a_sandbox_with_rules_of_its_own_is_not_redirected() {
    if !possible() {
        return;
    }
    let open = capitals();
    let spawner = spawner().with_hosts(led_everywhere());
    let task = format!("reach says 127.0.0.1:{open}");
    for (policy, want) in [
        (Policy::system(), "ok"),
        (Policy::open(), "ok"),
        (ruled(&[]), REFUSED),
        (ruled(&[1]), REFUSED),
    ] {
        let spec = helper::spec(&task).policy(policy.clone());
        let said = run(&spawner, spec, PLENTY, 1 << 20).await.unwrap();
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let said = said.lines().find_map(|line| line.strip_prefix("ANSWER "));
        assert_eq!(said, Some(want), "{:?}", policy.connect_tcp);
    }
}

/// A listener that accepts nothing blocks only the process that connects to it.
#[tokio::test]
async fn a_full_queue_holds_up_one_connection() {
    if !possible() {
        return;
    }
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let full = dir.path().join("full");
    let _listener = full_queue(&full);
    let (port, came) = listeners(&["127.0.0.1"]);
    let mut policy = ruled(&[port]);
    policy.calls = Some(Calls {
        unix_sockets: true,
        ..Calls::default()
    });
    policy.read.push(dir.path().to_owned());
    let task = format!("reach past {} 127.0.0.1:{port}", full.display());
    let said = answer(helper::spec(&task).policy(policy)).await;
    assert_eq!(said, "ok");
    eventually("it has come", || came[0].load(Ordering::SeqCst) == 1).await;
}

/// Returns a listener whose queue is full.
#[expect(unsafe_code, reason = "the queue of a listener has no wrapper")]
fn full_queue(path: &std::path::Path) -> (UnixListener, Vec<UnixStream>) {
    let listener = UnixListener::bind(path).unwrap();
    // SAFETY: numbers only.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    let first = UnixStream::connect(path).unwrap();
    (listener, vec![first])
}

/// The host does not connect for a sandboxed root that has become another user.
#[tokio::test]
async fn another_user_does_not_connect_as_the_host() {
    if !possible() || !rustix::process::geteuid().is_root() {
        return;
    }
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.path(), mode).unwrap();
    let socket = dir.path().join("root");
    let _listener = UnixListener::bind(&socket).unwrap();
    for (user, want) in [(0, "ok"), (65534, REFUSED)] {
        let mut policy = ruled(&[]);
        policy.calls = Some(Calls {
            unix_sockets: true,
            ..Calls::default()
        });
        policy.read.push(dir.path().to_owned());
        let task = format!("reach unix-as-{user} {}", socket.display());
        let said = answer(helper::spec(&task).policy(policy)).await;
        assert_eq!(said, want, "{user}");
    }
}

/// A process that opens a connection to the proxy and sends nothing is identified by its source port.
#[tokio::test(flavor = "multi_thread")]
async fn the_one_that_says_nothing_is_named() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let proxy = Proxy::start(None, ProcSockets).await.unwrap();
    let client = |name: &str| {
        let seen = Arc::clone(&seen);
        Client {
            name: name.to_owned(),
            reach: Reach::of(Some(Hosts::default()), Hosts::default()),
            hint: String::new(),
            on_connect: Arc::new(move |it| seen.lock().unwrap().push(it.clone())),
        }
    };
    let ticket = proxy.admit(client("acme")).unwrap();
    let _other = proxy.admit(client("other")).unwrap();
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{}; sleep 50", proxy.port());
    let spec = Spec::new("/bin/bash").args(["-c", &script]);
    let child = spawner().spawn(spec).await.unwrap();
    ticket.belongs_to(child.pid());
    // It has five seconds to send a head.
    let reported = async {
        while seen.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PLENTY, reported).await.unwrap();
    let first: Connection = seen.lock().unwrap().first().cloned().unwrap();
    assert_eq!(
        (first.client.as_str(), first.refused),
        ("acme", Some(Refusal::TooMany))
    );
}

/// A measurement rather than a limit; `--nocapture` shows it.
#[tokio::test]
async fn the_time_that_it_takes() {
    let mut took = Vec::new();
    let without = Policy {
        connect_tcp: None,
        ..ruled(&[])
    };
    for policy in [without, ruled(&[1])] {
        let begun = Instant::now();
        for _ in 0..50 {
            text(sh(":").policy(policy.clone())).await;
        }
        took.push(begun.elapsed() / 50);
    }
    println!(
        "a start without the rule {:?}, with it {:?}",
        took[0], took[1]
    );
}
