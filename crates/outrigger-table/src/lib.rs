//! Tables: reading, filtering, joining and writing CSV, TSV, JSON lines and spreadsheets (requirement D5, `core-table`).
//!
//! Bytes in, bytes out; the calling tool accesses the files.

mod error;
mod format;
mod join;
mod number;
mod query;
mod sheet;
mod text;

pub use error::TableError;
pub use format::Format;
pub use join::{Join, JoinKind, On, join};
pub use query::{Condition, Op, Order, Query};
use serde_json::Value;

/// Maximum bytes of a file.
pub const MAX_BYTES: usize = 64 << 20;
/// Maximum bytes of an unpacked spreadsheet.
pub const MAX_UNPACKED: u64 = 256 << 20;
/// Maximum number of cells of a table, including those of a join's result.
pub const MAX_CELLS: usize = 10_000_000;
/// The memory overhead of a row of text, in cells.
const CELLS_OF_ROW: usize = 2;

/// A table: every row has one cell for each column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Names of the columns, each unique.
    pub columns: Vec<String>,
    /// Cells: null (empty), booleans, numbers and texts; in JSON lines also nested values.
    pub rows: Vec<Vec<Value>>,
}

impl Table {
    /// Returns the index of a column.
    ///
    /// # Errors
    /// `table.column`, with the existing columns.
    pub fn column(&self, name: &str) -> Result<usize, TableError> {
        let found = self.columns.iter().position(|column| column == name);
        found.ok_or_else(|| TableError::Column {
            name: name.to_owned(),
            columns: self.columns.join(", "),
        })
    }
}

/// Reads a file's bytes. `sheet` is the name of a spreadsheet's sheet; default: the first one.
///
/// The first row names the columns; a column without a name gets `column_N`, a duplicate name gets `_2`.
///
/// # Errors
/// `table.unreadable` with the line if there is one, `table.too_large`, `table.sheet`, `table.columns`.
pub fn read(bytes: &[u8], format: Format, sheet: Option<&str>) -> Result<Table, TableError> {
    if bytes.len() > MAX_BYTES {
        return Err(TableError::TooLarge {
            what: "the file",
            size: bytes.len() as u64,
            limit: MAX_BYTES as u64,
        });
    }
    match (format, sheet) {
        (Format::Csv | Format::Tsv | Format::JsonLines, Some(sheet)) => Err(TableError::Sheet {
            name: sheet.to_owned(),
            sheets: "none: it is not a spreadsheet".to_owned(),
        }),
        (Format::Csv, None) => text::read(bytes, b','),
        (Format::Tsv, None) => text::read(bytes, b'\t'),
        (Format::JsonLines, None) => text::read_lines(bytes),
        (Format::Spreadsheet, sheet) => sheet::read(bytes, sheet),
    }
}

/// Returns the bytes of a file with this table. A spreadsheet is written as `.xlsx` with one sheet.
///
/// # Errors
/// `table.too_large` if it exceeds a spreadsheet's limits, `table.unwritable`.
pub fn write(table: &Table, format: Format) -> Result<Vec<u8>, TableError> {
    match format {
        Format::Csv => text::write(table, b','),
        Format::Tsv => text::write(table, b'\t'),
        Format::JsonLines => text::write_lines(table),
        Format::Spreadsheet => sheet::write(table),
    }
}

/// Returns a cell as text: nothing for an empty one, JSON for a nested value.
#[must_use]
pub fn shown(cell: &Value) -> String {
    match cell {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns unique column names from a first row.
fn named(first: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut taken = std::collections::HashSet::new();
    for (index, name) in first.into_iter().enumerate() {
        let name = match name.trim() {
            "" => format!("column_{}", index + 1),
            name => name.to_owned(),
        };
        let free = (1_usize..)
            .map(|n| match n {
                1 => name.clone(),
                n => format!("{name}_{n}"),
            })
            .find(|name| taken.insert(name.clone()));
        names.extend(free);
    }
    names
}

/// Checks the limit of cells for a table whose cells and rows each have memory of their own.
fn bounded_texts(rows: usize, columns: usize) -> Result<(), TableError> {
    bounded(rows, columns.saturating_add(CELLS_OF_ROW)).map_err(|error| match error {
        TableError::TooLarge { size, limit, .. } => TableError::TooLarge {
            what: "the number of cells, with two more for each row,",
            size,
            limit,
        },
        other => other,
    })
}

/// Checks the limit of cells.
fn bounded(rows: usize, columns: usize) -> Result<(), TableError> {
    let cells = rows.saturating_mul(columns.max(1));
    if cells > MAX_CELLS {
        return Err(TableError::TooLarge {
            what: "the number of cells",
            size: cells as u64,
            limit: MAX_CELLS as u64,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_small_rows_are_too_many_cells() {
        let rows = MAX_CELLS / (CELLS_OF_ROW + 2);
        let text = format!("a,b\n{}", "1,2\n".repeat(rows + 1));
        let read = |text: &str| read(text.as_bytes(), Format::Csv, None);
        let error = read(&text).unwrap_err().to_string();
        assert!(error.contains("two more for each row"), "{error}");
        let fits = text.get(..text.len() - 4).unwrap_or_default();
        assert_eq!(read(fits).unwrap().rows.len(), rows);
    }
}
