//! `outrigger plugin snapshot`: every candidate, the layer that decided about it, and why (D2, D3).

use outrigger_kernel::admission::Layer;
use outrigger_plugins::{Snapshot, SnapshotEntry};

use crate::args::{Global, SnapshotArgs};
use crate::failure::Failure;
use crate::terminal::progress::Line;
use crate::terminal::{name, one_line, out};

/// Runs the command; nothing is started or written.
pub(crate) fn run(global: &Global, args: &SnapshotArgs) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let snapshot = outrigger_agent::plugin_snapshot(&boot)?;
    let text = match &args.explain {
        _ if args.json => {
            let text = serde_json::to_string_pretty(&snapshot).unwrap_or_default();
            format!("{text}\n")
        }
        Some(id) => explain(&snapshot, id)?,
        None => table(&snapshot),
    };
    out(&text);
    Ok(0)
}

fn table(snapshot: &Snapshot) -> String {
    let wide = snapshot
        .entries
        .iter()
        .map(|it| it.id.chars().count())
        .max()
        .unwrap_or(0)
        .max(2);
    let mut text = format!(
        "profile {}\n{:8} {:wide$}  {:11} {:12} WHY\n",
        snapshot.profile.word(),
        "STATE",
        "ID",
        "SOURCE",
        "LAYER"
    );
    for it in &snapshot.entries {
        text.push_str(&one_line(format_args!(
            "{:8} {:wide$}  {:11} {:12} {}",
            state(it),
            it.id,
            it.source.word(),
            it.layer.map_or("-", Layer::name),
            it.why
        )));
    }
    for line in &snapshot.forbidden {
        text.push_str(&one_line(format_args!("policy   {line}")));
    }
    for problem in &snapshot.problems {
        text.push_str(&one_line(format_args!("note     {problem}")));
    }
    text
}

/// Returns whether it runs, as a word.
fn state(it: &SnapshotEntry) -> &'static str {
    match (it.enabled, it.optional) {
        (false, _) => "disabled",
        (true, true) => "optional",
        (true, false) => "enabled",
    }
}

pub(crate) fn explain(snapshot: &Snapshot, id: &str) -> Result<String, Failure> {
    let of_id: Vec<&SnapshotEntry> = snapshot
        .entries
        .iter()
        .filter(|it| it.id == id || it.place == id)
        .collect();
    if of_id.is_empty() {
        return Err(Failure::unknown_plugin(
            id,
            "`outrigger plugin snapshot` lists them",
        ));
    }
    let mut text: String = of_id.into_iter().map(explained).collect();
    for line in &snapshot.forbidden {
        text.push_str(&one_line(format_args!("  policy        {line}")));
    }
    Ok(text)
}

fn explained(it: &SnapshotEntry) -> String {
    let mut text = format!(
        "{} is {}\n  from    {} ({}, precedence {})\n",
        name(&it.id),
        state(it),
        name(&it.place),
        it.source.word(),
        it.precedence
    );
    if let Some(version) = &it.version {
        text.push_str(&one_line(format_args!("  version {version}")));
    }
    if !it.manifest {
        text.push_str("  no manifest of its own; it is given what such plugins are given\n");
    }
    for layer in Layer::ALL {
        let said = match (it.layer, &it.reason) {
            (Some(other), Some(_)) if other == layer => format!("no: {}", it.why),
            (Some(other), _) if other < layer => "not asked".to_owned(),
            _ => "yes".to_owned(),
        };
        text.push_str(&one_line(format_args!("  {:13} {said}", layer.name())));
    }
    match &it.remedy {
        Some(remedy) => text.push_str(&one_line(format_args!("  hint: {remedy}"))),
        None => text.push_str(&one_line(format_args!("  why: {}", it.why))),
    }
    text
}
