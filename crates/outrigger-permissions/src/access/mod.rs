//! One decision per file for every access: tools, routes, mentions, attachments, instructions, and the sandbox of every process.
//!
//! A path is checked as named and as resolved: links are followed, and another name of a denied file is treated as that file. The
//! stricter answer applies. [`outrigger_kernel::permission::paths`] determines the names that a rule is matched against.

pub mod ask_rules;
mod denied_names;
mod git;
pub mod hosts;
mod identity;
mod names;
mod nearby;
#[cfg(test)]
mod ordinary_lines;
mod path_rules;
mod search_rules;
pub mod startup;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use names::{literal, with_forms};
use nearby::Nearby;
use outrigger_kernel::permission::paths::{Names, plain};
use outrigger_kernel::permission::{evaluate, evaluate_unclear, matches};
use outrigger_protocol::permission::{Action, Rule};
use outrigger_protocol::permission_names::EXTERNAL_DIRECTORY;
use outrigger_sandbox::paths::{follow, resolve};
use outrigger_tools::PermissionAsk;
use outrigger_workspace::ProjectLocation;

pub use path_rules::PathRules;
pub use search_rules::SearchRules;

/// Permissions whose patterns are paths.
const ABOUT_PATHS: [&str; 3] = ["read", "edit", EXTERNAL_DIRECTORY];
/// Prefix of patterns for resources of MCP servers.
const RESOURCE: &str = "mcp:";

/// Kind of access to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reading its content or its existence.
    Read,
    /// Changing it.
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

/// The action of the rules, and the deciding rule; without a rule the default applies, which is to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The action.
    pub action: Action,
    /// The deciding rule; `None` for the default.
    pub rule: Option<Rule>,
}

impl Verdict {
    fn stricter(self, other: Self) -> Self {
        if strictness(other.action) > strictness(self.action) {
            other
        } else {
            self
        }
    }
}

/// Returns the strictness of an action: larger is stricter.
#[must_use]
pub fn strictness(action: Action) -> u8 {
    match action {
        Action::Allow => 0,
        Action::Ask => 1,
        Action::Deny => 2,
    }
}

/// Base folders of path rules. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Access {
    location: ProjectLocation,
    home: PathBuf,
    nearby: Arc<Nearby>,
    denied: Arc<identity::Cache>,
    outside: Arc<startup::Outside>,
}

impl Access {
    /// Creates it for a project and a user.
    pub fn new(location: &ProjectLocation, home: &Path) -> Self {
        Self {
            location: location.clone(),
            home: home.to_owned(),
            nearby: Arc::default(),
            denied: Arc::default(),
            outside: Arc::default(),
        }
    }

    /// Evaluates the rules for a question, whose pattern is a path if the permission is about paths. Used instead of
    /// [`outrigger_kernel::permission::evaluate`].
    pub fn evaluate(&self, permission: &str, pattern: &str, layers: &[&[Rule]]) -> Action {
        self.evaluate_from(&self.location.worktree, permission, pattern, layers)
    }

    /// Returns whether no rule denies anything of a kind or asks about it.
    #[must_use]
    pub fn allows_all(&self, permission: &str, rules: &[Rule]) -> bool {
        let kinds = [permission, "*"];
        let mut about = rules
            .iter()
            .filter(|it| kinds.contains(&it.permission.as_str()));
        let ask = PermissionAsk {
            permission: permission.to_owned(),
            ..PermissionAsk::default()
        };
        about.all(|rule| rule.action == Action::Allow)
            && self.action(&ask, &[rules]) == Action::Allow
    }

    /// Returns the strictest answer to all patterns of a question, and to each spelling of what it runs.
    pub fn action(&self, ask: &PermissionAsk, layers: &[&[Rule]]) -> Action {
        let everything = ["*".to_owned()];
        let patterns = match ask.patterns.as_slice() {
            [] => &everything[..],
            patterns => patterns,
        };
        patterns
            .iter()
            .map(|it| self.evaluate(&ask.permission, it, layers))
            .chain(crate::access::ask_rules::by_spelling(ask, layers))
            .max_by_key(|action| strictness(*action))
            .unwrap_or(Action::Ask)
    }

