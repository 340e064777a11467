//! A turn of a session that an executor runs: its process, and its output as events of the session, stored and then published.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use outrigger_conversation::ExternalAnswer;
use outrigger_protocol::Object;
use outrigger_protocol::audit::{AuditKind, AuditRecord};
use outrigger_protocol::event::Event;
use outrigger_protocol::id::{CallId, MessageId, SessionId};
use outrigger_protocol::merged::{AgentOutput, EXECUTOR};
use outrigger_protocol::message::{
    AssistantMessage, MessageInfo, MessagePath, MessageWithParts, NamedError, Part, PartKind,
};
use outrigger_protocol::provenance::Provenance;
use outrigger_protocol::session::{PartInput, SessionStatus};
use outrigger_protocol::tool::ToolCall;
use outrigger_protocol::turn::TurnOutcome;
use outrigger_stdx::clock::now_ms;
use serde_json::{Value, json};

use crate::access::Unasked;
use crate::drive::{Host, Limits, Streams, drive};
use crate::executor::Executor;
use crate::process_context::{ProcessContext, start};
use crate::step::{End, Image, Question, Task, VendorOutput, Verdict};
use crate::used::Used;

/// Maximum bytes of a vendor's session id.
const MAX_ID: usize = 200;

/// Maximum characters of a title.
const MAX_TITLE: usize = 50;

/// A pinned future on the heap.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The agent that owns the session.
pub trait Keeper: Send + Sync + 'static {
    /// Stores events and publishes them.
    fn commit(&self, events: Vec<Event>) -> Boxed<'static, Result<(), String>>;
    /// Publishes what is later stored as part of something else.
    fn publish(&self, event: Event);
    /// Passes a call through hooks, rules, the user and the audit. `Err`: why it is refused.
    fn authorize(&self, call: ToolCall) -> Boxed<'static, Result<(), String>>;
    /// Writes an audit record.
    fn audit(&self, record: AuditRecord);
}

/// The prompt, and its conversation.
pub struct PromptContext<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// The user's message.
    pub prompt: &'a MessageId,
    /// The one of our agents that answers through the executor.
    pub agent: &'a str,
    /// Its prompt, with which a new session of the vendor starts.
    pub instructions: Option<&'a str>,
    /// Who contributed the agent and the command of the prompt, if not the user.
    pub contributed: Provenance,
    /// Its working directory and project.
    pub path: MessagePath,
    /// The conversation.
    pub messages: &'a [&'a MessageWithParts],
}

/// A turn to run.
pub struct Work {
    executor: Executor,
    task: Task,
    unasked: Unasked,
    /// The message that it writes.
    message: AssistantMessage,
    seed: u64,
    place: ProcessContext,
    /// The part of the prompt that it does not get, in words.
    left_out: Option<String>,
}

impl Work {
    /// Creates a turn. `unasked`: calls that need no question; `seed` is any number.
    #[must_use]
    pub fn new(
        executor: Executor,
        asked: PromptContext<'_>,
        unasked: Unasked,
        place: ProcessContext,
        seed: u64,
    ) -> Self {
        let infos = asked.messages.iter().map(|it| &it.info);
        let resume = resumes_by(&executor, infos);
        let prompt = asked
            .messages
            .iter()
            .find(|it| it.info.id() == asked.prompt);
        // Earlier instructions are already in the vendor's session.
        let first = asked.instructions.filter(|_| resume.is_none());
        let texts = prompt.into_iter().flat_map(|it| texts(&it.parts));
        let texts: Vec<&str> = first.into_iter().chain(texts).collect();
        let images = prompt.map(|it| images(&it.parts)).unwrap_or_default();
        let images = if executor.takes_images() {
            images
        } else {
            Vec::new()
        };
        let left_out = prompt.and_then(|it| left_out(&it.parts, images.len()));
        let mut provenance = prompt.map(prompted_by).unwrap_or_default();
        provenance.extend(asked.contributed);
        let task = Task {
            prompt: texts.join("\n\n"),
            images,
            folder: PathBuf::from(&asked.path.cwd),
            resume,
            model: None,
            is_trusted: place.is_trusted,
            // An open sandbox only masks secrets and denied files.
            is_sandboxed: place.policy.as_ref().is_some_and(|it| it.own_terminals),
        };
        let message = AssistantMessage {
            parent_id: asked.prompt.clone(),
            session_id: asked.session.clone(),
            mode: asked.agent.to_owned(),
            agent: asked.agent.to_owned(),
            path: asked.path,
            model_id: "default".to_owned(),
            provider_id: executor.to_string(),
            provenance,
            ..AssistantMessage::default()
        };
        Self {
            executor,
            task,
            unasked,
            message,
            seed,
            place,
            left_out,
        }
    }

