//! Denied files outside of the project. A pattern that names a place is looked for there; one that names none (`*.env`,
//! `**/.ssh/**`) in the user's home folder and beside the project, as deep as that is worth its time: a command does not wait
//! until a whole disk has been searched.

use std::collections::VecDeque;
use std::path::{Component, Path};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outrigger_protocol::permission::Rule;
use outrigger_sandbox::path_masks::{Cover, Covers};
use outrigger_workspace::sync::lock;

use super::PathRules;

/// How long what was found in nobody's place counts.
const FRESH: Duration = Duration::from_secs(5);
/// Folders for files that nobody keeps.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// Most paths of one walk that are covered: each is a mount at every start.
const MAX_FOUND: usize = 500;

/// How far a walk goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    depth: usize,
    entries: usize,
}

impl Bounds {
    /// Below a place that a rule names.
    pub(super) const PLACE: Self = Self {
        depth: 12,
        entries: 50_000,
    };
    /// Where no rule says that there is anything.
    const NEARBY: Self = Self {
        depth: 4,
        entries: 10_000,
    };
}

/// What was found in no named place, by these rules, and when.
#[derive(Debug, Default)]
pub(super) struct Nearby(Mutex<Option<Known>>);

/// When it was looked at, by which rules, and what was found.
type Known = (Instant, Vec<Rule>, Arc<Covers>);

impl Nearby {
    pub(super) fn get(&self, rules: &PathRules) -> Arc<Covers> {
        let mut seen = lock(&self.0);
        match &*seen {
            Some((at, of, found)) if at.elapsed() < FRESH && *of == rules.rules => {
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
    let place = &rules.access.place;
    // What lies beside a project in a temporary folder comes and goes, and is of all programs.
    let is_shared = |it: &&Path| {
        let mut shared = TEMPORARY.iter().map(Path::new);
        it.parent().is_none() || shared.any(|temporary| temporary == *it)
    };
    let beside = place.worktree.parent().filter(|it| !is_shared(it));
    for root in [Some(rules.access.home.as_path()), beside]
        .into_iter()
        .flatten()
    {
        walk(root, rules, Bounds::NEARBY, &mut found);
    }
    found
}

/// Looks below a place, what is near first. Links are not followed; the project is looked at elsewhere.
pub(super) fn walk(root: &Path, rules: &PathRules, bounds: Bounds, found: &mut Covers) {
    let Ok(kind) = std::fs::metadata(root) else {
        return;
    };
    let mut waiting = VecDeque::from([(root.to_owned(), kind.is_dir(), 0)]);
    let mut left = bounds.entries;
    while let Some((path, is_dir, depth)) = waiting.pop_front() {
        let worktree = &rules.access.place.worktree;
        if path.starts_with(worktree) || is_of_the_kernel(&path) {
            continue;
        }
        // A folder above the project is not hidden with it.
        let cover = match worktree.starts_with(&path) {
            true => Cover::None,
            false => rules.cover_outside(&path, is_dir),
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

/// Whether a path is one of those that hold no files of anybody.
fn is_of_the_kernel(path: &Path) -> bool {
    let first = path.components().nth(1);
    matches!(first, Some(Component::Normal(name)) if ["proc", "sys", "dev"].iter().any(|it| name == *it))
}
