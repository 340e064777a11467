//! Files and programs that the machine policy forbids: one decision for every opener of a file and every start of a program
//! here, and for the sandbox of every process.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outrigger_config::forbid::{Leads, TooMany, expand};
use outrigger_config::{FilePattern, Forbid, Loaded, ProgramPattern};
use outrigger_sandbox::path_masks::{self, Cover};
use outrigger_sandbox::{Forbids, SandboxError, Spawner, programs_named};
use outrigger_stdx::sync::lock;
use outrigger_workspace::ProjectLocation;

use crate::config_source::ConfigSource;

/// What is forbidden in a project.
#[derive(Clone, Debug)]
pub struct DenyPolicy {
    forbid: Arc<Forbid>,
    project: PathBuf,
    /// Search path for programs.
    path: OsString,
    /// Targets of forbidden paths.
    leads: Arc<Seen<Leads>>,
    /// Files of forbidden programs; `None` if there are too many to list.
    programs: Arc<Seen<Option<HashSet<PathBuf>>>>,
}

/// Time for which disk state is cached: a search checks every file that it finds, a shell line every command.
const CACHE_LIFETIME: Duration = Duration::from_millis(250);

/// Cached disk state with its time.
#[derive(Debug)]
struct Seen<T>(Mutex<Option<(Instant, Arc<T>)>>);

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Seen<T> {
    /// Returns the cached state, or the current one.
    fn get(&self, look: impl FnOnce() -> T) -> Arc<T> {
        let mut seen = lock(&self.0);
        match &*seen {
            Some((at, found)) if at.elapsed() < CACHE_LIFETIME => Arc::clone(found),
            _ => {
                let found = Arc::new(look());
                *seen = Some((Instant::now(), Arc::clone(&found)));
                found
            }
        }
    }
}

impl DenyPolicy {
    fn new(forbid: Forbid, project: PathBuf, path: OsString) -> Self {
        Self {
            forbid: Arc::new(forbid),
            project,
            path,
            leads: Arc::default(),
            programs: Arc::default(),
        }
    }

    /// Creates it for this project, with the programs of our own `PATH`.
    pub fn here(forbid: Forbid, location: &ProjectLocation) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self::new(forbid, location.worktree.clone(), path)
    }

    /// Returns what the configuration forbids in a project.
    pub fn of(config: &Loaded, location: &ProjectLocation) -> Self {
        Self::here(config.settings.forbid.clone(), location)
    }

    /// What the policies of the machine forbid in the folder of `source`, whatever else is configured there.
    ///
    /// # Errors
    /// Those of the policies.
    pub fn by_policy(source: &dyn ConfigSource) -> Result<Self, outrigger_config::ConfigError> {
        let location = ProjectLocation::find(source.directory());
        let mut forbid = Forbid::default();
        for file in outrigger_config::policy::policies(&source.options(&location))? {
            forbid.add(&file.policy.forbid);
        }
        Ok(Self::here(forbid, &location))
    }

    /// Returns whether nothing is forbidden.
    pub fn is_empty(&self) -> bool {
        !self.forbid.is_about_files()
    }

    /// Returns a spawner that enforces it.
    pub fn kept_by(&self, spawner: Spawner) -> Spawner {
        if self.is_empty() {
            spawner
        } else {
            spawner.with_forbidden(Arc::new(self.clone()))
        }
    }

    /// What a process is not to see: forbidden files, and the files of forbidden programs. Walks the project where a pattern is
    /// about it: blocking.
    ///
    /// # Errors
    /// Those of [`path_masks::find`].
    pub fn covers(&self) -> Result<Vec<PathBuf>, SandboxError> {
        let mut hide = self.programs()?;
        hide.extend(self.elsewhere()?);
        if self.forbid.files.iter().any(|it| !it.is_absolute()) {
            let found = path_masks::find(&self.project, |path, _| {
                match self.forbid.file(&self.project, &self.project.join(path)) {
                    Some(_) => Cover::Hidden,
                    None => Cover::None,
                }
            })?;
            hide.extend(found.hide);
        }
        Ok(hide)
    }

    /// Returns forbidden files and folders at named paths.
    fn elsewhere(&self) -> Result<Vec<PathBuf>, SandboxError> {
        let files = self.forbid.files.iter().filter(|it| it.is_absolute());
        expand_all(files)
    }

    /// Returns the files of forbidden programs.
    fn programs(&self) -> Result<Vec<PathBuf>, SandboxError> {
        let (mut names, mut files) = (Vec::new(), Vec::new());
        for pattern in &self.forbid.programs {
            match pattern {
                ProgramPattern::Name(name) => names.push(name),
                ProgramPattern::File(file) => files.push(file),
            }
        }
        let mut found = expand_all(files.into_iter())?;
        if !names.is_empty() {
            let fits = |name: &str| names.iter().any(|it| FilePattern::part_fits(it, name));
            found.extend(programs_named(&self.path, fits));
        }
        Ok(found)
    }
}

/// Returns whether a file is forbidden, by its absolute path or its target.
pub fn is_forbidden(forbids: Option<&dyn Forbids>, path: &Path) -> bool {
    let Some(forbids) = forbids else {
        return false;
    };
    let real = path.canonicalize().ok();
    let mut paths = std::iter::once(path).chain(real.as_deref());
    paths.any(|path| forbids.file(path).is_some())
}