    /// Runs the turn. It ends early when `cancelled` completes. Returns how it ended, and its usage.
    ///
    /// # Errors
    /// What cannot be stored.
    pub async fn run(
        self,
        keeper: Arc<dyn Keeper>,
        cancelled: impl Future<Output = ()> + Send,
    ) -> Result<(TurnOutcome, Used), String> {
        let Self {
            executor,
            task,
            unasked,
            message,
            seed,
            place,
            left_out,
        } = self;
        let session = message.session_id.clone();
        let name = executor.to_string();
        let (answer, _) = ExternalAnswer::begin(message, seed, now_ms());
        let mut worker = Worker {
            name,
            answer,
            keeper: Arc::clone(&keeper),
            used: Used::default(),
        };
        let begun = worker.answer.keep(EXECUTOR, json!({ "name": worker.name }));
        let busy = Event::SessionStatus {
            session_id: session.clone(),
            status: SessionStatus::Busy,
        };
        let mut events = vec![busy, begun];
        if let Some(text) = left_out {
            let timestamp = now_ms();
            let note = AgentOutput::Other { text, timestamp };
            events.extend(worker.answer.say_with(note, &Object::new(), timestamp));
        }
        keeper.commit(events).await?;
        let launch = executor.launch(&task, unasked);
        let end = match start(&executor, &launch.command, &task, place).await {
            Err(words) => End::Failed(words),
            Ok(mut child) => match (child.channel.take(), child.stderr.take()) {
                (Some(channel), Some(stderr)) => {
                    let (stdout, stdin) = channel.into_split();
                    let streams = Streams {
                        stdin,
                        stdout,
                        stderr,
                        input: launch.input,
                    };
                    let protocol = executor.protocol(task);
                    let limits = Limits::default();
                    // It ends, with all that it started, when the child is dropped.
                    drive(protocol, streams, &mut worker, cancelled, limits).await
                }
                _ => End::Failed("its streams are missing".to_owned()),
            },
        };
        worker.finish(end).await
    }
}

/// Stores the executor's output.
struct Worker {
    name: String,
    answer: ExternalAnswer,
    keeper: Arc<dyn Keeper>,
    used: Used,
}

impl Worker {
    async fn finish(self, end: End) -> Result<(TurnOutcome, Used), String> {
        let message = self.answer.message().clone();
        let (error, outcome) = match end {
            End::Done => {
                let message_id = Some(message.id.clone());
                (None, TurnOutcome::Done { message_id })
            }
            End::Cancelled => {
                let error = NamedError::new("MessageAbortedError", "The operation was aborted.");
                (Some(error), TurnOutcome::Cancelled)
            }
            End::Failed(words) => {
                let error = NamedError::new("ExecutorError", format!("{}: {words}", self.name));
                (Some(error.clone()), TurnOutcome::Failed { error })
            }
        };
        let mut events = self.answer.finish(error, now_ms());
        let session_id = message.session_id;
        events.push(Event::SessionStatus {
            session_id: session_id.clone(),
            status: SessionStatus::Idle,
        });
        events.push(Event::SessionIdle { session_id });
        self.keeper.commit(events).await?;
        Ok((outcome, self.used))
    }

