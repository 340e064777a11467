//! `outrigger plugin test`: runs the examples in declarations of plugins (B8).

use outrigger_agent::Agent;
use outrigger_models::{ModelError, StreamOptions};
use outrigger_plugins::{PluginStatus, ProviderRow};
use outrigger_protocol::manifest::ProviderExample;
use outrigger_protocol::message::ModelRef;

use crate::args::Global;
use crate::exit;
use crate::failure::Failure;
use crate::terminal::{entry, name as shown, out};

/// Reports for each point, event and provider that a plugin declares how it is tested. The examples of points and events are
/// validated against the schemas when the plugin is loaded: one that does not match prevents loading, which fails here. Those of
/// providers are sent.
pub(super) async fn test(global: &Global, of: Option<&str>) -> Result<u8, Failure> {
    let agent = Agent::boot(super::listing::listing(global)?).await?;
    let tested = Tested::all(&agent, of).await;
    agent.shutdown().await;
    let Some(mut tested) = tested else {
        return Err(Failure::new(
            "plugin.not_found",
            format!("no plugin `{}`", of.unwrap_or_default()),
            Some("`outrigger plugin list` lists them".to_owned()),
        ));
    };
    if tested.text.is_empty() {
        tested.text = "nothing declares a point, an event or a provider\n".to_owned();
    }
    out(&tested.text);
    Ok(if tested.failed { exit::FAILED } else { 0 })
}

/// The output.
#[derive(Default)]
struct Tested {
    text: String,
    failed: bool,
}

impl Tested {
    /// Tests the named plugin, or all; `None` if there is none of that name.
    async fn all(agent: &Agent, of: Option<&str>) -> Option<Self> {
        let plugins = agent.plugins();
        let wanted = |id: &str| of.is_none_or(|of| of == id);
        let meant: Vec<&PluginStatus> = plugins.iter().filter(|it| wanted(&it.id)).collect();
        if of.is_some() && meant.is_empty() {
            return None;
        }
        let mut tested = Self::default();
        for plugin in meant {
            if let Some(cause) = &plugin.cause {
                tested.fails(&plugin.id, &cause.message);
            }
        }
        let (points, events) = agent.plugin_points();
        let points = points.iter().filter_map(|row| {
            let by = row.declared_by.as_deref()?;
            Some((by, &row.name, row.examples.len()))
        });
        let events = events
            .iter()
            .map(|row| (row.declared_by.as_str(), &row.name, row.examples.len()));
        for (_, name, examples) in points.chain(events).filter(|(by, ..)| wanted(by)) {
            match examples {
                0 => tested.fails(name, "it has no example"),
                n => tested.passes(name, &format!("{n} of {n} examples fit")),
            }
        }
        agent.providers_ready().await;
        for row in agent.plugin_providers() {
            if wanted(&row.declared_by) {
                tested.provider(agent, &row).await;
            }
        }
        Some(tested)
    }

    /// Providers have no schema: their examples are sent, and must be answered.
    async fn provider(&mut self, agent: &Agent, row: &ProviderRow) {
        let id = &row.id;
        let Some(entry) = &row.entry else {
            return self.fails(
                id,
                "its manifest has no description of it (`[[providers]]`)",
            );
        };
        if entry.examples.is_empty() {
            return self.fails(id, "it has no example");
        }
        let count = entry.examples.len();
        for (n, example) in (1..).zip(&entry.examples) {
            if let Err(error) = answered(agent, id, example).await {
                let why = format!("example {n} of {count} is not answered: {error}");
                return self.fails(id, &why);
            }
        }
        self.passes(id, &format!("{count} of {count} examples are answered"));
    }

    fn passes(&mut self, name: &str, why: &str) {
        self.text.push_str(&format!("ok      {name}: {why}\n"));
    }

    fn fails(&mut self, name: &str, why: &str) {
        self.failed = true;
        let line = format!("failed  {}: {why}", shown(name));
        self.text.push_str(&entry(&line));
    }
}

/// Sends an example. The request has no session, so session hooks are not called.
async fn answered(
    agent: &Agent,
    provider: &str,
    example: &ProviderExample,
) -> Result<(), ModelError> {
    let model = agent.models().resolve(&ModelRef {
        provider_id: provider.to_owned(),
        model_id: example.model.clone(),
        variant: None,
    })?;
    let options = StreamOptions {
        session_id: "plugin-test".to_owned(),
        directory: agent.location().directory.clone(),
        ..StreamOptions::default()
    };
    model.answers(&example.prompt, &options).await
}
