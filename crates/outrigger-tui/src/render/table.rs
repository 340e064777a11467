//! A table of a Markdown text. One that is too wide has cells of several rows, and one of many columns is a list: nothing of it
//! is left out.

use pulldown_cmark::Alignment;
use ratatui::style::{Modifier, Style};

use super::text::{self, Piece, Row, wrap};
use super::theme::{Role, Theme};

/// Columns between two cells.
const GAP: usize = 3;
/// Maximum width of the name of a column where each row repeats it.
const MAX_NAME: usize = 40;
/// Minimum width of the cells of a table that is too wide; with less room its rows become lists.
const MIN_CELL: usize = 12;

/// A table as it is read.
#[derive(Debug, Default)]
pub(super) struct Table {
    aligned: Vec<Alignment>,
    /// Rows of cells; the first one is the head.
    pub(super) cells: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(aligned: Vec<Alignment>) -> Self {
        Self {
            aligned,
            cells: Vec::new(),
        }
    }

    /// Lays it out.
    pub(super) fn rows(&self, room: usize, theme: &Theme) -> Vec<Row> {
        let widths = self.widths(room);
        let is_narrow = widths
            .iter()
            .zip(self.natural())
            .any(|(width, natural)| *width < natural && *width < MIN_CELL);
        let gaps = GAP * widths.len().saturating_sub(1);
        if is_narrow || gaps > room {
            return self.as_list(room, theme);
        }
        let mut rows = Vec::new();
        for (n, row) in self.cells.iter().enumerate() {
            let style = if n == 0 { head() } else { Style::new() };
            let cells: Vec<Vec<Row>> = widths
                .iter()
                .enumerate()
                .map(|(at, width)| {
                    let cell = row.get(at).cloned().unwrap_or_default();
                    wrap(&[(cell, style)], (*width).max(1), &[], &[])
                })
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            rows.extend((0..height).map(|line| self.line(&cells, line, &widths, theme)));
        }
        rows
    }

    /// Returns a row of the screen: a line of each cell.
    fn line(&self, cells: &[Vec<Row>], line: usize, widths: &[usize], theme: &Theme) -> Row {
        let mut pieces: Vec<Piece> = Vec::new();
        for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
            if at > 0 {
                pieces.push((" │ ".to_owned(), theme.style(Role::Dim)));
            }
            let spans = cell.get(line).map_or(&[][..], |it| &it.spans);
            let own: Vec<Piece> = spans
                .iter()
                .map(|it| (it.content.trim_end().to_owned(), it.style))
                .collect();
            let left = width.saturating_sub(text::columns(&own));
            let before = match self.aligned.get(at) {
                Some(Alignment::Right) => left,
                Some(Alignment::Center) => left / 2,
                _ => 0,
            };
            pieces.push((" ".repeat(before), Style::new()));
            pieces.extend(own);
            pieces.push((" ".repeat(left - before), Style::new()));
        }
        text::row(pieces)
    }

    /// Renders each row as its cells below each other, with the names of their columns.
    fn as_list(&self, room: usize, theme: &Theme) -> Vec<Row> {
        let Some((names, cells)) = self.cells.split_first() else {
            return Vec::new();
        };
        let short: Vec<String> = names.iter().map(|it| text::cut(it, MAX_NAME)).collect();
        let mut rows = Vec::new();
        for (n, row) in cells.iter().enumerate() {
            if n > 0 {
                rows.push(text::row(vec![("─".to_owned(), theme.style(Role::Dim))]));
            }
            // The parser adds cells to short rows: they would be many more than the text has.
            let filled = row.iter().rposition(|it| !it.is_empty());
            let row = row.get(..filled.map_or(0, |it| it + 1));
            // The first row has the names whole.
            let names = if n == 0 { names } else { &short };
            for (name, cell) in names.iter().zip(row.unwrap_or_default()) {
                let pieces = [(format!("{name}: "), head()), (cell.clone(), Style::new())];
                let next = [("  ".to_owned(), Style::new())];
                rows.extend(wrap(&pieces, room, &[], &next));
            }
        }
        rows
    }

    /// Returns the widths that its columns want.
    fn natural(&self) -> Vec<usize> {
        let count = self.cells.iter().map(Vec::len).max().unwrap_or(0);
        let width = |at: usize| {
            self.cells
                .iter()
                .filter_map(|row| row.get(at))
                .map(|cell| text::width(cell))
                .max()
                .unwrap_or(0)
        };
        (0..count).map(width).collect()
    }

    /// Returns the widths of its columns: small ones have what they want, the others share the rest.
    fn widths(&self, room: usize) -> Vec<usize> {
        let mut widths = self.natural();
        let mut left = room.saturating_sub(GAP * widths.len().saturating_sub(1));
        let mut order: Vec<usize> = (0..widths.len()).collect();
        order.sort_by_key(|at| widths.get(*at).copied());
        for (n, at) in order.iter().enumerate() {
            let share = left / (order.len() - n);
            if let Some(width) = widths.get_mut(*at) {
                *width = (*width).min(share);
                left -= *width;
            }
        }
        widths
    }
}

fn head() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

#[cfg(test)]
mod tests {
    use super::super::theme::Depth;
    use super::*;

    fn shown(room: usize) -> Vec<String> {
        let cells = [
            ["Name", "What it does", "Cost"],
            ["alpha", "a long description of alpha", "12.50"],
            ["日本語", "short", "3"],
        ];
        let table = Table {
            aligned: vec![Alignment::None, Alignment::None, Alignment::Right],
            cells: cells.map(|row| row.map(str::to_owned).into()).into(),
        };
        let rows = table.rows(room, &Theme::new("system", Depth::None));
        rows.iter()
            .map(|it| it.to_string().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn a_table_that_fits_is_aligned() {
        assert_eq!(
            shown(60),
            [
                "Name   │ What it does                │  Cost",
                "alpha  │ a long description of alpha │ 12.50",
                "日本語 │ short                       │     3",
            ]
        );
    }

    #[test]
    fn a_table_that_is_too_wide_has_cells_of_several_rows() {
        assert_eq!(
            shown(34),
            [
                "Name   │ What it does      │  Cost",
                "alpha  │ a long            │ 12.50",
                "       │ description of    │",
                "       │ alpha             │",
                "日本語 │ short             │     3",
            ]
        );
    }

    #[test]
    fn a_table_without_room_is_a_list() {
        assert_eq!(
            shown(18),
            [
                "Name: alpha",
                "What it does: a",
                "  long description",
                "  of alpha",
                "Cost: 12.50",
                "─",
                "Name: 日本語",
                "What it does:",
                "  short",
                "Cost: 3",
            ]
        );
        for room in 0..80 {
            let whole = shown(room).join(" ");
            for word in ["alpha", "description", "12.50", "short"] {
                assert!(room < 16 || whole.contains(word), "{room}: {whole}");
            }
        }
    }
}
