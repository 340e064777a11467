//! Converts a transcript to a session: the only place that decides what is taken from a file.
//!
//! Kept are the messages and their display. Dropped is everything that the program would act on: rules, agents, models, system texts, tool
//! switches, reverts, file snapshots, signatures, plugins as causes, other vendors' sessions, shares and workspaces, file URLs,
//! identifiers. The session belongs to the folder in which the user imports it; its [`Origin`] contains the original one. A part that would
//! start something when it is re-read becomes text.

use std::collections::{BTreeMap, BTreeSet};

use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::{
    AssistantMessage, MessageInfo, MessagePath, MessageTime, MessageWithParts, NamedError, Part,
    UserMessage,
};
use outrigger_protocol::origin::{IMPORTED, ORIGIN, Origin};
use outrigger_protocol::session::{Session, SessionTime};
use outrigger_protocol::{Millis, Object};
use serde_json::json;

use crate::ids::{self, Numbered};
use crate::parts::{Context, part, tokens};
use crate::program::Program;
use crate::transcript::Transcript;

/// Maximum characters of a title.
const MAX_TITLE: usize = 200;
/// Maximum characters of a displayed name.
const MAX_NAME: usize = 200;
/// Maximum cost of an answer in US dollars; larger values are ignored.
const MAX_COST: f64 = 1_000_000.0;

/// The key in a session's `metadata` for the number of imported messages.
pub(crate) const IMPORTED_MESSAGES: &str = "outriggerImportedMessages";

/// The target of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destination {
    /// The folder, absolute.
    pub directory: String,
    /// The folder relative to the project's root.
    pub path: String,
    /// The project.
    pub project_id: String,
    /// Version of this program.
    pub version: String,
    /// Now.
    pub now: Millis,
}

/// A session to store.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    /// The session.
    pub session: Session,
    /// Its messages, in order.
    pub messages: Vec<MessageWithParts>,
    /// Identifiers that the messages have in an export of this program, which may be one of a session here. They only find messages.
    pub(crate) exported: Vec<MessageId>,
}

/// Converts a transcript. `known` contains the imported sessions of the same program, by their identifiers there: only these may be its
/// parent or its children.
#[must_use]
pub fn accept(
    transcript: Transcript,
    to: &Destination,
    known: &BTreeMap<String, SessionId>,
) -> Accepted {
    // Nothing of a file comes after what is said here later.
    let time = |at: Millis| at.min(to.now);
    let created = time(transcript.created);
    let id = ids::session(transcript.program, &transcript.id, created);
    let session = Session {
        id: id.clone(),
        slug: "imported".to_owned(),
        project_id: to.project_id.clone(),
        directory: to.directory.clone(),
        path: to.path.clone(),
        parent_id: transcript
            .parent
            .as_ref()
            .and_then(|it| known.get(it))
            .cloned(),
        title: title(&transcript),
        version: to.version.clone(),
        metadata: note(Some(origin(&transcript)), transcript.messages.len()),
        time: SessionTime {
            created,
            updated: time(transcript.updated).max(created),
            ..SessionTime::default()
        },
        ..Session::default()
    };
    let mut writer = Writer {
        to,
        session: &id,
        program: transcript.program,
        ids: Numbered::of(&id),
        renamed: BTreeMap::new(),
        last_prompt: None,
        context: Context {
            known,
            calls: BTreeSet::new(),
            latest: to.now,
        },
    };
    let ids = transcript.messages.iter().map(|it| it.info.id().clone());
    let exported = match transcript.program {
        Program::Outrigger => ids.collect(),
        _ => Vec::new(),
    };
    let messages = transcript
        .messages
        .into_iter()
        .map(|message| writer.message(message))
        .collect();
    Accepted {
        session,
        messages,
        exported,
    }
}

struct Writer<'a> {
    to: &'a Destination,
    session: &'a SessionId,
    program: Program,
    ids: Numbered,
    /// New identifiers of prompts, by those in the file.
    renamed: BTreeMap<MessageId, MessageId>,
    last_prompt: Option<MessageId>,
    context: Context<'a>,
}

