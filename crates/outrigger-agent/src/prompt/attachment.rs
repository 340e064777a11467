//! User files that are attached to a prompt.

use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use outrigger_kernel::permission::paths::is_everything;
use outrigger_permissions::access::{Access, Operation, PathRules, Verdict};
use outrigger_permissions::agents;
use outrigger_permissions::deny_policy::{DenyPolicy, is_forbidden};
use outrigger_prompt::parts::{file_part, is_local_file, mime, read_parts};
use outrigger_protocol::permission::Action;
use outrigger_protocol::session::PartInput;
use outrigger_sandbox::paths::open_resolved;
use outrigger_sandbox::{Anchor, Forbids};
use outrigger_workspace::ProjectLocation;

use crate::boot::options::Boot;
use crate::error::AgentError;
use crate::state::Agent;

/// Maximum size in bytes of an attached text file.
const MAX_ATTACHED: u64 = 256 * 1024;
/// Maximum number of entries listed for an attached folder.
const MAX_NAMES: usize = 1000;

/// A file to attach, after the rules have been checked.
#[derive(Clone, Debug)]
struct Attachment {
    /// Path with links resolved: the file that was approved is the one that is opened.
    path: PathBuf,
    /// Rules for the entries of a folder.
    rules: PathRules,
}

impl Attachment {
    /// The parts that the file becomes: its text as if the model had read it, or the file itself for images and PDF.
    ///
    /// # Errors
    /// [`AgentError::Attachment`] when the policy of the machine forbids it, and when it cannot be read, is too large or is of
    /// no kind that a model can read.
    fn parts(&self, forbids: Option<&dyn Forbids>) -> Result<Vec<PartInput>, AgentError> {
        let fail = |reason: String| AgentError::Attachment {
            path: self.path.display().to_string(),
            reason,
        };
        if is_forbidden(forbids, &self.path) {
            return Err(forbidden(&self.path));
        }
        let path = self.path.clone();
        let kind = path
            .symlink_metadata()
            .map_err(|e| fail(e.to_string()))?
            .file_type();
        if kind.is_dir() {
            let names = self.names(forbids).map_err(|e| fail(e.to_string()))?;
            return Ok(read_parts(&path, "application/x-directory", &names));
        }
        // A pipe or a device may have no end or no content.
        if !kind.is_file() {
            return Err(fail("it is neither a file nor a folder".into()));
        }
        let mime = mime(&path);
        let most = MAX_ATTACHED * if mime == "text/plain" { 1 } else { 40 };
        let mut bytes = Vec::new();
        // The file size is no reliable limit: it is 0 for files in /proc, and logs grow.
        let file = open_resolved(&path, false, false).map_err(|e| fail(e.to_string()))?;
        file.take(most + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| fail(e.to_string()))?;
        if bytes.len() as u64 > most {
            return Err(fail(format!(
                "it is longer than {} KiB; let the agent read what it needs of it instead",
                most / 1024
            )));
        }
        if mime != "text/plain" {
            use base64::Engine as _;
            let url = format!(
                "data:{mime};base64,{}",
                base64::engine::general_purpose::STANDARD.encode(bytes)
            );
            return Ok(vec![file_part(&path, mime, &url)]);
        }
        let text =
            String::from_utf8(bytes).map_err(|_| fail("it is neither text nor an image".into()))?;
        let numbered: Vec<String> = text
            .lines()
            .enumerate()
            .map(|(i, line)| format!("{}: {line}", i + 1))
            .collect();
        Ok(read_parts(&path, mime, &numbered.join("\n")))
    }

    /// Lists the entries of a folder, truncated if long. Unreadable files are not listed.
    fn names(&self, forbids: Option<&dyn Forbids>) -> std::io::Result<String> {
        let mut names: Vec<String> = Anchor::hold(&self.path)?
            .entries()?
            .flatten()
            .map(|entry| entry.file_name())
            .filter(|name| {
                let path = self.path.join(name);
                let verdict = self.rules.decide_by_file(Operation::Read, &path);
                !is_forbidden(forbids, &path) && verdict.is_ok_and(|it| it.action != Action::Deny)
            })
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        if names.len() > MAX_NAMES {
            let more = names.split_off(MAX_NAMES).len();
            names.push(format!("({more} more)"));
        }
        Ok(names.join("\n"))
    }
}

impl Agent {
    /// The parts of a file of the user's, for a prompt. `ask` is called with the reason where a person has to say yes. Walks the project
    /// now and then: blocking.
    ///
    /// # Errors
    /// [`AgentError::Attachment`], also where a rule denies to read it or nobody said yes.
    pub async fn attachment(
        &self,
        path: PathBuf,
        ask: impl AsyncFnOnce(&str) -> bool,
    ) -> Result<Vec<PartInput>, AgentError> {
        let rules = self.view().into_rules().ok_or_else(|| denied(&path))?;
        let named = NamedFile {
            path: &path,
            location: self.location(),
            forbids: self.state.processes.spawner.forbids(),
        };
        named.parts(rules, ask).await
    }

