//! `outrigger bridge`: executes for a brain elsewhere (C17).

use std::path::PathBuf;

use clap::Args;
use outrigger_agent::{Agent, Answering, Folders};
use outrigger_bridge::{Bridge, CommandRule, Commands, Gate, Options};

use crate::args::Global;
use crate::interrupt::Signals;
use crate::progress::Line;
use crate::report::Failure;
use crate::view::{err, out};

/// Variable with the token; without it one is made and kept.
const TOKEN: &str = "OUTRIGGER_BRIDGE_TOKEN";
/// Shorter ones can be guessed.
const SHORTEST: usize = 16;

/// `outrigger bridge`.
#[derive(Args, Debug)]
pub(crate) struct BridgeArgs {
    /// Port on 127.0.0.1; any that is free without it
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) port: u16,
    /// Origin of pages that may connect, as https://app.example; can be given more than once
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) origin: Vec<String>,
    /// Let programs connect that send no Origin (our own agent is one; a browser always sends it)
    #[arg(long)]
    pub(crate) no_origin: bool,
    /// Command line that is executed, as "git log **"; can be given more than once, without any none is
    #[arg(long, value_name = "RULE", conflicts_with = "shell")]
    pub(crate) command: Vec<String>,
    /// Execute any command line, by a shell, in the box
    #[arg(long)]
    pub(crate) shell: bool,
    /// Folder that listed commands read as well; can be given more than once
    #[arg(long, value_name = "DIR", conflicts_with = "shell")]
    pub(crate) read: Vec<PathBuf>,
    /// Most calls at once
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) concurrent: u16,
    /// Longest call, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) deadline: u64,
}

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
    let rules = args.command.iter().map(|rule| CommandRule::read(rule));
    let rules = rules
        .collect::<Result<Vec<_>, _>>()
        .map_err(|why| Failure::usage(format!("--command: {why}"), None))?;
    let env = crate::run::environment();
    let reads = match args.shell {
        true => None,
        false => Some(reads(&args.read, &rules, &env)?),
    };
    let (token, kept) = token(&env)?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", args.port))
        .await
        .map_err(|error| {
            Failure::new(
                "bridge.port",
                format!("cannot listen on port {}: {error}", args.port),
                Some("choose another with --port, or leave it out for any that is free".into()),
            )
        })?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::new("bridge.port", error.to_string(), None))?;
    let mut boot = crate::run::boot(global, &Line::new())?;
    // What no rule of this machine allows is refused: nobody is here to be asked.
    boot.answering = Answering::Refuse;
    let agent = Agent::boot(boot).await?;
    let hands = agent.hands(reads)?;
    let mut options = Options::new(agent.place().directory.clone());
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
        hands,
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

/// What listed commands read besides what every command does: what the user names, and where the programs themselves lie.
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
        // A program that lies in the home folder itself does not open that.
        let folder = program.parent().filter(|folder| !home.starts_with(folder));
        reads.push(folder.unwrap_or(&program).to_owned());
    }
    Ok(reads)
}

/// The token of the environment, else the kept one with its file.
fn token(
    env: &std::collections::BTreeMap<String, String>,
) -> Result<(String, Option<PathBuf>), Failure> {
    if let Some(token) = env.get(TOKEN).filter(|token| !token.is_empty()) {
        if token.len() < SHORTEST {
            return Err(Failure::usage(
                format!("{TOKEN} has less than {SHORTEST} characters"),
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
