//! Subagents that older versions of Claude Code (1.0) wrote into the file of their session. Newer ones give each a file of its own.
//!
//! Their lines have `isSidechain` and no `agentId`. The first line of a subagent has no parent, and its text is the prompt of the call that
//! started it; every other line names the one before it, so that subagents that ran at the same time are distinguishable.

use std::collections::{HashMap, HashSet};

use outrigger_protocol::merged::AgentOutput;
use serde_json::Value;

use crate::calls::text;
use crate::step::VendorOutput;
use crate::stored::{Piece, Stored, blocks, led, pieces, subagent};

/// Returns the identifier of the subagent that begins with a line.
pub(crate) fn begun(line: &Value) -> Option<&str> {
    let begins = is_of_one(line) && line.get("parentUuid").is_none_or(Value::is_null);
    text(line, "/uuid").filter(|_| begins && text(line, "/type") == Some("user"))
}

fn is_of_one(line: &Value) -> bool {
    line.get("isSidechain") == Some(&Value::Bool(true)) && line.get("agentId").is_none()
}

/// Whose lines of a file are read.
pub(crate) enum Whose {
    /// The session's.
    Session(Started),
    /// The subagent's, whose file it is.
    File,
    /// A subagent's in the file of its session.
    Inline(Inline),
}

impl Whose {
    /// Returns whether the next line is one of those that are read.
    pub(crate) fn has(&mut self, line: &Value) -> bool {
        let is_subagents = line.get("isSidechain") == Some(&Value::Bool(true));
        match self {
            Self::Session(started) => {
                started.line(line);
                !is_subagents
            }
            Self::File => is_subagents,
            Self::Inline(inline) => inline.has(line),
        }
    }
}

/// The lines of one subagent.
#[derive(Debug)]
pub(crate) struct Inline {
    /// Its first line.
    pub(crate) id: String,
    lines: HashSet<String>,
}

impl Inline {
    pub(crate) fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            lines: HashSet::new(),
        }
    }

    /// Returns whether the next line belongs to it.
    pub(crate) fn has(&mut self, line: &Value) -> bool {
        let Some(id) = text(line, "/uuid").filter(|_| is_of_one(line)) else {
            return false;
        };
        let follows = text(line, "/parentUuid").is_some_and(|it| self.lines.contains(it));
        let has = id == self.id || follows;
        if has {
            self.lines.insert(id.to_owned());
        }
        has
    }
}

/// The subagents that the calls of a session started.
#[derive(Debug, Default)]
pub(crate) struct Started {
    /// Calls whose subagent has not begun, with their prompts.
    waiting: Vec<(String, String)>,
    /// Subagents, by call.
    begun: HashMap<String, String>,
}

impl Started {
    /// Takes the next line of the file.
    pub(crate) fn line(&mut self, line: &Value) {
        if let Some(id) = begun(line) {
            let texts = pieces(line.pointer("/message/content"))
                .into_iter()
                .filter_map(|piece| match piece {
                    Piece::Text(text) => Some(text),
                    Piece::Picture { .. } => None,
                });
            let prompt = texts.collect::<Vec<_>>().join("\n\n");
            if let Some(at) = self.waiting.iter().position(|(_, it)| *it == prompt) {
                let (call, _) = self.waiting.remove(at);
                self.begun.insert(call, id.to_owned());
            }
            return;
        }
        let calls = blocks(line)
            .filter(|block| text(block, "/name") == Some("Task"))
            .filter_map(|block| text(block, "/id").zip(text(block, "/input/prompt")))
            .map(|(call, prompt)| (call.to_owned(), prompt.to_owned()));
        self.waiting.extend(calls);
    }

    /// Adds the conversation of the subagent to the result of its call.
    pub(crate) fn lead(&self, stored: &mut Stored, session: &str) {
        let Stored::Say(VendorOutput {
            output: AgentOutput::ToolResult { tool_use_id, .. },
            ..
        }) = stored
        else {
            return;
        };
        if let Some(agent) = self.begun.get(tool_use_id.as_str()) {
            led(stored, &subagent(session, agent));
        }
    }
}
