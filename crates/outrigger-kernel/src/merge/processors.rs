//! What is known of single tools: details and a summary line. A new tool needs a new processor and nothing else (E3).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use outrigger_protocol::merged::{ConversationMessage, Details};
use serde_json::Value;

/// Describes the executions of some tools.
pub trait ToolProcessor: Send + Sync {
    /// Names of the tools.
    fn tools(&self) -> &[&str];
    /// What it did, from start and result.
    fn details(&self, start: &ConversationMessage, result: &ConversationMessage)
    -> Option<Details>;
    /// One line for people; without one it is `NAME completed`.
    fn summary(
        &self,
        start: &ConversationMessage,
        result: &ConversationMessage,
        details: Option<&Details>,
    ) -> Option<String>;
}

/// The processors of the bundled tools.
#[must_use]
pub fn bundled() -> Vec<Box<dyn ToolProcessor>> {
    vec![
        Box::new(FileChange),
        Box::new(super::patched::Patched),
        Box::new(FileRead),
        Box::new(FileList),
        Box::new(Shell),
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
        // A file that is too large to be reported whole had a content before: an empty one would be a lie.
        if before.is_none()
            && input(start, "content").is_some()
            && reported(result, "/exists") == Some(&Value::Bool(true))
        {
            return None;
        }
        // Other agents report no contents: what the call says is the best there is.
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
    fn details(&self, _: &ConversationMessage, _: &ConversationMessage) -> Option<Details> {
        None
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

/// `glob`, and the files that `grep` found something in.
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
            // Files that a search found stand over their lines, with a colon, or alone where only files were asked for.
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
    fn summary(
        &self,
        _: &ConversationMessage,
        _: &ConversationMessage,
        _: Option<&Details>,
    ) -> Option<String> {
        None
    }
}

/// `bash`.
struct Shell;

impl ToolProcessor for Shell {
    fn tools(&self) -> &[&str] {
        &["bash", "Bash", "shell"]
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
    fn summary(
        &self,
        _: &ConversationMessage,
        _: &ConversationMessage,
        _: Option<&Details>,
    ) -> Option<String> {
        None
    }
}
