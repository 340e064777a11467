//! File formats.

use std::path::Path;

use crate::error::TableError;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values.
    Csv,
    /// Tab-separated values.
    Tsv,
    /// One JSON object per line.
    JsonLines,
    /// An Excel or OpenDocument workbook.
    Spreadsheet,
}

impl Format {
    /// Returns the format of a file's name.
    ///
    /// # Errors
    /// `table.format`.
    pub fn of(path: &Path) -> Result<Self, TableError> {
        match ending(path).as_str() {
            "csv" => Ok(Self::Csv),
            "tsv" | "tab" => Ok(Self::Tsv),
            "jsonl" | "ndjson" => Ok(Self::JsonLines),
            "xlsx" | "xlsm" | "xlsb" | "xls" | "ods" => Ok(Self::Spreadsheet),
            _ => Err(TableError::Format),
        }
    }

    /// Returns the format of a file to write.
    ///
    /// # Errors
    /// As [`Format::of`]; `table.unwritable` for spreadsheets other than `.xlsx`.
    pub fn to_write(path: &Path) -> Result<Self, TableError> {
        let format = Self::of(path)?;
        if format == Self::Spreadsheet && ending(path) != "xlsx" {
            return Err(TableError::Unwritable {
                format: "this kind of spreadsheet",
                why: "only .xlsx is written".to_owned(),
            });
        }
        Ok(format)
    }
}

fn ending(path: &Path) -> String {
    path.extension()
        .map(|ending| ending.to_string_lossy())
        .unwrap_or_default()
        .to_ascii_lowercase()
}
