//! A turn: sends the prompt to the agent, forwards events to the editor, and asks questions there.

mod foreign_calls;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use outrigger_client::{Asker, ClientError, Events, StreamItem, encoded};
use outrigger_jsonrpc::{Peer, RpcError};
use outrigger_protocol::event::Event;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::{AssistantMessage, MessageInfo, MessageWithParts, NamedError};
use outrigger_protocol::provenance::Deed;
use outrigger_protocol::question::QuestionRequest;
use outrigger_protocol::session::{PromptInput, Session, SessionStatus};
use serde_json::{Value, json};
use tokio::task::{AbortHandle, JoinSet};

use crate::client::Client;
use crate::content::ParsedPrompt;
use crate::errors;
use crate::permissions;
use crate::questions::{self, Form};
use crate::session::options::id_of;
use crate::session::{Cancelled, OpenSession};
use crate::turn::foreign_calls::ForeignCalls;
use crate::updates::Updates;

/// A turn that has not started yet cannot be cancelled: retry after this.
const CANCEL_INTERVAL: Duration = Duration::from_millis(25);

/// Maximum number of subagents looked up after a gap in the stream.
const MAX_SUBAGENTS: usize = 1000;

/// A running turn and its state towards the editor.
pub(crate) struct Turn {
    open: Arc<OpenSession>,
    peer: Peer,
    client: Client,
    updates: Updates,
    /// The session and those of its subagents.
    sessions: HashSet<SessionId>,
    asker: Asker,
    /// Open questions, by their identifiers.
    asked: HashMap<String, AbortHandle>,
    asking: JoinSet<()>,
    /// Calls of subagents that the editor was asked about.
    foreign: ForeignCalls,
    /// The newest message before the turn.
    before: Option<String>,
}

/// Runs a prompt and returns why it stopped.
///
/// # Errors
/// The turn failed.
pub(crate) async fn run(
    open: Arc<OpenSession>,
    peer: Peer,
    client: Client,
    said: ParsedPrompt,
    mut cancelled: Cancelled,
) -> Result<Value, RpcError> {
    let _turn = open.turn.lock().await;
    if cancelled.is_now() {
        return Ok(stopped("cancelled"));
    }
    let refused = |error: ClientError| errors::refused(&error);
    let connection = open.connection.clone();
    let mut events = connection.listen().await.map_err(refused)?;
    let path = format!("/session/{}", open.id);
    let session: Session = connection.get(&path).await.map_err(refused)?;
    let newest: Vec<MessageWithParts> = connection
        .get(&format!("{path}/message?limit=1"))
        .await
        .map_err(refused)?;
    let before = newest.last().map(|it| it.info.id().to_string());
    let mut turn = Turn::new(Arc::clone(&open), peer, client, before);
    turn.updates = turn.updates.knows(&session);
    turn.say_notices().await;
    let (path, body) = request(&open, said);
    let answered = async { connection.post::<MessageWithParts>(&path, &body).await };
    let answered = turn.follow(&mut events, &mut cancelled, answered).await;
    turn.asking.shutdown().await;
    outcome(&answered.map_err(refused)?)
}

/// Returns the path and body of a prompt.
fn request(open: &OpenSession, said: ParsedPrompt) -> (String, Value) {
    let chosen = open.chosen().clone();
    let path = format!("/session/{}", open.id);
    match said {
        ParsedPrompt::Prompt(parts) => {
            let prompt = PromptInput {
                agent: chosen.mode,
                model: chosen.model,
                variant: chosen.effort,
                parts,
                ..PromptInput::default()
            };
            (format!("{path}/message"), json!(prompt))
        }
        ParsedPrompt::Command {
            name,
            arguments,
            files,
        } => {
            let body = json!({
                "command": name, "arguments": arguments, "agent": chosen.mode,
                "model": chosen.model.as_ref().map(id_of), "variant": chosen.effort, "parts": files,
            });
            (format!("{path}/command"), body)
        }
    }
}

/// Returns why a turn stopped, from its last answer.
fn outcome(last: &MessageWithParts) -> Result<Value, RpcError> {
    let MessageInfo::Assistant(answer) = &last.info else {
        return Ok(stopped("end_turn"));
    };
    if let Some(error) = &answer.error {
        return match error.name.as_str() {
            "MessageAbortedError" => Ok(stopped("cancelled")),
            "MessageOutputLengthError" => Ok(stopped("max_tokens")),
            _ => Err(errors::failed(error)),
        };
    }
    Ok(stopped(match answer.finish.as_deref() {
        Some("length") => "max_tokens",
        Some("content-filter") => "refusal",
        _ => "end_turn",
    }))
}

fn stopped(why: &str) -> Value {
    json!({ "stopReason": why })
}

