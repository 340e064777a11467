//! The hosts that plugins reach, through the whole program, under both runtimes.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use serde_json::{Value, json};

use crate::npm_auth::Services;
use crate::support::*;
use crate::user_grants::granting;

/// Tries ways to a server, and writes down each result.
const TRIES: &str = r#"
import fs from "node:fs"
import net from "node:net"
import http from "node:http"
import dgram from "node:dgram"
import dns from "node:dns"
import { spawnSync } from "node:child_process"
import { Worker as ThreadWorker } from "node:worker_threads"
const free = "http://127.0.0.1:FREE", shut = "http://127.0.0.1:SHUT", port = SHUT
const said = (answer) => answer.text().then((text) => answer.status + " " + text.slice(0, 400))
const get = (url, options = {}) => new Promise((resolve, reject) => {
  http.get(url, options, (answer) => { let text = ""; answer.on("data", (d) => (text += d)); answer.on("end", () => resolve(answer.statusCode + " " + text)) }).on("error", reject)
})
const raw = (options) => new Promise((resolve, reject) => {
  const socket = net.connect(options, () => { socket.end(); resolve("connected") })
  socket.on("error", reject)
})
const child = (command, env = {}) => {
  const { stdout, stderr } = spawnSync("bash", ["-c", command], { env: { ...process.env, ...env }, timeout: 20000 })
  return String(stdout) + String(stderr).slice(0, 200)
}
const straight = `exec 3<>/dev/tcp/127.0.0.1/${port} && echo connected`
const tries = {
  granted: () => fetch(free + "/x").then(said),
  grantedHttp: () => get(free + "/y"),
  grantedSocket: () => raw({ port: FREE, host: "127.0.0.1" }),
  fetch: () => fetch(shut).then(said),
  byName: () => fetch("http://localhost:SHUT").then(said),
  decimal: () => fetch("http://2130706433:SHUT").then(said),
  octal: () => fetch("http://0177.0.0.1:SHUT").then(said),
  six: () => fetch("http://[::ffff:127.0.0.1]:SHUT").then(said),
  metadata: () => fetch("http://169.254.169.254/latest/meta-data/").then(said),
  redirect: () => fetch(free + "/to-shut").then(said),
  http: () => get(shut),
  agent: () => get(shut, { agent: new http.Agent({ keepAlive: true }), createConnection: undefined }),
  socket: () => raw({ port, host: "127.0.0.1" }),
  udp: () => new Promise((resolve, reject) => {
    const socket = dgram.createSocket("udp4")
    socket.on("error", reject)
    socket.send("x", port, "127.0.0.1", (error) => (error ? reject(error) : resolve("sent")))
  }),
  grantedStraight: () => child(`exec 3<>/dev/tcp/127.0.0.1/FREE && echo connected`).trim(),
  elsewhere: () => child(`exec 3<>/dev/tcp/127.0.0.2/${new URL(process.env.HTTPS_PROXY).port} && echo connected`),
  child: () => child(straight),
  childOfChild: () => child(`bash -c 'bash -c "${straight.replaceAll(">", "\\>").replaceAll("&", "\\&")}"'; ${straight}`),
  daemon: () => child(`setsid -w bash -c '${straight}'`),
  noProxy: () => child(`curl -s -m 9 --noproxy '*' ${shut} || echo failed`, { NO_PROXY: "*" }),
  curl: () => child(`curl -s -m 9 ${shut}`),
  curlGranted: () => child(`curl -s -m 9 ${free}/z`),
  environment: async () => {
    process.env.NO_PROXY = process.env.no_proxy = "*"
    delete process.env.HTTP_PROXY
    delete process.env.http_proxy
    try { return await fetch(shut).then(said) } finally {
      process.env.NO_PROXY = process.env.no_proxy = ""
      process.env.http_proxy = process.env.HTTP_PROXY = process.env.HTTPS_PROXY
    }
  },
  unpatched: () => {
    const own = Object.getPrototypeOf(net.Socket.prototype)
    return raw({ port, host: "127.0.0.1", connect: own.connect })
  },
  tokens: () => {
    const own = process.env.HTTPS_PROXY
    const seen = new Set()
    for (const pid of fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
      for (const file of ["environ", "mem"].map((name) => `/proc/${pid}/${name}`)) {
        try {
          const text = file.endsWith("environ") ? fs.readFileSync(file, "latin1") : String(fs.openSync(file, "r"))
          for (const [found] of text.matchAll(/http:\/\/outrigger:[0-9a-f]+@[0-9.:]+/g)) if (found !== own) seen.add(found)
        } catch {}
      }
    }
    return [...seen].join(" ") || "none"
  },
  guessed: () => {
    const { host } = new URL(process.env.HTTPS_PROXY)
    return child(`curl -s -m 9 -x http://outrigger:00000000000000000000000000000000@${host} ${free}/q`)
  },
  // Another's port, taken at another address of this machine.
  squats: () => child(`python3 -c '
import socket, subprocess
s = socket.socket()
try:
    s.setsockopt(0, 51, ${port} << 16 | ${port})
except OSError as error:
    print(error)
try:
    s.bind(("127.0.0.2", 0))
except OSError as error:
    print(error)
s.listen()
' ; curl -s -m 9 ${shut}`),
  everywhere: async () => {
    const server = http.createServer((_, answer) => answer.end("own"))
    await new Promise((resolve, reject) => server.on("error", reject).listen(0, resolve))
    try { return server.address().address } finally { server.close() }
  },
  own: async () => {
    const server = http.createServer((_, answer) => answer.end("own"))
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))
    try { return await fetch(`http://127.0.0.1:${server.address().port}`).then(said) } finally { server.close() }
  },
}
if (globalThis.Bun) tries.otherProxy = () => fetch(free, { proxy: shut }).then(said)
const native = (port) => new Promise((resolve, reject) => {
  Bun.connect({ hostname: "127.0.0.1", port, socket: { open: () => resolve("connected"), data() {}, connectError: (_, error) => reject(error) } }).catch(reject)
})
if (globalThis.Bun) tries.native = () => native(port)
if (globalThis.Bun) tries.grantedNative = () => native(FREE)
const named = (port) => new Promise((resolve, reject) => {
  let text = ""
  Bun.connect({ hostname: "localhost", port, socket: {
    open: (socket) => void socket.write("GET /named HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"),
    data: (_, chunk) => void (text += chunk), close: () => resolve("closed " + text), error: (_, error) => reject(error),
  } }).catch(reject)
})
if (globalThis.Bun) tries.named = () => named(port)
if (globalThis.Bun) tries.grantedNamed = () => named(FREE)
// In Workers, which have modules of their own, the same ways are there.
const inWorker = (make) => new Promise((resolve, reject) => {
  const source = `import http from "node:http"
import { parentPort } from "node:worker_threads"
const say = (text) => (parentPort ?? globalThis).postMessage(text)
http.get("http://localhost:PORT/worker", (answer) => { let text = ""; answer.on("data", (part) => (text += part)).on("end", () => say(answer.statusCode + " " + text)) }).on("error", (error) => say("error " + error.message))`
  make(source, resolve, reject)
})
const thread = (to) => inWorker((source, resolve, reject) => {
  const file = process.env.HOME + "/worker-" + to + ".mjs"
  fs.writeFileSync(file, source.replace("PORT", to))
  new ThreadWorker(file).on("message", resolve).on("error", reject)
})
const web = (to) => inWorker((source, resolve, reject) => {
  const file = process.env.HOME + "/web-" + to + ".mjs"
  fs.writeFileSync(file, source.replace("PORT", to))
  const worker = new Worker(file)
  worker.onmessage = ({ data }) => resolve(data)
  worker.onerror = (error) => reject(new Error(error.message))
})
tries.thread = () => thread(port)
tries.grantedThread = () => thread(FREE)
if (globalThis.Bun) tries.webWorker = () => web(port)
if (globalThis.Bun) tries.grantedWebWorker = () => web(FREE)
tries.lookup = () => dns.promises.lookup("api.example.com").then(JSON.stringify)
export const Tries = async ({ directory }) => ({
  "chat.message": async () => {
    const out = {}
    for (const [name, attempt] of Object.entries(tries)) {
      try { out[name] = String(await Promise.race([attempt(), new Promise((_, no) => setTimeout(() => no(new Error("nothing came")), 15000).unref())])) }
      catch (error) { out[name] = `error ${error.code ?? error.cause?.code ?? ""} ${error.message} ${error.cause?.message ?? ""}` }
    }
    fs.writeFileSync(directory + "/NAME.json", JSON.stringify(out))
  },
})
"#;

