//! One answer for a file, whoever asks: tools, routes, mentions, attachments, instructions, and the sandbox of every process
//! (issue 18, item 3).
//!
//! A path is looked at as it was named and as it really is: links followed, and another name of a denied file taken for that file.
//! The stricter answer counts. Which names a rule is held against says [`outrigger_kernel::permission::paths`].

pub mod ask_rules;
mod git;
pub mod hosts;
mod identity;
mod nearby;
pub mod startup;

use std::borrow::Cow;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use identity::Denied;
use nearby::Nearby;
use outrigger_kernel::permission::paths::{
    Names, deciding, denies_folder, denies_path, is_everything, plain,
};
use outrigger_kernel::permission::{evaluate, matches};
use outrigger_protocol::permission::{Action, Rule};
use outrigger_sandbox::SandboxError;
use outrigger_sandbox::path_masks::{self, Cover, Covers};
use outrigger_sandbox::paths::{follow, resolve};
use outrigger_tools::PermissionAsk;
use outrigger_workspace::Place;

/// Permissions whose patterns are paths.
const ABOUT_PATHS: [&str; 3] = ["read", "edit", EXTERNAL];
const EXTERNAL: &str = "external_directory";

/// What somebody wants of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// What it holds, or that it is there.
    Read,
    /// To change it.
    Write,
}

impl Operation {
    fn of(permission: &str) -> Option<Self> {
        match permission {
            "read" => Some(Self::Read),
            "edit" => Some(Self::Write),
            _ => None,
        }
    }

    fn permission(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "edit",
        }
    }
}

/// What the rules say, and which of them; no rule: the default, which is to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What the rules say.
    pub action: Action,
    /// The rule that said so; `None` where it is the default.
    pub rule: Option<Rule>,
}

impl Verdict {
    fn stricter(self, other: Self) -> Self {
        match strictness(other.action) > strictness(self.action) {
            true => other,
            false => self,
        }
    }
}

/// How strict an action is: the larger, the less is left.
#[must_use]
pub fn strictness(action: Action) -> u8 {
    match action {
        Action::Allow => 0,
        Action::Ask => 1,
        Action::Deny => 2,
    }
}

/// Where paths of rules begin. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Access {
    place: Place,
    home: PathBuf,
    nearby: Arc<Nearby>,
    denied: Arc<identity::Cache>,
    outside: Arc<startup::Outside>,
}

impl Access {
    /// In this project, of this user.
    pub fn new(place: &Place, home: &Path) -> Self {
        Self {
            place: place.clone(),
            home: home.to_owned(),
            nearby: Arc::default(),
            denied: Arc::default(),
            outside: Arc::default(),
        }
    }

    /// What rules say of a question, whose pattern is a path where the permission is about paths. In place of
    /// [`outrigger_kernel::permission::evaluate`].
    pub fn evaluate(&self, permission: &str, pattern: &str, layers: &[&[Rule]]) -> Action {
        self.evaluate_from(&self.place.worktree, permission, pattern, layers)
    }

    /// The strictest answer to all patterns of a question, and to each spelling of what it runs.
    pub fn action(&self, ask: &PermissionAsk, layers: &[&[Rule]]) -> Action {
        let everything = ["*".to_owned()];
        let patterns = match ask.patterns.as_slice() {
            [] => &everything[..],
            patterns => patterns,
        };
        let shown = patterns
            .iter()
            .map(|it| self.evaluate(&ask.permission, it, layers));
        shown
            .chain(crate::access::ask_rules::by_spelling(ask, layers))
            .max_by_key(|action| strictness(*action))
            .unwrap_or(Action::Ask)
    }

    fn evaluate_from(
        &self,
        base: &Path,
        permission: &str,
        pattern: &str,
        layers: &[&[Rule]],
    ) -> Action {
        if permission == hosts::WEB {
            return hosts::decide(pattern, layers);
        }
        if permission == "bash" {
            let own = evaluate(permission, pattern, layers);
            return match self.rules(layers).of_command(pattern) {
                Some(action) if strictness(action) > strictness(own) => action,
                _ => own,
            };
        }
        if !ABOUT_PATHS.contains(&permission) {
            return evaluate(permission, pattern, layers);
        }
        let rules = self.rules(layers);
        let path = resolve(base, Path::new(pattern));
        let verdict = match permission {
            EXTERNAL => rules.of_folder(
                path.parent()
                    .filter(|_| pattern.ends_with("/*"))
                    .unwrap_or(&path),
            ),
            _ => rules.of_name(permission, &path),
        };
        // What MCP servers hold is no path, and is asked for under the same name.
        let other = pattern
            .starts_with("mcp:")
            .then(|| evaluate(permission, pattern, layers));
        match other {
            Some(other) if strictness(other) > strictness(verdict.action) => other,
            _ => verdict.action,
        }
    }

