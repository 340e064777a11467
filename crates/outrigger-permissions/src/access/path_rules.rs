//! Rules prepared for paths: decisions about a path, and what is hidden from processes.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use outrigger_kernel::permission::matches;
use outrigger_kernel::permission::paths::{
    Names, deciding, denies_folder, denies_path, is_everything, plain,
};
use outrigger_protocol::permission::{Action, Rule};
use outrigger_protocol::permission_names::EXTERNAL_DIRECTORY;
use outrigger_sandbox::SandboxError;
use outrigger_sandbox::folders::movable_above_all;
use outrigger_sandbox::path_masks::{self, Cover, Covers};
use outrigger_sandbox::paths::{follow, resolve};

use super::identity::Denied;
use super::names::{folder_names, literal};
use super::{Access, Operation, Verdict, nearby, startup};

/// A folder that no rule names.
const ELSEWHERE: &str = "a folder of another name/in another one";

/// Rules prepared for paths.
#[derive(Clone, Debug)]
pub struct PathRules {
    pub(super) access: Access,
    pub(super) rules: Vec<Rule>,
    /// Outrigger's data folder, as named and with links resolved; set on first use.
    pub(super) data: OnceLock<Vec<PathBuf>>,
}

impl PathRules {
    /// Returns the root of the project.
    pub fn worktree(&self) -> &Path {
        &self.access.location.worktree
    }

    /// Decides about a file: by its name, by its resolved path, and, outside the project, by its folder if a rule denies that.
    /// Reads the disk.
    pub fn decide(&self, operation: Operation, path: &Path) -> Verdict {
        self.decide_resolved(operation, path, follow(path).ok().as_deref())
    }

    /// Decides about a file by its name alone; the path must be free of links, and must be opened without following any.
    pub fn decide_unlinked(&self, operation: Operation, path: &Path) -> Verdict {
        self.decide_resolved(operation, path, Some(path))
    }

    /// Decides about a path that resolves to `real`; `None` if it cannot be resolved.
    fn decide_resolved(&self, operation: Operation, path: &Path, real: Option<&Path>) -> Verdict {
        let verdict = self.verdict_for_name(operation.permission(), path, real);
        if operation == Operation::Read && self.is_ours_alone(real.unwrap_or(path)) {
            return verdict.stricter(Verdict {
                action: Action::Deny,
                rule: Some(Rule {
                    permission: operation.permission().to_owned(),
                    pattern: path.to_string_lossy().into_owned(),
                    action: Action::Deny,
                }),
            });
        }
        let outside = real.and_then(|real| self.outside_rule(real));
        match outside.filter(|it| it.action == Action::Deny) {
            Some(rule) => verdict.stricter(Verdict {
                action: Action::Deny,
                rule: Some(rule),
            }),
            None => verdict,
        }
    }

    /// Like [`Self::decide`], but another name of a denied file is that file. Walks the project from time to time: blocking.
    ///
    /// # Errors
    /// Denied files cannot be distinguished from others, for example [`SandboxError::TooMany`].
    pub fn decide_by_file(
        &self,
        operation: Operation,
        path: &Path,
    ) -> Result<Verdict, SandboxError> {
        let verdict = self.decide(operation, path);
        if verdict.action == Action::Deny || !self.denies() {
            return Ok(verdict);
        }
        match self.denied()?.holds(path) {
            Some(rule) => Ok(Verdict {
                action: Action::Deny,
                rule: Some(rule),
            }),
            None => Ok(verdict),
        }
    }

    /// Returns the denied files, cached or by a walk, so that other names of them are recognised. Blocking.
    pub fn denied(&self) -> Result<Arc<Denied>, SandboxError> {
        self.access.denied.get(self)
    }

    pub(super) fn of_name(&self, permission: &str, path: &Path) -> Verdict {
        self.verdict_for_name(permission, path, follow(path).ok().as_deref())
    }

    fn verdict_for_name(&self, permission: &str, path: &Path, real: Option<&Path>) -> Verdict {
        let written = resolve(Path::new("/"), path);
        let named = self.of_names(permission, &self.access.names(&written));
        match real {
            Some(real) if real != path => {
                named.stricter(self.of_names(permission, &self.access.names(real)))
            }
            _ => named,
        }
    }

    /// Decides by names. A file that must not be read must not be changed either: a change would show its content.
    fn of_names(&self, permission: &str, names: &Names) -> Verdict {
        let verdict = self.by(permission, names);
        if permission == "edit" && denies_path("read", names, &self.rules) {
            verdict.stricter(self.by("read", names))
        } else {
            verdict
        }
    }

