//! `outrigger plugin points`: the hook points, and their subscribers.

use outrigger_agent::Agent;
use outrigger_plugins::{EventRow, PointRow};
use serde_json::json;

use crate::args::Global;
use crate::failure::Failure;
use crate::terminal::{one_line, out};

/// Loads the plugins and lists the points of the program and of plugins, and the events that they
/// declare. `types`: as TypeScript, of the named plugin or of all.
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

/// Formats one line for each; points that a plugin declares are followed by its name.
fn table(points: &[PointRow], events: &[EventRow]) -> String {
    let names = points
        .iter()
        .map(|row| row.name.len())
        .chain(events.iter().map(|row| row.name.len()));
    let width = names.max().unwrap_or_default();
    let mut text = one_line(format_args!(
        "{:<width$}  {:<22}  SUBSCRIBERS",
        "POINT", "ALLOWS"
    ));
    for row in points {
        let who = if row.subscribers.is_empty() {
            "-".to_owned()
        } else {
            row.subscribers.join(", ")
        };
        let of = row.declared_by.as_ref().map(|id| format!("  (of {id})"));
        text.push_str(&one_line(format_args!(
            "{:<width$}  {:<22}  {who}{}",
            row.name,
            row.allows.join(", "),
            of.unwrap_or_default()
        )));
    }
    if !events.is_empty() {
        text.push_str(&format!("\n{:<width$}  DESCRIPTION\n", "EVENT"));
    }
    for row in events {
        let (name, about, of) = (&row.name, &row.description, &row.declared_by);
        text.push_str(&one_line(format_args!(
            "{name:<width$}  {about}  (of {of})"
        )));
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
