//! `outrigger plugin`.

use outrigger_agent::{Agent, AgentError, Place};
use outrigger_config::PolicyFile;
use outrigger_plugins::matrix::{Feature, Matrix, Use};
use outrigger_plugins::{BreakerState, PluginStatus, Stage};
use outrigger_store::Store;

use crate::args::{Global, PluginCommand};
use crate::exit;
use crate::progress::Line;
use crate::remote::Remote;
use crate::report::Failure;
use crate::view::out;

/// Runs the command.
pub(crate) async fn plugin(global: &Global, command: PluginCommand) -> Result<u8, Failure> {
    match command {
        PluginCommand::List { json } => {
            let boot = listing(global)?;
            let policies = outrigger_agent::policies(&boot)?;
            let agent = Agent::boot(boot).await?;
            let plugins = agent.plugins();
            agent.shutdown().await;
            let bad = plugins
                .iter()
                .any(|plugin| matches!(plugin.stage, Stage::Failed | Stage::Off));
            if json {
                let text = serde_json::to_string_pretty(&plugins).unwrap_or_default();
                out(&format!("{text}\n"));
            } else {
                out(&table(&plugins));
                for line in policies.iter().flat_map(PolicyFile::forbidden) {
                    out(&format!("{:<12} {line}\n", "policy"));
                }
            }
            Ok(if bad && global.strict_plugins {
                exit::PLUGINS
            } else {
                0
            })
        }
        PluginCommand::Matrix {
            csv,
            json,
            declared,
        } => {
            let agent = Agent::boot(listing(global)?).await?;
            let matrix = matrix(&agent, declared);
            agent.shutdown().await;
            let matrix = matrix?;
            out(&if json {
                format!(
                    "{}\n",
                    serde_json::to_string_pretty(&matrix).unwrap_or_default()
                )
            } else if csv {
                matrix.csv(!declared)
            } else {
                matrix.table()
            });
            Ok(0)
        }
        PluginCommand::Perf { session, json } => {
            let (store, place) = recorded(global)?;
            let session = session
                .map(|id| crate::session::find(&store, &place, Some(id)))
                .transpose()?;
            crate::plugin_perf::perf(&store, session.as_ref().map(|s| &s.id), json)
        }
        PluginCommand::Trace { id, json } => {
            let (store, place) = recorded(global)?;
            let session = crate::session::find(&store, &place, id)?;
            crate::plugin_perf::trace(&store, &session.id, json)
        }
        PluginCommand::Points { json, types } => {
            crate::plugin_points::points(global, json, types).await
        }
        PluginCommand::AllowHooks { list, revoke } => {
            crate::allow_hooks::allow_hooks(global, list, revoke)
        }
        PluginCommand::Show { name, json } => crate::plugin_review::show(global, &name, json).await,
        PluginCommand::Snapshot(args) => crate::plugin_snapshot::run(global, &args),
        PluginCommand::Enable { id } => crate::plugin_switch::run(global, &id, true),
        PluginCommand::Disable { id } => crate::plugin_switch::run(global, &id, false),
        PluginCommand::Grant(args) => crate::plugin_grant::run(global, &args),
        PluginCommand::Review(args) => crate::plugin_review::run(global, args).await,
        PluginCommand::Bisect(args) => crate::bisect::bisect(global, args).await,
        PluginCommand::Verify { name, digest, json } => {
            crate::plugin_verify::run(global, name.as_deref(), digest, json).await
        }
        PluginCommand::Suspend(args) => {
            crate::plugin_switch::on_server(global, args, "suspend").await
        }
        PluginCommand::Resume(args) => {
            crate::plugin_switch::on_server(global, args, "resume").await
        }
        PluginCommand::Reload(args) => {
            crate::plugin_switch::on_server(global, args, "reload").await
        }
        PluginCommand::Top { url, once, server } => {
            let remote = Remote::new(&url, &server, global.dir.as_deref())?;
            crate::plugin_perf::top(&remote, once).await
        }
        PluginCommand::Setup => {
            let boot = crate::run::boot(global, &Line::new())?;
            match outrigger_agent::setup_plugins(&boot).await {
                Ok(lines) => {
                    for line in lines {
                        out(&format!("{line}\n"));
                    }
                    Ok(0)
                }
                Err(failure) => Err(Failure::new(
                    failure.code(),
                    failure.to_string(),
                    failure.hint(),
                )),
            }
        }
    }
}

