//! Services of this machine: a process reaches its own and those of its session.

use std::net::TcpListener;

use outrigger_sandbox::{Calls, Child, Loopback, Policy, Spec, Stdio, command_listens};
use tokio::io::AsyncReadExt as _;

use super::{eventually, output, spawner};

fn policy(loopback: &Loopback) -> Policy {
    Policy {
        loopback: Some(loopback.clone()),
        calls: Some(Calls {
            udp: true,
            ..Calls::default()
        }),
        ..Policy::system()
    }
}

fn bash(script: &str) -> Spec {
    Spec::new("bash")
        .arg("-c")
        .arg(script)
        .var("PATH", "/usr/local/bin:/usr/bin:/bin")
}

/// Ways to reach another session's service, each of which must fail. `P` is its port.
const WAYS: [&str; 10] = [
    "exec 3<>/dev/tcp/127.0.0.1/$P",
    "exec 3<>/dev/tcp/localhost/$P",
    "exec 3<>/dev/tcp/0.0.0.0/$P",
    "exec 3<>/dev/tcp/127.1.2.3/$P",
    "exec 3<>/dev/tcp/::ffff:127.0.0.1/$P",
    "exec 3<>/dev/tcp/0/$P",
    "(setsid bash -c 'exec 3<>/dev/tcp/127.0.0.1/$P && touch $DIR/done' &); sleep 0.4; test -e $DIR/done",
    "unshare -Ur bash -c 'exec 3<>/dev/tcp/127.0.0.1/$P'",
    // Data with the connection; another kind of connection.
    "perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0); exit(send(S, \"x\", 0x20000000, sockaddr_in($ENV{P}, inet_aton(\"127.0.0.1\"))) ? 0 : 1)'",
    "perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 262) or exit 1; exit(connect(S, sockaddr_in($ENV{P}, inet_aton(\"127.0.0.1\"))) ? 0 : 1)'",
];

/// Listens, and prints its port.
const SERVES: &str = "exec perl -MIO::Socket::INET -e '$| = 1; $s = IO::Socket::INET->new(Listen => 5, LocalAddr => \"127.0.0.1\") or die; \
    print $s->sockport, \"\\n\"; while ($c = $s->accept) { print $c \"own\\n\"; close $c }'";

#[tokio::test]
async fn services_of_others_are_not_reached() {
    if !spawner().has_connects() {
        return println!("skipped: connections are not decided about by address");
    }
    let loopback = Loopback::new(Vec::new());
    // A listener on all addresses also listens on loopback.
    for at in ["127.0.0.1:0", "0.0.0.0:0"] {
        let service = TcpListener::bind(at).unwrap();
        service.set_nonblocking(true).unwrap();
        let port = service.local_addr().unwrap().port().to_string();
        for way in WAYS {
            let dir = tempfile::tempdir().unwrap();
            let spec = bash(way).var("P", &port).var("DIR", dir.path());
            let policy = policy(&loopback).write(dir.path());
            let exit = output(spec.policy(policy)).await.unwrap().exit;
            assert!(!exit.success(), "{at}: {way}");
            assert!(service.accept().is_err(), "{at}: {way}");
        }
        let granted = Loopback::new(vec![port.parse().unwrap()]);
        let spec = bash(WAYS[0]).var("P", &port).policy(policy(&granted));
        assert!(output(spec).await.unwrap().exit.success(), "{at}");
    }
}

/// Reads the port that [`SERVES`] prints.
async fn port_of(child: &mut Child) -> u16 {
    let stdout = child.stdout.as_mut().unwrap();
    let mut port = String::new();
    while !port.ends_with('\n') {
        port.push(char::from(stdout.read_u8().await.unwrap()));
    }
    port.trim().parse().unwrap()
}

/// A command that listens where a service of the user's is expected is known as one, however it hides.
#[tokio::test]
async fn a_command_that_listens_is_known() {
    let own = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = own.local_addr().unwrap().port();
    let hidden = SERVES.replace(
        "print $s->sockport",
        "syscall(157, 4, 0); print $s->sockport",
    );
    let moved = "(setsid bash -c \"$S\" &); sleep 60";
    let loopback = Loopback::new(Vec::new());
    for script in [SERVES, &hidden, moved] {
        let spec = bash(script).var("S", SERVES).stdout(Stdio::Pipe);
        let mut child = spawner()
            .spawn(spec.policy(policy(&loopback)))
            .await
            .unwrap();
        let port = port_of(&mut child).await;
        for host in [
            "127.0.0.1",
            "localhost",
            "::1",
            "[::ffff:127.0.0.1]",
            "0.0.0.0",
        ] {
            let is_reached = host != "::1";
            assert_eq!(command_listens(host, port), is_reached, "{host} {script}");
        }
        assert!(!command_listens("127.0.0.2", port) && !command_listens("8.8.8.8", port));
        assert!(!command_listens("127.0.0.1", own));
        drop(child);
        let is_over = || !command_listens("127.0.0.1", port);
        eventually("the command has ended", is_over).await;
    }
    // A server or plugin with the user's word for its port is none.
    let spec = bash(SERVES).stdout(Stdio::Pipe);
    let mut child = spawner()
        .spawn(spec.policy(Policy::system()))
        .await
        .unwrap();
    let port = port_of(&mut child).await;
    assert!(!command_listens("127.0.0.1", port));
}

