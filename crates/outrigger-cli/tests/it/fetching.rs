//! Progress output during downloads from npm, with a slow registry on loopback.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::support::*;

/// A package in a registry.
struct Package {
    name: &'static str,
    /// Each version with its tarball.
    versions: Vec<(&'static str, Vec<u8>)>,
    /// The index of the latest version.
    latest: AtomicUsize,
    /// The pause after each eighth of a tarball.
    pause: Duration,
}

/// Returns a tarball as npm has them. Its random bytes make it as large when packed.
#[expect(
    clippy::disallowed_methods,
    reason = "tar makes what a registry would have"
)]
fn tarball(world: &World, name: &str, version: &str, bytes: usize) -> Vec<u8> {
    let around = world.root().join(format!("{name}-{version}"));
    let folder = around.join("package");
    std::fs::create_dir_all(&folder).unwrap();
    let manifest =
        json!({ "name": name, "version": version, "type": "module", "main": "index.js" });
    std::fs::write(folder.join("package.json"), manifest.to_string()).unwrap();
    let source = "export const Slow = async () => ({ 'chat.message': async () => {} })\n";
    std::fs::write(folder.join("index.js"), source).unwrap();
    // xorshift, because its output does not compress.
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed.to_le_bytes()
    })
    .take(bytes / 8)
    .flatten()
    .collect();
    std::fs::write(folder.join("noise.bin"), noise).unwrap();
    let file = around.join("package.tgz");
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(&file).arg("-C").arg(&around);
    assert!(tar.arg("package").status().unwrap().success());
    std::fs::read(file).unwrap()
}

/// Serves npm's requests for the package. Ends with the test's process.
fn registry(package: &Arc<Package>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (package, own) = (Arc::clone(package), url.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (package, own) = (Arc::clone(&package), own.clone());
            std::thread::spawn(move || answer(stream, &package, &own));
        }
    });
    url
}

fn answer(mut stream: TcpStream, package: &Package, own: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let path = first
        .split(' ')
        .nth(1)
        .unwrap_or_default()
        .trim_start_matches('/');
    let head = |status: &str, kind: &str, length: usize| {
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        )
    };
    if path == package.name {
        let version = |(version, _): &(&str, Vec<u8>)| {
            let dist = json!({ "tarball": format!("{own}{version}.tgz") });
            let about = json!({ "name": package.name, "version": version, "dist": dist });
            ((*version).to_owned(), about)
        };
        let versions: serde_json::Map<_, _> = package.versions.iter().map(version).collect();
        let latest = package.versions[package.latest.load(Ordering::SeqCst)].0;
        let body = json!({ "name": package.name, "dist-tags": { "latest": latest }, "versions": versions });
        let body = body.to_string();
        stream.write_all(head("200 OK", "application/json", body.len()).as_bytes())?;
        return stream.write_all(body.as_bytes());
    }
    let mut versions = package.versions.iter();
    let Some((_, tarball)) = versions.find(|(version, _)| path == format!("{version}.tgz")) else {
        return stream.write_all(head("404 Not Found", "text/plain", 0).as_bytes());
    };
    stream.write_all(head("200 OK", "application/octet-stream", tarball.len()).as_bytes())?;
    for piece in tarball.chunks(tarball.len().div_ceil(8)) {
        stream.write_all(piece)?;
        std::thread::sleep(package.pause);
    }
    Ok(())
}

/// Returns a `PATH` with npm and Node but no Bun, so that npm is the installer.
fn programs(world: &World) -> Option<std::path::PathBuf> {
    let folder = world.root().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    for program in ["node", "npm", "sh"] {
        let found = std::env::split_paths(&path)
            .map(|folder| folder.join(program))
            .find(|path| path.is_file())?;
        link(&found, &folder.join(program));
    }
    Some(folder)
}

fn link(from: &Path, to: &Path) {
    std::os::unix::fs::symlink(from, to).unwrap();
}

#[test]
fn how_much_of_a_package_has_come_is_said_every_few_seconds() {
    let world = World::new([done()]);
    world.packages();
    world.config(json!({ "plugin": ["slow-plugin@1.0.0"] }));
    let Some(programs) = programs(&world) else {
        return skip("there is no node or no npm");
    };
    let package = Arc::new(Package {
        name: "slow-plugin",
        versions: vec![("1.0.0", tarball(&world, "slow-plugin", "1.0.0", 4_000_000))],
        latest: AtomicUsize::new(0),
        pause: Duration::from_secs(1),
    });
    let mut list = world.command(&["plugin", "list", "--json"]);
    list.env("npm_config_registry", registry(&package))
        .env("npm_config_cache", world.root().join("npm-cache"))
        .env("OUTRIGGER_JS_INSTALL", "never")
        .env("PATH", programs)
        .env_remove("OUTRIGGER_BUN");
    let done = world.start(list).end().ok();
    assert_eq!(done.json()[0]["stage"], "active", "{}", done.stderr);
    let lines: Vec<&str> = done.stderr.lines().collect();
    assert_eq!(
        lines[0], "~ installing slow-plugin@1.0.0 …",
        "{}",
        done.stderr
    );
    let amounts: Vec<f64> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("~ installing slow-plugin@1.0.0: "))
        .map(|rest| {
            let (amount, rate) = rest.split_once(" MB, ").unwrap();
            assert!(rate.ends_with(" MB/s"), "{rate}");
            amount.parse().unwrap()
        })
        .collect();
    assert!(
        amounts.len() > 1 && amounts.is_sorted() && amounts.iter().any(|mb| *mb > 0.5),
        "{}",
        done.stderr
    );
    // Nothing waits for the plugin: it is fetched, and the output says so.
    assert!(
        !done.stderr.contains("waiting for plugin"),
        "{}",
        done.stderr
    );
}

