//! `outrigger run`: one prompt, from the command line to the answer.

mod message;
mod prompt;

use std::path::Path;

use outrigger_agent::{Agent, AgentError, Answering, Boot};
use outrigger_client::Connection;
use outrigger_plugins::Stage;
use outrigger_protocol::message::ModelRef;
use outrigger_protocol::session::PartInput;

pub(super) use self::prompt::Prompt;
use crate::args::checks::named_model;
use crate::args::{Global, RunArgs};
use crate::client::follow::{Answers, Follower};
use crate::client::view::Show;
use crate::consent;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::progress::Line;
use crate::terminal::{Paint, entry, err, person_is_there};

/// Runs the command.
pub(crate) async fn run(global: &Global, args: RunArgs, signals: Signals) -> Result<u8, Failure> {
    let message = message::message(&args).await?;
    args.continued.wanted()?;
    if says_nothing(&args, &message) && !args.continued.has_session() {
        return Err(Failure::usage(
            "there is nothing to say",
            Some("outrigger run \"what to do\"".into()),
        ));
    }
    let model = named_model(args.model.as_deref())?;
    let run = Run {
        global,
        args: &args,
        message,
        model,
        signals: &signals,
    };
    match &args.attach {
        Some(url) => run.at_server(url).await,
        None => run.here().await,
    }
}

/// The parsed command line.
struct Run<'a> {
    global: &'a Global,
    args: &'a RunArgs,
    message: String,
    model: Option<ModelRef>,
    signals: &'a Signals,
}

impl Run<'_> {
    /// Runs with an agent of this process.
    async fn here(self) -> Result<u8, Failure> {
        let line = Line::new();
        let _ticking = line.run();
        let mut boot = crate::boot::boot(self.global, &line)?;
        boot.answering = match (self.args.auto, person_is_there()) {
            (true, _) => Answering::Allow,
            (false, true) => Answering::Ask,
            (false, false) => Answering::Refuse,
        };
        let answers = match boot.answering {
            Answering::Ask => Answers::Person,
            Answering::Allow | Answering::Refuse => Answers::Agent,
        };
        let agent = Agent::boot(boot).await?;
        let connection = Connection::Local(outrigger_server::serve_plugins(&agent));
        say_warnings(&agent);
        // `--dir` is the working directory, and the base of relative paths.
        let folder = agent.location().directory.clone();
        let read = async |path: &Path| {
            let ask = async |why: &str| self.may_attach(&line, path, why).await;
            agent.attachment(folder.join(path), ask).await
        };
        let result = match files(self.args, read).await {
            Ok(files) => {
                let directory = Some(folder.to_string_lossy().into_owned());
                self.prompt(connection, answers, &line, files, directory)
                    .await
            }
            Err(failure) => Err(failure),
        };
        agent.shutdown().await;
        result
    }

    /// Runs at a server. `--dir` names a folder of the server; the default is its own. Files are those of this machine.
    async fn at_server(self, url: &str) -> Result<u8, Failure> {
        let remote = crate::boot::remote(url, &self.args.server, self.global)?;
        let here = std::env::current_dir().unwrap_or_default();
        let boot = Boot::new(here.clone(), crate::boot::environment());
        let answers = match (self.args.auto, person_is_there()) {
            (true, _) => Answers::Yes,
            (false, true) => Answers::Person,
            (false, false) => Answers::No,
        };
        let line = Line::new();
        let read = async |path: &Path| {
            let ask = async |why: &str| self.may_attach(&line, path, why).await;
            boot.attachment(here.join(path), ask).await
        };
        let files = files(self.args, read).await?;
        let _ticking = line.run();
        let connection = Connection::Remote(remote);
        self.prompt(connection, answers, &line, files, None).await
    }

    /// Asks whether to attach a file that needs the user's approval.
    async fn may_attach(&self, line: &Line, path: &Path, why: &str) -> bool {
        match (self.args.auto, person_is_there()) {
            (true, _) => true,
            (false, true) => consent::may_attach(line, path, why).await,
            (false, false) => false,
        }
    }

    async fn prompt(
        self,
        connection: Connection,
        answers: Answers,
        line: &Line,
        files: Vec<PartInput>,
        directory: Option<String>,
    ) -> Result<u8, Failure> {
        let follower = Follower::new(connection, answers, line, self.signals).await?;
        let prompt = Prompt {
            follower,
            args: self.args,
            show: Show {
                format: self.args.format(),
                thinking: self.args.thinking,
                apart: self.args.no_merge,
                quiet: false,
            },
            message: self.message,
            model: self.model,
            files,
            directory,
        };
        prompt.run().await
    }
}

/// Returns whether there is no message, no command and no file.
fn says_nothing(args: &RunArgs, message: &str) -> bool {
    message.trim().is_empty() && args.command.is_none() && args.files.is_empty()
}

/// Reads the files of the prompt.
async fn files(
    args: &RunArgs,
    read: impl AsyncFn(&Path) -> Result<Vec<PartInput>, AgentError>,
) -> Result<Vec<PartInput>, Failure> {
    let mut parts = Vec::new();
    for path in &args.files {
        parts.extend(read(path).await?);
    }
    Ok(parts)
}

/// Reports warnings of plugins that run nevertheless.
fn say_warnings(agent: &Agent) {
    let paint = Paint::for_stderr();
    for plugin in agent
        .plugins()
        .into_iter()
        .filter(|plugin| plugin.stage == Stage::Active)
    {
        for warning in plugin.warnings {
            err(&entry(&format!(
                "{} plugin {}: {warning}",
                paint.bad("!"),
                plugin.id
            )));
        }
    }
}
