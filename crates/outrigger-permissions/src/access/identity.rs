//! Other names of denied files: hard links, and targets of denied links.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outrigger_protocol::permission::{Action, Rule};
use outrigger_sandbox::SandboxError;
use outrigger_sandbox::path_masks::{self, Cover};
use outrigger_stdx::sync::lock;

use super::PathRules;

/// Time for which the list of denied files is cached: a search checks every file that it finds.
const CACHE_LIFETIME: Duration = Duration::from_millis(500);
/// Maximum number of files in denied folders that are checked for other names.
const MAX_FILES: usize = 20_000;

/// Identity of a file, independent of its name: device and inode.
type Identity = (u64, u64);

fn identity(path: &Path) -> Option<(Identity, u64)> {
    let meta = path.metadata().ok()?;
    meta.is_file()
        .then(|| ((meta.dev(), meta.ino()), meta.nlink()))
}

/// Files that rules deny.
#[derive(Debug, Default)]
pub struct Denied {
    files: HashMap<Identity, PathBuf>,
    /// Target folders of denied links.
    folders: Vec<(PathBuf, PathBuf)>,
}

impl Denied {
    fn of(hidden: &[PathBuf]) -> Self {
        let mut denied = Self::default();
        let mut left = MAX_FILES;
        for path in hidden {
            if path.is_symlink() && path.is_dir() {
                let real = path.canonicalize().ok();
                denied.folders.extend(real.map(|real| (real, path.clone())));
            }
            denied.take(path, &mut left);
        }
        denied
    }

    fn take(&mut self, path: &Path, left: &mut usize) {
        let mut waiting = vec![path.to_owned()];
        while let Some(path) = waiting.pop() {
            if *left == 0 {
                return;
            }
            *left -= 1;
            if path.is_dir() && !path.is_symlink() {
                let listed = std::fs::read_dir(&path).into_iter().flatten().flatten();
                waiting.extend(listed.map(|entry| entry.path()));
            } else if let Some((id, _)) = identity(&path) {
                self.files.insert(id, path);
            }
        }
    }

    /// Returns the rule that denies a file under another name.
    pub fn holds(&self, path: &Path) -> Option<Rule> {
        let real = path.canonicalize().ok()?;
        self.folder_of(&real).or_else(|| {
            let (id, _) = identity(&real)?;
            self.files.get(&id).map(|it| named(it))
        })
    }

    /// Returns the rule that denies a link to the folder of a file; the path is free of links.
    pub(super) fn folder_of(&self, real: &Path) -> Option<Rule> {
        let mut folders = self.folders.iter();
        let (_, folder) = folders.find(|(it, _)| real.starts_with(it))?;
        Some(named(folder))
    }

    /// Returns whether one of them is this file.
    pub(super) fn holds_file(&self, file: &Metadata) -> bool {
        self.files.contains_key(&(file.dev(), file.ino()))
    }

    /// Returns whether there are any.
    pub(super) fn has_files(&self) -> bool {
        !self.files.is_empty()
    }
}

fn named(path: &Path) -> Rule {
    Rule {
        permission: "read".to_owned(),
        pattern: path.display().to_string(),
        action: Action::Deny,
    }
}

/// The latest result, for its rules.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<Option<CachedResult>>);

/// Time, rules and result.
type CachedResult = (Instant, Vec<Rule>, Arc<Denied>);

impl Cache {
    pub(super) fn get(&self, rules: &PathRules) -> Result<Arc<Denied>, SandboxError> {
        let mut seen = lock(&self.0);
        if let Some((at, of, found)) = &*seen
            && at.elapsed() < CACHE_LIFETIME
            && *of == rules.rules
        {
            return Ok(Arc::clone(found));
        }
        let mut hidden = rules.of_project()?.hide;
        hidden.extend(rules.elsewhere().hide);
        let found = Arc::new(Denied::of(&hidden));
        *seen = Some((Instant::now(), rules.rules.clone(), Arc::clone(&found)));
        Ok(found)
    }
}

impl PathRules {
    /// Returns other names in the project of hidden files.
    pub(super) fn other_names(&self, hidden: &[PathBuf]) -> Result<Vec<PathBuf>, SandboxError> {
        let mut denied = Denied::of(hidden);
        denied
            .files
            .retain(|_, path| identity(path).is_some_and(|(_, links)| links > 1));
        if denied.files.is_empty() {
            return Ok(Vec::new());
        }
        let worktree = &self.access.location.worktree;
        let found = path_masks::find(worktree, |path, is_dir| {
            let path = worktree.join(path);
            let plain = !is_dir && !path.is_symlink();
            let known = |(id, links)| links > 1 && denied.files.contains_key(&id);
            if plain && identity(&path).is_some_and(known) {
                Cover::Hidden
            } else {
                Cover::None
            }
        })?;
        Ok(found.hide)
    }
}
