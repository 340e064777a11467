//! What a Chromium that we start connects to, and who reaches it.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use outrigger_browser::provider::{Provider as _, Step};
use outrigger_browser::{Chromium, Source};
use outrigger_protocol::audit::AuditKind;
use outrigger_sandbox::Spawner;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::{Opened, WAIT, bench, opened, owner, site};

/// The first lines of what came to a port.
type Arrived = Arc<Mutex<Vec<String>>>;

/// Opens a port of this machine that no rule names.
async fn closed(address: &str) -> (u16, Arrived) {
    let listener = TcpListener::bind((address, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let arrived = Arrived::default();
    let seen = Arc::clone(&arrived);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let seen = Arc::clone(&seen);
            seen.lock().unwrap().push("a connection".to_owned());
            tokio::spawn(async move {
                let mut start = vec![0; 1_000];
                let count = stream.read(&mut start).await.unwrap_or_default();
                let start = String::from_utf8_lossy(&start[..count]);
                let line = start.lines().next().unwrap_or_default().to_owned();
                seen.lock().unwrap().push(line);
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    .await;
            });
        }
    });
    (port, arrived)
}

/// All the ways in which a page connects, each with a path of its own. Its title lists those that have ended.
fn ways(tcp: u16, udp: u16) -> String {
    format!(
        r#"<title></title><img src="http://127.0.0.1:{tcp}/img" onerror="over('image')"><img src="/away" onerror="over('redirect')">
        <script type="speculationrules">{{ "prefetch": [{{ "urls": ["http://127.0.0.1:{tcp}/prefetched", "/speculative"], "eagerness": "immediate" }}],
          "prerender": [{{ "urls": ["/rendered"], "eagerness": "immediate" }}] }}</script>
        <script>
        const to = 'http://127.0.0.1:{tcp}/', over = (what) => document.title += what + ' '
        onmessage = (event) => over(event.data)
        fetch(to + 'fetch', {{ mode: 'no-cors' }}).catch(() => over('fetch'))
        navigator.sendBeacon(to + 'beacon', 'x')
        const socket = new WebSocket('ws://127.0.0.1:{tcp}/socket'); socket.onerror = () => over('socket')
        const events = new EventSource(to + 'events'); events.onerror = () => {{ events.close(); over('events') }}
        const code = `const go = (port, path) => fetch('${{to}}' + path, {{ mode: 'no-cors' }}).finally(() => port.postMessage('over'));
          if (self.onconnect === undefined) go(self, 'worker'); else self.onconnect = (event) => go(event.ports[0], 'shared')`
        const blob = URL.createObjectURL(new Blob([code], {{ type: 'text/javascript' }}))
        new Worker(blob).onmessage = (event) => over('worker-' + event.data)
        new SharedWorker(blob).port.onmessage = (event) => over('shared-' + event.data)
        navigator.serviceWorker.register('/sw.js').then(() => over('service'), () => over('service'))
        for (const rel of ['dns-prefetch', 'preconnect', 'prefetch']) document.head.append(Object.assign(document.createElement('link'), {{ rel, href: to + rel }}))
        const inner = `<script>
          const over = (what) => parent.postMessage(what, '*'); let open = 2; const one = () => --open || over('framed')
          fetch('${{to}}frame-fetch', {{ mode: 'no-cors' }}).then(one, one)
          new WebSocket('ws://127.0.0.1:{tcp}/frame-socket').onerror = one<\/script>`
        const frame = document.createElement('iframe'); frame.sandbox = 'allow-scripts'; frame.srcdoc = inner
        document.documentElement.append(frame)
        const peer = new RTCPeerConnection({{ iceServers: [{{ urls: 'stun:127.0.0.1:{udp}' }}, {{ urls: ['turn:127.0.0.1:{tcp}?transport=tcp', 'turn:127.0.0.1:{udp}?transport=udp'], username: 'a', credential: 'b' }}] }})
        peer.createDataChannel('x'); peer.createOffer().then((it) => peer.setLocalDescription(it))
        peer.onicegatheringstatechange = () => peer.iceGatheringState === 'complete' && over('peer')
        new WebTransport('https://127.0.0.1:{udp}/').ready.catch(() => over('transport'))
        </script>"#
    )
}

