//! Files that a command's text names with `@path`: they are attached to the prompt, as in OpenCode.

use std::path::{Path, PathBuf};

use outrigger_prompt::mentions::names;
use outrigger_prompt::parts::text;
use outrigger_protocol::session::PartInput;
use outrigger_sandbox::paths::{Roots, resolve};
use outrigger_tools::PermissionAsk;

use crate::prompt::guards::GuardedBy;
use crate::state::Agent;

impl Agent {
    /// Returns the parts of the files that a text names. A mention that is not a project file stays text. A file is skipped
    /// with a note if a rule or a guard denies it, or if it needs approval and there is no user to ask.
    pub(crate) async fn mentioned(&self, by: GuardedBy<'_>, filled: &str) -> Vec<PartInput> {
        let location = &self.state.project.location;
        let roots = Roots::found([&location.worktree, &location.directory]);
        let mut parts = Vec::new();
        for name in names(filled) {
            let there = [&location.directory, &location.worktree]
                .into_iter()
                .map(|root| root.join(name))
                .find(|path| path.exists());
            let Some(shown) = there else { continue };
            let shown = resolve(Path::new("/"), &shown);
            let Ok(path) = roots.contains(&shown) else {
                continue;
            };
            let read = self.read_mention(by, shown, path).await;
            parts.extend(
                read.unwrap_or_else(|why| vec![text(&format!("({name} is skipped: {why})"))]),
            );
        }
        parts
    }

    /// Resolves a file's name and real path, after guards and rules have been checked.
    async fn read_mention(
        &self,
        by: GuardedBy<'_>,
        shown: PathBuf,
        path: PathBuf,
    ) -> Result<Vec<PartInput>, String> {
        let by_guards = self.guards_let_read(by, &[&shown, &path]).await?;
        let worktree = &self.state.project.location.worktree;
        let own = self.rules_of_session(by)?;
        let mut patterns = vec![outrigger_tools::relative(worktree, &path)];
        // Check the path as written too: a rule may name the link.
        if shown != path {
            patterns.push(outrigger_tools::relative(worktree, &shown));
        }
        let ask = PermissionAsk {
            permission: "read".into(),
            patterns,
            ..PermissionAsk::default()
        };
        if self.state.processes.is_forbidden(&path) {
            return Err("the policy of this machine forbids it".to_owned());
        }
        self.decide_for_prompt(by, &own, ask, by_guards).await?;
        let rules = self
            .state
            .permissions
            .access
            .rules(&[&by.agent.permission, &own]);
        self.attach(path, rules).map_err(|error| error.to_string())
    }
}
