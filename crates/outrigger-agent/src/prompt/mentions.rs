//! Files that a command's text names with `@path`: they go with the prompt, as in OpenCode.

use std::path::Path;

use outrigger_permissions::agents::AgentInfo;
use outrigger_permissions::approval::ApprovalReason;
use outrigger_prompt::mentions::names;
use outrigger_prompt::parts::text;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::provenance::Provenance;
use outrigger_protocol::session::PartInput;
use outrigger_sandbox::paths::{Roots, resolve};
use outrigger_tools::PermissionAsk;

use crate::permission::ask::{Asker, Refusal};
use crate::state::Agent;

impl Agent {
    /// The parts of the files that a text names. What is no file of the project is text like any other; a file that a rule
    /// denies, or that somebody would have to be asked about and nobody can, is left out with a word.
    pub(crate) async fn mentioned(
        &self,
        session_id: &SessionId,
        agent: &AgentInfo,
        causes: &Provenance,
        filled: &str,
    ) -> Vec<PartInput> {
        let place = &self.inner.place;
        let roots = Roots::found([&place.worktree, &place.directory]);
        let mut parts = Vec::new();
        for name in names(filled) {
            let there = [&place.directory, &place.worktree]
                .into_iter()
                .map(|root| root.join(name))
                .find(|path| path.exists());
            let Some(shown) = there else { continue };
            let shown = resolve(Path::new("/"), &shown);
            let Ok(path) = roots.contains(&shown) else {
                continue;
            };
            let own = self.session(session_id).ok().and_then(|s| s.permission);
            let mut patterns = vec![outrigger_tools::relative(&place.worktree, &path)];
            // As it was named, too: a rule may speak of the link.
            if shown != path {
                patterns.push(outrigger_tools::relative(&place.worktree, &shown));
            }
            let ask = PermissionAsk {
                permission: "read".into(),
                patterns,
                ..PermissionAsk::default()
            };
            let requires_approval = self.inner.prompted_without_grant(causes, None, &ask);
            let requires_approval = requires_approval.map(ApprovalReason::Ungranted);
            let asker = Asker {
                session_id,
                tool: None,
                rules: &[&agent.permission, &own.unwrap_or_default()],
                requires_approval: requires_approval.as_ref(),
                causes,
            };
            let decided = match self.inner.is_forbidden(&path) {
                true => Err(Refusal::Rule(
                    "the policy of this machine forbids it".into(),
                )),
                false => self.inner.decide(&asker, ask).await,
            };
            let read = match decided {
                Ok(_) => {
                    let rules = self.inner.access.rules(asker.rules);
                    self.attach(path, rules).map_err(|e| e.to_string())
                }
                Err(refusal) => Err(refusal.text()),
            };
            parts.extend(
                read.unwrap_or_else(|why| vec![text(&format!("({name} is left out: {why})"))]),
            );
        }
        parts
    }
}
