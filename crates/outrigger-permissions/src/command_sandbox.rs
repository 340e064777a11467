//! The sandbox of a shell command that may not do everything the user may (`tools.sandbox`): writable paths, and what is hidden
//! or protected in there and in the home folder.

pub mod network;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use outrigger_config::Loaded;
use outrigger_config::settings::{Profile, Sandbox};
pub use outrigger_protected_paths::Process;
use outrigger_protected_paths::restored::restore;
use outrigger_protected_paths::{self as protected_paths, git_files};
use outrigger_protocol::startup::{OF_AGENTS, STARTUP};
use outrigger_sandbox::{
    Calls, Lookups, Loopback, Policy, RealPaths, SandboxError, private_tmp, which,
};
use outrigger_workspace::Folders;
use outrigger_workspace::ProjectLocation;
use outrigger_workspace::git_policy;

use crate::home_files::{self, Beginning, HomeFiles, command_caches};

/// Terminals, and named shared memory.
const DEVICES: [&str; 3] = ["/dev/ptmx", "/dev/pts", "/dev/shm"];

/// Number of names that are tried for a temporary folder.
const NAMES: u32 = 1000;

/// Temporary folder of an agent's commands; dropped with the agent.
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
            // Short: sockets are created in there, and their paths must be short.
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
            && let Err(error) = outrigger_files::remove_tree(folder)
        {
            tracing::debug!("{} is not removed: {error}", folder.display());
        }
    }
}

/// Returns the local services that an agent's commands can reach: their own, those of `tools.ports`, and a local proxy that the
/// environment names.
pub fn loopback(config: &Loaded) -> Loopback {
    let proxies = outrigger_tools::builtin::PROXIES.iter().filter_map(|name| {
        let value = std::env::var(name).ok()?;
        let (_, port) = value.trim_end_matches('/').rsplit_once(':')?;
        port.parse().ok()
    });
    let ports = config.settings.tools.ports.iter().copied();
    Loopback::new(ports.chain(proxies).collect())
}

/// Called when a turn begins, which may run commands: scans the project for them while the model answers.
pub fn prepare(config: &Loaded, location: &ProjectLocation) {
    let is_kept = config.settings.tools.sandbox == Profile::WorkspaceWrite;
    if is_kept && config.settings.sandbox != Sandbox::Off {
        protected_paths::prepare(&location.worktree);
    }
}

/// Input of the sandbox.
pub struct SandboxInput<'a> {
    /// Settings of the sandbox and of tools.
    pub config: &'a Loaded,
    /// The project.
    pub location: &'a ProjectLocation,
    /// The user's folders.
    pub folders: &'a Folders,
    /// Folder for temporary files.
    pub temporary: PathBuf,
    /// Local services that it can reach.
    pub loopback: Loopback,
    /// How long it runs.
    pub process: Process,
}

