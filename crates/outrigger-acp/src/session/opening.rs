//! Opening sessions: new ones, resumed ones, and what the editor gets with them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use outrigger_client::{Connection, encoded};
use outrigger_jsonrpc::{Answer, RpcError};
use outrigger_protocol::message::MessageWithParts;
use outrigger_protocol::session::{Session, Todo};
use serde_json::{Value, json};

use crate::errors::refused;
use crate::server::ServerState;
use crate::session::OpenSession;
use crate::session::options::{Chosen, Offer};
use crate::session::servers::{self, Handed};
use crate::updates::{Updates, plan, time};

/// Page size of the session list.
const PAGE: usize = 100;

impl ServerState {
    /// Handles `session/new`.
    pub(crate) async fn new_session(self: Arc<Self>, params: Value) -> Result<Answer, RpcError> {
        let folder = folder_of(&params)?;
        let handed = servers::read(&params)?;
        let opened = self.host.open(folder.clone()).await;
        let opened = opened.map_err(|error| refused(&error))?;
        let connection = opened.connection;
        let session: Session = connection
            .post("/session", &json!({}))
            .await
            .map_err(|error| refused(&error))?;
        let open = self
            .opened(connection, session, handed, opened.notices)
            .await?;
        let mut value = self.choices(&open);
        value["sessionId"] = json!(open.id);
        Ok(self.with_commands(value, open))
    }

    /// Handles `session/load`, with the history, and `session/resume`, without.
    pub(crate) async fn load_session(
        self: Arc<Self>,
        params: Value,
        replays: bool,
    ) -> Result<Answer, RpcError> {
        let folder = folder_of(&params)?;
        let handed = servers::read(&params)?;
        let id = session_of(&params)?;
        let opened = self.host.open(folder.clone()).await;
        let mut opened = opened.map_err(|error| refused(&error))?;
        let path = format!("/session/{}", encoded(id));
        let session: Session = opened
            .connection
            .get(&path)
            .await
            .map_err(|error| refused(&error))?;
        // A session that was started elsewhere continues there: its files are in that folder.
        if Path::new(&session.directory) != folder {
            let own = PathBuf::from(&session.directory);
            let own = own.canonicalize().map_err(|error| {
                let directory = &session.directory;
                RpcError::params(format!("the folder {directory} of this session: {error}"))
            })?;
            opened = self.host.open(own).await.map_err(|error| refused(&error))?;
        }
        let open = self
            .opened(opened.connection, session, handed, opened.notices)
            .await?;
        if replays {
            self.replay(&open).await?;
        }
        let value = self.choices(&open);
        Ok(self.with_commands(value, open))
    }

    /// Returns the available choices: modes in both forms, models as an option, or in the older form for an editor that lacks options.
    fn choices(&self, open: &OpenSession) -> Value {
        let chosen = open.chosen();
        let mut choices = json!({ "modes": open.offer.modes(&chosen) });
        if self.client().lacks_options {
            choices["models"] = json!(open.offer.models(&chosen));
        } else {
            choices["configOptions"] = open.offer.options(&chosen);
        }
        choices
    }

    /// Records a session as open.
    async fn opened(
        &self,
        connection: Connection,
        session: Session,
        handed: Vec<Handed>,
        mut notices: Vec<String>,
    ) -> Result<Arc<OpenSession>, RpcError> {
        let folder = PathBuf::from(&session.directory);
        {
            let known = self.handed_to(folder.clone());
            let mut known = known.lock().await;
            let said = servers::start(&connection, handed, &mut known).await;
            notices.extend(said.map_err(|error| refused(&error))?);
        }
        let offer = Offer::ask(&connection)
            .await
            .map_err(|error| refused(&error))?;
        let mut open = OpenSession::new(
            session.id.clone(),
            folder,
            connection,
            offer,
            Chosen::of(&session),
        );
        open.commands = self
            .commands(&open.connection)
            .await?
            .iter()
            .filter_map(|it| it["name"].as_str().map(str::to_owned))
            .collect();
        open.notices().extend(notices);
        let open = Arc::new(open);
        self.sessions.put(Arc::clone(&open));
        Ok(open)
    }

