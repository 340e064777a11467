//! The sandbox of a shell command that may not do all that the user may (`tools.sandbox`, issue 18, item 5): what it may change, and
//! what in there, or in the home folder, is kept from it.

pub mod network;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use outrigger_config::Loaded;
use outrigger_config::settings::{Profile, Sandbox};
pub use outrigger_protected_paths::Process;
use outrigger_protected_paths::restored::restore;
use outrigger_protected_paths::{self as protected_paths, git_files};
use outrigger_protocol::startup::{OF_AGENTS, STARTUP};
use outrigger_sandbox::{Calls, Loopback, Policy, RealPaths, SandboxError, private_tmp, which};
use outrigger_workspace::Folders;
use outrigger_workspace::ProjectLocation;
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

/// A turn begins, which may run commands: what must be known of the project for them is looked up while the model answers.
pub fn prepare(config: &Loaded, place: &ProjectLocation) {
    let is_kept = config.settings.tools.sandbox == Profile::WorkspaceWrite;
    if is_kept && config.settings.sandbox != Sandbox::Off {
        protected_paths::prepare(&place.worktree);
    }
}

/// Folder beside our own cache with the caches of commands.
const COMMAND_CACHES: &str = "outrigger-commands";

/// What the sandbox is made of.
pub struct Around<'a> {
    /// Settings of the sandbox and of tools.
    pub config: &'a Loaded,
    /// The project.
    pub place: &'a ProjectLocation,
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

    /// Caches that commands must themselves: what lies in the user's is run as it is found (environments of `uvx`, what Bun and
    /// Deno made of a source), or is the same file as one in another project (Bun makes hard links), so there they change
    /// nothing.
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
        let outside = Some(worktree.as_path()).filter(|it| !folder.starts_with(it));
        for folder in below.chain(outside) {
            // Whole where they are there; where they are not, what of them runs something is not made.
            let agents = OF_AGENTS.iter().map(|name| folder.join(name));
            all.extend(agents.filter(|it| it.exists()));
            let startup = STARTUP.iter().map(|it| folder.join(it.path));
            // While something runs as long as this program, the user's editor makes them.
            let is_kept = |it: &PathBuf| self.process == Process::Command || it.exists();
            all.extend(startup.filter(is_kept));
        }
        all.extend(programs(self.config));
        let mut real = RealPaths::default();
        let open = policy.write.iter().flat_map(|it| real.of(it));
        let open: Vec<PathBuf> = open.collect();
        let is_open = |path: &Path| {
            open.iter()
                .any(|root| path.starts_with(root) && path != root)
        };
        let mut there = Vec::new();
        for path in all {
            match real.of(&path) {
                Ok(leads) if is_open(&leads) => {
                    // The names of links on the way are not to be another's, either.
                    if leads != path {
                        let way = path.ancestors().filter(|it| is_open(it));
                        policy.held.extend(way.map(Path::to_path_buf));
                    }
                    there.push(leads);
                }
                Ok(_) => {}
                Err(_) => policy
                    .absent
                    .extend(Some(placed(&path, &mut real)).filter(|it| is_open(it))),
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
pub fn programs_of_project(config: &Loaded, place: &ProjectLocation) -> Vec<PathBuf> {
    let real = |path: &Path| path.canonicalize().ok();
    let roots = [&place.directory, &place.worktree];
    let roots: Vec<PathBuf> = roots.iter().filter_map(|it| real(it)).collect();
    let all = programs(config).into_iter();
    // A link is kept with what it leads to.
    let mut all: Vec<PathBuf> = all
        .flat_map(|it| real(&it).into_iter().chain([it]))
        .collect();
    all.retain(|it| roots.iter().any(|root| it.starts_with(root)));
    all.sort();
    all.dedup();
    all
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
    let started = std::env::var_os(LAUNCHER).unwrap_or_default();
    let started: Vec<PathBuf> = std::env::split_paths(&started).collect();
    let launchers = launchers(own.as_deref(), &started);
    named.chain(own).chain(launchers).collect()
}

/// Where npm's script says what it is, and by which name it was started.
const LAUNCHER: &str = "OUTRIGGER_LAUNCHER";

/// What starts this program where it was installed by npm: the script of the package `outrigger`, which lies beside or around the
/// package of the platform (`node_modules/outrigger-linux-x64/bin/outrigger`), and the link to it, or the script for it, in `.bin`; by all
/// names that they have there. `started`: what the script said.
fn launchers(program: Option<&Path>, started: &[PathBuf]) -> Vec<PathBuf> {
    let is_modules = |it: &&Path| it.ends_with("node_modules");
    let of_program = program.and_then(|it| it.ancestors().nth(3));
    let beside = of_program.filter(is_modules);
    let around = beside.and_then(|it| it.ancestors().nth(2));
    // `.bin/outrigger` or `outrigger/bin/outrigger.js`.
    let above = started.iter().flat_map(|it| it.ancestors().skip(2).take(2));
    let modules = beside.into_iter().chain(around).chain(above);
    let names = ["outrigger/bin/outrigger.js", ".bin/outrigger"];
    let named = modules
        .filter(is_modules)
        .flat_map(|modules| names.map(|name| modules.join(name)));
    let mut all: Vec<PathBuf> = started.iter().cloned().chain(named).collect();
    all.retain(|it| it.is_absolute() && it.is_file());
    all.sort();
    all.dedup();
    all
}

/// Where a name that is not there would be.
fn placed(path: &Path, real: &mut RealPaths) -> PathBuf {
    match real.nearest(path) {
        Some((above, real)) => real.join(path.strip_prefix(above).unwrap_or(path)),
        None => path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_npm_starts_this_program_by_is_known_by_all_its_names() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let (plain, inner) = ("node_modules", "pnpm/node_modules");
        for modules in [plain, inner] {
            let script = at(&format!("{modules}/outrigger/bin/outrigger.js"));
            fs::create_dir_all(script.parent().unwrap()).unwrap();
            fs::write(script, "").unwrap();
        }
        fs::create_dir(at("node_modules/.bin")).unwrap();
        let link = at("node_modules/.bin/outrigger");
        std::os::unix::fs::symlink("../outrigger/bin/outrigger.js", &link).unwrap();
        let script = at("node_modules/outrigger/bin/outrigger.js");
        let both = vec![link.clone(), script.clone()];
        for program in [
            "node_modules/outrigger-linux-x64/bin/outrigger",
            "node_modules/outrigger/node_modules/outrigger-linux-x64/bin/outrigger",
        ] {
            assert_eq!(launchers(Some(&at(program)), &[]), both, "{program}");
        }
        let elsewhere = at("pnpm/node_modules/outrigger/bin/outrigger.js");
        let started = [elsewhere.clone(), link.clone()];
        assert_eq!(launchers(None, &started), [link, script, elsewhere]);
        assert!(launchers(Some(&at("bin/outrigger")), &[]).is_empty());
    }

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
