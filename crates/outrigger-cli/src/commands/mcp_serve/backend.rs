//! What another agent may use: sessions of this folder, and the tools of this agent under its rules.

use std::collections::{HashMap, HashSet};

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use outrigger_agent::{Agent, AgentError, CommandSource, NewSession, TurnRequest, asked_by};
use outrigger_mcp_server::{Backend, Caller, Exchange};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::{MessageInfo, MessageWithParts, PartKind, TextPart};
use outrigger_protocol::session::{PartInput, PromptInput, Session};
use outrigger_protocol::turn::TurnOutcome;
use outrigger_store::SessionFilter;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::agents::PermittedAgents;
use super::results::{failure, of_tool, text};
use super::sessions::{KIND, Steps, address, changes, id_of, template, transcript};

/// Default number of listed sessions and of messages read.
const DEFAULT_LIMIT: u64 = 20;
const MAX_LIMIT: u64 = 200;

/// An agent.
pub(super) struct AgentBackend {
    agent: Agent,
    permitted: PermittedAgents,
    // The session in which the tools of a connection run.
    own: Mutex<HashMap<u64, SessionId>>,
    // The sessions that clients began. What a session says of itself is no proof: others can write it.
    begun: Mutex<HashSet<SessionId>>,
}

/// `Err`: the reason for the other agent's model.
type BackendResult = Result<Value, String>;

impl AgentBackend {
    pub(super) fn new(agent: Agent, permitted: PermittedAgents) -> Self {
        Self {
            agent,
            permitted,
            own: Mutex::default(),
            begun: Mutex::default(),
        }
    }

    fn folder(&self) -> String {
        self.agent
            .location()
            .directory
            .to_string_lossy()
            .into_owned()
    }

    /// Returns a session of this folder; the client may not access others.
    fn session(&self, arguments: &Value) -> Result<Session, String> {
        let id = arguments["session_id"].as_str();
        self.session_of(id.ok_or("`session_id` is missing")?)
    }

    fn session_of(&self, id: &str) -> Result<Session, String> {
        let id = SessionId::from(id);
        let session = self.agent.session(&id).map_err(|error| error.to_string())?;
        if session.directory == self.folder() {
            Ok(session)
        } else {
            Err(AgentError::NoSession(id.to_string()).to_string())
        }
    }

    async fn start(&self, caller: &Caller, arguments: &Value) -> BackendResult {
        let title = arguments["title"].as_str().map(str::to_owned);
        let agent = self.permitted.for_new(arguments["agent"].as_str())?;
        let new = NewSession {
            title,
            agent: Some(agent),
            metadata: json!({"mcpClient": caller.client}).as_object().cloned(),
            ..NewSession::default()
        };
        let session = self
            .agent
            .create_session(new)
            .await
            .map_err(|error| error.to_string())?;
        self.begun.lock().await.insert(session.id.clone());
        let id = session.id.to_string();
        Ok(structured(&json!({"session_id": id})))
    }

    async fn prompt_session(&self, exchange: &Exchange, arguments: &Value) -> BackendResult {
        let caller = exchange.caller();
        let session = self.session(arguments)?;
        let said = arguments["prompt"].as_str().ok_or("`prompt` is missing")?;
        let part = PartKind::Text(TextPart {
            text: said.to_owned(),
            ..TextPart::default()
        });
        let is_clients = self.begun.lock().await.contains(&session.id);
        let (own, asked) = (session.agent.as_deref(), arguments["agent"].as_str());
        let prompt = PromptInput {
            agent: Some(self.permitted.for_session(own, is_clients, asked)?),
            parts: vec![PartInput {
                id: None,
                kind: part,
            }],
            provenance: asked_by(&caller.client),
            ..PromptInput::default()
        };
        let wrong = |error: AgentError| error.to_string();
        self.agent.providers_ready().await;
        self.agent
            .check_model(&session.id, &prompt)
            .map_err(wrong)?;
        let steps = Steps::new(exchange, &session.id).report(self.agent.listen());
        let turn = self.agent.run(TurnRequest::prompt(&session.id, prompt));
        let outcome = tokio::select! {
            outcome = turn => outcome,
            () = steps => return Err("the turn was lost".to_owned()),
        };
        match outcome.map_err(wrong)? {
            TurnOutcome::Done { message_id } => {
                let messages = self.messages(&session.id)?;
                let last = messages
                    .iter()
                    .find(|it| Some(it.info.id()) == message_id.as_ref());
                Ok(text(&last.map(said_in).unwrap_or_default()))
            }
            TurnOutcome::Failed { error } => Err(error.message().to_owned()),
            TurnOutcome::Cancelled => Err("the turn was cancelled".to_owned()),
        }
    }

