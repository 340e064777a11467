//! `outrigger` without a command, in a real terminal (tmux).

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::question::{UNDER, path_without_bun};
use crate::support::*;

/// A shell in tmux, with `$OUTRIGGER` and this world's environment.
struct Tmux<'w> {
    world: &'w World,
    socket: PathBuf,
}

impl<'w> Tmux<'w> {
    fn open(world: &'w World, columns: u16, rows: u16) -> Option<Self> {
        if !std::path::Path::new("/usr/bin/tmux").exists() {
            skip("there is no tmux");
            return None;
        }
        let this = Self {
            world,
            socket: world.path("tmux.socket"),
        };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let args = [
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
            "sh",
        ];
        this.tmux(&args);
        Some(this)
    }

    fn tmux(&self, args: &[&str]) -> String {
        let socket = self.socket.to_string_lossy().into_owned();
        let args = [&["-u", "-S", &socket], args].concat();
        let mut command = self.world.script("tmux", &args);
        command
            .env("TERM", "screen-256color")
            .env("LC_ALL", "C.UTF-8");
        let output = command.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    fn presses(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    fn runs(&self, line: &str) {
        self.types(line);
        self.presses("Enter");
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until the screen shows this.
    #[track_caller]
    fn sees(&self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if screen.contains(text) {
                return screen;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "no `{text}` in:\n{screen}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Checks that the terminal is restored: its own screen, a cursor, echoed lines.
    #[track_caller]
    fn is_restored(&self) {
        // What is typed before the program has ended is the program's.
        let has_ended = || {
            let command = self.tmux(&["display", "-p", "#{pane_current_command}"]);
            command.trim() != "outrigger"
        };
        assert!(wait_until(WAIT_TIMEOUT, has_ended), "{}", self.screen());
        self.runs(
            "stty -a | tr ' ;' '\\n' | grep -x -e icanon -e echo -e isig | sort | tr '\\n' +",
        );
        self.sees("echo+icanon+isig+");
        assert_eq!(
            self.tmux(&["display", "-p", "#{alternate_on} #{cursor_flag}"])
                .trim(),
            "0 1"
        );
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

fn asking(world: &World) {
    world.config(json!({ "permission": { "bash": "ask" } }));
}

fn touch(file: &str) -> serde_json::Value {
    call(
        "bash",
        json!({ "command": format!("touch {file} && echo done-{file}"), "description": "make it" }),
    )
}

#[test]
fn a_turn_with_a_question_and_the_terminal_as_it_was() {
    let world = World::new([turn([touch("a.txt")]), done()]);
    asking(&world);
    let Some(tmux) = Tmux::open(&world, 80, 24) else {
        return;
    };
    tmux.runs("$OUTRIGGER --prompt 'make the file'");
    tmux.sees("┃ make the file");
    let screen = tmux.sees("? run a command?");
    assert!(screen.contains("command │ touch a.txt"), "{screen}");
    let named = tmux.tmux(&["display", "-p", "#{pane_title}"]);
    assert!(
        named.starts_with("? ") && named.contains(" · outrigger"),
        "{named}"
    );
    // Keys that come at once are meant for the prompt: the user reads the question before answering it.
    std::thread::sleep(Duration::from_millis(700));
    assert!(!world.path("a.txt").exists());
    tmux.presses("y");
    let screen = tmux.sees("▣ build");
    assert!(
        screen.contains("✓ bash touch a.txt") && screen.contains("done-a.txt"),
        "{screen}"
    );
    assert!(world.path("a.txt").exists());
    tmux.tmux(&["resize-window", "-x", "40", "-y", "20"]);
    tmux.sees("▣ build");
    tmux.presses("C-d");
    tmux.is_restored();
}

/// The interface asks the same question about a folder as `run`: once, including what its plugins need.
#[test]
fn a_folder_is_one_question_at_the_interface() {
    let world = World::new([done()]);
    world.trusts_nothing();
    let Some(path) = path_without_bun(&world) else {
        return;
    };
    world.file("typed.tsx", UNDER);
    let settings = json!({ "plugin": ["./typed.tsx", "acme@1.0.0"] });
    world.file("opencode.json", &settings.to_string());
    let Some(tmux) = Tmux::open(&world, 100, 30) else {
        return;
    };
    tmux.runs(&format!(
        "unset OUTRIGGER_BUN; PATH={path} $OUTRIGGER --prompt hi"
    ));
    let screen = tmux.sees("trust this folder");
    assert!(
        screen.contains("downloads │ bun@1.4.5 from npm"),
        "{screen}"
    );
    assert!(
        screen.contains("plugins │ ./typed.tsx, acme@1.0.0"),
        "{screen}"
    );
    // Keys that come at once are meant for the prompt.
    std::thread::sleep(Duration::from_millis(700));
    tmux.presses("y");
    let screen = tmux.sees("▣ build");
    assert!(!screen.contains("fetch it from npm"), "{screen}");
    assert_eq!(world.mock.last().texts("user"), ["hi under bun under bun"]);
    tmux.presses("C-d");
    tmux.is_restored();
}

#[test]
fn a_signal_in_the_middle_restores_the_terminal() {
    let world = World::new([turn([touch("b.txt")]), done()]);
    asking(&world);
    let Some(tmux) = Tmux::open(&world, 80, 24) else {
        return;
    };
    tmux.runs("sh -c 'echo $$ > pid; exec $OUTRIGGER --prompt make'; echo \"left $?\"");
    tmux.sees("? run a command?");
    let pid = std::fs::read_to_string(world.path("pid")).unwrap();
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    tmux.sees("left 143");
    tmux.is_restored();
    assert!(!world.path("b.txt").exists());
}

/// At a server: its questions are asked here, its stored conversations are found here, and its end is reported and restores the
/// terminal.
#[test]
fn a_server_is_attached_to_and_its_end_is_said() {
    let world = World::new([turn([touch("c.txt")]), done(), done()]);
    asking(&world);
    let server = world.serve(&[]);
    let Some(tmux) = Tmux::open(&world, 100, 24) else {
        return;
    };
    let url = server.url();
    tmux.runs(&format!(
        "$OUTRIGGER --attach {url} --prompt 'make the heron'"
    ));
    tmux.sees("┃ make the heron");
    tmux.sees("? run a command?");
    // Keys that come at once are meant for the prompt.
    std::thread::sleep(Duration::from_millis(700));
    tmux.presses("y");
    tmux.sees("▣ build");
    assert!(world.path("c.txt").exists());
    // A new conversation, and from there back to the previous one.
    tmux.runs("/new");
    tmux.sees("❯ what is to be done?");
    tmux.presses("C-x");
    tmux.presses("/");
    tmux.sees("Search");
    tmux.types("heron");
    tmux.presses("Tab");
    tmux.sees("▸ make the heron");
    tmux.presses("Enter");
    tmux.sees("┃ make the heron");
    let port = url.rsplit(':').next().unwrap().to_owned();
    server.kill();
    tmux.sees("lost the connection to the server");
    // The same server at the same address: the conversation goes on.
    let _server = world.serve_with(world.command(&["serve", "--port", &port]));
    tmux.sees("connected to the server again");
    tmux.runs("go on");
    tmux.sees("┃ go on");
    tmux.sees("▣ build");
    tmux.presses("C-d");
    tmux.is_restored();
}

/// The user's editor has the terminal meanwhile; after a SIGKILL the next start restores it for shells; wrong keys are named.
#[test]
fn an_editor_a_kill_and_wrong_keys() {
    let world = World::new([]);
    let Some(tmux) = Tmux::open(&world, 160, 24) else {
        return;
    };
    tmux.runs("sh -c \"echo \\$\\$ > pid; exec env VISUAL='sh editor.sh' $OUTRIGGER\"");
    world.file("editor.sh", "stty -a > modes; printf edited > \"$1\"\n");
    tmux.sees("❯");
    tmux.presses("C-x");
    tmux.presses("e");
    tmux.sees("❯ edited");
    let modes = std::fs::read_to_string(world.path("modes")).unwrap();
    assert!(modes.contains(" icanon"), "{modes}");
    tmux.types(" more");
    tmux.sees("❯ edited more");
    // One that is killed in the middle leaves the terminal as it set it: what was written stays, and keys are read.
    world.file("editor.sh", "stty -isig -icrnl; kill -9 $$\n");
    tmux.presses("C-x");
    tmux.presses("e");
    tmux.sees("the prompt is as it was");
    tmux.types(" and more");
    tmux.sees("❯ edited more and more");
    let pid = std::fs::read_to_string(world.path("pid")).unwrap();
    // While nothing happens the loop does not wake up: its thread only waits.
    let waits = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim())).unwrap();
        status
            .lines()
            .find(|it| it.starts_with("voluntary_ctxt_switches"))
            .unwrap()
            .split_whitespace()
            .last()
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    std::thread::sleep(Duration::from_millis(300));
    let before = waits();
    std::thread::sleep(Duration::from_secs(1));
    assert!(waits() - before <= 1, "{} wake-ups", waits() - before);
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    tmux.sees("Killed");
    // The shell does not take a carriage return for the end of a line now.
    tmux.types("$OUTRIGGER");
    tmux.presses("C-j");
    tmux.sees("❯ what is to be done?");
    tmux.presses("C-d");
    tmux.is_restored();
    tmux.runs("OUTRIGGER_TUI_KEYS='nonsense=f5;session_new=hyper+y' $OUTRIGGER");
    let screen = tmux.sees("`hyper+y` is not a key (at `session_new`)");
    assert!(
        screen.contains("`nonsense` is the name of no key"),
        "{screen}"
    );
}

/// The theme chosen in the interface is that of the next start; a setting takes precedence.
#[test]
fn a_chosen_theme_is_kept_after_a_restart() {
    let world = World::new([]);
    let Some(tmux) = Tmux::open(&world, 80, 24) else {
        return;
    };
    let marked = |name: &str| {
        tmux.sees("what is to be done?");
        tmux.runs("/themes");
        tmux.sees(&format!("▸ {name}"));
    };
    let leave = || {
        tmux.presses("C-d");
        tmux.is_restored();
        tmux.runs("clear");
    };
    tmux.runs("$OUTRIGGER");
    marked("dark");
    tmux.presses("Down");
    tmux.sees("▸ light");
    tmux.presses("Enter");
    leave();
    tmux.runs("$OUTRIGGER");
    marked("light");
    tmux.presses("Escape");
    leave();
    tmux.runs("OUTRIGGER_TUI_THEME=system $OUTRIGGER");
    marked("system");
}