    /// The same for all patterns of a question, where another name of a denied file is that file.
    pub async fn actions(
        &self,
        ask: &PermissionAsk,
        patterns: &[String],
        layers: &[&[Rule]],
    ) -> Vec<Action> {
        self.actions_from(&self.place.worktree, ask, patterns, layers)
            .await
    }

    /// The same with patterns that begin in this folder.
    pub async fn actions_from(
        &self,
        base: &Path,
        ask: &PermissionAsk,
        patterns: &[String],
        layers: &[&[Rule]],
    ) -> Vec<Action> {
        let of_pattern =
            |pattern: &String| self.evaluate_from(base, &ask.permission, pattern, layers);
        let mut actions: Vec<Action> = patterns.iter().map(of_pattern).collect();
        let Some(operation) = Operation::of(&ask.permission) else {
            actions.extend(self.of_file_outside(ask, layers));
            return actions;
        };
        let rules = self.rules(layers);
        if actions.contains(&Action::Deny) || !rules.denies() {
            return actions;
        }
        let paths = patterns.iter().map(|it| resolve(base, Path::new(it)));
        let paths: Vec<PathBuf> = paths.collect();
        let look = move || -> Vec<Action> {
            let of_file = |path: &PathBuf| rules.decide_by_file(operation, path);
            // Where denied files cannot be told from others, none is opened.
            let action = |path| of_file(path).map_or(Action::Deny, |it| it.action);
            paths.iter().map(action).collect()
        };
        tokio::task::spawn_blocking(look)
            .await
            .unwrap_or_else(|_| vec![Action::Deny])
    }

    /// What rules say of the file outside of the project for which its folder is asked about: a rule may name the file itself.
    fn of_file_outside(&self, ask: &PermissionAsk, layers: &[&[Rule]]) -> Option<Action> {
        let file = ask.metadata.get("filepath")?.as_str()?;
        let is_asked = ask.permission == EXTERNAL;
        let rules = is_asked.then(|| self.rules(layers))?;
        let rule = rules.outside(&resolve(&self.place.worktree, Path::new(file)))?;
        Some(rule.action)
    }

    /// The rules of all layers, made ready for paths. Reads the disk: folders that patterns name may be links.
    pub fn rules(&self, layers: &[&[Rule]]) -> PathRules {
        let mut rules = Vec::new();
        for rule in layers.iter().flat_map(|layer| layer.iter()) {
            let about = ABOUT_PATHS.iter().any(|it| matches(&rule.permission, it));
            if !about {
                continue;
            }
            let mut rule = rule.clone();
            if let Some(rest) = rule.pattern.strip_prefix("~/") {
                rule.pattern = format!("{}/{rest}", self.home.display());
            }
            let led = self.led(&rule);
            rules.push(rule);
            rules.extend(led);
        }
        PathRules {
            access: self.clone(),
            rules,
        }
    }

    /// A rule that denies or asks and whose pattern begins with a place that is a link, or behind one, or in a folder above the
    /// project, is about what is there, too.
    fn led(&self, rule: &Rule) -> Option<Rule> {
        if rule.action == Action::Allow {
            return None;
        }
        let pattern = plain(&rule.pattern);
        let (written, rest) = literal(&pattern);
        let named = resolve(&self.place.worktree, Path::new(written));
        let real = follow(&named).ok()?;
        // `../project/.env` is a file of the project, which has no such name there.
        let is_from_above = written.starts_with("..");
        let is_led = real != named && named != self.place.worktree;
        (is_led || is_from_above).then(|| Rule {
            pattern: format!("{}{rest}", real.display()),
            ..rule.clone()
        })
    }

    /// The names of a path, which is absolute and without `..`.
    fn names(&self, path: &Path) -> Names {
        let Place {
            directory,
            worktree,
            git,
        } = &self.place;
        let absolute = path.to_string_lossy();
        let asked = outrigger_tools::relative(worktree, path);
        let mut others = Vec::new();
        if directory != worktree
            && let Ok(rest) = path.strip_prefix(directory)
        {
            others.push(rest.to_string_lossy().into_owned());
        }
        // In the reference the project is then the root of the system.
        if !git {
            others.push(absolute.trim_start_matches('/').to_owned());
        }
        with_forms(Names::new(asked).or(absolute.into_owned()), others)
    }
}

