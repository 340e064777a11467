//! The list of plugins: their state, why one does not run, and the cost of their hooks.

use ratatui::style::Style;
use serde_json::Value;

use crate::render::text::{inline, wrap};
use crate::state::picker::Item;

/// Returns plugins with their state, problems and the cost of their hooks, for a list of this width.
pub(crate) fn plugins(all: &Value, width: usize) -> Vec<Item> {
    let plugins = all["plugins"].as_array().map_or(&[][..], Vec::as_slice);
    let mut items = Vec::new();
    for plugin in plugins {
        let id = text(plugin, "id");
        let mut detail = state(plugin);
        if let Some(memory) = memory(plugin, plugins) {
            detail.push_str(&format!(" · {memory}"));
        }
        items.push(Item::new(&id, &id, detail));
        for problem in problems(plugin) {
            let pieces = [(problem, Style::new())];
            let rows = wrap(&pieces, width.saturating_sub(MARGIN), &[], &[]);
            let rows = rows
                .iter()
                .map(|it| Item::new(&id, format!("    {it}"), ""));
            items.extend(rows);
        }
        let rows = all["perf"].as_array().into_iter().flatten();
        items.extend(rows.filter(|row| row["plugin"] == plugin["id"]).map(hook));
    }
    items
}

/// Columns that a problem leaves free: the mark of the selected line, its indent, the last column.
const MARGIN: usize = 8;

fn text(value: &Value, key: &str) -> String {
    inline(value[key].as_str().unwrap_or_default())
}

/// Returns the state of a plugin that runs, or how far one that does not has come.
fn state(plugin: &Value) -> String {
    let key = match plugin["cause"] {
        Value::Null if plugin["state"].is_string() => "state",
        _ => "stage",
    };
    match text(plugin, key) {
        state if state.is_empty() => "unknown".to_owned(),
        state => state,
    }
}

/// Returns the memory of a plugin's process: with the first of its plugins, of which the others say that they share it.
fn memory(plugin: &Value, all: &[Value]) -> Option<String> {
    let bytes = plugin.pointer("/usage/rss").and_then(Value::as_u64)?;
    let megabytes = format!("{} MB", bytes / 1_000_000);
    let pid = plugin["pid"].as_u64();
    let mut sharing = all
        .iter()
        .filter(|it| pid.is_some() && it["pid"].as_u64() == pid);
    let Some(first) = sharing.next() else {
        return Some(megabytes);
    };
    let others = sharing.count();
    Some(match others {
        _ if first["id"] != plugin["id"] => format!("in the process of {}", text(first, "id")),
        0 => megabytes,
        _ => format!("{megabytes} for {} plugins", others + 1),
    })
}

/// Returns what is wrong with a plugin, in sentences.
fn problems(plugin: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let cause = &plugin["cause"];
    if !cause.is_null() {
        problems.push(format!(
            "{} [{}]",
            text(cause, "message"),
            text(cause, "code")
        ));
        let hint = text(cause, "hint");
        problems.extend((!hint.is_empty()).then(|| format!("hint: {hint}")));
    }
    let quarantine = text(plugin, "quarantine");
    if !quarantine.is_empty() {
        problems.push(format!("it has a process of its own: {quarantine}"));
    }
    let warnings = plugin["warnings"].as_array().into_iter().flatten();
    problems.extend(warnings.filter_map(Value::as_str).map(inline));
    let breakers = plugin["breakers"].as_array().into_iter().flatten();
    problems.extend(breakers.map(breaker));
    problems
}

/// Returns what a breaker means for the user.
fn breaker(breaker: &Value) -> String {
    let hook = text(breaker, "hook");
    match (breaker["state"].as_str(), breaker["opens_in_ms"].as_u64()) {
        (Some("open"), Some(ms)) => format!(
            "{hook} is skipped because it kept timing out; it is tried again in {} s",
            ms.div_ceil(1000)
        ),
        (Some("closed"), _) => match breaker["timeouts"].as_u64() {
            Some(1) => format!("{hook} timed out once lately"),
            count => format!(
                "{hook} timed out {} times lately",
                count.unwrap_or_default()
            ),
        },
        _ => format!("{hook} kept timing out; its next call decides whether it is called again"),
    }
}

/// Returns the cost of a hook.
fn hook(row: &Value) -> Item {
    let (id, hook) = (text(row, "plugin"), text(row, "hook"));
    let figure = |key: &str| row[key].as_f64().unwrap_or_default();
    let calls = match row["calls"].as_u64().unwrap_or_default() {
        1 => "1 call".to_owned(),
        count => format!("{count} calls"),
    };
    let detail = format!(
        "p50 {:.1} ms · p95 {:.1} ms · {calls}",
        figure("p50_ms"),
        figure("p95_ms")
    );
    Item::new(format!("{id} {hook}"), format!("  {hook}"), detail)
}
