//! What the interface wants done, and what comes back.

use std::sync::Arc;

use crossterm::event::KeyEvent;
use outrigger_client::ClientError;
use outrigger_protocol::event::BusEvent;
use serde_json::Value;

use super::asking::Ask;
use super::attachments::Image;

/// Something to do in the world.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Ask the agent; the answer comes back with `then`.
    Call {
        /// `GET`, `POST`, `DELETE`.
        method: &'static str,
        /// The route.
        path: String,
        /// What goes with it.
        body: Option<Value>,
        /// What it is for.
        then: Then,
    },
    /// Answer what was asked before there was an agent.
    Answer(u64, bool),
    /// Put a text into the clipboard of the terminal.
    Copy(String),
    /// Keep a prompt for later runs.
    Remember(String),
    /// Have the user's editor change the prompt.
    Edit(String),
    /// Read this file, which may be an image; else the text was pasted.
    Image(String, String),
    /// Stop until the shell says to go on.
    Suspend,
    /// Leave.
    Quit,
}

/// What an answer is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Then {
    /// Nothing; a failure is shown.
    Nothing,
    /// The session to work in, as at the start.
    Enter,
    /// A session for a prompt that waits.
    Made,
    /// The messages of this session.
    Messages(String),
    /// A turn of this session is over.
    Over(String),
    /// Open questions: permissions.
    Permissions,
    /// Open questions of the model.
    Questions,
    /// A grant was given or not.
    Granted,
    /// Messages of this session that come before those that are there.
    Older(String),
    /// Messages of this session up to the one that has this part, which was looked for.
    Around(String, String),
    /// Texts of all conversations that were looked for.
    Found,
    /// What sessions do.
    Status,
    /// Sessions of subagents.
    Children,
    /// Sessions, for the list.
    Sessions,
    /// Agents.
    Agents,
    /// Providers with their models.
    Models,
    /// Commands.
    Commands,
    /// Files for a completion of this text.
    Files(String),
    /// Plugins.
    Plugins,
    /// The result of a line of the shell.
    Shell,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// A key.
    Key(KeyEvent),
    /// A text was pasted.
    Paste(String),
    /// The prompt as the user's editor left it, or why that could not be had.
    Edited(Result<String, String>),
    /// A file that was pasted as this text; nothing where it is not an image.
    Image(String, Option<Image>),
    /// A click, at this column and row.
    Click(u16, u16),
    /// The wheel, in rows; up is negative.
    Wheel(isize),
    /// The terminal has another size.
    Resize(u16, u16),
    /// The agent is there; whether the session in which to go on is to be looked for.
    Ready(Start),
    /// The agent cannot be had.
    Failed(ClientError),
    /// How far the start is.
    Progress(String),
    /// A question before there is an agent.
    Ask(Ask),
    /// Of the agent.
    Bus(Arc<BusEvent>),
    /// Events are missing.
    Gap,
    /// The server is gone.
    Gone,
    /// An answer.
    Reply(Then, Result<Value, ClientError>),
    /// A word for the status line.
    Notice(String),
}

/// In which session to begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// This one.
    pub session: Option<String>,
    /// The last one of the folder.
    pub resume: bool,
    /// A copy of it.
    pub fork: bool,
    /// A prompt to begin with.
    pub prompt: Option<String>,
}
