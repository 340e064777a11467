//! `outrigger run`: one prompt, from the command line to the answer.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::sync::Arc;

use outrigger_agent::{Agent, Answering, Attachment, Boot, NewSession};
use outrigger_plugins::Stage;
use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::{ModelRef, PartKind, TextPart};
use outrigger_protocol::permission::{Action, Rule};
use outrigger_protocol::session::{PartInput, PromptInput, Session};
use outrigger_protocol::turn::TurnOutcome;
use tokio::sync::broadcast;

use crate::args::{Global, RunArgs};
use crate::exit;
use crate::progress::Line;
use crate::question;
use crate::report::Failure;
use crate::view::{Paint, View, err};

/// The folder to work in.
pub(crate) fn directory(global: &Global) -> Result<PathBuf, Failure> {
    let dir = match &global.dir {
        Some(dir) => dir.clone(),
        None => std::env::current_dir().map_err(|e| Failure::usage(format!("cannot read the current folder: {e}"), None))?,
    };
    dir.canonicalize().map_err(|e| Failure::usage(format!("cannot work in {}: {e}", dir.display()), None))
}

/// The environment as a map; what is not text is left out.
pub(crate) fn environment() -> BTreeMap<String, String> {
    std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))).collect()
}

/// What every command that needs an agent starts with.
pub(crate) fn boot(global: &Global, line: &Line) -> Result<Boot, Failure> {
    let mut boot = Boot::new(directory(global)?, environment());
    boot.pure = global.pure;
    let line = line.clone();
    boot.progress = Arc::new(move |progress| line.plugin(progress));
    Ok(boot)
}

/// Runs the command.
pub(crate) async fn run(global: &Global, args: RunArgs) -> Result<u8, Failure> {
    let message = message(&args)?;
    if args.fork && !args.resume && args.session.is_none() {
        return Err(Failure::usage("--fork needs a session to copy", Some("add -c or -s ID".into())));
    }
    if message.trim().is_empty() && args.command.is_none() && !args.resume && args.session.is_none() {
        return Err(Failure::usage("there is nothing to say", Some("outrigger run \"what to do\"".into())));
    }
    let model = match args.model.as_deref() {
        Some(text) => Some(ModelRef::parse(text).ok_or_else(|| {
            Failure::usage(format!("`{text}` does not name a model"), Some("write it as provider/model".into()))
        })?),
        None => None,
    };
    let line = Line::new();
    let _ticking = line.run();
    let mut boot = boot(global, &line)?;
    boot.answering = match (args.auto, question::person_is_there()) {
        (true, _) => Answering::Allow,
        (false, true) => Answering::Ask,
        (false, false) => Answering::Refuse,
    };
    let agent = Agent::boot(boot).await?;
    outrigger_server::serve_plugins(&agent);
    say_warnings(&agent);
    let result = with_agent(&agent, &args, message, model, &line).await;
    agent.shutdown().await;
    result
}

/// What went wrong in plugins that run all the same.
fn say_warnings(agent: &Agent) {
    let paint = Paint::for_stderr();
    for plugin in agent.plugins().into_iter().filter(|plugin| plugin.stage == Stage::Active) {
        for warning in plugin.warnings {
            err(&format!("{} plugin {}: {warning}\n", paint.bad("!"), plugin.id));
        }
    }
}

/// One prompt on a running agent, from the session to the end of the turn.
pub(crate) async fn with_agent(agent: &Agent, args: &RunArgs, message: String, model: Option<ModelRef>, line: &Line) -> Result<u8, Failure> {
    let mut parts = Vec::new();
    for path in &args.files {
        parts.extend(Attachment { path: path.clone() }.parts()?);
    }
    // Before a session is made for it: a model that is not there must leave nothing behind.
    if let Some(model) = &model {
        agent.models().resolve(model).map_err(outrigger_agent::AgentError::from)?;
    }
    let (session, known) = session(agent, args, &message).await?;
    if known && let Some(turn) = agent.interrupted(&session.id)? {
        err(&Paint::for_stderr().dim("~ going on with the turn that was interrupted\n"));
        let outcome = follow(agent, &session.id, args, line, agent.resume(&session.id, &turn)).await?;
        if message.trim().is_empty() || outcome != 0 {
            return Ok(outcome);
        }
    } else if message.trim().is_empty() && args.command.is_none() {
        return Err(Failure::usage("there is nothing to say, and no interrupted turn to go on with", None));
    }
    let mut prompt = PromptInput {
        agent: chosen_agent(agent, args.agent.as_deref()),
        model,
        variant: args.variant.clone(),
        parts,
        ..PromptInput::default()
    };
    if let Some(command) = &args.command {
        return follow(agent, &session.id, args, line, agent.command(&session.id, command, &message, prompt)).await;
    }
    prompt.parts.push(PartInput { id: None, kind: PartKind::Text(TextPart { text: message, ..TextPart::default() }) });
    follow(agent, &session.id, args, line, agent.prompt(&session.id, prompt)).await
}

