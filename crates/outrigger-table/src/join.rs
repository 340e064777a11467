//! Joining two tables.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use crate::error::TableError;
use crate::number::Number;
use crate::{Table, bounded_texts, shown};

/// The parameters of a join.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// Pairs of columns that must be equal. Empty cells are equal to nothing.
    pub on: Vec<On>,
    /// The treatment of rows without a partner.
    #[serde(default)]
    pub how: JoinKind,
}

/// A pair of columns.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct On {
    /// In the left table.
    pub left: String,
    /// In the right one.
    pub right: String,
}

/// Which rows without a partner are kept.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum JoinKind {
    /// None.
    #[default]
    Inner,
    /// Those of the left table.
    Left,
    /// Those of the right table.
    Right,
    /// Those of both.
    Outer,
}

/// Joins two tables: the columns of the left one, then those of the right one that it is not joined on; a duplicate name
/// gets the prefix `right_`. Rows come in the order of the left table, then the remaining ones of the right.
///
/// # Errors
/// `table.column`; `table.condition` without a pair of columns; `table.too_large`, since a column with few values gives a large
/// table.
pub fn join(left: &Table, right: &Table, join: &Join) -> Result<Table, TableError> {
    if join.on.is_empty() {
        return Err(TableError::Condition {
            column: "the join".to_owned(),
            why: "it names no pair of columns",
        });
    }
    let pairs = join
        .on
        .iter()
        .map(|on| Ok((left.column(&on.left)?, right.column(&on.right)?)))
        .collect::<Result<Vec<_>, TableError>>()?;
    let (lefts, rights): (Vec<usize>, Vec<usize>) = pairs.into_iter().unzip();
    let kept: Vec<usize> = (0..right.columns.len())
        .filter(|place| !rights.contains(place))
        .collect();
    let columns = columns(left, right, &kept);
    let partners = by_key(right, &rights);
    let found: Vec<Option<&Vec<usize>>> = left
        .rows
        .iter()
        .map(|row| key(row, &lefts).and_then(|key| partners.get(&key)))
        .collect();
    // Checked before the table is built: a column with few values gives a table of gigabytes.
    let pairs: usize = found.iter().flatten().map(|theirs| theirs.len()).sum();
    bounded_texts(pairs + left.rows.len() + right.rows.len(), columns.len())?;
    let mut met = vec![false; right.rows.len()];
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for (row, found) in left.rows.iter().zip(found) {
        for index in found.into_iter().flatten() {
            if let Some(met) = met.get_mut(*index) {
                *met = true;
            }
            let theirs = right.rows.get(*index);
            let cells = kept.iter().map(|place| cell(theirs, *place));
            rows.push(row.iter().cloned().chain(cells).collect());
        }
        if found.is_none() && matches!(join.how, JoinKind::Left | JoinKind::Outer) {
            let mut row = row.clone();
            row.resize(columns.len(), Value::Null);
            rows.push(row);
        }
    }
    if matches!(join.how, JoinKind::Right | JoinKind::Outer) {
        for (row, _) in right.rows.iter().zip(&met).filter(|(_, met)| !**met) {
            let mut cells = vec![Value::Null; left.columns.len()];
            // Its key is in the left table's column.
            for (left, right) in lefts.iter().zip(&rights) {
                if let Some(place) = cells.get_mut(*left) {
                    *place = cell(Some(row), *right);
                }
            }
            cells.extend(kept.iter().map(|place| cell(Some(row), *place)));
            rows.push(cells);
        }
    }
    Ok(Table { columns, rows })
}

/// Returns the column names: those of the left table, then the `kept` ones of the right.
fn columns(left: &Table, right: &Table, kept: &[usize]) -> Vec<String> {
    let mut columns = left.columns.clone();
    for place in kept {
        let mut name = right.columns.get(*place).cloned().unwrap_or_default();
        while columns.contains(&name) {
            name = format!("right_{name}");
        }
        columns.push(name);
    }
    columns
}

/// Groups the rows of a table by the values in these columns.
fn by_key(table: &Table, places: &[usize]) -> HashMap<String, Vec<usize>> {
    let mut rows: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, row) in table.rows.iter().enumerate() {
        if let Some(key) = key(row, places) {
            rows.entry(key).or_default().push(index);
        }
    }
    rows
}

fn cell(row: Option<&Vec<Value>>, place: usize) -> Value {
    row.and_then(|row| row.get(place))
        .cloned()
        .unwrap_or_default()
}

/// Returns the join key of a row: numbers by their value, so that 7 in a spreadsheet equals "7" in a CSV file.
fn key(row: &[Value], places: &[usize]) -> Option<String> {
    let mut key = String::new();
    for place in places {
        let cell = row.get(*place).filter(|cell| !cell.is_null())?;
        let text = shown(cell);
        let text = Number::of(cell).map_or(text, Number::key);
        key.push_str(&text.len().to_string());
        key.push(':');
        key.push_str(&text);
    }
    Some(key)
}
