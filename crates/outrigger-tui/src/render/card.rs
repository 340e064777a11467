//! A tool call as a card: a title, and below it what was done ([`super::body`]).
//!
//! The content comes from the merged message ([`outrigger_kernel::merge`]).

use outrigger_kernel::merge::{Author, Converter, Form, details};
use outrigger_protocol::merged::{ConversationMessage, Details};
use outrigger_protocol::message::{Part, ToolPart, ToolState};
use ratatui::style::{Modifier, Style};
use serde_json::Value;

use super::text::{self, Piece, Row, inline, wrap};
use super::theme::{Role, Theme};
use super::{body, diff};

/// Maximum number of characters of a title that is made of arguments.
const ARGUMENTS: usize = 120;

/// How a card is shown.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// Columns.
    pub width: usize,
    /// Colours.
    pub theme: &'a Theme,
    /// Expanded instead of folded.
    pub is_open: bool,
    /// The folder that paths are shown relative to.
    pub root: &'a str,
}

impl Look<'_> {
    /// Returns a path as seen from the session's folder.
    #[must_use]
    pub fn path<'p>(&self, path: &'p str) -> &'p str {
        path.strip_prefix(self.root.trim_end_matches('/'))
            .and_then(|it| it.strip_prefix('/'))
            .filter(|it| !it.is_empty())
            .unwrap_or(path)
    }
}

/// Returns the rows of a call.
#[must_use]
pub fn rows(part: &Part, call: &ToolPart, look: Look<'_>) -> Vec<Row> {
    let merged = call.state.is_final().then(|| merge(part)).flatten();
    let mut rows = title(call, merged.as_ref(), look);
    let mut body = body::rows(call, merged.as_ref(), look);
    let bar = ("  ".to_owned(), Style::new());
    for row in &mut body {
        row.spans
            .insert(0, text::row(vec![bar.clone()]).spans.remove(0));
    }
    rows.append(&mut body);
    rows
}

/// Merges the one message of a call that has ended.
fn merge(part: &Part) -> Option<ConversationMessage> {
    let author = Author {
        role: "assistant",
        created: 0,
        attempt: part.message_id.clone(),
    };
    let placed = Converter::default().part(&author, part, Form::Merged);
    placed.into_iter().last().map(|it| it.message)
}

fn title(call: &ToolPart, merged: Option<&ConversationMessage>, look: Look<'_>) -> Vec<Row> {
    let (mark, role) = match &call.state {
        ToolState::Pending { .. } => ("…", Role::Dim),
        ToolState::Running { .. } => ("▸", Role::Warn),
        ToolState::Completed { .. }
            if call.tool == "invalid" || merged.is_some_and(exited_with_error) =>
        {
            ("✗", Role::Bad)
        }
        ToolState::Completed { .. } => ("✓", Role::Good),
        ToolState::Error { .. } => ("✗", Role::Bad),
    };
    let style = |role| look.theme.style(role);
    let mut pieces: Vec<Piece> = vec![
        (format!("{mark} "), style(role)),
        (
            inline(&call.tool),
            style(Role::Accent).add_modifier(Modifier::BOLD),
        ),
    ];
    let what = about(call, merged, look);
    if !what.is_empty() {
        pieces.push((format!(" {what}"), Style::new()));
    }
    if let Some(Details::Diff {
        old_content,
        new_content,
        ..
    }) = merged.and_then(details)
    {
        let (added, removed) = diff::counts(&old_content, &new_content);
        if added + removed == 0 {
            pieces.push(("  no line differs".to_owned(), style(Role::Dim)));
        } else {
            pieces.push((format!("  +{added}"), style(Role::Added)));
            pieces.push((format!(" -{removed}"), style(Role::Removed)));
        }
    }
    if let Some(plugin) = call.state.refused_by() {
        let by = format!("  refused by plugin {}", inline(plugin));
        pieces.push((by, style(Role::Bad)));
    }
    if let Some(took) = merged.and_then(took) {
        pieces.push((format!("  {took}"), style(Role::Dim)));
    }
    let next = vec![("  ".to_owned(), Style::new())];
    wrap(&pieces, look.width, &[], &next)
}

/// Returns whether it is a command that ended with an error.
fn exited_with_error(merged: &ConversationMessage) -> bool {
    matches!(details(merged), Some(Details::CommandOutput { exit_code, .. }) if exit_code != Some(0))
}

/// Returns the subject of the call, in one line.
fn about(call: &ToolPart, merged: Option<&ConversationMessage>, look: Look<'_>) -> String {
    let input = call.state.input();
    let field = |key: &str| input.get(key).and_then(Value::as_str).unwrap_or_default();
    if call.tool == "task" && !field("subagent_type").is_empty() {
        let (what, who) = (field("description"), field("subagent_type"));
        return inline(&format!("{what} (@{who})"));
    }
    let said = match call.tool.as_str() {
        "bash" => field("command"),
        "webfetch" => field("url"),
        "glob" | "grep" => field("pattern"),
        // What the model called, and there is not.
        "invalid" => field("tool"),
        _ => ["filePath", "path", "pattern", "query", "name"]
            .into_iter()
            .map(field)
            .find(|it| !it.is_empty())
            .map(|it| look.path(it))
            .unwrap_or_default(),
    };
    let titled = match &call.state {
        ToolState::Completed { title, .. } => title.as_str(),
        ToolState::Running { title, .. } => title.as_deref().unwrap_or_default(),
        _ => "",
    };
    // OpenCode's title, which clients know as it is.
    let titled = if titled == "1 todos" {
        "1 todo"
    } else {
        titled
    };
    let said = if said.is_empty() { titled } else { said };
    match merged.map(|it| it.content.as_str()) {
        Some(summary) if said.is_empty() && summary != format!("{} completed", call.tool) => {
            inline(summary)
        }
        _ if said.is_empty() => inline(&arguments(input)),
        _ => inline(said),
    }
}

/// Returns the plain values of a tool that we do not know, with their names.
fn arguments(input: &Value) -> String {
    let fields = input
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| match value {
            Value::String(text) => Some(format!("{name}: {text}")),
            Value::Number(_) | Value::Bool(_) => Some(format!("{name}: {value}")),
            _ => None,
        });
    let text = fields.collect::<Vec<_>>().join(", ");
    text::cut(&text, ARGUMENTS)
}

/// Returns its duration, if that is long enough to mention.
fn took(merged: &ConversationMessage) -> Option<String> {
    let took = merged.metadata.get("duration_ms")?.as_u64()?;
    match took {
        0..=999 => None,
        1000..=59_999 => Some(format!("{}.{} s", took / 1000, took % 1000 / 100)),
        _ => Some(format!("{} min {} s", took / 60_000, took % 60_000 / 1000)),
    }
}
