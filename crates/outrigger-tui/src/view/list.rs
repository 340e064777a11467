//! Lists over the conversation.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use super::{clear, put};
use crate::app::App;
use crate::render::text::{Row, cut, cut_words, inline, row, width};
use crate::render::theme::Role;
use crate::state::picker::{Completion, Item, ListKind, Picker};

/// Maximum number of columns of a list.
const MAX_COLUMNS: u16 = 100;

/// Maximum number of rows of completions.
const MAX_COMPLETIONS: usize = 8;

/// Draws a list at the bottom of an area; returns the cursor position.
pub(super) fn draw(app: &App, picker: &Picker, area: Rect, buffer: &mut Buffer) -> Position {
    let style = |role| app.theme.style(role);
    let columns = area.width.min(MAX_COLUMNS);
    let most = area.height.saturating_sub(2).max(1);
    let count = u16::try_from(picker.shown().len()).unwrap_or(u16::MAX);
    let rows = count.clamp(1, most);
    let height = (rows + 2).min(area.height);
    let area = Rect {
        y: area.bottom().saturating_sub(height),
        height,
        width: columns,
        ..area
    };
    clear(area, buffer);
    let title = cut(&format!("─ {} ", picker.title), usize::from(columns));
    let left = usize::from(columns).saturating_sub(width(&title));
    let hints = hints(picker.kind)
        .iter()
        .find(|it| width(it) <= left)
        .unwrap_or(&"");
    let rule = left.saturating_sub(width(hints));
    let mut shown = vec![
        row(vec![
            (title, style(Role::Accent)),
            ("─".repeat(rule), style(Role::Dim)),
            ((*hints).to_owned(), style(Role::Dim)),
        ]),
        row(vec![
            ("❯ ".to_owned(), style(Role::Accent)),
            (typed_text(picker), style(Role::Text)),
        ]),
    ];
    shown.extend(remark(picker).map(|text| row(vec![(format!("  {text}"), style(Role::Dim))])));
    let first = (picker.at + 1).saturating_sub(usize::from(rows));
    let items = picker
        .shown()
        .enumerate()
        .skip(first)
        .take(usize::from(rows));
    shown.extend(items.map(|(at, it)| {
        let is_doomed =
            picker.kind == ListKind::Sessions && picker.subject.as_ref() == Some(&it.value);
        let asked = is_doomed.then(|| Item {
            detail: "ctrl+d again deletes it".to_owned(),
            ..it.clone()
        });
        item(
            app,
            asked.as_ref().unwrap_or(it),
            at == picker.at,
            usize::from(columns),
        )
    }));
    put(&shown, area, buffer);
    let column = u16::try_from(width(&typed_text(picker))).unwrap_or(0);
    Position::new(area.x + 2 + column, area.y + 1)
}

/// Returns the keys of a list, the longest text first.
fn hints(kind: ListKind) -> &'static [&'static str] {
    match kind {
        ListKind::Search => &[
            " enter chooses · tab: everything · esc closes ",
            " tab: everything · esc closes ",
            " tab: everything ",
        ],
        ListKind::Sessions => &[
            " enter chooses · ctrl+r renames · ctrl+d deletes · esc closes ",
            " ctrl+r renames · ctrl+d deletes ",
            " ctrl+r · ctrl+d ",
        ],
        ListKind::Rename | ListKind::Key => &[" enter saves · esc closes ", " esc closes "],
        ListKind::Help | ListKind::Plugins => &[" esc closes "],
        ListKind::Mcps => &[
            " enter connects or disconnects · esc closes ",
            " esc closes ",
        ],
        _ => &[" enter chooses · esc closes ", " esc closes "],
    }
}

/// Returns what is shown in place of the lines of a list that has none.
fn remark(picker: &Picker) -> Option<&'static str> {
    match picker.kind {
        ListKind::Key => Some("stored in your data folder; what you type is not shown"),
        ListKind::Rename => None,
        _ if picker.shown().len() > 0 => None,
        _ if picker.is_loading => Some("…"),
        _ if picker.filter.is_empty() => Some("there is none"),
        _ => Some("nothing fits"),
    }
}

/// Returns what is typed, as it is shown: a key is not.
fn typed_text(picker: &Picker) -> String {
    let text = picker.filter.text();
    match picker.kind {
        ListKind::Key => "•".repeat(text.chars().count()),
        _ => inline(text),
    }
}

/// Draws completions above the prompt.
pub(super) fn completion(app: &App, completion: &Completion, area: Rect, buffer: &mut Buffer) {
    let columns = area.width.min(MAX_COLUMNS);
    let count = completion.items.len().min(MAX_COMPLETIONS);
    let height = u16::try_from(count).unwrap_or(1).min(area.height);
    let area = Rect {
        y: area.bottom().saturating_sub(height),
        height,
        width: columns,
        ..area
    };
    clear(area, buffer);
    let first = (completion.at + 1).saturating_sub(usize::from(height));
    let items = completion.items.iter().enumerate().skip(first);
    let rows: Vec<Row> = items
        .map(|(at, it)| item(app, it, at == completion.at, usize::from(columns)))
        .collect();
    put(&rows, area, buffer);
}

fn item(app: &App, item: &Item, is_at: bool, columns: usize) -> Row {
    let style = |role| app.theme.style(role);
    let room = columns.saturating_sub(3);
    // Some of the detail is there whatever the label is: it may be the key, or what tells two labels apart.
    let reserved = match width(&item.detail).min(room * 2 / 5) {
        0 => 0,
        detail => detail + 2,
    };
    let label = cut(&item.label, room.saturating_sub(reserved));
    let left = room.saturating_sub(width(&label) + 2);
    let detail = cut_words(&item.detail, left);
    let gap = left.saturating_sub(width(&detail)) + 2;
    if is_at {
        let text = format!("▸ {label}{}{detail} ", " ".repeat(gap));
        return row(vec![(text, style(Role::Chosen))]);
    }
    row(vec![
        (format!("  {label}"), style(Role::Text)),
        (" ".repeat(gap), Style::new()),
        (detail, style(Role::Dim)),
    ])
}
