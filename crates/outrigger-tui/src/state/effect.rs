//! Effects that the interface requests, and inputs that it receives.

use std::sync::Arc;

use crossterm::event::KeyEvent;
use outrigger_client::ClientError;
use outrigger_protocol::event::BusEvent;
use serde_json::Value;

use super::asking::Ask;
use super::attachments::Image;

/// A side effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Sends a request to the agent; the response comes back with `then`.
    Call {
        /// `GET`, `POST`, `DELETE`.
        method: &'static str,
        /// The route.
        path: String,
        /// The body.
        body: Option<Value>,
        /// The purpose.
        then: Then,
    },
    /// Answers a question before there is an agent.
    Answer(u64, bool),
    /// Copies a text to the clipboard of the terminal.
    Copy(String),
    /// Stores a prompt for later runs.
    Remember(String),
    /// Keeps the name of the chosen theme for later runs.
    KeepTheme(&'static str),
    /// Writes a conversation to a file, as Markdown.
    Export {
        /// Its session.
        session: String,
        /// The file; a relative one starts at the folder.
        file: String,
    },
    /// Opens the prompt in the user's editor.
    Edit(String),
    /// Reads this file, which may be an image; otherwise the text is pasted.
    Image(String, String),
    /// Suspends until the shell resumes the process.
    Suspend,
    /// Quits.
    Quit,
}

/// The purpose of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Then {
    /// None; an error is shown.
    Nothing,
    /// Open a session, as at the start.
    Enter,
    /// Create a session for a waiting prompt.
    Made,
    /// The messages of this session.
    Messages(String),
    /// A turn of this session has ended.
    Over(String),
    /// Open permission questions.
    Permissions,
    /// Open questions of the model.
    Questions,
    /// The result of a grant.
    Granted,
    /// Older messages of this session.
    Older(String),
    /// Messages of this session up to the one with this part, which was searched for.
    Around(String, String),
    /// Search results in all conversations.
    Found,
    /// The status of sessions.
    Status,
    /// Sessions of subagents.
    Children,
    /// Sessions, for the list.
    Sessions,
    /// How the sessions of the list began.
    Openings,
    /// Agents.
    Agents,
    /// Providers with their models.
    Models,
    /// The configuration.
    Config,
    /// Commands.
    Commands,
    /// Commands, to run this one with these words if there is one.
    MaybeCommand(String, String),
    /// A session has another title.
    Retitled,
    /// The same, for the list of sessions.
    RetitledInList,
    /// This session is deleted.
    Deleted(String),
    /// Providers that can be logged in to.
    Providers,
    /// Login methods, for this provider.
    LoginMethods(String),
    /// The key of this provider is stored.
    LoggedIn(String),
    /// MCP servers.
    Mcps,
    /// An MCP server was connected or disconnected.
    McpChanged,
    /// MCP servers, for the status.
    StatusMcps,
    /// Language servers, for the status.
    StatusLsp,
    /// Plugins, for the status.
    StatusPlugins,
    /// Files for a completion of this text.
    Files(String),
    /// Plugins.
    Plugins,
    /// The result of a shell line.
    Shell,
    /// The result of an undo or redo.
    Undone(Undo),
}

/// A request that changes which messages are taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undo {
    /// Last segment of the route: `revert` or `unrevert`.
    pub route: &'static str,
    /// The body.
    pub body: Value,
}

/// An input.
#[derive(Clone, Debug)]
pub enum Input {
    /// A key.
    Key(KeyEvent),
    /// Pasted text.
    Paste(String),
    /// The prompt as changed by the user's editor, or an error.
    Edited(Result<String, String>),
    /// A file that was pasted as this text; `None` if it is not an image.
    Image(String, Option<Image>),
    /// The conversation was written to this file, or an error.
    Exported(Result<String, String>),
    /// A click, at this column and row.
    Click(u16, u16),
    /// The wheel, in rows; up is negative.
    Wheel(isize),
    /// A second of a turn has passed.
    Tick,
    /// The terminal's size has changed.
    Resize(u16, u16),
    /// The agent is ready; how to choose the session.
    Ready(Start),
    /// The agent failed to start.
    Failed(ClientError),
    /// Progress of the start.
    Progress(String),
    /// A question before there is an agent.
    Ask(Ask),
    /// An event of the agent.
    Bus(Arc<BusEvent>),
    /// Events are missing.
    Gap,
    /// The server has disconnected.
    Gone,
    /// It is there again.
    Back,
    /// A response.
    Reply(Then, Result<Value, ClientError>),
    /// A message for the status line.
    Notice(String),
}

/// The session to start with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// This one.
    pub session: Option<String>,
    /// The last session of the folder.
    pub resume: bool,
    /// A copy of it.
    pub fork: bool,
    /// An initial prompt.
    pub prompt: Option<String>,
}
