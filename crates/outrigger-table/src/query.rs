//! Filtering, sorting and limiting a table.

use std::cmp::Ordering;

use serde::Deserialize;
use serde_json::Value;

use crate::Table;
use crate::error::TableError;
use crate::number::Number;

/// A query. Steps in this order: `where`, `sort`, `offset`, `limit`, `columns`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// Conditions that all rows must match.
    #[serde(default, rename = "where")]
    pub conditions: Vec<Condition>,
    /// Sort keys in order. The sort is stable.
    #[serde(default)]
    pub sort: Vec<Order>,
    /// Number of rows to skip.
    #[serde(default)]
    pub offset: usize,
    /// Maximum number of rows.
    #[serde(default)]
    pub limit: Option<usize>,
    /// These columns, in this order; all if none is named.
    #[serde(default)]
    pub columns: Vec<String>,
}

/// A condition on a cell.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// The column.
    pub column: String,
    /// The comparison.
    pub op: Op,
    /// The operand: a scalar; a list for `in`; nothing for `empty` and `not_empty`.
    #[serde(default)]
    pub value: Value,
}

/// Comparisons. Two cells that are both numbers, or texts that look like numbers, compare as numbers, all others as texts; an
/// empty cell is neither less nor greater than any.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Equal.
    Eq,
    /// Not equal; an empty cell is not equal to any value.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Contains the text.
    Contains,
    /// Starts with the text.
    StartsWith,
    /// Ends with the text.
    EndsWith,
    /// Equal to one of a list.
    In,
    /// The cell is empty.
    Empty,
    /// The cell is not empty.
    NotEmpty,
}

/// An order of rows.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The column.
    pub column: String,
    /// Descending. Empty cells are last, either way.
    #[serde(default)]
    pub descending: bool,
}

/// A column's index and the operand.
struct Test<'a> {
    column: usize,
    op: Op,
    value: &'a Value,
}

impl Query {
    /// Returns the resulting rows and columns, and how many rows matched the conditions.
    ///
    /// # Errors
    /// `table.column`, `table.condition`.
    pub fn run(&self, mut table: Table) -> Result<(Table, usize), TableError> {
        let tests = self
            .conditions
            .iter()
            .map(|condition| test(condition, &table))
            .collect::<Result<Vec<_>, _>>()?;
        let orders = self
            .sort
            .iter()
            .map(|order| Ok((table.column(&order.column)?, order.descending)))
            .collect::<Result<Vec<_>, TableError>>()?;
        let wanted = self
            .columns
            .iter()
            .map(|name| table.column(name))
            .collect::<Result<Vec<_>, _>>()?;
        table
            .rows
            .retain(|row| tests.iter().all(|test| holds(test, row)));
        let matched = table.rows.len();
        if !orders.is_empty() {
            table.rows.sort_by(|a, b| sorted(&orders, a, b));
        }
        table.rows.drain(..self.offset.min(matched));
        if let Some(limit) = self.limit {
            table.rows.truncate(limit);
        }
        if !wanted.is_empty() {
            table.columns = self.columns.clone();
            for row in &mut table.rows {
                let cells = wanted.iter().filter_map(|place| row.get(*place).cloned());
                *row = cells.collect();
            }
        }
        Ok((table, matched))
    }
}

fn test<'a>(condition: &'a Condition, table: &Table) -> Result<Test<'a>, TableError> {
    let Condition { column, op, value } = condition;
    let fail = |why| {
        Err(TableError::Condition {
            column: column.clone(),
            why,
        })
    };
    let place = table.column(column)?;
    match op {
        Op::In if !value.is_array() => return fail("`in` takes a list"),
        Op::In => {}
        Op::Empty | Op::NotEmpty if !value.is_null() => return fail("`empty` takes no value"),
        Op::Empty | Op::NotEmpty => {}
        _ if value.is_null() => {
            return fail("it has no value; use `empty` or `not_empty` for empty cells");
        }
        _ if value.is_array() || value.is_object() => {
            return fail("its value is not a text, number or boolean");
        }
        _ => {}
    }
    Ok(Test {
        column: place,
        op: *op,
        value,
    })
}

fn holds(test: &Test<'_>, row: &[Value]) -> bool {
    let cell = row.get(test.column).unwrap_or(&Value::Null);
    let order = || compare(cell, test.value);
    let texts = |holds: fn(&str, &str) -> bool| {
        !cell.is_null() && holds(&crate::shown(cell), &crate::shown(test.value))
    };
    match test.op {
        Op::Empty => cell.is_null(),
        Op::NotEmpty => !cell.is_null(),
        Op::Eq => order() == Some(Ordering::Equal),
        Op::Ne => order() != Some(Ordering::Equal),
        Op::Lt => order() == Some(Ordering::Less),
        Op::Le => matches!(order(), Some(Ordering::Less | Ordering::Equal)),
        Op::Gt => order() == Some(Ordering::Greater),
        Op::Ge => matches!(order(), Some(Ordering::Greater | Ordering::Equal)),
        Op::Contains => texts(|cell, part| cell.contains(part)),
        Op::StartsWith => texts(|cell, part| cell.starts_with(part)),
        Op::EndsWith => texts(|cell, part| cell.ends_with(part)),
        Op::In => test.value.as_array().is_some_and(|list| {
            list.iter()
                .any(|one| compare(cell, one) == Some(Ordering::Equal))
        }),
    }
}

/// Returns `None` if one of them is empty.
pub(crate) fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    if a.is_null() || b.is_null() {
        return None;
    }
    match (Number::of(a), Number::of(b)) {
        (Some(a), Some(b)) => Some(a.compare(b)),
        _ => Some(crate::shown(a).cmp(&crate::shown(b))),
    }
}

/// A total order of all cells for sorting: numbers, then other texts, then empty cells. (Pairwise comparison as in a
/// condition is not an order: 10 is less than 9a as text, 9a less than 9b, and 9 less than 10 as number.)
fn sorted(orders: &[(usize, bool)], a: &[Value], b: &[Value]) -> Ordering {
    let each = orders.iter().map(|(column, descending)| {
        let (a, b) = (a.get(*column)?, b.get(*column)?);
        let order = match (a.is_null(), b.is_null()) {
            (true, true) => return Some(Ordering::Equal),
            (true, false) => return Some(Ordering::Greater),
            (false, true) => return Some(Ordering::Less),
            (false, false) => match (Number::of(a), Number::of(b)) {
                (Some(a), Some(b)) => a.real().total_cmp(&b.real()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => crate::shown(a).cmp(&crate::shown(b)),
            },
        };
        Some(if *descending { order.reverse() } else { order })
    });
    each.flatten().fold(Ordering::Equal, Ordering::then)
}