/// Adds other names, and those of another Unicode form.
fn with_forms(mut names: Names, others: Vec<String>) -> Names {
    let forms: Vec<String> = names
        .all()
        .chain(others.iter().map(String::as_str))
        .filter(|name| !name.is_ascii())
        .flat_map(|name| {
            let (nfc, nfd) = (
                ComposingNormalizerBorrowed::new_nfc(),
                DecomposingNormalizerBorrowed::new_nfd(),
            );
            [nfc.normalize(name), nfd.normalize(name)].map(Cow::into_owned)
        })
        .collect();
    for name in others.into_iter().chain(forms) {
        names = names.also(name);
    }
    names
}

/// Names of a folder outside of the project, which is asked for as `folder/*`.
fn folder_names(folder: &Path) -> Names {
    let shown = folder.to_string_lossy();
    with_forms(Names::new(format!("{shown}/*")), vec![shown.into_owned()])
}

/// A pattern's folders and name before its first wildcard, and the rest.
fn literal(pattern: &str) -> (&str, &str) {
    match pattern.find(['*', '?']) {
        None => (pattern, ""),
        Some(wild) => {
            let before = pattern.get(..wild).unwrap_or_default();
            pattern.split_at(before.rfind('/').unwrap_or(0))
        }
    }
}

/// Rules as they are held against paths.
#[derive(Clone, Debug)]
pub struct PathRules {
    access: Access,
    rules: Vec<Rule>,
}

impl PathRules {
    /// The root of the project.
    pub fn worktree(&self) -> &Path {
        &self.access.place.worktree
    }

    /// What they say of a file: by its name, by where its links lead, and, outside of the project, by its folder where a rule
    /// denies that. Reads the disk.
    pub fn decide(&self, operation: Operation, path: &Path) -> Verdict {
        let verdict = self.of_name(operation.permission(), path);
        match self.denied_outside(path) {
            Some(rule) => verdict.stricter(Verdict {
                action: Action::Deny,
                rule: Some(rule),
            }),
            None => verdict,
        }
    }

    /// The same, where another name of a denied file is that file. Walks the project now and then: blocking.
    ///
    /// # Errors
    /// Where denied files cannot be told from others, [`SandboxError::TooMany`] above all.
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

    /// Files that the rules deny, for other names of theirs. Lately seen, or looked for: blocking.
    pub fn denied(&self) -> Result<Arc<Denied>, SandboxError> {
        self.access.denied.get(self)
    }

    fn of_name(&self, permission: &str, path: &Path) -> Verdict {
        let written = resolve(Path::new("/"), path);
        let named = self.of_names(permission, &self.access.names(&written));
        match follow(path) {
            Ok(real) if real != path => {
                named.stricter(self.of_names(permission, &self.access.names(&real)))
            }
            _ => named,
        }
    }

    /// What is not to be read is not changed either: a change shows what was there.
    fn of_names(&self, permission: &str, names: &Names) -> Verdict {
        let verdict = self.by(permission, names);
        match permission == "edit" && denies_path("read", names, &self.rules) {
            true => verdict.stricter(self.by("read", names)),
            false => verdict,
        }
    }