    fn read_session(&self, arguments: &Value) -> BackendResult {
        let session = self.session(arguments)?;
        let messages = self.messages(&session.id)?;
        let most = usize::try_from(limit(arguments)).unwrap_or(usize::MAX);
        let skipped = messages.len().saturating_sub(most);
        let shown: Vec<Value> = messages
            .iter()
            .skip(skipped)
            .map(|message| {
                let role = match message.info {
                    MessageInfo::User(_) => "user",
                    MessageInfo::Assistant(_) => "assistant",
                };
                let tools = message.parts.iter().filter_map(|part| match &part.kind {
                    PartKind::Tool(tool) => Some(tool.tool.clone()),
                    _ => None,
                });
                json!({"role": role, "text": said_in(message), "tools": tools.collect::<Vec<_>>()})
            })
            .collect();
        Ok(structured(&json!({"messages": shown, "skipped": skipped})))
    }

    /// Returns sessions of this folder, latest first.
    fn sessions(&self, limit: u64) -> Result<Vec<Session>, String> {
        let filter = SessionFilter {
            directory: Some(self.folder()),
            roots_only: true,
            limit: usize::try_from(limit).ok(),
            ..SessionFilter::default()
        };
        let sessions = self.agent.store().sessions(&filter);
        sessions.map_err(|error| error.to_string())
    }

    fn list(&self, arguments: &Value) -> BackendResult {
        let sessions: Vec<Value> = self
            .sessions(limit(arguments))?
            .iter()
            .map(|session| json!({"session_id": session.id.to_string(), "title": session.title}))
            .collect();
        Ok(structured(&json!({"sessions": sessions})))
    }

    fn messages(&self, id: &SessionId) -> Result<Vec<MessageWithParts>, String> {
        let messages = self.agent.store().messages(id);
        messages.map_err(|error| error.to_string())
    }

    /// Returns the session in which the tools of a connection run.
    async fn own(&self, caller: &Caller) -> Result<SessionId, String> {
        let mut own = self.own.lock().await;
        if let Some(id) = own.get(&caller.connection) {
            return Ok(id.clone());
        }
        let new = NewSession {
            title: Some(format!("Tools for {}", caller.client)),
            agent: Some(self.permitted.for_new(None)?),
            metadata: json!({"mcpClient": caller.client}).as_object().cloned(),
            ..NewSession::default()
        };
        let session = self.agent.create_session(new).await;
        let id = session.map_err(|error| error.to_string())?.id;
        own.insert(caller.connection, id.clone());
        Ok(id)
    }

    async fn tool(&self, caller: &Caller, tool: &str, arguments: Value) -> BackendResult {
        let session = self.own(caller).await?;
        // As in sessions: what the client does not name is an agent that the user permits.
        let by = self.permitted.for_new(None)?;
        let called = self
            .agent
            .remote_call(&session, &caller.client, &by, tool, arguments);
        let outcome = called.await.map_err(|error| error.to_string())?;
        Ok(of_tool(&outcome))
    }
}

impl Backend for AgentBackend {
    fn instructions(&self) -> String {
        format!(
            "Outrigger, a coding agent, at work in {}. `session_start` begins a conversation with it, `session_prompt` gives it work and \
             waits for the answer. The other tools run here directly, under the rules of this machine's user.",
            self.folder()
        )
    }

