//! From what a client sends to a turn.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_protocol::Object;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::{MessageInfo, MessagePath, ModelRef, PartKind, TextPart, UserMessage};
use outrigger_protocol::session::{PartInput, PromptInput, Session};
use outrigger_protocol::turn::{Begin, CommandCall, Input, TurnOutcome};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::agents::AgentInfo;
use crate::command;
use crate::drive::Driver;
use crate::error::AgentError;
use crate::ids;
use crate::inner::{Agent, lock};
use crate::session::is_placeholder;

/// Steps of a turn where neither the agent nor the settings say anything. A turn without end is never right (C16).
const MOST_STEPS: u32 = 200;
/// Bytes of a text file that go with a prompt.
const MOST_ATTACHED: u64 = 256 * 1024;

/// A file to go with a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Where it is.
    pub path: PathBuf,
}

impl Attachment {
    /// The parts that the file becomes: its text as if the model had read it, or the file itself for images and PDF.
    ///
    /// # Errors
    /// [`AgentError::Attachment`] when it cannot be read, is too large or is of no kind that a model can read.
    pub fn parts(&self) -> Result<Vec<PartInput>, AgentError> {
        let fail = |reason: String| AgentError::Attachment { path: self.path.display().to_string(), reason };
        let path = self.path.canonicalize().map_err(|e| fail(e.to_string()))?;
        let size = path.metadata().map_err(|e| fail(e.to_string()))?.len();
        let mime = mime(&path);
        if mime == "application/x-directory" {
            let mut names: Vec<String> = std::fs::read_dir(&path)
                .map_err(|e| fail(e.to_string()))?
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            return Ok(read_parts(&path, mime, &names.join("\n")));
        }
        if size > MOST_ATTACHED * if mime == "text/plain" { 1 } else { 40 } {
            return Err(fail(format!("it is {size} bytes long; let the agent read what it needs of it instead")));
        }
        let bytes = std::fs::read(&path).map_err(|e| fail(e.to_string()))?;
        if mime != "text/plain" {
            use base64::Engine as _;
            let url = format!("data:{mime};base64,{}", base64::engine::general_purpose::STANDARD.encode(bytes));
            return Ok(vec![file_part(&path, mime, &url)]);
        }
        let text = String::from_utf8(bytes).map_err(|_| fail("it is neither text nor an image".into()))?;
        let numbered: Vec<String> = text.lines().enumerate().map(|(i, line)| format!("{}: {line}", i + 1)).collect();
        Ok(read_parts(&path, mime, &numbered.join("\n")))
    }
}

fn mime(path: &Path) -> &'static str {
    if path.is_dir() {
        return "application/x-directory";
    }
    match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
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
    file.insert("filename".into(), json!(path.file_name().map(|n| n.to_string_lossy())));
    file.insert("url".into(), json!(url));
    PartInput { id: None, kind: PartKind::File(file) }
}

fn text_part(text: String, synthetic: bool) -> PartInput {
    PartInput { id: None, kind: PartKind::Text(TextPart { text, synthetic: synthetic.then_some(true), ..TextPart::default() }) }
}

fn read_parts(path: &Path, mime: &str, text: &str) -> Vec<PartInput> {
    vec![
        text_part(format!("Called the read tool with the following input: {}", json!({ "filePath": path })), true),
        text_part(format!("<path>{}</path>\n<content>\n{text}\n</content>", path.display()), true),
        file_part(path, mime, &format!("file://{}", path.display())),
    ]
}

/// Text of a prompt as parts.
#[must_use]
pub(crate) fn text(text: &str) -> PartInput {
    text_part(text.to_owned(), false)
}

impl Agent {
    /// Runs a prompt to its end. Prompts of the same session queue up behind each other.
    ///
    /// # Errors
    /// Unknown session, agent or model, another process at work in the session, and those of the store. What goes wrong
    /// within the turn is its outcome, not an error.
    pub async fn prompt(&self, session_id: &SessionId, prompt: PromptInput) -> Result<TurnOutcome, AgentError> {
        self.prompt_or_command(session_id, prompt, None).await
    }

    /// Runs a slash command to its end.
    ///
    /// # Errors
    /// As [`Self::prompt`], and [`AgentError::NoCommand`].
    pub async fn command(&self, session_id: &SessionId, name: &str, arguments: &str, mut prompt: PromptInput) -> Result<TurnOutcome, AgentError> {
        let info = self.inner.commands.get(name).ok_or_else(|| AgentError::NoCommand {
            name: name.to_owned(),
            known: self.inner.commands.keys().cloned().collect(),
        })?;
        let mut filled = command::expand(&info.template, arguments);
        // From the last to the first, so that the places before stay where they are.
        for (place, line) in command::shell_places(&filled).into_iter().rev() {
            let output = self.shell_output(&line).await;
            filled.replace_range(place, &output);
        }
        prompt.agent = info.agent.clone().or(prompt.agent).or_else(|| self.default_agent());
        prompt.model = info.model.as_deref().and_then(ModelRef::parse).or(prompt.model);
        let mut parts = vec![text(&filled)];
        parts.append(&mut prompt.parts);
        prompt.parts = parts;
        let call = CommandCall { name: name.to_owned(), arguments: arguments.to_owned() };
        self.prompt_or_command(session_id, prompt, Some(call)).await
    }

