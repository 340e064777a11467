//! What a tool call did: a diff, a list of files, the output of a command, todos, answers, or what it returned.

use outrigger_kernel::merge::details;
use outrigger_protocol::merged::{ConversationMessage, Details};
use outrigger_protocol::message::{ToolPart, ToolState};
use ratatui::style::{Modifier, Style};
use serde_json::Value;

use super::card::Look;
use super::diff;
use super::text::{self, Row, inline, wrap};
use super::theme::Role;

/// Rows of a folded body.
const FOLDED: usize = 12;
/// Rows of a folded diff.
const FOLDED_DIFF: usize = 40;
/// Rows of an expanded body: more are in the file or the session.
const OPENED: usize = 2000;
/// Tools whose result is for the model, and whose title says enough of it: it is shown when the card is open.
const QUIET: [&str; 9] = [
    "list",
    "lsp",
    "question",
    "read",
    "skill",
    "task",
    "todowrite",
    "webfetch",
    "websearch",
];

/// Returns the rows below a call's title.
pub(super) fn rows(
    call: &ToolPart,
    merged: Option<&ConversationMessage>,
    look: Look<'_>,
) -> Vec<Row> {
    let mut limit = FOLDED;
    let mut rows = match &call.state {
        ToolState::Completed { .. } => {
            let (rows, most) = completed(call, merged, look);
            limit = most;
            rows
        }
        ToolState::Error {
            error, metadata, ..
        } => {
            // What it printed until then.
            let mut rows = running(metadata.as_ref(), look);
            rows.extend(lines(error, look, Role::Bad));
            rows
        }
        ToolState::Running { metadata, .. } => running(metadata.as_ref(), look),
        ToolState::Pending { .. } => Vec::new(),
    };
    fold(&mut rows, if look.is_open { OPENED } else { limit }, look);
    rows
}

/// Returns all rows of a completed call, and how many of them are shown when it is folded.
fn completed(
    call: &ToolPart,
    merged: Option<&ConversationMessage>,
    look: Look<'_>,
) -> (Vec<Row>, usize) {
    let Some(merged) = merged else {
        return (Vec::new(), FOLDED);
    };
    let field = |key: &str| merged.metadata.get(key);
    let changes = field("changes").cloned().map(serde_json::from_value);
    if let Some(Ok(changes)) = changes {
        let changes: Vec<Details> = changes;
        let rows = changes.iter().flat_map(|it| change(it, look)).collect();
        return (rows, FOLDED_DIFF);
    }
    if let Some(details) = details(merged) {
        let limit = match details {
            Details::Diff { .. } => FOLDED_DIFF,
            _ => FOLDED,
        };
        return (detail(&details, look), limit);
    }
    if let Some(todos) = field("todos").and_then(Value::as_array) {
        return (todos.iter().flat_map(|it| todo(it, look)).collect(), OPENED);
    }
    if let Some(answers) = field("answers").and_then(Value::as_array) {
        return (answered(call.state.input(), answers, look), OPENED);
    }
    let is_quiet = QUIET.iter().any(|it| it.eq_ignore_ascii_case(&call.tool));
    if is_quiet && !look.is_open {
        return (Vec::new(), FOLDED);
    }
    let output = field("output").and_then(Value::as_str);
    (lines(output.unwrap_or_default(), look, Role::Dim), FOLDED)
}

/// Returns what a patch changed in one of its files, below the file's name.
fn change(details: &Details, look: Look<'_>) -> Vec<Row> {
    let Details::Diff {
        old_content,
        new_content,
        path,
    } = details
    else {
        return detail(details, look);
    };
    let (added, removed) = diff::counts(old_content, new_content);
    let path = look.path(path.as_deref().unwrap_or_default());
    let name = look.theme.style(Role::Text).add_modifier(Modifier::BOLD);
    let mut rows = wrap(
        &[
            (inline(path), name),
            (format!("  +{added}"), look.theme.style(Role::Added)),
            (format!(" -{removed}"), look.theme.style(Role::Removed)),
        ],
        look.width.saturating_sub(2),
        &[],
        &[],
    );
    rows.extend(detail(details, look));
    rows
}

/// Returns a todo with its state, in OpenCode's marks.
fn todo(todo: &Value, look: Look<'_>) -> Vec<Row> {
    let field = |key: &str| todo.get(key).and_then(Value::as_str).unwrap_or_default();
    let (mark, role) = match field("status") {
        "completed" => ("[✓] ", Role::Dim),
        "in_progress" => ("[•] ", Role::Accent),
        "cancelled" => ("[-] ", Role::Dim),
        _ => ("[ ] ", Role::Text),
    };
    let style = look.theme.style(role);
    wrap(
        &[(inline(field("content")), style)],
        look.width.saturating_sub(2),
        &[(mark.to_owned(), style)],
        &[("    ".to_owned(), style)],
    )
}

/// Returns questions of the model with the user's answers.
fn answered(input: &Value, answers: &[Value], look: Look<'_>) -> Vec<Row> {
    let style = |role| look.theme.style(role);
    let width = look.width.saturating_sub(2);
    let rows = answers.iter().enumerate().flat_map(|(n, answer)| {
        let question = input
            .pointer(&format!("/questions/{n}/question"))
            .and_then(Value::as_str)
            .unwrap_or_default();
        let texts: Vec<&str> = answer
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let answer = match texts.as_slice() {
            [] => "no answer".to_owned(),
            texts => inline(&texts.join(", ")),
        };
        let mut rows = wrap(&[(inline(question), style(Role::Dim))], width, &[], &[]);
        let mark = [("❯ ".to_owned(), style(Role::Accent))];
        let next = [("  ".to_owned(), Style::new())];
        rows.extend(wrap(&[(answer, style(Role::Text))], width, &mark, &next));
        rows
    });
    rows.collect()
}

fn detail(details: &Details, look: Look<'_>) -> Vec<Row> {
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
                .map(|it| text::row(vec![(inline(look.path(it)), Style::new())]));
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
