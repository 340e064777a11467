//! From what a client sends to a turn.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use outrigger_permissions::access::{Access, Operation, PathRules};
use outrigger_permissions::agents::AgentInfo;
use outrigger_permissions::deny_policy::{Forbidden, is_forbidden};
use outrigger_protocol::Object;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::{
    MessageInfo, MessagePath, MessageWithParts, ModelRef, PartKind, TextPart, UserMessage,
};
use outrigger_protocol::model::Cost;
use outrigger_protocol::permission::Action;
use outrigger_protocol::provenance::{Actor, Provenance};
use outrigger_protocol::session::{PartInput, PromptInput, Session};
use outrigger_protocol::turn::{Begin, CommandCall, TurnOutcome};
use outrigger_sandbox::paths::open_resolved;
use outrigger_sandbox::{Anchor, Forbids};
use outrigger_workspace::Place;
use serde_json::{Value, json};

use crate::boot::options::Boot;
use crate::error::AgentError;
use crate::ids;
use crate::prompt::command;
use crate::prompt::command_info::CommandInfo;
use crate::session::sessions::is_placeholder;
use crate::state::Agent;
use crate::turn::request::Compact;

/// Steps of a turn where neither the agent nor the settings say anything. A turn without end is never right (C16).
const MAX_STEPS: u32 = 200;
/// Bytes of a text file that go with a prompt.
const MAX_ATTACHED: u64 = 256 * 1024;
/// Names of a folder that go with a prompt.
const MAX_NAMES: usize = 1000;

/// A file to go with a prompt, about which the rules have been asked.
#[derive(Clone, Debug)]
struct Attachment {
    /// Where it is, without links: what was decided about is what is opened.
    path: PathBuf,
    /// The rules, for the names of a folder.
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
        // A pipe or a device may have no end, or nothing to read at all.
        if !kind.is_file() {
            return Err(fail("it is neither a file nor a folder".into()));
        }
        let mime = mime(&path);
        let most = MAX_ATTACHED * if mime == "text/plain" { 1 } else { 40 };
        let mut bytes = Vec::new();
        // Not as many bytes as its size says: that of files in /proc is 0, and a log grows.
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

    /// The names in a folder, of which a long list is cut. That of a file which is not to be read is not told.
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
    /// The parts of a file of the user's, for a prompt. Walks the project now and then: blocking.
    ///
    /// # Errors
    /// [`AgentError::Attachment`], also where a rule denies to read it.
    pub fn attachment(&self, path: PathBuf) -> Result<Vec<PartInput>, AgentError> {
        let rules = self.view().into_rules().ok_or_else(|| denied(&path))?;
        attachment(&path, rules, self.inner.spawner.forbids())
    }

    /// The same for a file about which these rules have been asked, by the path without links that they were asked about.
    pub(crate) fn attach(
        &self,
        path: PathBuf,
        rules: PathRules,
    ) -> Result<Vec<PartInput>, AgentError> {
        Attachment { path, rules }.parts(self.inner.spawner.forbids())
    }
}

impl Boot {
    /// The same where no agent runs here: by the policy of the machine and the rules of the folder.
    ///
    /// # Errors
    /// [`AgentError::Attachment`], and those of the policy and the configuration.
    pub fn attachment(&self, path: PathBuf) -> Result<Vec<PartInput>, AgentError> {
        let forbidden = Forbidden::by_policy(self)?;
        let place = Place::find(&self.directory);
        let config = self.load(&place)?;
        let rules = Access::new(&place, &self.folders.home).rules(&[&config.config.permission]);
        attachment(&path, rules, Some(&forbidden))
    }
}

/// The parts of a file that the user names.
fn attachment(
    named: &Path,
    rules: PathRules,
    forbids: Option<&dyn Forbids>,
) -> Result<Vec<PartInput>, AgentError> {
    let fail = |error: std::io::Error| AgentError::Attachment {
        path: named.display().to_string(),
        reason: error.to_string(),
    };
    let path = named.canonicalize().map_err(fail)?;
    let denies = |path: &Path| {
        let verdict = rules.decide_by_file(Operation::Read, path);
        verdict.map_or(true, |it| it.action == Action::Deny)
    };
    if is_forbidden(forbids, named) || is_forbidden(forbids, &path) {
        return Err(forbidden(named));
    }
    if denies(named) || denies(&path) {
        return Err(denied(named));
    }
    Attachment { path, rules }.parts(forbids)
}

fn forbidden(path: &Path) -> AgentError {
    AgentError::Attachment {
        path: path.display().to_string(),
        reason: "the policy of this machine forbids it".to_owned(),
    }
}

