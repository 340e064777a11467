//! `outrigger auth login`.

use outrigger_agent::Boot;
use outrigger_protocol::auth::Credential;

use super::{Named, named};
use crate::ask;
use crate::report::Failure;
use crate::view::err;

/// What the list of providers ends with.
const OTHER: &str = "Other";

/// Stores a credential of the provider that the user chooses.
pub(crate) async fn login(
    boot: Boot,
    provider: Option<String>,
    _method: Option<String>,
) -> Result<u8, Failure> {
    let models = boot.models()?;
    let known = named(&models);
    let id = match provider {
        Some(wanted) => find(&known, &wanted)?,
        None => choose(&known)?,
    };
    let key = ask::secret("API key:")?;
    models.credentials().set(&id, &Credential::key(key))?;
    err(&format!("logged in to {}\n", super::name_of(&known, &id)));
    if !known.iter().any(|provider| provider.id == id) {
        err(&format!(
            "no provider is called `{id}` yet: describe it under `provider.{id}` in opencode.json\n"
        ));
    }
    Ok(0)
}

fn find(known: &[Named], wanted: &str) -> Result<String, Failure> {
    let by_id = known.iter().find(|p| p.id == wanted);
    let by_name = || known.iter().find(|p| p.name.eq_ignore_ascii_case(wanted));
    match by_id.or_else(by_name) {
        Some(found) => Ok(found.id.clone()),
        None => Err(Failure::usage(
            format!("there is no provider `{wanted}`"),
            Some("without -p there is a list to choose from; its last entry takes any name".into()),
        )),
    }
}

fn choose(known: &[Named]) -> Result<String, Failure> {
    let mut choices: Vec<String> = known.iter().map(|p| p.name.clone()).collect();
    choices.push(OTHER.to_owned());
    let at = ask::choose("Provider:", &choices)?;
    if let Some(provider) = known.get(at) {
        return Ok(provider.id.clone());
    }
    let id = ask::text("Name of the provider (a-z, 0-9 and hyphens):", |answer| {
        let fits = !answer.is_empty()
            && answer
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        (!fits).then(|| "a-z, 0-9 and hyphens only".to_owned())
    })?;
    Ok(id)
}
