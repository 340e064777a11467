//! One chat: its prompts, one after another, and the conversation in the meantime.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use outrigger_api::Waiting;
use outrigger_api::permission::ShownPermission;
use outrigger_protocol::permission::PermissionRequest;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::bot::{Bot, TelegramError};
use crate::question::{Question, TooLong};
use crate::state::State;
use crate::{Agent, Failed, LEFT, WAITING};

/// How often the agent's questions are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
const HELP: &str = "What you write is a prompt for the agent. Commands: /new begins a new session, /abort ends what runs, /allow ID, /always ID and /reject ID answer a question.";

/// A parsed message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Prompt(String),
    New,
    Abort,
    Help,
    /// The answer to a question: `once`, `always` or `reject`.
    Reply(&'static str, String),
}

impl Order {
    pub(crate) fn read(text: &str) -> Self {
        let text = text.trim();
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        // In a group a command contains the bot's name.
        let command = first.split('@').next().unwrap_or_default();
        let rest = || words.clone().next().unwrap_or_default().to_owned();
        match command {
            "/new" => Self::New,
            "/abort" | "/stop" => Self::Abort,
            "/start" | "/help" => Self::Help,
            "/allow" => Self::Reply("once", rest()),
            "/always" => Self::Reply("always", rest()),
            "/reject" => Self::Reply("reject", rest()),
            _ => Self::Prompt(text.to_owned()),
        }
    }
}

/// How far a question got.
enum Delivery {
    /// This number of its messages is in the chat. It cannot be answered yet.
    Partly(usize),
    /// All of it is in the chat.
    Whole {
        /// `/always` was offered.
        offers_always: bool,
    },
    /// It cannot be shown, and was refused.
    Refused,
}

pub(crate) struct Chat {
    id: i64,
    bot: Arc<Bot>,
    api: Arc<dyn Agent>,
    state: Arc<State>,
    agent: Option<String>,
    /// Open questions by id.
    asked: HashMap<String, Delivery>,
    /// The session of the current prompt.
    running: Option<String>,
}

impl Chat {
    pub(crate) fn new(
        id: i64,
        bot: Arc<Bot>,
        api: Arc<dyn Agent>,
        state: Arc<State>,
        agent: Option<String>,
    ) -> Self {
        Self {
            id,
            bot,
            api,
            state,
            agent,
            asked: HashMap::new(),
            running: None,
        }
    }

    /// Executes orders. During a prompt, other orders are executed at once, and prompts wait.
    pub(crate) async fn serve(mut self, mut orders: mpsc::Receiver<Order>) {
        let mut prompts = std::collections::VecDeque::new();
        loop {
            let order = match prompts.pop_front() {
                Some(prompt) => Order::Prompt(prompt),
                None => match orders.recv().await {
                    Some(order) => order,
                    None => return,
                },
            };
            let Order::Prompt(text) = order else {
                self.order(order).await;
                continue;
            };
            let session = match self.session().await {
                Ok(session) => session,
                Err(why) => {
                    self.say(&format!("There is no session for it: {why}"))
                        .await;
                    continue;
                }
            };
            self.running = Some(session.clone());
            let mut body = json!({"parts": [{"type": "text", "text": text}]});
            if let Some(agent) = &self.agent {
                body["agent"] = json!(agent);
            }
            let mut answer =
                self.api
                    .call("POST", format!("/session/{session}/message"), Some(body));
            let mut look = tokio::time::interval(POLL_INTERVAL);
            let answer = loop {
                tokio::select! {
                    answer = &mut answer => break answer,
                    order = orders.recv() => match order {
                        None => return,
                        Some(Order::Prompt(_)) if prompts.len() >= WAITING => self.say(LEFT).await,
                        Some(Order::Prompt(text)) => prompts.push_back(text),
                        Some(order) => self.order(order).await,
                    },
                    _ = look.tick() => self.questions(&session).await,
                }
            };
            self.running = None;
            match answer {
                Ok(message) => self.say(&result(&message)).await,
                Err(why) => self.say(&format!("The prompt failed: {why}")).await,
            }
        }
    }

    async fn say(&self, text: &str) {
        self.bot.send(self.id, text).await;
    }

    /// Returns the chat's session, or a new one if it does not exist. A failed request does not mean that it is
    /// gone.
    async fn session(&self) -> Result<String, String> {
        if let Some(session) = self.state.session(self.id) {
            let path = format!("/session/{session}");
            match self.api.call("GET", path, None).await {
                Ok(_) => return Ok(session),
                Err(Failed {
                    status: Some(404), ..
                }) => {}
                Err(failed) => return Err(failed.why),
            }
        }
        let title = format!("Telegram {}", self.id);
        let made = self
            .api
            .call(
                "POST",
                "/session".to_owned(),
                Some(json!({ "title": title })),
            )
            .await
            .map_err(|failed| failed.why)?;
        let session = made
            .get("id")
            .and_then(Value::as_str)
            .ok_or("it has no id")?
            .to_owned();
        self.state.talks_to(self.id, Some(session.clone()))?;
        Ok(session)
    }

