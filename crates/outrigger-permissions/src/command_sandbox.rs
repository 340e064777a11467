//! The sandbox of a shell command that may not do all that the user may (`tools.sandbox`, issue 18, item 5): what it may change, and
//! what in there, or in the home folder, is kept from it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use outrigger_config::Loaded;
use outrigger_config::settings::Profile;
pub use outrigger_protected_paths::Process;
use outrigger_protected_paths::restored::restore;
use outrigger_protected_paths::{self as protected_paths, git_files};
use outrigger_protocol::startup::{OF_AGENTS, STARTUP};
use outrigger_sandbox::{Calls, Loopback, Policy, SandboxError, private_tmp, which};
use outrigger_workspace::Folders;
use outrigger_workspace::Place;
use outrigger_workspace::git_policy;

use crate::home_files::HomeFiles;

/// Terminals, and memory that is shared by name.
const DEVICES: [&str; 3] = ["/dev/ptmx", "/dev/pts", "/dev/shm"];

/// Variables that name a proxy.
const PROXIES: [&str; 6] = [
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
];

/// Names that are tried for a temporary folder.
const NAMES: u32 = 1000;

/// The folder for temporary files of an agent's commands. It goes with the agent.
#[derive(Debug, Default)]
pub struct Temporary(OnceLock<PathBuf>);

impl Temporary {
    /// Made at the first call.
    ///
    /// # Errors
    /// The system's.
    pub fn folder(&self) -> io::Result<PathBuf> {
        if let Some(folder) = self.0.get() {
            return Ok(folder.clone());
        }
        let base = private_tmp::folder()?;
        let process = std::process::id();
        for number in 0..NAMES {
            // Short: sockets are made in there, and their paths are.
            let folder = base.join(format!("{process}-{number}"));
            match fs::DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => {
                    let kept = self.0.get_or_init(|| folder.clone()).clone();
                    if kept != folder {
                        fs::remove_dir(&folder)?;
                    }
                    return Ok(kept);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(folder) = self.0.get()
            && let Err(error) = fs::remove_dir_all(folder)
        {
            tracing::debug!("{} is not removed: {error}", folder.display());
        }
    }
}

/// Which services of this machine the commands of an agent reach: their own, those of `tools.ports`, and a proxy on this machine that the
/// environment names.
pub fn loopback(config: &Loaded) -> Loopback {
    let proxies = PROXIES.iter().filter_map(|name| {
        let value = std::env::var(name).ok()?;
        let (_, port) = value.trim_end_matches('/').rsplit_once(':')?;
        port.parse().ok()
    });
    let ports = config.settings.tools.ports.iter().copied();
    Loopback::new(ports.chain(proxies).collect())
}

/// Folder beside our own cache with the caches of commands.
const COMMAND_CACHES: &str = "outrigger-commands";

/// What the sandbox is made of.
pub struct Around<'a> {
    /// Settings of the sandbox and of tools.
    pub config: &'a Loaded,
    /// The project.
    pub place: &'a Place,
    /// The user's folders.
    pub folders: &'a Folders,
    /// The folder for temporary files.
    pub temporary: PathBuf,
    /// Services of this machine that it reaches.
    pub loopback: Loopback,
    /// How long it runs.
    pub process: Process,
}

impl Around<'_> {
    /// The policy under a profile that is narrower than `full`. `reads`: what may be read besides the system, the project and what may
    /// be changed; without it everything. Reads the disk: blocking.
    ///
    /// # Errors
    /// [`SandboxError::TooMany`].
    pub fn policy(
        &self,
        profile: Profile,
        reads: Option<Vec<PathBuf>>,
    ) -> Result<Policy, SandboxError> {
        let files = HomeFiles::of(self.folders, &self.config.settings.tools.secrets);
        let mut policy = Policy::system();
        let project = self.project();
        match reads {
            None => policy.read.push(PathBuf::from("/")),
            Some(reads) => policy.read.extend(reads.into_iter().chain(project.clone())),
        }
        policy.write.extend(DEVICES.map(PathBuf::from));
        policy.write.push(self.temporary.clone());
        policy.temporary = Some(self.temporary.clone());
        policy.own_memory = true;
        // Terminals of the user's would take what it writes, and give what the user types.
        policy.own_terminals = true;
        policy.loopback = Some(self.loopback.clone());
        if profile == Profile::WorkspaceWrite {
            policy.write.extend(project);
            let more = &self.config.settings.tools.write;
            policy.write.extend(more.iter().map(PathBuf::from));
            policy.write.extend(files.caches.iter().cloned());
            self.own_caches(&mut policy);
            self.keep(&mut policy, &files)?;
        }
        // The project itself may lie in there.
        let (folder, worktree) = (&self.place.directory, &self.place.worktree);
        let secrets = files.secrets.into_iter();
        let secrets = secrets.filter(|it| !folder.starts_with(it) && !worktree.starts_with(it));
        policy.hide.extend(secrets);
        policy.calls = Some(Calls {
            udp: true,
            ..Calls::default()
        });
        Ok(policy)
    }