    pub(super) fn of_folder(&self, folder: &Path) -> Verdict {
        let named = self.by(EXTERNAL_DIRECTORY, &folder_names(folder));
        match follow(folder) {
            Ok(real) if real != folder => {
                named.stricter(self.by(EXTERNAL_DIRECTORY, &folder_names(&real)))
            }
            _ => named,
        }
    }

    fn by(&self, permission: &str, names: &Names) -> Verdict {
        match deciding(permission, names, &self.rules) {
            Some((_, rule)) => Verdict {
                action: rule.action,
                rule: Some(rule.clone()),
            },
            None => Verdict {
                action: Action::Ask,
                rule: None,
            },
        }
    }

    /// Returns whether no tool may read a file, regardless of the rules.
    fn is_ours_alone(&self, real: &Path) -> bool {
        let data = || self.access.outside.data();
        let mut data = self.data.get_or_init(data).iter();
        data.any(|data| startup::is_ours_alone(data, real))
    }

    /// Returns the rule that applies to a file outside the project: one about its folder, or one that names it.
    pub(super) fn outside(&self, path: &Path) -> Option<Rule> {
        self.outside_rule(&follow(path).ok()?)
    }

    fn outside_rule(&self, real: &Path) -> Option<Rule> {
        if self.is_inside(real) {
            return None;
        }
        let folder = real.parent().unwrap_or(real);
        let names = folder_names(folder).also(real.to_string_lossy().into_owned());
        let (_, rule) = deciding(EXTERNAL_DIRECTORY, &names, &self.rules)?;
        Some(rule.clone())
    }

    fn is_inside(&self, path: &Path) -> bool {
        path.starts_with(&self.access.location.worktree)
            || path.starts_with(&self.access.location.directory)
    }

    /// Returns whether the rules hide anything from processes: whether one is about certain paths.
    pub fn denies(&self) -> bool {
        self.denials().next().is_some()
    }

    pub(super) fn denials(&self) -> impl Iterator<Item = &Rule> {
        let mut all = self.rules.iter();
        std::iter::from_fn(move || {
            all.find(|rule| rule.action == Action::Deny && !is_everything(&rule.pattern))
        })
    }

    /// Returns how a project path, given as absolute, appears to processes.
    pub fn cover(&self, path: &Path, is_dir: bool) -> Cover {
        let names = self.access.names(path);
        let denied = |permission: &str| {
            let below = |name: &str| self.access.names(&path.join(name));
            denies_path(permission, &names, &self.rules)
                || is_dir && denies_folder(permission, &names, below, &self.rules)
        };
        if denied("read") {
            Cover::Hidden
        } else if denied("edit") {
            Cover::ReadOnly
        } else {
            Cover::None
        }
    }

    /// Like [`Self::cover`], outside the project.
    pub(super) fn cover_outside(&self, path: &Path, is_dir: bool) -> Cover {
        let hidden = if is_dir {
            let below = |name: &str| folder_names(&path.join(name));
            denies_path(EXTERNAL_DIRECTORY, &folder_names(path), &self.rules)
                && denies_folder(EXTERNAL_DIRECTORY, &folder_names(path), below, &self.rules)
        } else {
            let folder = path.parent().unwrap_or(path);
            let names = folder_names(folder).also(path.to_string_lossy().into_owned());
            denies_path(EXTERNAL_DIRECTORY, &names, &self.rules)
        };
        if hidden {
            Cover::Hidden
        } else {
            self.cover(path, is_dir)
        }
    }

    /// Returns whether a file is hidden from processes, under any name: another name of a denied file is that file. A file that
    /// may have other names is compared with the denied ones, for which the project is walked from time to time (blocking); if
    /// there are too many of these, it is hidden.
    pub fn keeps(&self, path: &Path) -> bool {
        let is_denied = || self.denied().map_or(true, |it| it.holds(path).is_some());
        self.denies() && (self.hides(path) || (may_have_other_names(path) && is_denied()))
    }

    /// Returns whether processes cannot see a file, by its absolute path. Reads the disk.
    fn hides(&self, path: &Path) -> bool {
        let is_folder = path.is_dir() && !path.is_symlink();
        let worktree = &self.access.location.worktree;
        let is_inside = path.starts_with(worktree);
        path.ancestors()
            .take_while(|it| !is_inside || it != worktree)
            .map(|it| {
                if is_inside {
                    self.cover(it, it != path || is_folder)
                } else {
                    self.cover_outside(it, it != path || is_folder)
                }
            })
            .any(|cover| cover == Cover::Hidden)
    }

