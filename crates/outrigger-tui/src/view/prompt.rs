//! The prompt: as many rows as it needs, up to a third of the screen, then the rows around the cursor.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::put;
use crate::app::App;
use crate::render::text::{lines, row};
use crate::render::theme::Role;

/// The mark before the first row.
const MARK: &str = "❯ ";
const MARK_COLUMNS: usize = 2;

/// Returns the width of its text.
pub(super) fn width(app: &App) -> usize {
    // The last column stays free for the cursor.
    usize::from(app.size.0)
        .saturating_sub(MARK_COLUMNS + 1)
        .max(2)
}

/// Returns its height.
pub(super) fn height(app: &App) -> usize {
    let most = (usize::from(app.size.1) / 3).max(1);
    app.editor.rows(width(app)).len().clamp(1, most)
}

/// Draws it; returns the cursor position.
pub(super) fn draw(app: &App, area: Rect, buffer: &mut Buffer) -> Position {
    let width = width(app);
    let rows = app.editor.rows(width);
    let (at, column) = app.editor.position(width);
    let height = usize::from(area.height).max(1);
    let first = (at + 1)
        .saturating_sub(height)
        .min(rows.len().saturating_sub(height));
    let shell = app.editor.text().starts_with('!');
    let role = if shell { Role::Warn } else { Role::Accent };
    let shown: Vec<_> = rows
        .iter()
        .enumerate()
        .skip(first)
        .take(height)
        .map(|(n, (from, until))| {
            let text = app.editor.text().get(*from..*until).unwrap_or_default();
            let mark = match n {
                0 => MARK,
                _ if n == first => "⋮ ",
                _ => "  ",
            };
            row(vec![
                (mark.to_owned(), app.theme.style(role)),
                (lines(text), app.theme.style(Role::Text)),
            ])
        })
        .collect();
    put(&shown, area, buffer);
    if app.editor.is_empty() {
        let hint = if app.is_busy() {
            "the model reads this at its next step"
        } else {
            "what is to be done?"
        };
        let hint = row(vec![(hint.to_owned(), app.theme.style(Role::Dim))]);
        let area = Rect {
            x: area.x + 2,
            width: area.width.saturating_sub(2),
            ..area
        };
        put(&[hint], area, buffer);
    }
    let column = u16::try_from(column.min(width)).unwrap_or(0);
    let row = u16::try_from(at - first).unwrap_or(0);
    Position::new(area.x + 2 + column, area.y + row)
}
