//! The methods that an editor calls.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures_util::future::BoxFuture;
use outrigger_jsonrpc::{Answer, Peer, RpcError, Service};
use serde_json::{Value, json};

use crate::Host;
use crate::client::{self, Client};
use crate::content;
use crate::session::opening::session_of;
use crate::session::options::{MODE, MODEL};
use crate::session::servers::Handed;
use crate::session::{OpenSession, Sessions};
use crate::turn;

/// Serves one editor.
pub(crate) struct Server {
    inner: Arc<ServerState>,
}

pub(crate) struct ServerState {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) peer: Peer,
    pub(crate) sessions: Sessions,
    /// MCP servers provided by the editor, by folder.
    handed: Mutex<HashMap<PathBuf, HandedTo>>,
    client: OnceLock<Client>,
}

/// The MCP servers of a folder. Each folder has its own lock: slow servers do not delay sessions of other folders.
type HandedTo = Arc<tokio::sync::Mutex<Vec<Handed>>>;

type Answering = BoxFuture<'static, Result<Answer, RpcError>>;

impl Server {
    pub(crate) fn new(host: Arc<dyn Host>, peer: Peer) -> Self {
        let inner = ServerState {
            host,
            peer,
            sessions: Sessions::default(),
            handed: Mutex::default(),
            client: OnceLock::new(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Handles the end of the editor.
    pub(crate) fn close(&self) {
        self.inner.sessions.cancel_all();
    }
}

impl ServerState {
    /// Sends an update of a session.
    pub(crate) async fn update(&self, open: &OpenSession, update: Value) {
        let params = json!({ "sessionId": open.id, "update": update });
        self.peer.notify("session/update", &params).await;
    }

    /// Returns the MCP servers that the editor provided for a folder.
    pub(crate) fn handed_to(&self, folder: PathBuf) -> HandedTo {
        let mut folders = self.handed.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(folders.entry(folder).or_default())
    }

    fn open(&self, params: &Value) -> Result<Arc<OpenSession>, RpcError> {
        let id = session_of(params)?;
        self.sessions.find(id).ok_or_else(|| {
            RpcError::params(format!("session {id} is not open: session/load opens it"))
        })
    }

    fn initialize(&self, params: &Value) -> Answer {
        let client = *self.client.get_or_init(|| Client::read(params));
        client::hello(client).into()
    }

    async fn set_option(
        self: Arc<Self>,
        params: Value,
        option: String,
        value: String,
    ) -> Result<Answer, RpcError> {
        let open = self.open(&params)?;
        let options = {
            let mut chosen = open.chosen();
            if !open.offer.choose(&mut chosen, &option, &value) {
                return Err(RpcError::params(format!(
                    "`{value}` is not a value of `{option}`"
                )));
            }
            open.offer.options(&chosen)
        };
        Ok(json!({ "configOptions": options }).into())
    }

    async fn set_mode(self: Arc<Self>, params: Value) -> Result<Answer, RpcError> {
        let mode = text(&params, "modeId")?;
        let chosen = Arc::clone(&self).set_option(params.clone(), MODE.to_owned(), mode);
        let options = chosen.await?.value;
        if !self.client().lacks_options {
            let open = self.open(&params)?;
            let update = json!({
                "sessionUpdate": "config_option_update", "configOptions": options["configOptions"],
            });
            self.update(&open, update).await;
        }
        Ok(json!({}).into())
    }

    /// Handles `session/set_model`, the older form of the option.
    async fn set_model(self: Arc<Self>, params: Value) -> Result<Answer, RpcError> {
        let model = text(&params, "modelId")?;
        self.set_option(params, MODEL.to_owned(), model).await?;
        Ok(json!({}).into())
    }

    /// The prompt can be cancelled from the moment its line is read.
    fn prompt(self: &Arc<Self>, params: &Value) -> Answering {
        let prepared = self.open(params).and_then(|open| {
            let is_command = |name: &str| open.commands.iter().any(|it| it == name);
            let said = content::read(&params["prompt"], is_command)?;
            let cancelled = open.cancelled();
            Ok((open, said, cancelled))
        });
        let (peer, client) = (self.peer.clone(), self.client());
        Box::pin(async move {
            let (open, said, cancelled) = prepared?;
            let stopped = turn::run(open, peer, client, said, cancelled).await?;
            Ok(stopped.into())
        })
    }

    pub(crate) fn client(&self) -> Client {
        self.client.get().copied().unwrap_or_default()
    }
}

impl Service for Server {
    fn request(&self, method: &str, params: Value) -> Answering {
        let inner = Arc::clone(&self.inner);
        if method != "initialize" && inner.client.get().is_none() {
            let why = "the first request is `initialize`";
            return ready(Err(RpcError::new(RpcError::INVALID_REQUEST, why)));
        }
        match method {
            "initialize" => ready(Ok(inner.initialize(&params))),
            "authenticate" => ready(authenticate(&params)),
            "session/new" => Box::pin(inner.new_session(params)),
            "session/load" => Box::pin(inner.load_session(params, true)),
            "session/resume" => Box::pin(inner.load_session(params, false)),
            "session/list" => Box::pin(inner.list_sessions(params)),
            "session/delete" => Box::pin(inner.delete_session(params)),
            "session/close" => ready(session_of(&params).map(|id| {
                inner.sessions.remove(id);
                json!({}).into()
            })),
            "session/prompt" => inner.prompt(&params),
            "session/set_mode" => Box::pin(inner.set_mode(params)),
            "session/set_model" => Box::pin(inner.set_model(params)),
            "session/set_config_option" => {
                let option =
                    text(&params, "configId").and_then(|it| Ok((it, text(&params, "value")?)));
                match option {
                    Ok((option, value)) => Box::pin(inner.set_option(params, option, value)),
                    Err(error) => ready(Err(error)),
                }
            }
            other => ready(Err(RpcError::no_method(other))),
        }
    }

    fn notice(&self, method: &str, params: Value) {
        match method {
            "session/cancel" => match self.inner.open(&params) {
                Ok(open) => open.cancel(),
                Err(error) => tracing::debug!("[acp] nothing to cancel: {error}"),
            },
            other => tracing::debug!("[acp] the editor says {other}, which nobody here listens to"),
        }
    }
}

/// Logins happen in a terminal; a new login is used from the next prompt on.
fn authenticate(params: &Value) -> Result<Answer, RpcError> {
    match params["methodId"].as_str() {
        Some(client::LOGIN) => Ok(json!({}).into()),
        _ => Err(RpcError::params(format!(
            "the way to log in is `{}`",
            client::LOGIN
        ))),
    }
}

fn text(params: &Value, key: &str) -> Result<String, RpcError> {
    let found = params[key]
        .as_str()
        .ok_or_else(|| RpcError::params(format!("`{key}` is missing")))?;
    Ok(found.to_owned())
}

fn ready(answer: Result<Answer, RpcError>) -> Answering {
    Box::pin(std::future::ready(answer))
}
