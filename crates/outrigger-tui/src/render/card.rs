//! A tool call as a card: a title with a diff, a list of files or the output of a command.
//!
//! The content comes from the merged message ([`outrigger_kernel::merge`]); the call's raw output is not read here.

use outrigger_kernel::merge::{Author, Converter, Form, details};
use outrigger_protocol::merged::{ConversationMessage, Details};
use outrigger_protocol::message::{Part, ToolPart, ToolState};
use ratatui::style::{Modifier, Style};
use serde_json::Value;

use super::diff;
use super::text::{self, Piece, Row, inline, wrap};
use super::theme::{Role, Theme};

/// Rows of a folded body.
const FOLDED: usize = 12;
/// Rows of a folded diff.
const FOLDED_DIFF: usize = 40;
/// Rows of an expanded body: more are in the file or the session.
const OPENED: usize = 2000;

/// How a card is shown.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// Columns.
    pub width: usize,
    /// Colours.
    pub theme: &'a Theme,
    /// Expanded instead of folded.
    pub is_open: bool,
}

/// Returns the rows of a call.
#[must_use]
pub fn rows(part: &Part, call: &ToolPart, look: Look<'_>) -> Vec<Row> {
    let merged = call.state.is_final().then(|| merge(part)).flatten();
    let mut rows = title(call, merged.as_ref(), look);
    let mut body = match &call.state {
        ToolState::Completed { .. } => match merged.as_ref().and_then(details) {
            Some(details) => of_details(&details, look),
            None => Vec::new(),
        },
        ToolState::Error { error, .. } => lines(error, look, Role::Bad),
        ToolState::Running { metadata, .. } => running(metadata.as_ref(), look),
        ToolState::Pending { .. } => Vec::new(),
    };
    let limit = match merged.as_ref().and_then(details) {
        Some(Details::Diff { .. }) => FOLDED_DIFF,
        _ => FOLDED,
    };
    fold(&mut body, if look.is_open { OPENED } else { limit }, look);
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
    let what = about(call, merged);
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
        pieces.push((format!("  +{added}"), style(Role::Added)));
        pieces.push((format!(" -{removed}"), style(Role::Removed)));
    }
    if let Some(took) = merged.and_then(took) {
        pieces.push((format!("  {took}"), style(Role::Dim)));
    }
    let next = vec![("  ".to_owned(), Style::new())];
    wrap(&pieces, look.width, &[], &next)
}

/// Returns the subject of the call, in one line.
fn about(call: &ToolPart, merged: Option<&ConversationMessage>) -> String {
    let input = call.state.input();
    let field = |key: &str| input.get(key).and_then(Value::as_str).unwrap_or_default();
    let said = match call.tool.as_str() {
        "bash" => field("command"),
        "task" => field("description"),
        "webfetch" => field("url"),
        _ => ["filePath", "path", "pattern", "query", "name"]
            .into_iter()
            .map(field)
            .find(|it| !it.is_empty())
            .unwrap_or_default(),
    };
    let titled = match &call.state {
        ToolState::Completed { title, .. } => title.as_str(),
        ToolState::Running { title, .. } => title.as_deref().unwrap_or_default(),
        _ => "",
    };
    let said = if said.is_empty() { titled } else { said };
    match merged.map(|it| it.content.as_str()) {
        Some(summary) if said.is_empty() && summary != format!("{} completed", call.tool) => {
            inline(summary)
        }
        _ => inline(said),
    }
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

fn of_details(details: &Details, look: Look<'_>) -> Vec<Row> {
    match details {
        Details::Diff {
            old_content,
            new_content,
            path,
        } => {
            let path = path.as_deref().unwrap_or_default();
            diff::rows(
                old_content,
                new_content,
                path,
                look.width.saturating_sub(2),
                look.theme,
            )
        }
        Details::FileList { files } => {
            let dim = look.theme.style(Role::Dim);
            let count = match files.len() {
                0 => "no files".to_owned(),
                1 => "1 file".to_owned(),
                n => format!("{n} files"),
            };
            let names = files
                .iter()
                .map(|it| text::row(vec![(inline(it), Style::new())]));
            std::iter::once(text::row(vec![(count, dim)]))
                .chain(names)
                .collect()
        }
        Details::CommandOutput {
            stdout,
            stderr,
            exit_code,
        } => {
            let mut rows = lines(stdout, look, Role::Dim);
            rows.extend(lines(stderr, look, Role::Warn));
            let failed = match exit_code {
                Some(0) => None,
                Some(code) => Some(format!("exit {code}")),
                None => Some("killed".to_owned()),
            };
            rows.extend(failed.map(|it| text::row(vec![(it, look.theme.style(Role::Bad))])));
            rows
        }
    }
}

/// Returns what a command has printed so far.
fn running(metadata: Option<&Value>, look: Look<'_>) -> Vec<Row> {
    let output = metadata.and_then(|it| it.get("output")?.as_str());
    let mut rows = lines(output.unwrap_or_default(), look, Role::Dim);
    if !look.is_open && rows.len() > FOLDED {
        rows.drain(..rows.len() - FOLDED);
    }
    rows
}

fn lines(output: &str, look: Look<'_>, role: Role) -> Vec<Row> {
    let base = look.theme.style(role);
    let lines = output.trim_end_matches('\n').lines();
    let mut rows = Vec::new();
    for line in lines {
        let mut pieces = text::coloured(line, base);
        for (_, style) in &mut pieces {
            style.fg = style.fg.filter(|color| look.theme.depth().has(*color));
        }
        rows.extend(wrap(&pieces, look.width.saturating_sub(2), &[], &[]));
    }
    rows
}

/// Keeps the start and the end of long content, and shows how much is hidden.
fn fold(rows: &mut Vec<Row>, limit: usize, look: Look<'_>) {
    if rows.len() <= limit {
        return;
    }
    let tail = limit / 3;
    let head = limit - tail - 1;
    let hidden = rows.len() - head - tail;
    let keys = if look.is_open {
        ""
    } else {
        "; ctrl+o shows all"
    };
    let note = text::row(vec![(
        format!("⋮ {hidden} more lines{keys}"),
        look.theme.style(Role::Dim),
    )]);
    rows.splice(head..head + hidden, [note]);
}
