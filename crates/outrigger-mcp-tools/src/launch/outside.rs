//! Starts a user's server in an empty folder instead of the project: if the project is not trusted, and in a trusted
//! project if the server would load code from it by name. In an untrusted project, files of it that the server names are
//! not run.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger_config::Loaded;
use outrigger_mcp::{Launch, LaunchRefusal, LaunchRequest};
use outrigger_permissions::reserved_paths::SERVER_FOLDERS;
use outrigger_sandbox::{Spawner, host_path, which};

use super::{ServerLauncher, TRUST, refusal};

/// Variables with the working directory of a process.
const STARTED_IN: [&str; 3] = ["PWD", "OLDPWD", "INIT_CWD"];
/// Parts of the names of variables with folders from which code is loaded.
const SEARCHED: [&str; 4] = ["PATH", "LIB", "PYTHON", "OPTIONS"];
/// Programs that run a folder given as an argument, or take code or settings from it.
const RUNS_FOLDERS: [&str; 33] = [
    "bun", "bunx", "cargo", "corepack", "deno", "dotnet", "env", "git", "go", "gradle", "java",
    "just", "lua", "make", "mvn", "node", "npm", "npx", "perl", "php", "pip", "pipx", "pnpm",
    "pnpx", "poetry", "pypy", "python", "ruby", "task", "tsx", "uv", "uvx", "yarn",
];
/// Subcommands of these programs that precede the folder to run.
const SUBCOMMANDS: [&str; 9] = [
    "dlx", "exec", "install", "r", "run", "start", "tool", "x", "--",
];

/// The start of a user's server outside the project.
pub(super) struct Outside<'a> {
    launcher: &'a ServerLauncher,
    request: &'a LaunchRequest,
    /// The folder in which the server would start otherwise.
    from: PathBuf,
    /// Whether the project is trusted. If so, arguments may name its files, as long as the server does not run them.
    is_trusted: bool,
}

impl<'a> Outside<'a> {
    pub(super) fn new(launcher: &'a ServerLauncher, request: &'a LaunchRequest) -> Self {
        Self {
            launcher,
            request,
            from: launcher.started_in(request),
            is_trusted: false,
        }
    }

    /// For a server that would load code by name from a trusted project.
    pub(super) fn of_trusted(launcher: &'a ServerLauncher, request: &'a LaunchRequest) -> Self {
        Self {
            is_trusted: true,
            ..Self::new(launcher, request)
        }
    }

    /// Whether the server runs something of the project by its path, so that it cannot be started elsewhere. Reads the disk.
    pub(super) fn names_project(&self) -> bool {
        let env = self.environment();
        env.and_then(|env| self.command(&env)).is_err()
    }

    fn command(&self, env: &[(OsString, OsString)]) -> Result<Vec<String>, LaunchRefusal> {
        self.request
            .command
            .iter()
            .enumerate()
            .map(|(at, word)| match at {
                0 => self.program(word, env),
                _ => self.argument(word, self.is_run(at)),
            })
            .collect()
    }

    pub(super) fn launch(&self, spawner: Spawner) -> Result<Launch, LaunchRefusal> {
        let env = self.environment()?;
        let command = self.command(&env)?;
        let is_elsewhere = self.request.cwd.is_some() && !self.holds(&self.from);
        if is_elsewhere {
            return Ok(Launch {
                spawner,
                command,
                cwd: self.from.clone(),
                env,
                held: None,
            });
        }
        let folder = self.folder().map_err(|error| {
            refusal(
                format!("cannot create an empty folder to start it in: {error}"),
                TRUST,
            )
        })?;
        Ok(Launch {
            spawner,
            command,
            cwd: folder.0.clone(),
            env,
            held: Some(Arc::new(folder)),
        })
    }

    fn holds(&self, path: &Path) -> bool {
        self.launcher.programs.holds(path) || path == self.launcher.location.directory
    }

    fn refused(&self, path: &Path) -> LaunchRefusal {
        let reason = format!(
            "it names {}, which is in the project, and the folder is not trusted",
            path.display()
        );
        refusal(reason, TRUST)
    }

    /// Returns the environment without the working directory, and without the project's folders in search paths.
    fn environment(&self) -> Result<Vec<(OsString, OsString)>, LaunchRefusal> {
        let mut env = Vec::new();
        for (name, value) in &self.request.env {
            let known = name.to_string_lossy();
            if STARTED_IN.contains(&known.as_ref()) {
                continue;
            }
            let mut value = value.clone();
            if known == "PATH" {
                let paths = std::env::split_paths(&value).filter(|it| {
                    it.is_absolute() && !self.holds(it) && !host_path::is_passed_over(it)
                });
                value = std::env::join_paths(paths).unwrap_or_default();
            } else {
                let is_searched = SEARCHED.iter().any(|it| known.contains(it));
                self.named(&value.to_string_lossy(), is_searched)?;
            }
            env.push((name.clone(), value));
        }
        Ok(env)
    }

