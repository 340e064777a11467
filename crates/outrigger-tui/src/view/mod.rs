//! Renders the state to the cells of a frame.

mod list;
mod prompt;
mod question;
mod status;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;

pub(crate) use status::model;

use crate::app::App;
use crate::render::text::{Row, cut, inline, row, wrap};
use crate::render::theme::Role;

/// Minimum height of the conversation, in rows.
const MIN_CONVERSATION: u16 = 3;

/// Maximum number of columns of a conversation's title in that of the window.
const MAX_TITLE: usize = 60;

/// The areas of the screen.
#[derive(Clone, Copy, Debug)]
struct Areas {
    conversation: Rect,
    /// The activity row.
    state: Rect,
    /// The prompt, or the question that replaces it.
    input: Rect,
    status: Rect,
}

fn areas(app: &App) -> Areas {
    let (columns, rows) = app.size;
    let input = input_rows(app)
        .min(rows.saturating_sub(2 + MIN_CONVERSATION))
        .max(1);
    let conversation = rows.saturating_sub(input + 2);
    let area = |y: u16, height: u16| Rect {
        x: 0,
        y: y.min(rows),
        width: columns,
        height: height.min(rows.saturating_sub(y)),
    };
    Areas {
        conversation: area(0, conversation),
        state: area(conversation, 1),
        input: area(conversation + 1, input),
        status: area(rows.saturating_sub(1), 1),
    }
}

fn input_rows(app: &App) -> u16 {
    let rows = match app.asking.shown() {
        Some(asked) => question::height(app, asked),
        None => prompt::height(app),
    };
    u16::try_from(rows).unwrap_or(u16::MAX)
}

/// Returns the height of the conversation.
#[must_use]
pub fn conversation_height(app: &App) -> usize {
    usize::from(areas(app).conversation.height)
}

/// Returns the width of the prompt's text.
#[must_use]
pub fn prompt_width(app: &App) -> usize {
    prompt::width(app)
}

/// Returns whether the whole question is on the screen.
#[must_use]
pub fn question_fits(app: &App) -> bool {
    let height = usize::from(areas(app).input.height);
    let asked = app.asking.shown();
    asked.is_none_or(|asked| question::rows(app, asked) <= height)
}

/// Draws the interface; returns the cursor position, if it is shown.
pub fn draw(app: &mut App, buffer: &mut Buffer) -> Option<Position> {
    let areas = areas(app);
    conversation(app, areas.conversation, buffer);
    let state = status::state(app);
    put(&[state], areas.state, buffer);
    let cursor = match app.asking.shown() {
        Some(asked) => question::draw(app, asked, areas.input, buffer),
        None => Some(prompt::draw(app, areas.input, buffer)),
    };
    put(&[status::line(app)], areas.status, buffer);
    let cursor = match (&app.picker, &app.completion) {
        _ if app.asking.shown().is_some() => cursor,
        (Some(picker), _) => Some(list::draw(app, picker, areas.conversation, buffer)),
        (None, Some(completion)) => {
            list::completion(app, completion, areas.conversation, buffer);
            cursor
        }
        (None, None) => cursor,
    };
    guard(buffer);
    cursor.filter(|it| it.x < app.size.0 && it.y < app.size.1)
}

/// Returns the title of the window: the conversation, and whether it waits for the user (`?`) or works (`▸`).
#[must_use]
pub fn window_title(app: &App) -> String {
    let mark = match app.asking.shown() {
        Some(_) => "? ",
        None if app.is_busy() => "▸ ",
        None => "",
    };
    let title = app
        .session
        .as_ref()
        .map(|it| inline(&it.title))
        .filter(|it| !it.is_empty())
        .unwrap_or_else(|| inline(&app.folder));
    format!("{mark}{} · outrigger", cut(&title, MAX_TITLE))
}