/// The process whose profile is in this folder, and those that it started.
fn processes(folder: &Path) -> Vec<PathBuf> {
    let own = folder.display().to_string();
    let mut all = Vec::new();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        // After the name, which may hold anything: state and parent.
        let parent = stat
            .rsplit_once(") ")
            .and_then(|(_, it)| it.split(' ').nth(1));
        let Some(parent) = parent else { continue };
        all.push((process.path(), Path::new("/proc").join(parent)));
    }
    let is_own = |it: &Path| {
        let line = std::fs::read(it.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&own)
    };
    let mut found: Vec<PathBuf> = all
        .iter()
        .map(|it| it.0.clone())
        .filter(|it| is_own(it))
        .collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).cloned() {
        let of_it: Vec<PathBuf> = all
            .iter()
            .filter(|it| it.1 == parent && !found.contains(&it.0))
            .map(|it| it.0.clone())
            .collect();
        found.extend(of_it);
        next += 1;
    }
    found
}

/// Sockets of the browser whose profile is in this folder, by the kernel's table: state, own port, the other's port.
fn sockets(folder: &Path) -> Vec<(String, u16, u16)> {
    let mut inodes = Vec::new();
    for process in processes(folder) {
        // One that ends meanwhile has none.
        let open = std::fs::read_dir(process.join("fd")).into_iter().flatten();
        let links = open
            .flatten()
            .filter_map(|it| std::fs::read_link(it.path()).ok());
        inodes.extend(links.map(|it| it.display().to_string()));
    }
    let mut found = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        for line in std::fs::read_to_string(table)
            .unwrap_or_default()
            .lines()
            .skip(1)
        {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let port =
                |text: &str| u16::from_str_radix(text.rsplit(':').next().unwrap(), 16).unwrap();
            if inodes.contains(&format!("socket:[{}]", fields[9])) {
                found.push((fields[3].to_owned(), port(fields[1]), port(fields[2])));
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_page_goes_round_the_proxy() {
    let (tcp, arrived) = closed("127.0.0.1").await;
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let worker = format!(
        "self.addEventListener('install', (event) => event.waitUntil(fetch('http://127.0.0.1:{tcp}/service', {{ mode: 'no-cors' }}).catch(() => 0)))"
    );
    let at = site(vec![
        ("/", ways(tcp, udp.local_addr().unwrap().port())),
        ("/sw.js", worker),
        (
            "/away",
            format!("redirect http://127.0.0.1:{tcp}/redirected"),
        ),
        (
            "/speculative",
            format!("redirect http://127.0.0.1:{tcp}/speculative"),
        ),
        (
            "/rendered",
            format!("<img src='http://127.0.0.1:{tcp}/rendered'>"),
        ),
    ])
    .await;
    let Some(it) = bench(&at).await else { return };
    let tab = it.browser.open(&owner("s"), Some(&at), WAIT).await.unwrap();
    let over = [
        "image",
        "redirect",
        "fetch",
        "socket",
        "events",
        "worker-over",
        "shared-over",
        "service",
        "framed",
        "peer",
        "transport",
    ];
    let (mut title, mut open) = (String::new(), BTreeSet::new());
    for _ in 0..600 {
        open.extend(sockets(it.folder.path()));
        title = it.browser.look(&tab).await.unwrap().title;
        if over.iter().all(|way| title.contains(way)) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(
        over.iter().all(|way| title.contains(way)),
        "{title}; arrived: {arrived:?}"
    );
    assert_eq!(*arrived.lock().unwrap(), Vec::<String>::new());
    let mut datagram = [0; 2_000];
    assert!(udp.recv(&mut datagram).is_err(), "a datagram came");
    // Nobody can connect to the browser itself, and what it has open leads to one port: the proxy's.
    open.extend(sockets(it.folder.path()));
    assert!(open.iter().all(|(state, ..)| state != "0A"), "{open:?}");
    let to: BTreeSet<u16> = open.iter().map(|(.., to)| *to).collect();
    assert!(to.len() <= 1 && !to.contains(&tcp), "{open:?}");
    // What only the proxy saw is in the audit.
    let subject = format!("127.0.0.1:{tcp}");
    let audit = it.audit.lock().unwrap().clone();
    let refused = audit
        .iter()
        .find(|it| it.kind == AuditKind::Network && it.subject.as_deref() == Some(subject.as_str()))
        .unwrap_or_else(|| panic!("{audit:?}"));
    assert_eq!(
        (
            refused.decision.as_str(),
            refused.policy_check_result.as_str()
        ),
        ("deny", "refused: network.private")
    );
    it.browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_name_leads_is_looked_at_when_it_is_connected_to() {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .unwrap()
        .trim()
        .to_ascii_lowercase();
    if !outrigger_net::leads_to_local(&name).await {
        return outrigger_test_support::skip::skip("this machine's name does not lead to it");
    }
    let (port, arrived) = closed("0.0.0.0").await;
    let page = format!(
        "<title>start</title><button onclick=\"fetch('http://{name}:{port}/', {{ mode: 'no-cors' }}).then(() => document.title = 'reached', () => document.title = 'refused')\">Go</button>"
    );
    let Some(it) = opened(vec![("/", page)]).await else {
        return;
    };
    // A rule allows this port of this machine, by its address. The name led to the internet a moment ago.
    let rule = url::Url::parse(&format!("http://127.0.0.1:{port}/")).unwrap();
    it.bench.sites.allow(&rule);
    it.bench.sites.found(&name, false);
    it.click("Go").await.unwrap();
    it.loads("refused").await;
    assert_eq!(*arrived.lock().unwrap(), Vec::<String>::new());
    let grant = it.browser.acquire(&it.tab, &owner("s")).unwrap();
    let there = Step::navigate(&format!("http://{name}:{port}/"), WAIT);
    let error = it.browser.act(&grant, &there).await.unwrap_err();
    assert!(
        error.to_string().contains("the name leads to 127.0.0.1"),
        "{error}"
    );
    it.browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_that_are_no_sites_are_blocked_by_the_browser_itself() {
    let Some(it) = opened(vec![("/", "<title>here</title>".to_owned())]).await else {
        return;
    };
    for address in ["file:///etc/hostname", "view-source:file:///etc/hostname"] {
        let said = refused(&it, address).await;
        assert!(
            said.contains("ERR_BLOCKED_BY_ADMINISTRATOR"),
            "{address}: {said}"
        );
    }
    it.browser.close().await;
}

/// Why an address is not shown, where nobody but the browser is asked.
async fn refused(it: &Opened, address: &str) -> String {
    let grant = it.browser.acquire(&it.tab, &owner("s")).unwrap();
    let step = Step::navigate(address, WAIT);
    match it.browser.act(&grant, &step).await {
        Err(error) => error.to_string(),
        Ok(done) => panic!("{address}: {done:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_would_open_it_to_others_are_refused_by_name() {
    let Some(program) = outrigger_browser::find() else {
        return outrigger_test_support::skip::skip("there is no Chromium");
    };
    for argument in [
        "--remote-debugging-port=9222",
        "--proxy-server=http://127.0.0.1:1",
        "--proxy-bypass-list=*",
        "--no-proxy-server",
        "--host-resolver-rules=MAP * 127.0.0.1",
        "--load-extension=/tmp/x",
        "--user-data-dir=/tmp/x",
        "--disable-web-security",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let source = Source::Start {
            program: program.clone(),
            headless: true,
            arguments: vec![argument.to_owned()],
        };
        let record: outrigger_browser::RecordFn = Arc::new(|_| ());
        let spawner = Spawner::new().unwrap();
        let started =
            Chromium::start(&source, folder.path(), &spawner, Arc::default(), record).await;
        let error = started.err().unwrap_or_else(|| panic!("{argument}"));
        assert_eq!(error.code(), "browser.start");
        assert!(
            error
                .to_string()
                .contains(&format!("`browser.arguments` has {argument}")),
            "{error}"
        );
    }
}