/// The message: the words of the command line as the reference joins them (a word with a blank keeps its quotation marks),
/// then what comes from standard input.
fn message(args: &RunArgs) -> Result<String, Failure> {
    let words: Vec<String> = args
        .message
        .iter()
        .map(|word| if word.contains(' ') { format!("\"{}\"", word.replace('"', "\\\"")) } else { word.clone() })
        .collect();
    let mut message = words.join(" ");
    if !std::io::stdin().is_terminal() {
        let mut piped = String::new();
        std::io::stdin()
            .take(16 * 1024 * 1024)
            .read_to_string(&mut piped)
            .map_err(|e| Failure::usage(format!("cannot read standard input: {e}"), None))?;
        if !piped.trim().is_empty() {
            message = if message.is_empty() { piped } else { format!("{message}\n{piped}") };
        }
    }
    Ok(message)
}

/// An agent that cannot answer people is passed over with a word, as in the reference.
fn chosen_agent(agent: &Agent, name: Option<&str>) -> Option<String> {
    let name = name?;
    match agent.agents().get(name) {
        Some(info) if info.mode != "subagent" => return Some(name.to_owned()),
        Some(_) => err(&format!("! agent \"{name}\" is a subagent, not a primary agent. Falling back to default agent\n")),
        None => err(&format!("! agent \"{name}\" not found. Falling back to default agent\n")),
    }
    None
}

/// The session to work in, and whether it was there before.
async fn session(agent: &Agent, args: &RunArgs, message: &str) -> Result<(Session, bool), Failure> {
    let found = match &args.session {
        Some(id) => Some(agent.session(&SessionId(id.clone()))?),
        None if args.resume => last_session(agent)?,
        None => None,
    };
    if let Some(session) = found {
        return Ok(if args.fork { (agent.fork_session(&session.id).await?, false) } else { (session, true) });
    }
    // What needs a person in front of it is out of reach here.
    let deny = |permission: &str| Rule { permission: permission.into(), pattern: "*".into(), action: Action::Deny };
    let title = match args.title.as_deref() {
        Some("") => Some(message.chars().take(50).collect::<String>() + if message.chars().count() > 50 { "..." } else { "" }),
        other => other.map(str::to_owned),
    };
    let permission = Some(["question", "plan_enter", "plan_exit"].map(deny).to_vec());
    Ok((agent.create_session(NewSession { parent: None, title, permission }).await?, false))
}

/// The session of this folder that was used last.
pub(crate) fn last_session(agent: &Agent) -> Result<Option<Session>, Failure> {
    let directory = agent.place().directory.to_string_lossy().into_owned();
    let filter = outrigger_store::SessionFilter { directory: Some(directory), roots_only: true, limit: Some(1), project: None };
    Ok(agent.store().sessions(&filter)?.into_iter().next())
}

/// Prints what happens until the turn is over. Ctrl-C once cancels it and keeps everything, twice leaves.
async fn follow(
    agent: &Agent,
    id: &SessionId,
    args: &RunArgs,
    line: &Line,
    turn: impl Future<Output = Result<TurnOutcome, outrigger_agent::AgentError>>,
) -> Result<u8, Failure> {
    let mut events = agent.listen();
    let directory = agent.place().directory.to_string_lossy().into_owned();
    let mut view = View::new(id.clone(), args, directory);
    tokio::pin!(turn);
    let mut interrupts = 0;
    let outcome = loop {
        tokio::select! {
            biased;
            event = events.recv() => show(agent, &mut view, line, event),
            outcome = &mut turn => break outcome,
            _ = tokio::signal::ctrl_c() => {
                interrupts += 1;
                if interrupts > 1 || !agent.cancel(id) {
                    return Ok(exit::CANCELLED);
                }
                line.say("\n~ cancelling; Ctrl-C again leaves at once\n");
            }
        }
    };
    line.wait_for(None);
    line.clear();
    // Everything that was told before the end is in the channel already.
    while let Ok(event) = events.try_recv() {
        view.on(&event);
    }
    Ok(match outcome? {
        TurnOutcome::Cancelled => exit::CANCELLED,
        TurnOutcome::Failed { .. } => exit::FAILED,
        TurnOutcome::Done { .. } => u8::from(view.failed),
    })
}

fn show(agent: &Agent, view: &mut View, line: &Line, event: Result<Arc<BusEvent>, broadcast::error::RecvError>) {
    match event {
        Ok(event) => {
            line.clear();
            view.on(&event);
            if let Some(what) = view.waits_for(&event.event) {
                line.wait_for(what);
            }
            // Questions of subagents are the user's too.
            if let Event::PermissionAsked(request) = &event.event
                && agent.answering() == Answering::Ask
            {
                question::ask(agent, line, request);
            }
        }
        Err(broadcast::error::RecvError::Lagged(missed)) => tracing::warn!("[view] {missed} events came too fast to be shown"),
        Err(broadcast::error::RecvError::Closed) => {}
    }
}