    async fn order(&mut self, order: Order) {
        match order {
            Order::Prompt(_) => {}
            Order::Help => self.say(HELP).await,
            Order::New => match self.state.talks_to(self.id, None) {
                Ok(()) => self.say("The next prompt begins a new session.").await,
                Err(why) => self.say(&why).await,
            },
            Order::Abort => {
                let session = self.running.clone();
                let Some(session) = session.or_else(|| self.state.session(self.id)) else {
                    return self.say("Nothing runs.").await;
                };
                let aborted = self
                    .api
                    .call("POST", format!("/session/{session}/abort"), None)
                    .await;
                if let Err(why) = aborted {
                    self.say(&format!("It could not be ended: {why}")).await;
                }
            }
            Order::Reply(reply, id) => self.answer(reply, &id).await,
        }
    }

    /// Answers a question. Only what was shown here in full can be answered: other questions do not belong to this chat.
    async fn answer(&mut self, reply: &str, id: &str) {
        match self.asked.get(id) {
            Some(Delivery::Whole {
                offers_always: false,
            }) if reply == "always" => {
                let said = format!(
                    "This question offers no /always. Answer it with /allow {id} or /reject {id}."
                );
                return self.say(&said).await;
            }
            Some(Delivery::Whole { .. }) => {}
            _ => return self.say("There is no such question.").await,
        }
        self.asked.remove(id);
        if let Err(why) = self.reply(id, json!({ "reply": reply })).await {
            self.say(&format!("The answer was not taken: {why}")).await;
        }
    }

    async fn reply(&self, id: &str, body: Value) -> Result<Value, Failed> {
        let path = format!("/outrigger/v1/permission/{id}/reply");
        self.api.call("POST", path, Some(body)).await
    }

    /// Sends the questions of the session and of those that it started.
    async fn questions(&mut self, session: &str) {
        let waiting = self
            .api
            .call("GET", "/outrigger/v1/waiting".to_owned(), None);
        let Ok(Value::Array(waiting)) = waiting.await else {
            return;
        };
        let open: Vec<(PermissionRequest, ShownPermission)> =
            waiting.into_iter().filter_map(permission).collect();
        // An answered question is not asked again.
        self.asked
            .retain(|id, _| open.iter().any(|(open, _)| open.id.as_str() == id));
        for (request, shown) in open {
            let id = request.id.as_str();
            if matches!(
                self.asked.get(id),
                Some(Delivery::Whole { .. } | Delivery::Refused)
            ) || !self.is_ours(request.session_id.0.clone(), session).await
            {
                continue;
            }
            let asked = match Question::of(&request, &shown) {
                Ok(question) => self.ask(id, &question).await,
                Err(why) => self.refuse(id, &why).await,
            };
            self.asked.insert(id.to_owned(), asked);
        }
    }

    /// Sends what the chat has not got of a question yet.
    async fn ask(&self, id: &str, question: &Question) -> Delivery {
        let mut sent = match self.asked.get(id) {
            Some(Delivery::Partly(sent)) => *sent,
            _ => 0,
        };
        for block in question.blocks.iter().skip(sent) {
            match self.bot.block(self.id, block).await {
                Ok(()) => sent += 1,
                Err(error) => return self.unsent(id, sent, &error).await,
            }
        }
        match self.bot.part(self.id, &question.prompt).await {
            Ok(()) => Delivery::Whole {
                offers_always: question.offers_always,
            },
            Err(error) => self.unsent(id, sent, &error).await,
        }
    }

    /// A question that Telegram may take later is sent further then; another one is refused, since nobody sees it.
    async fn unsent(&self, id: &str, sent: usize, error: &TelegramError) -> Delivery {
        if error.passes() {
            return Delivery::Partly(sent);
        }
        let message = "Nobody was asked: the user is in a chat, which did not take the question.";
        self.reject(id, message).await;
        Delivery::Refused
    }

    async fn refuse(&self, id: &str, why: &TooLong) -> Delivery {
        self.reject(id, &why.for_the_model()).await;
        self.say(&why.said()).await;
        Delivery::Refused
    }

    async fn reject(&self, id: &str, message: &str) {
        let body = json!({ "reply": "reject", "message": message });
        if let Err(why) = self.reply(id, body).await {
            tracing::warn!("[telegram] chat {}: {id} was not refused: {why}", self.id);
        }
    }

