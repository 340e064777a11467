//! Errors of tables.

use thiserror::Error;

/// An error with a code and what to do.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TableError {
    /// The bytes are not a file of this format.
    #[error("it cannot be read as {format}: {why}")]
    Unreadable {
        /// The format.
        format: &'static str,
        /// The reason, with the line if there is one.
        why: String,
    },
    /// A limit is exceeded.
    #[error("{what} has {size}, more than the {limit} that are taken")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The actual size, or one more than the limit if counting stopped there.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// There is no such sheet.
    #[error("there is no sheet {name}; there are: {sheets}")]
    Sheet {
        /// The name.
        name: String,
        /// The existing sheets.
        sheets: String,
    },
    /// There is no such column.
    #[error("there is no column {name}; there are: {columns}")]
    Column {
        /// The name.
        name: String,
        /// The existing columns.
        columns: String,
    },
    /// A row does not match the columns.
    #[error("row {row} has {cells} cells, and there are {columns} columns")]
    Row {
        /// The row, from 1.
        row: usize,
        /// Its number of cells.
        cells: usize,
        /// The number of columns.
        columns: usize,
    },
    /// An invalid condition.
    #[error("invalid condition on {column}: {why}")]
    Condition {
        /// The column.
        column: String,
        /// The reason.
        why: &'static str,
    },
    /// The file's name does not identify a format.
    #[error("no format of tables is known by its name")]
    Format,
    /// It cannot be written in that format.
    #[error("it cannot be written as {format}: {why}")]
    Unwritable {
        /// The format.
        format: &'static str,
        /// The reason.
        why: String,
    },
}

impl TableError {
    /// Returns the code, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "table.unreadable",
            Self::TooLarge { .. } => "table.too_large",
            Self::Sheet { .. } => "table.sheet",
            Self::Column { .. } => "table.column",
            Self::Row { .. } => "table.row",
            Self::Condition { .. } => "table.condition",
            Self::Format => "table.format",
            Self::Unwritable { .. } => "table.unwritable",
        }
    }

    /// Returns what to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::TooLarge { .. } => Some("take a part of it with a command, and read that"),
            Self::Format => {
                Some("use .csv, .tsv, .jsonl, .ndjson, .xlsx, .xlsm, .xlsb, .xls or .ods")
            }
            Self::Unwritable { .. } => Some("write it as .csv, .tsv, .jsonl or .xlsx"),
            _ => None,
        }
    }
}
