//! `table`: reads, filters, joins and writes tables (D5, `core-table`). Not a tool of OpenCode: see
//! [`crate::builtin::optional`].

use std::path::Path;

use futures_util::future::BoxFuture;
use outrigger_protocol::Object;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use outrigger_table::{Format, Join, MAX_BYTES, Query, Table, TableError, join, read, write};
use serde_json::{Map, Value, json};

use super::files::changed::publish_change;
use super::files::read::asks_read;
use super::files::target::ask_edit;
use super::optional::specified;
use super::text;
use crate::error::ToolError;
use crate::files::{Kind, Located, WRITING, hold, locate, read_bytes, write_bytes};
use crate::host::{PermissionAsk, ToolContext, lock};
use crate::tool::Tool;

const DESCRIPTION: &str = r#"
Reads a table (.csv, .tsv, .jsonl, .xlsx, .xls, .ods), and filters, joins, sorts and limits it. Returns rows as CSV, or writes them to a file.

- Steps, in this order, each optional: path or rows, join, where, sort, offset and limit, columns, to.
- where: all conditions must hold. op is eq, ne, lt, le, gt, ge, contains, starts_with, ends_with, in (value is a list), empty or not_empty. Texts that look like numbers compare as numbers.
- join: {"path": "b.csv", "on": [{"left": "id", "right": "user_id"}], "how": "inner"}; how is inner, left, right or outer.
- to writes .csv, .tsv, .jsonl or .xlsx and replaces an existing file; the other formats are read-only. Without to, at most 100 rows are returned, or limit.
- rows, instead of path, is a list of objects for a new table.
"#;
/// Default number of rows returned.
const ROWS: usize = 100;

/// The tool.
pub(super) struct TableTool {
    spec: ToolSpec,
}

impl TableTool {
    pub(super) fn new() -> Self {
        let columns = json!({"type": "array", "items": {"type": "string"}});
        let whole = json!({"type": "integer", "minimum": 0});
        let properties = json!({
            "path": {"type": "string"},
            "sheet": {"type": "string"},
            "rows": {"type": "array", "items": {"type": "object"}},
            "join": {
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "sheet": {"type": "string"},
                    "on": {"type": "array", "minItems": 1, "items": {
                        "type": "object", "additionalProperties": false, "required": ["left", "right"],
                        "properties": {"left": {"type": "string"}, "right": {"type": "string"}},
                    }},
                    "how": {"enum": ["inner", "left", "right", "outer"]},
                },
                "required": ["path", "on"],
                "additionalProperties": false,
            },
            "where": {"type": "array", "items": {
                "type": "object", "additionalProperties": false, "required": ["column", "op"],
                "properties": {
                    "column": {"type": "string"},
                    "op": {"enum": ["eq", "ne", "lt", "le", "gt", "ge", "contains", "starts_with", "ends_with", "in", "empty", "not_empty"]},
                    "value": {},
                },
            }},
            "sort": {"type": "array", "items": {
                "type": "object", "additionalProperties": false, "required": ["column"],
                "properties": {"column": {"type": "string"}, "descending": {"type": "boolean"}},
            }},
            "offset": whole, "limit": whole,
            "columns": columns,
            "to": {"type": "string"},
        });
        Self {
            spec: specified("core-table", "table", DESCRIPTION, properties, &[]),
        }
    }
}

/// A parsed call.
struct Call {
    from: From,
    join: Option<(Located, Option<String>, Join)>,
    query: Query,
    to: Option<Located>,
}

enum From {
    File(Located, Option<String>),
    Rows(Table),
}

fn wrong(error: impl std::fmt::Display) -> ToolError {
    ToolError::failed(format!("Invalid arguments for table: {error}"))
}

/// Returns which file failed, why, and what to do.
fn fault(at: &Path, error: &TableError) -> ToolError {
    let hint = error
        .hint()
        .map_or_else(String::new, |hint| format!("; {hint}"));
    ToolError::failed(format!("{}: {error}{hint}", at.display()))
}

fn sheet(value: &Value) -> Option<String> {
    value
        .get("sheet")
        .and_then(Value::as_str)
        .map(str::to_owned)
}

impl Call {
    fn read(input: &Value, ctx: &ToolContext) -> Result<Self, ToolError> {
        let from = match (
            text(input, "path"),
            input.get("rows").and_then(Value::as_array),
        ) {
            ("", None) => return Err(wrong("it takes path or rows")),
            ("", Some(rows)) => From::Rows(table(rows)),
            (_, Some(_)) => return Err(wrong("it takes path or rows, not both")),
            (path, None) => From::File(locate(ctx, path)?, sheet(input)),
        };
        let join = match input.get("join") {
            None => None,
            Some(join) => {
                let at = locate(ctx, text(join, "path"))?;
                let mut how: Object = join.as_object().cloned().unwrap_or_default();
                how.remove("path");
                how.remove("sheet");
                let how = serde_json::from_value(Value::Object(how)).map_err(wrong)?;
                Some((at, sheet(join), how))
            }
        };
        let steps = ["where", "sort", "offset", "limit", "columns"];
        let query: Map<String, Value> = steps
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), input.get(*key)?.clone())))
            .collect();
        let to = match text(input, "to") {
            "" => None,
            path => Some(locate(ctx, path)?),
        };
        Ok(Self {
            from,
            join,
            query: serde_json::from_value(Value::Object(query)).map_err(wrong)?,
            to,
        })
    }

    /// Returns the files that it reads.
    fn files(&self) -> impl Iterator<Item = &Located> {
        let first = match &self.from {
            From::File(at, _) => Some(at),
            From::Rows(_) => None,
        };
        first.into_iter().chain(self.join.iter().map(|(at, ..)| at))
    }
}