    /// Returns whether a session is that one, or was started by it at any depth.
    async fn is_ours(&self, mut session: String, ours: &str) -> bool {
        const MAX_DEPTH: usize = 8;
        for _ in 0..MAX_DEPTH {
            if session == ours {
                return true;
            }
            let Ok(found) = self
                .api
                .call("GET", format!("/session/{session}"), None)
                .await
            else {
                return false;
            };
            match found.get("parentID").and_then(Value::as_str) {
                Some(parent) => session = parent.to_owned(),
                None => return false,
            }
        }
        false
    }
}

/// Returns a permission question. Those of a model are not answered here.
fn permission(waiting: Value) -> Option<(PermissionRequest, ShownPermission)> {
    match serde_json::from_value(waiting) {
        Ok(Waiting::Permission { request, shown }) => Some((request, shown)),
        Ok(Waiting::Question { .. }) => None,
        Err(error) => {
            tracing::debug!("[telegram] cannot read a question: {error}");
            None
        }
    }
}

/// Returns the result of an answer: its texts, or its error.
fn result(message: &Value) -> String {
    let parts = message.get("parts").and_then(Value::as_array);
    let texts: Vec<&str> = parts
        .into_iter()
        .flatten()
        .filter(|part| part.get("type").and_then(Value::as_str) == Some("text"))
        .filter_map(|part| part.get("text")?.as_str())
        .filter(|text| !text.trim().is_empty())
        .collect();
    let error = message.get("info").and_then(|info| info.get("error"));
    let error = error.map(|error| {
        let said = error
            .get("data")
            .and_then(|data| data.get("message")?.as_str());
        let name = error
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or("an error");
        format!(
            "It ended with {name}: {}",
            said.unwrap_or("no more is known")
        )
    });
    let all: Vec<String> = texts
        .iter()
        .map(|text| (*text).to_owned())
        .chain(error)
        .collect();
    if all.is_empty() {
        return "It is done, and says nothing.".to_owned();
    }
    all.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An agent whose session is unavailable, for this reason.
    struct Without(Option<u16>);

    impl Agent for Without {
        fn call(
            &self,
            method: &'static str,
            _path: String,
            _body: Option<Value>,
        ) -> futures_util::future::BoxFuture<'static, Result<Value, Failed>> {
            let status = self.0;
            Box::pin(async move {
                match (method, status) {
                    ("POST", _) => Ok(json!({ "id": "ses_new" })),
                    (_, Some(200)) => Ok(json!({ "id": "ses_old" })),
                    _ => Err(Failed {
                        status,
                        why: "not now".to_owned(),
                    }),
                }
            })
        }
    }

    /// An error of the request does not end a conversation: the server may just be restarting.
    #[tokio::test]
    async fn only_404_begins_a_new_session() {
        for (status, want) in [
            (Some(200), Ok("ses_old")),
            (Some(404), Ok("ses_new")),
            (Some(401), Err("not now")),
            (Some(403), Err("not now")),
            (Some(410), Err("not now")),
            (Some(500), Err("not now")),
            (Some(503), Err("not now")),
            (None, Err("not now")),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let state = Arc::new(State::open(&folder.path().join("state.json")));
            state.talks_to(1, Some("ses_old".to_owned())).unwrap();
            let bot = Bot::new("http://127.0.0.1:1", crate::Token("12:secret".into())).unwrap();
            let api = Arc::new(Without(status));
            let chat = Chat::new(1, Arc::new(bot), api, Arc::clone(&state), None);
            let got = chat.session().await;
            assert_eq!(got.as_deref().map_err(String::as_str), want, "{status:?}");
            // The stored session is the current one, and is not dropped because of an error.
            let kept = state.session(1);
            assert_eq!(
                kept.as_deref(),
                Some(want.unwrap_or("ses_old")),
                "{status:?}"
            );
        }
    }

    #[test]
    fn messages_are_read() {
        for (text, order) in [
            (" fix it\n", Order::Prompt("fix it".into())),
            ("/new", Order::New),
            ("/new@my_bot please", Order::New),
            ("/stop", Order::Abort),
            ("/start", Order::Help),
            ("/allow per_1", Order::Reply("once", "per_1".into())),
            ("/always  per_1 x", Order::Reply("always", "per_1".into())),
            ("/reject", Order::Reply("reject", String::new())),
            (
                "/etc/passwd is what?",
                Order::Prompt("/etc/passwd is what?".into()),
            ),
        ] {
            assert_eq!(Order::read(text), order, "{text}");
        }
    }

    #[test]
    fn an_answer_is_its_texts_or_its_error() {
        for (message, want) in [
            (
                json!({"parts": [{"type": "text", "text": "a"}, {"type": "tool"}, {"type": "text", "text": " "}, {"type": "text", "text": "b"}]}),
                "a\n\nb",
            ),
            (
                json!({"info": {"error": {"name": "APIError", "data": {"message": "no"}}}, "parts": []}),
                "It ended with APIError: no",
            ),
            (json!({}), "It is done, and says nothing."),
        ] {
            assert_eq!(result(&message), want);
        }
    }
}
