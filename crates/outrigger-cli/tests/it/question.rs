//! Permission questions at a real terminal.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::*;

/// A run with a person at its standard input and standard error.
pub(crate) struct Person {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<String>>,
}

fn winsize((columns, rows): (u16, u16)) -> rustix::termios::Winsize {
    rustix::termios::Winsize {
        ws_col: columns,
        ws_row: rows,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

/// Reads to the end. A terminal returns an error once it is no longer open anywhere.
fn copy(from: &mut impl std::io::Read, to: &Mutex<String>) {
    let mut bytes = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut bytes) {
        let text = String::from_utf8_lossy(&bytes[..n]);
        to.lock().unwrap().push_str(&text);
    }
}

impl Person {
    pub(crate) fn at(world: &World, args: &[&str]) -> Self {
        Self::prepared(world, args, |_| {})
    }

    /// Starts a complete command line on a screen of this many columns and rows.
    pub(crate) fn sized(world: &World, args: &[&str], size: (u16, u16)) -> Self {
        Self::started(world.command(args), Some(winsize(size)), Stdio::null())
    }

    /// Does the same with standard output through a pipe, and returns that output.
    pub(crate) fn piped(
        world: &World,
        args: &[&str],
        size: (u16, u16),
    ) -> (Self, Arc<Mutex<String>>) {
        let mut person = Self::started(world.command(args), Some(winsize(size)), Stdio::piped());
        let mut from = person.child.stdout.take().unwrap();
        let printed = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&printed);
        std::thread::spawn(move || copy(&mut from, &shown));
        (person, printed)
    }

    /// Resizes the terminal.
    pub(crate) fn resizes(&self, size: (u16, u16)) {
        rustix::termios::tcsetwinsize(&self.keyboard, winsize(size)).unwrap();
        // The kernel notifies the foreground group of a controlling terminal; here it is not one.
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, Signal::WINCH).unwrap();
    }

    /// Starts `outrigger run` with these arguments, modified by `prepare`.
    pub(crate) fn prepared(
        world: &World,
        args: &[&str],
        prepare: impl Fn(&mut std::process::Command),
    ) -> Self {
        let mut command = world.command(&[&["run"], args].concat());
        prepare(&mut command);
        Self::started(command, None, Stdio::null())
    }

    fn started(
        mut command: std::process::Command,
        size: Option<rustix::termios::Winsize>,
        stdout: Stdio,
    ) -> Self {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = File::options().read(true).write(true).open(name).unwrap();
        if let Some(size) = size {
            rustix::termios::tcsetwinsize(&slave, size).unwrap();
        }
        command
            .stdin(slave.try_clone().unwrap())
            .stderr(slave)
            .stdout(stdout);
        command.env("NO_COLOR", "1");
        let child = command.spawn().unwrap();
        let keyboard = File::from(master);
        let screen = Arc::new(Mutex::new(String::new()));
        let (mut from, shown) = (keyboard.try_clone().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || copy(&mut from, &shown));
        Self {
            child,
            keyboard,
            screen,
        }
    }

    pub(crate) fn screen(&self) -> String {
        self.screen.lock().unwrap().replace('\r', "")
    }

    /// Returns the number of questions shown so far. A question that is repeated below other output counts once.
    fn questions(&self) -> usize {
        let screen = self.screen();
        // The rows of a question come before its prompt.
        let mut asked: Vec<&str> = screen.split("? [y]es").collect();
        asked.pop();
        let rows = |text: &str| {
            text.lines()
                .filter(|line| line.contains(" │ "))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        asked.into_iter().map(rows).collect::<BTreeSet<_>>().len()
    }

    #[track_caller]
    pub(crate) fn sees(&self, what: &str) {
        assert!(
            wait_until(WAIT_TIMEOUT, || self.screen().contains(what)),
            "{what} is not in:\n{}",
            self.screen()
        );
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn interrupts(&self) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, Signal::INT).unwrap();
    }

    #[track_caller]
    pub(crate) fn ends(&mut self, code: i32) {
        let mut status = None;
        wait_until(WAIT_TIMEOUT, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        if status.is_none() {
            let _ = self.child.kill();
        }
        assert_eq!(
            status.and_then(|s| s.code()),
            Some(code),
            "{}",
            self.screen()
        );
    }
}

fn bash(command: &str) -> Value {
    call("bash", json!({ "command": command, "description": "x" }))
}

fn asking(calls: impl IntoIterator<Item = Value>) -> World {
    let world = World::new([turn(calls), done()]);
    world.config(json!({ "permission": { "bash": "ask" } }));
    world
}