/// A plugin listed without an exact version stays at the installed one until the user asks for an update.
#[test]
fn a_plugin_is_updated_when_that_is_asked_for() {
    let world = World::new([]);
    world.packages();
    world.config(json!({ "plugin": ["new-plugin"] }));
    let Some(programs) = programs(&world) else {
        return skip("there is no node or no npm");
    };
    let versions = ["1.0.0", "1.1.0"];
    let package = Arc::new(Package {
        name: "new-plugin",
        versions: versions
            .map(|it| (it, tarball(&world, "new-plugin", it, 8)))
            .into(),
        latest: AtomicUsize::new(0),
        pause: Duration::ZERO,
    });
    let url = registry(&package);
    let plugin = |registry: &str, args: &[&str]| {
        let mut command = world.command(&[&["plugin"], args].concat());
        command
            .env("npm_config_registry", registry)
            .env("npm_config_cache", world.root().join("npm-cache"))
            .env("npm_config_fetch_retries", "0")
            .env("OUTRIGGER_JS_INSTALL", "never")
            .env("PATH", &programs)
            .env_remove("OUTRIGGER_BUN");
        world.start(command).end()
    };
    let listed = || {
        let listed = plugin(&url, &["list", "--json"]).ok().json();
        format!("{} {}", listed[0]["version"], listed[0]["stage"])
    };
    assert_eq!(listed(), "\"1.0.0\" \"active\"");
    package.latest.store(1, Ordering::SeqCst);
    assert_eq!(listed(), "\"1.0.0\" \"active\"");
    let updated = plugin(&url, &["update"]).ok().stdout;
    assert!(
        updated.starts_with("new-plugin 1.0.0 -> 1.1.0\n"),
        "{updated}"
    );
    // It is not the trusted version, and starts once the user has reviewed it.
    let accept = "`outrigger plugin review new-plugin --accept`";
    assert!(updated.contains(accept), "{updated}");
    plugin(&url, &["review", "new-plugin", "--accept"]).ok();
    assert_eq!(listed(), "\"1.1.0\" \"active\"");
    // The registry does not answer: the installed version stays.
    let kept = plugin("http://127.0.0.1:9/", &["update", "new-plugin"]).exited(1);
    assert_eq!(kept.stdout, "new-plugin 1.1.0 stays: npm did not answer\n");
    let newest = plugin(&url, &["update"]).ok().stdout;
    assert!(
        newest.starts_with("new-plugin 1.1.0 is the newest\n"),
        "{newest}"
    );
    let unknown = plugin(&url, &["update", "other"]).exited(1).stderr;
    assert!(unknown.contains("lists an npm plugin `other`"), "{unknown}");
}

/// Runs the program in its own terminal.
const IN_TERMINAL: &str = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn([os.environ['OUTRIGGER']] + sys.argv[1:])))";

#[test]
fn a_bar_moves_on_a_terminal_while_bun_is_fetched() {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(bun) = bun_or_skip() else { return };
    let world = World::new([done()]);
    world.packages();
    world.file(
        "typed.tsx",
        "export const Typed = async () => ({ 'chat.message': async () => {} })\n",
    );
    world.config(json!({ "plugin": ["./typed.tsx"] }));
    let path = std::env::var_os("PATH").unwrap();
    let found = |name: &str| {
        let mut all = std::env::split_paths(&path).map(|folder| folder.join(name));
        all.find(|file| file.is_file())
    };
    let (Some(node), Some(python)) = (found("node"), found("python3")) else {
        return skip("there is no Node or no Python on PATH");
    };
    // npm as seen from outside: its downloads grow in the folder, here by 20 MB each time.
    let bin = world.root().join("bin");
    std::fs::create_dir(&bin).unwrap();
    link(&node, &bin.join("node"));
    link(&python, &bin.join("python3"));
    let npm = format!(
        "#!/bin/sh\nname=$(sed -n 's/.*\"@oven.\\(bun-[a-z0-9-]*\\)\".*/\\1/p' package.json)\nmkdir -p node_modules/@oven/$name/bin\n\
         for i in 1 2 3 4; do truncate -s ${{i}}0000000 node_modules/part; sleep 1; done\nrm node_modules/part\n\
         ln -s {} node_modules/@oven/$name/bin/bun\n",
        bun.display()
    );
    std::fs::write(bin.join("npm"), npm).unwrap();
    std::fs::set_permissions(bin.join("npm"), std::fs::Permissions::from_mode(0o755)).unwrap();
    if ["/usr/bin/bun", "/bin/bun"]
        .iter()
        .any(|bun| Path::new(bun).exists())
    {
        return skip("there is a Bun in /usr/bin or /bin");
    }
    let mut list = world.script("python3", &["-c", IN_TERMINAL, "plugin", "list"]);
    list.env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .env("OUTRIGGER_JS_INSTALL", "auto")
        .env_remove("OUTRIGGER_BUN");
    let done = world.start(list).end().ok();
    let shown = done.stdout;
    // It is drawn in one line, over itself.
    let drawn: Vec<&str> = shown
        .split("\r\u{1b}[K")
        .filter(|text| text.contains("bun@1.4.5 ["))
        .collect();
    assert!(drawn.len() > 3, "{shown:?}");
    assert!(drawn.iter().all(|text| !text.contains('\n')), "{drawn:?}");
    for stands in [
        "[##----------------------] 10.0 of 107.4 MB, ",
        "[######------------------] 30.0 of 107.4 MB, ",
    ] {
        assert!(
            drawn.iter().any(|text| text.contains(stands)),
            "{stands}: {drawn:?}"
        );
    }
    assert!(!shown.contains("waiting for plugin bun"), "{shown:?}");
}
