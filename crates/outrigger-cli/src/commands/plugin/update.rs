//! `outrigger plugin update`: installs newer versions of the npm plugins that are listed without an exact version.

use outrigger_agent::{Agent, ProjectLocation};
use outrigger_config::PluginSpec;
use outrigger_plugins::{LockFile, Locked, Source};

use super::listing::{listing, table};
use crate::args::Global;
use crate::exit;
use crate::failure::Failure;
use crate::terminal::progress::Line;
use crate::terminal::{name as shown, out};

/// Queries npm for the plugins of this project, loads them, and shows what has changed. If npm does not answer,
/// the installed version stays.
pub(super) async fn update(global: &Global, wanted: Option<&str>) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let cache = outrigger_plugins::cache_root(&boot.folders.cache);
    let listed = boot.load(&ProjectLocation::find(&boot.directory))?.plugins;
    let failed = |error: outrigger_plugins::PackageError| Failure::of(&error);
    let requests = npm_requests(&listed, wanted);
    if let (Some(wanted), true) = (wanted, requests.is_empty()) {
        return Err(Failure::new(
            "plugin.unknown",
            format!("no opencode.json here lists an npm plugin `{wanted}`"),
            Some("`outrigger plugin snapshot` shows where each comes from".to_owned()),
        ));
    }
    let mut before: Vec<Locked> = Vec::new();
    for (name, request) in requests {
        before.extend(
            LockFile::forget(&cache, &name, &request)
                .await
                .map_err(failed)?,
        );
    }
    if before.is_empty() {
        out("nothing to update: no npm plugin is installed here without an exact version\n");
        return Ok(0);
    }
    let agent = Agent::boot(listing(global)?).await?;
    let plugins = agent.plugins();
    agent.shutdown().await;
    let mut is_whole = true;
    for old in before {
        let now = LockFile::read(&cache).map_err(failed)?;
        let line = match now.find(&old.name, &old.requested) {
            Some(new) if new.version != old.version => {
                format!("{} -> {}", old.version, new.version)
            }
            Some(_) => format!("{} is the newest", old.version),
            None => {
                is_whole = false;
                let line = format!("{} stays: npm did not answer", old.version);
                LockFile::record(&cache, old.clone())
                    .await
                    .map_err(failed)?;
                line
            }
        };
        out(&format!("{} {}\n", shown(&old.name), shown(&line)));
    }
    if is_whole {
        out(&table(&plugins));
    }
    Ok(if is_whole { 0 } else { exit::FAILED })
}

/// Returns package and version of the npm plugins of a list, or of the requested one.
fn npm_requests(listed: &[PluginSpec], wanted: Option<&str>) -> Vec<(String, String)> {
    listed
        .iter()
        .filter_map(|it| match Source::parse(&it.spec, &it.declared_in) {
            Ok(Source::Npm { name, request }) => Some((name, request)),
            _ => None,
        })
        .filter(|(name, _)| wanted.is_none_or(|wanted| wanted == name))
        .collect()
}