/// The rules are the user's as the file is: what goes with a prompt is told to a model.
fn denied(path: &Path) -> AgentError {
    AgentError::Attachment {
        path: path.display().to_string(),
        reason: "a rule under `permission` denies to read it".to_owned(),
    }
}

fn mime(path: &Path) -> &'static str {
    match path
        .extension()
        .and_then(|e| e.to_str())
        .map(str::to_ascii_lowercase)
        .as_deref()
    {
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        Some("pdf") => "application/pdf",
        _ => "text/plain",
    }
}

fn file_part(path: &Path, mime: &str, url: &str) -> PartInput {
    let mut file = Object::new();
    file.insert("mime".into(), json!(mime));
    file.insert(
        "filename".into(),
        json!(path.file_name().map(|n| n.to_string_lossy())),
    );
    file.insert("url".into(), json!(url));
    PartInput {
        id: None,
        kind: PartKind::File(file),
    }
}

/// A text of a prompt; a synthetic one was not written by the user.
pub(crate) fn text_part(text: String, synthetic: bool) -> PartInput {
    PartInput {
        id: None,
        kind: PartKind::Text(TextPart {
            text,
            synthetic: synthetic.then_some(true),
            ..TextPart::default()
        }),
    }
}

fn read_parts(path: &Path, mime: &str, text: &str) -> Vec<PartInput> {
    vec![
        text_part(
            format!(
                "Called the read tool with the following input: {}",
                json!({ "filePath": path })
            ),
            true,
        ),
        text_part(
            format!(
                "<path>{}</path>\n<content>\n{text}\n</content>",
                path.display()
            ),
            true,
        ),
        file_part(path, mime, &format!("file://{}", path.display())),
    ]
}

/// Text of a prompt as parts.
#[must_use]
pub(crate) fn text(text: &str) -> PartInput {
    text_part(text.to_owned(), false)
}

/// Stands for the output of a shell command until the arguments are filled in; a character that no text uses.
const STAND_IN: char = '\u{F8FF}';

fn stand_in(i: usize) -> String {
    format!("{STAND_IN}{i}{STAND_IN}")
}

impl Agent {
    /// Runs a slash command to its end.
    ///
    /// # Errors
    /// As [`Self::prompt`], and [`AgentError::NoCommand`].
    pub async fn command(
        &self,
        session_id: &SessionId,
        name: &str,
        arguments: &str,
        prompt: PromptInput,
    ) -> Result<TurnOutcome, AgentError> {
        self.run_command(session_id, name, arguments, prompt, false)
            .await
    }

    /// Like [`Self::command`], for a plugin that waits (see [`Self::prompt_from_plugin`]).
    ///
    /// # Errors
    /// As [`Self::command`], and [`AgentError::WaitsForItself`].
    pub async fn command_impatiently(
        &self,
        session_id: &SessionId,
        name: &str,
        arguments: &str,
        prompt: PromptInput,
    ) -> Result<TurnOutcome, AgentError> {
        self.run_command(session_id, name, arguments, prompt, true)
            .await
    }