    /// Attaches a file whose rules have been checked, by the resolved path that was checked.
    pub(crate) fn attach(
        &self,
        path: PathBuf,
        rules: PathRules,
    ) -> Result<Vec<PartInput>, AgentError> {
        Attachment { path, rules }.parts(self.state.processes.spawner.forbids())
    }
}

impl Boot {
    /// The same for a server's agent: by the policy of this machine and the rules of the folder here. The addresses of files
    /// are left out, which the server would look for among its own.
    ///
    /// # Errors
    /// [`AgentError::Attachment`], and those of the policy and the configuration.
    pub async fn attachment(
        &self,
        path: PathBuf,
        ask: impl AsyncFnOnce(&str) -> bool,
    ) -> Result<Vec<PartInput>, AgentError> {
        let forbidden = DenyPolicy::by_policy(self)?;
        let location = ProjectLocation::find(&self.directory);
        let config = self.load(&location)?.config;
        let agents = agents::all(&config.agent, &config.permission, agents::Places::default());
        let agent = agents::default_name(&agents, config.default_agent.as_deref());
        let agent = agent.and_then(|name| agents.get(&name));
        let rules = agent.map_or(&config.permission, |it| &it.permission);
        let rules = Access::new(&location, &self.folders.home).rules(&[rules]);
        let named = NamedFile {
            path: &path,
            location: &location,
            forbids: Some(&forbidden),
        };
        let mut parts = named.parts(rules, ask).await?;
        parts.retain(|part| !is_local_file(part));
        Ok(parts)
    }
}

/// A file that the user names.
struct NamedFile<'a> {
    path: &'a Path,
    location: &'a ProjectLocation,
    forbids: Option<&'a dyn Forbids>,
}

impl NamedFile<'_> {
    async fn parts(
        &self,
        rules: PathRules,
        ask: impl AsyncFnOnce(&str) -> bool,
    ) -> Result<Vec<PartInput>, AgentError> {
        let fail = |reason: String| AgentError::Attachment {
            path: self.path.display().to_string(),
            reason,
        };
        let path = self.path.canonicalize().map_err(|e| fail(e.to_string()))?;
        let decide = |path: &Path| rules.decide_by_file(Operation::Read, path);
        let (named, real) = (decide(self.path), decide(&path));
        if is_forbidden(self.forbids, self.path) || is_forbidden(self.forbids, &path) {
            return Err(forbidden(self.path));
        }
        let (Ok(named), Ok(real)) = (named, real) else {
            return Err(denied(self.path));
        };
        if [&named, &real].iter().any(|it| it.action == Action::Deny) {
            return Err(denied(self.path));
        }
        let is_readable = path.is_file() || path.is_dir();
        let question = || {
            self.leads_out(&path)
                .or_else(|| asking(named).or_else(|| asking(real)))
        };
        if let Some(why) = is_readable.then(question).flatten()
            && !ask(&why).await
        {
            return Err(fail(format!("{why}, and nobody approved it")));
        }
        Attachment { path, rules }.parts(self.forbids)
    }

    /// Returns why the user must approve a project link that points outside: the creator of the project chose the target.
    fn leads_out(&self, real: &Path) -> Option<String> {
        let roots = [&self.location.worktree, &self.location.directory];
        let roots: Vec<PathBuf> = roots.iter().flat_map(|it| it.canonicalize()).collect();
        let is_inside = |path: &Path| roots.iter().any(|root| path.starts_with(root));
        let mut at = PathBuf::new();
        for step in self.path.components() {
            let next = at.join(step).canonicalize().ok()?;
            let is_link = matches!(step, Component::Normal(_)) && next != at.join(step);
            if is_link && is_inside(&at) && !is_inside(&next) {
                return Some(format!(
                    "it is, or lies behind, a link that leads out of the project, to {}",
                    real.display()
                ));
            }
            at = next;
        }
        None
    }
}

/// Returns why the user must approve the file, if a rule names such files.
fn asking(verdict: Verdict) -> Option<String> {
    let rule = verdict.rule.filter(|_| verdict.action == Action::Ask)?;
    let pattern = rule.pattern;
    (!is_everything(&pattern)).then(|| format!("a rule requires approval to read {pattern}"))
}

fn forbidden(path: &Path) -> AgentError {
    AgentError::Attachment {
        path: path.display().to_string(),
        reason: "the policy of this machine forbids it".to_owned(),
    }
}

/// Both the rules and the file are the user's, but an attachment is shown to a model.
fn denied(path: &Path) -> AgentError {
    AgentError::Attachment {
        path: path.display().to_string(),
        reason: "a rule under `permission` denies reading it".to_owned(),
    }
}
