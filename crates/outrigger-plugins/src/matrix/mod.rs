//! Matrix of plugins and the features that they use: hooks, tools, kinds of events, client methods, logins and providers
//! (requirement B11).
//!
//! Three sources are kept separate: what the plugin declared when it was loaded, what its sources name, and what it did
//! according to the log. There are no other sources, so the matrix of a project is the same on every machine that has its
//! plugins.

mod routes;
mod scan;

use std::collections::BTreeMap;

use serde::Serialize;

use outrigger_plugin_registry::PluginStatus;
pub use outrigger_plugin_registry::SourceOf;

/// Kind of feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Feature {
    /// A hook.
    Hook,
    /// A tool that it contributes.
    Tool,
    /// A kind of event that it listens to.
    Event,
    /// A method of the client.
    Client,
    /// A provider that it logs in to, by an `auth` object.
    Auth,
    /// A provider that it contributes or whose models it lists, by a `provider` object.
    Provider,
}

impl Feature {
    const ALL: [Self; 6] = [
        Self::Hook,
        Self::Tool,
        Self::Event,
        Self::Client,
        Self::Auth,
        Self::Provider,
    ];

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::Tool => "tool",
            Self::Event => "event",
            Self::Client => "client",
            Self::Auth => "auth",
            Self::Provider => "provider",
        }
    }
}

/// Number of uses by a plugin, from the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// Id of the plugin; `None` if the log does not identify it.
    pub plugin: Option<String>,
    /// Kind of feature.
    pub feature: Feature,
    /// OpenCode's name of the hook, the tool's name, or method and path of the request.
    pub name: String,
    /// Number of uses.
    pub count: u64,
}

/// One cell of the matrix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// Id of the plugin.
    pub plugin: String,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Kind of feature.
    pub feature: Feature,
    /// Name of the feature.
    pub name: String,
    /// The plugin declared it when it was loaded.
    pub declared: bool,
    /// Its sources name it.
    pub named: bool,
    /// Number of uses here.
    pub used: u64,
}

/// The matrix: plugins in load order, then by kind and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Matrix {
    /// The cells that are not empty.
    pub cells: Vec<Cell>,
}

impl Matrix {
    /// Builds the matrix of these plugins.
    #[must_use]
    pub fn of(plugins: &[PluginStatus], uses: &[Use]) -> Self {
        let mut cells = Vec::new();
        for plugin in plugins {
            let mut own: BTreeMap<(Feature, String), Cell> = BTreeMap::new();
            let mut cell = |feature: Feature, name: &str, change: &dyn Fn(&mut Cell)| {
                let cell = own
                    .entry((feature, name.to_owned()))
                    .or_insert_with(|| Cell {
                        plugin: plugin.id.clone(),
                        version: plugin.version.clone(),
                        feature,
                        name: name.to_owned(),
                        declared: false,
                        named: false,
                        used: 0,
                    });
                change(cell);
            };
            for (feature, names) in [
                (Feature::Hook, &plugin.hooks),
                (Feature::Tool, &plugin.tools),
                (Feature::Auth, &plugin.auth),
                (Feature::Provider, &plugin.providers),
            ] {
                for name in names {
                    cell(feature, name, &|cell| cell.declared = true);
                }
            }
            if let Some(source) = &plugin.source {
                let named = scan::scan(&source.file, &source.dir);
                // Without an `event` hook the name of an event is just a word.
                if plugin.hooks.iter().any(|hook| hook == "event") {
                    for kind in named.events {
                        cell(Feature::Event, kind, &|cell| cell.named = true);
                    }
                }
                for method in named.methods {
                    cell(Feature::Client, method, &|cell| cell.named = true);
                }
            }
            for use_ in uses {
                let here = match use_.feature {
                    // The log identifies a tool by name; its current owner is shown.
                    Feature::Tool => plugin.tools.contains(&use_.name),
                    _ => use_.plugin.as_deref() == Some(plugin.id.as_str()),
                };
                if !here {
                    continue;
                }
                let name = match (use_.feature, use_.name.split_once(' ')) {
                    (Feature::Client, Some((method, path))) => routes::operation(method, path),
                    _ => use_.name.clone(),
                };
                cell(use_.feature, &name, &|cell| cell.used += use_.count);
            }
            cells.extend(own.into_values());
        }
        Self { cells }
    }

    /// Returns comma-separated values with a header line; data about past runs only if `with_use`.
    #[must_use]
    pub fn csv(&self, with_use: bool) -> String {
        let mut text = String::from("plugin,version,feature,name,declared,named");
        text.push_str(if with_use { ",used\n" } else { "\n" });
        for cell in self
            .cells
            .iter()
            .filter(|cell| with_use || cell.declared || cell.named)
        {
            let version = cell.version.as_deref().unwrap_or_default();
            let fields = [&cell.plugin, version, cell.feature.name(), &cell.name].map(quoted);
            text.push_str(&fields.join(","));
            text.push_str(&format!(",{},{}", cell.declared, cell.named));
            if with_use {
                text.push_str(&format!(",{}", cell.used));
            }
            text.push('\n');
        }
        text
    }

    /// Returns a table for display: a row for each feature, a column for each plugin.
    #[must_use]
    pub fn table(&self) -> String {
        let mut plugins: Vec<(&str, Option<&str>)> = Vec::new();
        for cell in &self.cells {
            let plugin = (cell.plugin.as_str(), cell.version.as_deref());
            if !plugins.contains(&plugin) {
                plugins.push(plugin);
            }
        }
        if plugins.is_empty() {
            return "no plugins, or none that uses anything\n".to_owned();
        }
        let mut text = String::new();
        for (index, (name, version)) in plugins.iter().enumerate() {
            let version = version.map(|v| format!(" {v}")).unwrap_or_default();
            text.push_str(&format!("{:>3}  {name}{version}\n", index + 1));
        }
        text.push_str("\nD declared, S named in its sources, U used here\n");
        let width = self
            .cells
            .iter()
            .map(|cell| cell.name.chars().count())
            .max()
            .unwrap_or(0);
        for feature in Feature::ALL {
            let mut rows: BTreeMap<&str, BTreeMap<&str, String>> = BTreeMap::new();
            for cell in self.cells.iter().filter(|cell| cell.feature == feature) {
                rows.entry(&cell.name)
                    .or_default()
                    .insert(&cell.plugin, mark(cell));
            }
            if rows.is_empty() {
                continue;
            }
            let heads: String = (1..=plugins.len()).map(|n| format!("{n:>4}")).collect();
            text.push_str(&format!("\n{:<width$}{heads}\n", feature.name()));
            for (name, row) in rows {
                let line: String = plugins
                    .iter()
                    .map(|(plugin, _)| {
                        format!("{:>4}", row.get(plugin).map_or(".", String::as_str))
                    })
                    .collect();
                text.push_str(&format!("{name:<width$}{line}\n"));
            }
        }
        text
    }
}

fn mark(cell: &Cell) -> String {
    let letters = [
        (cell.declared, 'D'),
        (cell.named, 'S'),
        (cell.used > 0, 'U'),
    ];
    letters
        .iter()
        .filter(|(on, _)| *on)
        .map(|(_, letter)| *letter)
        .collect()
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