    /// What is kept from processes: of the project, and of what lies elsewhere. Walks the project where a rule asks for it: blocking.
    ///
    /// # Errors
    /// [`SandboxError::TooMany`].
    pub fn covers(&self) -> Result<Covers, SandboxError> {
        if !self.denies() {
            return Ok(Covers::default());
        }
        let names = |kind: &str| self.denials().any(|rule| matches(&rule.permission, kind));
        let mut found = if names("read") || names("edit") {
            self.of_project()?
        } else {
            Covers::default()
        };
        let elsewhere = self.elsewhere();
        found.hide.extend(elsewhere.hide);
        found.read_only.extend(elsewhere.read_only);
        found.hide.extend(self.other_names(&found.hide)?);
        found.read_only.extend(self.other_names(&found.read_only)?);
        found.held = self.held(&found);
        Ok(found)
    }

    /// Returns the folders above denied paths, which a process must not move: under another name the path would not be denied, or
    /// another would replace it.
    fn held(&self, found: &Covers) -> Vec<PathBuf> {
        let hidden = found.hide.iter().map(|it| (it, Cover::Hidden));
        let read_only = found.read_only.iter().map(|it| (it, Cover::ReadOnly));
        let bound = hidden
            .chain(read_only)
            .filter(|(path, cover)| !self.may_be_moved(path, *cover));
        let names: Vec<PathBuf> = bound
            .flat_map(|(path, _)| [Some(path.clone()), path.canonicalize().ok()])
            .flatten()
            .collect();
        let held = movable_above_all(names.iter().map(PathBuf::as_path));
        held.into_iter().collect()
    }

    /// Returns whether the folders above a denied path may be moved, since the rules deny its name anywhere (`*.env`): for hidden
    /// paths, and for folders that package managers move.
    fn may_be_moved(&self, path: &Path, cover: Cover) -> bool {
        let is_free = match cover {
            Cover::Hidden => true,
            _ => path.components().any(|it| it.as_os_str() == "node_modules"),
        };
        let names_place = |rule: &Rule| {
            rule.action != Action::Deny
                && rule.pattern.contains('/')
                && !is_everything(&rule.pattern)
                && ["read", "edit"]
                    .iter()
                    .any(|it| matches(&rule.permission, it))
        };
        let Some(name) = path.file_name().filter(|_| is_free) else {
            return false;
        };
        let elsewhere = self.access.location.worktree.join(ELSEWHERE).join(name);
        !self.rules.iter().any(names_place) && self.cover(&elsewhere, path.is_dir()) == cover
    }

    pub(super) fn of_project(&self) -> Result<Covers, SandboxError> {
        let worktree = &self.access.location.worktree;
        path_masks::find(worktree, |path, is_dir| {
            self.cover(&worktree.join(path), is_dir)
        })
    }

    /// Returns paths in the rules that are outside the project.
    pub fn elsewhere(&self) -> Covers {
        let mut found = Covers::default();
        let mut anywhere = false;
        for rule in self.denials() {
            let pattern = plain(&rule.pattern);
            let (named, rest) = literal(&pattern);
            let is_place = named.starts_with('/') || named.starts_with("..");
            if !is_place {
                // Write protection at any path would block locks and caches of programs.
                let hides = matches(&rule.permission, "read")
                    || matches(&rule.permission, EXTERNAL_DIRECTORY);
                anywhere |= hides && !rest.is_empty() && named.is_empty();
                continue;
            }
            let folder = resolve(&self.access.location.worktree, Path::new(named));
            if folder.components().nth(1).is_none() {
                anywhere = true;
                continue;
            }
            if self.access.location.worktree.starts_with(&folder) && rest.is_empty() {
                // It would be hidden with all of the project.
                continue;
            }
            if !folder.starts_with(&self.access.location.worktree) {
                nearby::walk(&folder, self, nearby::Bounds::PLACE, &mut found);
            }
        }
        if anywhere {
            let seen = self.access.nearby.get(self);
            found.hide.extend(seen.hide.iter().cloned());
        }
        found.hide.sort();
        found.hide.dedup();
        found.read_only.sort();
        found.read_only.dedup();
        found
    }
}

/// Returns whether the file of a path may have another name: through a link, or as one of several names.
fn may_have_other_names(path: &Path) -> bool {
    let is_link = path.canonicalize().map_or(true, |real| real != path);
    is_link || path.metadata().map_or(true, |meta| meta.nlink() > 1)
}