/// Starts a server that answers each request with its path, or redirects to another port, and reports each
/// connection.
fn server(to: Option<u16>) -> (u16, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (came, comes) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let _ = came.send(());
            thread::spawn(move || answer(stream, to));
        }
    });
    (port, comes)
}

fn answer(mut stream: TcpStream, to: Option<u16>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n > 0) {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let text = match to {
        Some(port) if path == "/to-shut" => format!(
            "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:{port}/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        ),
        _ => format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\nserver {path}",
            path.len() + 7
        ),
    };
    let _ = stream.write_all(text.as_bytes());
}

fn runs(world: &World, runtime: &str, name: &str, configure: impl Fn(&mut Command)) -> Value {
    let mut run = world.command(&["run", "hi"]);
    run.env("OUTRIGGER_JS_RUNTIME", runtime)
        .env("OUTRIGGER_DEADLINES_NORMAL_MS", "120000")
        .env_remove("OUTRIGGER_NETWORK_ALLOW");
    configure(&mut run);
    world.start(run).end().ok();
    world.json(&format!("{name}.json"))
}

fn ways(runtime: &str) {
    let world = World::new([done()]);
    let (shut, came) = server(None);
    let (free, _free) = server(Some(shut));
    let source = TRIES
        .replace("FREE", &free.to_string())
        .replace("SHUT", &shut.to_string());
    let plugin = world.plugin("poor", &source.replace("NAME", "poor"));
    // Another plugin, whose token would grant access.
    let rich = world.plugin(
        "rich",
        "export const Rich = async () => ({ 'chat.params': async () => {} })",
    );
    granting(
        &world,
        &format!(
            "[plugins.\"{}\"]\nhosts = [\"*\", \"127.0.0.1:{free}\", \"localhost:{free}\"]\n[plugins.\"{}\"]\nhosts = [\"127.0.0.1\"]\n",
            plugin.display(),
            rich.display()
        ),
    );
    let saw = runs(&world, runtime, "poor", |_| {});
    if !outrigger_sandbox::Spawner::new().unwrap().has_connects() {
        return skip("connections cannot be decided about here");
    }
    for (name, want) in [
        ("granted", "200 server /x"),
        ("grantedHttp", "200 server /y"),
        ("grantedSocket", "connected"),
        ("curlGranted", "server /z"),
        ("own", "200 own"),
        ("everywhere", "::ffff:127.0.0.1"),
        ("tokens", "none"),
    ] {
        assert_eq!(saw[name], want, "{name}: {saw:#}");
    }
    // Direct connections are redirected to the proxy, and refused if the proxy says so, whatever the port.
    assert_eq!(saw["grantedStraight"], "connected", "{saw:#}");
    for name in ["child", "elsewhere"] {
        let said = saw[name].as_str().unwrap();
        assert!(said.contains("Permission denied"), "{name}: {saw:#}");
    }
    if runtime == "bun" {
        assert_eq!(saw["grantedNative"], "connected", "{saw:#}");
        // By name: the proxy looks it up, and reports the reason if it does not.
        let said = saw["grantedNamed"].as_str().unwrap();
        assert!(said.ends_with("server /named"), "{saw:#}");
        let said = saw["named"].as_str().unwrap();
        assert!(said.contains("may not connect to"), "{saw:#}");
    }
    let workers = match runtime {
        "bun" => &[
            ("grantedThread", "thread"),
            ("grantedWebWorker", "webWorker"),
        ][..],
        _ => &[("grantedThread", "thread")],
    };
    for (granted, refused) in workers {
        assert_eq!(saw[granted], "200 server /worker", "{saw:#}");
        let said = saw[refused].as_str().unwrap();
        assert!(said.contains("may not connect to"), "{refused}: {saw:#}");
    }
    let said = saw["lookup"].as_str().unwrap();
    assert!(said.contains("names are not looked up here"), "{saw:#}");
    // The proxy's answer contains the reason.
    let asked = [
        "fetch", "byName", "decimal", "octal", "six", "metadata", "redirect", "http", "agent",
        "socket", "curl", "guessed",
    ];
    for name in asked {
        let said = saw[name].as_str().unwrap();
        let words = ["may not connect to", "network.private", "network.no_pass"];
        assert!(words.iter().any(|it| said.contains(it)), "{name}: {saw:#}");
    }
    for (name, said) in saw.as_object().unwrap() {
        let said = said.as_str().unwrap();
        let granted = ["granted", "curlGranted", "own"]
            .iter()
            .any(|it| name.starts_with(it));
        let reached = ["connected", "sent", "server /"]
            .iter()
            .any(|it| said.contains(it));
        assert!(granted || !reached, "{name}: {saw:#}");
    }
    assert!(came.try_recv().is_err(), "somebody got through: {saw:#}");
    let listed = |policy: &str| {
        let args = [
            "audit", "list", "--kind", "network", "--plugin", "poor", "--policy", policy,
        ];
        world.cli(&args).ok().stdout
    };
    let (refused, passed) = (listed("refused"), listed("passed"));
    assert!(refused.contains(&format!("127.0.0.1:{shut}")), "{refused}");
    assert!(refused.contains("169.254.169.254:80"), "{refused}");
    assert!(refused.contains("127.0.0.2:"), "{refused}");
    // Once per host, however many connections were made.
    assert_eq!(
        passed.matches(&format!("127.0.0.1:{free}")).count(),
        1,
        "{passed}"
    );
    world.verify();
}

