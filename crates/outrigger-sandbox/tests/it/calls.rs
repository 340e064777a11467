//! The system call filter: calls that bypass the rules for files and TCP are refused, calls that programs need are not.

use std::io;
use std::net::UdpSocket;
use std::os::unix::net::{UnixDatagram, UnixStream};

use outrigger_sandbox::{Calls, Level, Loopback, Policy};

use super::{helper, text};

const REFUSED: &str = "PermissionDenied";

/// Runs in the helper: makes one call, by name.
#[expect(unsafe_code, reason = "some calls have no wrapper")]
pub(crate) fn make(call: &str) -> io::Result<()> {
    let answer = |answer: libc::c_long| match answer {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    };
    let socket = |family, kind, protocol| {
        // SAFETY: numbers only.
        answer(unsafe { libc::socket(family, kind, protocol) }.into())
    };
    match call {
        "unix" => socket(libc::AF_UNIX, libc::SOCK_STREAM, 0),
        "unix-flags" => socket(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0),
        "pair" => UnixStream::pair().map(drop),
        "datagram-pair" => UnixDatagram::pair().map(drop),
        "raw-pair" => pair(libc::SOCK_RAW),
        "raw-pair-flags" => pair(libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK),
        "packet-pair" => pair(libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC),
        "port-range" => port_range(libc::AF_INET),
        "port-range6" => port_range(libc::AF_INET6),
        "tcp" => socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0),
        "udp" => UdpSocket::bind("127.0.0.1:0").map(drop),
        "mptcp" => socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_MPTCP),
        "mptcp6" => socket(
            libc::AF_INET6,
            libc::SOCK_STREAM | libc::SOCK_NONBLOCK,
            libc::IPPROTO_MPTCP,
        ),
        "sctp" => socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_SCTP),
        "sctp-packets" => socket(libc::AF_INET, libc::SOCK_SEQPACKET, libc::IPPROTO_SCTP),
        "dccp" => socket(libc::AF_INET, 6, 33),
        "tcp-named" => socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_TCP),
        "fast-open" => fast_open(),
        "udp6" => socket(libc::AF_INET6, libc::SOCK_DGRAM | libc::SOCK_NONBLOCK, 0),
        "raw" => socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
        "packet" => socket(libc::AF_PACKET, libc::SOCK_RAW, 0),
        "vsock" => socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0),
        "interfaces" => socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE),
        "audit" => socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_AUDIT),
        // SAFETY: a request without pointers. Granted, it would stop the process at its next signal.
        "trace" => answer(unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) }),
        // SAFETY: null and zero: without the filter the kernel rejects them as invalid.
        "io_uring" => answer(unsafe { libc::syscall(libc::SYS_io_uring_setup, 0, 0) }),
        // SAFETY: as above.
        "memory" => answer(unsafe { libc::syscall(libc::SYS_process_vm_readv, 1, 0, 0, 0, 0, 0) }),
        "limit-of-others" => limit(
            rustix::process::getppid().map_or(1, |it| it.as_raw_nonzero().get()),
            7,
            true,
        ),
        "limit-of-others-read" => limit(
            rustix::process::getppid().map_or(1, |it| it.as_raw_nonzero().get()),
            7,
            false,
        ),
        "limit" => limit(0, 7, true),
        "tag" => limit(0, 10, true),
        "tag-read" => limit(0, 10, false),
        "tag-old" => {
            let none = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            // SAFETY: a pointer to a local.
            answer(unsafe { libc::syscall(libc::SYS_setrlimit, 10, &raw const none) })
        }
        // SAFETY: null and zero: without the filter the kernel rejects them as invalid.
        "tree" => answer(unsafe { libc::syscall(467, -1, 0, 0, 0, 0) }),
        // SAFETY: numbers only.
        "namespace" => answer(unsafe { libc::setns(0, 0) }.into()),
        // SAFETY: descriptor 0 is a terminal or is not.
        "type" => answer(unsafe { libc::ioctl(0, libc::TIOCSTI, c"x".as_ptr()) }.into()),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: socket(AF_UNIX, SOCK_STREAM, 0) in the x32 form.
        "x32" => answer(unsafe { libc::syscall(0x4000_0000 + libc::SYS_socket, 1, 1, 0) }),
        other => Err(io::Error::other(format!("no call {other}"))),
    }
}

