//! Processors of single tools: details and a summary line. A new tool needs a new processor and nothing else (E3).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use outrigger_protocol::Object;
use outrigger_protocol::buffer::from_value;
use outrigger_protocol::merged::{ConversationMessage, Details};
use serde_json::Value;

/// Describes the executions of some tools.
pub trait ToolProcessor: Send + Sync {
    /// Names of the tools.
    fn tools(&self) -> &[&str];
    /// Returns what it did, from start and result.
    fn details(
        &self,
        _start: &ConversationMessage,
        _result: &ConversationMessage,
    ) -> Option<Details> {
        None
    }
    /// Returns a one-line summary for display; without one it is `NAME completed`.
    fn summary(
        &self,
        _start: &ConversationMessage,
        _result: &ConversationMessage,
        _details: Option<&Details>,
    ) -> Option<String> {
        None
    }
    /// Returns further fields of `metadata` that the three kinds of details do not cover.
    fn more(&self, _start: &ConversationMessage, _result: &ConversationMessage) -> Object {
        Object::new()
    }
}

/// A result's own description.
#[derive(Default)]
pub(super) struct Declared {
    pub(super) details: Option<Details>,
    pub(super) summary: Option<String>,
}

/// Reads the description that plugins and MCP servers supply with their results: `metadata.details` in the form of [`Details`],
/// and `metadata.summary`. That is how a plugin contributes a processor: showing a conversation runs none of its code.
pub(super) fn declared(result: &ConversationMessage) -> Declared {
    if failed(result) {
        return Declared::default();
    }
    let details = reported(result, "/details").cloned();
    let summary = reported(result, "/summary")
        .and_then(Value::as_str)
        .filter(|text| !text.trim().is_empty() && text.len() <= MAX_SUMMARY);
    Declared {
        details: details.and_then(|details| from_value(details).ok()),
        summary: summary.map(|text| text.replace(['\n', '\r'], " ")),
    }
}

/// Maximum size in bytes of a summary in a result; a longer one is ignored.
const MAX_SUMMARY: usize = 500;

/// Returns the processors of the bundled tools.
#[must_use]
pub fn bundled() -> Vec<Box<dyn ToolProcessor>> {
    vec![
        Box::new(FileChange),
        Box::new(super::patched::Patched),
        Box::new(FileRead),
        Box::new(FileList),
        Box::new(Shell),
        Box::new(Reported("task", "/sessionId", "conversation")),
        Box::new(Reported("todowrite", "/todos", "todos")),
        Box::new(Reported("question", "/answers", "answers")),
    ]
}

fn input<'a>(start: &'a ConversationMessage, key: &str) -> Option<&'a str> {
    start.metadata.get("input")?.get(key)?.as_str()
}

pub(super) fn reported<'a>(result: &'a ConversationMessage, pointer: &str) -> Option<&'a Value> {
    result.metadata.get("metadata")?.pointer(pointer)
}

pub(super) fn failed(result: &ConversationMessage) -> bool {
    result
        .metadata
        .get("is_error")
        .and_then(Value::as_bool)
        .unwrap_or(false)
}

fn path(start: &ConversationMessage) -> Option<&str> {
    input(start, "filePath")
        .or_else(|| input(start, "path"))
        .or_else(|| input(start, "file_path"))
}

fn said(verb: &str, start: &ConversationMessage) -> String {
    format!("{verb} {}", path(start).unwrap_or("file"))
}

/// `edit` and `write`: the file's content before and after.
struct FileChange;