impl Writer<'_> {
    fn message(&mut self, message: MessageWithParts) -> MessageWithParts {
        let id = self.ids.message();
        let info = match message.info {
            MessageInfo::User(user) => {
                self.renamed.insert(user.id.clone(), id.clone());
                self.last_prompt = Some(id.clone());
                MessageInfo::User(self.prompt(&user, &id))
            }
            MessageInfo::Assistant(answer) => MessageInfo::Assistant(self.answer(answer, &id)),
        };
        let mut parts = Vec::new();
        for foreign in message.parts {
            let Some(kind) = part(foreign.kind, &mut self.context, &self.renamed) else {
                continue;
            };
            parts.push(Part {
                id: self.ids.part(),
                session_id: self.session.clone(),
                message_id: id.clone(),
                kind,
            });
        }
        MessageWithParts { info, parts }
    }

    fn prompt(&self, user: &UserMessage, id: &MessageId) -> UserMessage {
        UserMessage {
            id: id.clone(),
            session_id: self.session.clone(),
            time: MessageTime {
                created: self.context.time(user.time.created),
                completed: None,
            },
            ..UserMessage::default()
        }
    }

    fn answer(&self, answer: AssistantMessage, id: &MessageId) -> AssistantMessage {
        let asked = self.renamed.get(&answer.parent_id).cloned();
        let created = self.context.time(answer.time.created);
        let completed = answer.time.completed.map(|at| self.context.time(at));
        let folder = self.to.directory.clone();
        AssistantMessage {
            id: id.clone(),
            // An answer without a prompt would come before the whole conversation.
            parent_id: asked
                .or_else(|| self.last_prompt.clone())
                .unwrap_or_default(),
            session_id: self.session.clone(),
            mode: self.program.name().to_owned(),
            agent: self.program.name().to_owned(),
            path: MessagePath {
                cwd: folder.clone(),
                root: folder,
            },
            cost: cost(answer.cost),
            tokens: tokens(&answer.tokens),
            model_id: shortened(&answer.model_id, MAX_NAME),
            provider_id: shortened(&answer.provider_id, MAX_NAME),
            time: MessageTime {
                created,
                // Without one the agent would continue it.
                completed: Some(completed.unwrap_or(created).max(created)),
            },
            finish: Some(finish(answer.finish.as_deref())),
            error: answer.error.map(|error| {
                NamedError::new(shortened(&error.name, MAX_NAME), error.message().to_owned())
            }),
            summary: answer.summary.filter(|is_summary| *is_summary),
            extra: Object::from_iter([(IMPORTED.to_owned(), json!(true))]),
            ..AssistantMessage::default()
        }
    }
}

fn origin(transcript: &Transcript) -> Object {
    let origin = match &transcript.origin {
        Some(origin) => origin.clone(),
        None => Origin {
            program: transcript.program.title().to_owned(),
            version: transcript.version.clone(),
            session: transcript.id.clone(),
            directory: transcript.directory.clone(),
        },
    };
    let origin = Origin {
        program: shortened(&origin.program, MAX_NAME),
        version: shortened(&origin.version, MAX_NAME),
        session: shortened(&origin.session, MAX_NAME),
        directory: shortened(&origin.directory, 4096),
    };
    Object::from_iter([(ORIGIN.to_owned(), json!(origin))])
}

/// Records how many messages the original session has.
pub(crate) fn note(metadata: Option<Object>, messages: usize) -> Option<Object> {
    let mut metadata = metadata?;
    metadata.insert(IMPORTED_MESSAGES.to_owned(), json!(messages));
    Some(metadata)
}

/// Returns a one-line title. It contains the program, as every client's lists show it.
fn title(transcript: &Transcript) -> String {
    let title = transcript
        .title
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let title = if title.is_empty() {
        "Untitled".to_owned()
    } else {
        shortened(&title, MAX_TITLE)
    };
    match transcript.program {
        Program::Outrigger => title,
        program => format!("{title} ({})", program.title()),
    }
}

fn finish(said: Option<&str>) -> String {
    let known = [
        "stop",
        "tool-calls",
        "length",
        "content-filter",
        "error",
        "other",
    ];
    said.filter(|it| known.contains(it))
        .unwrap_or("stop")
        .to_owned()
}

/// Returns 0 for an invalid cost.
pub(crate) fn cost(said: f64) -> f64 {
    if said.is_finite() && (0.0..=MAX_COST).contains(&said) {
        said
    } else {
        0.0
    }
}

pub(crate) fn shortened(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}