    fn program(&self, word: &str, env: &[(OsString, OsString)]) -> Result<String, LaunchRefusal> {
        if word.contains('/') {
            let path = self.absolute(word);
            return if self.holds(&path) {
                Err(self.refused(&path))
            } else {
                Ok(path.display().to_string())
            };
        }
        let path = env.iter().rev().find(|(name, _)| name == "PATH");
        let path = path.map_or(OsStr::new(""), |(_, path)| path);
        match which(word, path) {
            Some(found) if self.holds(&found) => Err(self.refused(&found)),
            _ => Ok(word.to_owned()),
        }
    }

    /// Returns whether the folder at this position of the command would be run: it follows a program that runs folders, with only
    /// flags and subcommands between.
    fn is_run(&self, at: usize) -> bool {
        let before = self.request.command.get(..at).unwrap_or_default();
        let is_between =
            |word: &String| word.starts_with('-') || SUBCOMMANDS.contains(&word.as_str());
        let last = before.iter().rev().find(|word| !is_between(word));
        last.is_some_and(|word| {
            let name = word.rsplit('/').next().unwrap_or(word).to_ascii_lowercase();
            let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            RUNS_FOLDERS.contains(&name)
        })
    }

    /// Makes a relative argument absolute. `is_run`: a folder is run.
    fn argument(&self, word: &str, is_run: bool) -> Result<String, LaunchRefusal> {
        let is_relative =
            matches!(word, "." | "..") || word.starts_with("./") || word.starts_with("../");
        let path = self.absolute(word);
        // Code that does not exist yet may exist when it is read.
        let is_whole = is_relative || word.starts_with('/');
        let is_coming = is_whole
            && !word.contains(char::is_whitespace)
            && !path.exists()
            && (is_run || Loaded::is_program(&path));
        let is_file = path.is_file() && (!self.is_trusted || is_run || Loaded::is_program(&path));
        let counts = is_file || is_run && path.is_dir() || is_coming;
        if (is_relative || word.contains('/')) && counts && self.holds(&path) {
            return Err(self.refused(&path));
        }
        // `sh -c "cd /project; ./x"`
        let mut words = word.split(|c: char| !c.is_alphanumeric());
        let enters = words.any(|it| ["cd", "chdir", "pushd"].contains(&it));
        self.named(word, is_run || enters)?;
        Ok(if is_relative {
            path.display().to_string()
        } else {
            word.to_owned()
        })
    }

    /// Checks that a text contains no path of a file in the project and, if `folders` is set, of no folder.
    fn named(&self, text: &str, folders: bool) -> Result<(), LaunchRefusal> {
        let home = self.launcher.folders.home.display().to_string();
        let text = text.replace("${HOME}", &home).replace("$HOME", &home);
        let is_path = |c: char| c.is_alphanumeric() || "/._-+@~%#".contains(c);
        for piece in text.split(|c: char| !is_path(c)).chain([text.as_str()]) {
            let path = match piece.strip_prefix("~/") {
                Some(rest) => self.launcher.folders.home.join(rest),
                None => PathBuf::from(piece),
            };
            // Code that does not exist yet may exist when it is read.
            let counts = if path.is_dir() {
                folders
            } else {
                folders || !self.is_trusted && path.is_file() || Loaded::is_program(&path)
            };
            if path.is_absolute() && counts && self.holds(&path) {
                return Err(self.refused(&path));
            }
        }
        Ok(())
    }

    fn absolute(&self, word: &str) -> PathBuf {
        outrigger_stdx::path::normalize(&self.from.join(word))
    }

    /// Creates the folder below our data or, if that is in the project, in the temporary folder. A search for settings in the folders
    /// above it finds the user's own.
    fn folder(&self) -> io::Result<Folder> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let directory = &self.launcher.location.directory;
        let data = self.launcher.folders.data.join(SERVER_FOLDERS);
        let is_within = |it: &PathBuf| it.starts_with(directory) || self.holds(it);
        let base = [data, std::env::temp_dir()]
            .into_iter()
            .find(|it| !is_within(it))
            .ok_or(io::ErrorKind::NotFound)?;
        clean(&base);
        let process = std::process::id();
        for _ in 0..1000 {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let folder = base.join(format!("outrigger-server-{process}-{count}"));
            match fs::DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Ok(Folder(folder)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

/// Removes the folders of processes that were killed.
fn clean(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let process = name.strip_prefix("outrigger-server-");
        let process = process.and_then(|it| it.split('-').next());
        let is_gone = |it: &str| it.parse::<u32>().is_ok() && !Path::new("/proc").join(it).exists();
        if process.is_some_and(is_gone) {
            let _ = outrigger_files::remove_tree(&entry.path());
        }
    }
}

/// Removed with the server.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = outrigger_files::remove_tree(&self.0) {
            tracing::debug!("{} is not removed: {error}", self.0.display());
        }
    }
}