#[test]
fn ways_to_a_host_that_was_not_granted_under_bun() {
    if bun_or_skip().is_some() {
        ways("bun");
    }
}

#[test]
fn ways_to_a_host_that_was_not_granted_under_node() {
    ways("node");
}

/// Fetches over TLS through the whole path: our proxy, and the one that leads out of this machine.
const SECURE: &str = r#"
import fs from "node:fs"
import https from "node:https"
const url = "https://api.github.com/repos/openai/codex/releases/latest"
const get = (url) => new Promise((resolve, reject) => https.get(url, (answer) => {
  let text = ""; answer.on("data", (d) => (text += d)); answer.on("end", () => resolve(text))
}).on("error", reject))
export const Secure = async ({ directory }) => ({
  "chat.message": async () => {
    const out = {}
    for (const [name, attempt] of Object.entries({
      fetch: () => fetch(url).then((answer) => answer.text()),
      https: () => get(url),
      other: () => fetch("https://chatgpt.com/x").then((answer) => answer.text()),
      otherHttps: () => get("https://chatgpt.com/x"),
    })) {
      try { out[name] = await attempt() } catch (error) { out[name] = `${error.message} ${error.cause?.message ?? ""}` }
    }
    fs.writeFileSync(directory + "/secure.json", JSON.stringify(out))
  },
})
"#;

