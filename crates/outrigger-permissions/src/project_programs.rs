//! Project programs that may be started for the settings: those of a trusted folder, as they were when the settings were read, or
//! as accepted since.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_config::claude_hooks::HookScope;
use outrigger_config::{HookPrograms, Loaded};
use outrigger_sandbox::host_path;
use outrigger_stdx::path::normalize;
use outrigger_workspace::{Folders, ProjectLocation};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::folder_trust;
use crate::home_files;

const LIES_HERE: &str = "lies in the project, and the folder is not trusted (`outrigger trust`)";
const NOT_TRUSTED: &str = "has changed since the folder was trusted (`outrigger trust`)";

/// The programs of an agent's project.
#[derive(Debug)]
pub struct ProjectPrograms {
    config: Loaded,
    location: ProjectLocation,
    folders: Folders,
    /// Roots of the project, as named and by real path.
    roots: Vec<PathBuf>,
}

impl ProjectPrograms {
    /// Creates it for a project with these settings, before plugins changed them.
    pub fn new(config: &Loaded, location: &ProjectLocation, folders: &Folders) -> Arc<Self> {
        let it = Self {
            config: config.clone(),
            location: location.clone(),
            folders: folders.clone(),
            roots: roots(location, &folders.home),
        };
        host_path::pass_over(it.roots.iter().cloned());
        host_path::pass_over(it.written_elsewhere());
        Arc::new(it)
    }

    /// Returns the paths outside the project that commands can write. Reads the disk.
    fn written_elsewhere(&self) -> Vec<PathBuf> {
        let settings = &self.config.settings.tools;
        let mut folders: Vec<PathBuf> = settings.write.iter().map(PathBuf::from).collect();
        folders.extend(home_files::caches(&self.folders));
        folders
    }