    /// Caches that commands have to themselves: what lies in the user's is run as it is found (environments of `uvx`, what Bun and
    /// Deno made of a source), or is the same file as one in another project (Bun makes hard links), so there they change nothing.
    fn own_caches(&self, policy: &mut Policy) {
        let folder = self.folders.cache.with_file_name(COMMAND_CACHES);
        if std::fs::create_dir_all(&folder).is_ok() {
            let place = |name| OsString::from(folder.join(name));
            policy.variables = vec![
                ("UV_CACHE_DIR".into(), place("uv")),
                ("DENO_DIR".into(), place("deno")),
                ("BUN_INSTALL_CACHE_DIR".into(), place("bun")),
                ("BUN_RUNTIME_TRANSPILER_CACHE_PATH".into(), "0".into()),
            ];
            policy.write.push(folder);
        }
    }

    /// The folders of the project: where it is worked, the root, and the repository where that lies elsewhere. Never all there is.
    fn project(&self) -> Vec<PathBuf> {
        let mut all = vec![self.place.directory.clone(), self.place.worktree.clone()];
        all.extend(git_policy::stores(&self.place.worktree));
        all.retain(|folder| folder.parent().is_some());
        all
    }

    /// What in the folders that may be changed is not: what makes git or an agent run something, what runs at the next login, our program
    /// and the runtimes.
    fn keep(&self, policy: &mut Policy, files: &HomeFiles) -> Result<(), SandboxError> {
        let (folder, worktree) = (&self.place.directory, &self.place.worktree);
        protected_paths::share_in(&self.folders.data.join("running-commands"));
        protected_paths::keep(policy, [folder, worktree], &[], self.process)?;
        let mut all = files.startup.clone();
        for store in git_policy::stores(worktree) {
            all.extend(git_files::of_repository(&store));
        }
        let below = folder.ancestors().take_while(|it| it.starts_with(worktree));
        for folder in below.chain([worktree.as_path()]) {
            // Whole where they are there; where they are not, what of them runs something is not made.
            let agents = OF_AGENTS.iter().map(|name| folder.join(name));
            all.extend(agents.filter(|it| it.exists()));
            let startup = STARTUP.iter().map(|it| folder.join(it.path));
            // While something runs as long as this program, the user's editor makes them.
            let is_kept = |it: &PathBuf| self.process == Process::Command || it.exists();
            all.extend(startup.filter(is_kept));
        }
        all.extend(programs(self.config));
        let open: Vec<PathBuf> = policy
            .write
            .iter()
            .flat_map(|it| it.canonicalize())
            .collect();
        let is_open = |path: &Path| {
            open.iter()
                .any(|root| path.starts_with(root) && path != root)
        };
        let mut there = Vec::new();
        for path in all {
            match path.canonicalize() {
                Ok(real) if is_open(&real) => {
                    // The name of a link is not to be another's, either.
                    if is_open(&path) && path.is_symlink() {
                        policy.held.extend(path.parent().map(Path::to_path_buf));
                    }
                    there.push(real);
                }
                Ok(_) => {}
                Err(_) => policy
                    .absent
                    .extend(Some(placed(&path)).filter(|it| is_open(it))),
            }
        }
        protected_paths::hold(policy, there);
        // A folder that may be changed itself stays where it is.
        policy.held.retain(|it| !open.contains(it));
        policy.absent.sort();
        policy.absent.dedup();
        if self.process == Process::Command {
            restore(policy, worktree);
        }
        Ok(())
    }
}

/// Those of [`programs`] that lie in the project, where plugins and servers write, too.
pub fn programs_of_project(config: &Loaded, place: &Place) -> Vec<PathBuf> {
    let real = |path: &Path| path.canonicalize().ok();
    let roots = [&place.directory, &place.worktree];
    let roots: Vec<PathBuf> = roots.iter().filter_map(|it| real(it)).collect();
    let all = programs(config).into_iter();
    all.filter_map(|it| real(&it))
        .filter(|it| roots.iter().any(|root| it.starts_with(root)))
        .collect()
}

/// This program with what npm starts it by, and the runtimes of plugins, wherever they lie.
pub fn programs(config: &Loaded) -> Vec<PathBuf> {
    let js = &config.settings.js;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let named = [("bun", &js.bun), ("node", &js.node)];
    let named = named.into_iter().filter_map(|(name, set)| match set {
        Some(set) => Some(set.clone()),
        None => which(Path::new(name), &path),
    });
    let own = std::env::current_exe().ok();
    let launcher = own.as_deref().and_then(launcher);
    named.chain(own).chain(launcher).collect()
}

/// The script that starts this program where it was installed by npm: that of the package `outrigger`, which lies beside or around the
/// package of the platform (`node_modules/outrigger-linux-x64/bin/outrigger`).
fn launcher(program: &Path) -> Option<PathBuf> {
    let modules = program.ancestors().nth(3)?;
    let around = modules.parent()?;
    let found =
        [modules.join("outrigger"), around.to_owned()].map(|it| it.join("bin/outrigger.js"));
    let mut found = found.into_iter().filter(|it| it.is_file());
    found.next().filter(|_| modules.ends_with("node_modules"))
}

/// Where a name that is not there would be.
fn placed(path: &Path) -> PathBuf {
    let mut above = path.ancestors().skip(1);
    let there = above.find_map(|it| Some((it, it.canonicalize().ok()?)));
    match there {
        Some((above, real)) => real.join(path.strip_prefix(above).unwrap_or(path)),
        None => path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_folder_is_made_once_and_goes_with_its_agent() {
        let temporary = Temporary::default();
        let folder = temporary.folder().unwrap();
        assert_eq!(temporary.folder().unwrap(), folder);
        fs::write(folder.join("x"), "").unwrap();
        drop(temporary);
        assert!(!folder.exists());
    }
}