impl SandboxInput<'_> {
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
        // Every part of this policy sees the same state of the disk, and the next policy another one.
        let lookups = &mut Lookups::default();
        let mut policy = Policy::system();
        let stores = git_policy::stores(&self.location.worktree);
        let project = self.project(&stores);
        match reads {
            None => policy.read.push(PathBuf::from("/")),
            Some(reads) => policy.read.extend(reads.into_iter().chain(project.clone())),
        }
        policy.write.extend(DEVICES.map(PathBuf::from));
        policy.write.push(self.temporary.clone());
        policy.temporary = Some(self.temporary.clone());
        policy.own_memory = true;
        // The user's terminals would show its output, and give it the user's input.
        policy.own_terminals = true;
        policy.loopback = Some(self.loopback.clone());
        if profile == Profile::WorkspaceWrite {
            policy.write.extend(project);
            let more = &self.config.settings.tools.write;
            policy.write.extend(more.iter().map(PathBuf::from));
            self.own_caches(&mut policy, lookups);
        }
        let shown = &self.config.settings.tools.secrets;
        let files = HomeFiles::of(self.folders, shown, &mut lookups.listings);
        if profile == Profile::WorkspaceWrite {
            let open = open_folders(&policy, &mut lookups.real);
            let caches = files.caches.iter();
            let caches = caches.filter(|it| !is_in_open(it, &open, &mut lookups.real));
            policy.write.extend(caches.cloned());
            self.keep(&mut policy, &files, &stores, lookups)?;
        }
        // The project itself may be in there.
        let (folder, worktree) = (&self.location.directory, &self.location.worktree);
        let secrets = files
            .secrets
            .into_iter()
            .filter(|it| !folder.starts_with(it) && !worktree.starts_with(it));
        policy.hide.extend(secrets);
        policy.calls = Some(Calls {
            udp: true,
            ..Calls::default()
        });
        Ok(policy)
    }

    /// Gives commands their own caches: files in the user's caches are run as found (environments of `uvx`, compiled sources of
    /// Bun and Deno, pickles of Python's tools, what a shell sources), or are shared with another project (Bun makes hard links), so
    /// commands must not change them.
    fn own_caches(&self, policy: &mut Policy, lookups: &mut Lookups) {
        let open = open_folders(policy, &mut lookups.real);
        let mut folder = command_caches::folder(self.folders);
        // Where the user's cache folder is part of the project, it is as open as the rest of it.
        if !is_in_open(&folder, &open, &mut lookups.real) {
            let write = &self.config.settings.tools.write;
            let write: Vec<PathBuf> = write.iter().map(PathBuf::from).collect();
            folder = match command_caches::prepare(self.folders, &write, &mut lookups.listings) {
                Ok(folder) => folder,
                Err(error) => {
                    tracing::warn!("[sandbox] cannot create {}: {error}", folder.display());
                    return;
                }
            };
            if lookups.real.of(&folder).is_err() {
                // A folder on the way was looked up before it was created.
                *lookups = Lookups::default();
            }
            policy.write.push(folder.clone());
            let whole = OsString::from(folder.clone());
            policy.variables.push(("XDG_CACHE_HOME".into(), whole));
        }
        let place = |name| OsString::from(folder.join(name));
        policy.variables.extend([
            ("UV_CACHE_DIR".into(), place("uv")),
            ("DENO_DIR".into(), place("deno")),
            ("BUN_INSTALL_CACHE_DIR".into(), place("bun")),
            ("BUN_RUNTIME_TRANSPILER_CACHE_PATH".into(), "0".into()),
        ]);
    }

    /// Returns the folders of the project: the working directory, the root, and the repository if it is elsewhere. Never the root
    /// of the file system.
    fn project(&self, stores: &[PathBuf]) -> Vec<PathBuf> {
        let mut all = vec![
            self.location.directory.clone(),
            self.location.worktree.clone(),
        ];
        all.extend_from_slice(stores);
        all.retain(|folder| folder.parent().is_some());
        all.dedup();
        all
    }

    /// Protects files in writable folders: those that make git or an agent run something, that run at the next login, this
    /// program and the runtimes.
    fn keep(
        &self,
        policy: &mut Policy,
        files: &HomeFiles,
        stores: &[PathBuf],
        lookups: &mut Lookups,
    ) -> Result<(), SandboxError> {
        let (folder, worktree) = (&self.location.directory, &self.location.worktree);
        protected_paths::share_in(&self.folders.data.join("running-commands"));
        protected_paths::keep(policy, [folder, worktree], &[], self.process, lookups)?;
        let mut all = files.startup.clone();
        for store in stores {
            all.extend(git_files::of_repository(store));
        }
        let below = folder.ancestors().take_while(|it| it.starts_with(worktree));
        let outside = Some(worktree.as_path()).filter(|it| !folder.starts_with(it));
        for folder in below.chain(outside) {
            // Existing folders are protected as a whole; in missing ones the files that run something cannot be created.
            let agents = OF_AGENTS.iter().map(|name| folder.join(name));
            all.extend(agents.filter(|it| lookups.listings.exists(it)));
            let startup = STARTUP.iter().map(|it| folder.join(it.path));
            // While a long-running process exists, the user's editor creates them.
            let is_kept = |it: &PathBuf| self.process == Process::Command || it.exists();
            all.extend(startup.filter(is_kept));
        }
        let open = open_folders(policy, &mut lookups.real);
        let mut there = Vec::new();
        for path in all {
            let may_exist = lookups.listings.may_exist(&path);
            let leads = may_exist.then(|| lookups.real.of(&path).ok()).flatten();
            there.extend(guard(policy, &open, &path, leads, lookups));
        }
        // Their folders are large, and not listed for one name.
        for path in programs(self.config) {
            let leads = lookups.real.of(&path).ok();
            there.extend(guard(policy, &open, &path, leads, lookups));
        }
        if self.process == Process::Command {
            self.keep_free(policy, &open, lookups);
        }
        protected_paths::hold(policy, there, &mut lookups.real);
        // A folder that may itself be changed stays in place.
        policy.held.retain(|it| !open.contains(it));
        policy.absent.sort();
        policy.absent.dedup();
        if self.process == Process::Command {
            restore(policy, worktree);
        }
        Ok(())
    }

    /// Has start-up files with `*` in their names stay free in the writable folders `open`.
    fn keep_free(&self, policy: &mut Policy, open: &[PathBuf], lookups: &mut Lookups) {
        let named = home_files::of_startup(self.folders).filter_map(|it| {
            let folder = lookups.real.of(&it.folder);
            let folder = folder.unwrap_or_else(|_| placed(&it.folder, lookups));
            let root = open.iter().find(|root| folder.starts_with(root))?;
            Some((root.clone(), it.at(folder)))
        });
        let named: Vec<(PathBuf, Beginning)> = named.collect();
        if !named.is_empty() {
            let clear = home_files::keep_free(named, &mut lookups.listings);
            policy.clear = policy.clear.clone().and(clear);
        }
    }
}