fn conversation(app: &mut App, area: Rect, buffer: &mut Buffer) {
    let (shape, height) = (app.shape(), usize::from(area.height));
    let inner = Rect {
        x: area.x + 1,
        width: area.width.saturating_sub(1),
        ..area
    };
    if app.conversation.blocks().is_empty() {
        return put(&welcome(app), inner, buffer);
    }
    let scroll = app.scroll.clone();
    let rows = scroll.visible(&mut app.conversation, shape, height);
    // Short content is at the bottom, near the prompt.
    let y = area
        .height
        .saturating_sub(u16::try_from(rows.len()).unwrap_or(area.height));
    let area = Rect {
        y: inner.y + y,
        height: inner.height - y,
        ..inner
    };
    put(&rows, area, buffer);
    for y in area.top()..area.bottom() {
        mark(
            &app.sought.marked,
            Rect {
                y,
                height: 1,
                ..area
            },
            buffer,
        );
    }
}

/// Marks a text, in lower case, in a row of the screen, or its words where the row has all of them.
fn mark(wanted: &str, row: Rect, buffer: &mut Buffer) {
    let row = row.intersection(buffer.area);
    if wanted.is_empty() || row.is_empty() {
        return;
    }
    // The column of each byte of the row's text.
    let (mut text, mut columns) = (String::new(), Vec::new());
    for position in row.positions() {
        if let Some(cell) = buffer.cell(position) {
            text.push_str(&cell.symbol().to_lowercase());
            columns.resize(text.len(), position.x);
        }
    }
    let words: Vec<&str> = if text.contains(wanted) {
        vec![wanted]
    } else {
        wanted.split_whitespace().collect()
    };
    if !words.iter().all(|word| text.contains(word)) {
        return;
    }
    for word in words {
        for (at, _) in text.match_indices(word) {
            for x in columns.get(at..at + word.len()).unwrap_or_default() {
                if let Some(cell) = buffer.cell_mut(Position::new(*x, row.y)) {
                    cell.modifier.insert(Modifier::REVERSED);
                }
            }
        }
    }
}

fn welcome(app: &App) -> Vec<Row> {
    let style = |role| app.theme.style(role);
    let width = app.shape().width;
    let help = app.keymap.key("help_show");
    let mut rows = vec![
        Row::default(),
        row(vec![("Outrigger".to_owned(), style(Role::Accent))]),
        Row::default(),
    ];
    for (key, what) in [
        ("/", "commands"),
        ("@", "files"),
        ("!", "a line for the shell"),
        (help.as_str(), "the keys"),
    ] {
        let pieces = [
            (format!("{key:>4}  "), style(Role::Accent)),
            (what.to_owned(), style(Role::Dim)),
        ];
        rows.extend(wrap(&pieces, width, &[], &[]));
    }
    if app.has_no_model {
        let text = "No model can be used yet: /connect adds a provider.";
        let pieces = [(text.to_owned(), style(Role::Warn))];
        rows.push(Row::default());
        rows.extend(wrap(&pieces, width, &[], &[]));
    }
    rows
}

/// Writes rows to an area, as many as fit.
fn put(rows: &[Row], area: Rect, buffer: &mut Buffer) {
    let area = area.intersection(buffer.area);
    for (row, y) in rows.iter().zip(area.top()..area.bottom()) {
        buffer.set_line(area.x, y, row, area.width);
    }
}

/// Empties an area.
fn clear(area: Rect, buffer: &mut Buffer) {
    let area = area.intersection(buffer.area);
    for position in area.positions() {
        if let Some(cell) = buffer.cell_mut(position) {
            cell.reset();
        }
    }
}

/// The last check of what is sent to the terminal (invariant 13): no cell contains a control character, wherever it came
/// from.
fn guard(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        let symbol = cell.symbol();
        if symbol.len() > 1 || symbol.starts_with(outrigger_terminal::is_control) {
            let hostile = symbol.chars().any(outrigger_terminal::is_control)
                || symbol.chars().all(outrigger_terminal::is_invisible);
            if hostile {
                cell.set_symbol("·");
            }
        }
    }
}
