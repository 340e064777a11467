//! A question to the user, which replaces the prompt: everything it is about, and the keys that answer.

use std::cmp::Ordering;

use outrigger_protocol::permission::PermissionRequest;
use outrigger_terminal::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};

use super::{clear, put};
use crate::app::App;
use crate::render::text::{Piece, Row, columns, inline, lines, row, wrap};
use crate::render::theme::Role;
use crate::state::asking::{Dialog, Inquiry};

/// Returns its desired height.
pub(super) fn height(app: &App, dialog: &Dialog) -> usize {
    let most = usize::from(app.size.1) * 2 / 3;
    rows(app, dialog).min(most.max(4))
}

/// Returns the height of all of it.
pub(super) fn rows(app: &App, dialog: &Dialog) -> usize {
    body(app, dialog).len() + foot(app, dialog).len() + 1
}

/// Draws it; returns the cursor position, if a text is written.
pub(super) fn draw(
    app: &App,
    dialog: &Dialog,
    area: Rect,
    buffer: &mut Buffer,
) -> Option<Position> {
    clear(area, buffer);
    let mut body = body(app, dialog);
    let foot = foot(app, dialog);
    let room = usize::from(area.height).saturating_sub(foot.len() + 1);
    let hidden = body.len().saturating_sub(room);
    let skipped = app.asking.scroll.min(hidden);
    body.drain(..skipped);
    body.truncate(room);
    let mut rows = vec![title(app, dialog, hidden, skipped)];
    rows.extend(body);
    let foot_at = rows.len();
    rows.extend(foot);
    put(&rows, area, buffer);
    let words = app.asking.words.as_ref()?;
    let width = usize::from(app.size.0).saturating_sub(3).max(2);
    let (line, column) = words.position(width);
    let y = area.y + u16::try_from(foot_at + line).unwrap_or(0);
    Some(Position::new(
        area.x + 2 + u16::try_from(column).unwrap_or(0),
        y.min(area.bottom().saturating_sub(1)),
    ))
}

/// Returns the question in our own words, and whether there is more to read.
fn title(app: &App, dialog: &Dialog, hidden: usize, skipped: usize) -> Row {
    let style = |role| app.theme.style(role);
    let what = match dialog {
        Dialog::Permission(_, display) => format!("{}?", display.what()),
        Dialog::Start(ask) => format!("{}?", ask.what),
        Dialog::Question(_) => "the model asks".to_owned(),
    };
    let mut pieces: Vec<Piece> = vec![(
        format!("? {what}"),
        style(Role::Warn).add_modifier(Modifier::BOLD),
    )];
    if let (at, all @ 2..) = app.asking.place() {
        pieces.push((format!("  {at} of {all}"), style(Role::Dim)));
    }
    if hidden > 0 {
        let more = match hidden - skipped {
            0 => "  ↑ for what is above".to_owned(),
            left => format!("  ↓ {left} more rows"),
        };
        pieces.push((more, style(Role::Bad)));
    }
    row(pieces)
}

fn body(app: &App, dialog: &Dialog) -> Vec<Row> {
    match dialog {
        Dialog::Permission(_, display) => frame(app, display.frame()),
        Dialog::Start(ask) if app.asking.is_open => frame(app, &ask.details),
        Dialog::Start(ask) => frame(app, &ask.summary),
        Dialog::Question(inquiry) => inquiry_rows(app, inquiry),
    }
}

/// Renders untrusted texts, each row after a mark that they cannot imitate (the frame wraps them and shows hidden
/// characters).
fn frame(app: &App, frame: &Frame) -> Vec<Row> {
    let columns = usize::from(app.size.0).max(8);
    let text = frame.whole(columns);
    let rows = text
        .lines()
        .map(|line| match line.split_once(['│', '┊', '⋮']) {
            Some((label, rest)) => {
                let mark = line
                    .get(label.len()..line.len() - rest.len())
                    .unwrap_or("│");
                row(vec![
                    (label.to_owned(), app.theme.style(Role::Accent)),
                    (mark.to_owned(), app.theme.style(Role::Dim)),
                    (rest.to_owned(), diff_style(app, label, rest)),
                ])
            }
            None => row(vec![(line.to_owned(), app.theme.style(Role::Accent))]),
        });
    rows.collect()
}

/// Lines of a diff have its colours.
fn diff_style(app: &App, label: &str, rest: &str) -> Style {
    let is_first = !label.trim().is_empty();
    match rest.trim_start_matches(' ').chars().next() {
        Some('+') if !is_first => app.theme.style(Role::Added),
        Some('-') if !is_first => app.theme.style(Role::Removed),
        _ => app.theme.style(Role::Text),
    }
}