    /// Audits the end of a call. One that could not be refused is marked.
    fn record(&self, said: &VendorOutput) {
        let AgentOutput::ToolResult {
            tool_use_id,
            tool_name,
            is_error,
            ..
        } = &said.output
        else {
            return;
        };
        let facts = said.facts.get(EXECUTOR);
        let unasked = facts.is_some_and(|it| it.get("unasked").is_some());
        let how = if unasked {
            "made without a question that could have stopped it"
        } else {
            "asked about before"
        };
        let decision = if *is_error { "failed" } else { "completed" };
        self.keeper.audit(AuditRecord {
            session_id: Some(self.answer.message().session_id.clone()),
            subject: Some(format!("{tool_name} {tool_use_id}")),
            errored: *is_error,
            detail: Some(format!("by executor {}, {how}", self.name)),
            ..AuditRecord::new(AuditKind::ToolOutcome, now_ms(), decision)
        });
    }
}

impl Host for Worker {
    async fn say(&mut self, said: VendorOutput) -> Result<(), String> {
        self.record(&said);
        let events = self.answer.say_with(said.output, &said.facts, now_ms());
        self.keeper.commit(events).await
    }

    async fn piece(&mut self, is_thought: bool, text: String) -> Result<(), String> {
        let (begun, piece) = self.answer.piece(is_thought, text, now_ms());
        if let Some(begun) = begun {
            self.keeper.commit(vec![begun]).await?;
        }
        if let Some(piece) = piece {
            self.keeper.publish(piece);
        }
        Ok(())
    }

    fn used(&mut self, used: Used) {
        self.answer.used(used.tokens.clone(), used.cost);
        self.used = used;
    }

    async fn session(&mut self, id: String) -> Result<(), String> {
        if !is_id(&id) {
            return Err(format!(
                "it names its session {id:?}, which cannot be resumed"
            ));
        }
        let kept = json!({ "name": self.name, "session": id });
        let event = self.answer.keep(EXECUTOR, kept);
        self.keeper.commit(vec![event]).await
    }

    fn decide(&self, question: Question) -> Boxed<'static, Verdict> {
        let message = self.answer.message();
        let call = ToolCall {
            call_id: CallId(question.call),
            session_id: message.session_id.clone(),
            message_id: message.id.clone(),
            agent: message.agent.clone(),
            tool: question.tool,
            input: question.input,
            provenance: message.provenance.clone(),
        };
        let decided = self.keeper.authorize(call);
        Box::pin(async move {
            match decided.await {
                Ok(()) => Verdict::Allow,
                Err(why) => Verdict::Deny(why),
            }
        })
    }
}

/// Returns the causes of a prompt.
fn prompted_by(prompt: &&MessageWithParts) -> Provenance {
    match &prompt.info {
        MessageInfo::User(user) => user.provenance.clone(),
        MessageInfo::Assistant(_) => Provenance::default(),
    }
}

/// Returns which parts of a prompt an executor does not get, so that no one waits for an answer to them. Text files and folders are
/// among the texts; `images` images are sent along.
fn left_out(parts: &[Part], images: usize) -> Option<String> {
    let count = |is: fn(&PartKind) -> bool| parts.iter().filter(|it| is(&it.kind)).count();
    let files =
        count(|it| matches!(it, PartKind::File(file) if !is_read(file))).saturating_sub(images);
    let subtasks = count(|it| matches!(it, PartKind::Subtask(_)));
    let counts = format!("files: {files}, subtasks: {subtasks}");
    (files + subtasks > 0).then(|| format!("Not everything is passed on. Omitted: {counts}."))
}

/// Returns whether its content is in a text next to it.
fn is_read(file: &Object) -> bool {
    let mime = file.get("mime").and_then(Value::as_str);
    matches!(mime, Some("text/plain" | "application/x-directory"))
}