/// For commands that say what is wrong with plugins: they start whatever does not load.
pub(crate) fn listing(global: &Global) -> Result<outrigger_agent::Boot, Failure> {
    let mut boot = crate::run::boot(global, &Line::new())?;
    boot.strict = Some(false);
    Ok(boot)
}

/// What is recorded, without starting a plugin.
fn recorded(global: &Global) -> Result<(Store, Place), Failure> {
    let boot = crate::run::boot(global, &Line::new())?;
    let place = Place::find(&boot.directory);
    Ok((crate::session::open(&boot)?, place))
}

/// What the plugins declare and name, and, unless only that is `declared`, what the log says they did.
fn matrix(agent: &Agent, declared: bool) -> Result<Matrix, Failure> {
    let feature = |kind: &str| match kind {
        "hook" => Some(Feature::Hook),
        "tool" => Some(Feature::Tool),
        "client" => Some(Feature::Client),
        _ => None,
    };
    let uses = if declared {
        Vec::new()
    } else {
        agent.store().plugin_use().map_err(AgentError::from)?
    };
    let uses: Vec<Use> = uses
        .into_iter()
        .filter_map(|found| {
            Some(Use {
                feature: feature(&found.kind)?,
                plugin: found.plugin,
                name: found.name,
                count: found.count,
            })
        })
        .collect();
    Ok(Matrix::of(&agent.plugins(), &uses))
}

/// One block per plugin: state, stage and cause.
pub(crate) fn table(plugins: &[PluginStatus]) -> String {
    if plugins.is_empty() {
        return "no plugins (see `plugin` in opencode.json, or .opencode/plugin/)\n".to_owned();
    }
    let mut text = String::new();
    for plugin in plugins {
        let version = plugin
            .version
            .as_deref()
            .map(|v| format!(" {v}"))
            .unwrap_or_default();
        text.push_str(&format!(
            "{:<12} {}{version}",
            plugin.stage.to_string(),
            plugin.id
        ));
        if plugin.load_ms > 0.0 {
            text.push_str(&format!("  {:.0} ms", plugin.load_ms));
        }
        text.push('\n');
        text.push_str(&format!(
            "             from   {} in {}\n",
            plugin.spec,
            plugin.declared_in.display()
        ));
        if let Some(host) = &plugin.host {
            text.push_str(&format!("             host   {host}\n"));
        }
        // A file that is named is its own entry.
        let named = plugin
            .spec
            .strip_prefix("file://")
            .map(std::path::Path::new);
        if let Some(entry) = plugin.entry.as_deref().filter(|e| named != Some(e)) {
            text.push_str(&format!("             entry  {}\n", entry.display()));
        }
        for (name, values) in [("hooks", &plugin.hooks), ("tools", &plugin.tools)] {
            if !values.is_empty() {
                text.push_str(&format!("             {name:<6} {}\n", values.join(", ")));
            }
        }
        for breaker in &plugin.breakers {
            let hook = &breaker.hook;
            let line = match (breaker.state, breaker.opens_in_ms) {
                (BreakerState::Open, Some(ms)) => {
                    format!("{hook} is skipped for another {} s", ms.div_ceil(1000))
                }
                (BreakerState::Closed, _) => {
                    let n = u64::try_from(breaker.timeouts).unwrap_or(u64::MAX);
                    format!("{hook} timed out {} lately", crate::plugin_perf::times(n))
                }
                (state, _) => format!("{hook} is {state}"),
            };
            text.push_str(&format!("             breaker {line}\n"));
        }
        if plugin.events_missed > 0 {
            let missed = plugin.events_missed;
            text.push_str(&format!(
                "             events {missed} never reached its process\n"
            ));
        }
        if let Some(cause) = &plugin.quarantine {
            text.push_str(&format!("             apart  {cause}\n"));
        }
        for (name, lines) in [("warn", &plugin.warnings), ("note", &plugin.notes)] {
            for line in lines {
                text.push_str(&format!("             {name:<6} {line}\n"));
            }
        }
        if let Some(cause) = &plugin.cause {
            text.push_str(&format!(
                "             cause  {} (while {}) [{}]\n",
                cause.message, cause.at, cause.code
            ));
            if let Some(hint) = &cause.hint {
                text.push_str(&format!("             hint   {hint}\n"));
            }
        }
    }
    text
}
