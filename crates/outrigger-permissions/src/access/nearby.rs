//! Denied files outside the project. A pattern with a fixed path is searched there; one without (`*.env`, `**/.ssh/**`) in
//! the user's home folder and next to the project, to a limited depth: a command does not wait for a search of the whole
//! disk.

use std::collections::VecDeque;
use std::path::{Component, Path};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outrigger_protocol::permission::Rule;
use outrigger_sandbox::path_masks::{Cover, Covers};
use outrigger_stdx::sync::lock;

use super::PathRules;

/// Time for which results of the general search are cached.
const CACHE_LIFETIME: Duration = Duration::from_secs(5);
/// Folders for temporary files.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// Maximum number of masked paths from one walk: each is a mount at every start.
const MAX_FOUND: usize = 500;

/// Limits of a walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    depth: usize,
    entries: usize,
}

impl Bounds {
    /// Below a path that a rule names.
    pub(super) const PLACE: Self = Self {
        depth: 12,
        entries: 50_000,
    };
    /// Without a path in the rule.
    const NEARBY: Self = Self {
        depth: 4,
        entries: 10_000,
    };
}

/// The latest result of the general search, for its rules.
#[derive(Debug, Default)]
pub(super) struct Nearby(Mutex<Option<CachedResult>>);

/// Time, rules and result.
type CachedResult = (Instant, Vec<Rule>, Arc<Covers>);

impl Nearby {
    pub(super) fn get(&self, rules: &PathRules) -> Arc<Covers> {
        let mut seen = lock(&self.0);
        match &*seen {
            Some((at, of, found)) if at.elapsed() < CACHE_LIFETIME && *of == rules.rules => {
                Arc::clone(found)
            }
            _ => {
                let found = Arc::new(look(rules));
                *seen = Some((Instant::now(), rules.rules.clone(), Arc::clone(&found)));
                found
            }
        }
    }
}

fn look(rules: &PathRules) -> Covers {
    let mut found = Covers::default();
    let location = &rules.access.location;
    // Files next to a project in a temporary folder are short-lived and belong to any program.
    let is_shared = |it: &&Path| {
        let mut shared = TEMPORARY.iter().map(Path::new);
        it.parent().is_none() || shared.any(|temporary| temporary == *it)
    };
    let beside = location.worktree.parent().filter(|it| !is_shared(it));
    for root in [Some(rules.access.home.as_path()), beside]
        .into_iter()
        .flatten()
    {
        walk(root, rules, Bounds::NEARBY, &mut found);
    }
    found
}

/// Walks a folder, nearest entries first. Links are not followed; the project is walked elsewhere.
pub(super) fn walk(root: &Path, rules: &PathRules, bounds: Bounds, found: &mut Covers) {
    let Ok(kind) = std::fs::metadata(root) else {
        return;
    };
    let mut waiting = VecDeque::from([(root.to_owned(), kind.is_dir(), 0)]);
    let mut left = bounds.entries;
    while let Some((path, is_dir, depth)) = waiting.pop_front() {
        let worktree = &rules.access.location.worktree;
        if path.starts_with(worktree) || is_of_the_kernel(&path) {
            continue;
        }
        // A folder above the project is not hidden with it.
        let cover = if worktree.starts_with(&path) {
            Cover::None
        } else {
            rules.cover_outside(&path, is_dir)
        };
        match cover {
            Cover::Hidden => found.hide.push(path),
            Cover::ReadOnly => found.read_only.push(path),
            Cover::None if is_dir && depth < bounds.depth => {
                let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
                for entry in entries.take(left) {
                    left -= 1;
                    let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
                    waiting.push_back((entry.path(), is_dir, depth + 1));
                }
            }
            Cover::None => {}
        }
        if found.hide.len() + found.read_only.len() >= MAX_FOUND {
            tracing::debug!(
                "[access] {} holds more denied files than are hidden from commands",
                root.display()
            );
            return;
        }
    }
}

/// Returns whether a path belongs to a kernel file system without user files.
fn is_of_the_kernel(path: &Path) -> bool {
    let first = path.components().nth(1);
    matches!(first, Some(Component::Normal(name)) if ["proc", "sys", "dev"].iter().any(|it| name == *it))
}
