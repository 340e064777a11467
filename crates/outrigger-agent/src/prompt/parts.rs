//! Converts the parts of a prompt from clients to what the model reads: files are read, agents are called.

use std::path::{Path, PathBuf};

use outrigger_kernel::permission::evaluate;
use outrigger_permissions::access::Operation;
use outrigger_permissions::agents::AgentInfo;
use outrigger_prompt::mentions::names;
use outrigger_prompt::parts::{attached_text, local, not_read, text_part};
use outrigger_protocol::Object;
use outrigger_protocol::message::PartKind;
use outrigger_protocol::permission::Action;
use outrigger_protocol::session::PartInput;
use outrigger_sandbox::paths::{Roots, resolve};
use serde_json::{Value, json};

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
        if request.origin != Origin::Program {
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
                prompt.parts.extend(self.part(part, by).await);
            }
        }
        outrigger_mcp_tools::attach::read_resources(&self.inner.mcp, prompt).await;
    }

    /// Replaces one part. The user may attach any file; if a plugin influenced the prompt, guards are asked about each file.
    async fn part(&self, part: PartInput, by: GuardedBy<'_>) -> Vec<PartInput> {
        let file = match &part.kind {
            PartKind::File(fields) if !by.causes.is_plain() => {
                let url = fields.get("url").and_then(Value::as_str);
                url.and_then(local)
            }
            _ => None,
        };
        if let Some(path) = file {
            let why = match self.guards_let_read(by, &[&path]).await {
                Ok(None) => None,
                Ok(Some(_)) => Some("a guard wants you asked, which nobody is here".to_owned()),
                Err(why) => Some(why),
            };
            if let Some(why) = why {
                return vec![not_read(&path, &why)];
            }
        }
        self.resolve(part, by.agent)
    }

    fn resolve(&self, part: PartInput, agent: &AgentInfo) -> Vec<PartInput> {
        let text = |fields: &Object, key: &str| {
            let found = fields.get(key).and_then(Value::as_str);
            found.map(str::to_owned)
        };
        match &part.kind {
            PartKind::File(fields) => match text(fields, "url").as_deref().and_then(local) {
                Some(path) => self.file(path, agent),
                None => {
                    let read = attached_text(fields).into_iter().flatten();
                    read.chain([part.clone()]).collect()
                }
            },
            PartKind::Agent(fields) => {
                let name = text(fields, "name").unwrap_or_default();
                let hint = match evaluate("task", &name, &[&agent.permission]) {
                    Action::Deny => " . Invoked by user; guaranteed to exist.",
                    _ => "",
                };
                let call = format!(
                    " Use the above message and context to generate a prompt and call the task tool with subagent: {name}{hint}"
                );
                vec![part, text_part(call, true)]
            }
            _ => vec![part],
        }
    }

    /// Reads a file or folder of the project that the agent may read without approval; nothing beyond the project is read for a
    /// client (invariant 11).
    fn file(&self, path: PathBuf, agent: &AgentInfo) -> Vec<PartInput> {
        let place = &self.inner.place;
        let roots = Roots::found([&place.worktree, &place.directory]);
        let shown = resolve(Path::new("/"), &path);
        let read = match roots.contains(&shown) {
            Ok(path) => {
                let rules = self.inner.access.rules(&[&agent.permission]);
                let named = rules.decide(Operation::Read, &shown).action;
                match rules
                    .decide_by_file(Operation::Read, &path)
                    .map(|it| it.action)
                {
                    Ok(Action::Allow) if named == Action::Allow => {
                        self.attach(path, rules.clone()).map_err(|e| e.to_string())
                    }
                    _ => Err("the rules for `read` do not allow it without asking".to_owned()),
                }
            }
            Err(error) => Err(error.to_string()),
        };
        read.unwrap_or_else(|reason| vec![not_read(&path, &reason)])
    }

    /// Returns the agents that a command's template mentions as `@name`.
    pub(crate) fn mentioned_agents(&self, text: &str, agent: &AgentInfo) -> Vec<PartInput> {
        let mut names = names(text);
        names.sort_unstable();
        let known = names
            .into_iter()
            .filter(|name| self.inner.agents.contains_key(*name));
        known
            .flat_map(|name| {
                let mut fields = Object::new();
                fields.insert("name".into(), json!(name));
                let mention = PartInput {
                    id: None,
                    kind: PartKind::Agent(fields),
                };
                self.resolve(mention, agent)
            })
            .collect()
    }
}