    fn of_folder(&self, folder: &Path) -> Verdict {
        let named = self.by(EXTERNAL, &folder_names(folder));
        match follow(folder) {
            Ok(real) if real != folder => named.stricter(self.by(EXTERNAL, &folder_names(&real))),
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

    /// The rule that denies a folder outside of the project, or one file in it.
    fn denied_outside(&self, path: &Path) -> Option<Rule> {
        self.outside(path).filter(|it| it.action == Action::Deny)
    }

    /// The rule that counts for a file outside of the project: one about its folder, or one that names it.
    fn outside(&self, path: &Path) -> Option<Rule> {
        let real = follow(path).ok()?;
        if self.is_inside(&real) {
            return None;
        }
        let folder = real.parent().unwrap_or(&real);
        let names = folder_names(folder).also(real.to_string_lossy().into_owned());
        let (_, rule) = deciding(EXTERNAL, &names, &self.rules)?;
        Some(rule.clone())
    }

    fn is_inside(&self, path: &Path) -> bool {
        path.starts_with(&self.access.place.worktree)
            || path.starts_with(&self.access.place.directory)
    }

    /// Whether they keep anything from processes: one that speaks of certain paths.
    pub fn denies(&self) -> bool {
        self.denials().next().is_some()
    }

    fn denials(&self) -> impl Iterator<Item = &Rule> {
        let mut all = self.rules.iter();
        std::iter::from_fn(move || {
            all.find(|rule| rule.action == Action::Deny && !is_everything(&rule.pattern))
        })
    }

    /// What becomes of a file or folder of the project, by its absolute path, where a process looks at it.
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

    /// The same outside of the project.
    fn cover_outside(&self, path: &Path, is_dir: bool) -> Cover {
        let hidden = match is_dir {
            true => {
                let below = |name: &str| folder_names(&path.join(name));
                denies_path(EXTERNAL, &folder_names(path), &self.rules)
                    && denies_folder(EXTERNAL, &folder_names(path), below, &self.rules)
            }
            false => {
                let folder = path.parent().unwrap_or(path);
                let names = folder_names(folder).also(path.to_string_lossy().into_owned());
                denies_path(EXTERNAL, &names, &self.rules)
            }
        };
        match hidden {
            true => Cover::Hidden,
            false => self.cover(path, is_dir),
        }
    }

    /// Whether a file is hidden from processes, whatever it is called: another name of a denied file is that file. A file that may
    /// have other names is held against those that are denied, for which the project is walked now and then (blocking); where there
    /// are too many of these, it is hidden.
    pub fn keeps(&self, path: &Path) -> bool {
        let is_denied = || self.denied().map_or(true, |it| it.holds(path).is_some());
        self.denies() && (self.hides(path) || (may_have_other_names(path) && is_denied()))
    }

    /// Whether processes do not see a file, by its absolute path. Reads the disk.
    fn hides(&self, path: &Path) -> bool {
        let is_folder = path.is_dir() && !path.is_symlink();
        let worktree = &self.access.place.worktree;
        let is_inside = path.starts_with(worktree);
        let above = path
            .ancestors()
            .take_while(|it| !is_inside || it != worktree);
        above
            .map(|it| match is_inside {
                true => self.cover(it, it != path || is_folder),
                false => self.cover_outside(it, it != path || is_folder),
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
        let mut found = match names("read") || names("edit") {
            true => self.of_project()?,
            false => Covers::default(),
        };
        let elsewhere = self.elsewhere();
        found.hide.extend(elsewhere.hide);
        found.read_only.extend(elsewhere.read_only);
        found.hide.extend(self.other_names(&found.hide)?);
        found.read_only.extend(self.other_names(&found.read_only)?);
        Ok(found)
    }

    fn of_project(&self) -> Result<Covers, SandboxError> {
        let worktree = &self.access.place.worktree;
        path_masks::find(worktree, |path, is_dir| {
            self.cover(&worktree.join(path), is_dir)
        })
    }

    /// Places of which the rules speak and that are not in the project.
    pub fn elsewhere(&self) -> Covers {
        let mut found = Covers::default();
        let mut anywhere = false;
        for rule in self.denials() {
            let pattern = plain(&rule.pattern);
            let (named, rest) = literal(&pattern);
            let is_place = named.starts_with('/') || named.starts_with("..");
            if !is_place {
                // What may not be changed wherever it lies would keep programs from locks and caches of theirs.
                let hides =
                    matches(&rule.permission, "read") || matches(&rule.permission, EXTERNAL);
                anywhere |= hides && !rest.is_empty() && named.is_empty();
                continue;
            }
            let place = resolve(&self.access.place.worktree, Path::new(named));
            if place.components().nth(1).is_none() {
                anywhere = true;
                continue;
            }
            if self.access.place.worktree.starts_with(&place) && rest.is_empty() {
                // It would be hidden with all of the project.
                continue;
            }
            if !place.starts_with(&self.access.place.worktree) {
                nearby::walk(&place, self, nearby::Bounds::PLACE, &mut found);
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

/// Whether a path is one of those that hold no files of anybody.
fn is_of_the_kernel(path: &Path) -> bool {
    let first = path.components().nth(1);
    matches!(first, Some(Component::Normal(name)) if ["proc", "sys", "dev"].iter().any(|it| name == *it))
}

/// Whether a path may lead to a file that has another name, too: by a link, or as one of several names.
fn may_have_other_names(path: &Path) -> bool {
    let is_link = path.canonicalize().map_or(true, |real| real != path);
    is_link || path.metadata().map_or(true, |meta| meta.nlink() > 1)
}

#[cfg(test)]
mod tests;