impl ToolProcessor for FileChange {
    fn tools(&self) -> &[&str] {
        &["edit", "write", "Edit", "Write", "MultiEdit"]
    }
    fn details(
        &self,
        start: &ConversationMessage,
        result: &ConversationMessage,
    ) -> Option<Details> {
        if failed(result) {
            return None;
        }
        let before = reported(result, "/filediff/before").and_then(Value::as_str);
        let after = reported(result, "/filediff/after").and_then(Value::as_str);
        // A file that is too large to be reported had a content before: an empty one would be wrong.
        if before.is_none()
            && input(start, "content").is_some()
            && reported(result, "/exists") == Some(&Value::Bool(true))
        {
            return None;
        }
        // Other agents report no contents: the call's arguments are the best available.
        let old = before
            .or_else(|| input(start, "oldString"))
            .or_else(|| input(start, "old_string"))
            .unwrap_or_default();
        let new = after
            .or_else(|| input(start, "newString"))
            .or_else(|| input(start, "new_string"))
            .or_else(|| input(start, "content"))?;
        Some(Details::Diff {
            old_content: old.to_string(),
            new_content: new.to_string(),
            path: path(start).map(ToString::to_string),
        })
    }
    fn summary(
        &self,
        start: &ConversationMessage,
        result: &ConversationMessage,
        details: Option<&Details>,
    ) -> Option<String> {
        if failed(result) {
            return None;
        }
        let made = reported(result, "/exists").and_then(Value::as_bool) == Some(false)
            || (reported(result, "/exists").is_none()
                && input(start, "content").is_some()
                && matches!(details, Some(Details::Diff { old_content, .. }) if old_content.is_empty()));
        Some(said(if made { "Created" } else { "Updated" }, start))
    }
}

/// `read`.
struct FileRead;

impl ToolProcessor for FileRead {
    fn tools(&self) -> &[&str] {
        &["read", "Read"]
    }
    /// Returns the entries of a folder.
    fn details(&self, _: &ConversationMessage, result: &ConversationMessage) -> Option<Details> {
        if failed(result) || reported(result, "/display/type")?.as_str() != Some("directory") {
            return None;
        }
        let names = reported(result, "/display/entries")?.as_array()?.iter();
        let files = names.filter_map(|name| Some(name.as_str()?.to_string()));
        Some(Details::FileList {
            files: files.collect(),
        })
    }
    fn summary(
        &self,
        start: &ConversationMessage,
        result: &ConversationMessage,
        _: Option<&Details>,
    ) -> Option<String> {
        (!failed(result)).then(|| said("Read", start))
    }
}

/// `glob`, and the files in which `grep` found something.
struct FileList;

impl ToolProcessor for FileList {
    fn tools(&self) -> &[&str] {
        &["glob", "grep", "Glob", "Grep"]
    }
    fn details(
        &self,
        start: &ConversationMessage,
        result: &ConversationMessage,
    ) -> Option<Details> {
        if failed(result) {
            return None;
        }
        let grep = start
            .metadata
            .get("tool_name")
            .and_then(Value::as_str)
            .is_some_and(|n| n.eq_ignore_ascii_case("grep"));
        let output = result.metadata.get("output").and_then(Value::as_str)?;
        let files = output
            .lines()
            .filter(|line| line.starts_with('/') || line.starts_with("./"))
            // File names precede their lines with a colon, or are alone if only files were requested.
            .filter_map(|line| {
                if grep {
                    line.strip_suffix(':')
                        .or((!line.contains(':')).then_some(line))
                } else {
                    Some(line)
                }
            })
            .map(ToString::to_string)
            .collect();
        Some(Details::FileList { files })
    }
}

/// `bash` and `python`.
struct Shell;

impl ToolProcessor for Shell {
    fn tools(&self) -> &[&str] {
        &["bash", "python", "Bash", "shell"]
    }
    fn details(&self, _: &ConversationMessage, result: &ConversationMessage) -> Option<Details> {
        let text = |pointer| {
            reported(result, pointer)
                .and_then(Value::as_str)
                .map(ToString::to_string)
        };
        let whole = || {
            result
                .metadata
                .get("output")
                .and_then(Value::as_str)
                .map(ToString::to_string)
        };
        Some(Details::CommandOutput {
            stdout: text("/stdout")
                .or_else(|| text("/output"))
                .or_else(whole)
                .unwrap_or_default(),
            stderr: text("/stderr").unwrap_or_default(),
            exit_code: reported(result, "/exit").and_then(Value::as_i64),
        })
    }
}

/// A tool, a key of its report, and the field for it: the child conversation of a subagent, a list of todos, answers.
struct Reported(&'static str, &'static str, &'static str);

impl ToolProcessor for Reported {
    fn tools(&self) -> &[&str] {
        core::slice::from_ref(&self.0)
    }
    fn more(&self, _: &ConversationMessage, result: &ConversationMessage) -> Object {
        let value = reported(result, self.1).cloned();
        value
            .map(|value| (String::from(self.2), value))
            .into_iter()
            .collect()
    }
}
