use super::*;
use crate::hosts::Hosts;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Starts a server that returns what it received up to the end of a head.
async fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut got = Vec::new();
                while !got.ends_with(b"\r\n\r\n") && stream.read_buf(&mut got).await.unwrap() > 0 {}
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", got.len());
                stream.write_all(head.as_bytes()).await.unwrap();
                stream.write_all(&got).await.unwrap();
            });
        }
    });
    port
}

/// No listener, and no connection.
struct NoSockets;

impl ProcessSockets for NoSockets {
    fn listens(&self, _: u32, _: IpAddr, _: u16) -> bool {
        false
    }

    fn connects(&self, _: &[u32], _: u16, _: u16) -> Option<usize> {
        None
    }
}

/// Every connection belongs to the first process.
struct FirstConnects;

impl ProcessSockets for FirstConnects {
    fn listens(&self, _: u32, _: IpAddr, _: u16) -> bool {
        false
    }

    fn connects(&self, pids: &[u32], _: u16, _: u16) -> Option<usize> {
        (pids.first() == Some(&1)).then_some(0)
    }
}

async fn start(upstream: Option<Upstream>) -> io::Result<Proxy> {
    Proxy::start(upstream, NoSockets).await
}

type Seen = Arc<Mutex<Vec<Connection>>>;

fn client(name: &str, asked: Option<&[&str]>, granted: &[String], seen: &Seen) -> Client {
    let seen = Arc::clone(seen);
    Client {
        name: name.to_owned(),
        reach: Reach {
            asked: asked.map(|list| Hosts::parse(list).unwrap()),
            granted: Hosts::parse(granted).unwrap(),
            forbidden: Hosts::default(),
        },
        hint: "hosts = [\"HOST\"] grants it".to_owned(),
        on_connect: Arc::new(move |it| lock(&seen).push(it.clone())),
    }
}

/// Sends a text to the proxy and returns the answer. `LOGIN` is the line of a token.
async fn ask(proxy: &Proxy, token: &str, text: &str) -> String {
    let login = STANDARD.encode(format!("outrigger:{token}"));
    let text = text.replace("LOGIN", &format!("Proxy-Authorization: Basic {login}"));
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port()))
        .await
        .unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    let _ = tokio::time::timeout(Duration::from_secs(60), read)
        .await
        .unwrap();
    answer
}

fn first(answer: &str) -> &str {
    answer.lines().next().unwrap_or_default()
}

#[tokio::test]
async fn a_granted_host_is_reached_in_both_ways() {
    let (port, seen) = (echo().await, Seen::default());
    let proxy = start(None).await.unwrap();
    let granted = [format!("127.0.0.1:{port}")];
    let pass = proxy.admit(client("acme", None, &granted, &seen)).unwrap();
    let plain = ask(
        &proxy,
        &pass.token,
        &format!("GET http://127.0.0.1:{port}/x HTTP/1.1\r\nHost: other\r\nLOGIN\r\nA: b\r\n\r\n"),
    )
    .await;
    assert!(
        plain.ends_with(&format!(
            "GET /x HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\na: b\r\nconnection: close\r\n\r\n"
        )),
        "{plain}"
    );
    let tunnel =
        format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nLOGIN\r\n\r\nGET /inside HTTP/1.1\r\n\r\n");
    let tunnel = ask(&proxy, &pass.token, &tunnel).await;
    assert!(
        tunnel.starts_with("HTTP/1.1 200 Connected\r\n\r\nHTTP/1.1 200 OK")
            && tunnel.ends_with("GET /inside HTTP/1.1\r\n\r\n"),
        "{tunnel}"
    );
    // Reported once for the host, whatever the number of connections.
    let seen = lock(&seen);
    assert_eq!((seen.len(), seen[0].refused, seen[0].port), (1, None, port));
    assert!(pass.bytes().0 > 0 && pass.bytes().1 > 0);
}

