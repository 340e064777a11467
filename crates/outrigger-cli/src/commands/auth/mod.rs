//! `outrigger auth`: credentials of providers.

mod login;

use std::path::Path;

use outrigger_agent::Boot;
use outrigger_models::{Models, Origin, Stored};
use serde_json::json;

use crate::args::{AuthCommand, Global};
use crate::failure::Failure;
use crate::terminal::progress::Line;
use crate::terminal::prompt;
use crate::terminal::{self, Paint, err, out};

/// Runs the command.
pub(crate) async fn auth(global: &Global, command: AuthCommand) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    match command {
        AuthCommand::List { json } => list(&boot, json),
        AuthCommand::Login { provider, method } => login::login(boot, provider, method).await,
        AuthCommand::Logout { provider } => logout(&boot, provider),
    }
}

/// A provider in lists.
#[derive(Debug)]
struct Named {
    id: String,
    name: String,
    env: Vec<String>,
}

fn named(models: &Models) -> Vec<Named> {
    let known = models.known();
    let one = |p: &std::sync::Arc<outrigger_protocol::model::ProviderInfo>| Named {
        id: p.id.clone(),
        name: p.name.clone(),
        env: p.env.clone(),
    };
    known.iter().map(one).collect()
}

fn name_of<'a>(known: &'a [Named], id: &'a str) -> &'a str {
    known
        .iter()
        .find(|provider| provider.id == id)
        .map_or(id, |provider| provider.name.as_str())
}

/// Abbreviates the home folder to `~`.
fn short(path: &Path, home: &Path) -> String {
    match path.strip_prefix(home) {
        Ok(rest) => format!("~/{}", rest.display()),
        Err(_) => path.display().to_string(),
    }
}

fn place(origin: Origin, boot: &Boot, own: &Path) -> String {
    let home = &boot.folders.home;
    match origin {
        Origin::Own => short(own, home),
        Origin::OpenCode => {
            let data = boot.folders.data.parent().unwrap_or(&boot.folders.data);
            short(&data.join("opencode/auth.json"), home)
        }
        Origin::Environment => "OPENCODE_AUTH_CONTENT".to_owned(),
    }
}

fn list(boot: &Boot, as_json: bool) -> Result<u8, Failure> {
    let models = boot.models()?;
    let credentials = models.credentials();
    let stored: Vec<Stored> = credentials.all().into_values().collect();
    let known = named(&models);
    let set = |name: &&String| boot.env.get(*name).is_some_and(|value| !value.is_empty());
    let variables: Vec<(&Named, &String)> = known
        .iter()
        .flat_map(|provider| provider.env.iter().filter(set).map(move |v| (provider, v)))
        .collect();
    let place = |stored: &Stored| place(stored.origin, boot, credentials.path());
    if as_json {
        let stored: Vec<_> = stored
            .iter()
            .map(|s| json!({ "provider": s.provider, "name": name_of(&known, &s.provider), "type": s.credential.kind(), "from": place(s) }))
            .collect();
        let variables: Vec<_> = variables
            .iter()
            .map(|(p, v)| json!({ "provider": p.id, "name": p.name, "variable": v }))
            .collect();
        let whole = json!({ "credentials": stored, "environment": variables });
        out(&format!(
            "{}\n",
            serde_json::to_string_pretty(&whole).unwrap_or_default()
        ));
        return Ok(0);
    }
    let paint = Paint::for_stdout();
    let row = |name: &str, kind: &str, from: &str| {
        let (name, from) = (terminal::name(name), terminal::name(from));
        let (kind, from) = (paint.dim(kind), paint.dim(&from));
        format!("{}  {kind}  {from}\n", paint.bold(&format!("{name:<24}")))
    };
    let mut text = String::new();
    for one in &stored {
        let name = name_of(&known, &one.provider);
        text.push_str(&row(name, one.credential.kind(), &place(one)));
    }
    for (provider, variable) in &variables {
        text.push_str(&row(&provider.name, "env", variable));
    }
    if text.is_empty() {
        text.push_str("no credentials (`outrigger auth login` stores one)\n");
    }
    out(&text);
    Ok(0)
}

fn logout(boot: &Boot, wanted: Option<String>) -> Result<u8, Failure> {
    let models = boot.models()?;
    let stored = models.credentials().all();
    let known = named(&models);
    if stored.is_empty() {
        return Err(Failure::new("auth.none", "no credentials are stored", None));
    }
    let ids: Vec<&String> = stored.keys().collect();
    let found = match &wanted {
        None => {
            let choices: Vec<String> = ids
                .iter()
                .map(|id| name_of(&known, id).to_owned())
                .collect();
            Some(prompt::choose("Log out of which?", &choices)?)
        }
        Some(wanted) => ids
            .iter()
            .position(|id| *id == wanted || name_of(&known, id).eq_ignore_ascii_case(wanted)),
    };
    let Some(id) = found.and_then(|at| ids.get(at)) else {
        return Err(Failure::new(
            "auth.none",
            format!(
                "there is no credential for `{}`",
                wanted.unwrap_or_default()
            ),
            Some("`outrigger auth list` shows what there is".into()),
        ));
    };
    models.credentials().remove(id)?;
    err(&format!("logged out of {}\n", name_of(&known, id)));
    if let Some(Stored {
        origin: Origin::OpenCode,
        ..
    }) = stored.get(*id)
    {
        err("OpenCode's own file still has the credential; Outrigger does not use it any more\n");
    }
    Ok(0)
}
