//! Which hosts shell commands reach (`tools.hosts`), and which the machine's policy forbids to everyone.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::support::*;
use crate::user_grants::granting;

fn bash(command: &str) -> Value {
    turn([call(
        "bash",
        json!({ "command": command, "description": "x" }),
    )])
}

/// Starts a server that answers every request with a word.
fn server(word: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // Reads the entire request: if part of it is unread, the system discards the answer.
            let mut request = Vec::new();
            let mut some = [0; 2048];
            while let Ok(n @ 1..) = stream.read(&mut some) {
                request.extend_from_slice(&some[..n]);
                if request.ends_with(b"\r\n\r\n") {
                    break;
                }
            }
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: ";
            let answer = format!("{head}{}\r\n\r\n{word}", word.len());
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

fn possible() -> bool {
    let possible = outrigger_sandbox::Spawner::new().unwrap().has_connects();
    if !possible {
        skip("connections cannot be decided about here");
    }
    possible
}

#[test]
fn commands_reach_the_hosts_that_are_named() {
    if !possible() {
        return;
    }
    let (open, shut) = (server("in-the-open"), server("behind-doors"));
    let straight = |port: u16| {
        format!(
            "exec 3<>/dev/tcp/127.0.0.1/{port} && printf 'GET / HTTP/1.1\\r\\n\\r\\n' >&3 && cat <&3"
        )
    };
    let ways = [
        bash(&format!("curl -s -m 9 http://127.0.0.1:{open}")),
        bash(&straight(open)),
        bash(&format!("curl -s -m 9 http://127.0.0.1:{shut}; true")),
        bash(&format!(
            "curl -s -m 9 --noproxy '*' http://127.0.0.1:{shut}; true"
        )),
        bash(&format!("{}; true", straight(shut))),
        bash(&format!(
            "setsid -w bash -c \"{}\"; true",
            straight(shut).replace('"', "\\\"")
        )),
        bash(
            "python3 -m http.server 0 --bind 127.0.0.1 >/dev/null 2>&1 & exec 2>/dev/null; socat - UNIX-CONNECT:/var/run/docker.sock; true",
        ),
    ];
    let count = ways.len();
    let world = World::new(ways.into_iter().chain([done()]));
    granting(
        &world,
        &format!("[tools]\nhosts = [\"127.0.0.1:{open}\"]\n"),
    );
    world.run(&["do it"]).ok();
    let results = world.mock.last().texts("tool");
    assert_eq!(results.len(), count);
    for (index, answer) in results.iter().enumerate() {
        assert!(!answer.contains("behind-doors"), "{index}: {answer}");
        assert_eq!(
            answer.contains("in-the-open"),
            index < 2,
            "{index}: {answer}"
        );
        let says = format!("No connection was made to 127.0.0.1:{shut} (network.private)");
        assert_eq!(
            answer.contains(&says),
            (2..6).contains(&index),
            "{index}: {answer}"
        );
    }
    assert!(
        results[2].contains("[tools] hosts = [..., "),
        "{}",
        results[2]
    );
    let list = |policy: &str| {
        let args = ["audit", "list", "--kind", "network", "--policy", policy];
        world.cli(&args).ok().stdout
    };
    assert!(list("refused").contains(&format!("127.0.0.1:{shut}")));
    assert!(list("passed").contains(&format!("127.0.0.1:{open}")));
    world.verify();
}

/// The same applies to formatters and command hooks.
#[test]
fn formatters_and_command_hooks_reach_no_other_hosts() {
    if !possible() {
        return;
    }
    let (open, shut) = (server("in-the-open"), server("behind-doors"));
    let asks = |name: &str| {
        let ask =
            |port: u16| format!("curl -s -m 9 --noproxy '*' http://127.0.0.1:{port} >> {name}.txt");
        format!("{}; {}; true", ask(open), ask(shut))
    };
    let edit = json!({ "filePath": "a.text", "content": "text\n" });
    let world = World::new([turn([call("write", edit)]), done()]);
    world.config(json!({ "formatter": { "mine": {
        "command": ["sh", "-c", asks("formatter")], "extensions": [".text"],
    } } }));
    let hook = json!({ "hooks": { "UserPromptSubmit": [{ "hooks": [
        { "type": "command", "command": asks("hook"), "timeout": 20 },
    ] }] } });
    let folder = world.home().join(".claude");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("settings.json"), hook.to_string()).unwrap();
    let hosts = format!("[tools]\nhosts = [\"127.0.0.1:{open}\"]\n");
    granting(&world, &hosts);
    world.run(&["do it"]).ok();
    for name in ["formatter", "hook"] {
        assert_eq!(world.read(&format!("{name}.txt")), "in-the-open", "{name}");
    }
}