/// Builds a table from objects; the columns are their keys, in order of appearance.
fn table(rows: &[Value]) -> Table {
    let mut columns: Vec<String> = Vec::new();
    let objects: Vec<&Map<String, Value>> = rows.iter().filter_map(Value::as_object).collect();
    for key in objects.iter().flat_map(|object| object.keys()) {
        if !columns.contains(key) {
            columns.push(key.clone());
        }
    }
    let cells = |object: &&Map<String, Value>| {
        columns
            .iter()
            .map(|key| object.get(key).cloned().unwrap_or_default())
            .collect()
    };
    let rows = objects.iter().map(cells).collect();
    Table { columns, rows }
}

fn open(at: &Located, sheet: Option<&str>) -> Result<Table, ToolError> {
    let format = Format::of(&at.shown).map_err(|error| fault(&at.shown, &error))?;
    let bytes = read_bytes(at, MAX_BYTES as u64)?;
    read(&bytes, format, sheet).map_err(|error| fault(&at.shown, &error))
}

/// The result of a call.
struct Done {
    table: Table,
    /// Number of rows before conditions and limits.
    of: usize,
    matched: usize,
}

fn carry_out(call: &Call) -> Result<Done, ToolError> {
    let mut table = match &call.from {
        From::File(at, sheet) => open(at, sheet.as_deref())?,
        From::Rows(table) => table.clone(),
    };
    if let Some((at, sheet, how)) = &call.join {
        let right = open(at, sheet.as_deref())?;
        table = join(&table, &right, how).map_err(|error| fault(&at.shown, &error))?;
    }
    let of = table.rows.len();
    let mut query = call.query.clone();
    if call.to.is_none() {
        query.limit.get_or_insert(ROWS);
    }
    let (table, matched) = query.run(table).map_err(wrong)?;
    Ok(Done { table, of, matched })
}

/// Returns the rows for the model, with their range and the total.
fn rows_text(done: &Done, offset: usize) -> Result<String, ToolError> {
    let bytes = write(&done.table, Format::Csv).map_err(wrong)?;
    let shown = done.table.rows.len();
    let matched = if done.matched == done.of {
        String::new()
    } else {
        format!(", {} match", done.matched)
    };
    let part = if shown == done.matched {
        String::new()
    } else if shown == 0 {
        ", none shown".to_owned()
    } else {
        let offset = offset.min(done.matched);
        format!(
            ", {} to {} shown; use offset and limit for others",
            offset + 1,
            offset + shown
        )
    };
    let rows = String::from_utf8_lossy(&bytes);
    Ok(format!("{rows}\n({} rows{matched}{part})", done.of))
}

impl Tool for TableTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn permissions(
        &self,
        input: &Value,
        ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        let call = Call::read(input, ctx)?;
        let mut asks: Vec<PermissionAsk> = call.files().flat_map(|at| asks_read(at, ctx)).collect();
        if let Some(to) = &call.to {
            Format::to_write(&to.shown).map_err(|error| fault(&to.shown, &error))?;
            asks.extend(to.ask_outside(Kind::File));
            asks.push(ask_edit(to, None, ctx));
        }
        Ok(asks)
    }

    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let call = Call::read(&input, ctx)?;
            let target = call.to.clone();
            let _held = match &target {
                Some(to) => Some(hold(&to.real).await),
                None => None,
            };
            let title = call
                .files()
                .chain(&target)
                .next()
                .map(|at| at.relative(ctx));
            let offset = call.query.offset;
            let done = tokio::task::spawn_blocking(move || {
                let done = carry_out(&call)?;
                if let Some(to) = &call.to {
                    let format = Format::to_write(&to.shown).map_err(|e| fault(&to.shown, &e))?;
                    let bytes = write(&done.table, format).map_err(|e| fault(&to.shown, &e))?;
                    let _writing = lock(&WRITING);
                    write_bytes(to, &bytes)?;
                }
                Ok::<_, ToolError>(done)
            });
            let existed = target.as_ref().is_some_and(|to| to.real.exists());
            let done = done.await.map_err(|e| ToolError::failed(e.to_string()))??;
            let (rows, columns) = (done.table.rows.len(), done.table.columns.len());
            let output = match &target {
                Some(to) => {
                    publish_change(to, existed, ctx);
                    format!(
                        "Wrote {rows} rows of {columns} columns to {}.",
                        to.shown.display()
                    )
                }
                None => rows_text(&done, offset)?,
            };
            Ok(ToolOutput {
                title: title.unwrap_or_default(),
                output,
                metadata: json!({"rows": rows, "columns": done.table.columns, "matched": done.matched, "of": done.of}),
                attachments: None,
            })
        })
    }
}