/// Returns the images of a prompt. Remote ones are not fetched for another vendor's agent.
fn images(parts: &[Part]) -> Vec<Image> {
    let of = |part: &Part| {
        let PartKind::File(file) = &part.kind else {
            return None;
        };
        let field = |key: &str| file.get(key).and_then(Value::as_str);
        let mime = field("mime").filter(|it| it.starts_with("image/"))?;
        let (about, data) = field("url")?.strip_prefix("data:")?.split_once(',')?;
        about.ends_with(";base64").then(|| Image {
            mime: mime.to_owned(),
            data: data.to_owned(),
        })
    };
    parts.iter().filter_map(of).collect()
}

fn texts(parts: &[Part]) -> impl Iterator<Item = &str> {
    parts.iter().filter_map(|part| match &part.kind {
        PartKind::Text(text) if text.ignored != Some(true) => Some(text.text.as_str()),
        _ => None,
    })
}

/// Returns the texts of a prompt, as its author sent it.
#[must_use]
pub fn prompt_texts(parts: &[PartInput]) -> Vec<String> {
    parts
        .iter()
        .filter_map(|part| match &part.kind {
            PartKind::Text(text) if text.ignored != Some(true) => Some(text.text.clone()),
            _ => None,
        })
        .collect()
}

/// Returns whether a stored prompt contains exactly what its author sent.
#[must_use]
pub fn is_as_said(said: &[String], stored: &[Part]) -> bool {
    texts(stored).eq(said.iter().map(String::as_str))
}

/// Returns a title without a model: the start of the prompt.
#[must_use]
pub fn title(parts: &[PartInput]) -> String {
    parts
        .iter()
        .find_map(|part| match &part.kind {
            PartKind::Text(text) => text.text.lines().find(|line| !line.trim().is_empty()),
            _ => None,
        })
        .unwrap_or("A task")
        .trim()
        .chars()
        .take(MAX_TITLE)
        .collect()
}

/// Returns whether it can be an argument of a command: not an option, a path or two words.
fn is_id(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    id.len() <= MAX_ID
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.chars().all(is_plain)
}

/// Returns the vendor's session in which an executor answered last, to resume it.
fn resumes_by<'m>(
    executor: &Executor,
    messages: impl DoubleEndedIterator<Item = &'m MessageInfo>,
) -> Option<String> {
    let name = executor.to_string();
    messages
        .rev()
        .find_map(|info| match info {
            MessageInfo::Assistant(message) => {
                let kept = message.extra.get(EXECUTOR)?;
                (kept.get("name")?.as_str()? == name).then(|| kept.get("session")?.as_str())?
            }
            MessageInfo::User(_) => None,
        })
        .filter(|id| is_id(id))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_an_option_is_not_resumed() {
        assert!(is_id("077ac8a4-1383-47d3-9437-f3b6c0343f29") && is_id("ses_1aB"));
        for id in ["", "-y", "--yolo", "a b", "../x", "a\n", &"x".repeat(300)] {
            assert!(!is_id(id), "{id}");
        }
    }

    #[test]
    fn what_is_no_text_is_named() {
        let part = |value: serde_json::Value| {
            let mut whole = json!({ "id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1" });
            for (key, field) in value.as_object().unwrap() {
                whole[key] = field.clone();
            }
            serde_json::from_value::<Part>(whole).unwrap()
        };
        let text = part(json!({ "type": "text", "text": "Look" }));
        let of = |mime: &str, url: &str| part(json!({ "type": "file", "mime": mime, "url": url }));
        let read = of("text/plain", "file:///a");
        let picture = of("image/png", "data:image/png;base64,aGk=");
        let elsewhere = of("image/png", "https://x.test/a.png");
        let all = [text, read, picture, elsewhere];
        assert_eq!(left_out(&all[..2], 0), None);
        let said = left_out(&all, 0).unwrap();
        assert!(said.contains("files: 2, subtasks: 0"), "{said}");
        let image = Image {
            mime: "image/png".to_owned(),
            data: "aGk=".to_owned(),
        };
        assert_eq!(images(&all), [image]);
        let said = left_out(&all, 1).unwrap();
        assert!(said.contains("files: 1, subtasks: 0"), "{said}");
    }
}