/// The control, and what a project may set.
#[test]
fn without_a_list_commands_connect_where_they_like() {
    let open = server("in-the-open");
    let world = World::new([
        bash(&format!(
            "curl -s -m 9 --noproxy '*' http://127.0.0.1:{open}"
        )),
        done(),
    ]);
    world.file("outrigger.toml", "[tools]\nhosts = []\n");
    // Services of this machine have a separate rule.
    let ports = [("OUTRIGGER_TOOLS_PORTS", open.to_string())];
    let ports = ports
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let done = world.run_with(&ports, &["do it"]).ok();
    let results = world.mock.last().texts("tool");
    assert!(results[0].contains("in-the-open"), "{}", results[0]);
    assert!(done.stderr.contains("tools.hosts"), "{}", done.stderr);
}

const FETCHES: &str = r#"
import fs from "node:fs"
export const Fetches = async ({ directory }) => ({
  "chat.message": async () => {
    const said = await fetch("http://127.0.0.1:PORT").then((it) => it.text(), String)
    fs.writeFileSync(directory + "/said.txt", said)
  },
})
"#;

#[test]
fn what_the_policy_forbids_nobody_reaches() {
    if !possible() {
        return;
    }
    let (shut, open) = (server("behind-doors"), server("in-the-open"));
    let world = World::new([
        bash(&format!("curl -s -m 9 http://127.0.0.1:{shut}; true")),
        bash(&format!("curl -s -m 9 http://127.0.0.1:{open}")),
        done(),
        done(),
    ]);
    let plugin = world.plugin("fetches", &FETCHES.replace("PORT", &shut.to_string()));
    granting(
        &world,
        &format!(
            "[tools]\nhosts = [\"127.0.0.1\"]\n[plugins.\"{}\"]\nhosts = [\"127.0.0.1\"]\n",
            plugin.display()
        ),
    );
    let file = world.root().join("policy.toml");
    std::fs::write(&file, format!("[forbid]\nhosts = [\"127.0.0.1:{shut}\"]\n")).unwrap();
    let policy = file.display().to_string();
    let with = |args: &[&str]| {
        let mut command = world.command(args);
        command.env("OUTRIGGER_POLICY", &policy);
        world.start(command).end()
    };
    with(&["run", "do it"]).ok();
    let results = world.mock.last().texts("tool");
    assert!(
        results[0].contains("the policy of this machine forbids it"),
        "{}",
        results[0]
    );
    assert!(results[1].contains("in-the-open"), "{}", results[1]);
    let said = world.read("said.txt");
    assert!(said.contains("network.forbidden"), "{said}");
    let line = format!("policy: hosts forbidden: 127.0.0.1:{shut}");
    assert!(with(&["doctor"]).stdout.contains(&line));
    // Without a list of the user's, forbidden hosts stay forbidden, too.
    granting(&world, "");
    with(&["run", "again"]).ok();
    assert!(world.read("said.txt").contains("network.forbidden"));
    // An invalid host prevents the start, and the message names its place.
    std::fs::write(&file, "[forbid]\nhosts = [\"http://x\"]\n").unwrap();
    let refused = with(&["run", "no"]);
    assert!(
        refused
            .stderr
            .contains("policy.toml:2:9: not valid TOML: \"http://x\" is not a host"),
        "{}",
        refused.stderr
    );
}