impl Forbids for DenyPolicy {
    fn file(&self, path: &Path) -> Option<String> {
        if let Some(pattern) = self.forbid.file(&self.project, path) {
            return Some(pattern.to_owned());
        }
        // A named path may be a link, and the checked path its target.
        let leads = self.leads.get(|| self.forbid.leads());
        leads.file(path).map(str::to_owned)
    }

    fn has_programs(&self) -> bool {
        !self.forbid.programs.is_empty()
    }

    fn program(&self, program: &Path) -> Option<String> {
        if !self.has_programs() {
            return None;
        }
        let found = match program.components().count() {
            1 => outrigger_sandbox::which(program, &self.path),
            _ => Some(program.to_owned()),
        };
        let real = found.as_ref().and_then(|it| it.canonicalize().ok());
        let names = [Some(program.to_owned()), found, real.clone()];
        let mut patterns = names
            .iter()
            .flatten()
            .filter_map(|it| self.forbid.program(it));
        if let Some(pattern) = patterns.next() {
            return Some(pattern.to_owned());
        }
        // Another name of a forbidden program's file.
        let real = real?;
        let programs = self.programs.get(|| {
            let found = self.programs().ok()?;
            let real = found.iter().filter_map(|it| it.canonicalize().ok());
            Some(real.collect())
        });
        match &*programs {
            Some(programs) => programs.contains(&real).then(|| real.display().to_string()),
            // `None`: no program is run, since the sandbox starts none then.
            None => Some(program.display().to_string()),
        }
    }
}

/// Expands patterns that name paths.
fn expand_all<'a>(
    patterns: impl Iterator<Item = &'a FilePattern>,
) -> Result<Vec<PathBuf>, SandboxError> {
    expand(patterns).map_err(|TooMany { root, what, most }| SandboxError::TooMany {
        root,
        what,
        most,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn forbidden(root: &Path, policy: &str) -> DenyPolicy {
        let policy = policy.replace("ROOT", &root.display().to_string());
        let forbid = outrigger_config::read_toml(&policy, "policy.toml").unwrap();
        DenyPolicy::new(forbid, root.join("project"), root.join("bin").into())
    }

    #[test]
    fn what_is_kept_from_processes_is_what_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in [
            "project/deep",
            "homes/me/.ssh",
            "homes/you",
            "really",
            "bin",
            "opt/x",
        ] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in [
            "project/.env",
            "project/deep/.env",
            "project/plain",
            "homes/me/.ssh/id",
            "really/key",
            "opt/x/tool",
        ] {
            std::fs::write(root.join(file), "").unwrap();
        }
        for program in ["bin/fetch-quietly", "bin/other"] {
            std::fs::write(root.join(program), "#!/bin/sh\n").unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(root.join(program), mode).unwrap();
        }
        std::fs::hard_link(root.join("bin/fetch-quietly"), root.join("bin/alias")).unwrap();
        symlink("../really", root.join("homes/keys")).unwrap();
        let it = forbidden(
            &root,
            "files = [\".env\", \"ROOT/homes/*/.ssh/*\", \"ROOT/homes/keys/*\"]\nprograms = [\"fetch-*\", \"ROOT/opt/*/tool\"]",
        );
        let mut hidden: Vec<String> = it
            .covers()
            .unwrap()
            .iter()
            .map(|path| path.strip_prefix(&root).unwrap().display().to_string())
            .collect();
        hidden.sort();
        assert_eq!(
            hidden,
            [
                "bin/alias",
                "bin/fetch-quietly",
                "homes/keys",
                "homes/me/.ssh",
                "opt/x/tool",
                "project/.env",
                "project/deep/.env",
            ]
        );
        for (path, refused) in [
            ("project/.env", true),
            ("project/deep/.env", true),
            ("project/new/.env", true),
            ("project/plain", false),
            ("elsewhere/.env", false),
            ("homes/me/.ssh/id", true),
            ("homes/you/.ssh/made-later", true),
            ("homes/keys/key", true),
            ("really/key", true),
            ("homes/you/x", false),
        ] {
            assert_eq!(it.file(&root.join(path)).is_some(), refused, "{path}");
        }
        for (program, refused) in [
            ("bin/fetch-quietly", true),
            ("bin/alias", true),
            ("opt/x/tool", true),
            ("bin/other", false),
            ("project/fetch-mine", true),
        ] {
            assert_eq!(
                it.program(&root.join(program)).is_some(),
                refused,
                "{program}"
            );
        }
        for (name, refused) in [("fetch-quietly", true), ("alias", true), ("other", false)] {
            assert_eq!(it.program(Path::new(name)).is_some(), refused, "{name}");
        }
    }

    /// The files of a program are unknown then, and the sandbox starts nothing either.
    #[test]
    fn where_there_is_too_much_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["many", "bin", "project"] {
            std::fs::create_dir(root.join(folder)).unwrap();
        }
        for n in 0..=path_masks::MAX_COVERS {
            std::fs::write(root.join(format!("many/f{n}")), "").unwrap();
        }
        std::fs::write(root.join("bin/other"), "").unwrap();
        for (policy, file, program) in [
            ("files = [\"ROOT/many/f*\"]", true, false),
            ("programs = [\"ROOT/many/f*\"]", false, true),
        ] {
            let it = forbidden(&root, policy);
            assert!(it.covers().is_err(), "{policy}");
            assert_eq!(it.file(&root.join("project/x")).is_some(), file, "{policy}");
            assert_eq!(
                it.program(&root.join("bin/other")).is_some(),
                program,
                "{policy}"
            );
        }
    }
}
