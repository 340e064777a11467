//! Rules about reading for searches, which check very many files.

use std::fs::Metadata;
use std::path::Path;
use std::sync::Arc;

use outrigger_protocol::permission::{Action, Rule};
use outrigger_sandbox::{Forbids, SandboxError, Spawner};
use outrigger_tools::DecideRead;

use super::identity::Denied;
use super::{Access, Operation, PathRules};
use crate::deny_policy::is_forbidden;

/// Decides about reading each file, under any name.
pub struct SearchRules {
    rules: PathRules,
    /// Denied files, to recognise other names; `None` if no rule denies certain files.
    denied: Option<Result<Arc<Denied>, SandboxError>>,
    approvals: Option<PathRules>,
    /// Knows what the machine policy forbids.
    spawner: Option<Spawner>,
    /// Further rules, of which only what they deny counts.
    denies: Option<Box<SearchRules>>,
}

impl SearchRules {
    /// Creates it from these rules. Walks the project if one denies certain files: blocking.
    #[must_use]
    pub fn new(rules: PathRules) -> Self {
        let denied = rules.denies().then(|| rules.denied());
        Self {
            rules,
            denied,
            approvals: None,
            spawner: None,
            denies: None,
        }
    }

    /// Adds "always" answers, which lift no deny.
    #[must_use]
    pub fn with_approvals(mut self, approvals: PathRules) -> Self {
        self.approvals = Some(approvals);
        self
    }

    /// Adds the machine policy, which the spawner knows.
    #[must_use]
    pub fn with_policy(mut self, spawner: &Spawner) -> Self {
        self.spawner = Some(spawner.clone());
        self
    }

    /// Adds rules of which only what they deny counts. Walks the project if one denies certain files: blocking.
    #[must_use]
    pub fn with_denies(mut self, rules: PathRules) -> Self {
        self.denies = Some(Box::new(Self::new(rules)));
        self
    }

    /// Returns whether an agent with these rules reads a file without being asked. Walks the project if a rule denies
    /// certain files: blocking.
    #[must_use]
    pub fn allow(access: &Access, rules: &[Rule], spawner: &Spawner, file: &Path) -> bool {
        let rules = Self::new(access.rules(&[rules])).with_policy(spawner);
        rules.of(file) == Action::Allow
    }

    fn is_denied(&self, of: impl Fn(&Self) -> bool) -> bool {
        self.denies.as_deref().is_some_and(of)
    }

    fn forbids(&self) -> Option<&dyn Forbids> {
        self.spawner.as_ref().and_then(Spawner::forbids)
    }

    /// Returns the action by the rules for a file's names; `other` tells whether it is denied under another
    /// name.
    fn action(
        &self,
        decide: impl Fn(&PathRules) -> Action,
        other: impl FnOnce(&Denied) -> bool,
    ) -> Action {
        let is_denied = || match &self.denied {
            None => false,
            Some(Ok(denied)) => other(denied),
            // It is unknown which files are denied.
            Some(Err(_)) => true,
        };
        match decide(&self.rules) {
            Action::Deny => Action::Deny,
            _ if is_denied() => Action::Deny,
            Action::Ask => self.approvals.as_ref().map_or(Action::Ask, decide),
            Action::Allow => Action::Allow,
        }
    }
}

impl DecideRead for SearchRules {
    fn of(&self, file: &Path) -> Action {
        let denied = |rules: &Self| rules.of(file) == Action::Deny;
        if is_forbidden(self.forbids(), file) || self.is_denied(denied) {
            return Action::Deny;
        }
        self.action(
            |rules| rules.decide(Operation::Read, file).action,
            |denied| denied.holds(file).is_some(),
        )
    }

    fn of_unlinked(&self, file: &Path) -> Action {
        let denied = |rules: &Self| rules.of_unlinked(file) == Action::Deny;
        if self.forbids().is_some_and(|it| it.file(file).is_some()) || self.is_denied(denied) {
            return Action::Deny;
        }
        self.action(
            |rules| rules.decide_unlinked(Operation::Read, file).action,
            |denied| denied.folder_of(file).is_some(),
        )
    }

    fn denies_file(&self, file: &Metadata) -> bool {
        let denied = self.denied.as_ref();
        denied.is_some_and(|it| it.as_ref().map_or(true, |denied| denied.holds_file(file)))
            || self.is_denied(|rules| rules.denies_file(file))
    }

    fn denies_files(&self) -> bool {
        let denied = self.denied.as_ref();
        denied.is_some_and(|it| it.as_ref().map_or(true, |denied| denied.has_files()))
            || self.is_denied(Self::denies_files)
    }
}
