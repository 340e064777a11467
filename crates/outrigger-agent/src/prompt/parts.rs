//! Converts the parts of a prompt from clients to what the model reads: files are read, agents are called.

use std::path::{Path, PathBuf};

use outrigger_kernel::permission::evaluate;
use outrigger_mcp_tools::attach::Resource;
use outrigger_permissions::access::{Operation, PathRules};
use outrigger_permissions::agents::AgentInfo;
use outrigger_prompt::mentions::names;
use outrigger_prompt::parts::{attached_text, local, not_read, text_part};
use outrigger_protocol::Object;
use outrigger_protocol::message::PartKind;
use outrigger_protocol::permission::Action;
use outrigger_protocol::session::PartInput;
use outrigger_sandbox::paths::{Roots, resolve};
use outrigger_tools::PermissionAsk;
use outrigger_workspace::ProjectLocation;
use serde_json::{Value, json};

use crate::permission::audit::Decided;
use crate::prompt::guards::GuardedBy;
use crate::state::Agent;
use crate::turn::request::{Origin, TurnInput, TurnRequest};

impl Agent {
    /// Replaces the parts that name files and resources by their content. Files of all prompts are read here only. An
    /// unreadable file becomes a note to the model; it does not fail the prompt.
    pub(crate) async fn read_files(&self, request: &mut TurnRequest) {
        let (prompt, own) = match &mut request.input {
            TurnInput::Prompt(prompt) => (prompt, None),
            TurnInput::Command { name, .. } if self.is_compact(name) => return,
            // The command's own agent determines which files may be read.
            TurnInput::Command { name, prompt, .. } => {
                let agent = if prompt.parts.is_empty() {
                    None
                } else {
                    self.find_command(name).await.ok().and_then(|c| c.agent)
                };
                (prompt, agent)
            }
            TurnInput::Compact(_) | TurnInput::Resume(_) => return,
        };
        let reads_files = request.origin != Origin::Program;
        let name = own.as_deref().or(prompt.agent.as_deref());
        let agent = self.choose_agent(name).unwrap_or_default();
        let causes = prompt.provenance.clone();
        let by = GuardedBy {
            session_id: &request.session,
            agent: &agent,
            causes: &causes,
            command: None,
        };
        for part in std::mem::take(&mut prompt.parts) {
            let read = match Resource::of(&part) {
                Some(resource) => self.resource(by, &resource).await,
                None if reads_files => self.part(part, by).await,
                None => vec![part],
            };
            prompt.parts.extend(read);
        }
    }

    /// Replaces one part.
    async fn part(&self, part: PartInput, by: GuardedBy<'_>) -> Vec<PartInput> {
        let text =
            |fields: &Object, key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
        match &part.kind {
            PartKind::File(fields) => match text(fields, "url").as_deref().and_then(local) {
                Some(path) => self.file(&path, by).await,
                None => attached_text(fields)
                    .into_iter()
                    .flatten()
                    .chain([part.clone()])
                    .collect(),
            },
            PartKind::Agent(fields) => {
                let name = text(fields, "name").unwrap_or_default();
                let call = call_of(&name, by.agent);
                vec![part, call]
            }
            _ => vec![part],
        }
    }

    /// Reads a file or folder of the project, or returns a note in its place; nothing beyond the project is read for a client
    /// (invariant 11).
    async fn file(&self, path: &Path, by: GuardedBy<'_>) -> Vec<PartInput> {
        let read = match self.decided_read(path, by).await {
            Ok((real, rules)) => self.attach(real, rules).map_err(|error| error.to_string()),
            Err(why) => Err(why),
        };
        read.unwrap_or_else(|why| vec![not_read(path, &why)])
    }

