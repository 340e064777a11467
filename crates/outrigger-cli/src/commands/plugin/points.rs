//! `outrigger plugin points`: where plugins can subscribe, and who does.

use outrigger_agent::Agent;
use outrigger_plugins::{EventRow, PointRow};
use serde_json::json;

use crate::args::Global;
use crate::exit;
use crate::failure::Failure;
use crate::terminal::out;

/// Loads the plugins and lists the points of the program and theirs, and the events that they declare.
/// `types`: as TypeScript, of the plugin that it names or of all.
pub(crate) async fn points(
    global: &Global,
    as_json: bool,
    types: Option<Option<String>>,
) -> Result<u8, Failure> {
    let agent = Agent::boot(super::listing::listing(global)?).await?;
    let (points, events) = agent.plugin_points();
    agent.shutdown().await;
    if let Some(of) = types {
        let declares = |id: &String| {
            let of_point = |row: &PointRow| row.declared_by.as_ref() == Some(id);
            points.iter().any(of_point) || events.iter().any(|row| row.declared_by == *id)
        };
        if let Some(id) = of.as_ref().filter(|id| !declares(id)) {
            return Err(Failure::new(
                "plugin.no_points",
                format!("the plugin {id} declares no points and no events, or is not loaded"),
                Some("`outrigger plugin points` lists who declares what".to_owned()),
            ));
        }
        out(&super::types::declarations(&points, &events, of.as_deref()));
        return Ok(0);
    }
    out(&if as_json {
        let all = json!({ "points": points, "events": events });
        format!(
            "{}\n",
            serde_json::to_string_pretty(&all).unwrap_or_default()
        )
    } else {
        table(&points, &events)
    });
    Ok(0)
}

/// Says of each point and event that a plugin declares what tests it (B8). The examples are held against the schemas when the plugin
/// is loaded: one that does not fit keeps it from being loaded, and fails here with it.
pub(crate) async fn test(global: &Global, of: Option<&str>) -> Result<u8, Failure> {
    let agent = Agent::boot(super::listing::listing(global)?).await?;
    let (points, events) = agent.plugin_points();
    let plugins = agent.plugins();
    agent.shutdown().await;
    let wanted = |id: &str| of.is_none_or(|of| of == id);
    if let Some(of) = of.filter(|of| !plugins.iter().any(|it| it.id == **of)) {
        return Err(Failure::new(
            "plugin.not_found",
            format!("no plugin is called `{of}` here"),
            Some("`outrigger plugin list` names them".to_owned()),
        ));
    }
    let (mut text, mut failed) = (String::new(), false);
    for plugin in plugins.iter().filter(|it| wanted(&it.id)) {
        if let Some(cause) = &plugin.cause {
            failed = true;
            text.push_str(&format!("failed  {}: {}\n", plugin.id, cause.message));
        }
    }
    let points = points.iter().filter_map(|row| {
        let by = row.declared_by.as_deref()?;
        Some((by, &row.name, row.examples.len()))
    });
    let events = events
        .iter()
        .map(|row| (row.declared_by.as_str(), &row.name, row.examples.len()));
    for (_, name, examples) in points.chain(events).filter(|(by, ..)| wanted(by)) {
        failed |= examples == 0;
        text.push_str(&match examples {
            0 => format!("failed  {name}: it has no example\n"),
            n => format!("ok      {name}: {n} of {n} examples fit\n"),
        });
    }
    if text.is_empty() {
        text = "nothing declares a point or an event\n".to_owned();
    }
    out(&text);
    Ok(if failed { exit::FAILED } else { 0 })
}

/// One line for each; points that a plugin declares have its name after them.
fn table(points: &[PointRow], events: &[EventRow]) -> String {
    let names = points.iter().map(|row| row.name.len());
    let names = names.chain(events.iter().map(|row| row.name.len()));
    let width = names.max().unwrap_or_default();
    let mut text = format!("{:<width$}  {:<22}  SUBSCRIBERS\n", "POINT", "ALLOWS");
    for row in points {
        let who = match row.subscribers.is_empty() {
            true => "-".to_owned(),
            false => row.subscribers.join(", "),
        };
        let of = row.declared_by.as_ref().map(|id| format!("  (of {id})"));
        text.push_str(&format!(
            "{:<width$}  {:<22}  {who}{}\n",
            row.name,
            row.allows.join(", "),
            of.unwrap_or_default()
        ));
    }
    if !events.is_empty() {
        text.push_str(&format!("\n{:<width$}  DESCRIPTION\n", "EVENT"));
    }
    for row in events {
        let (name, about, of) = (&row.name, &row.description, &row.declared_by);
        text.push_str(&format!("{name:<width$}  {about}  (of {of})\n"));
    }
    let points = points
        .iter()
        .filter(|row| row.declared_by.is_some() && row.examples.is_empty());
    let events = events.iter().filter(|row| row.examples.is_empty());
    let names = points.map(|row| &row.name);
    let bare: Vec<&str> = names
        .chain(events.map(|row| &row.name))
        .map(String::as_str)
        .collect();
    if !bare.is_empty() {
        text.push_str(&format!(
            "\nNothing tests these declarations: {}. An example in the manifest (`examples`) is held against the schemas.\n",
            bare.join(", ")
        ));
    }
    text
}