    /// Returns whether "always" answers cover a pattern of a question. Those about files do not cover resources of MCP servers,
    /// which use the same permission.
    pub fn is_approved(&self, ask: &PermissionAsk, pattern: &str, approvals: &[Rule]) -> bool {
        let is_resource = |text: &str| text.starts_with(RESOURCE);
        let about: Vec<Rule> = approvals
            .iter()
            .filter(|rule| !is_resource(pattern) || is_resource(&rule.pattern))
            .cloned()
            .collect();
        let approved = match ask.unclear {
            None => self.evaluate(&ask.permission, pattern, &[&about]),
            Some(_) => evaluate_unclear(&ask.permission, pattern, &[&about]),
        };
        approved == Action::Allow
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
            EXTERNAL_DIRECTORY => rules.of_folder(
                path.parent()
                    .filter(|_| pattern.ends_with("/*"))
                    .unwrap_or(&path),
            ),
            _ => rules.of_name(permission, &path),
        };
        // A resource of an MCP server is not a path, but uses the same permission.
        let other = pattern
            .starts_with(RESOURCE)
            .then(|| evaluate(permission, pattern, layers));
        match other {
            Some(other) if strictness(other) > strictness(verdict.action) => other,
            _ => verdict.action,
        }
    }

    /// Evaluates all patterns of a question, treating another name of a denied file as that file.
    pub async fn actions(
        &self,
        ask: &PermissionAsk,
        patterns: &[String],
        layers: &[&[Rule]],
    ) -> Vec<Action> {
        self.actions_from(&self.location.worktree, ask, patterns, layers)
            .await
    }

    /// Like [`Self::actions`], with patterns relative to this folder.
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
        let paths: Vec<PathBuf> = patterns
            .iter()
            .map(|it| resolve(base, Path::new(it)))
            .collect();
        let look = move || -> Vec<Action> {
            let of_file = |path: &PathBuf| rules.decide_by_file(operation, path);
            // If denied files cannot be distinguished from others, none is opened.
            let action = |path| of_file(path).map_or(Action::Deny, |it| it.action);
            paths.iter().map(action).collect()
        };
        tokio::task::spawn_blocking(look)
            .await
            .unwrap_or_else(|_| vec![Action::Deny])
    }

    /// Evaluates the rules for a file outside the project whose folder the question is about: a rule may name the file itself.
    fn of_file_outside(&self, ask: &PermissionAsk, layers: &[&[Rule]]) -> Option<Action> {
        let file = ask.metadata.get("filepath")?.as_str()?;
        let is_asked = ask.permission == EXTERNAL_DIRECTORY;
        let rules = is_asked.then(|| self.rules(layers))?;
        let rule = rules.outside(&resolve(&self.location.worktree, Path::new(file)))?;
        Some(rule.action)
    }

    /// Prepares the rules of all layers for paths. Reads the disk: folders in patterns may be links.
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
            data: OnceLock::new(),
        }
    }

    /// Resolves links in the fixed part of a deny or ask pattern, or in a folder above the project: the rule then also applies to
    /// the target.
    fn led(&self, rule: &Rule) -> Option<Rule> {
        if rule.action == Action::Allow {
            return None;
        }
        let pattern = plain(&rule.pattern);
        let (written, rest) = literal(&pattern);
        let named = resolve(&self.location.worktree, Path::new(written));
        let real = follow(&named).ok()?;
        // `../project/.env` is a file of the project, which has no such name there.
        let is_from_above = written.starts_with("..");
        let is_led = real != named && named != self.location.worktree;
        (is_led || is_from_above).then(|| Rule {
            pattern: format!("{}{rest}", real.display()),
            ..rule.clone()
        })
    }

    /// Returns the names of an absolute path without `..`.
    fn names(&self, path: &Path) -> Names {
        let ProjectLocation {
            directory,
            worktree,
            git,
        } = &self.location;
        let absolute = path.to_string_lossy();
        let asked = outrigger_tools::relative(worktree, path);
        let mut others = Vec::new();
        if directory != worktree
            && let Ok(rest) = path.strip_prefix(directory)
        {
            others.push(rest.to_string_lossy().into_owned());
        }
        // In OpenCode the project is then the root of the system.
        if !git {
            others.push(absolute.trim_start_matches('/').to_owned());
        }
        with_forms(Names::new(asked).or(absolute.into_owned()), others)
    }
}

#[cfg(test)]
mod tests;
