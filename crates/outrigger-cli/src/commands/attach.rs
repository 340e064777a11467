//! `outrigger attach`: a conversation with a server, line by line.

use std::io::IsTerminal as _;

use outrigger_client::input::slash_command;
use outrigger_client::session;
use outrigger_client::{ClientError, Connection, StreamItem};
use outrigger_protocol::message::{ModelRef, PartKind, TextPart};
use outrigger_protocol::session::{PartInput, PromptInput, Session};
use outrigger_protocol::turn::{CommandCall, TurnBody};
use serde_json::{Value, json};

use crate::args::{AttachArgs, Global};
use crate::client::follow::{Answers, Follower, Next};
use crate::client::view::{Show, View};
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::name;
use crate::terminal::progress::Line;
use crate::terminal::{Paint, err, out};

const HELP: &str = "\
/sessions          the sessions of this folder
/session ID        go to another one
/new               begin another one
/model [NAME]      the models, or the one to use from now on (provider/model)
/agent [NAME]      the agents, or the one to use from now on
/abort             cancel the turn of this session
/exit              exit; the current turn keeps running
/COMMAND [WORDS]   a command of the project
";

/// The meaning of a line at the prompt.
#[derive(Debug, PartialEq, Eq)]
enum Wish<'l> {
    Nothing,
    Exit,
    Help,
    Sessions,
    Session(&'l str),
    New,
    Model(&'l str),
    Agent(&'l str),
    Abort,
    Command(&'l str, &'l str),
    Say(&'l str),
}

fn wish(line: &str) -> Wish<'_> {
    let line = line.trim();
    let Some((name, rest)) = slash_command(line) else {
        return if line.is_empty() {
            Wish::Nothing
        } else {
            Wish::Say(line)
        };
    };
    match name {
        "exit" | "quit" | "q" => Wish::Exit,
        "help" | "" => Wish::Help,
        "sessions" => Wish::Sessions,
        "session" if !rest.is_empty() => Wish::Session(rest),
        "session" => Wish::Sessions,
        "new" => Wish::New,
        "model" | "models" => Wish::Model(rest),
        "agent" | "agents" => Wish::Agent(rest),
        "abort" => Wish::Abort,
        name => Wish::Command(name, rest),
    }
}

/// Runs the command.
pub(crate) async fn attach(
    global: &Global,
    args: AttachArgs,
    signals: Signals,
) -> Result<u8, Failure> {
    let wanted = args.continued.wanted()?;
    let remote = crate::boot::remote(&args.url, &args.server, global)?;
    let line = Line::new();
    let _ticking = line.run();
    let answers = if args.auto {
        Answers::Yes
    } else {
        Answers::Person
    };
    let connection = Connection::Remote(remote);
    let follower = Follower::new(connection, answers, &line, &signals).await?;
    let session = session::find(&follower.connection, &wanted).await?;
    let mut talk = Talk {
        follower,
        session: None,
        view: None,
        model: None,
        agent: None,
        line: &line,
        show: Show {
            thinking: args.thinking,
            ..Show::default()
        },
    };
    err(&Paint::for_stderr().dim(&format!("~ {}; type /help for commands\n", args.url)));
    if let Some((session, _)) = session {
        talk.enter(session);
    }
    talk.until_exit().await
}

struct Talk<'a> {
    follower: Follower<'a>,
    session: Option<Session>,
    view: Option<View>,
    model: Option<ModelRef>,
    agent: Option<String>,
    line: &'a Line,
    show: Show,
}

impl Talk<'_> {
    fn enter(&mut self, session: Session) {
        self.follower.follow_session(&session.id);
        self.view = Some(self.view_of(&session));
        self.line.say(&Paint::for_stderr().dim(&format!(
            "~ {}  {}\n",
            session.id,
            name(&session.title)
        )));
        self.session = Some(session);
    }

    fn view_of(&self, session: &Session) -> View {
        View::new(session.id.clone(), self.show, session.directory.clone())
    }

    async fn until_exit(&mut self) -> Result<u8, Failure> {
        let terminal = std::io::stdin().is_terminal();
        loop {
            self.follower.signals.rest();
            if terminal {
                self.line.say("> ");
            }
            let Some(typed) = self.typed().await? else {
                return Ok(0);
            };
            match self.does(&typed).await {
                Ok(true) => {}
                Ok(false) => return Ok(0),
                // At a terminal, report errors and continue; otherwise exit.
                Err(failure) if terminal && !failure.is("attach.gone") => {
                    self.line.say(&failure.text());
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Returns the next line for the prompt; shows other clients' activity in this session
    /// meanwhile.
    async fn typed(&mut self) -> Result<Option<String>, Failure> {
        loop {
            if self.follower.questions.is_closed() {
                return Ok(None);
            }
            self.follower.questions.want();
            match self.follower.next().await {
                Next::Typed(typed) if !self.follower.asks() => return Ok(typed),
                Next::Typed(typed) => self.follower.typed(typed.as_deref()).await,
                Next::Agent(StreamItem::End) => return Err(ClientError::gone().into()),
                Next::Agent(StreamItem::Gap) => {
                    self.line.say("warning: some events are not shown\n");
                }
                Next::Agent(StreamItem::Event(event)) => {
                    if let Some(view) = &mut self.view {
                        self.follower.on(view, &event).await;
                    }
                }
            }
        }
    }

    /// Executes a line; returns `false` to quit.
    async fn does(&mut self, typed: &str) -> Result<bool, Failure> {
        match wish(typed) {
            Wish::Nothing => {}
            Wish::Exit => return Ok(false),
            Wish::Help => out(HELP),
            Wish::Sessions => self.sessions().await?,
            Wish::Session(id) => {
                let session = session::by_id(&self.follower.connection, id).await?;
                self.enter(session);
            }
            Wish::New => {
                self.session = None;
                self.view = None;
            }
            Wish::Model("") => self.models().await?,
            Wish::Model(name) => {
                let Some((provider, model)) = name.split_once('/') else {
                    return Err(Failure::usage(
                        format!("`{name}` does not name a model"),
                        Some("write it as provider/model".into()),
                    ));
                };
                self.model = Some(ModelRef {
                    provider_id: provider.to_owned(),
                    model_id: model.to_owned(),
                    variant: None,
                });
            }
            Wish::Agent("") => self.agents().await?,
            Wish::Agent(name) => self.agent = Some(name.to_owned()),
            Wish::Abort => {
                if let Some(session) = &self.session {
                    let path = format!("/session/{}/abort", session.id);
                    let _: bool = self.follower.connection.post(&path, &json!({})).await?;
                }
            }
            Wish::Command(name, words) => {
                let call = CommandCall {
                    name: name.to_owned(),
                    arguments: words.to_owned(),
                };
                let request = TurnBody::Command(call, self.prompt());
                self.turn(&request).await?;
            }
            Wish::Say(text) => {
                let mut prompt = self.prompt();
                prompt.parts.push(PartInput {
                    id: None,
                    kind: PartKind::Text(TextPart {
                        text: text.to_owned(),
                        ..TextPart::default()
                    }),
                });
                self.turn(&TurnBody::Prompt(prompt)).await?;
            }
        }
        Ok(true)
    }

    /// Builds a prompt with the agent and the model of the conversation.
    fn prompt(&self) -> PromptInput {
        PromptInput::for_conversation(self.agent.as_ref(), self.model.as_ref())
    }

    async fn turn(&mut self, request: &TurnBody) -> Result<(), Failure> {
        let session = match self.session.take() {
            Some(session) => session,
            None => {
                self.follower
                    .connection
                    .post("/session", &json!({}))
                    .await?
            }
        };
        let id = session.id.clone();
        self.follower.follow_session(&id);
        let mut view = self.view_of(&session);
        self.session = Some(session);
        let ended = self.follower.follow(&id, &mut view, request).await;
        self.view = Some(view);
        ended.map(drop)
    }

    async fn sessions(&self) -> Result<(), Failure> {
        let own = self.session.as_ref().map(|session| &session.id);
        let mut list: Vec<Session> = self.follower.connection.get("/session?roots=true").await?;
        list.retain(|session| session.parent_id.is_none());
        list.sort_by_key(|session| std::cmp::Reverse(session.time.updated));
        for session in list {
            let mark = if Some(&session.id) == own { "*" } else { " " };
            out(&format!(
                "{mark} {}  {}\n",
                session.id,
                name(&session.title)
            ));
        }
        Ok(())
    }

    async fn models(&self) -> Result<(), Failure> {
        let all: Value = self.follower.connection.get("/config/providers").await?;
        for provider in all["providers"].as_array().into_iter().flatten() {
            let id = provider["id"].as_str().unwrap_or_default();
            for model in provider["models"]
                .as_object()
                .into_iter()
                .flat_map(|m| m.keys())
            {
                out(&format!("{}\n", name(&format!("{id}/{model}"))));
            }
        }
        Ok(())
    }

    async fn agents(&self) -> Result<(), Failure> {
        let all: Value = self.follower.connection.get("/agent").await?;
        let shown = |agent: &&Value| agent["mode"] != "subagent" && agent["hidden"] != true;
        for agent in all.as_array().into_iter().flatten().filter(shown) {
            let field = |key: &str| name(agent[key].as_str().unwrap_or_default());
            out(&format!("{}  {}\n", field("name"), field("description")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_what_they_ask_for() {
        for (line, want) in [
            ("", Wish::Nothing),
            ("  \n", Wish::Nothing),
            (" fix it \n", Wish::Say("fix it")),
            ("/exit", Wish::Exit),
            ("/q\n", Wish::Exit),
            ("/", Wish::Help),
            ("/session", Wish::Sessions),
            ("/session ses_1 ", Wish::Session("ses_1")),
            ("/model", Wish::Model("")),
            ("/model a/b/c", Wish::Model("a/b/c")),
            ("/agent plan", Wish::Agent("plan")),
            ("/init  the project ", Wish::Command("init", "the project")),
            ("/usr/bin is what?", Wish::Say("/usr/bin is what?")),
        ] {
            assert_eq!(wish(line), want, "{line:?}");
        }
    }
}