impl Turn {
    pub(crate) fn new(
        open: Arc<OpenSession>,
        peer: Peer,
        client: Client,
        before: Option<String>,
    ) -> Self {
        Self {
            peer,
            client,
            updates: Updates::new(open.id.clone(), open.folder.clone())
                .with_contexts(open.offer.contexts())
                .with_terminals(client.shows_terminals),
            sessions: HashSet::from([open.id.clone()]),
            asker: Asker::new(open.connection.clone()),
            asked: HashMap::new(),
            asking: JoinSet::new(),
            foreign: ForeignCalls::default(),
            before,
            open,
        }
    }

    async fn follow(
        &mut self,
        events: &mut Events,
        cancelled: &mut Cancelled,
        turn: impl Future<Output = Result<MessageWithParts, ClientError>>,
    ) -> Result<MessageWithParts, ClientError> {
        tokio::pin!(turn);
        let (mut is_cancelled, mut is_over) = (false, false);
        let answered = loop {
            tokio::select! {
                biased;
                () = cancelled.wait(), if !is_cancelled => {
                    is_cancelled = true;
                    self.cancel().await;
                }
                // A turn that had not started is cancelled once it has.
                () = tokio::time::sleep(CANCEL_INTERVAL), if is_cancelled => self.cancel().await,
                item = events.next(), if !is_over => match item {
                    StreamItem::Event(event) => self.event(&event.event).await,
                    StreamItem::Gap => self.catch_up().await,
                    StreamItem::End => is_over = true,
                },
                answered = &mut turn => break answered,
            }
        };
        while let Some(item) = events.rest(true).await {
            match item {
                StreamItem::Event(event) => self.event(&event.event).await,
                StreamItem::Gap => self.catch_up().await,
                StreamItem::End => break,
            }
        }
        for update in self.foreign.end() {
            self.send(update).await;
        }
        if is_cancelled {
            return answered.or_else(|_| Ok(aborted()));
        }
        answered
    }

    async fn cancel(&self) {
        let path = format!("/outrigger/session/{}/cancel", self.open.id);
        let done: Result<bool, ClientError> = self.open.connection.post(&path, &json!({})).await;
        if let Err(error) = done {
            tracing::warn!("[acp] {} was not cancelled: {error}", self.open.id);
        }
    }

    pub(crate) async fn event(&mut self, event: &Event) {
        for update in self
            .updates
            .on(event)
            .into_iter()
            .chain(self.foreign.on(event))
        {
            self.send(update).await;
        }
        match event {
            Event::SessionCreated { session_id, info } => {
                let parent = info.parent_id.as_ref();
                if parent.is_some_and(|it| self.sessions.contains(it)) {
                    self.sessions.insert(session_id.clone());
                }
            }
            Event::PermissionAsked(request) if self.sessions.contains(&request.session_id) => {
                let (id, folder) = (self.open.id.as_str(), &self.open.folder);
                let question = permissions::question(id, request, folder);
                self.announce(&question["toolCall"]).await;
                let asker = Asker::new(self.open.connection.clone());
                let asking = permissions::ask(self.peer.clone(), asker, question, request.clone());
                self.put(request.id.as_str(), asking);
            }
            Event::QuestionAsked(request) if self.sessions.contains(&request.session_id) => {
                let form = Form::of(self.open.id.as_str(), request, self.client.forms);
                if let Form::Choice(choice) = &form {
                    self.announce(&choice["toolCall"]).await;
                }
                let (peer, connection) = (self.peer.clone(), self.open.connection.clone());
                let asking = questions::ask(peer, connection, form, request.clone());
                self.put(request.id.as_str(), asking);
            }
            Event::PermissionReplied { request_id, .. } => self.settled(request_id.as_str()),
            Event::QuestionReplied { request_id, .. }
            | Event::QuestionRejected { request_id, .. } => self.settled(request_id.as_str()),
            Event::MessageUpdated { session_id, info } if *session_id == self.open.id => {
                self.mode_of(info).await;
            }
            Event::SessionStatus { session_id, status } if *session_id == self.open.id => {
                self.retry(status).await;
            }
            _ => {}
        }
    }

    /// Sends a call that the editor is asked about, unless it knows it: one of a subagent. It expects the call before the question, and
    /// its end after the answer.
    async fn announce(&mut self, call: &Value) {
        let Some(id) = call["toolCallId"].as_str() else {
            return;
        };
        if self.updates.is_first_of(id) {
            let mut update = call.clone();
            update["sessionUpdate"] = json!("tool_call");
            self.foreign.add(id);
            self.send(update).await;
        }
    }

    fn put(&mut self, id: &str, asking: impl Future<Output = ()> + Send + 'static) {
        while self.asking.try_join_next().is_some() {}
        let task = self.asking.spawn(asking);
        self.asked.insert(id.to_owned(), task);
    }

    /// Handles an answered question: the editor's request is cancelled.
    fn settled(&mut self, id: &str) {
        if let Some(task) = self.asked.remove(id) {
            task.abort();
        }
    }