fn inquiry_rows(app: &App, inquiry: &Inquiry) -> Vec<Row> {
    let style = |role| app.theme.style(role);
    let width = usize::from(app.size.0).saturating_sub(1).max(10);
    let Some(question) = inquiry.question() else {
        return Vec::new();
    };
    let bar = vec![("│ ".to_owned(), style(Role::Dim))];
    let text = lines(&question.question);
    let mut rows = headers(app, inquiry, width);
    rows.extend(
        text.lines()
            .flat_map(|line| wrap(&[(line.to_owned(), style(Role::Text))], width, &bar, &bar)),
    );
    for (at, option) in question.options.iter().enumerate() {
        let is_at = at == inquiry.at;
        let mark = match (
            question.multiple == Some(true),
            inquiry.chosen.contains(&at),
        ) {
            (true, true) => "☑ ",
            (true, false) => "☐ ",
            _ => "",
        };
        let first = vec![(
            format!("{} {}. ", if is_at { "▸" } else { " " }, at + 1),
            style(Role::Accent),
        )];
        let next = vec![(" ".repeat(columns(&first)), Style::new())];
        let label = format!("{mark}{}", inline(&option.label));
        let role = if is_at { Role::Accent } else { Role::Text };
        let pieces = [
            (label, style(role)),
            (
                format!("  {}", inline(&option.description)),
                style(Role::Dim),
            ),
        ];
        rows.extend(wrap(&pieces, width, &first, &next));
    }
    rows
}

/// Renders the headers of the questions, with those that are answered and the displayed one marked.
fn headers(app: &App, inquiry: &Inquiry, width: usize) -> Vec<Row> {
    let style = |role| app.theme.style(role);
    let questions = &inquiry.request.questions;
    let (at, all) = (inquiry.answers.len(), questions.len());
    let mut pieces: Vec<Piece> = Vec::new();
    if all > 1 {
        pieces.push((format!("question {} of {all}", at + 1), style(Role::Dim)));
    }
    for (n, question) in questions.iter().enumerate() {
        let header = inline(&question.header);
        if header.is_empty() {
            continue;
        }
        if !pieces.is_empty() {
            pieces.push(("  ".to_owned(), Style::new()));
        }
        let marked = style(Role::Accent).add_modifier(Modifier::BOLD);
        pieces.push(match n.cmp(&at) {
            Ordering::Less => (format!("✓ {header}"), style(Role::Good)),
            Ordering::Equal => (format!("▸ {header}"), marked),
            Ordering::Greater => (header, style(Role::Dim)),
        });
    }
    if pieces.is_empty() {
        return Vec::new();
    }
    wrap(&pieces, width, &[], &[])
}

/// Renders the keys that answer, or the text being written.
fn foot(app: &App, dialog: &Dialog) -> Vec<Row> {
    let style = |role| app.theme.style(role);
    let width = usize::from(app.size.0).max(10);
    if let Some(words) = &app.asking.words {
        let width = width.saturating_sub(3).max(2);
        let rows = words.rows(width).into_iter().map(|(from, until)| {
            let text = words.text().get(from..until).unwrap_or_default();
            row(vec![
                ("❯ ".to_owned(), style(Role::Warn)),
                (lines(text), style(Role::Text)),
            ])
        });
        return rows.collect();
    }
    let keys = match dialog {
        Dialog::Permission(request, _) => permission_keys(app, request),
        Dialog::Start(_) if app.asking.is_open => vec!["[y]es", "[n]o", "[d] less"],
        Dialog::Start(_) => vec!["[y]es", "[n]o", "[d]etails"],
        Dialog::Question(inquiry) => {
            let several = inquiry
                .question()
                .is_some_and(|it| it.multiple == Some(true));
            let mut keys = vec!["↑↓ choose", "enter answers"];
            keys.extend(several.then_some("space marks"));
            keys.extend(["[i] in your own words", "esc: no answer"]);
            keys
        }
    };
    wrap(&[(keys.join("  "), style(Role::Accent))], width, &[], &[])
}

fn permission_keys(app: &App, request: &PermissionRequest) -> Vec<&'static str> {
    let mut keys = vec!["[y]es", "[n]o"];
    keys.extend((!request.always.is_empty()).then_some("[a]lways"));
    keys.extend((app.is_local && request.missing_grant.is_some()).then_some("[g]rant"));
    keys.push("[i]nstead: what to do");
    keys
}
