//! Runs a shell, and compares what it does with what was parsed from the line.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use outrigger_shell_parse::{Command, UNKNOWN, Word, read};
use tempfile::TempDir;

use crate::trace::{self, Opened, Seen};

/// Programs in the lines that do nothing.
const STUBS: &[&str] = &[
    "a", "b", "x", "touch", "git", "ls", "rm", "grep", "id", "npm", "ünï", "sudo", "doas", "pwn",
    "tee", "é", "more", "pager",
];
/// Programs that start others, and one that reads the files named by its arguments.
const REAL: &[&str] = &[
    "cat", "env", "nice", "nohup", "timeout", "setsid", "stdbuf", "xargs", "find", "ionice",
    "chrt", "taskset", "bash", "sh", "dash", "true", "echo", "strace", "setpriv",
];

pub(crate) struct Shell {
    pub(crate) name: &'static str,
    program: PathBuf,
    room: TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Shell {
    /// Returns `None` if the shell is missing or cannot be traced.
    pub(crate) fn new(name: &'static str) -> Option<Self> {
        let find = |name: &str| {
            let folders = ["/usr/bin", "/bin", "/usr/local/bin"].into_iter();
            let mut paths = folders.map(|folder| PathBuf::from(folder).join(name));
            paths.find(|path| path.is_file())
        };
        let program = find(name)?;
        let room = TempDir::new().ok()?;
        for folder in ["bin", "home", "deep/er/work/sub"] {
            std::fs::create_dir_all(room.path().join(folder)).ok()?;
        }
        let bin = room.path().join("bin");
        // Copies, because a line may write to the program it names.
        for stub in STUBS {
            std::fs::copy("/bin/true", bin.join(stub)).ok()?;
        }
        std::fs::copy("/bin/true", room.path().join("deep/er/work/sub/touch")).ok()?;
        let folders = ["", "bin", "home", "deep", "deep/er", "deep/er/work"];
        for folder in folders {
            let open = std::fs::Permissions::from_mode(if folder == "bin" { 0o755 } else { 0o777 });
            std::fs::set_permissions(room.path().join(folder), open).ok()?;
        }
        for program in REAL {
            if let Some(path) = find(program) {
                symlink(path, bin.join(program)).ok()?;
            }
        }
        let variables = vec![
            ("PATH", bin.display().to_string()),
            ("HOME", room.path().join("home").display().to_string()),
            ("LC_ALL", "C.UTF-8".to_owned()),
            // The worst value a variable may have.
            ("v", "a[$(touch pwn)]".to_owned()),
            ("w", "-exec touch {} ;".to_owned()),
            ("e", String::new()),
            ("o", "-v".to_owned()),
            ("t", "touch y".to_owned()),
        ];
        let shell = Self {
            name,
            program,
            room,
            variables,
        };
        let seen = shell.trace("a 1; b > c < c; cat d")?;
        let opened = |name: &str, by_shell: bool| {
            let mut opened = seen.opened.iter();
            opened.any(|it| it.file == name && it.by_shell == by_shell)
        };
        let is_complete =
            seen.executed.len() == 3 && seen.written.iter().filter(|it| !is_own(it)).eq(["c"]);
        assert!(
            is_complete && opened("c", true) && opened("d", false),
            "{name} is traced, and not all of it: {seen:?}"
        );
        Some(shell)
    }

    fn trace(&self, line: &str) -> Option<Seen> {
        let folder = self.room.path().join("deep/er/work");
        std::fs::create_dir_all(&folder).ok()?;
        trace::run(&self.program, line, &folder, &self.variables)
    }

    /// Creates the folder where lines run, in its initial state.
    fn folder(&self) -> String {
        self.room.path().display().to_string()
    }

    /// Returns a program that the shell ran and that was not found in a line that is not understood, but claimed to be read to its
    /// end.
    pub(crate) fn hides(&self, line: &str) -> Option<String> {
        let read = read(line);
        let commands = &read.commands;
        let seen = self.trace(line)?;
        let home = self.room.path().join("home").display().to_string();
        let is_found = |words: &&Vec<String>| {
            commands.iter().any(|command| is(command, words, &home))
                || is_of_none(words, commands)
                || is_of_git(words)
        };
        let hidden = seen.executed.iter().find(|words| !is_found(words))?;
        Some(format!("executed {hidden:?}; found {commands:?}"))
    }

    /// Returns what the shell did beyond what was parsed. Also `None` for lines that no reader claims to understand.
    pub(crate) fn disagrees(&self, line: &str) -> Option<String> {
        if !may_be_run(line) {
            return None;
        }
        let commands = read(line).commands;
        let seen = self.trace(line)?;
        let home = self
            .variables
            .iter()
            .find(|(name, _)| *name == "HOME")?
            .1
            .clone();
        for words in &seen.executed {
            let is_read = commands.iter().any(|command| is(command, words, &home));
            if !is_read && !is_of_none(words, &commands) && !is_of_git(words) {
                return Some(format!("executed {words:?}; read {commands:?}"));
            }
        }
        let files = || commands.iter().flat_map(|it| &it.files);
        let written: Vec<String> = files()
            .filter(|it| it.written)
            .map(|it| value(&it.name, &home))
            .collect();
        for file in &seen.written {
            if !is_own(file) && !written.contains(file) {
                return Some(format!("wrote {file:?}; read {commands:?}"));
            }
        }
        let redirected: Vec<String> = files().map(|it| value(&it.name, &home)).collect();
        for Opened { file, by_shell } in &seen.opened {
            let of_system = file.starts_with('/') && !file.starts_with(&self.folder());
            // `find` opens the folder it starts in.
            let is_folder = matches!(file.as_str(), "." | "..");
            // The shell opens a file whose format the system cannot run.
            let runs = |it: &Command| {
                it.program()
                    .is_some_and(|it| *by_shell && file.ends_with(at_home(it, &home).as_str()))
            };
            // A shell started with a script's name opens that script.
            let reads = |it: &Command| {
                let name = it.program().unwrap_or_default().rsplit('/').next();
                !by_shell || name.is_some_and(|it| trace::SHELLS.contains(&it))
            };
            let named =
                |it: &Command| reads(it) && it.words.iter().any(|it| names(it, file, &home));
            let is_named =
                redirected.contains(file) || commands.iter().any(|it| runs(it) || named(it));
            if !of_system && !is_folder && !is_own(file) && !is_named {
                return Some(format!("opened {file:?}; read {commands:?}"));
            }
        }
        None
    }
}

/// Checks whether a file is one of the shell's own: long here-documents are written to one.
fn is_own(file: &str) -> bool {
    matches!(file, "/dev/null" | "/dev/tty")
        || file.starts_with("/tmp/sh-thd")
        || file.starts_with("/tmp/zsh")
        || file.ends_with("/home/.zshenv")
}

/// Checks whether a program is one that zsh runs for a command with only redirections (`NULLCMD`, `READNULLCMD`): it prints or
/// writes the redirected files, and the command needs approval.
fn is_of_none(words: &[String], commands: &[Command]) -> bool {
    let is_printer = match words {
        [program] => {
            let name = program.rsplit('/').next().unwrap_or_default();
            matches!(name, "cat" | "more" | "pager")
        }
        _ => false,
    };
    let is_none = |it: &Command| match it.words.as_slice() {
        [] => !it.inert,
        [word] => word.raw == "time",
        _ => false,
    };
    is_printer && commands.iter().any(is_none)
}

/// Checks whether a program is one that git looks up as its subcommand.
fn is_of_git(words: &[String]) -> bool {
    let mut names = words.first().into_iter().flat_map(|it| it.rsplit('/'));
    names.any(|it| it.starts_with("git-"))
}

/// Checks whether a program's word names a file: alone, or after an option.
fn names(word: &Word, file: &str, home: &str) -> bool {
    let text = value(word, home);
    // It may be several words.
    let inner = word
        .raw
        .strip_prefix('"')
        .and_then(|it| it.strip_suffix('"'));
    let is_quoted = inner.is_some_and(|inner| !inner.contains('"'));
    if text.contains(UNKNOWN) && !is_quoted {
        return true;
    }
    let behind = match text.split_once('=') {
        Some((_, rest)) if text.starts_with("--") => Some(rest),
        _ if text.starts_with('-') => text.get(2..),
        _ => None,
    };
    let mut texts = [Some(text.as_str()), behind].into_iter().flatten();
    texts.any(|text| fits(text.as_bytes(), file.as_bytes()))
}

/// Checks whether a line is understood and harmless here: it ends no processes, and names no file outside of its folder. As root
/// it also runs as `nobody`.
pub(crate) fn may_be_run(line: &str) -> bool {
    let read = read(line);
    read.doubt.is_none() && is_harmless(line, &read.commands)
}

/// Checks whether a line is harmless here, and not understood, but claimed to be read to its end. Loops may not end.
pub(crate) fn is_read_to_its_end(line: &str) -> bool {
    let read = read(line);
    let loops = ["while", "until", "for ((;", "select"];
    // Nor do programs that the line wrote, or whose text is that of a file.
    let mut names = read.commands.iter().filter_map(Command::program);
    let scripts = names.any(|it| matches!(it, "." | "source") || it.contains('/'));
    // What the environment has in a variable is not the line's; the reader knows only what the line assigns.
    let evaluates = ["((", "-eq", "-v ", "let ", "$["]
        .iter()
        .any(|it| line.contains(it));
    let of_environment = evaluates && ["v=", "v+="].iter().any(|it| line.contains(it));
    read.doubt.is_some()
        && !of_environment
        && !read.missed
        && !scripts
        && !loops.iter().any(|it| line.contains(it))
        && is_harmless(line, &read.commands)
}

fn is_harmless(line: &str, commands: &[Command]) -> bool {
    let away = |word: &Word| {
        let text = word.value.as_str();
        text != "/dev/null"
            && (text.starts_with('/') || text.contains("..") || text.contains("/dev/"))
    };
    let harmful = |command: &Command| {
        let name = command
            .program()
            .unwrap_or_default()
            .rsplit('/')
            .next()
            .unwrap_or_default();
        // A login shell sets another PATH, to programs that do something.
        let login = |word: &Word| word.value.starts_with('-') && word.value.contains('l');
        let line = |word: &Word| word.value.starts_with('-') && word.value.contains('c');
        let mut words = command.words.iter();
        // Nor can a script be compared.
        let shell = matches!(name, "bash" | "sh" | "dash");
        let other = shell && (words.clone().any(login) || !words.any(line));
        other
            || matches!(name, "kill" | "suspend" | "wait" | "ulimit")
            || command.words.iter().any(away)
            || command.files.iter().any(|file| away(&file.name))
    };
    !line.is_empty() && !commands.iter().any(harmful)
}

fn at_home(text: &str, home: &str) -> String {
    match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
        _ => text.to_owned(),
    }
}

