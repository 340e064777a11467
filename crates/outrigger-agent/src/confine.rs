//! The box of processes that are started for the model: one set of rules decides for tools and for what they start, so
//! that a path which `read` is denied cannot be had with `cat` either (issue 5, item 5).

use std::path::{Path, PathBuf};

use outrigger_config::settings::{Profile, Sandbox};
use outrigger_kernel::permission::{denies_folder, denies_path};
use outrigger_protocol::permission::{Action, Rule};
use outrigger_sandbox::covers::{self, Cover, Covers};
use outrigger_sandbox::{Calls, Level, Policy, SandboxError};

use crate::inner::Inner;
use crate::project::Place;

/// Folders for files that nobody keeps.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// Terminals.
const TERMINALS: [&str; 2] = ["/dev/ptmx", "/dev/pts"];

/// Why a process is not started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfineError {
    /// The rules cannot be turned into a box.
    #[error("what the permission rules deny cannot be kept from the process: {0}")]
    Rules(#[from] SandboxError),
    /// `sandbox = "strict"`, and the system cannot enforce all of it.
    #[error("the system can enforce only a part of the process's box, and `sandbox` is \"strict\"")]
    Strict,
}

impl ConfineError {
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Rules(error) => error.hint().unwrap_or_default(),
            Self::Strict => {
                "`outrigger doctor` shows what is missing; `sandbox = \"on\"` starts it anyway"
                    .to_owned()
            }
        }
    }
}

/// What of a project the rules keep from every process. Walks the project when a rule asks for it: blocking.
///
/// # Errors
/// [`SandboxError::TooMany`].
pub(crate) fn covers(place: &Place, layers: &[&[Rule]]) -> Result<Covers, SandboxError> {
    let names = |permission: &str| {
        layers.iter().flat_map(|layer| layer.iter()).any(|rule| {
            rule.action == Action::Deny
                && rule.pattern != "*"
                && outrigger_kernel::permission::matches(&rule.permission, permission)
        })
    };
    let mut found = match names("read") || names("edit") {
        true => walk(place, layers)?,
        false => Covers::default(),
    };
    found.hide.extend(outside(place, layers));
    Ok(found)
}

fn walk(place: &Place, layers: &[&[Rule]]) -> Result<Covers, SandboxError> {
    // Patterns are about paths as the tools ask for them: from the root of the repository, else from that of the system.
    let base = match place.git {
        true => &place.worktree,
        false => Path::new("/"),
    };
    let above = place.worktree.strip_prefix(base).unwrap_or(Path::new(""));
    covers::find(&place.worktree, |path, is_dir| {
        let path = above.join(path);
        let path = path.to_string_lossy();
        let denied = |permission: &str| {
            denies_path(permission, &path, layers)
                || is_dir && denies_folder(permission, &path, layers)
        };
        if denied("read") {
            Cover::Hidden
        } else if denied("edit") {
            Cover::ReadOnly
        } else {
            Cover::None
        }
    })
}

/// Folders outside the project that are denied by name (`"external_directory": {"/home/me/.ssh/*": "deny"}`).
fn outside(place: &Place, layers: &[&[Rule]]) -> Vec<PathBuf> {
    let rules = layers.iter().flat_map(|layer| layer.iter());
    let folders = rules
        .filter(|rule| rule.permission == "external_directory" && rule.action == Action::Deny)
        .filter_map(|rule| {
            let folder = rule.pattern.trim_end_matches('*').strip_suffix('/')?;
            let plain = Path::new(folder).is_absolute() && !folder.contains(['*', '?']);
            plain.then_some(folder)
        })
        .filter(|folder| denies_folder("external_directory", folder, layers));
    folders
        .map(PathBuf::from)
        .filter(|folder| !place.worktree.starts_with(folder) && folder.exists())
        .collect()
}

/// The policy of a shell command. `None`: nothing is kept from it.
fn policy(profile: Profile, place: &Place, covers: Covers) -> Option<Policy> {
    let mut policy = match profile {
        Profile::Full if covers == Covers::default() => return None,
        Profile::Full => Policy::open(),
        Profile::WorkspaceWrite | Profile::ReadOnly => {
            let mut policy = Policy::system().read("/");
            policy.write.extend(TERMINALS.map(PathBuf::from));
            policy.write.extend(TEMPORARY.map(PathBuf::from));
            policy.write.push(std::env::temp_dir());
            if profile == Profile::WorkspaceWrite {
                policy.write.push(place.directory.clone());
                policy.write.push(place.worktree.clone());
            } else {
                // The project may lie in a temporary folder.
                policy.read_only.push(place.worktree.clone());
            }
            policy.calls = Some(Calls {
                unix_sockets: false,
                udp: true,
            });
            policy
        }
    };
    policy.hide.extend(covers.hide);
    policy.read_only.extend(covers.read_only);
    Some(policy)
}

