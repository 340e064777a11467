//! Formats loaded plugins for users.

use outrigger_agent::ProjectLocation;
use outrigger_plugins::{BreakerState, PluginStatus};
use outrigger_store::Store;

use super::perf::times;
use crate::args::Global;
use crate::commands::session::stored;
use crate::failure::Failure;
use crate::terminal::progress::Line;
use crate::terminal::{name, one_line};

/// Returns start parameters for commands that report problems of plugins: the agent starts even if
/// plugins do not load.
pub(crate) fn listing(global: &Global) -> Result<outrigger_agent::Boot, Failure> {
    let mut boot = crate::boot::boot(global, &Line::new())?;
    boot.strict = Some(false);
    Ok(boot)
}

/// Opens the records without starting a plugin.
pub(super) fn recorded(global: &Global) -> Result<(Store, ProjectLocation), Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let location = ProjectLocation::find(&boot.directory);
    Ok((stored::open(&boot)?, location))
}

/// Says that there are no plugins: because the settings that name them are ignored, if so.
pub(super) fn none(ignored: Option<&str>) -> String {
    match ignored {
        Some(why) => one_line(format_args!("no plugins: {why}")),
        None => "no plugins (see `plugin` in opencode.json, or .opencode/plugin/)\n".to_owned(),
    }
}

/// Formats one block per plugin: state, stage and cause.
pub(crate) fn table(plugins: &[PluginStatus]) -> String {
    if plugins.is_empty() {
        return none(None);
    }
    plugins
        .iter()
        .map(|plugin| origin(plugin) + &breakers(plugin) + &troubles(plugin))
        .collect()
}

/// Formats what it is, its origin and its contributions.
fn origin(plugin: &PluginStatus) -> String {
    let mut text = String::new();
    let version = plugin
        .version
        .as_deref()
        .map(|v| format!(" {}", name(v)))
        .unwrap_or_default();
    text.push_str(&format!(
        "{:<12} {}{version}",
        plugin.stage.to_string(),
        name(&plugin.id)
    ));
    if plugin.load_ms > 0.0 {
        text.push_str(&format!("  {:.0} ms", plugin.load_ms));
    }
    text.push('\n');
    text.push_str(&one_line(format_args!(
        "             from   {} in {}",
        plugin.spec,
        plugin.declared_in.display()
    )));
    if let Some(host) = &plugin.host {
        text.push_str(&one_line(format_args!("             host   {host}")));
    }
    // A named file is its own entry.
    let named = plugin
        .spec
        .strip_prefix("file://")
        .map(std::path::Path::new);
    if let Some(entry) = plugin.entry.as_deref().filter(|e| named != Some(e)) {
        text.push_str(&one_line(format_args!(
            "             entry  {}",
            entry.display()
        )));
    }
    for (kind, values) in [("hooks", &plugin.hooks), ("tools", &plugin.tools)] {
        if !values.is_empty() {
            text.push_str(&one_line(format_args!(
                "             {kind:<6} {}",
                values.join(", ")
            )));
        }
    }
    text
}

fn breakers(plugin: &PluginStatus) -> String {
    let mut text = String::new();
    for breaker in &plugin.breakers {
        let hook = &breaker.hook;
        let line = match (breaker.state, breaker.opens_in_ms) {
            (BreakerState::Open, Some(ms)) => {
                format!("{hook} is skipped for another {} s", ms.div_ceil(1000))
            }
            (BreakerState::Closed, _) => {
                let n = u64::try_from(breaker.timeouts).unwrap_or(u64::MAX);
                format!("{hook} timed out {} lately", times(n))
            }
            (state, _) => format!("{hook} is {state}"),
        };
        text.push_str(&one_line(format_args!("             breaker {line}")));
    }
    text
}

/// Formats its problems and messages.
fn troubles(plugin: &PluginStatus) -> String {
    let mut text = String::new();
    if plugin.events_missed > 0 {
        let missed = plugin.events_missed;
        text.push_str(&one_line(format_args!(
            "             events {missed} never reached its process"
        )));
    }
    if let Some(cause) = &plugin.quarantine {
        text.push_str(&one_line(format_args!("             apart  {cause}")));
    }
    for (name, lines) in [("warn", &plugin.warnings), ("note", &plugin.notes)] {
        for line in lines {
            text.push_str(&one_line(format_args!("             {name:<6} {line}")));
        }
    }
    if let Some(cause) = &plugin.cause {
        text.push_str(&one_line(format_args!(
            "             cause  {} (while {}) [{}]",
            cause.message, cause.at, cause.code
        )));
        if let Some(hint) = &cause.hint {
            text.push_str(&one_line(format_args!("             hint   {hint}")));
        }
    }
    text
}
