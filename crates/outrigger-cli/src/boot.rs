//! The start parameters of every command that needs an agent.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use outrigger_agent::Boot;
use outrigger_client::{Login, Remote};

use crate::args::{Global, ServerArgs};
use crate::consent;
use crate::failure::Failure;
use crate::terminal::person_is_there;
use crate::terminal::progress::Line;

/// Returns the working directory.
pub(crate) fn directory(global: &Global) -> Result<PathBuf, Failure> {
    let dir = match &global.dir {
        Some(dir) => dir.clone(),
        None => std::env::current_dir()
            .map_err(|e| Failure::usage(format!("cannot read the current folder: {e}"), None))?,
    };
    dir.canonicalize()
        .map_err(|e| Failure::usage(format!("cannot work in {}: {e}", dir.display()), None))
}

/// Returns the environment as a map; skips values that are not text.
pub(crate) fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
        .collect()
}

/// Returns the environment with the variable for `--trust`.
pub(crate) fn trusting(
    global: &Global,
    mut env: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    if global.trust {
        env.insert(outrigger_agent::TRUST_PROJECT.to_owned(), "1".to_owned());
    }
    env
}

/// Connects to the server at a URL, with the credentials of the options or of the environment.
///
/// # Errors
/// The URL is invalid.
pub(crate) fn remote(url: &str, args: &ServerArgs, global: &Global) -> Result<Remote, Failure> {
    let login = Login {
        password: args.password.clone(),
        username: args.username.clone(),
    };
    let remote = Remote::new(url, &login, &environment(), global.dir.as_deref())?;
    Ok(remote)
}

/// Returns the start parameters of an agent of this folder, with the global options.
pub(crate) fn boot(global: &Global, line: &Line) -> Result<Boot, Failure> {
    let mut boot = Boot::new(directory(global)?, trusting(global, environment()));
    boot.pure = global.pure;
    boot.strict = global.strict_plugins.then_some(true);
    let line = line.clone();
    if person_is_there() {
        let asking = line.clone();
        boot.consent = Some(Arc::new(move |what| {
            Box::pin(consent::may_fetch(asking.clone(), what.to_owned()))
        }));
        let asking = line.clone();
        boot.trust = Some(Arc::new(move |question| {
            Box::pin(consent::may_trust(asking.clone(), question))
        }));
        let asking = line.clone();
        boot.trust_folder = Some(Arc::new(move |asks| {
            Box::pin(consent::may_trust_folder(asking.clone(), asks))
        }));
    }
    boot.progress = Arc::new(move |progress| line.plugin(progress));
    Ok(boot)
}