/// A cloud's metadata service gives the machine's credentials to every client.
#[tokio::test]
async fn metadata_services_are_not_reached() {
    if !spawner().has_connects() {
        return println!("skipped: connections are not decided about by address");
    }
    let loopback = Loopback::new(Vec::new());
    for address in [
        "169.254.169.254/80",
        "169.254.170.2/80",
        "::ffff:169.254.169.254/80",
        "100.100.100.200/80",
        "fd00:ec2::254/80",
    ] {
        let way = format!("exec 3<>/dev/tcp/{address}");
        let output = output(bash(&way).policy(policy(&loopback))).await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("Permission denied"), "{address}: {said}");
    }
}

#[tokio::test]
async fn services_of_the_session_are_reached() {
    if !spawner().has_connects() {
        return println!("skipped: connections are not decided about by address");
    }
    let (session, other) = (Loopback::new(Vec::new()), Loopback::new(Vec::new()));
    let serves = bash(SERVES).policy(policy(&session)).stdout(Stdio::Pipe);
    let mut server = spawner().spawn(serves).await.unwrap();
    let port = port_of(&mut server).await.to_string();
    let asks = "exec 3<>/dev/tcp/127.0.0.1/$P && cat <&3";
    for (loopback, reached) in [(&session, true), (&other, false)] {
        let spec = bash(asks).var("P", &port).policy(policy(loopback));
        let output = output(spec).await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(said.contains("own"), reached, "{said}");
    }
    drop(server);
    // Another session's service at the same port.
    let taken = TcpListener::bind(format!("127.0.0.1:{}", &port));
    if taken.is_ok() {
        let spec = bash(asks).var("P", &port).policy(policy(&session));
        assert!(!output(spec).await.unwrap().exit.success());
    }
    // A server and its client in one command, and no listener at all.
    let both = format!(
        "coproc ( {SERVES} ); read -r P <&${{COPROC[0]}}; exec 3<>/dev/tcp/127.0.0.1/$P && cat <&3; kill %1; \
         exec 3<>/dev/tcp/127.0.0.1/1"
    );
    let output = output(bash(&both).policy(policy(&session))).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("own"), "{said}{errors}");
    assert!(errors.contains("refused"), "{errors}");
}

/// Listens at `$S` and answers, in the background.
const SERVES_UNIX: &str = "perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new(Local => $ENV{S}, Listen => 5) or die \"$!\"; \
    while ($c = $s->accept) { print $c \"own\\n\"; close $c }' & for i in $(seq 1000); do test -S $S && break; sleep 0.05; done; sleep 0.3; ";
/// Connects to `$S`, or `$T`.
const ASKS_UNIX: &str = "perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die \"$!\\n\"; print <$s>' ";

/// A command reaches the UNIX sockets of its own servers only, under any name.
#[tokio::test]
async fn unix_sockets_of_the_session_are_reached_and_no_others() {
    if !spawner().has_connects() {
        return println!("skipped: connections are not decided about by address");
    }
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    let at = |name: &str| dir.path().join(name);
    let outside = std::os::unix::net::UnixListener::bind(at("outside")).unwrap();
    outside.set_nonblocking(true).unwrap();
    std::fs::create_dir(at("own")).unwrap();
    let (session, other) = (Loopback::new(Vec::new()), Loopback::new(Vec::new()));
    let own = format!("{SERVES_UNIX}{ASKS_UNIX}$S");
    let others = [
        format!("{ASKS_UNIX}$T"),
        format!("ln -s $T l; {ASKS_UNIX}l"),
        format!("ln $T h && {ASKS_UNIX}h"),
        // Its own name is a link to another socket when it connects.
        format!("{SERVES_UNIX} rm $S; ln -s $T $S; {ASKS_UNIX}$S"),
        format!("{SERVES_UNIX} mv $S $S.old; ln $T $S; {ASKS_UNIX}$S"),
        // Data sent without a connection.
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_DGRAM, 0) or exit 1'".to_owned(),
        "perl -MSocket -e 'socketpair(S, T, AF_UNIX, SOCK_DGRAM, 0) or exit 1'".to_owned(),
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_SEQPACKET, 0) or exit 1'".to_owned(),
    ];
    let run = |script: &str, loopback: &Loopback| {
        let policy = policy(loopback).write(at("own")).read(dir.path());
        let spec = bash(script).cwd(at("own")).var("S", at("own/s"));
        output(spec.var("T", at("outside")).policy(policy))
    };
    let served = run(&own, &session).await.unwrap();
    let said = String::from_utf8_lossy(&served.stdout).into_owned();
    let why = String::from_utf8_lossy(&served.stderr).into_owned();
    assert!(said.contains("own"), "{said} {why}");
    for script in others {
        let _ = std::fs::remove_file(at("own/s"));
        let output = run(&script, &session).await.unwrap();
        assert!(!output.exit.success(), "{script}");
        assert!(outside.accept().is_err(), "{script}");
    }
    // Another session's socket.
    let _ = std::fs::remove_file(at("own/s"));
    let serves = format!("{SERVES_UNIX} sleep 20");
    let policy_of_server = policy(&session).write(at("own"));
    let spec = bash(&serves).cwd(at("own")).var("S", at("own/s"));
    let server = spawner()
        .spawn(spec.policy(policy_of_server))
        .await
        .unwrap();
    eventually("it listens", || at("own/s").exists()).await;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let asks = format!("{ASKS_UNIX}$S");
    for (loopback, reached) in [(&session, true), (&other, false)] {
        let output = run(&asks, loopback).await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(said.contains("own"), reached, "{said}");
    }
    drop(server);
}