/// Reads a limit, and sets it to its current value.
#[expect(unsafe_code, reason = "limits of other processes have no wrapper")]
fn limit(process: libc::pid_t, which: libc::c_uint, sets: bool) -> io::Result<()> {
    let mut value = libc::rlimit64 {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let null = std::ptr::null_mut::<libc::rlimit64>();
    // SAFETY: pointers to a local, or null.
    let answer = unsafe {
        let read = libc::syscall(libc::SYS_prlimit64, process, which, null, &raw mut value);
        match read {
            0 if sets => libc::syscall(libc::SYS_prlimit64, process, which, &raw const value, null),
            other => other,
        }
    };
    match answer {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[expect(unsafe_code, reason = "other kinds of pairs have no wrapper")]
fn pair(kind: libc::c_int) -> io::Result<()> {
    let mut ends = [0; 2];
    // SAFETY: room for two numbers; the descriptors are closed with the process.
    match unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Sets the range of ports that the system picks from to a single port.
#[expect(unsafe_code, reason = "the option has no wrapper")]
fn port_range(family: libc::c_int) -> io::Result<()> {
    let range: u32 = 40_000 << 16 | 40_000;
    // SAFETY: numbers, and a pointer to a local of the given length.
    let answer = unsafe {
        let socket = libc::socket(family, libc::SOCK_STREAM, 0);
        let len = size_of::<u32>() as libc::socklen_t;
        libc::setsockopt(socket, libc::SOL_IP, 51, (&raw const range).cast(), len)
    };
    match answer {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Opens a connection with its first bytes. Nothing listens there, so the kernel would refuse it, too.
#[expect(unsafe_code, reason = "the flag has no wrapper")]
fn fast_open() -> io::Result<()> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    // SAFETY: numbers only; the descriptor is closed with the process.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
    // SAFETY: zero is a valid address; the length is that of the type.
    let sent = unsafe {
        let mut to: libc::sockaddr_in = std::mem::zeroed();
        to.sin_family = libc::AF_INET as libc::sa_family_t;
        to.sin_port = port.to_be();
        to.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
        libc::sendto(
            socket,
            b"x".as_ptr().cast(),
            1,
            libc::MSG_FASTOPEN,
            (&raw const to).cast(),
            size_of::<libc::sockaddr_in>() as libc::socklen_t,
        )
    };
    match sent {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

async fn says(calls: Option<Calls>, call: &str) -> String {
    said(calls, None, call).await
}

async fn said(calls: Option<Calls>, connect_tcp: Option<Vec<u16>>, call: &str) -> String {
    let policy = Policy {
        calls,
        connect_tcp,
        ..Policy::open()
    };
    let said = text(helper::spec(&format!("call {call}")).policy(policy)).await;
    said.lines()
        .find_map(|line| line.strip_prefix("ANSWER "))
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn what_gets_around_the_rules_is_refused() {
    let strict = Calls::default();
    let unix = Calls {
        unix_sockets: true,
        ..strict
    };
    let udp = Calls {
        udp: true,
        ..strict
    };
    let rows = [
        ("unix", strict, REFUSED),
        ("unix-flags", strict, REFUSED),
        ("datagram-pair", strict, REFUSED),
        ("raw-pair", strict, REFUSED),
        ("raw-pair-flags", strict, REFUSED),
        ("packet-pair", strict, "ok"),
        ("port-range", strict, REFUSED),
        ("port-range6", strict, REFUSED),
        ("udp", strict, REFUSED),
        ("udp6", strict, REFUSED),
        ("raw", strict, REFUSED),
        ("packet", strict, REFUSED),
        ("vsock", strict, REFUSED),
        ("audit", strict, REFUSED),
        ("trace", strict, REFUSED),
        ("io_uring", strict, REFUSED),
        ("memory", strict, REFUSED),
        ("namespace", strict, REFUSED),
        ("type", strict, REFUSED),
        ("limit-of-others", strict, REFUSED),
        ("limit-of-others-read", strict, REFUSED),
        ("tag", strict, REFUSED),
        ("tag-old", strict, REFUSED),
        ("tree", strict, REFUSED),
        ("limit", strict, "ok"),
        ("tag-read", strict, "ok"),
        ("pair", strict, "ok"),
        ("tcp", strict, "ok"),
        ("interfaces", strict, "ok"),
        ("unix", unix, "ok"),
        ("datagram-pair", unix, "ok"),
        ("raw-pair", unix, "ok"),
        ("udp", unix, REFUSED),
        ("udp", udp, "ok"),
        ("unix", udp, REFUSED),
        (
            "raw",
            Calls {
                udp: true,
                unix_sockets: true,
                ..strict
            },
            REFUSED,
        ),
    ];
    for (call, calls, expected) in rows {
        assert_eq!(says(Some(calls), call).await, expected, "{call} {calls:?}");
    }
    if cfg!(target_arch = "x86_64") {
        assert_eq!(says(Some(strict), "x32").await, "Unsupported");
    }
}

/// Landlock covers TCP but no similar protocol: if connections are restricted, these are refused.
#[tokio::test]
async fn what_connects_in_another_way_is_refused_where_connections_are_ruled() {
    for call in [
        "mptcp",
        "mptcp6",
        "sctp",
        "sctp-packets",
        "dccp",
        "fast-open",
    ] {
        let ruled = said(Some(Calls::default()), Some(Vec::new()), call).await;
        assert_eq!(ruled, REFUSED, "{call}");
        let free = said(Some(Calls::default()), None, call).await;
        assert_ne!(free, REFUSED, "{call}");
    }
    for call in ["tcp", "tcp-named"] {
        let ruled = said(Some(Calls::default()), Some(Vec::new()), call).await;
        assert_eq!(ruled, "ok", "{call}");
    }
}

/// The rows above would prove nothing if the calls failed anyway.
#[tokio::test]
async fn without_the_filter_they_are_allowed() {
    for call in ["unix", "datagram-pair", "udp"] {
        assert_eq!(says(None, call).await, "ok", "{call}");
    }
    assert_ne!(says(None, "io_uring").await, REFUSED);
}

/// A file that a sandboxed process creates never lets others act as this user or its group. Whether folders may pass on their group
/// depends on the host.
#[tokio::test]
async fn no_program_is_made_that_runs_as_its_owner() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("s"), "").unwrap();
    let perl = |mode: &str| {
        format!("perl -MFcntl -e 'sysopen(F, \"f{mode}\", O_CREAT|O_WRONLY, {mode}) or exit 1'")
    };
    let by_number =
        |file: &str| format!("perl -e 'open(F, \"<\", \"{file}\"); chmod(02755, *F) or exit 1'");
    let folders = [
        "mkdir d1 && chmod 2775 d1 && test -g d1".to_owned(),
        format!("mkdir -p e/d2 && {} && test -g e/d2", by_number("e/d2")),
        "mkdir -p d3/x && cd d3 && chmod g+s x ../d3 && test -g ../d3 && cp -a ../d3 ../d4 && test -g ../d4/x".to_owned(),
    ];
    let asked = Policy {
        loopback: Some(Loopback::new(Vec::new())),
        ..Policy::system()
    };
    let is_asked = asked.level() == Level::Full;
    let mut rows = vec![
        ("chmod 755 s && chmod u+x s".to_owned(), true),
        ("mkdir d && chmod 1777 d".to_owned(), true),
        (perl("0755"), true),
        (perl("04755"), false),
        (perl("02755"), false),
        (by_number("s"), false),
    ];
    rows.extend(["4755", "u+s", "2755", "g+s", "6755"].map(|it| (format!("chmod {it} s"), false)));
    rows.extend(["4755", "2755"].map(|it| (format!("install -m {it} s t"), false)));
    rows.extend(
        ["04755", "02755"].map(|it| (format!("perl -e 'chmod({it}, \"s\") or exit 1'"), false)),
    );
    rows.extend(folders.map(|it| (it, is_asked)));
    for loopback in [None, asked.loopback] {
        for (script, works) in &rows {
            let works = *works && (loopback.is_some() || !script.contains("-g "));
            let policy = Policy {
                calls: Some(Calls::default()),
                loopback: loopback.clone(),
                ..Policy::system().write(dir.path())
            };
            let spec = super::sh(script).cwd(dir.path()).policy(policy);
            let output = super::output(spec).await.unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.exit.success(), works, "{script}: {said}");
            for made in ["d", "d1", "d3", "d4", "e"] {
                let _ = std::fs::remove_dir_all(dir.path().join(made));
            }
        }
    }
    for entry in std::fs::read_dir(dir.path()).unwrap().flatten() {
        let mode = std::os::unix::fs::MetadataExt::mode(&entry.metadata().unwrap());
        assert_eq!(mode & 0o6000, 0, "{:?}", entry.path());
    }
}

/// A disk contains every file: a process that may read everything can read only devices that are open to everyone.
#[tokio::test]
async fn devices_are_not_among_what_may_be_read() {
    let policy = || Policy {
        calls: Some(Calls::default()),
        ..Policy::system().read("/")
    };
    for (script, works) in [
        (
            "cat /etc/passwd /usr/bin/env >/dev/null && head -c 9 /dev/urandom && : </dev/null",
            true,
        ),
        (
            "ls / /dev /proc && test -e /dev/fd/1 && echo x >/dev/stdout",
            true,
        ),
        (
            "for it in /dev/*; do test -L $it && continue; test -b $it -o -c $it || continue; case $it in */null|*/zero|*/full|*/*random|*/tty) ;; \
          *) (: <$it) 2>/dev/null && echo $it && exit 1 ;; esac; done; true",
            true,
        ),
        ("mknod x b 7 0", false),
    ] {
        let output = super::output(super::sh(script).policy(policy()))
            .await
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.exit.success(), works, "{script}: {said}");
    }
}
