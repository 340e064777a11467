//! Repetitions of cells and rows in an OpenDocument spreadsheet: one line may represent more cells than fit in memory. Its reader
//! expands them while it opens the file, so they are counted before.

use std::io::{self, Cursor};

use zip::ZipArchive;

use super::unreadable;
use crate::error::TableError;
use crate::{MAX_UNPACKED, bounded};

const CONTENT: &str = "content.xml";
const TABLE: &str = "table:table";
const ROW: &str = "table:table-row";
const CELLS: [&str; 2] = ["table:table-cell", "table:covered-table-cell"];

/// Fails if a table has too many cells.
pub(super) fn check(bytes: &[u8]) -> Result<(), TableError> {
    let Ok(mut archive) = ZipArchive::new(Cursor::new(bytes)) else {
        return Ok(());
    };
    let Ok(content) = archive.by_name(CONTENT) else {
        return Ok(());
    };
    let mut text = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(content, MAX_UNPACKED), &mut text)
        .map_err(unreadable)?;
    let mut size = Size::default();
    let text = String::from_utf8_lossy(&text);
    for tag in text.split('<').skip(1) {
        let end = tag.find('>').unwrap_or(tag.len());
        let (tag, rest) = tag.split_at(end);
        size.tag(tag, rest.trim_start_matches('>'))?;
    }
    Ok(())
}

/// The size of a table so far, up to the last filled cell.
#[derive(Default)]
struct Size {
    /// Cells of the earlier tables.
    before: usize,
    rows: usize,
    width: usize,
    /// Of the current row.
    repeats: usize,
    columns: usize,
    filled: usize,
    height: usize,
    /// The repetitions of the current cell.
    cell: Option<usize>,
}

impl Size {
    fn tag(&mut self, tag: &str, text: &str) -> Result<(), TableError> {
        let name = tag
            .split([' ', '\t', '\r', '\n', '/'])
            .next()
            .unwrap_or_default();
        if name == TABLE {
            // All tables are expanded.
            *self = Self {
                before: self
                    .before
                    .saturating_add(self.height.saturating_mul(self.width.max(1))),
                ..Self::default()
            };
        } else if name == ROW {
            (self.columns, self.filled) = (0, 0);
            self.repeats = number(tag, "table:number-rows-repeated");
        } else if CELLS.contains(&name) {
            let count = number(tag, "table:number-columns-repeated");
            self.columns = self.columns.saturating_add(count);
            if tag.contains("value") {
                self.filled = self.columns;
            }
            self.cell = (!tag.ends_with('/')).then_some(count);
        } else if self.cell.is_some() && !tag.starts_with('/') {
            // Content fills a cell.
            self.filled = self.columns;
        }
        if self.cell.is_some() && !text.trim().is_empty() {
            self.filled = self.columns;
        }
        if tag
            .strip_prefix('/')
            .is_some_and(|it| CELLS.contains(&it.trim()))
        {
            self.cell = None;
        }
        let ends = tag.strip_prefix('/').is_some_and(|it| it.trim() == ROW);
        if ends {
            self.rows = self.rows.saturating_add(self.repeats);
            if self.filled > 0 {
                self.height = self.rows;
                self.width = self.width.max(self.filled);
            }
        }
        let cells = self.height.saturating_mul(self.width.max(1));
        bounded(self.before.saturating_add(cells), 1)
    }
}

/// Returns the value of an attribute; an invalid number is treated as too large.
fn number(tag: &str, attribute: &str) -> usize {
    let Some((_, rest)) = tag.split_once(attribute) else {
        return 1;
    };
    let value = rest.trim_start().strip_prefix('=').unwrap_or_default();
    let value = value.trim_start().trim_start_matches(['"', '\'']);
    let value = value.split(['"', '\'']).next().unwrap_or_default();
    value.trim().parse().unwrap_or(usize::MAX)
}
