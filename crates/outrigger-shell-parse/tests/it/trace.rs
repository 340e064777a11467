//! What a shell does with a line, as seen by `strace`.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// The recorded events.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The executed programs with their arguments, except the shell itself.
    pub(crate) executed: Vec<Vec<String>>,
    /// Files that a shell opened for writing.
    pub(crate) written: Vec<String>,
    /// Files opened for reading, including those of the system.
    pub(crate) opened: Vec<Opened>,
}

/// A file opened for reading.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: String,
    /// Opened by a shell, not by a program it started.
    pub(crate) by_shell: bool,
}

const CALLS: &str = "trace=execve,execveat,open,openat,openat2,creat,clone,clone3,fork,vfork";
/// A user that owns nothing.
const NOBODY: &str = "65534";
pub(crate) const SHELLS: [&str; 4] = ["bash", "sh", "dash", "zsh"];

pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Runs `shell -c line` in a folder. Returns `None` if nothing could be recorded.
#[expect(
    clippy::disallowed_methods,
    reason = "a tracer around a shell, of a test of what shells do"
)]
pub(crate) fn run(
    shell: &Path,
    line: &str,
    folder: &Path,
    variables: &[(&str, String)],
) -> Option<Seen> {
    let record = folder.parent()?.join("record");
    // As root, a line runs as `nobody`: a generated line may name any file.
    let mut command = Command::new("/usr/bin/timeout");
    command.args(["-s", "KILL", "10"]);
    if is_root() {
        let nobody = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY];
        command
            .args(nobody)
            .args(["--clear-groups", "--no-new-privs"]);
    }
    command.args([
        "strace",
        "-f",
        "-qq",
        "-xx",
        "-s",
        "100000",
        "--seccomp-bpf",
    ]);
    command.args(["-e", CALLS, "-e", "signal=none", "-o"]);
    command.arg(&record).arg(shell).arg("-c").arg(line);
    command.env_clear().current_dir(folder);
    for (name, value) in variables {
        command.env(name, value);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().ok()?;
    let text = std::fs::read_to_string(&record).ok()?;
    let _ = std::fs::remove_file(&record);
    (!text.is_empty()).then(|| read(&text))
}

fn read(text: &str) -> Seen {
    let mut seen = Seen::default();
    let mut is_shell: HashMap<&str, bool> = HashMap::new();
    // Whether a program that is still starting is a shell.
    let mut starting: HashMap<&str, bool> = HashMap::new();
    let mut first = true;
    for line in text.lines() {
        let Some((process, rest)) = line.split_once(' ') else {
            continue;
        };
        let rest = rest.trim_start();
        let Some((call, arguments)) = rest.split_once('(') else {
            if rest.contains("exec") {
                let started = starting.remove(process).filter(|_| !rest.contains("= -1"));
                is_shell.extend(started.map(|is| (process, is)));
            } else if let Some((_, child)) = rest.rsplit_once("= ") {
                // `<... clone resumed>…) = 123`
                let parent = is_shell.get(process).copied().unwrap_or(true);
                is_shell.entry(child.trim()).or_insert(parent);
            }
            continue;
        };
        match call {
            "execve" | "execveat" => {
                let (before, after) = arguments.split_once('[').unwrap_or((arguments, ""));
                let program = strings(before).into_iter().next().unwrap_or_default();
                let list = after.split_once(']').map_or(after, |(list, _)| list);
                let name = program.rsplit('/').next().unwrap_or_default().to_owned();
                if !std::mem::take(&mut first) {
                    let mut words = strings(list);
                    if let Some(word) = words.first_mut() {
                        program.clone_into(word);
                    }
                    seen.executed.push(words);
                }
                let is = SHELLS.contains(&name.as_str());
                if line.contains("<unfinished") {
                    starting.insert(process, is);
                } else if !line.contains("= -1") {
                    is_shell.insert(process, is);
                }
            }
            "open" | "openat" | "openat2" | "creat" => {
                let writes = call == "creat"
                    || ["O_WRONLY", "O_RDWR", "O_CREAT"]
                        .iter()
                        .any(|it| arguments.contains(it));
                let by_shell = is_shell.get(process).copied().unwrap_or(true);
                let file = strings(arguments).into_iter().next();
                // A file opened relative to an open folder is a library's, or found by a program that reads folders.
                let is_named = call == "open" || arguments.starts_with("AT_FDCWD");
                let is_folder = arguments.contains("O_DIRECTORY");
                if !writes && is_named && !is_folder {
                    seen.opened
                        .extend(file.map(|file| Opened { file, by_shell }));
                } else if writes && by_shell {
                    seen.written.extend(file);
                }
            }
            _ => {
                if let Some((_, child)) = rest.rsplit_once("= ") {
                    let parent = is_shell.get(process).copied().unwrap_or(true);
                    is_shell.entry(child.trim()).or_insert(parent);
                }
            }
        }
    }
    seen
}

/// Returns the strings in the arguments, which are in hexadecimal digits.
fn strings(text: &str) -> Vec<String> {
    text.split('"')
        .skip(1)
        .step_by(2)
        .map(|part| {
            let bytes: Vec<u8> = part
                .split("\\x")
                .skip(1)
                .filter_map(|it| u8::from_str_radix(it, 16).ok())
                .collect();
            String::from_utf8_lossy(&bytes).into_owned()
        })
        .collect()
}