    /// Returns slash commands: those of the agent, and the one that summarises.
    async fn commands(&self, connection: &Connection) -> Result<Vec<Value>, RpcError> {
        let found: Vec<Value> = connection
            .get("/command")
            .await
            .map_err(|error| refused(&error))?;
        let mut all: Vec<Value> = found
            .iter()
            .filter_map(|it| {
                let name = it["name"].as_str()?;
                let description = it["description"].as_str().unwrap_or(name);
                let mut shown = json!({ "name": name, "description": description });
                let hints: Vec<&str> = it["hints"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .collect();
                if !hints.is_empty() {
                    shown["input"] = json!({ "hint": hint(&hints) });
                }
                Some(shown)
            })
            .collect();
        if !all.iter().any(|it| it["name"] == "compact") {
            let about = "Summarise the conversation so far, to make room";
            all.push(json!({ "name": "compact", "description": about, "input": { "hint": "what matters in it" } }));
        }
        Ok(all)
    }

    /// Sends the response, and after it the commands, which the editor would not accept for an
    /// unknown session.
    fn with_commands(self: Arc<Self>, value: Value, open: Arc<OpenSession>) -> Answer {
        let after: BoxFuture<'static, ()> = Box::pin(async move {
            if let Ok(commands) = self.commands(&open.connection).await {
                let update = json!({
                    "sessionUpdate": "available_commands_update", "availableCommands": commands,
                });
                self.update(&open, update).await;
            }
        });
        Answer {
            value,
            after: Some(after),
        }
    }

    /// Sends the history of a session.
    async fn replay(&self, open: &OpenSession) -> Result<(), RpcError> {
        let path = format!("/session/{}", open.id);
        let connection = &open.connection;
        let messages: Vec<MessageWithParts> = connection
            .get(&format!("{path}/message"))
            .await
            .map_err(|error| refused(&error))?;
        let todos: Vec<Todo> = connection
            .get(&format!("{path}/todo"))
            .await
            .map_err(|error| refused(&error))?;
        let updates = Updates::new(open.id.clone(), open.folder.clone())
            .with_terminals(self.client().shows_terminals);
        let mut updates = updates.replay(&messages);
        updates.retain(|it| it["sessionUpdate"] != "plan");
        updates.extend((!todos.is_empty()).then(|| plan(&todos)));
        for update in updates {
            self.update(open, update).await;
        }
        Ok(())
    }

    /// Handles `session/list`.
    pub(crate) async fn list_sessions(self: Arc<Self>, params: Value) -> Result<Answer, RpcError> {
        let folder = match params["cwd"].as_str() {
            Some(_) => Some(folder_of(&params)?),
            None => None,
        };
        let cursor = params["cursor"].as_str().map(str::parse::<u64>);
        let cursor = cursor
            .transpose()
            .map_err(|_| RpcError::params("this is not a cursor of ours"))?;
        let asked = folder.clone().unwrap_or_else(|| self.host.folder());
        let opened = self.host.open(asked).await;
        let connection = opened.map_err(|error| refused(&error))?.connection;
        let mut path = format!("/experimental/session?roots=true&limit={PAGE}");
        if let Some(folder) = &folder {
            path.push_str(&format!(
                "&directory={}",
                encoded(&folder.to_string_lossy())
            ));
        }
        if let Some(cursor) = cursor {
            path.push_str(&format!("&cursor={cursor}"));
        }
        let found: Vec<Session> = connection
            .get(&path)
            .await
            .map_err(|error| refused(&error))?;
        let next = found.last().filter(|_| found.len() == PAGE);
        let sessions: Vec<Value> = found
            .iter()
            .map(|it| {
                json!({
                    "sessionId": it.id, "cwd": it.directory, "title": it.title,
                    "updatedAt": time(it.time.updated),
                })
            })
            .collect();
        let mut answer = json!({ "sessions": sessions });
        if let Some(next) = next {
            answer["nextCursor"] = json!(next.time.updated.to_string());
        }
        Ok(answer.into())
    }

    /// Handles `session/delete`.
    pub(crate) async fn delete_session(self: Arc<Self>, params: Value) -> Result<Answer, RpcError> {
        let id = session_of(&params)?;
        let known = self.sessions.find(id).map(|it| it.connection.clone());
        let connection = match known {
            Some(connection) => connection,
            None => {
                let opened = self.host.open(self.host.folder()).await;
                opened.map_err(|error| refused(&error))?.connection
            }
        };
        self.sessions.remove(id);
        let path = format!("/session/{}", encoded(id));
        match connection.delete(&path).await {
            // Already deleted is the requested result.
            Err(error) if !error.is("agent.no_session") => Err(refused(&error)),
            _ => Ok(json!({}).into()),
        }
    }
}

fn hint(hints: &[&str]) -> String {
    match hints {
        ["$ARGUMENTS"] => "arguments".to_owned(),
        hints => hints.join(" ").replace("$ARGUMENTS", "..."),
    }
}

/// Returns the folder of a request: absolute, as the protocol requires, and existing.
fn folder_of(params: &Value) -> Result<PathBuf, RpcError> {
    let named = params["cwd"]
        .as_str()
        .ok_or_else(|| RpcError::params("`cwd` is missing"))?;
    let path = Path::new(named);
    if !path.is_absolute() {
        return Err(RpcError::params(format!("`cwd` is not absolute: {named}")));
    }
    path.canonicalize()
        .ok()
        .filter(|it| it.is_dir())
        .ok_or_else(|| RpcError::params(format!("`cwd` is not a folder: {named}")))
}

/// Returns the session that a request names.
pub(crate) fn session_of(params: &Value) -> Result<&str, RpcError> {
    params["sessionId"]
        .as_str()
        .ok_or_else(|| RpcError::params("`sessionId` is missing"))
}