    /// Returns where the file really is and the rules for what is in it, if the agent may read it without approval. If a plugin
    /// had a hand in the prompt, the answer is in the audit. The path is resolved once: everything is decided about the file that is
    /// read then, because a plugin can change at any time where a link leads.
    async fn decided_read(
        &self,
        path: &Path,
        by: GuardedBy<'_>,
    ) -> Result<(PathBuf, PathRules), String> {
        let named = Named::resolve(&self.state.project.location, path);
        if by.causes.is_plain() {
            return self.rules_let_read(named?, by);
        }
        let decided = match named {
            Ok(named) => match self.plugin_may_have_read(&named, by).await {
                Ok(()) => self.rules_let_read(named, by),
                Err(why) => Err(why),
            },
            Err(why) => Err(why),
        };
        let decision = if decided.is_ok() { "allow" } else { "deny" };
        self.state.audit_decision(Decided {
            session: by.session_id,
            call: None,
            permission: "read",
            patterns: &[outrigger_tools::relative(
                &self.state.project.location.worktree,
                path,
            )],
            decision,
            by: decided.as_ref().err().map_or("a rule", String::as_str),
            causes: by.causes.clone(),
        });
        decided
    }

    fn rules_let_read(
        &self,
        Named { shown, real }: Named,
        by: GuardedBy<'_>,
    ) -> Result<(PathBuf, PathRules), String> {
        let own = self.rules_of_session(by)?;
        let rules = self
            .state
            .permissions
            .access
            .rules(&[&by.agent.permission, &own]);
        let named = rules.decide(Operation::Read, &shown).action;
        let decided = rules.decide_by_file(Operation::Read, &real);
        match decided.map(|it| it.action) {
            Ok(Action::Allow) if named == Action::Allow => Ok((real, rules)),
            _ => Err("the rules for `read` do not allow it without approval".to_owned()),
        }
    }

    /// Decides about a file that a plugin put into a prompt: guards are asked, and without the grant it gets nothing that it
    /// cannot read itself, whatever agent the prompt names. Nobody is asked here, as for rules.
    async fn plugin_may_have_read(&self, named: &Named, by: GuardedBy<'_>) -> Result<(), String> {
        let names = [named.shown.as_path(), &named.real];
        if self.guards_let_read(by, &names).await?.is_some() {
            return Err("a guard requires approval, and no user is available".to_owned());
        }
        let worktree = &self.state.project.location.worktree;
        let relative = |path: &Path| outrigger_tools::relative(worktree, path);
        let ask = PermissionAsk {
            permission: "read".to_owned(),
            patterns: names.into_iter().map(relative).collect(),
            ..PermissionAsk::default()
        };
        let lacking = self.state.prompted_without_grant(by.causes, None, &ask);
        lacking.map_or(Ok(()), |lacking| Err(lacking.why))
    }

    /// Returns the agents that a command's template mentions as `@name`.
    pub(crate) fn mentioned_agents(&self, text: &str, agent: &AgentInfo) -> Vec<PartInput> {
        let mut names = names(text);
        names.sort_unstable();
        names
            .into_iter()
            .filter(|name| self.state.catalog.agents.contains_key(*name))
            .flat_map(|name| {
                let mut fields = Object::new();
                fields.insert("name".into(), json!(name));
                let mention = PartInput {
                    id: None,
                    kind: PartKind::Agent(fields),
                };
                [mention, call_of(name, agent)]
            })
            .collect()
    }
}

/// A file of the project that a prompt names.
struct Named {
    /// The path as written, absolute.
    shown: PathBuf,
    /// Where it led when the prompt was read, without links.
    real: PathBuf,
}

impl Named {
    fn resolve(place: &ProjectLocation, path: &Path) -> Result<Self, String> {
        let roots = Roots::found([&place.worktree, &place.directory]);
        let shown = resolve(Path::new("/"), path);
        let real = roots.contains(&shown).map_err(|error| error.to_string())?;
        Ok(Self { shown, real })
    }
}

/// Returns the text that has the model call a mentioned agent (OpenCode's words).
fn call_of(name: &str, agent: &AgentInfo) -> PartInput {
    let hint = match evaluate("task", name, &[&agent.permission]) {
        Action::Deny => " . Invoked by user; guaranteed to exist.",
        _ => "",
    };
    let call = format!(
        " Use the above message and context to generate a prompt and call the task tool with subagent: {name}{hint}"
    );
    text_part(call, true)
}