/// Ways to a server of this machine that nobody was granted. It exists, and cannot be reached.
#[tokio::test]
async fn nothing_of_this_machine_is_reached_without_a_grant() {
    let (port, seen) = (echo().await, Seen::default());
    let proxy = start(None).await.unwrap();
    let pass = proxy
        .admit(client(
            "acme",
            None,
            &["*".to_owned(), "localhost:1".to_owned()],
            &seen,
        ))
        .unwrap();
    let odd = [
        "127.0.0.1",
        "localhost",
        "LOCALHOST.",
        "127.1",
        "2130706433",
        "017700000001",
        "0x7f000001",
        "0x7f.0.0.1",
        "127.255.255.254",
        "0.0.0.0",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "[fe80::1]",
        "10.0.0.1",
        "100.64.0.1",
    ];
    for host in odd {
        for text in [
            format!("CONNECT {host}:{port} HTTP/1.1\r\nLOGIN\r\n\r\n"),
            format!("GET http://{host}:{port}/ HTTP/1.1\r\nLOGIN\r\n\r\n"),
        ] {
            let answer = ask(&proxy, &pass.token, &text).await;
            // A system that does not parse `0x7f.1` reports that there is no such name.
            let status = answer.split(' ').nth(1).unwrap_or_default();
            assert!(["403", "502"].contains(&status), "{host}: {answer}");
            assert!(
                answer.contains("network.private") || answer.contains("network.unknown_host"),
                "{host}: {answer}"
            );
        }
    }
    let never = format!(
        "CONNECT 127.0.0.1:{} HTTP/1.1\r\nLOGIN\r\n\r\n",
        proxy.port()
    );
    assert!(first(&ask(&proxy, &pass.token, &never).await).starts_with("HTTP/1.1 403"));
    let seen = lock(&seen);
    assert!(seen.iter().all(|it| it.refused.is_some()));
    assert!(
        seen.len() >= MAX_REPORTS as usize / 2 && seen.len() <= MAX_REPORTS as usize,
        "{}",
        seen.len()
    );
}

#[tokio::test]
async fn the_answer_says_who_what_and_what_to_do() {
    let seen = Seen::default();
    let proxy = start(None).await.unwrap();
    let names = ["a.invalid".to_owned()];
    let pass = proxy
        .admit(client(
            "acme",
            Some(&["a.invalid", "10.1.1.1"]),
            &names,
            &seen,
        ))
        .unwrap();
    let mut shown = String::new();
    for target in ["10.1.1.1:80", "a.invalid:443", "a@b:80"] {
        let text = format!("CONNECT {target} HTTP/1.1\r\nLOGIN\r\n\r\n");
        let answer = ask(&proxy, &pass.token, &text).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        shown += &format!("{}\n{body}", first(head));
    }
    let names = proxy
        .admit(client("names", Some(&["a.invalid"]), &names, &seen))
        .unwrap();
    let text = "CONNECT b.invalid:443 HTTP/1.1\r\nLOGIN\r\n\r\n";
    assert_eq!(
        first(&ask(&proxy, &names.token, text).await),
        "HTTP/1.1 403 names may not connect to b.invalid:443: its manifest does not ask for it; \
         `permissions.network.hosts` in its outrigger.plugin.toml asks for hosts"
    );
    // A hint appears only for what could be granted.
    let want = "\
HTTP/1.1 403 acme may not connect to 10.1.1.1:80: it is not an address of the public internet; hosts = [\"10.1.1.1:80\"] grants it
{\"error\":{\"code\":\"network.private\",\"client\":\"acme\",\"host\":\"10.1.1.1\",\"message\":\"acme may not connect to 10.1.1.1:80: it is not an address of the public internet\",\"hint\":\"hosts = [\\\"10.1.1.1:80\\\"] grants it\"}}
HTTP/1.1 502 a.invalid:443 cannot be found
{\"error\":{\"code\":\"network.unknown_host\",\"client\":\"acme\",\"host\":\"a.invalid\",\"message\":\"a.invalid:443 cannot be found\"}}
HTTP/1.1 400 acme may not connect to \"a@b:80\": that is not a host
{\"error\":{\"code\":\"network.no_host\",\"client\":\"acme\",\"host\":\"a@b:80\",\"message\":\"acme may not connect to \\\"a@b:80\\\": that is not a host\"}}
";
    assert_eq!(shown, want);
}

#[tokio::test]
async fn a_token_is_its_clients_and_ends_with_it() {
    let (port, seen) = (echo().await, Seen::default());
    let proxy = start(None).await.unwrap();
    let granted = [format!("127.0.0.1:{port}")];
    let rich = proxy.admit(client("rich", None, &granted, &seen)).unwrap();
    let poor = proxy.admit(client("poor", None, &[], &seen)).unwrap();
    let text = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nLOGIN\r\n\r\nx\r\n\r\n");
    assert!(
        ask(&proxy, &rich.token, &text)
            .await
            .starts_with("HTTP/1.1 200")
    );
    assert!(
        ask(&proxy, &poor.token, &text)
            .await
            .starts_with("HTTP/1.1 403 poor may not")
    );
    for token in [
        "",
        "00000000000000000000000000000000",
        "rich",
        &rich.token[1..],
    ] {
        let answer = ask(&proxy, token, &text).await;
        assert!(answer.starts_with("HTTP/1.1 407"), "{token}: {answer}");
    }
    assert!(
        ask(&proxy, "", "CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n")
            .await
            .starts_with("HTTP/1.1 407")
    );
    let token = rich.token.clone();
    drop(rich);
    assert!(ask(&proxy, &token, &text).await.starts_with("HTTP/1.1 407"));
    assert!(
        poor.variables()
            .iter()
            .all(|(_, value)| value.is_empty() || value.contains(&poor.token))
    );
    assert!(!format!("{poor:?}").contains(&poor.token));
}

#[tokio::test]
async fn refusals_are_reported_up_to_a_limit_and_then_counted() {
    let seen = Seen::default();
    let proxy = start(None).await.unwrap();
    let pass = proxy.admit(client("acme", None, &[], &seen)).unwrap();
    for number in 0..MAX_REPORTS + 5 {
        let text = format!("CONNECT h{number}.invalid:1 HTTP/1.1\r\nLOGIN\r\n\r\n");
        assert!(
            ask(&proxy, &pass.token, &text)
                .await
                .starts_with("HTTP/1.1 403")
        );
    }
    assert_eq!(lock(&seen).len(), MAX_REPORTS as usize);
    assert_eq!(lock(&pass.known.refusals).rest(), 5);
}

/// A machine with an upstream proxy: that proxy resolves names that the machine does not know, and the rules still
/// apply.
#[tokio::test]
async fn another_proxy_is_gone_through() {
    let (port, seen) = (echo().await, Seen::default());
    // Accepts any tunnel, and connects each to the same server.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let env = [(
        "HTTPS_PROXY",
        format!("http://me:pw@{}", listener.local_addr().unwrap()),
    )]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") && stream.read_buf(&mut head).await.unwrap() > 0 {}
            lock(&log).push(String::from_utf8(head).unwrap());
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            let mut there = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut stream, &mut there).await;
        }
    });
    let proxy = start(Upstream::of(&env)).await.unwrap();
    let granted = ["*.invalid".to_owned()];
    let pass = proxy.admit(client("acme", None, &granted, &seen)).unwrap();
    let text = "CONNECT a.invalid:443 HTTP/1.1\r\nLOGIN\r\n\r\nGET / HTTP/1.1\r\n\r\n";
    let answer = ask(&proxy, &pass.token, text).await;
    assert!(answer.ends_with("GET / HTTP/1.1\r\n\r\n"), "{answer}");
    for (host, status) in [
        ("evil.test", 403),
        ("127.0.0.1", 403),
        ("2130706433.invalid", 200),
        ("0x7f.1", 403),
    ] {
        let text = format!("CONNECT {host}:443 HTTP/1.1\r\nLOGIN\r\n\r\nx\r\n\r\n");
        let answer = ask(&proxy, &pass.token, &text).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{host}: {answer}"
        );
    }
    let asked = lock(&asked);
    assert_eq!(asked.len(), 2);
    assert!(asked[0].starts_with("CONNECT a.invalid:443 ") && asked[0].contains("Basic bWU6cHc="));
}

