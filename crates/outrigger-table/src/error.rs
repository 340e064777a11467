//! What goes wrong with tables.

use thiserror::Error;

/// An error with a code and what to do.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TableError {
    /// The bytes are no such file.
    #[error("it cannot be read as {format}: {why}")]
    Unreadable {
        /// The format.
        format: &'static str,
        /// Why, with the line where there is one.
        why: String,
    },
    /// A limit.
    #[error("{what} has {size}, more than the {limit} that are taken")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it is; where it is counted no further, one more than the limit.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// There is no such sheet.
    #[error("there is no sheet {name}; there are: {sheets}")]
    Sheet {
        /// The name.
        name: String,
        /// The sheets that there are.
        sheets: String,
    },
    /// There is no such column.
    #[error("there is no column {name}; there are: {columns}")]
    Column {
        /// The name.
        name: String,
        /// The columns that there are.
        columns: String,
    },
    /// A row does not fit.
    #[error("row {row} has {cells} cells, and there are {columns} columns")]
    Row {
        /// The row, from 1.
        row: usize,
        /// Its cells.
        cells: usize,
        /// The columns.
        columns: usize,
    },
    /// A condition that means nothing.
    #[error("the condition on {column} cannot be used: {why}")]
    Condition {
        /// The column.
        column: String,
        /// Why.
        why: &'static str,
    },
    /// The name of the file tells no format.
    #[error("no format of tables is known by its name")]
    Format,
    /// It cannot be put into that format.
    #[error("it cannot be written as {format}: {why}")]
    Unwritable {
        /// The format.
        format: &'static str,
        /// Why.
        why: String,
    },
}

impl TableError {
    /// For programs.
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

    /// What to do.
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
