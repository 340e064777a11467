//! `outrigger run`: one prompt, from the command line to the answer.

mod attached;
mod message;

use outrigger_agent::{Agent, AgentError, Answering, NewSession, TurnRequest};
use outrigger_plugins::Stage;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::{ModelRef, PartKind, TextPart};
use outrigger_protocol::permission::{Action, Rule};
use outrigger_protocol::session::{PartInput, PromptInput, Session};

use crate::args::{Global, RunArgs};
use crate::client::follow::Front;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::progress::Line;
use crate::terminal::{Paint, err};

/// Runs the command.
pub(crate) async fn run(global: &Global, args: RunArgs, signals: Signals) -> Result<u8, Failure> {
    let message = message::message(&args).await?;
    if args.fork && !args.resume && args.session.is_none() {
        return Err(Failure::usage(
            "--fork needs a session to copy",
            Some("add -c or -s ID".into()),
        ));
    }
    if says_nothing(&args, &message) && !args.resume && args.session.is_none() {
        return Err(Failure::usage(
            "there is nothing to say",
            Some("outrigger run \"what to do\"".into()),
        ));
    }
    let model = match args.model.as_deref() {
        Some(text) => Some(ModelRef::parse(text).ok_or_else(|| {
            Failure::usage(
                format!("`{text}` does not name a model"),
                Some("write it as provider/model".into()),
            )
        })?),
        None => None,
    };
    if let Some(url) = &args.attach {
        return attached::run(global, &args, url, message, model, &signals).await;
    }
    let line = Line::new();
    let _ticking = line.run();
    let mut boot = crate::boot::boot(global, &line)?;
    boot.answering = match (args.auto, crate::terminal::person_is_there()) {
        (true, _) => Answering::Allow,
        (false, true) => Answering::Ask,
        (false, false) => Answering::Refuse,
    };
    let agent = Agent::boot(boot).await?;
    outrigger_server::serve_plugins(&agent);
    say_warnings(&agent);
    let result = with_agent(Front::new(&agent, &args, &line, &signals), message, model).await;
    agent.shutdown().await;
    result
}

/// No message, no command, no files.
fn says_nothing(args: &RunArgs, message: &str) -> bool {
    message.trim().is_empty() && args.command.is_none() && args.files.is_empty()
}

/// What went wrong in plugins that run all the same.
fn say_warnings(agent: &Agent) {
    let paint = Paint::for_stderr();
    for plugin in agent
        .plugins()
        .into_iter()
        .filter(|plugin| plugin.stage == Stage::Active)
    {
        for warning in plugin.warnings {
            err(&format!(
                "{} plugin {}: {warning}\n",
                paint.bad("!"),
                plugin.id
            ));
        }
    }
}

/// One prompt on a running agent, from the session to the end of the turn.
pub(crate) async fn with_agent(
    mut front: Front<'_>,
    message: String,
    model: Option<ModelRef>,
) -> Result<u8, Failure> {
    let (agent, args) = (front.agent, front.args);
    let mut parts = Vec::new();
    for path in &args.files {
        // `--dir` is where the work is done, and what paths are relative to.
        parts.extend(agent.attachment(agent.place().directory.join(path))?);
    }
    let chosen = chosen_agent(agent, args.agent.as_deref());
    check(agent, args, chosen.as_deref(), model.as_ref()).await?;
    let (session, known) = session(agent, args, &message).await?;
    let prompt = PromptInput {
        agent: chosen,
        model,
        variant: args.variant.clone(),
        parts,
        ..PromptInput::default()
    };
    let result = in_session(&mut front, &session, known, message, prompt).await;
    // Whatever else kept it from beginning: nobody looks for a session without a word in it.
    if result.is_err() && !known && agent.store().messages(&session.id)?.is_empty() {
        agent.delete_session(&session.id).await?;
    }
    result.map_err(|failure| failure.in_session(&session.id))
}

/// Command, agent and model are there. Asked before a session is made for them, so that a mistyped name leaves nothing
/// behind; the agent checks again, and has the last word.
async fn check(
    agent: &Agent,
    args: &RunArgs,
    chosen: Option<&str>,
    model: Option<&ModelRef>,
) -> Result<(), AgentError> {
    let command = match &args.command {
        Some(name) if agent.is_compact(name) => None,
        Some(name) => Some(agent.find_command(name).await?),
        None => None,
    };
    let name = command
        .as_ref()
        .and_then(|c| c.agent.clone())
        .or(chosen.map(str::to_owned))
        .or_else(|| agent.default_agent());
    let info = name.map(|name| {
        agent
            .agents()
            .get(&name)
            .ok_or_else(|| AgentError::NoAgent {
                known: agent
                    .agents()
                    .values()
                    .filter(|a| !a.hidden)
                    .map(|a| a.name.clone())
                    .collect(),
                name,
            })
    });
    let of_command = command
        .as_ref()
        .and_then(|c| c.model.as_deref())
        .and_then(ModelRef::parse);
    let asked = of_command
        .as_ref()
        .or(model)
        .or(info.transpose()?.and_then(|a| a.model.as_ref()));
    // What a login through a plugin opens is known once the plugin has been asked.
    agent.providers_ready().await;
    match asked {
        Some(model) => agent.models().resolve(model)?,
        // The session's own comes before the configured one.
        None if args.resume || args.session.is_some() => return Ok(()),
        None => agent.models().resolve(&agent.models().default_model()?)?,
    };
    Ok(())
}

