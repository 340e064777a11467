//! A program of the user that takes over the terminal for a while, such as an editor.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitStatus};

use rustix::process::{Pid, Signal, WaitOptions, getpgrp, kill_process_group, waitpid};
use rustix::stdio::stdin;

use crate::fs::host_path;

/// Runs `line` through the shell with one more argument, in the foreground of this process's terminal, and waits until it has ended.
///
/// It has its own process group, so that Ctrl-C reaches the program and not this process. If it suspends itself, it is resumed,
/// since no shell could do so. It runs with the user's rights and outside every sandbox, so `line` must come from the user.
///
/// # Errors
/// There is no shell, or no terminal.
pub fn foreground(line: &str, argument: &Path) -> io::Result<ExitStatus> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = getpgrp();
    let child = command(line, argument, &path).spawn()?;
    let ignored = IgnoredStops::new();
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let Some(group) = group else {
        return Err(io::Error::other("a process without a number"));
    };
    let status = rustix::termios::tcsetpgrp(stdin(), group)
        .map_err(io::Error::from)
        .and_then(|()| {
            // It may have read before it owned the terminal, and have been stopped for that.
            let _ = kill_process_group(group, Signal::CONT);
            wait(group)
        });
    let _ = rustix::termios::tcsetpgrp(stdin(), own);
    drop(ignored);
    status
}

/// Programs are not looked up in folders that commands of a model can write: an activated environment of the project comes first on
/// `PATH`.
#[expect(clippy::disallowed_methods, reason = "this is where processes start")]
fn command(line: &str, argument: &Path, path: &OsStr) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .arg("-c")
        .arg(format!("{line} \"$1\""))
        .arg("sh")
        .arg(argument)
        .env("PATH", host_path::without(path))
        .process_group(0);
    command
}

fn wait(group: Pid) -> io::Result<ExitStatus> {
    loop {
        match waitpid(Some(group), WaitOptions::UNTRACED) {
            Ok(Some((pid, status))) if status.stopped() => {
                let _ = kill_process_group(pid, Signal::CONT);
            }
            Ok(Some((_, status))) => return Ok(ExitStatus::from_raw(status.as_raw())),
            Ok(None) => {}
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Ignores SIGTTOU while it exists: taking the terminal back from another group would stop this process.
struct IgnoredStops(libc::sighandler_t);

impl IgnoredStops {
    #[expect(
        unsafe_code,
        reason = "signal: the disposition of one signal, no handler"
    )]
    fn new() -> Self {
        // SAFETY: no handler is set, so no code of ours runs in one.
        Self(unsafe { libc::signal(libc::SIGTTOU, libc::SIG_IGN) })
    }
}

impl Drop for IgnoredStops {
    #[expect(
        unsafe_code,
        reason = "signal: the disposition of one signal, no handler"
    )]
    fn drop(&mut self) {
        // SAFETY: restores the previous handler.
        unsafe { libc::signal(libc::SIGTTOU, self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_editor_is_taken_from_where_commands_write() {
        let project = tempfile::tempdir().unwrap();
        let bin = project.path().join(".venv/bin");
        host_path::pass_over([project.path().to_owned()]);
        let path = std::env::join_paths([bin.as_path(), Path::new("/usr/bin")]).unwrap();
        let command = command("vi", Path::new("prompt.md"), &path);
        let given: Vec<_> = command
            .get_envs()
            .filter(|(name, _)| *name == "PATH")
            .collect();
        assert_eq!(given, [(OsStr::new("PATH"), Some(OsStr::new("/usr/bin")))]);
    }
}
