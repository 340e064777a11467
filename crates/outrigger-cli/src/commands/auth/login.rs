//! `outrigger auth login`.

use std::collections::BTreeMap;

use outrigger_agent::{Agent, Boot};
use outrigger_protocol::auth::{AuthMethod, AuthPrompt, Credential, LoginMethods};

use super::{Named, named};
use crate::failure::Failure;
use crate::terminal::prompt;
use crate::terminal::{Paint, err};

/// The last entry in the list of providers.
const OTHER: &str = "Other";
/// The login method without the plugin, for a provider with a plugin from the project.
const WITHOUT_PLUGIN: &str = "API key, which no plugin gets";

/// Stores a credential of the provider that the user chooses: by a plugin's method, a built-in one, or a key.
pub(crate) async fn login(
    boot: Boot,
    provider: Option<String>,
    method: Option<String>,
) -> Result<u8, Failure> {
    let agent = Agent::boot(boot).await?;
    outrigger_server::serve_plugins(&agent);
    let done = with(&agent, provider, method).await;
    agent.shutdown().await;
    done.map(|()| 0)
}

async fn with(
    agent: &Agent,
    provider: Option<String>,
    method: Option<String>,
) -> Result<(), Failure> {
    let mut known = named(agent.models());
    let methods = agent.auth_methods();
    for id in methods.keys() {
        if !known.iter().any(|provider| provider.id == *id) {
            known.push(Named {
                id: id.clone(),
                name: id.clone(),
                env: Vec::new(),
            });
        }
    }
    let id = match provider {
        Some(wanted) => find(&known, &wanted)?,
        None => choose(&known)?,
    };
    match methods.get(&id).filter(|found| !found.methods.is_empty()) {
        Some(found) => by_method(agent, &id, found, method).await?,
        None if method.is_some() => {
            return Err(Failure::usage(
                format!("there is no login for `{id}`: none is built in, and no plugin brings one"),
                Some("leave -m out to store a key".into()),
            ));
        }
        None => with_key(agent, &id).await?,
    }
    err(&format!("logged in to {}\n", super::name_of(&known, &id)));
    if !known.iter().any(|provider| provider.id == id) {
        err(&format!(
            "no provider is called `{id}` yet: describe it under `provider.{id}` in opencode.json\n"
        ));
    }
    Ok(())
}

async fn with_key(agent: &Agent, id: &str) -> Result<(), Failure> {
    let key = Credential::key(prompt::secret("API key:")?);
    Ok(agent.set_credential(id, &key, None).await?)
}

/// Returns the chosen method; `None`: a key, not a method of a project's plugin.
fn method<'a>(
    id: &str,
    found: &'a LoginMethods,
    wanted: Option<&str>,
) -> Result<Option<(usize, &'a AuthMethod)>, Failure> {
    let names = || found.methods.iter().map(|method| method.label.as_str());
    let mut labels = found.labels();
    let at = match wanted {
        Some(wanted) => names()
            .position(|name| name.eq_ignore_ascii_case(wanted))
            .ok_or_else(|| {
                let names: Vec<&str> = names().collect();
                Failure::usage(
                    format!("`{id}` has no login method `{wanted}`"),
                    Some(format!("there are: {}", names.join(", "))),
                )
            })?,
        // Choosing the provider does not choose a project's plugin.
        None if found.of_project => {
            labels.push(WITHOUT_PLUGIN.to_owned());
            prompt::choose("Login method:", &labels)?
        }
        None if found.methods.len() == 1 => 0,
        // The lines of a script are the key, as for providers without a built-in login.
        None if found.plugin.is_none() && !prompt::is_terminal() => {
            let key = found.methods.iter().position(|it| it.kind == "api");
            key.unwrap_or_default()
        }
        None => prompt::choose("Login method:", &labels)?,
    };
    Ok(found.methods.get(at).map(|method| (at, method)))
}

async fn by_method(
    agent: &Agent,
    id: &str,
    found: &LoginMethods,
    wanted: Option<String>,
) -> Result<(), Failure> {
    let Some((at, method)) = method(id, found, wanted.as_deref())? else {
        return with_key(agent, id).await;
    };
    if let Some(plugin) = &found.plugin {
        err(&format!("the plugin {plugin} gets this login\n"));
    }
    let answers = questions(agent, id, at, method).await?;
    if method.kind != "oauth" {
        let key = prompt::secret("API key:")?;
        return Ok(agent.login_with_key(id, at, answers, &key).await?);
    }
    // A plugin that declares no questions but is given answers may ask some on its own terminal; it has none here.
    let answers = method.prompts.is_some().then_some(answers);
    let Some(begun) = agent.authorize(id, at, answers).await? else {
        return Ok(());
    };
    if !begun.url.is_empty() {
        err(&format!("go to: {}\n", begun.url));
    }
    if !begun.instructions.is_empty() {
        err(&format!("{}\n", begun.instructions));
    }
    let code = if begun.method == "code" {
        Some(prompt::secret("Authorization code:")?)
    } else {
        err(&Paint::for_stderr().dim("waiting for the login to end ...\n"));
        None
    };
    Ok(agent.finish_login(id, code).await?)
}

/// Asks the questions of a method. Its contributor decides which questions are asked, and which answers are valid.
async fn questions(
    agent: &Agent,
    id: &str,
    method: usize,
    found: &AuthMethod,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut answers = BTreeMap::new();
    for (at, prompt) in found.prompts.iter().flatten().enumerate() {
        if !agent.is_asked(id, method, at, &answers).await? {
            continue;
        }
        let answer = match &prompt.options {
            Some(options) if prompt.kind == "select" => {
                let labels: Vec<String> = options.iter().map(|o| o.label.clone()).collect();
                let chosen = prompt::choose(&prompt.message, &labels)?;
                options.get(chosen).map(|o| o.value.clone())
            }
            _ => Some(typed(agent, id, method, at, prompt).await?),
        };
        answers.insert(prompt.key.clone(), answer.unwrap_or_default());
    }
    Ok(answers)
}

async fn typed(
    agent: &Agent,
    id: &str,
    method: usize,
    at: usize,
    prompt: &AuthPrompt,
) -> Result<String, Failure> {
    let question = match &prompt.placeholder {
        Some(example) => format!("{} ({example})", prompt.message),
        None => prompt.message.clone(),
    };
    for _ in 0..prompt::TRIES {
        let answer = prompt::text(&question, |_| None)?;
        match agent.check_answer(id, method, at, &answer).await? {
            None => return Ok(answer),
            Some(problem) => err(&Paint::for_stderr().bad(&format!("{problem}\n"))),
        }
    }
    Err(Failure::usage("no answer was acceptable", None))
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
    let at = prompt::choose("Provider:", &choices)?;
    if let Some(provider) = known.get(at) {
        return Ok(provider.id.clone());
    }
    prompt::text("Name of the provider (a-z, 0-9 and hyphens):", |answer| {
        let fits = !answer.is_empty()
            && answer
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        (!fits).then(|| "a-z, 0-9 and hyphens only".to_owned())
    })
}