    async fn shell_output(&self, line: &str) -> String {
        let spec = outrigger_sandbox::Spec::new("/bin/sh")
            .args(["-c", line])
            .cwd(&self.inner.place.directory)
            .vars(outrigger_sandbox::env::allow_list(&[]));
        match outrigger_sandbox::run(&self.inner.spawner, spec, std::time::Duration::from_secs(30), 256 * 1024).await {
            Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
            Err(error) => format!("({line}: {error})"),
        }
    }

    /// The agent that answers where none is named.
    #[must_use]
    pub fn default_agent(&self) -> Option<String> {
        crate::agents::default_name(&self.inner.agents, self.inner.config.config.default_agent.as_deref())
    }

    async fn prompt_or_command(&self, id: &SessionId, prompt: PromptInput, command: Option<CommandCall>) -> Result<TurnOutcome, AgentError> {
        let queue = self.inner.sessions.queue(id);
        let _turn = queue.lock().await;
        let session = self.session(id)?;
        let _owner = self.own(id)?;
        let begin = self.begin(&session, prompt, command)?;
        let turn = begin.turn.clone();
        let cancel = self.register(id);
        let driver = Driver::new(Arc::clone(&self.inner), turn, id.clone(), cancel);
        let result = driver.run(Input::Begin(Box::new(begin))).await;
        lock(&self.inner.running).remove(id);
        let (outcome, _) = result?;
        self.inner.store.flush(true).await?;
        Ok(outcome)
    }

    pub(crate) fn register(&self, id: &SessionId) -> watch::Receiver<bool> {
        let (sender, receiver) = watch::channel(false);
        lock(&self.inner.running).insert(id.clone(), sender);
        receiver
    }

    /// Cancels the turn that runs in a session, if any. The turn ends by itself, with everything kept.
    pub fn cancel(&self, id: &SessionId) -> bool {
        lock(&self.inner.running).get(id).is_some_and(|sender| sender.send(true).is_ok())
    }

    /// Sessions in which a turn runs.
    #[must_use]
    pub fn busy(&self) -> Vec<SessionId> {
        lock(&self.inner.running).keys().cloned().collect()
    }

    /// The text of a session's last answer.
    #[must_use]
    pub fn last_text(&self, id: &SessionId) -> String {
        let messages = self.inner.store.messages(id).unwrap_or_default();
        let last = messages.iter().rev().find(|m| matches!(m.info, MessageInfo::Assistant(_)));
        let texts = last.map(|m| m.parts.as_slice()).unwrap_or_default().iter().rev();
        texts
            .filter_map(|part| match &part.kind {
                PartKind::Text(text) => Some(text.text.clone()),
                _ => None,
            })
            .next()
            .unwrap_or_default()
    }

    fn begin(&self, session: &Session, prompt: PromptInput, command: Option<CommandCall>) -> Result<Begin, AgentError> {
        let agent = self.choose_agent(prompt.agent.as_deref())?;
        let model = self.choose_model(session, &agent, prompt.model.clone())?;
        let resolved = self.inner.models.resolve(&model)?;
        let model = ModelRef { variant: prompt.variant.clone().or(model.variant), ..model };
        let cost = resolved.model.cost;
        let history = self.inner.store.messages(&session.id)?;
        let used_calls = history
            .iter()
            .flat_map(|m| &m.parts)
            .filter_map(|part| match &part.kind {
                PartKind::Tool(call) => Some(call.call_id.0.clone()),
                _ => None,
            })
            .collect();
        let settings = self.inner.config.settings.agent.max_steps.and_then(|n| u32::try_from(n).ok());
        let place = &self.inner.place;
        Ok(Begin {
            turn: ids::turn(),
            session_id: session.id.clone(),
            seed: ids::seed(),
            requested: requested(session, &prompt, command.is_some(), &agent.name, &model),
            message: UserMessage {
                id: prompt.message_id.clone().unwrap_or_default(),
                agent: agent.name.clone(),
                model: model.clone(),
                system: prompt.system,
                tools: prompt.tools,
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
            wants_title: session.parent_id.is_none()
                && is_placeholder(&session.title)
                && !history.iter().any(|m| matches!(m.info, MessageInfo::User(_))),
            max_steps: agent.steps.or(settings).unwrap_or(MOST_STEPS),
            used_calls,
            prices: [cost.input, cost.output, cost.cache.read, cost.cache.write],
        })
    }

    fn choose_agent(&self, name: Option<&str>) -> Result<AgentInfo, AgentError> {
        let name = match name {
            Some(name) => name.to_owned(),
            None => self.default_agent().unwrap_or_else(|| "build".to_owned()),
        };
        self.inner.agents.get(&name).cloned().ok_or_else(|| AgentError::NoAgent {
            known: self.inner.agents.values().filter(|a| !a.hidden).map(|a| a.name.clone()).collect(),
            name,
        })
    }

    /// The prompt's model, else the agent's, else the session's last, else the configured one or the provider's best.
    fn choose_model(&self, session: &Session, agent: &AgentInfo, asked: Option<ModelRef>) -> Result<ModelRef, AgentError> {
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

/// The hook's view of the prompt: keys that the client did not set are absent. A command always names agent and model.
fn requested(session: &Session, prompt: &PromptInput, command: bool, agent: &str, model: &ModelRef) -> Value {
    let mut out = Object::new();
    out.insert("sessionID".into(), json!(session.id));
    let optional = [
        ("agent", json!(prompt.agent.as_deref().or(command.then_some(agent)))),
        ("model", json!(prompt.model.as_ref().or(command.then_some(model)))),
        ("messageID", json!(prompt.message_id)),
        ("variant", json!(prompt.variant)),
    ];
    out.extend(optional.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.to_owned(), v)));
    Value::Object(out)
}
