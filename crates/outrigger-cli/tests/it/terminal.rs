//! No output from outside reaches a terminal as a control sequence (invariant 14).

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::*;

/// The clipboard, the screen, the title, an answer typed by the terminal, C1, text over text, reversed text.
const HOSTILE: &str = "A\u{1b}]52;c;cm0gLXJm\u{7}B\u{1b}[2J\u{1b}[HC\u{1b}]0;t\u{1b}\\D\u{1b}[6nE\u{9b}2JF\u{9d}52;c;eA==\u{9c}G\rH\u{8}I\u{202e}J\u{2066}K\u{1b}[8mL\u{1b}cM\u{7f}";

/// Runs a command with a terminal as all three streams, at which every question is answered with no. Returns every byte
/// that reached it.
fn at_a_terminal(mut command: Command) -> String {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let open = || File::options().read(true).write(true).open(&name).unwrap();
    command.stdin(open()).stdout(open()).stderr(open());
    let mut child = command.env_remove("NO_COLOR").spawn().unwrap();
    drop(command);
    let mut keyboard = File::from(master);
    let mut from = keyboard.try_clone().unwrap();
    let (sender, pieces) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut piece = [0; 4096];
        // The terminal returns an error once it is no longer open anywhere.
        while let Ok(n @ 1..) = from.read(&mut piece) {
            let _ = sender.send(piece[..n].to_vec());
        }
    });
    let limit = Instant::now() + Duration::from_secs(60);
    let (mut all, mut answered) = (Vec::new(), 0);
    loop {
        match pieces.recv_timeout(Duration::from_millis(20)) {
            Ok(piece) => all.extend(piece),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
            Err(_) if Instant::now() > limit => child.kill().unwrap(),
            Err(_) => {}
        }
        let shown = String::from_utf8_lossy(&all).into_owned();
        let asked = shown.matches("[n]o").count() + shown.matches("[y/N]").count();
        if asked > answered {
            answered = asked;
            // Input typed before the question can be read does not count.
            std::thread::sleep(Duration::from_millis(200));
            keyboard.write_all(b"n\n").unwrap();
        }
    }
    child.wait().unwrap();
    String::from_utf8_lossy(&all).into_owned()
}

/// Returns the control sequences that a terminal obeys, except for colours, line ends and a redrawn last line.
fn obeyed(shown: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = shown.replace("\r\n", "\n").replace("\r\u{1b}[K", "");
    while let Some(at) = rest.find(|c: char| {
        c.is_control() && !"\n\t".contains(c)
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    }) {
        let piece: String = rest[at..].chars().take(8).collect();
        let after = rest[at..].chars().next().unwrap().len_utf8() + at;
        let colour = rest[after..]
            .strip_prefix('[')
            .and_then(|it| it.split_once('m'));
        let plain = ["0", "1", "32", "90", "91"];
        if !(piece.starts_with('\u{1b}') && colour.is_some_and(|(it, _)| plain.contains(&it))) {
            found.push(piece);
        }
        rest = rest[after..].to_owned();
    }
    found
}

fn hostile_world() -> World {
    let file = format!("{}.txt", HOSTILE.replace('/', "_"));
    let world = World::new([
        turn([
            call(
                "bash",
                json!({ "command": format!("printf %s '{HOSTILE}'; cat raw"), "description": HOSTILE }),
            ),
            call("write", json!({ "filePath": file, "content": HOSTILE })),
            call("glob", json!({ "pattern": "*.txt" })),
            call("read", json!({ "filePath": format!("none{HOSTILE}") })),
            call(HOSTILE, json!({})),
        ]),
        text(HOSTILE),
    ]);
    world.config(json!({
        "agent": { HOSTILE: { "description": HOSTILE, "mode": "subagent" } },
        "mcp": { HOSTILE: { "type": "local", "command": ["false", HOSTILE] } },
        "plugin": [format!("./{HOSTILE}.js")],
        "command": { "c": { "template": HOSTILE } },
    }));
    // Bytes that are not UTF-8, and the other half of a sequence.
    fs::write(world.path("raw"), b"\x9b2J\x9d52;c;x\x9c\xff\x1b").unwrap();
    world.file(
        &format!(".opencode/agent/{HOSTILE}.md"),
        "---\ndescription: [\n---\n",
    );
    world
}