impl Inner {
    /// The box of a shell command under these rules; `None` where nothing is kept from it.
    ///
    /// # Errors
    /// [`ConfineError`]: the process must not be started then.
    pub(crate) async fn confine(&self, rules: Vec<Rule>) -> Result<Option<Policy>, ConfineError> {
        self.confine_to(self.config.settings.tools.sandbox, rules)
            .await
    }

    /// The same for a command of a brain elsewhere: it never writes outside of the project.
    ///
    /// # Errors
    /// As for [`Inner::confine`].
    pub(crate) async fn confine_bridge(
        &self,
        rules: Vec<Rule>,
    ) -> Result<Option<Policy>, ConfineError> {
        let profile = match self.config.settings.tools.sandbox {
            Profile::Full => Profile::WorkspaceWrite,
            narrower => narrower,
        };
        self.confine_to(profile, rules).await
    }

    async fn confine_to(
        &self,
        profile: Profile,
        rules: Vec<Rule>,
    ) -> Result<Option<Policy>, ConfineError> {
        let sandbox = self.config.settings.sandbox;
        if sandbox == Sandbox::Off {
            return Ok(None);
        }
        let place = self.place.clone();
        let found = tokio::task::spawn_blocking(move || covers(&place, &[&rules]))
            .await
            .unwrap_or(Err(SandboxError::Stopped))?;
        let Some(policy) = policy(profile, &self.place, found) else {
            return Ok(None);
        };
        match policy.level() {
            Level::Full => {}
            _ if sandbox == Sandbox::Strict => return Err(ConfineError::Strict),
            level => tracing::warn!(?level, "the system enforces only a part of the rules"),
        }
        Ok(Some(policy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(permission: &str, pattern: &str, action: Action) -> Rule {
        Rule {
            permission: permission.into(),
            pattern: pattern.into(),
            action,
        }
    }

    #[test]
    fn what_rules_keep_from_processes() {
        let root = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(root.path()).unwrap();
        let project = root.join("project");
        for folder in ["project/keys", "project/docs", "ssh"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in [
            "project/.env",
            "project/keys/id",
            "project/a.lock",
            "ssh/id",
        ] {
            std::fs::write(root.join(file), "").unwrap();
        }
        let ssh = format!("{}/ssh/*", root.display());
        let deny = Action::Deny;
        let rows: [(&[Rule], &[&str], &[&str]); 6] = [
            (&[], &[], &[]),
            (&[rule("read", "*", deny), rule("*", "*", deny)], &[], &[]),
            (&[rule("read", "*.env", deny)], &["project/.env"], &[]),
            (
                &[rule("read", "keys/*", deny), rule("edit", "*.lock", deny)],
                &["project/keys"],
                &["project/a.lock"],
            ),
            (
                &[
                    rule("read", "*.env", deny),
                    rule("read", "*", Action::Allow),
                ],
                &[],
                &[],
            ),
            (&[rule("external_directory", &ssh, deny)], &["ssh"], &[]),
        ];
        for git in [true, false] {
            let place = Place {
                directory: project.clone(),
                worktree: project.clone(),
                git,
            };
            for (rules, hide, read_only) in &rows {
                // Outside of version control patterns begin at the root of the system.
                let moved = |rule: &Rule| match rule.pattern.as_str() {
                    "keys/*" if !git => Rule {
                        pattern: format!("{}/keys/*", &project.display().to_string()[1..]),
                        ..rule.clone()
                    },
                    _ => rule.clone(),
                };
                let rules: Vec<Rule> = rules.iter().map(moved).collect();
                let found = covers(&place, &[&rules]).unwrap();
                let full = |names: &[&str]| -> Vec<PathBuf> {
                    names.iter().map(|name| root.join(name)).collect()
                };
                assert_eq!(found.hide, full(hide), "{rules:?} {git}");
                assert_eq!(found.read_only, full(read_only), "{rules:?} {git}");
                let free = found == Covers::default();
                assert_eq!(policy(Profile::Full, &place, found).is_none(), free);
            }
        }
    }
}
