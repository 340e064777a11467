//! `outrigger plugin enable` and `disable`: the switch of a plugin in the user's own `outrigger.toml` (C7, D3).

use outrigger_agent::ProjectLocation;
use outrigger_config::{quoted, read_settings, set_in_toml, write_settings};
use outrigger_kernel::admission::{Reason, Source, bundled};
use outrigger_plugins::SnapshotEntry;
use outrigger_protocol::diagnose::Diagnose;
use serde_json::json;

use crate::args::{Global, LifeArgs};
use crate::failure::Failure;
use crate::terminal::progress::Line;
use crate::terminal::{one_line, out};

/// Runs the command: writes the switch and reports the consequences. No plugin is started; a running server notices the
/// change automatically.
pub(crate) fn run(global: &Global, id: &str, on: bool) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let before = outrigger_agent::plugin_snapshot(&boot)?;
    let named: Vec<&SnapshotEntry> = before
        .entries
        .iter()
        .filter(|it| it.id == id || it.place == id)
        .collect();
    if named.is_empty() {
        return Err(Failure::unknown_plugin(
            id,
            "`outrigger plugin snapshot` lists them",
        ));
    }
    if let (false, true) = (on, bundled(id).is_some_and(|it| it.required)) {
        return Err(Failure::new(
            "plugin.required",
            format!("{id} is a bundled plugin that is required; it cannot be switched off"),
            None,
        ));
    }
    let key = key(&named, id, on);
    let config = boot.load(&ProjectLocation::find(&boot.directory))?;
    let file = boot.folders.settings();
    let mut text = read_settings(&file).map_err(|e| Failure::of(&e))?;
    let name = file.display().to_string();
    let set = |text: &str, path: &[&str], value: &str| {
        set_in_toml(text, &name, path, value)
            .map_err(|error| Failure::new(error.code(), error.to_string(), error.hint()))
    };
    let value = if on { "true" } else { "false" };
    text = set(&text, &["plugins", key, "enabled"], value)?;
    // A plugin can have a table by its ID and one by its path. Both must agree.
    for (table, rules) in &config.settings.plugins {
        if !named.iter().any(|it| it.id == *table || it.place == *table) {
            continue;
        }
        if table != key && rules.enabled == Some(!on) {
            text = set(&text, &["plugins", table, "enabled"], value)?;
        }
        if on && rules.disabled {
            text = set(&text, &["plugins", table, "disabled"], "false")?;
        }
    }
    let asks = named
        .iter()
        .any(|it| it.source != Source::Bundled && it.reason == Some(Reason::SideEffectsNotAllowed));
    if on && asks {
        let mut allow = config.settings.discovery.allow.clone();
        allow.push(key.to_owned());
        let list: Vec<String> = allow.iter().map(|it| quoted(it)).collect();
        let list = format!("[{}]", list.join(", "));
        text = set(&text, &["discovery", "allow"], &list)?;
    }
    write_settings(&file, &text).map_err(|e| Failure::of(&e))?;
    let after = outrigger_agent::plugin_snapshot(&boot)?;
    out(&one_line(format_args!("written to {name}")));
    out(&super::snapshot::explain(&after, id)?);
    Ok(0)
}

/// Returns the key of the switch. A project's plugin is enabled by its path: its id may belong to another one tomorrow.
fn key<'a>(named: &[&'a SnapshotEntry], id: &'a str, on: bool) -> &'a str {
    match named.iter().find(|it| it.place == id || !it.of_project) {
        Some(it) if it.place != id => id,
        _ if !on => id,
        _ => named.first().map_or(id, |it| it.place.as_str()),
    }
}

/// `suspend`, `resume` and `reload`: sends a request to a running server.
pub(crate) async fn on_server(global: &Global, args: LifeArgs, what: &str) -> Result<u8, Failure> {
    let remote = crate::boot::remote(&args.url, &args.server, global)?;
    let path = format!("/outrigger/plugin/{what}");
    let answer: serde_json::Value = remote.post(&path, &json!({ "id": args.id })).await?;
    out(&one_line(format_args!(
        "{} is {} (generation {})",
        args.id,
        answer["state"].as_str().unwrap_or("unknown"),
        answer["generation"]
    )));
    Ok(0)
}