    /// Reports a change of the agent, as after a plan. The next prompt goes to it, so a plugin's message changes nothing.
    async fn mode_of(&self, info: &MessageInfo) {
        let MessageInfo::User(user) = info else {
            return;
        };
        if !user.provenance.plugins_that(Deed::Prompted).is_empty() {
            return;
        }
        let options = {
            let mut chosen = self.open.chosen();
            let now = self.open.offer.mode(&chosen);
            if now == user.agent || !self.open.offer.has_mode(&user.agent) {
                return;
            }
            chosen.mode = Some(user.agent.clone());
            self.open.offer.options(&chosen)
        };
        self.send(json!({ "sessionUpdate": "current_mode_update", "currentModeId": user.agent }))
            .await;
        if !self.client.lacks_options {
            self.send(json!({ "sessionUpdate": "config_option_update", "configOptions": options }))
                .await;
        }
    }

    async fn retry(&self, status: &SessionStatus) {
        if let (SessionStatus::Retry { message, .. }, true) = (status, self.client.notices) {
            self.send(json!({
                "sessionUpdate": "notice", "severity": "warning",
                "title": "The request to the model is made again", "description": message,
            }))
            .await;
        }
    }

    /// Reads missed events from the store.
    async fn catch_up(&mut self) {
        let path = format!("/session/{}/message?limit=100", self.open.id);
        let stored: Result<Vec<MessageWithParts>, ClientError> =
            self.open.connection.get(&path).await;
        let Ok(mut stored) = stored else { return };
        // Identifiers ascend.
        stored.retain(|it| Some(it.info.id().as_str()) > self.before.as_deref());
        for update in self.updates.stored(&stored) {
            self.send(update).await;
        }
        self.find_subagents().await;
        self.ask_what_was_missed().await;
    }

    /// Finds sessions of subagents started in the meantime, whose questions are asked, too.
    async fn find_subagents(&mut self) {
        let mut parents = vec![self.open.id.clone()];
        let mut seen = HashSet::new();
        while let Some(parent) = parents.pop() {
            if seen.len() >= MAX_SUBAGENTS || !seen.insert(parent.clone()) {
                continue;
            }
            let path = format!("/session/{}/children", encoded(parent.as_str()));
            let children: Result<Vec<Session>, ClientError> = self.open.connection.get(&path).await;
            let children = children.unwrap_or_else(|error| {
                tracing::warn!("[acp] the subagents of {parent} are not known: {error}");
                Vec::new()
            });
            for child in children {
                self.sessions.insert(child.id.clone());
                parents.push(child.id);
            }
        }
    }

    /// Asks the open questions that the editor has not been asked yet.
    async fn ask_what_was_missed(&mut self) {
        let permissions = self.asker.questions().await;
        let questions: Result<Vec<QuestionRequest>, ClientError> =
            self.open.connection.get("/question").await;
        let questions = match questions {
            Ok(questions) => questions,
            Err(error) => {
                tracing::warn!("[acp] the model's open questions are not known: {error}");
                return;
            }
        };
        let permissions = permissions.into_iter().map(Event::PermissionAsked);
        let questions = questions.into_iter().map(Event::QuestionAsked);
        for asked in permissions.chain(questions) {
            let id = match &asked {
                Event::PermissionAsked(request) => request.id.as_str(),
                Event::QuestionAsked(request) => request.id.as_str(),
                _ => continue,
            };
            if !self.asked.contains_key(id) {
                self.event(&asked).await;
            }
        }
    }

    /// Sends messages for the user once: outside the conversation, if the editor supports it.
    async fn say_notices(&self) {
        let lines = std::mem::take(&mut *self.open.notices());
        for line in lines {
            self.send(notice(&line, self.client)).await;
        }
    }

    async fn send(&self, update: Value) {
        let params = json!({ "sessionId": self.open.id, "update": update });
        self.peer.notify("session/update", &params).await;
    }
}

/// Creates a message for the user.
fn notice(line: &str, client: Client) -> Value {
    let line = outrigger_terminal::name(line);
    if client.notices {
        json!({ "sessionUpdate": "notice", "severity": "warning", "title": line })
    } else {
        json!({
            "sessionUpdate": "agent_message_chunk",
            "content": { "type": "text", "text": format!("_Outrigger: {line}_\n\n") },
        })
    }
}

#[cfg(test)]
mod tests;

/// Creates the result of a turn that was cancelled before it could start.
fn aborted() -> MessageWithParts {
    let error = NamedError::new("MessageAbortedError", "cancelled");
    let answer = AssistantMessage {
        error: Some(error),
        ..AssistantMessage::default()
    };
    MessageWithParts {
        info: MessageInfo::Assistant(answer),
        parts: Vec::new(),
    }
}