#[test]
fn no_view_sends_what_a_terminal_obeys() {
    let world = hostile_world();
    let run = at_a_terminal(world.command(&["run", "--title", HOSTILE, "do it"]));
    assert!(run.contains("␛]52;c;cm0gLXJm␇"), "{run:?}");
    let views: [&[&str]; 14] = [
        &["session", "list"],
        &["session", "list", "--all"],
        &["session", "list", "--json"],
        &["session", "show"],
        &["session", "export"],
        &["plugin", "list"],
        &["mcp", "list"],
        &["config", "show"],
        &["models"],
        &["doctor"],
        &["audit", "show"],
        &["trust"],
        &["run", "--format", "json", "again"],
        &["session", "show", HOSTILE],
    ];
    let mut named = 0;
    let all = views
        .iter()
        .map(|args| (args.join(" "), at_a_terminal(world.command(args))));
    for (view, shown) in all.chain([("run".to_owned(), run)]) {
        assert_eq!(obeyed(&shown), Vec::<String>::new(), "{view}: {shown:?}");
        named += usize::from(shown.contains("]52;c;cm0gLXJm"));
    }
    assert!(named >= 6, "only {named} views show it at all");
}

/// A name from outside cannot draw a line of a list.
#[test]
fn no_name_begins_a_line_of_its_own() {
    const FORGED: &str = "x\nFORGED yours";
    let world = World::new([done()]);
    let program = "export const P = async () => ({ tool: { 'x\\nFORGED': { description: 'd', args: {}, execute: async () => 'd' } } })";
    world.config(json!({
        "agent": { FORGED: { "description": FORGED, "mode": "subagent" } },
        "mcp": { FORGED: { "type": "local", "command": ["false", FORGED] } },
        "plugin": [format!("./{FORGED}.js")],
        "command": { FORGED: { "template": FORGED } },
        "provider": { FORGED: { "name": FORGED, "models": { FORGED: { "name": FORGED } } } },
    }));
    world.file(&format!("{FORGED}.js"), program);
    let hook = json!({ "matcher": FORGED, "hooks": [{ "type": "command", "command": format!("true #{FORGED}") }] });
    let hooks = json!({ "hooks": { "PreToolUse": [hook] } });
    world.file(".claude/settings.json", &hooks.to_string());
    let mut named = 0;
    let views: [&[&str]; 14] = [
        &["plugin", "allow-hooks", "--list"],
        &["plugin", "list"],
        &["plugin", "snapshot"],
        &["plugin", "verify"],
        &["plugin", "review"],
        &["plugin", "points"],
        &["mcp", "list"],
        &["mcp", "debug", FORGED],
        &["config", "show"],
        &["doctor"],
        &["models"],
        &["tool", "list"],
        &["session", "list"],
        &["auth", "list"],
    ];
    for args in views {
        let shown = at_a_terminal(world.command(args));
        let forged = shown
            .lines()
            .find(|it| it.trim_start().starts_with("FORGED"));
        assert_eq!(forged, None, "{args:?}: {shown}");
        named += usize::from(shown.contains("␊FORGED"));
    }
    assert!(named >= 5, "only {named} views show it at all");
}

/// JSON output has not changed.
#[test]
fn json_keeps_what_it_says() {
    let world = hostile_world();
    world.cli(&["run", "--title", HOSTILE, "do it"]);
    let list = world.cli(&["session", "list", "--json"]).ok();
    assert_eq!(obeyed(&list.stdout), Vec::<String>::new());
    let sessions = list.json();
    assert_eq!(sessions[0]["title"].as_str(), Some(HOSTILE));
}