    async fn run_command(
        &self,
        session_id: &SessionId,
        name: &str,
        arguments: &str,
        mut prompt: PromptInput,
        plugin_waits: bool,
    ) -> Result<TurnOutcome, AgentError> {
        if self.is_compact(name) {
            // A message of several words on the command line comes in quotes.
            let said = arguments.trim();
            let bare = said.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
            let said = bare.filter(|it| !it.contains('"')).unwrap_or(said);
            let compact = Compact {
                model: prompt.model,
                auto: false,
                instructions: (!said.is_empty()).then(|| said.to_owned()),
                provenance: prompt.provenance,
            };
            return self.compact(session_id, compact).await;
        }
        let info = match self.inner.commands.get(name) {
            Some(info) => info.clone(),
            None => {
                let info = self.mcp_command(name).await?;
                info.ok_or_else(|| self.no_command(name))?
            }
        };
        // What the text of a server says is never run, nor are the files read that it names.
        let own = info.source.is_own();
        let places = match own {
            true => command::shell_places(&info.template),
            false => Vec::new(),
        };
        // The places are the template's: what a person or a plugin writes behind the name is never run, and what a command
        // prints is not read for arguments.
        let agent = self.choose_agent(info.agent.as_deref().or(prompt.agent.as_deref()))?;
        let mut template = info.template.clone();
        for (i, (place, _)) in places.iter().enumerate().rev() {
            template.replace_range(place.clone(), &stand_in(i));
        }
        let mut filled = command::expand(&template, &arguments.replace(STAND_IN, ""));
        let named = filled.clone();
        for (i, (_, line)) in places.iter().enumerate() {
            filled = filled.replace(
                &stand_in(i),
                &self
                    .shell_output(session_id, &agent, &prompt.provenance, (name, line))
                    .await,
            );
        }
        let model = info.model.as_deref().and_then(ModelRef::parse);
        let by_agent = info.agent.as_ref().and(agent.model.clone());
        let is_subtask = info.subtask.unwrap_or(agent.mode == "subagent");
        let mut parts = if is_subtask {
            let chosen = model.or(by_agent).or(prompt.model.clone());
            let chosen = match chosen {
                Some(model) => model,
                None => self.choose_model(&self.session(session_id)?, &agent, None)?,
            };
            prompt.agent = prompt.agent.or_else(|| self.default_agent());
            vec![subtask(&info, &agent, &chosen, filled)]
        } else {
            prompt.agent = Some(agent.name.clone());
            prompt.model = model.or(by_agent).or(prompt.model);
            if info.source.word() == "skill"
                && let Some(skill) = self.inner.skills.iter().find(|skill| skill.name == name)
                && let Some(servers) = self.inner.start_skill_servers(session_id, skill).await
            {
                filled.push_str("\n\n");
                filled.push_str(&servers);
            }
            let mut parts = vec![text(&filled)];
            if own {
                // Before what a shell command printed is put in: that names nothing.
                let mut named_files = self
                    .mentioned(session_id, &agent, &prompt.provenance, &named)
                    .await;
                // A file that the client sent along is not put in twice, as in the reference.
                named_files.retain(|part| prompt.parts.iter().all(|sent| sent.kind != part.kind));
                parts.extend(named_files);
                parts.extend(self.mentioned_agents(&named, &agent));
            }
            parts
        };
        parts.append(&mut prompt.parts);
        prompt.parts = parts;
        let call = CommandCall {
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        };
        self.prompt_command(session_id, prompt, call, plugin_waits)
            .await
    }

    /// The agent that answers where none is named.
    #[must_use]
    pub fn default_agent(&self) -> Option<String> {
        outrigger_permissions::agents::default_name(
            &self.inner.agents,
            self.inner.config.config.default_agent.as_deref(),
        )
    }

    /// The text of a session's last answer.
    #[must_use]
    pub fn last_text(&self, id: &SessionId) -> String {
        let messages = self.inner.store.messages(id).unwrap_or_default();
        let last = messages
            .iter()
            .rev()
            .find(|m| matches!(m.info, MessageInfo::Assistant(_)));
        let texts = last
            .map(|m| m.parts.as_slice())
            .unwrap_or_default()
            .iter()
            .rev();
        texts
            .filter_map(|part| match &part.kind {
                PartKind::Text(text) => Some(text.text.clone()),
                _ => None,
            })
            .next()
            .unwrap_or_default()
    }

    /// What a turn starts from.
    pub(crate) fn begin(
        &self,
        session: &Session,
        history: &[MessageWithParts],
        prompt: PromptInput,
        command: Option<CommandCall>,
    ) -> Result<Begin, AgentError> {
        let agent = self.choose_agent(prompt.agent.as_deref())?;
        let model = self.choose_model(session, &agent, prompt.model.clone())?;
        let (cost, auto_compact, unaskable) = match self.inner.models.resolve(&model) {
            Ok(resolved) => {
                let auto = self.inner.auto_compact(&resolved.model, history);
                (resolved.model.cost, auto, None)
            }
            // What was said is kept and nobody answers it, but of a command nothing is (as in the reference).
            Err(error) if command.is_none() => (Cost::default(), None, Some(error.to_named())),
            Err(error) => return Err(error.into()),
        };
        let model = ModelRef {
            variant: prompt.variant.clone().or(model.variant),
            ..model
        };
        let used_calls = history
            .iter()
            .flat_map(|m| &m.parts)
            .filter_map(|part| match &part.kind {
                PartKind::Tool(call) => Some(call.call_id.0.clone()),
                _ => None,
            })
            .collect();
        let settings = self
            .inner
            .config
            .settings
            .agent
            .max_steps
            .and_then(|n| u32::try_from(n).ok());
        let place = &self.inner.place;
        let sent = match prompt.provenance.is_empty() {
            true => Provenance::prompted(Actor::User),
            false => prompt.provenance.clone(),
        };
        let own = prompt.message_id.as_ref();
        let mut provenance = sent.clone();
        provenance.extend(crate::session::edit::plugins_that_prompted(history, own));
        provenance.extend(self.inner.contributions(&agent.name, command.as_ref()));
        Ok(Begin {
            turn: ids::turn(),
            session_id: session.id.clone(),
            provenance,
            seed: ids::seed(),
            requested: requested(session, &prompt, command.is_some(), &agent.name, &model),
            message: UserMessage {
                id: prompt.message_id.clone().unwrap_or_default(),
                agent: agent.name.clone(),
                model: model.clone(),
                system: prompt.system,
                tools: prompt.tools,
                format: prompt.format,
                provenance: sent,
                ..UserMessage::default()
            },
            parts: prompt.parts,
            command,
            agent: agent.name.clone(),
            model,
            path: MessagePath {
                cwd: place.directory.to_string_lossy().into_owned(),
                root: place.worktree.to_string_lossy().into_owned(),
            },
            no_reply: prompt.no_reply == Some(true),
            wants_title: session.parent_id.is_none() && is_placeholder(&session.title),
            max_steps: agent.steps.or(settings).unwrap_or(MAX_STEPS),
            used_calls,
            stored: false,
            snapshots: self.inner.snapshots.is_on(),
            asks_loops: true,
            asks_before_stop: self.inner.plugins.pipeline().has("agent_end.before_stop"),
            unaskable,
            prices: [cost.input, cost.output, cost.cache.read, cost.cache.write],
            compact: None,
            auto_compact,
        })
    }

