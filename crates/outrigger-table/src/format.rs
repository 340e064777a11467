//! Formats of files.

use std::path::Path;

use crate::error::TableError;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Cells between commas.
    Csv,
    /// Cells between tabs.
    Tsv,
    /// One JSON object in each line.
    JsonLines,
    /// A workbook of Excel or of OpenDocument.
    Spreadsheet,
}

impl Format {
    /// The format that a file's name tells.
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

    /// The format for a file that is to be written.
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
    let ending = path.extension().map(|ending| ending.to_string_lossy());
    ending.unwrap_or_default().to_ascii_lowercase()
}