/// Returns the value of a word with the home folder inserted; a `~` in quotes stays.
fn value(word: &Word, home: &str) -> String {
    let is_home = ["~", "$HOME", "${HOME}", "\"$HOME", "\"${HOME}"];
    if is_home.iter().any(|it| word.raw.starts_with(it)) {
        at_home(&word.value, home)
    } else {
        word.value.clone()
    }
}

/// Checks whether a command may be what was executed with these words.
fn is(command: &Command, words: &[String], home: &str) -> bool {
    let (Some(program), Some((executed, arguments))) = (command.program(), words.split_first())
    else {
        return false;
    };
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let values = command.words.get(1..).unwrap_or_default().iter();
    let read: Vec<String> = values.map(|word| value(word, home)).collect();
    name(&at_home(program, home)) == name(executed)
        && fits(read.join(" ").as_bytes(), arguments.join(" ").as_bytes())
}

/// Checks whether a text matches a parsed one. Unknown parts match any run of bytes, and an unknown word may be absent.
fn fits(read: &[u8], text: &[u8]) -> bool {
    let mut row = vec![true];
    row.resize(text.len() + 1, false);
    for (i, byte) in read.iter().enumerate() {
        let unknown = *byte == UNKNOWN as u8;
        let beside = |at: Option<usize>| at.and_then(|at| read.get(at)) == Some(&(UNKNOWN as u8));
        // The space next to an unknown word is optional, too.
        let optional = *byte == b' ' && (beside(i.checked_sub(1)) || beside(Some(i + 1)));
        let mut next = vec![false; row.len()];
        for t in 0..row.len() {
            let same = t > 0 && row[t - 1] && text[t - 1] == *byte;
            let any = unknown && (row[t] || t > 0 && next[t - 1]);
            next[t] = same || any || (optional && row[t]);
        }
        row = next;
    }
    row.last() == Some(&true)
}
