//! The Telegram connector (requirement D5, `telegram`): prompts come from chats, results go there.

mod bot;
mod chat;
mod question;
mod state;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use outrigger_stdx::tally::Tallies;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

pub use bot::{Bot, TelegramError, Token};
use bot::{Message, Update};
use chat::{Chat, Order};
use state::State;

/// Maximum number of queued prompts of one chat.
pub(crate) const WAITING: usize = 16;
/// Within this time, strangers are refused with a message only once, and a chat is notified only once of dropped
/// messages.
const REFUSAL_INTERVAL: Duration = Duration::from_secs(60 * 60);
const LEFT_OUT: Duration = Duration::from_secs(60);
/// Maximum number of chats counted for this.
const CHATS: usize = 256;
/// Pause after a failed request for messages; it doubles up to a minute.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The agent, as a call of its HTTP API.
pub trait Agent: Send + Sync + 'static {
    /// Calls `path` and returns the body.
    fn call(
        &self,
        method: &'static str,
        path: String,
        body: Option<Value>,
    ) -> BoxFuture<'static, Result<Value, Failed>>;
}

/// A failed call of the agent's API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Status of the response; `None` if there was none.
    pub status: Option<u16>,
    /// The reason, for the user.
    pub why: String,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}

/// The connector's settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Chats whose messages are prompts (`telegram.chats`). All others are only shown which number to add.
    pub chats: Vec<i64>,
    /// The agent for prompts; default: the default agent (`telegram.agent`).
    pub agent: Option<String>,
    /// Where it stores the session of each chat, and the last received message.
    pub state: PathBuf,
}

/// Receives messages until it is dropped. Failures are logged and retried; it never ends on its own.
pub async fn run(bot: Bot, agent: Arc<dyn Agent>, settings: Settings) {
    let state = Arc::new(State::open(&settings.state));
    let mut dispatcher = Dispatcher {
        bot: Arc::new(bot),
        agent,
        state: Arc::clone(&state),
        settings,
        chats: HashMap::new(),
        asides: JoinSet::new(),
        refused: Tallies::new(1, REFUSAL_INTERVAL, CHATS),
        dropped: Tallies::new(1, LEFT_OUT, CHATS),
    };
    let mut pause = RETRY_PAUSE;
    loop {
        let wait = match dispatcher.bot.updates(state.next()).await {
            Ok(updates) => {
                let mut failed = None;
                for update in updates {
                    // Before it is executed: a crash must not repeat a prompt.
                    if let Err(error) = state.took(update.id) {
                        tracing::error!("[telegram] {error}; no message is taken until it can be");
                        failed = Some(pause);
                        break;
                    }
                    dispatcher.dispatch(update);
                }
                failed
            }
            Err(error) => {
                let wait = error.wait().unwrap_or(pause);
                tracing::warn!("[telegram] {error}; asked again in {} s", wait.as_secs());
                Some(wait)
            }
        };
        match wait {
            Some(wait) => {
                tokio::time::sleep(wait).await;
                pause = (pause * 2).min(Duration::from_secs(60));
            }
            None => pause = RETRY_PAUSE,
        }
    }
}

/// Dispatches messages to their chats. It does not block: one chat must not stall the others.
struct Dispatcher {
    bot: Arc<Bot>,
    agent: Arc<dyn Agent>,
    state: Arc<State>,
    settings: Settings,
    chats: HashMap<i64, mpsc::Sender<Order>>,
    /// Messages outside the chats; ended with the connector.
    asides: JoinSet<()>,
    refused: Tallies<i64>,
    dropped: Tallies<i64>,
}

impl Dispatcher {
    fn dispatch(&mut self, update: Update) {
        let Some(Message { chat, text }) = update.message else {
            return;
        };
        if !self.settings.chats.contains(&chat) {
            if let Some(unreported) = self.refused.take(&chat, Instant::now()) {
                tracing::warn!(
                    "[telegram] a message from chat {chat} was refused: it is not in telegram.chats ({unreported} more before it)"
                );
                self.aside(chat, format!(
                    "This chat may not give prompts here. The owner of this Outrigger can allow it with `telegram.chats = [{chat}]` in outrigger.toml."
                ));
            }
            return;
        }
        let orders = self.chats.entry(chat).or_insert_with(|| {
            let (sender, receiver) = mpsc::channel(WAITING);
            let chat = Chat::new(
                chat,
                Arc::clone(&self.bot),
                Arc::clone(&self.agent),
                Arc::clone(&self.state),
                self.settings.agent.clone(),
            );
            // Ends with its sender, when the connector is dropped.
            tokio::spawn(chat.serve(receiver));
            sender
        });
        if orders.try_send(Order::read(&text)).is_err()
            && self.dropped.take(&chat, Instant::now()).is_some()
        {
            self.aside(chat, LEFT.to_owned());
        }
    }

    fn aside(&mut self, chat: i64, text: String) {
        while self.asides.try_join_next().is_some() {}
        let bot = Arc::clone(&self.bot);
        self.asides
            .spawn(async move { bot.send(chat, &text).await });
    }
}

/// The reply to a chat whose message was dropped.
pub(crate) const LEFT: &str = "Too many messages wait already; this one was skipped.";
