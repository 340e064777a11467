//! One prompt, from the session to the end of the turn.

use outrigger_client::session;
use outrigger_protocol::id::TurnId;
use outrigger_protocol::message::{MessageInfo, MessageWithParts, ModelRef, PartKind, TextPart};
use outrigger_protocol::permission::{Action, Rule};
use outrigger_protocol::session::{PartInput, PromptInput, Session};
use outrigger_protocol::turn::{CommandCall, TurnBody};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::says_nothing;
use crate::args::RunArgs;
use crate::client::follow::Follower;
use crate::client::view::{Show, View};
use crate::failure::Failure;
use crate::terminal::{Paint, err, out};

/// A prompt of `run`.
pub(in crate::commands) struct Prompt<'a> {
    pub(in crate::commands) follower: Follower<'a>,
    pub(in crate::commands) args: &'a RunArgs,
    pub(in crate::commands) show: Show,
    pub(in crate::commands) message: String,
    pub(in crate::commands) model: Option<ModelRef>,
    /// Its attachments.
    pub(in crate::commands) files: Vec<PartInput>,
    /// Paths in this folder are shown shortened; default: the session's.
    pub(in crate::commands) directory: Option<String>,
}

impl Prompt<'_> {
    /// Runs it and shows its events.
    ///
    /// # Errors
    /// The turn could not start.
    pub(in crate::commands) async fn run(mut self) -> Result<u8, Failure> {
        let agent = self.agent().await?;
        self.check(agent.as_deref()).await?;
        let (session, known) = self.session().await?;
        self.follower.follow_session(&session.id);
        let result = self.in_session(&session, known, agent).await;
        // If it did not start for another reason, the empty session is removed.
        if result.is_err() && !known {
            self.delete_empty(&session).await?;
        }
        result.map_err(|failure| failure.in_session(&session.id))
    }

    /// Returns the agent. One that cannot answer users is skipped with a warning, as in OpenCode.
    async fn agent(&self) -> Result<Option<String>, Failure> {
        let Some(name) = &self.args.agent else {
            return Ok(None);
        };
        let agents: Vec<Value> = self.follower.connection.get("/agent").await?;
        let found = agents.iter().find(|agent| agent["name"] == **name);
        match found {
            Some(agent) if agent["mode"] != "subagent" => return Ok(Some(name.clone())),
            Some(_) => err(&format!(
                "warning: agent \"{name}\" is a subagent, not a primary agent. Falling back to default agent\n"
            )),
            None => err(&format!(
                "warning: agent \"{name}\" not found. Falling back to default agent\n"
            )),
        }
        Ok(None)
    }

    /// Checks that command, agent and model exist: a mistyped name leaves no session behind.
    async fn check(&self, agent: Option<&str>) -> Result<(), Failure> {
        let named = json!({
            "agent": agent, "command": self.args.command, "model": self.model, "executor": self.args.executor,
            "continues": self.args.continued.has_session(),
        });
        self.follower
            .connection
            .post("/outrigger/check", &named)
            .await
            .map_err(Failure::from)
    }

    /// Returns the session to work in, and whether it existed before.
    async fn session(&self) -> Result<(Session, bool), Failure> {
        let connection = &self.follower.connection;
        let wanted = self.args.continued.wanted()?;
        if let Some(found) = session::find(connection, &wanted).await? {
            return Ok(found);
        }
        let mut body = json!({ "permission": out_of_reach() });
        match self.args.title.as_deref() {
            Some("") => body["title"] = json!(shortened(&self.message)),
            Some(title) => body["title"] = json!(title),
            None => {}
        }
        Ok((connection.post("/session", &body).await?, false))
    }

    async fn delete_empty(&self, session: &Session) -> Result<(), Failure> {
        let connection = &self.follower.connection;
        let path = format!("/session/{}", session.id);
        let messages: Vec<IgnoredAny> = connection.get(&format!("{path}/message")).await?;
        if messages.is_empty() {
            Ok(connection.delete(&path).await?)
        } else {
            Ok(())
        }
    }

    async fn in_session(
        &mut self,
        session: &Session,
        known: bool,
        agent: Option<String>,
    ) -> Result<u8, Failure> {
        let silent = says_nothing(self.args, &self.message);
        let interrupted = if known {
            self.interrupted(session).await?
        } else {
            None
        };
        if let Some(turn) = interrupted {
            err(&Paint::for_stderr().dim("~ going on with the turn that was interrupted\n"));
            let resumed = self.follow(session, &TurnBody::Resume(turn)).await;
            if silent || !matches!(resumed, Ok(0)) {
                if !silent {
                    let mark = Paint::for_stderr().bad("!");
                    err(&format!(
                        "{mark} the turn that was interrupted did not complete; not sent: {}\n",
                        self.unsent()
                    ));
                }
                return resumed;
            }
        } else if silent {
            return self.said_already(session).await;
        }
        let request = self.request(agent);
        self.follow(session, &request).await
    }

    async fn follow(&mut self, session: &Session, request: &TurnBody) -> Result<u8, Failure> {
        let directory = self.directory.as_ref().unwrap_or(&session.directory);
        let mut view = View::new(session.id.clone(), self.show, directory.clone());
        self.follower.follow(&session.id, &mut view, request).await
    }

    async fn interrupted(&self, session: &Session) -> Result<Option<TurnId>, Failure> {
        #[derive(serde::Deserialize)]
        struct Interrupted {
            turn: Option<TurnId>,
        }
        let path = format!("/outrigger/session/{}/interrupted", session.id);
        let found: Interrupted = self.follower.connection.get(&path).await?;
        Ok(found.turn)
    }

    fn request(&mut self, agent: Option<String>) -> TurnBody {
        let mut prompt = PromptInput {
            agent,
            model: self.model.take(),
            variant: self.args.variant.clone(),
            executor: self.args.executor.clone(),
            parts: std::mem::take(&mut self.files),
            ..PromptInput::default()
        };
        let message = std::mem::take(&mut self.message);
        if let Some(name) = &self.args.command {
            let call = CommandCall {
                name: name.clone(),
                arguments: message,
            };
            return TurnBody::Command(call, prompt);
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
        TurnBody::Prompt(prompt)
    }

    /// Summarises what the user wanted to send.
    fn unsent(&self) -> String {
        let (args, message) = (self.args, &self.message);
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

    /// Handles `-c` without a prompt and with nothing to resume: a kill after the last step leaves a finished turn,
    /// so the user gets the answer again instead of an error.
    async fn said_already(&self, session: &Session) -> Result<u8, Failure> {
        let path = format!("/session/{}/message", session.id);
        let messages: Vec<MessageWithParts> = self.follower.connection.get(&path).await?;
        let text = last_text(&messages);
        if text.trim().is_empty() {
            return Err(Failure::usage(
                "there is nothing to say, and no interrupted turn to go on with",
                None,
            ));
        }
        err(&Paint::for_stderr().dim("~ no turn was interrupted; the last answer was:\n"));
        out(&format!("{}\n", text.trim()));
        Ok(0)
    }
}

/// Returns the text of the last answer.
fn last_text(messages: &[MessageWithParts]) -> &str {
    let mut answers = messages
        .iter()
        .rev()
        .filter(|message| matches!(message.info, MessageInfo::Assistant(_)));
    let parts = answers.next().map_or(&[][..], |message| &message.parts);
    let mut texts = parts.iter().rev().filter_map(|part| match &part.kind {
        PartKind::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.next().unwrap_or_default()
}

/// Returns rules that deny what needs an interactive user.
fn out_of_reach() -> [Rule; 3] {
    let deny = |permission: &str| Rule {
        permission: permission.into(),
        pattern: "*".into(),
        action: Action::Deny,
    };
    ["question", "plan_enter", "plan_exit"].map(deny)
}

/// Shortens a text to the length of a title.
fn shortened(text: &str) -> String {
    text.chars().take(50).collect::<String>() + if text.chars().count() > 50 { "..." } else { "" }
}