/// Silent connections are limited in number, whatever the client, and affect no other connection.
#[tokio::test(flavor = "multi_thread")]
async fn connections_without_a_head_cost_nobody_else() {
    let (port, seen) = (echo().await, Seen::default());
    let proxy = start(None).await.unwrap();
    let granted = [format!("127.0.0.1:{port}")];
    let pass = proxy.admit(client("acme", None, &granted, &seen)).unwrap();
    let mut silent = Vec::new();
    for _ in 0..4 * pending::MAX_PENDING {
        silent.push(
            TcpStream::connect(("127.0.0.1", proxy.port()))
                .await
                .unwrap(),
        );
    }
    let text = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nLOGIN\r\n\r\nx\r\n\r\n");
    let answer = ask(&proxy, &pass.token, &text).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // All beyond the limit were closed.
    let mut closed = 0;
    for stream in &mut silent {
        let read = stream.read_u8();
        let ended = tokio::time::timeout(Duration::from_millis(20), read).await;
        closed += usize::from(ended.is_ok());
    }
    assert!(closed >= 3 * pending::MAX_PENDING, "{closed}");
}

#[tokio::test]
async fn a_slow_head_is_not_waited_for() {
    let seen = Seen::default();
    let proxy = Proxy::start_with(None, Arc::new(NoSockets), Duration::from_millis(300))
        .await
        .unwrap();
    let pass = proxy.admit(client("acme", None, &[], &seen)).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port()))
        .await
        .unwrap();
    let read = async {
        // An occasional line does not help.
        stream
            .write_all(b"CONNECT h.invalid:1 HTTP/1.1\r\n")
            .await
            .unwrap();
        for _ in 0..100 {
            if stream.write_all(b"a: b\r\n").await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the connection is still open");
    };
    tokio::time::timeout(Duration::from_secs(60), read)
        .await
        .unwrap();
    let text = "CONNECT h.invalid:1 HTTP/1.1\r\nLOGIN\r\n\r\n";
    let answer = ask(&proxy, &pass.token, text).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

/// A client that opens a connection and sends nothing is identified by its source port.
#[tokio::test(flavor = "multi_thread")]
async fn the_one_that_says_nothing_is_named() {
    let seen = Seen::default();
    let sockets = Arc::new(FirstConnects);
    let proxy = Proxy::start_with(None, sockets, Duration::from_millis(300))
        .await
        .unwrap();
    let ticket = proxy.admit(client("acme", None, &[], &seen)).unwrap();
    ticket.belongs_to(1);
    let _silent = TcpStream::connect(("127.0.0.1", proxy.port()))
        .await
        .unwrap();
    let reported = async {
        while lock(&seen).is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reported)
        .await
        .unwrap();
    let first = lock(&seen).first().cloned().unwrap();
    assert_eq!(
        (first.client.as_str(), first.refused),
        ("acme", Some(Refusal::TooMany))
    );
}

#[tokio::test]
async fn one_client_has_so_many_connections_and_no_more() {
    let seen = Seen::default();
    // Accepts connections and sends nothing.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let proxy = start(None).await.unwrap();
    let granted = [format!("127.0.0.1:{port}")];
    let pass = proxy.admit(client("acme", None, &granted, &seen)).unwrap();
    let login = STANDARD.encode(format!("outrigger:{}", pass.token));
    let text =
        format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nProxy-Authorization: Basic {login}\r\n\r\n");
    let mut open = Vec::new();
    let status = loop {
        let mut stream = TcpStream::connect(("127.0.0.1", proxy.port()))
            .await
            .unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut head = vec![0; 12];
        stream.read_exact(&mut head).await.unwrap();
        if !head.ends_with(b"200") {
            break String::from_utf8(head).unwrap();
        }
        open.push((stream, listener.accept().await.unwrap()));
        assert!(open.len() <= MAX_PER_CLIENT);
    };
    assert_eq!(status, "HTTP/1.1 429");
    assert!(open.len() >= 8, "{}", open.len());
    assert_eq!(lock(&seen).last().unwrap().refused, Some(Refusal::TooMany));
    // Others have separate limits.
    let other = proxy.admit(client("other", None, &granted, &seen)).unwrap();
    let text = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nLOGIN\r\n\r\n");
    let take = async { drop(listener.accept().await.unwrap()) };
    let (answer, ()) = tokio::join!(ask(&proxy, &other.token, &text), take);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// An upstream proxy gets plain requests as such, and no byte after their end, which it would take for another
/// request.
#[tokio::test]
async fn plain_requests_go_through_another_proxy_as_such() {
    let seen = Seen::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let env = [(
        "HTTPS_PROXY",
        format!("http://me:pw@{}", listener.local_addr().unwrap()),
    )]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let other = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut got = Vec::new();
        while !got.ends_with(b"body") {
            assert!(stream.read_buf(&mut got).await.unwrap() > 0);
        }
        // More would have arrived by now.
        let more = tokio::time::timeout(Duration::from_millis(300), stream.read_buf(&mut got));
        assert!(more.await.is_err(), "{}", String::from_utf8_lossy(&got));
        let answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nfine";
        stream.write_all(answer).await.unwrap();
        String::from_utf8(got).unwrap()
    });
    let proxy = start(Upstream::of(&env)).await.unwrap();
    let granted = ["*.invalid".to_owned()];
    let pass = proxy.admit(client("acme", None, &granted, &seen)).unwrap();
    let text = "POST http://a.invalid/x HTTP/1.1\r\nLOGIN\r\nContent-Length: 4\r\n\r\nbody\
        GET http://evil.test/ HTTP/1.1\r\n\r\n";
    let answer = ask(&proxy, &pass.token, text).await;
    assert!(answer.ends_with("fine"), "{answer}");
    assert_eq!(
        other.await.unwrap(),
        "POST http://a.invalid/x HTTP/1.1\r\nproxy-authorization: Basic bWU6cHc=\r\nhost: a.invalid\r\n\
        content-length: 4\r\nconnection: close\r\n\r\nbody"
    );
}