/// Returns those of [`programs`] that are in the project, where plugins and servers write too.
pub fn programs_of_project(config: &Loaded, location: &ProjectLocation) -> Vec<PathBuf> {
    let real = |path: &Path| path.canonicalize().ok();
    let roots: Vec<PathBuf> = [&location.directory, &location.worktree]
        .iter()
        .filter_map(|it| real(it))
        .collect();
    let all = programs(config).into_iter();
    // A link is protected with its target.
    let mut all: Vec<PathBuf> = all
        .flat_map(|it| real(&it).into_iter().chain([it]))
        .collect();
    all.retain(|it| roots.iter().any(|root| it.starts_with(root)));
    all.sort();
    all.dedup();
    all
}

/// Returns this program with its npm launcher, and the runtimes of plugins, at any path.
pub fn programs(config: &Loaded) -> Vec<PathBuf> {
    let js = &config.settings.js;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let named = [("bun", &js.bun), ("node", &js.node)]
        .into_iter()
        .filter_map(|(name, set)| match set {
            Some(set) => Some(set.clone()),
            None => which(Path::new(name), &path),
        });
    let own = std::env::current_exe().ok();
    let started = std::env::var_os(LAUNCHER).unwrap_or_default();
    let started: Vec<PathBuf> = std::env::split_paths(&started).collect();
    let launchers = launchers(own.as_deref(), &started);
    named.chain(own).chain(launchers).collect()
}

/// Variable in which npm's script passes its path and the name by which it was started.
const LAUNCHER: &str = "OUTRIGGER_LAUNCHER";

/// Returns what starts this program if npm installed it: the script of the package `outrigger`, next to or around the platform
/// package (`node_modules/outrigger-linux-x64/bin/outrigger`), and the link or script for it in `.bin`; under all their names.
/// `started`: the paths from the script.
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

/// Returns the writable files and folders, without links.
fn open_folders(policy: &Policy, real: &mut RealPaths) -> Vec<PathBuf> {
    policy.write.iter().flat_map(|it| real.of(it)).collect()
}

/// Returns whether a path is in an open folder: what is below one is open, and a command could have put a link there.
fn is_in_open(path: &Path, open: &[PathBuf], real: &mut RealPaths) -> bool {
    path.parent()
        .and_then(|it| real.of(it).ok())
        .is_some_and(|it| open.iter().any(|open| it.starts_with(open)))
}

/// Has a path not changed in the writable folders `open`, and returns where it leads if it is in one of them. `leads`: where it leads
/// if it exists; otherwise it must not be created.
fn guard(
    policy: &mut Policy,
    open: &[PathBuf],
    path: &Path,
    leads: Option<PathBuf>,
    lookups: &mut Lookups,
) -> Option<PathBuf> {
    let is_open = |path: &Path| {
        let plain: PathBuf = path.components().collect();
        open.iter().any(|folder| is_below(&plain, folder))
    };
    let Some(leads) = leads else {
        let placed = placed(path, lookups);
        policy.absent.extend(Some(placed).filter(|it| is_open(it)));
        return None;
    };
    if !is_open(&leads) {
        return None;
    }
    // Links on the way must not be replaced either.
    if leads != path {
        let way = path.ancestors().filter(|it| is_open(it));
        policy.held.extend(way.map(Path::to_path_buf));
    }
    Some(leads)
}

/// Returns whether a path is below a folder; neither has `.` or empty names in it. Compares bytes: hundreds of paths are compared with
/// each writable folder, and name by name this takes a sixth of the time of a policy.
fn is_below(path: &Path, folder: &Path) -> bool {
    let folder = folder.as_os_str().as_bytes();
    let rest = path.as_os_str().as_bytes().strip_prefix(folder);
    rest.is_some_and(|rest| match folder {
        b"/" => !rest.is_empty(),
        _ => rest.starts_with(b"/"),
    })
}

/// Returns where a missing file would be.
fn placed(path: &Path, lookups: &mut Lookups) -> PathBuf {
    match lookups.nearest(path) {
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
    fn what_is_below_by_bytes_is_below_by_names() {
        let paths = ["/", "/a", "/a/b", "/a/bc", "/a/b/c", "/ab", "/b/a", "/a/.."];
        let odd = ["/a//b", "/a/./b/", "/a/b/.", "//a/b//c"];
        for path in paths.iter().chain(&odd).map(Path::new) {
            let plain: PathBuf = path.components().collect();
            for folder in paths.map(Path::new) {
                let expected = path.starts_with(folder) && path != folder;
                assert_eq!(is_below(&plain, folder), expected, "{path:?} {folder:?}");
            }
        }
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
