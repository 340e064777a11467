//! What is shown while something is fetched from npm: a registry on loopback that takes its time.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::support::*;

/// A tarball as npm has them, with a file of random bytes in it, so that it is as large packed.
#[expect(
    clippy::disallowed_methods,
    reason = "tar makes what a registry would have"
)]
fn tarball(world: &World) -> Vec<u8> {
    let folder = world.root().join("slow/package");
    std::fs::create_dir_all(&folder).unwrap();
    let manifest =
        json!({ "name": "slow-plugin", "version": "1.0.0", "type": "module", "main": "index.js" });
    std::fs::write(folder.join("package.json"), manifest.to_string()).unwrap();
    let source = "export const Slow = async () => ({ 'chat.message': async () => {} })\n";
    std::fs::write(folder.join("index.js"), source).unwrap();
    // xorshift: what does not compress.
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed.to_le_bytes()
    })
    .take(500_000)
    .flatten()
    .collect();
    std::fs::write(folder.join("noise.bin"), noise).unwrap();
    let file = world.root().join("slow.tgz");
    let mut tar = Command::new("tar");
    tar.arg("-czf")
        .arg(&file)
        .arg("-C")
        .arg(world.root().join("slow"));
    assert!(tar.arg("package").status().unwrap().success());
    std::fs::read(file).unwrap()
}

/// Answers what npm asks for the package; the tarball comes in eight pieces with pauses. Ends with the test's process.
fn registry(tarball: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (tarball, own) = (Arc::new(tarball), url.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (tarball, own) = (Arc::clone(&tarball), own.clone());
            std::thread::spawn(move || answer(stream, &tarball, &own));
        }
    });
    url
}

fn answer(mut stream: TcpStream, tarball: &[u8], own: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let path = first.split(' ').nth(1).unwrap_or_default();
    let head = |status: &str, kind: &str, length: usize| {
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        )
    };
    match path {
        "/slow-plugin" => {
            let version = json!({ "name": "slow-plugin", "version": "1.0.0", "dist": { "tarball": format!("{own}slow.tgz") } });
            let body = json!({ "name": "slow-plugin", "dist-tags": { "latest": "1.0.0" }, "versions": { "1.0.0": version } });
            let body = body.to_string();
            stream.write_all(head("200 OK", "application/json", body.len()).as_bytes())?;
            stream.write_all(body.as_bytes())
        }
        "/slow.tgz" => {
            let kind = "application/octet-stream";
            stream.write_all(head("200 OK", kind, tarball.len()).as_bytes())?;
            for piece in tarball.chunks(tarball.len().div_ceil(8)) {
                stream.write_all(piece)?;
                std::thread::sleep(Duration::from_secs(1));
            }
            Ok(())
        }
        _ => stream.write_all(head("404 Not Found", "text/plain", 0).as_bytes()),
    }
}

/// npm and Node, and no Bun: npm is the installer.
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
    let mut list = world.command(&["plugin", "list", "--json"]);
    list.env("npm_config_registry", registry(tarball(&world)))
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
    // Nobody waits for the plugin: it is fetched, and that is what was said.
    assert!(
        !done.stderr.contains("waiting for plugin"),
        "{}",
        done.stderr
    );
}

/// Runs the program in a terminal of its own.
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
    // npm as it looks from outside: what it fetches grows in the folder, here by 20 MB each time.
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
