//! CSV, TSV and JSON lines.

use serde_json::{Map, Value};

use crate::error::TableError;
use crate::{Table, bounded_texts, named, shown};

const BOM: &[u8] = b"\xef\xbb\xbf";

fn unreadable(format: &'static str, why: impl ToString) -> TableError {
    TableError::Unreadable {
        format,
        why: why.to_string(),
    }
}

fn name(delimiter: u8) -> &'static str {
    if delimiter == b'\t' { "TSV" } else { "CSV" }
}

/// Reads cells as texts: what looks like a number may be a postal code. Short rows are padded; a longer one is an
/// error.
pub(crate) fn read(bytes: &[u8], delimiter: u8) -> Result<Table, TableError> {
    let bytes = bytes.strip_prefix(BOM).unwrap_or(bytes);
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .flexible(true)
        .from_reader(bytes);
    let fail = |error: csv::Error| unreadable(name(delimiter), error);
    let columns = named(reader.headers().map_err(fail)?.iter().map(str::to_owned));
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(fail)?;
        if record.len() > columns.len() {
            return Err(TableError::Row {
                row: rows.len() + 1,
                cells: record.len(),
                columns: columns.len(),
            });
        }
        bounded_texts(rows.len() + 1, columns.len())?;
        let mut row: Vec<Value> = record
            .iter()
            .map(|cell| match cell {
                "" => Value::Null,
                text => Value::from(text),
            })
            .collect();
        row.resize(columns.len(), Value::Null);
        rows.push(row);
    }
    Ok(Table { columns, rows })
}

pub(crate) fn write(table: &Table, delimiter: u8) -> Result<Vec<u8>, TableError> {
    let fail = |why: String| TableError::Unwritable {
        format: name(delimiter),
        why,
    };
    let mut writer = csv::WriterBuilder::new()
        .delimiter(delimiter)
        .from_writer(Vec::new());
    if !table.columns.is_empty() {
        writer
            .write_record(&table.columns)
            .map_err(|error| fail(error.to_string()))?;
    }
    for row in &table.rows {
        writer
            .write_record(row.iter().map(shown))
            .map_err(|error| fail(error.to_string()))?;
    }
    writer.into_inner().map_err(|error| fail(error.to_string()))
}

/// The columns are all keys in order of appearance; missing values are empty.
pub(crate) fn read_lines(bytes: &[u8]) -> Result<Table, TableError> {
    const FORMAT: &str = "JSON lines";
    let bytes = bytes.strip_prefix(BOM).unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| unreadable(FORMAT, error))?;
    let mut columns: Vec<String> = Vec::new();
    let mut places = std::collections::HashMap::new();
    let mut rows = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let object: Map<String, Value> = serde_json::from_str(line)
            .map_err(|error| unreadable(FORMAT, format!("line {}: {error}", index + 1)))?;
        let mut row = vec![Value::Null; columns.len()];
        for (key, value) in object {
            let place = *places.entry(key).or_insert_with_key(|key: &String| {
                columns.push(key.clone());
                columns.len() - 1
            });
            row.resize(columns.len(), Value::Null);
            if let Some(cell) = row.get_mut(place) {
                *cell = value;
            }
        }
        bounded_texts(rows.len() + 1, columns.len())?;
        rows.push(row);
    }
    for row in &mut rows {
        row.resize(columns.len(), Value::Null);
    }
    Ok(Table { columns, rows })
}

/// Empty cells are omitted.
pub(crate) fn write_lines(table: &Table) -> Result<Vec<u8>, TableError> {
    let mut out = Vec::new();
    for row in &table.rows {
        let object: Map<String, Value> = table
            .columns
            .iter()
            .cloned()
            .zip(row.iter().cloned())
            .filter(|(_, cell)| !cell.is_null())
            .collect();
        serde_json::to_writer(&mut out, &object).map_err(|error| TableError::Unwritable {
            format: "JSON lines",
            why: error.to_string(),
        })?;
        out.push(b'\n');
    }
    Ok(out)
}
