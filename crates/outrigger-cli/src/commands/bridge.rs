//! `outrigger bridge`: executes calls of a remote controller (C17).

use std::path::PathBuf;

use outrigger_agent::{Agent, Answering, Folders};
use outrigger_bridge::{Bridge, CommandRule, Commands, Gate, Options};

use crate::args::{BridgeArgs, Global};
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::progress::Line;
use crate::terminal::{err, out};

/// The variable with the token; without it one is created and kept.
const TOKEN: &str = "OUTRIGGER_BRIDGE_TOKEN";
/// Minimum length; shorter tokens can be guessed.
const MIN_TOKEN_LENGTH: usize = 16;

/// Runs the command.
pub(crate) async fn bridge(
    global: &Global,
    args: BridgeArgs,
    signals: Signals,
) -> Result<u8, Failure> {
    if args.origin.is_empty() && !args.no_origin {
        return Err(Failure::usage(
            "nobody could connect".to_owned(),
            Some("name pages with --origin, or let programs connect with --no-origin".into()),
        ));
    }
    let rules = args
        .command
        .iter()
        .map(|rule| CommandRule::read(rule))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|why| Failure::usage(format!("--command: {why}"), None))?;
    let env = crate::boot::environment();
    let reads = if args.shell {
        None
    } else {
        Some(reads(&args.read, &rules, &env)?)
    };
    let (token, kept) = token(&env)?;
    let listener = listen(args.port).await?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::new("bridge.port", error.to_string(), None))?;
    let mut boot = crate::boot::boot(global, &Line::new())?;
    // What no rule of this machine allows is refused: there is no user to ask.
    boot.answering = Answering::Refuse;
    let agent = Agent::boot(boot).await?;
    let executor = agent.tool_executor(reads)?;
    let mut options = Options::new(agent.location().directory.clone());
    options.commands = Commands::new(rules, args.shell);
    options.concurrent = usize::from(args.concurrent);
    options.deadline = std::time::Duration::from_secs(args.deadline);
    out(&format!("outrigger bridge listening on ws://{address}\n"));
    if let Some(file) = kept {
        err(&format!("the token is in {}\n", file.display()));
    }
    let bridge = Bridge::new(
        options,
        Gate::new(token, args.origin, args.no_origin),
        executor,
    );
    let turn = signals.turn();
    tokio::select! {
        served = bridge.serve(listener) => {
            served.map_err(|error| Failure::new("bridge.port", error.to_string(), None))?;
        }
        _ = signals.cancelled() => {}
    }
    drop(turn);
    agent.shutdown().await;
    Ok(0)
}

async fn listen(port: u16) -> Result<tokio::net::TcpListener, Failure> {
    let listening = tokio::net::TcpListener::bind(("127.0.0.1", port)).await;
    listening.map_err(|error| {
        Failure::new(
            "bridge.port",
            format!("cannot listen on port {port}: {error}"),
            Some("choose another with --port, or leave it out for any that is free".into()),
        )
    })
}

/// Returns what listed commands may read besides the defaults: folders that the user names, and those of the programs
/// themselves.
fn reads(
    named: &[PathBuf],
    rules: &[CommandRule],
    env: &std::collections::BTreeMap<String, String>,
) -> Result<Vec<PathBuf>, Failure> {
    let variable = |name: &str| env.get(name).map_or("", String::as_str);
    let named = named.iter().map(|folder| {
        folder.canonicalize().map_err(|error| {
            Failure::usage(
                format!("--read {}: {error}", folder.display()),
                Some("name a folder that is there".into()),
            )
        })
    });
    let mut reads = named.collect::<Result<Vec<_>, _>>()?;
    let home = PathBuf::from(variable("HOME"));
    for rule in rules {
        let found = outrigger_sandbox::which(rule.program(), variable("PATH"));
        let Some(program) = found.and_then(|it| it.canonicalize().ok()) else {
            continue;
        };
        // A program directly in the home folder does not open the whole home folder.
        let folder = program.parent().filter(|folder| !home.starts_with(folder));
        reads.push(folder.unwrap_or(&program).to_owned());
    }
    Ok(reads)
}

/// Returns the token of the environment, or the kept one with its file.
fn token(
    env: &std::collections::BTreeMap<String, String>,
) -> Result<(String, Option<PathBuf>), Failure> {
    if let Some(token) = env.get(TOKEN).filter(|token| !token.is_empty()) {
        if token.len() < MIN_TOKEN_LENGTH {
            return Err(Failure::usage(
                format!("{TOKEN} has less than {MIN_TOKEN_LENGTH} characters"),
                None,
            ));
        }
        return Ok((token.clone(), None));
    }
    let folder = Folders::from_env(env).data.join("bridge");
    let token = outrigger_server::keep_password(&folder).map_err(|error| {
        Failure::new(
            "bridge.token",
            format!("cannot keep a token in {}: {error}", folder.display()),
            Some(format!("set {TOKEN}")),
        )
    })?;
    Ok((token, Some(outrigger_server::password_file(&folder))))
}