/// A plugin that only Bun can run, and that reports its runtime.
pub(crate) const UNDER: &str = "const n: number = 1; export default async () => ({ 'chat.message': async (_: any, o: any) => { o.parts[0].text += ' under ' + (process.versions.bun ? 'bun' : 'node') } })";

/// Returns a `PATH` with Node and with an npm that has Bun and a package `acme` ([`UNDER`]) and records when it fetches Bun. `None` if it
/// cannot be created.
pub(crate) fn path_without_bun(world: &World) -> Option<String> {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let bun = bun_or_skip()?;
    let path = std::env::var_os("PATH").unwrap();
    let found = |name| std::env::split_paths(&path).map(move |dir| dir.join(name));
    let Some(node) = found("node").find(|file| file.is_file()) else {
        skip("there is no Node on PATH");
        return None;
    };
    if ["/usr/bin/bun", "/bin/bun"]
        .iter()
        .any(|it| std::path::Path::new(it).exists())
    {
        skip("there is a Bun in /usr/bin or /bin");
        return None;
    }
    let bin = world.root().join("bin");
    std::fs::create_dir(&bin).unwrap();
    symlink(node, bin.join("node")).unwrap();
    let npm = format!(
        "#!/bin/sh\ntest \"$1\" = config && exit 1\nname=$(sed -n 's/.*\"@oven.\\(bun-[a-z0-9-]*\\)\".*/\\1/p' package.json 2>/dev/null)\n\
         if test -z \"$name\"; then mkdir -p node_modules/acme; cd node_modules/acme\n\
         echo '{{\"name\":\"acme\",\"version\":\"1.0.0\",\"type\":\"module\",\"main\":\"index.tsx\"}}' > package.json; cat > index.tsx <<'END'\n{UNDER}\nEND\n\
         exit; fi\necho fetched >> \"$TMPDIR/npm.log\"\n\
         mkdir -p node_modules/@oven/$name/bin && ln -s {} node_modules/@oven/$name/bin/bun\n",
        bun.display()
    );
    std::fs::write(bin.join("npm"), npm).unwrap();
    std::fs::set_permissions(bin.join("npm"), std::fs::Permissions::from_mode(0o755)).unwrap();
    Some(format!("{}:/usr/bin:/bin", bin.display()))
}

/// Bun is fetched only after the user agrees (`js.install = "ask"`, the default).
#[test]
fn bun_is_fetched_with_consent_only() {
    let world = World::new([done(), done()]);
    let Some(path) = path_without_bun(&world) else {
        return;
    };
    world.plugin("none", "export const None = async () => ({})");
    world.file("typed.tsx", UNDER);
    world.config(json!({ "plugin": ["./typed.tsx"] }));
    // In its sandbox npm writes only to the installation.
    let log = world
        .home()
        .join(".local/share/outrigger/bun/.installer/tmp/npm.log");
    for (answer, says, want) in [
        ("\n", "it was not to be fetched", "hi"),
        ("y\n", "installing bun@", "hi under bun"),
    ] {
        let mut person = Person::prepared(&world, &["hi"], |command| {
            command.env("PATH", &path).env_remove("OUTRIGGER_BUN");
        });
        person.sees("which is not here; fetch it from npm");
        assert!(!log.exists());
        person.types(answer);
        person.ends(0);
        assert!(person.screen().contains(says), "{}", person.screen());
        assert_eq!(world.mock.last().texts("user"), [want]);
    }
    assert_eq!(std::fs::read_to_string(log).unwrap(), "fetched\n");
}

#[test]
fn questions_asked_at_the_same_time_are_put_one_after_the_other() {
    let world = asking((1..=3).map(|n| bash(&format!("touch {n}.txt"))));
    let mut person = Person::at(&world, &["do it"]);
    for n in 1..=3 {
        assert!(
            wait_until(WAIT_TIMEOUT, || person.questions() == n),
            "{}",
            person.screen()
        );
        // Time for one more question, which must not come.
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(person.questions(), n, "one at a time:\n{}", person.screen());
        let ran = (1..=3)
            .filter(|n| world.path(&format!("{n}.txt")).exists())
            .count();
        assert!(ran < n, "what was not answered is not done");
        person.types("y\n");
    }
    person.ends(0);
    assert!(
        (1..=3).all(|n| world.path(&format!("{n}.txt")).exists()),
        "{}",
        person.screen()
    );
    world.verify();
}