    /// Returns whether programs of the project may be started at all.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.config.is_trusted
    }

    /// Returns whether a file is in the project, by its name or its target. Reads the disk.
    #[must_use]
    pub fn holds(&self, path: &Path) -> bool {
        let path = self.location.directory.join(path);
        let real = path.canonicalize();
        let mut names = [Some(normalize(&path)), real.ok()].into_iter().flatten();
        names.any(|name| self.roots.iter().any(|root| name.starts_with(root)))
    }

    /// Returns why the program of an entry below `key` (`formatter`, `lsp`) must not be started; `None` if it may. Reads the
    /// disk.
    #[must_use]
    pub fn refusal(&self, key: &str, name: &str, program: &Path) -> Option<String> {
        if !self.is_trusted() && self.holds(program) {
            return Some(format!("{} {LIES_HERE}", program.display()));
        }
        let of = |value: &Option<Value>| value.as_ref().and_then(|it| it.get(name)).cloned();
        let users = self.config.users.as_ref();
        let (now, users) = match key {
            "formatter" => (
                &self.config.config.formatter,
                users.map(|it| of(&it.formatter)),
            ),
            _ => (&self.config.config.lsp, users.map(|it| of(&it.lsp))),
        };
        let is_projects = users.is_some_and(|users| of(now) != users);
        if !self.is_trusted()
            && let Some(entry) = of(now)
            && let Some(file) = self.config.project_program(&entry)
        {
            return Some(format!("{} {LIES_HERE}", self.shown(&file)));
        }
        if is_projects {
            self.change(&[format!("/{key}/{name}")])
        } else {
            None
        }
    }

    /// Returns the files that a user server would run and that commands may change or create: in the project if the folder is
    /// trusted, and in other writable folders. `found`: path of the first word of its command. Reads the disk.
    #[must_use]
    pub fn written_by_commands(&self, entry: &Value, found: Option<&Path>) -> Option<PathBuf> {
        let mut folders = self.written_elsewhere();
        let mut existing = None;
        if self.is_trusted() {
            let project = [&self.location.directory, &self.location.worktree]
                .into_iter()
                .filter(|it| it.parent().is_some());
            folders.extend(project.cloned());
            existing = self.config.project_program(entry);
        }
        let real: Vec<PathBuf> = folders.iter().flat_map(|it| it.canonicalize()).collect();
        folders.extend(real);
        existing.or_else(|| self.config.program_in(entry, found, &folders))
    }

    /// Whether commands may write to a folder: it is in the project, or in another folder that they write to. Reads the disk.
    #[must_use]
    pub fn may_be_written(&self, folder: &Path) -> bool {
        let folder = self.location.directory.join(folder);
        let real = folder.canonicalize().unwrap_or_else(|_| normalize(&folder));
        let project = [&self.location.directory, &self.location.worktree]
            .into_iter()
            .filter(|it| it.parent().is_some())
            .cloned();
        let mut all = project.chain(self.written_elsewhere());
        all.any(|it| it.canonicalize().is_ok_and(|it| real.starts_with(it)))
    }

    /// What a server of the user's is kept under, as the user has it.
    #[must_use]
    pub fn server_key(name: &str, entry: &Value) -> String {
        let digest = Sha256::digest(entry.to_string().as_bytes());
        format!("{name} {}", outrigger_stdx::text::hex(&digest))
    }

    /// Returns project files, with digests, that a user server ran when it was first started here since the user trusted the
    /// folder: `now`, if this is the first time. `None` if the user did not.
    #[must_use]
    pub fn settle_server(&self, server: &str, now: &[String]) -> Option<Vec<String>> {
        folder_trust::settle_server(&self.folders, &self.location.directory, server, now)
    }

    /// Returns why the programs of the project's settings with these names ([`outrigger_config::TrustRequest::what`]) must not be
    /// started: their files changed since they were accepted. `None` if unchanged. Reads the disk.
    #[must_use]
    pub fn change(&self, what: &[String]) -> Option<String> {
        let changed = self.config.changed_files(what);
        if changed.is_empty() {
            return None;
        }
        // They may have been accepted since.
        let changed: Vec<&str> = outrigger_config::unknown(&changed, &self.known())
            .into_iter()
            .map(|it| it.file.as_str())
            .collect();
        let first = changed.first()?;
        let more = match changed.len() {
            1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        let file = self.shown(Path::new(first));
        Some(format!("{file}{more} {NOT_TRUSTED}"))
    }

    /// Returns why a command hook must not run: the project files that it executes changed, or are in an untrusted folder. `None`
    /// if it may. Reads the disk.
    #[must_use]
    pub fn hook_change(&self, hook: &HookPrograms, scope: HookScope) -> Option<String> {
        let is_projects = matches!(scope, HookScope::Project | HookScope::Local);
        if !is_projects
            && !self.is_trusted()
            && let Some(file) = self.config.project_program_of_hook(hook)
        {
            return Some(format!("{} {LIES_HERE}", self.shown(&file)));
        }
        self.config.changed_program(hook, &[])?;
        // It may have been accepted since.
        let file = self.config.changed_program(hook, &self.known())?;
        let why = if is_projects && self.is_trusted() {
            NOT_TRUSTED
        } else {
            "has changed since Outrigger started here (review it, then start again)"
        };
        Some(format!("{} {why}", self.shown(&file)))
    }

    fn known(&self) -> Vec<outrigger_config::TrustRequest> {
        folder_trust::known(&self.folders, &self.location.directory)
    }

    fn shown(&self, file: &Path) -> String {
        let real = self.location.directory.canonicalize();
        let folders = [Some(&self.location.directory), real.as_ref().ok()];
        let mut below = folders.into_iter().flatten();
        below
            .find_map(|it| file.strip_prefix(it).ok())
            .unwrap_or(file)
            .display()
            .to_string()
    }
}

/// Excludes the folders of this project from the search for programs that this program starts for itself: commands can write to
/// them. Reads the disk.
pub fn pass_over_project(directory: &Path, home: &Path) {
    host_path::pass_over(roots(&ProjectLocation::find(directory), home));
}

/// Returns the folders of a project. One that contains the home folder is the user's own.
fn roots(location: &ProjectLocation, home: &Path) -> Vec<PathBuf> {
    let named = [&location.directory, &location.worktree]
        .into_iter()
        .filter(|it| it.parent().is_some());
    let real = named.clone().filter_map(|it| it.canonicalize().ok());
    let mut all: Vec<PathBuf> = named.cloned().chain(real).collect();
    let home_is = home.canonicalize();
    let home_is = home_is.as_deref().unwrap_or(home);
    all.retain(|it| !home.starts_with(it) && !home_is.starts_with(it));
    all
}
