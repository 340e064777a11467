//! The environment of an executor's process: the command sandbox with the required access to the user's home folder, and its
//! streams.

use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use outrigger_protected_paths as protected_paths;
use outrigger_sandbox::{
    Child, Policy, RealPaths, SandboxError, Spawner, Spec, Stdio, env, host_path,
};

use crate::access::Access;
use crate::executor::Executor;
use crate::step::Task;

/// Makes a program read from a socket and print to it. Its descendants could open a pipe by its name in `/proc` to answer our
/// questions and to write in its place; a socket they cannot.
const JOIN: &str = r#"exec "$@" 0<&3 1>&3 3>&-"#;

/// The environment of the process.
pub struct ProcessContext {
    /// Starts it.
    pub spawner: Spawner,
    /// The command sandbox, widened by what the executor needs; `None` if nothing is sandboxed.
    pub policy: Option<Policy>,
    /// The environment of commands.
    pub env: Vec<(OsString, OsString)>,
    /// The user's home folder.
    pub home: PathBuf,
    /// The project is trusted.
    pub is_trusted: bool,
}

/// Starts the process in the command sandbox, with its own folders.
pub(crate) async fn start(
    executor: &Executor,
    command: &[String],
    task: &Task,
    place: ProcessContext,
) -> Result<Child, String> {
    let access = executor.access(&place.home);
    if executor.program() == "gemini" {
        crate::gemini::claim(&place.home, &task.folder)
            .map_err(|error| format!("cannot create its folder in ~/.gemini/history: {error}"))?;
    }
    let own = env::allow_list(access.variables);
    let path = own
        .iter()
        .find(|(name, _)| name == "PATH")
        .map(|(_, value)| value.clone())
        .unwrap_or_default();
    let (name, arguments) = command.split_first().ok_or("there is no command")?;
    // Not a file that commands of a model could have put there.
    let program = if name.contains('/') {
        Some(task.folder.join(name)).filter(|it| it.exists())
    } else {
        host_path::which_of_host(name, path)
    };
    let program =
        program.ok_or_else(|| format!("`{name}` is not installed: {}", executor.install_hint()))?;
    let leads = access
        .leads
        .iter()
        .map(|(name, value)| (OsString::from(name), value.clone()));
    let mut spec = Spec::new("/bin/sh")
        .args(["-c", JOIN, "sh"])
        .args([program])
        .args(arguments)
        .cwd(&task.folder)
        .vars(place.env)
        .vars(own)
        .vars(leads)
        .var("TERM", "dumb")
        .var("NO_COLOR", "1")
        .stderr(Stdio::Pipe)
        .channel()
        .label(format!("executor {executor}"));
    spec.policy = place.policy.map(|policy| widened(policy, &access));
    let child = place.spawner.spawn(spec).await;
    child.map_err(|error: SandboxError| format!("`{name}` cannot be started: {error}"))
}

/// Widens the sandbox by what the executor needs of the home folder. Files there that make something run later stay protected.
fn widened(mut policy: Policy, access: &Access) -> Policy {
    access.write.iter().for_each(|it| make_folder(it));
    access.made.iter().for_each(|it| make_file(it));
    let files = access
        .files
        .iter()
        .chain(&access.made)
        .filter(|it| it.is_file());
    let write: Vec<PathBuf> = access.write.iter().chain(files).cloned().collect();
    let open = access.read.iter().chain(&write);
    let is_open = |hidden: &PathBuf| open.clone().any(|it| hidden.starts_with(it));
    policy.hide.retain(|hidden| !is_open(hidden));
    let hide = access.hide.iter().filter(|it| it.exists());
    policy.hide.extend(hide.cloned());
    policy.write.extend(write);
    // Relevant for folders that are writable as a whole. A protected one that an agent would create itself exists already, and is
    // empty.
    let keep = access
        .keep
        .iter()
        .filter(|it| policy.write.iter().any(|open| it.starts_with(open)));
    let keep: Vec<PathBuf> = keep.cloned().collect();
    let is_folder = |it: &&PathBuf| it.extension().is_none() && !it.ends_with(".env");
    keep.iter().filter(is_folder).for_each(|it| make_folder(it));
    let (there, absent): (Vec<_>, Vec<_>) = keep.into_iter().partition(|it| it.exists());
    protected_paths::hold(&mut policy, there, &mut RealPaths::default());
    policy.absent.extend(absent);
    policy
}

fn make_folder(folder: &Path) {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    if let Err(error) = made {
        tracing::debug!("cannot create {}: {error}", folder.display());
    }
}

fn make_file(file: &Path) {
    let mut options = OpenOptions::new();
    let made = options.write(true).create_new(true).mode(0o600).open(file);
    if let Err(error) = made.map(drop) {
        tracing::debug!("cannot create {}: {error}", file.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what each may write to below a home folder, with the project elsewhere.
    fn open(executor: &str, home: &Path) -> Policy {
        let executor: Executor = executor.parse().unwrap();
        let policy = Policy {
            hide: vec![
                home.join(".claude/.credentials.json"),
                home.join(".local/share/keyrings"),
            ],
            ..Policy::default()
        };
        widened(policy, &executor.access(home))
    }

    #[test]
    fn what_an_agent_reads_at_its_start_is_not_written_to() {
        let home = std::env::temp_dir().join(format!("outrigger-place-{}", std::process::id()));
        for folder in [
            ".claude/sessions",
            ".codex",
            ".gemini/later",
            ".local/share/opencode",
        ] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        for (executor, names) in [
            (
                "claude",
                &[
                    ".claude/local/claude",
                    ".claude/shell-snapshots/a.sh",
                    ".claude/session-env/a",
                    ".claude/status.sh",
                    ".claude/settings.json",
                ][..],
            ),
            (
                "codex",
                &[
                    ".codex/.env",
                    ".codex/config.toml",
                    ".codex/shell_snapshots/a.sh",
                    ".codex/tmp/arg0",
                    ".codex/state_5.sqlite",
                ][..],
            ),
            (
                "acp:opencode acp",
                &[
                    ".local/share/opencode/opencode.db",
                    ".local/share/opencode/opencode.db-wal",
                    ".local/share/opencode/bin/x",
                    ".cache/opencode/node_modules/x",
                    ".local/share/opencode/snapshot/x/config",
                ][..],
            ),
            ("acp:./opencode", &[".local/share/opencode/log"][..]),
            (
                "acp:./systemd",
                &[".local/share/systemd/user/x.service"][..],
            ),
            ("acp:uv x", &[".local/share/uv/x", ".cache/uv/x"][..]),
        ] {
            let policy = open(executor, &home);
            for name in names {
                let path = home.join(name);
                let is_open = policy.write.iter().any(|it| path.starts_with(it));
                assert!(!is_open, "{executor} {name}");
            }
        }
        let sessions = home.join(".claude/sessions");
        assert!(open("claude", &home).hide.contains(&sessions));
        let gemini = open("gemini", &home);
        for name in [
            "acknowledgments",
            "antigravity",
            "commands",
            "extensions",
            "history",
            // From a future version.
            "later",
            "tmp/bin",
        ] {
            let path = home.join(".gemini").join(name);
            assert!(gemini.read_only.contains(&path), "{name}");
        }
        let absent = home.join(".gemini/trusted_hooks.json");
        assert!(gemini.absent.contains(&absent));
        let keyrings = home.join(".local/share/keyrings");
        assert!(open("acp:./keyrings", &home).hide.contains(&keyrings));
        std::fs::remove_dir_all(home).unwrap();
    }
}