/// "Always" for the first answers the second, which is skipped; the next typed line answers the third.
#[test]
fn a_question_that_needs_no_answer_any_more_is_passed_over() {
    let world = asking([
        bash("touch 1.txt"),
        bash("touch 2.txt"),
        call(
            "edit",
            json!({ "filePath": "hello.txt", "oldString": "hi", "newString": "ho" }),
        ),
    ]);
    world.config(json!({ "permission": { "edit": "ask" } }));
    let mut person = Person::at(&world, &["do it"]);
    // Tools ask in any order.
    let mut answered = 0;
    for _ in 0..2 {
        assert!(
            wait_until(WAIT_TIMEOUT, || person.questions() > answered),
            "{}",
            person.screen()
        );
        answered = person.questions();
        let screen = person.screen();
        let (asked, _) = screen.rsplit_once("? [y]es").unwrap_or_default();
        let is_bash = asked.ends_with("? run a command");
        person.types(if is_bash { "a\n" } else { "y\n" });
    }
    person.ends(0);
    assert_eq!(person.questions(), 2, "{}", person.screen());
    assert!(
        world.path("1.txt").exists() && world.path("2.txt").exists(),
        "{}",
        person.screen()
    );
    assert_eq!(world.read("hello.txt"), "ho there\n");
}

/// The second question is not open yet when the first is answered: a plugin is still being asked about it.
#[test]
fn always_covers_a_question_that_plugins_are_still_asked_about() {
    let world = asking([bash("touch 1.txt"), bash("touch 2.txt")]);
    world.plugin(
        "slow",
        "import { existsSync } from 'node:fs'
export const Slow = async ({ directory }) => ({ 'permission.ask': async (input) => {
  while (input.patterns[0] === 'touch 2.txt' && !existsSync(directory + '/1.txt')) await new Promise(r => setTimeout(r, 10))
} })",
    );
    let mut person = Person::at(&world, &["do it"]);
    person.sees("touch 1.txt");
    person.sees("? run a command?");
    person.types("a\n");
    person.ends(0);
    assert_eq!(person.questions(), 1, "{}", person.screen());
    assert!(world.path("2.txt").exists(), "{}", person.screen());
}

/// "Always" for a program by its path answers no rule about its name, whether given before the next question or while both are open.
#[test]
fn always_for_a_path_lifts_no_rule_about_the_name() {
    let calls = ["1.txt", "2.txt"].map(|it| bash(&format!("/usr/bin/touch {it}")));
    let [first, second] = calls.clone();
    for turns in [
        vec![turn([first]), turn([second]), done()],
        vec![turn(calls), done()],
    ] {
        let world = World::new(turns);
        world.config(json!({ "permission": { "bash": { "*": "ask", "touch *": "ask" } } }));
        let mut person = Person::at(&world, &["do it"]);
        for (n, answer) in [(1, "a\n"), (2, "y\n")] {
            assert!(
                wait_until(WAIT_TIMEOUT, || person.questions() == n),
                "{}",
                person.screen()
            );
            person.types(answer);
        }
        person.ends(0);
        let made = ["1.txt", "2.txt"].map(|it| world.path(it).exists());
        assert_eq!(made, [true, true], "{}", person.screen());
    }
}

#[test]
fn a_refusal_is_reported_to_the_model() {
    let world = asking([bash("touch ran.txt")]);
    let mut person = Person::at(&world, &["do it"]);
    person.sees(" command │ touch ran.txt\n");
    person.sees("? run a command? [y]es, [n]o");
    person.types("nope\n");
    person.ends(0);
    assert!(!world.path("ran.txt").exists());
    assert!(
        world.parts("tool")[0]["state"]["error"]
            .as_str()
            .unwrap()
            .contains("The user rejected permission")
    );
}

#[test]
fn what_is_typed_before_the_question_is_no_answer_to_it() {
    let world = asking([bash("sleep 0.3; touch ran.txt")]);
    world.plugin("slow", "export const S = async () => ({ 'chat.params': () => new Promise((r) => setTimeout(r, 500)) })\n");
    let mut person = Person::at(&world, &["do it"]);
    person.types("y\n");
    person.sees("? run a command");
    person.types("n\n");
    person.ends(0);
    assert!(!world.path("ran.txt").exists(), "{}", person.screen());
}

#[test]
fn ctrl_c_at_a_question_cancels_the_turn() {
    let world = asking([bash("touch 1.txt"), bash("touch 2.txt")]);
    let mut person = Person::at(&world, &["do it"]);
    person.sees("? run a command");
    person.interrupts();
    person.ends(130);
    assert!(!world.path("1.txt").exists() && !world.path("2.txt").exists());
    world.verify();
}

/// The terminal is gone, so nobody can agree.
#[test]
fn the_end_of_the_input_is_no() {
    let world = asking([bash("touch 1.txt"), bash("touch 2.txt")]);
    let mut person = Person::at(&world, &["do it"]);
    person.sees("? run a command");
    // Ctrl-D at the beginning of a line.
    person.types("\u{4}");
    person.ends(0);
    assert!(
        !world.path("1.txt").exists() && !world.path("2.txt").exists(),
        "{}",
        person.screen()
    );
}