fn secure(runtime: &str) {
    let world = World::new([done()]);
    let Some(services) = Services::start(&world) else {
        return;
    };
    let plugin = world.plugin("secure", SECURE);
    granting(
        &world,
        &format!(
            "[plugins.\"{}\"]\nhosts = [\"*.github.com:443\"]\n",
            plugin.display()
        ),
    );
    let saw = runs(&world, runtime, "secure", |run| {
        for (name, value) in services.command(&world, &[]).get_envs() {
            if let Some(value) = value {
                run.env(name, value);
            }
        }
        run.env_remove("OUTRIGGER_NETWORK_ALLOW");
    });
    for name in ["fetch", "https"] {
        assert_eq!(saw[name], json!(r#"{"tag_name":"rust-v1"}"#), "{saw:#}");
    }
    for name in ["other", "otherHttps"] {
        let said = saw[name].as_str().unwrap();
        let want = "plugin secure may not connect to chatgpt.com:443; in your own outrigger.toml, [plugins.";
        assert!(said.contains(want), "{saw:#}");
        assert!(
            said.contains("hosts = [\"*.github.com:443\", \"chatgpt.com:443\"] grants it"),
            "{saw:#}"
        );
    }
}

#[test]
fn tls_goes_through_the_proxy_under_bun() {
    secure("bun");
}

#[test]
fn tls_goes_through_the_proxy_under_node() {
    secure("node");
}