async fn in_session(
    front: &mut Front<'_>,
    session: &Session,
    known: bool,
    message: String,
    mut prompt: PromptInput,
) -> Result<u8, Failure> {
    let (agent, args) = (front.agent, front.args);
    let silent = says_nothing(args, &message);
    if known && let Some(turn) = agent.interrupted(&session.id)? {
        err(&Paint::for_stderr().dim("~ going on with the turn that was interrupted\n"));
        let resumed = front
            .follow(
                &session.id,
                agent.run(TurnRequest::resume(&session.id, turn)),
            )
            .await;
        if silent || !matches!(resumed, Ok(0)) {
            if !silent {
                let mark = Paint::for_stderr().bad("!");
                err(&format!(
                    "{mark} the turn that was interrupted did not come to its end; not sent: {}\n",
                    unsent(args, &message)
                ));
            }
            return resumed;
        }
    } else if silent {
        return said_already(agent, session);
    }
    if let Some(command) = &args.command {
        return front
            .follow(
                &session.id,
                agent.run(TurnRequest::command(&session.id, command, &message, prompt)),
            )
            .await;
    }
    if !message.trim().is_empty() {
        prompt.parts.push(PartInput {
            id: None,
            kind: PartKind::Text(TextPart {
                text: message,
                ..TextPart::default()
            }),
        });
    }
    agent.check_model(&session.id, &prompt)?;
    front
        .follow(
            &session.id,
            agent.run(TurnRequest::prompt(&session.id, prompt)),
        )
        .await
}

/// What the user wanted to send, in short.
fn unsent(args: &RunArgs, message: &str) -> String {
    let mut what: Vec<String> = args
        .command
        .iter()
        .map(|name| format!("--command {name}"))
        .collect();
    if !message.trim().is_empty() {
        what.push(format!("\"{}\"", shortened(message.trim())));
    }
    what.extend(
        args.files
            .iter()
            .map(|path| format!("--file {}", path.display())),
    );
    what.join(", ")
}

/// What needs a person in front of it is out of reach of a single prompt.
pub(crate) fn out_of_reach() -> [Rule; 3] {
    let deny = |permission: &str| Rule {
        permission: permission.into(),
        pattern: "*".into(),
        action: Action::Deny,
    };
    ["question", "plan_enter", "plan_exit"].map(deny)
}

/// The beginning of a text, in the length of a title.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(50).collect::<String>() + if text.chars().count() > 50 { "..." } else { "" }
}

/// An agent that cannot answer people is passed over with a word, as in the reference.
fn chosen_agent(agent: &Agent, name: Option<&str>) -> Option<String> {
    let name = name?;
    match agent.agents().get(name) {
        Some(info) if info.mode != "subagent" => return Some(name.to_owned()),
        Some(_) => err(&format!(
            "! agent \"{name}\" is a subagent, not a primary agent. Falling back to default agent\n"
        )),
        None => err(&format!(
            "! agent \"{name}\" not found. Falling back to default agent\n"
        )),
    }
    None
}

/// `-c` with nothing to say and nothing to go on with: a kill behind the last step leaves a finished turn, so whoever goes
/// on after a kill gets the answer again instead of an error.
fn said_already(agent: &Agent, session: &Session) -> Result<u8, Failure> {
    let text = agent.last_text(&session.id);
    if text.trim().is_empty() {
        return Err(Failure::usage(
            "there is nothing to say, and no interrupted turn to go on with",
            None,
        ));
    }
    err(&Paint::for_stderr().dim("~ no turn was interrupted; the last answer was:\n"));
    crate::terminal::out(&format!("{}\n", text.trim()));
    Ok(0)
}

/// The session to work in, and whether it was there before.
async fn session(agent: &Agent, args: &RunArgs, message: &str) -> Result<(Session, bool), Failure> {
    let found = match &args.session {
        Some(id) => Some(agent.session(&SessionId(id.clone()))?),
        None if args.resume => last_session(agent)?,
        None => None,
    };
    if let Some(session) = found {
        return Ok(if args.fork {
            (agent.fork_session(&session.id).await?, false)
        } else {
            (session, true)
        });
    }
    let title = match args.title.as_deref() {
        Some("") => Some(shortened(message)),
        other => other.map(str::to_owned),
    };
    let permission = Some(out_of_reach().to_vec());
    Ok((
        agent
            .create_session(NewSession {
                title,
                permission,
                ..NewSession::default()
            })
            .await?,
        false,
    ))
}

/// The session of this folder that was used last.
pub(crate) fn last_session(agent: &Agent) -> Result<Option<Session>, Failure> {
    let directory = agent.place().directory.to_string_lossy().into_owned();
    let filter = outrigger_store::SessionFilter {
        directory: Some(directory),
        roots_only: true,
        limit: Some(1),
        ..outrigger_store::SessionFilter::default()
    };
    Ok(agent.store().sessions(&filter)?.into_iter().next())
}