    /// Whether the model can be asked that a prompt would go to. A prompt for another one is stored and not answered, so a
    /// program that has a person in front of it looks first.
    ///
    /// # Errors
    /// Unknown session, agent, provider or model, and a provider without a key.
    pub fn check_model(&self, id: &SessionId, prompt: &PromptInput) -> Result<(), AgentError> {
        let agent = self.choose_agent(prompt.agent.as_deref())?;
        let model = self.choose_model(&self.session(id)?, &agent, prompt.model.clone())?;
        self.inner.models.resolve(&model)?;
        Ok(())
    }

    pub(crate) fn choose_agent(&self, name: Option<&str>) -> Result<AgentInfo, AgentError> {
        let name = match name {
            Some(name) => name.to_owned(),
            None => self.default_agent().unwrap_or_else(|| "build".to_owned()),
        };
        self.inner
            .agents
            .get(&name)
            .cloned()
            .ok_or_else(|| AgentError::NoAgent {
                known: self
                    .inner
                    .agents
                    .values()
                    .filter(|a| !a.hidden)
                    .map(|a| a.name.clone())
                    .collect(),
                name,
            })
    }

    /// The prompt's model, else the agent's, else the session's last, else the configured one or the provider's best.
    pub(crate) fn choose_model(
        &self,
        session: &Session,
        agent: &AgentInfo,
        asked: Option<ModelRef>,
    ) -> Result<ModelRef, AgentError> {
        let last = || {
            session.model.as_ref().map(|m| ModelRef {
                provider_id: m.provider_id.clone(),
                model_id: m.id.clone(),
                variant: m.variant.clone().filter(|v| v != "default"),
            })
        };
        match asked.or_else(|| agent.model.clone()).or_else(last) {
            Some(model) => Ok(model),
            None => Ok(self.inner.models.default_model()?),
        }
    }
}

/// A command that a subagent runs: what it shall do goes with the user's message.
fn subtask(
    command: &CommandInfo,
    agent: &AgentInfo,
    model: &ModelRef,
    prompt: String,
) -> PartInput {
    let task = json!({
        "agent": agent.name, "description": command.description.clone().unwrap_or_default(), "command": command.name,
        "model": { "providerID": model.provider_id, "modelID": model.model_id }, "prompt": prompt,
    });
    let fields = match task {
        Value::Object(fields) => fields,
        _ => Object::new(),
    };
    PartInput {
        id: None,
        kind: PartKind::Subtask(fields),
    }
}

/// The hook's view of the prompt: keys that the client did not set are absent. A command always names agent and model.
fn requested(
    session: &Session,
    prompt: &PromptInput,
    command: bool,
    agent: &str,
    model: &ModelRef,
) -> Value {
    let mut out = Object::new();
    out.insert("sessionID".into(), json!(session.id));
    let optional = [
        (
            "agent",
            json!(prompt.agent.as_deref().or(command.then_some(agent))),
        ),
        (
            "model",
            json!(prompt.model.as_ref().or(command.then_some(model))),
        ),
        ("messageID", json!(prompt.message_id)),
        ("variant", json!(prompt.variant)),
    ];
    out.extend(
        optional
            .into_iter()
            .filter(|(_, v)| !v.is_null())
            .map(|(k, v)| (k.to_owned(), v)),
    );
    Value::Object(out)
}
