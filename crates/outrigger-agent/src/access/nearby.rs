//! Denied files outside of the project. A pattern that names a place is looked for there; one that names none (`*.env`,
//! `**/.ssh/**`) in the user's home folder and beside the project, as deep as that is worth its time: a command does not wait
//! until a whole disk has been searched.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outrigger_protocol::permission::Rule;
use outrigger_sandbox::covers::{Cover, Covers};

use super::{PathRules, is_of_the_kernel};
use crate::inner::lock;

/// How long what was found in nobody's place counts.
const FRESH: Duration = Duration::from_secs(5);
/// Most paths of one walk that are covered: each is a mount at every start.
const MOST_FOUND: usize = 500;

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
pub(super) struct Nearby(Mutex<Option<(Instant, Vec<Rule>, Arc<Covers>)>>);

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
    let beside = place.worktree.parent().filter(|it| it.parent().is_some());
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
    let mut waiting: VecDeque<(PathBuf, usize)> = VecDeque::new();
    let mut left = bounds.entries;
    let mut take = |path: PathBuf, is_dir: bool, depth: usize, waiting: &mut VecDeque<_>| {
        let worktree = &rules.access.place.worktree;
        if path.starts_with(worktree) || is_of_the_kernel(&path) {
            return;
        }
        let holds_project = worktree.starts_with(&path);
        match rules.cover_outside(&path, is_dir) {
            Cover::Hidden if !holds_project => found.hide.push(path),
            Cover::ReadOnly if !holds_project => found.read_only.push(path),
            _ if is_dir && depth < bounds.depth => waiting.push_back((path, depth + 1)),
            _ => {}
        }
        left = left.saturating_sub(1);
        if found.hide.len() + found.read_only.len() >= MOST_FOUND {
            left = 0;
        }
    };
    let Ok(kind) = std::fs::metadata(root) else {
        return;
    };
    take(root.to_owned(), kind.is_dir(), 0, &mut waiting);
    let mut seen = 1;
    while let Some((folder, depth)) = waiting.pop_front() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            seen += 1;
            take(entry.path(), kind.is_dir(), depth, &mut waiting);
        }
        if seen > bounds.entries {
            tracing::debug!(
                "[access] {} holds more than is looked at for denied files",
                root.display()
            );
            return;
        }
    }
}