/// Covers a real terminal's clipboard and screen.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test starts tmux around the program"
)]
fn the_clipboard_of_a_real_terminal_stays_as_it_is() {
    if Command::new("tmux").arg("-V").output().is_err() {
        return skip("tmux is not here");
    }
    let world = hostile_world();
    world.cli(&["run", "--title", HOSTILE, "do it"]);
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let tmux = |args: &[&str]| {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S")
            .arg(&socket)
            .args(["-f", "/dev/null"])
            .args(args);
        String::from_utf8_lossy(&tmux.stdin(Stdio::null()).output().unwrap().stdout).into_owned()
    };
    let show = world.command(&["session", "show"]);
    let variables = show
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}='{}'", name.to_str()?, value?.to_str()?)));
    let script = format!(
        "echo first; cd '{}'; env {} '{}' session show; printf 'las''t\\n'; exec sleep 60",
        world.project().display(),
        variables.collect::<Vec<_>>().join(" "),
        outrigger(),
    );
    tmux(&[
        "new-session",
        "-d",
        "-s",
        "t",
        "-x",
        "200",
        "-y",
        "200",
        "sh",
        "-c",
        &script,
    ]);
    tmux(&["set-option", "-s", "set-clipboard", "on"]);
    let mut screen = String::new();
    for _ in 0..200 {
        screen = tmux(&["capture-pane", "-p", "-t", "t"]);
        if screen.lines().any(|line| line == "last") {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let buffers = tmux(&["list-buffers"]);
    let title = tmux(&["display-message", "-p", "-t", "t", "#{pane_title}"]);
    tmux(&["kill-server"]);
    assert!(
        screen.lines().any(|line| line == "first"),
        "cleared: {screen}"
    );
    assert!(screen.contains("␛]52;c;"), "{screen}");
    assert_eq!(buffers, "", "the clipboard was set");
    assert_ne!(title.trim(), "t");
}

/// Lost output is not a success, and nothing panics.
#[test]
fn a_closed_or_full_output_is_an_error() {
    let world = World::new([text("all is well")]);
    world.cli(&["run", "do it"]).ok();
    let cases: [&[&str]; 7] = [
        &["--help"],
        &["config", "show"],
        &["session", "list"],
        &["session", "export"],
        &["models"],
        &["completions", "bash"],
        &["run", "again"],
    ];
    for args in cases {
        for place in ["/dev/full", "a closed pipe"] {
            let mut command = world.command(args);
            let output = match place {
                "/dev/full" => Stdio::from(File::options().write(true).open(place).unwrap()),
                _ => Stdio::from(rustix::pipe::pipe().unwrap().1),
            };
            let done = command
                .stdin(Stdio::null())
                .stdout(output)
                .stderr(Stdio::piped())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert_eq!(done.status.code(), Some(1), "{args:?} {place}: {said}");
            assert!(!said.contains("panicked"), "{args:?} {place}: {said}");
            assert_eq!(
                said.contains("[cli.output]"),
                place == "/dev/full",
                "{args:?}: {said}"
            );
        }
    }
}

/// A hostile page could hide a value in the question: nothing of it is left there.
#[test]
fn a_question_shows_what_is_asked() {
    let command = format!("echo {HOSTILE}\u{200b}");
    let world = World::new([
        turn([call(
            "bash",
            json!({ "command": command, "description": "x" }),
        )]),
        text("done"),
    ]);
    world.config(json!({ "permission": { "bash": "ask" } }));
    let shown = at_a_terminal(world.command(&["run", "do it"]));
    assert!(shown.contains("run a command"), "{shown:?}");
    assert!(shown.contains("\\u200b"), "{shown:?}");
    assert_eq!(obeyed(&shown), Vec::<String>::new(), "{shown:?}");
}

#[test]
fn the_test_knows_what_a_terminal_obeys() {
    assert_eq!(obeyed("\u{1b}[91mred\u{1b}[0m\r\n\r\u{1b}[K~ x\t").len(), 0);
    assert_eq!(obeyed(HOSTILE).len(), 17, "{:?}", obeyed(HOSTILE));
    let value: Value = serde_json::from_str(&json!(HOSTILE).to_string()).unwrap();
    assert_eq!(value, HOSTILE);
}