    fn tools<'a>(&'a self) -> BoxFuture<'a, Vec<Value>> {
        let own = self.agent.remote_tools().into_iter().map(|spec| {
            let mut schema = spec.input_schema;
            schema["type"] = "object".into();
            json!({
                "name": spec.name, "description": spec.description, "inputSchema": schema,
                "annotations": {"readOnlyHint": spec.read_only},
            })
        });
        let tools = of_sessions().into_iter().chain(own).collect();
        Box::pin(std::future::ready(tools))
    }

    fn call<'a>(
        &'a self,
        exchange: &'a Exchange,
        tool: &'a str,
        arguments: Value,
    ) -> BoxFuture<'a, Result<Value, String>> {
        let caller = exchange.caller();
        Box::pin(async move {
            let answer = match tool {
                "session_start" => self.start(caller, &arguments).await,
                "session_prompt" => self.prompt_session(exchange, &arguments).await,
                "session_read" => self.read_session(&arguments),
                "session_list" => self.list(&arguments),
                other => {
                    let known = self.agent.remote_tools();
                    if !known.iter().any(|spec| spec.name == other) {
                        return Err(format!("there is no tool {other}"));
                    }
                    self.tool(caller, other, arguments).await
                }
            };
            Ok(answer.unwrap_or_else(|reason| failure(&reason)))
        })
    }

    fn prompts<'a>(&'a self) -> BoxFuture<'a, Vec<Value>> {
        let commands = self.agent.commands().values();
        let of_user = commands.filter(|it| it.source == CommandSource::Command);
        let prompts = of_user.map(|it| {
            json!({
                "name": it.name,
                "description": it.description,
                "arguments": [{"name": "arguments", "description": "What stands after the command", "required": false}],
            })
        });
        Box::pin(std::future::ready(prompts.collect()))
    }

    /// Returns the text of a command. What it would run is not run, and files that it names are not
    /// read.
    fn prompt<'a>(
        &'a self,
        name: &'a str,
        arguments: Value,
    ) -> BoxFuture<'a, Result<Value, String>> {
        let found = self
            .agent
            .commands()
            .get(name)
            .filter(|it| it.source == CommandSource::Command);
        let said = arguments["arguments"].as_str().unwrap_or_default();
        let prompt = found
            .map(|it| {
                let text = it.template.replace("$ARGUMENTS", said);
                json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]})
            })
            .ok_or_else(|| format!("there is no prompt {name}"));
        Box::pin(std::future::ready(prompt))
    }

    fn resources<'a>(&'a self) -> BoxFuture<'a, Vec<Value>> {
        let sessions = self.sessions(DEFAULT_LIMIT).unwrap_or_default();
        let resources = sessions.iter().map(
            |session| json!({"uri": address(&session.id), "name": session.title, "mimeType": KIND}),
        );
        Box::pin(std::future::ready(resources.collect()))
    }

    fn templates(&self) -> Vec<Value> {
        vec![template()]
    }

    fn read<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<Value, String>> {
        let read = || {
            let id = id_of(uri).ok_or_else(|| format!("there is no resource {uri}"))?;
            let session = self.session_of(id)?;
            let said = transcript(&self.messages(&session.id)?);
            Ok(json!({"contents": [{"uri": uri, "mimeType": KIND, "text": said}]}))
        };
        Box::pin(std::future::ready(read()))
    }

    fn changes(&self) -> Option<BoxStream<'static, String>> {
        Some(changes(self.agent.listen()))
    }

    /// Completes the URI of a session of this folder.
    fn complete<'a>(
        &'a self,
        reference: &'a Value,
        argument: &'a str,
        begins: &'a str,
    ) -> BoxFuture<'a, Vec<String>> {
        let is_session = reference["type"] == "ref/resource" && argument == "id";
        let sessions = if is_session {
            self.sessions(MAX_LIMIT).unwrap_or_default()
        } else {
            Vec::new()
        };
        let ids = sessions
            .iter()
            .map(|session| session.id.to_string())
            .filter(|id| id.starts_with(begins))
            .collect();
        Box::pin(std::future::ready(ids))
    }
}

fn of_sessions() -> Vec<Value> {
    let id = || json!({"type": "string", "description": "Session"});
    let count = |what: &str| json!({"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "description": what});
    let agent = || {
        let which = "Agent, one that the user permits; where none is named, that of the session or the default one";
        json!({"type": "string", "description": which})
    };
    let tool = |name: &str, description: &str, properties: Value, required: &[&str]| {
        json!({
            "name": name, "description": description,
            "inputSchema": {"type": "object", "properties": properties, "required": required},
        })
    };
    vec![
        tool(
            "session_start",
            "Start a conversation with Outrigger. Answers its session_id.",
            json!({"title": {"type": "string", "description": "Title"}, "agent": agent()}),
            &[],
        ),
        tool(
            "session_prompt",
            "Give Outrigger work in a session and wait for its answer.",
            json!({"session_id": id(), "prompt": {"type": "string", "description": "What to do"}, "agent": agent()}),
            &["session_id", "prompt"],
        ),
        tool(
            "session_read",
            "Read the last messages of a session.",
            json!({"session_id": id(), "limit": count("Messages, the last ones")}),
            &["session_id"],
        ),
        tool(
            "session_list",
            "List the sessions of this folder, those used last first.",
            json!({"limit": count("Sessions")}),
            &[],
        ),
    ]
}

fn limit(arguments: &Value) -> u64 {
    arguments["limit"]
        .as_u64()
        .unwrap_or(DEFAULT_LIMIT)
        .clamp(1, MAX_LIMIT)
}

/// Returns the text of a message.
pub(super) fn said_in(message: &MessageWithParts) -> String {
    message
        .parts
        .iter()
        .filter_map(|part| match &part.kind {
            PartKind::Text(text) if text.synthetic != Some(true) => Some(text.text.as_str()),
            _ => None,
        })
        .collect::<Vec<_>>()
        .join("\n\n")
}

fn structured(value: &Value) -> Value {
    let mut result = text(&value.to_string());
    result["structuredContent"] = value.clone();
    result
}
