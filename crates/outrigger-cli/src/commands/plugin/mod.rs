//! `outrigger plugin`.

mod allow_hooks;
mod bisect;
mod examples;
mod grant;
mod install;
pub(crate) mod listing;
pub(crate) mod perf;
mod points;
mod review;
mod snapshot;
mod switch;
mod types;
mod update;
mod verify;

use outrigger_agent::{Agent, AgentError};
use outrigger_config::PolicyFile;
use outrigger_plugins::Stage;
use outrigger_plugins::matrix::{Feature, Matrix, Use};
use outrigger_protocol::diagnose::Diagnose;

use self::listing::{listing, recorded, table};
use crate::args::{Global, PluginCommand};
use crate::commands::session::stored::find;
use crate::exit;
use crate::failure::Failure;
use crate::terminal::progress::Line;
use crate::terminal::{one_line, out};

/// Runs the command.
pub(crate) async fn plugin(global: &Global, command: PluginCommand) -> Result<u8, Failure> {
    match command {
        PluginCommand::List { json } => list(global, json).await,
        PluginCommand::Matrix {
            csv,
            json,
            declared,
        } => {
            // clap refuses both.
            let format = match (json, csv) {
                (true, _) => MatrixFormat::Json,
                (false, true) => MatrixFormat::Csv,
                (false, false) => MatrixFormat::Table,
            };
            matrix(global, format, declared).await
        }
        PluginCommand::Perf { session, json } => {
            let (store, place) = recorded(global)?;
            let session = session
                .map(|id| find(&store, &place, Some(id)))
                .transpose()?;
            perf::perf(&store, session.as_ref().map(|s| &s.id), json)
        }
        PluginCommand::Trace { id, json } => {
            let (store, place) = recorded(global)?;
            let session = find(&store, &place, id)?;
            perf::trace(&store, &session.id, json)
        }
        PluginCommand::Points { json, types } => points::points(global, json, types).await,
        PluginCommand::Test { plugin } => examples::test(global, plugin.as_deref()).await,
        PluginCommand::AllowHooks { list, revoke } => {
            allow_hooks::allow_hooks(global, list, revoke)
        }
        PluginCommand::Show { name, json } => review::show(global, &name, json).await,
        PluginCommand::Snapshot(args) => snapshot::run(global, &args),
        PluginCommand::Install {
            spec,
            global: of_user,
        } => install::install(global, &spec, of_user).await,
        PluginCommand::Update { name } => update::update(global, name.as_deref()).await,
        PluginCommand::Remove { spec } => install::remove(global, &spec),
        PluginCommand::Enable { id } => switch::run(global, &id, true),
        PluginCommand::Disable { id } => switch::run(global, &id, false),
        PluginCommand::Grant(args) => grant::run(global, &args),
        PluginCommand::Review(args) => review::run(global, args).await,
        PluginCommand::Bisect(args) => bisect::bisect(global, args).await,
        PluginCommand::Verify { name, digest, json } => {
            verify::run(global, name.as_deref(), digest, json).await
        }
        PluginCommand::Suspend(args) => switch::on_server(global, args, "suspend").await,
        PluginCommand::Resume(args) => switch::on_server(global, args, "resume").await,
        PluginCommand::Reload(args) => switch::on_server(global, args, "reload").await,
        PluginCommand::Top { url, once, server } => {
            let remote = crate::boot::remote(&url, &server, global)?;
            perf::top(&remote, once).await
        }
        PluginCommand::Setup => setup(global).await,
    }
}

async fn list(global: &Global, json: bool) -> Result<u8, Failure> {
    let boot = listing(global)?;
    let policies = outrigger_agent::policies(&boot)?;
    let ignored = outrigger_agent::why_ignored(&boot)?;
    let agent = Agent::boot(boot).await?;
    let plugins = agent.plugins();
    agent.shutdown().await;
    let bad = plugins
        .iter()
        .any(|plugin| matches!(plugin.stage, Stage::Failed | Stage::Off));
    if json {
        let text = serde_json::to_string_pretty(&plugins).unwrap_or_default();
        out(&format!("{text}\n"));
    } else if plugins.is_empty() {
        out(&listing::none(ignored.as_deref()));
    } else {
        out(&table(&plugins));
        for line in policies.iter().flat_map(PolicyFile::forbidden) {
            out(&one_line(format_args!("{:<12} {line}", "policy")));
        }
    }
    Ok(if bad && global.strict_plugins {
        exit::PLUGINS
    } else {
        0
    })
}

/// How `plugin matrix` prints.
#[derive(Clone, Copy)]
enum MatrixFormat {
    Table,
    Csv,
    Json,
}

/// Prints the matrix; `declared`: what plugins declare, without what they did.
async fn matrix(global: &Global, format: MatrixFormat, declared: bool) -> Result<u8, Failure> {
    let agent = Agent::boot(listing(global)?).await?;
    let matrix = uses(&agent, declared);
    agent.shutdown().await;
    let matrix = matrix?;
    out(&match format {
        MatrixFormat::Json => {
            let text = serde_json::to_string_pretty(&matrix).unwrap_or_default();
            format!("{text}\n")
        }
        MatrixFormat::Csv => matrix.csv(!declared),
        MatrixFormat::Table => matrix.table(),
    });
    Ok(0)
}

async fn setup(global: &Global) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
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

/// Returns what the plugins declare and, unless `declared`, what they did according to the log.
fn uses(agent: &Agent, declared: bool) -> Result<Matrix, Failure> {
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
